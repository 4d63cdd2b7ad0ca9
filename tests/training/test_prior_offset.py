import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mzseek.core.errors import EvidenceError, RunError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prior import fit_prior_model, prior_features
from mzseek.runs.checkpoints import load_weights
from mzseek.training import prior_offset as offset
from mzseek.training.loop import Learner
from mzseek.training.prior_offset import offset_groups, prior_offsets
from mzseek.training.train import train


@pytest.fixture(scope="module")
def made(small_set) -> offset.Offsets:
    return prior_offsets(Prepared.open(small_set.folder), "mass")


def test_there_is_one_for_every_candidate_in_its_order(small: Prepared, made) -> None:
    molecules, _ = offset_groups(small, "mass")
    lists = small.candidates("mass")
    for molecule in molecules:
        assert len(made.of(np.array([molecule]))) == len(lists.of_molecule(int(molecule)))
    both = made.of(molecules[[3, 1]])
    np.testing.assert_array_equal(
        both, np.concatenate([made.of(molecules[[3]]), made.of(molecules[[1]])])
    )


def test_a_list_is_scored_by_what_other_groups_have_taught(small: Prepared, made) -> None:
    """As fitted here, by hand, on the lists of the other groups."""
    molecules, groups = offset_groups(small, "mass")
    lists = small.candidates("mass")
    group = int(groups[0])
    taught = [lists.list_of[m] for m in molecules[groups != group]]
    spans = [slice(lists.indptr[n], lists.indptr[n + 1]) for n in taught]
    members = np.concatenate([lists.molecules[span] for span in spans])
    labels = np.concatenate([(lists.identity[span] & 1) > 0 for span in spans])
    rows = prior_features(small.fingerprint_rows(members), np.empty((len(members), 0)))
    blind = fit_prior_model(rows, [s.stop - s.start for s in spans], labels, l2=made.metadata["l2"])
    own = lists.of_molecule(int(molecules[0]))
    wanted = blind.score(prior_features(small.fingerprint_rows(own), np.empty((len(own), 0))))
    found = made.of(molecules[:1])
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-3)


def test_no_molecule_s_own_label_shapes_its_offset(small: Prepared, made, monkeypatch) -> None:
    """With another truth in one list, the offsets of its group stay, and others change."""
    molecules, groups = offset_groups(small, "mass")
    sizes = np.array([len(made.of(molecules[n : n + 1])) for n in range(len(molecules))])
    # The group that penalties are chosen on would change them: the penalty stays as it was.
    changed = int(np.flatnonzero(sizes > 2)[0])
    lists_of = offset._lists

    def other_truth(prepared, setting, asked):
        lists = lists_of(prepared, setting, asked)
        start = int(lists.counts[:changed].sum())
        here = slice(start, start + int(lists.counts[changed]))
        lists.labels[here] = ~lists.labels[here]
        return lists

    fixed = offset.PENALTIES[-1:]
    found = {}
    for name, how in (("own", lists_of), ("other", other_truth)):
        monkeypatch.setattr(offset, "_lists", how)
        found[name] = prior_offsets(small, "mass", strengths=fixed)
    same = groups == groups[changed]
    for mine in (True, False):
        some = molecules[same == mine]
        equal = np.array_equal(found["own"].of(some), found["other"].of(some))
        assert equal == mine


def test_it_is_the_same_each_time(small: Prepared, made) -> None:
    again = prior_offsets(small, "mass")
    assert np.array_equal(again.values, made.values)
    assert again.metadata == made.metadata


def test_the_loss_reads_score_over_temperature_plus_offset(
    small: Prepared, made, small_options, small_model
) -> None:
    options = small_options("emb-cos", temperature=0.25)
    queries = small.in_fold("train")
    maker = BatchMaker(small, "bins", ("mass",), queries)
    batch = maker.make(maker.with_lists(queries, "mass", "fingerprint")[:7])
    model = small_model("emb-cos").eval()
    fixed = made.of(small.molecule[batch.queries])
    found = Learner(model, options, lambda asked: made.of(small.molecule[asked])).loss(batch)
    lists = batch.lists["mass"]
    scores = model(batch.spectra, lists.rows, lists.counts).scores.detach()
    nats = (scores / 0.25 + torch.from_numpy(fixed)).split(lists.counts.tolist())
    labels = lists.labels.split(lists.counts.tolist())
    wanted = [
        -torch.log_softmax(n, 0)[t.nonzero()[0, 0]] for n, t in zip(nats, labels, strict=True)
    ]
    assert all(int(t.sum()) == 1 for t in labels)
    torch.testing.assert_close(found, torch.stack(wanted).mean())


def test_a_run_says_so_and_keeps_the_network_s_own_scores(trained, small: Prepared) -> None:
    with_it, without = trained("emb-cos", offset="prior"), trained("emb-cos")
    facts = json.loads((with_it.folder / "run.json").read_text())
    assert facts["options"]["offset"] == "prior"
    assert facts["offset"]["in_predictions"] is False
    assert "offset" not in json.loads((without.folder / "run.json").read_text())
    for run in (with_it, without):  # a cosine is within [-1, 1], and an offset would not be
        step = run.best["hit_rate@1/mass"]["step"]
        scores = np.load(run.predictions(step, "val") / "mass.scores.npy")
        assert np.abs(scores).max() <= 1 + 1e-6
    one, two = (load_weights(run.checkpoint("hit_rate@1/mass"))[0] for run in (with_it, without))
    assert any((one[name] != two[name]).any() for name in one)


@pytest.mark.slow
def test_a_run_that_was_interrupted_ends_with_the_same_weights(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    def stop(stage: str, done: int, total: int | None = None) -> None:
        if stage == "training" and done == 13:
            raise InterruptedError

    options = small_options("emb-cos", "peaks-and-losses", offset="prior", bin_width=1.0)
    whole = train(small, options, tmp_path / "whole")
    with pytest.raises(InterruptedError):
        train(small, options, tmp_path / "run", progress=stop)
    run = train(small, options, tmp_path / "run", resume=True)
    assert run.metadata["checkpoints"] == whole.metadata["checkpoints"]
    assert run.metadata["offset"] == whole.metadata["offset"]


def test_it_is_resumed_with_the_same_offset(trained, small: Prepared, small_options) -> None:
    run = trained("emb-cos", offset="prior")
    with pytest.raises(RunError, match="was begun with offset prior, not None"):
        train(small, small_options("emb-cos"), run.folder, resume=True)


@pytest.mark.parametrize("loss", ["bce", "iou", "combined"])
def test_other_losses_have_no_softmax_for_it(loss: str, small_options) -> None:
    with pytest.raises(RunError, match=f"^--offset prior: {loss} is no listwise loss, expected "):
        small_options(loss, offset="prior")


def test_a_baseline_is_not_trained(small_options) -> None:
    with pytest.raises(RunError, match=r"^--offset prior: random is not trained"):
        small_options("emb-cos", "random", offset="prior")


def test_an_unknown_one_is_refused(small_options) -> None:
    with pytest.raises(RunError, match=r"offset.*posterior.* is unknown, expected one of: prior"):
        small_options("emb-cos", offset="posterior")


def test_molecules_that_are_all_alike_are_refused_before_a_folder_is_made(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    one_group = offset.structure_groups_from
    monkeypatch.setattr(
        offset, "structure_groups_from", lambda prepared, asked, _: one_group(prepared, asked, 1)
    )
    with pytest.raises(RunError, match="all of the train fold are in one") as refused:
        train(small, small_options("emb-cos", offset="prior"), tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run" / "run.json").exists()


def test_strengths_must_be_some(small: Prepared) -> None:
    with pytest.raises(EvidenceError, match="no penalty"):
        prior_offsets(small, "mass", strengths=())
