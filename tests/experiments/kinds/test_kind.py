from mzseek.experiments import Scale
from mzseek.experiments.kinds import KINDS, Kind


def test_a_kind_trains_nothing_unless_it_says_so(two) -> None:
    class Idle(Kind):
        name = "idle"

        def check(self, experiment):
            return None

        def measure(self, experiment, scale, site):
            return {}, {}

    assert Idle().asked(two, Scale("paper")) == {}
    assert Idle().needs_data
    assert all(isinstance(kind, Kind) for kind in KINDS.values())
