"""Proposed structures in outputs: a table of their own, JSON and report, and nowhere else."""

import csv
import json
from pathlib import Path

import pytest

from mzseek.annotation.config import AnnotateConfig
from mzseek.export import SUFFIXES
from mzseek.export.job import HAS_PROPOSALS, _proposal_lines
from mzseek.export.output import Output
from mzseek.export.proposals import COLUMNS, PROPOSALS
from mzseek.export.report import PROPOSED, feature_data
from mzseek.export.writer import Settings
from mzseek.proposals.proposal import Proposal

DOCS = Path(__file__).resolve().parents[2] / "docs"


def proposal(**changes) -> Proposal:
    facts = {
        "smiles": "CCn1c(=O)c2c(ncn2C)n(C)c1=O", "key": "XBWWAQKUEJPQTH", "formula": "C9H12N4O2",
        "mass": 208.0960, "adduct": "[M+H]+", "error_ppm": 1.5, "probability": 0.75,
        "confidence": 0.25, "included": 0.5, "parent": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
        "parent_key": "RYYVLZVUVIJVGH", "parent_name": "=Caffeine", "parent_record": "R1",
        "parent_similarity": 0.9, "transformation": "insert CH2", "mass_difference": 14.01565,
        "score": 2.0, "explained": 0.8, "peaks_explained": 5,
    }  # fmt: skip
    return Proposal(**(facts | changes))


@pytest.fixture
def annotation(make_annotation):
    known = proposal(parent_record="", parent_similarity=0.0, key="AAAAAAAAAAAAAA")
    return make_annotation("1", proposals=(proposal(), known))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write(target: Path, *annotations, propose: int = 2) -> None:
    with Output(target, Settings(options={"propose": propose})) as output:
        for one in annotations:
            output.write(one)
        output.finish()


def test_a_folder_has_a_table_of_its_own(tmp_path: Path, annotation, make_annotation) -> None:
    write(tmp_path / "out", annotation, make_annotation("2"))
    first, second = rows(tmp_path / "out" / PROPOSALS)
    assert (first["feature"], first["rank"], second["rank"]) == ("1", "1", "2")
    assert first["probability"] == "0.75"
    assert first["includedProbability"] == "0.5"
    assert first["massDifference"] == "14.0157"
    assert first["parentName"] == "'=Caffeine"
    assert (first["parentRecord"], second["parentRecord"]) == ("R1", "")
    assert second["parentSimilarity"] == ""
    assert len(rows(tmp_path / "out" / "candidates.tsv")) == 4  # two of each feature


def test_without_propose_there_is_none(tmp_path: Path, annotation) -> None:
    write(tmp_path / "out", annotation, propose=0)
    assert not (tmp_path / "out" / PROPOSALS).exists()


def test_json_has_them_under_a_key(tmp_path: Path, annotation, make_annotation) -> None:
    write(tmp_path / "out.json", annotation, make_annotation("2"))
    first, second = json.loads((tmp_path / "out.json").read_text())
    assert [one["rank"] for one in first["proposals"]] == [1, 2]
    assert first["proposals"][0]["transformation"] == "insert CH2"
    assert second["proposals"] == []


def test_the_report_draws_the_first(make_annotation) -> None:
    many = tuple(proposal(probability=0.1) for _ in range(PROPOSED + 3))
    data = feature_data(make_annotation("1", proposals=many))
    assert len(data["proposals"]["list"]) == PROPOSED
    assert data["proposals"]["more"] == 3
    assert data["structures"][data["proposals"]["list"][0]["st"]]
    assert feature_data(make_annotation("2"))["proposals"] is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_cannot_hold_them_says_so(tmp_path: Path, suffix: str) -> None:
    if suffix in (".csv", ".txt"):  # which are written with --features
        return
    output = Output(tmp_path / f"out{suffix}", Settings())
    lines = _proposal_lines(AnnotateConfig(propose=5), output)
    assert len(lines) == (suffix not in HAS_PROPOSALS)
    assert _proposal_lines(AnnotateConfig(), output) == []


def test_every_column_is_documented() -> None:
    text = (DOCS / "proposals.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in text] == []
