from mzseek.annotation.annotation import Level
from mzseek.annotation.features import Feature
from mzseek.export.report_data import Counts, feature_data, signs_of

from .conftest import candidate, empty_annotation, make_annotation, reference, spectrum


def take(counts, annotation, references=()):
    counts.take({**signs_of(annotation), "references": references})


def test_everything_is_counted_once() -> None:
    counts = Counts()
    three = Feature("F", "given", (spectrum("a"), spectrum("b"), spectrum("c")))
    sure = (candidate(probability=0.95),)
    take(counts, make_annotation())
    take(counts, make_annotation(feature=three, candidates=sure, choices={}, present=None))
    take(counts, empty_annotation())
    assert (counts.features, counts.records) == (3, 5)
    assert (counts.sure, counts.fair) == (1, 0)
    assert counts.badges["library match"] == 1
    assert counts.knows_absence
    assert not counts.has_prior


def test_reference_spectra_are_counted_as_they_are_drawn() -> None:
    counts = Counts()
    alike = reference("R", licence="CC0")
    pair = (candidate(match=reference(), analog=alike), candidate(analog=alike))
    for annotation in (
        make_annotation(candidates=pair, choices={}),
        make_annotation(),
        empty_annotation(),
    ):
        references = [[r["licence"], r["contributor"]] for r in feature_data(annotation)["refs"]]
        take(counts, annotation, references)
    assert dict(counts.licences) == {("CC BY", "Eawag"): 2, ("CC0", "Eawag"): 1}


def test_levels_come_surest_first_with_their_shares() -> None:
    counts = Counts()
    for level in ("5", "3", "2a", "3", "odd"):
        take(counts, make_annotation(level=Level(level, "")))
    assert [(row[0], row[2], row[3]) for row in counts.by_level()] == [
        ("2a", 1, 20), ("3", 2, 40), ("5", 1, 20), ("odd", 1, 20)
    ]  # fmt: skip
    assert Counts().by_level() == []
