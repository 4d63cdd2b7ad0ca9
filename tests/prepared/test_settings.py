import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.prepared.settings import is_for_training, measured_on, negatives_name


@given(st.sampled_from(["hardest", "random"]), st.sampled_from(["mass", "formula"]),
       st.integers(2, 100_000))  # fmt: skip
def test_names_of_negatives_say_what_they_are_measured_on(kind: str, by: str, keep: int) -> None:
    name = negatives_name(kind, by, keep)
    assert name == f"{'hard' if kind == 'hardest' else 'random'}-{by}-{keep}"
    assert is_for_training(name)
    assert measured_on(name) == by


@pytest.mark.parametrize(
    "setting", ["mass", "formula", "hard-mass", "hard-mass-", "hard-key-8", "my-hard-mass-8", ""]
)
def test_other_lists_are_measured_on_themselves(setting: str) -> None:
    assert not is_for_training(setting)
    assert measured_on(setting) == setting
