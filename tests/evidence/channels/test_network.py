"""A trained run as a channel."""

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.network_scores import Network, NetworkOptions
from mzseek.evidence.queries import Queries, TrainingSet, queries_from
from mzseek.runs.predictions import Predictions


@pytest.mark.parametrize(
    ("loss", "model"), [("emb-cos", "mlp"), ("fp-cos", "deepsets"), ("emb-mlp", "transformer")]
)
def test_its_score_is_what_the_run_predicts(
    trained, small: Prepared, lessons: TrainingSet, loss: str, model: str
) -> None:
    run = trained(loss, model=model)
    channel = Network(NetworkOptions(str(run.folder)))
    learned = channel.fit(lessons)
    step = run.best["hit_rate@20/mass"]["step"]
    said = Predictions.open(run.predictions(step, "test")).lists["mass"]
    lists, _ = queries_from(small, said.queries, "mass")
    found = channel.features(learned, lists)
    assert np.allclose(found[:, 0], said.scores, rtol=1e-3, atol=1e-3)
    assert np.std(said.scores) > 0.01


def test_it_says_which_molecules_it_was_trained_on(trained, small, lessons) -> None:
    learned = Network(NetworkOptions(str(trained("emb-cos").folder))).fit(lessons)
    train, val = (np.unique(small.molecule[small.in_fold(fold)]) for fold in ("train", "val"))
    assert set(learned.inchikey14) == set(small.inchikey14[train])
    assert not set(learned.inchikey14) & set(small.inchikey14[val])
    assert learned.metadata["sees_spectrum"]


def test_what_is_no_run_of_weights_is_refused(trained, fitted_run, lessons, tmp_path) -> None:
    with pytest.raises(RunError, match="is no run folder"):
        Network(NetworkOptions(str(tmp_path))).fit(lessons)
    with pytest.raises(RunError, match="random has no model"):
        Network(NetworkOptions(str(trained("bce", model="random").folder))).fit(lessons)
    with pytest.raises(RunError, match=r"fragments . analogs has no model"):
        Network(NetworkOptions(str(fitted_run.folder))).fit(lessons)
    with pytest.raises(EvidenceError, match="has no weights that were best by loss, it has: hit"):
        Network(NetworkOptions(str(trained("emb-cos").folder), "loss")).fit(lessons)


def test_its_own_fingerprint_is_computed_where_candidates_have_another(
    trained, lessons, asked
) -> None:
    channel = Network(NetworkOptions(str(trained("emb-cos").folder)))  # trained on maccs
    learned = channel.fit(lessons)
    given = [asked.spectra[0]], [["CCO", "c1ccccc1O", "CC(=O)O"]]
    one, two = (Queries.of(*given, fingerprint=kind) for kind in ("maccs", "morgan2"))
    found = channel.features(learned, two)
    np.testing.assert_array_equal(found, channel.features(learned, one))
    assert len(np.unique(found)) == 3
