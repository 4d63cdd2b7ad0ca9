from mzseek.decision.advice import METRICS
from mzseek.decision.utilities import GOALS, UTILITIES
from mzseek.losses import LOSSES


def test_a_goal_is_a_utility_with_a_loss_that_stands_for_it() -> None:
    assert list(GOALS) == list(METRICS)
    for goal, loss in GOALS.items():
        assert goal in UTILITIES
        assert LOSSES[loss].stands_for == METRICS[goal]
