"""What the report shows of a feature."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.annotation.annotation import Level
from mzseek.annotation.features import Feature
from mzseek.decision import UTILITIES
from mzseek.export.page import templates
from mzseek.export.report import embedded
from mzseek.export.report_data import (
    GOALS,
    IN_FULL,
    LISTED,
    MAX_PEAKS,
    REFERENCES,
    Counts,
    badges,
    feature_data,
    goals,
    packed_fragments,
    packed_peaks,
    row_data,
    signs_of,
    subscripted,
)
from mzseek.fragments import explain

from .report_cases import (
    CAFFEINE,
    RIVALS,
    candidate,
    empty_annotation,
    make_annotation,
    reference,
    spectrum,
)


@given(
    st.lists(st.tuples(st.floats(1, 2000), st.floats(0.001, 1e9)), max_size=30),
    st.integers(1, 40),
)
def test_the_strongest_peaks_are_kept_in_order(peaks, most: int) -> None:
    peaks = sorted(peaks)
    mz, intensities = np.array(peaks, float).reshape(-1, 2).T
    packed = packed_peaks(mz, intensities, most)
    assert len(packed[0]) == len(packed[1]) == min(len(peaks), most)
    assert packed[0] == sorted(packed[0])
    if peaks:
        kept = sorted(intensities, reverse=True)[:most]
        shares = sorted((max(1, round(1000 * each / max(kept))) for each in kept), reverse=True)
        assert sorted(packed[1], reverse=True) == shares


def test_the_spectrum_with_the_most_peaks_stands_for_a_feature() -> None:
    few, rich = spectrum("a", ([50.0], [1.0])), spectrum("b")
    assert Feature("F", "given", (few, rich, few)).representative == 1
    assert Feature("F", "given", (rich, spectrum("c"))).representative == 0


def explained(peaks, **changes):
    annotation = make_annotation(feature=Feature("F", "given", (peaks,)), **changes)
    return packed_fragments(annotation.peaks_of(candidate())[0])


def test_pieces_are_those_that_explain_gives() -> None:
    one = spectrum()
    rows = explain(one, CAFFEINE, adduct="[M+H]+")
    packed = {row[0]: row for row in explained(one)}
    assert set(packed) == {i for i, row in enumerate(rows) if row.formula}
    assert len(packed) >= 4
    for place, (_, formula, charge, error, mask, bonds, hydrogens, alike) in packed.items():
        row = rows[place]
        atoms = {atom for atom in range(64) if int(mask, 16) >> atom & 1}
        assert atoms == set(row.atoms)
        assert (formula, charge, bonds, hydrogens, alike) == (
            row.formula, row.charge, row.bonds, row.hydrogens, row.equivalents
        )  # fmt: skip
        assert abs(error / 10 - row.error_ppm) <= 0.05


def test_the_tolerance_is_that_of_the_annotation() -> None:
    off = spectrum(peaks=([138.0662 * (1 + 30e-6)], [1.0]))
    assert not explained(off, ppm=10, least=0.0005)
    assert explained(off, ppm=40, least=0.0005)


def test_places_are_those_of_the_peaks_that_are_drawn() -> None:
    noise = np.linspace(50.3, 137.7, 3 * MAX_PEAKS)
    mz = np.sort(np.append(noise, 138.0662))
    intensities = np.where(mz == 138.0662, 100.0, 0.5 + np.arange(len(mz)) % 7)
    many = spectrum(peaks=(mz, intensities))
    packed = packed_peaks(many.mz, many.intensities)
    assert len(packed[0]) == MAX_PEAKS
    best = [row for row in explained(many) if row[1] == "C6H8N3O"]
    assert [packed[0][row[0]] for row in best] == [1380662]


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


def take(counts, annotation, references=()):
    counts.add({**signs_of(annotation), "references": references})


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


def rendered(annotation, place: int = 0) -> str:
    return (
        templates().get_template("annotations/row.html").render(row_data(annotation), place=place)
    )


def test_a_row_says_what_is_decided_for() -> None:
    row = row_data(make_annotation("X7"))
    assert (row["name"], row["best"], row["formula"]) == ("X7", "caffeine", "C₈H₁₀N₄O₂")
    assert row["confidence"] == pytest.approx(0.6 * 0.8)
    assert row["width"] == 48.0
    assert row_data(make_annotation(objective="tanimoto"))["best"] != CAFFEINE
    text = rendered(make_annotation("X7"), 3)
    assert 'id="f3"' in text
    assert 'data-key="RYYVLZVUVIJVGH"' in text
    assert "48 %" in text
    assert "195.0877" in text


def test_only_counts_of_atoms_go_below_the_line() -> None:
    assert subscripted("[13C]2C10H22") == "[13C]₂C₁₀H₂₂"
    assert subscripted("") == ""


def total(data) -> float:
    """Of all that is listed as possible."""
    known = sum(c["p"] for c in data["candidates"]) + sum(row[3] for row in data["others"])
    return known + data["rest"][1] + (0 if data["present"] is None else 1 - data["present"])


@pytest.mark.parametrize("present", [None, 1.0, 0.8, 0.0])
def test_all_that_is_possible_adds_up_to_one(present) -> None:
    data = feature_data(make_annotation(present=present))
    assert len(data["candidates"]) == IN_FULL
    assert len(data["others"]) == 1
    assert total(data) == pytest.approx(1, abs=1e-3)


def test_candidates_that_are_not_listed_are_counted() -> None:
    many = tuple(candidate(CAFFEINE, probability=1 / 40) for _ in range(30))
    data = feature_data(make_annotation(candidates=many, found=40, choices={"hit": 0}))
    assert data["rest"][0] == 40 - LISTED
    assert total(data) == pytest.approx(1, abs=1e-3)


def test_what_is_decided_for_is_always_shown() -> None:
    annotation = make_annotation(objective="bits", choices={"hit": 0, "bits": 5})
    data = feature_data(annotation, in_full=2)
    assert [c["rank"] for c in data["candidates"]] == [1, 6]
    assert data["best"] == 1
    assert data["choices"]["bits"] == [6, "", RIVALS[-1]]
    assert [c["rank"] for c in feature_data(annotation, in_full=1)["candidates"]] == [6]


def test_identifiers_link_to_their_pages() -> None:
    found = candidate(sources=("hmdb",), identifiers=("hmdb:HMDB01847", "lab:7"))
    shown = feature_data(make_annotation(candidates=(found,), choices={"hit": 0}))["candidates"][0]
    assert shown["links"] == [["HMDB0001847", "https://hmdb.ca/metabolites/HMDB0001847"]]
    assert shown["from"] == ["hmdb", "lab:7"]


def test_kinds_of_reasons_are_sums_of_their_channels() -> None:
    data = feature_data(make_annotation())
    assert data["candidates"][0]["nats"] == [0, 2.0, -0.25, 0]
    assert data["channels"] == [
        ["fragments", "evidence"], ["substructures", "evidence"], ["analogs", "analogy"]
    ]  # fmt: skip


def test_pieces_point_at_atoms_that_are_drawn() -> None:
    data = feature_data(make_annotation())
    seen = 0
    for one in data["candidates"]:
        atoms = len(data["structures"][one["st"]]["xy"]) // 2
        for row in one["pieces"]:
            assert int(row[4], 16).bit_length() <= atoms
            assert row[0] < len(data["peaks"][0])
            seen += 1
    assert seen > 10


def test_a_reference_spectrum_stands_there_once_with_whose_it_is() -> None:
    shared = reference("R9", smiles=RIVALS[0], tanimoto=0.5, name="")
    pair = (
        candidate(probability=0.5, match=reference(), analog=shared),
        candidate(RIVALS[1], probability=0.5, analog=shared),
    )
    data = feature_data(make_annotation(candidates=pair, matches=(reference(),)))
    assert [ref["record"] for ref in data["refs"]] == ["REF1", "R9"]
    assert [c["analog"] for c in data["candidates"]] == [1, 1]
    assert [c["match"] for c in data["candidates"]] == [0, None]
    assert [ref["same"] for ref in data["refs"]] == [True, False]
    first = data["refs"][0]
    assert (first["contributor"], first["licence"], first["library"]) == ("Eawag", "CC BY", "box")
    many = tuple(reference(f"R{n}") for n in range(20))
    assert len(feature_data(make_annotation(matches=many))["refs"]) == REFERENCES


def test_a_feature_without_candidates_is_said_to_have_none() -> None:
    data = feature_data(empty_annotation())
    assert (data["candidates"], data["best"], data["found"]) == ([], None, 0)
    assert len(data["peaks"][0]) == 6


def test_it_is_plain_data() -> None:
    data = feature_data(make_annotation(nearest=float("nan")))
    again = json.loads(embedded(data))
    assert again["nearest"] is None
    assert again["ions"] == [["[M+H]+", 0.9], ["[M+Na]+", 0.1]]
    assert again["notes"] == ["A note."]
