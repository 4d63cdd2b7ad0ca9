"""A trained run as a channel."""

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.network_scores import Network, NetworkOptions
from mzseek.evidence.prepared_queries import queries_from
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.runs.predictions import Predictions

SMALL_TRANSFORMER = {"layers": 1, "heads": 2, "tokens": 16, "lr": 1e-2}


@pytest.mark.parametrize(
    ("loss", "model", "changes"),
    [
        ("emb-cos", "mlp", {}), ("fp-cos", "deepsets", {}),
        ("emb-mlp", "transformer", SMALL_TRANSFORMER),
    ],
)  # fmt: skip
def test_its_score_is_what_the_run_predicts(
    trained, small: Prepared, training_set: TrainingSet, loss: str, model: str, changes: dict
) -> None:
    run = trained(loss, model=model, **changes)
    channel = Network(NetworkOptions(str(run.folder)))
    state = channel.fit(training_set)
    step = run.best["hit_rate@20/mass"]["step"]
    features = Predictions.open(run.predictions(step, "test")).lists["mass"]
    lists, _ = queries_from(small, features.queries, "mass")
    found = channel.features(state, lists)
    assert np.std(features.scores) > 0.05
    assert np.allclose(found[:, 0], features.scores, rtol=0, atol=1e-4)


def test_it_says_which_molecules_it_was_trained_on(trained, small, training_set) -> None:
    state = Network(NetworkOptions(str(trained("emb-cos").folder))).fit(training_set)
    train, val = (np.unique(small.molecule[small.in_fold(fold)]) for fold in ("train", "val"))
    assert set(state.inchikey14) == set(small.inchikey14[train])
    assert not set(state.inchikey14) & set(small.inchikey14[val])
    assert state.metadata["sees_spectrum"]


def test_what_is_no_run_of_weights_is_refused(trained, fitted_run, training_set, tmp_path) -> None:
    with pytest.raises(RunError, match="is no run folder"):
        Network(NetworkOptions(str(tmp_path))).fit(training_set)
    with pytest.raises(RunError, match="random has no model"):
        Network(NetworkOptions(str(trained("bce", model="random").folder))).fit(training_set)
    with pytest.raises(RunError, match=r"fragments . analogs has no model"):
        Network(NetworkOptions(str(fitted_run.folder))).fit(training_set)
    with pytest.raises(EvidenceError, match="has no weights that were best by loss, it has: hit"):
        Network(NetworkOptions(str(trained("emb-cos").folder), "loss")).fit(training_set)


def test_its_own_fingerprint_is_computed_where_candidates_have_another(
    trained, training_set, queries
) -> None:
    channel = Network(NetworkOptions(str(trained("emb-cos").folder)))  # trained on maccs
    state = channel.fit(training_set)
    given = [queries.spectra[0]], [["CCO", "c1ccccc1O", "CC(=O)O"]]
    one, two = (Queries.of(*given, fingerprint=kind) for kind in ("maccs", "morgan2"))
    found = channel.features(state, two)
    np.testing.assert_array_equal(found, channel.features(state, one))
    assert len(np.unique(found)) == 3
