import json

import pytest

from mzseek.export.report import embedded
from mzseek.export.report_data import IN_FULL, LISTED, REFERENCES, feature_data

from .conftest import CAFFEINE, RIVALS, candidate, empty_annotation, make_annotation, reference


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
    shared = reference("R9", smiles=RIVALS[0], likeness=0.5, name="")
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
