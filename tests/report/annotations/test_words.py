from mzseek.annotation.features import Feature
from mzseek.decision import UTILITIES
from mzseek.export.report_data import GOALS, badges, goals

from .conftest import candidate, empty_annotation, make_annotation, reference, spectrum


def test_every_utility_is_a_goal_in_words() -> None:
    assert set(goals()) == set(UTILITIES) == set(GOALS)


def test_the_ground_of_an_answer_is_its_first_badge() -> None:
    def ground(parts, **given):
        return badges(make_annotation(candidates=(candidate(parts=parts, **given),), choices={}))[0]

    assert ground((0.0, 0.0, 9.0), match=reference()) == "library match"
    assert ground((2.0, 1.0, 1.0)) == "evidence"
    assert ground((0.5, 0.0, 2.0)) == "analogy"
    assert ground((-2.0, 0.0, 0.01)) == "evidence"  # similar spectra say nothing
    assert badges(empty_annotation()) == ["no answer"]


def test_what_a_reader_must_beware_of() -> None:
    silent = Feature("F", "given", (spectrum(adduct=None),))
    annotation = make_annotation(feature=silent, found=900, scored=500, unlike=True)
    assert badges(annotation)[1:] == ["capped list", "unlike anything known", "ion guessed"]
    assert badges(make_annotation()) == ["library match"]
