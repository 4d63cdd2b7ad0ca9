from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mzseek.core.errors import RunError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.models import SCORERS
from mzseek.models.model import TorchNetwork
from mzseek.runs.predictions import ListScores, Predictions, list_scores, predict, to_half

probabilities = st.floats(0, 1, width=32) | st.floats(0.4990234375, 0.5009765625, width=32)


@pytest.fixture
def maker(small: Prepared) -> BatchMaker:
    return BatchMaker(small, "bins", ("mass", "formula"), np.arange(len(small)), backward=False)


@given(arrays(np.float32, st.integers(0, 30), elements=probabilities))
def test_half_precision_keeps_the_side_of_one_half(values: np.ndarray) -> None:
    half = to_half(values)
    assert half.dtype == np.float16
    assert ((half > 0.5) == (values > 0.5)).all()
    np.testing.assert_allclose(half, values, atol=5e-4)


@pytest.mark.parametrize("loss", SCORERS)
def test_predictions_are_what_the_model_says_one_by_one(
    loss: str, small: Prepared, maker: BatchMaker, small_model, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.runs.predictions._BATCH", 7)
    model = small_model(loss).eval()
    queries = small.in_fold("test")
    found = predict(TorchNetwork(model), maker.slices, queries)
    assert found.queries.tolist() == queries.tolist()
    assert found.molecule.tolist() == small.molecule[queries].tolist()
    with torch.no_grad():
        outputs = {int(q): model(maker.make(np.array([q]), ()).spectra) for q in queries}
    if SCORERS[loss].reads_fingerprint:
        expected = torch.cat([outputs[int(q)].read for q in queries]).numpy()
        np.testing.assert_allclose(found.fingerprints, expected, atol=6e-4)
    else:
        assert found.fingerprints is None
    assert set(found.lists) == {"mass", "formula"}
    for setting, part in found.lists.items():
        assert part.queries.tolist() == maker.with_lists(queries, setting).tolist()
        ends = np.cumsum(part.counts)
        for query, count, end in zip(part.queries, part.counts, ends, strict=True):
            batch = maker.make(np.array([query]), (setting,))
            with torch.no_grad():
                lists = batch.lists[setting]
                scores = model(batch.spectra, lists.rows, lists.counts).scores
            np.testing.assert_allclose(part.scores[end - count : end], scores, atol=1e-5)
            candidates = small.candidates(setting).of_molecule(int(small.molecule[query]))
            assert part.candidates[end - count : end].tolist() == candidates.tolist()


def test_scores_of_fp_cos_are_cosines_of_dense_fingerprints(
    small: Prepared, maker: BatchMaker, small_model
) -> None:
    queries = small.in_fold("val")
    found = predict(TorchNetwork(small_model("bce").eval()), maker.slices, queries)
    part = found.lists["mass"]
    rows = np.repeat(np.searchsorted(queries, part.queries), part.counts)
    predicted = found.fingerprints[rows].astype(np.float64)
    candidates = small.fingerprint_rows(part.candidates).toarray()
    lengths = np.linalg.norm(predicted, axis=1) * np.sqrt(candidates.sum(1))
    np.testing.assert_allclose(part.scores, (predicted * candidates).sum(1) / lengths, atol=1e-3)


def test_spectra_without_a_list_have_a_fingerprint_and_no_scores(
    small: Prepared, maker: BatchMaker, small_model
) -> None:
    everyone = small.in_fold("train")
    absent = np.setdiff1d(everyone, maker.with_lists(everyone, "mass"))
    assert len(absent) == 2
    found = predict(TorchNetwork(small_model("bce")), maker.slices, absent)
    assert found.fingerprints.shape == (2, 167)
    assert len(found.lists["mass"].queries) == len(found.lists["mass"].scores) == 0
    both = predict(TorchNetwork(small_model("bce")), maker.slices, everyone)
    assert len(both.fingerprints) == len(everyone)
    assert not set(absent) & set(both.lists["mass"].queries)


def test_predicting_leaves_the_model_as_it_was(small, maker: BatchMaker, small_model) -> None:
    queries = small.in_fold("val")
    for training in (True, False):
        model = small_model("emb-cos").train(training)
        one, two = (
            predict(TorchNetwork(model), maker.slices, queries).lists["mass"].scores
            for _ in range(2)
        )
        assert model.training == training
        assert one.tolist() == two.tolist()  # no dropout, in either mode


def test_a_model_without_a_fingerprint_gives_its_embeddings(
    small, maker: BatchMaker, small_model, tmp_path: Path
) -> None:
    found = predict(TorchNetwork(small_model("emb-cos")), maker.slices, small.in_fold("val"))
    assert found.fingerprints is None
    assert found.embeddings.shape == (16, small_model("emb-cos").encoder.width)
    found.save(tmp_path / "p")
    assert Predictions.open(tmp_path / "p").embeddings is None  # they are for validation only


def test_progress_ends_at_all_spectra(small, maker: BatchMaker, small_model, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.runs.predictions._BATCH", 6)
    told: list[tuple[int, int]] = []
    predict(
        TorchNetwork(small_model()),
        maker.slices,
        small.in_fold("val"),
        progress=lambda *facts: told.append(facts),
    )
    assert told == [(6, 16), (12, 16), (16, 16)]


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_predictions_open_as_they_were_saved(
    loss: str, small, maker: BatchMaker, small_model, tmp_path: Path
) -> None:
    made = predict(TorchNetwork(small_model(loss)), maker.slices, small.in_fold("test"))
    made.save(tmp_path / "p")
    found = Predictions.open(tmp_path / "p")
    assert found.queries.tolist() == made.queries.tolist()
    assert found.molecule.tolist() == made.molecule.tolist()
    assert (found.fingerprints is None) == (loss == "emb-cos")
    if found.fingerprints is not None:
        assert found.fingerprints.dtype == np.float16
        assert found.fingerprints.tolist() == made.fingerprints.tolist()
    assert set(found.lists) == set(made.lists)
    for setting in made.lists:
        assert made.lists[setting].parts is found.lists[setting].parts is None
        for what in set(ListScores.__annotations__) - {"parts"}:
            one, two = (getattr(p.lists[setting], what) for p in (made, found))
            assert one.dtype == two.dtype
            assert one.tolist() == two.tolist()


@pytest.mark.parametrize("name", ["queries.npy", "molecule.npy", "mass.counts.npy"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "pickle"])
def test_a_damaged_file_is_refused_by_name(
    name: str, damage: str, small, maker: BatchMaker, small_model, tmp_path: Path
) -> None:
    predict(TorchNetwork(small_model()), maker.slices, small.in_fold("val")).save(tmp_path / "p")
    path = tmp_path / "p" / name
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:90])
    else:
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(RunError, match=r"is missing|bytes, expected") as refused:
        Predictions.open(tmp_path / "p")
    assert name in str(refused.value)
    (tmp_path / "p" / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"is no predictions \(manifest.json is missing\)"):
        Predictions.open(tmp_path / "p")


def test_scores_stand_beside_their_candidates(small, maker: BatchMaker) -> None:
    queries = maker.with_lists(small.in_fold("val"), "mass")[::-1]
    count = int(maker.slices.members(queries, "mass")[0].sum())
    found = list_scores(maker.slices, "mass", queries, np.arange(count, dtype=np.float32))
    assert found.counts.sum() == len(found.candidates) == len(found.identity) == count
    assert found.molecule.tolist() == small.molecule[queries].tolist()
    lists = maker.lists(queries, "mass")
    assert ((found.identity & 1) > 0).tolist() == lists.labels.tolist()
