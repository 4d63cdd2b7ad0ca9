"""Scores of other programs: read, standardised, applied and reported apart."""

import dataclasses
import json

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.annotation.external_scores import read_scores
from mzseek.core.errors import AnnotationError, InputError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.spectra import write_mgf


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "scores.csv"
        path.write_text(text)
        return path

    return write


def test_columns_of_numbers_are_scores(table):
    path = table(
        "feature,smiles,cfmid,sirius,comment\n7,CCO,0.5,-30,good\n7,COC,0.25,,bad\n8,CCO,1,-2,x\n"
    )
    skipped = []
    scores = read_scores(path, {"sirius": 0.5}, skipped)
    assert (scores.names, scores.weights, skipped) == (("cfmid", "sirius"), (1.0, 0.5), [])
    assert scores.scores["7"]["LFQSCWFLJHTTHZ"] == (0.5, -30.0)
    assert np.isnan(scores.scores["7"]["LCGLNKUTAGEVQW"][1])


def test_rows_that_cannot_be_used_are_named(table):
    skipped = []
    path = table("feature,smiles,s\n7,CCO,1\n,CCO,1\n7,nonsense,1\n7,CCO,\n")
    read_scores(path, {}, skipped)
    assert [(row[0], row[1]) for row in skipped] == [
        ("scores.csv: line 3", "names no feature"),
        ("scores.csv: line 4", skipped[1][1]),
        ("scores.csv: line 5", "has no score"),
    ]
    with pytest.raises(InputError, match="expected a table with a column feature"):
        read_scores(table("feature,score\n7,1\n"), {}, [])
    with pytest.raises(InputError, match="no row has"):
        read_scores(table("feature,smiles,s\n7,CCO,x\n"), {}, [])
    with pytest.raises(AnnotationError, match="--score-weight other"):
        read_scores(table("feature,smiles,s\n7,CCO,1\n"), {"other": 1.0}, [])


def test_cells_of_scores_that_hold_no_number_are_listed(table):
    path = table(
        "feature,smiles,cfmid,sirius,comment\n7,CCO,0.5,-30,good\n7,COC,high,-20,bad\n"
        "8,CCO,inf,-2,x\n8,COC,NA,-3,\n"
    )
    skipped = []
    scores = read_scores(path, {}, skipped)
    assert [tuple(row) for row in skipped] == [
        ("scores.csv: line 3", "cfmid is 'high', expected a number"),
        ("scores.csv: line 4", "cfmid is 'inf', expected a number"),
    ]
    assert scores.scores["7"]["LCGLNKUTAGEVQW"][1] == -20.0
    assert scores.metadata()["skipped"] == 2


@pytest.mark.parametrize("weight", ["cfmid", "cfmid=x", "=1", "cfmid=-1", "cfmid=1e9"])
def test_weights_that_are_none_are_refused(table, weight):
    path = table("feature,smiles,cfmid\n7,CCO,1\n")
    with pytest.raises(AnnotationError, match="--score-weight"):
        AnnotateConfig(scores=path, score_weight=weight)


@pytest.fixture(scope="module")
def spectra(small_set):
    spectra = spectra_from(Prepared.open(small_set.folder), np.arange(3))
    return [
        dataclasses.replace(one, metadata={"feature_id": f"f{at}"})
        for at, one in enumerate(spectra)
    ]


def test_scores_are_applied_and_reported_apart(spectra, small_set, bundle_folder, tmp_path):
    listed = tmp_path / "molecules.smi"
    prepared = Prepared.open(small_set.folder)
    listed.write_text(
        "".join(f"{smiles}\n" for smiles in prepared.smiles[: prepared.base_molecules])
    )
    config = AnnotateConfig(
        model=bundle_folder, database=listed, ppm=Tolerance(1000.0), coverage=0.5, strict=True
    )
    plain = {a.feature.name: a for a in Annotator(config).run(spectra)}
    last = plain["f0"].ranked[-1]
    path = tmp_path / "scores.csv"
    first = plain["f0"].best
    path.write_text(
        f"feature,smiles,csi\nf0,{last.smiles},9\nf0,{first.smiles},2\nf0,CCCCCCCCCCCCCCBr,1\n"
        "f9,CCO,1\n"
    )
    scored = dataclasses.replace(config, scores=str(path), score_weight=("csi=20",))
    write_mgf(tmp_path / "mine.mgf", spectra)
    done = annotate_files([tmp_path / "mine.mgf"], tmp_path / "out", scored)
    annotations = {a.feature.name: a for a in Annotator(scored).run(spectra)}
    assert annotations["f0"].best.key == last.key
    assert annotations["f0"].kinds["csi"] == "external"
    parts = [annotations["f0"].nats(c, "external") for c in annotations["f0"].candidates]
    assert abs(np.mean(parts)) < 1e-9
    assert np.std(parts) == pytest.approx(20.0)
    for name in ("f1", "f2"):
        assert [c.key for c in annotations[name].ranked] == [c.key for c in plain[name].ranked]
        assert all(annotations[name].nats(c, "external") == 0 for c in annotations[name].candidates)
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["scores"]["weights"] == {"csi": 20.0}
    assert facts["unmatched_scores"]["count"] == 1
    assert facts["tables"]["the table of scores"]["first"] == ["f9"]
    assert any("no candidate of the feature" in line for line in done.messages)
    header = (tmp_path / "out" / "candidates.tsv").read_text().splitlines()[0].split("\t")
    assert {"channel_csi", "external"} <= set(header)
