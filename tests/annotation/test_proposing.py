"""Proposed structures of features: what they are, and what they leave as it was."""

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.proposing import list_features
from mzseek.chem import exact_mass, inchikey_block
from mzseek.core.errors import AnnotationError
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.proposals.proposal import FEATURES, LIST_FEATURES, ProposalModel, default_model
from mzseek.proposals.transformations import transformations
from mzseek.spectra import read_spectra

pytestmark = pytest.mark.slow
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
RELATIVES = ("Cn1cnc2c1c(=O)[nH]c(=O)n2C", "Cn1c(=O)c2[nH]cnc2n(C)c1=O", "CC(=O)Nc1ccc(O)cc1")


@pytest.fixture(scope="module")
def features() -> list[Feature]:
    spectra = [one for one in read_spectra(DEMO_QUERIES, []) if one.precursor_mz < 300]
    return [Feature(one.identifier, "given", (one,), "demo.mgf") for one in spectra[:3]]


@pytest.fixture(scope="module")
def annotated(features: list[Feature]):
    return Annotator(AnnotateConfig(propose=20)).annotate_batch(features)


def test_proposals_are_no_candidates_and_fit_the_ion(annotated) -> None:
    names = {one.name for one in transformations()}
    for annotation in annotated:
        proposals = annotation.proposals
        assert 5 < len(proposals) <= 20
        keys = [one.key for one in proposals]
        assert len(set(keys)) == len(keys)
        assert not set(keys) & {candidate.key for candidate in annotation.candidates}
        for one in proposals:
            assert abs(one.error_ppm) < 10
            assert one.key == inchikey_block(one.smiles)
            assert set(one.transformation.split("; ")) <= names
            assert one.mass_difference == pytest.approx(one.mass - exact_mass(one.parent), abs=1e-4)


def test_probabilities_add_up(annotated) -> None:
    for annotation in annotated:
        proposals = annotation.proposals
        assert sum(one.probability for one in proposals) == pytest.approx(1)
        values = [one.probability for one in proposals]
        assert values == sorted(values, reverse=True)
        missing = 1 - annotation.present
        for one in proposals:
            assert one.confidence == pytest.approx(one.probability * one.included * missing)
        assert 0 < proposals[0].included < 1


def test_candidates_do_not_change(annotated, features) -> None:
    plain = Annotator(AnnotateConfig()).annotate_batch(features)
    for with_proposals, without in zip(annotated, plain, strict=True):
        assert without.proposals == ()
        for name in ("found", "set_size", "present", "level", "choices", "ions", "notes"):
            assert getattr(with_proposals, name) == getattr(without, name)
        assert [(c.smiles, c.probability, c.score) for c in with_proposals.candidates] == [
            (c.smiles, c.probability, c.score) for c in without.candidates
        ]


def test_company_does_not_matter(annotated, features) -> None:
    annotator = Annotator(AnnotateConfig(propose=20))
    for annotation, feature in zip(annotated, features, strict=True):
        [alone] = annotator.annotate_batch([feature])
        assert [vars(one) for one in alone.proposals] == [vars(one) for one in annotation.proposals]


def test_a_molecule_that_the_database_lacks_is_proposed(tmp_path) -> None:
    path = tmp_path / "relatives.smi"
    path.write_text("".join(f"{smiles}\n" for smiles in RELATIVES))
    annotator = Annotator(AnnotateConfig(database=path, strict=True, propose=50))
    [spectrum] = [one for one in read_spectra(DEMO_QUERIES, []) if one.identifier == "caffeine"]
    [annotation] = annotator.annotate_batch([Feature("1", "given", (spectrum,), "demo.mgf")])
    assert annotation.best is None
    [own] = [one for one in annotation.proposals if one.key == inchikey_block(CAFFEINE)]
    assert own.mass == pytest.approx(194.0804, abs=1e-4)
    assert own.explained > 0


def test_a_mass_that_is_not_accurate_has_no_proposals(features) -> None:
    annotator = Annotator(AnnotateConfig(ppm="0.5Da", propose=5))
    [annotation] = annotator.annotate_batch(features[:1])
    assert annotation.candidates
    assert annotation.proposals == ()


def test_parameters_that_come_with_mzseek() -> None:
    model = default_model()
    assert set(model.weights) == set(FEATURES)
    assert set(model.included) == {"intercept", *LIST_FEATURES}
    assert model.weights["evidence"] > 0
    assert model.rates.keys() <= {one.name for one in transformations()}
    assert vars(ProposalModel(**model.to_dict())) == vars(model)


def test_features_of_a_list() -> None:
    features = np.array([[1.0, 0.2, -3.0, 0.4, 0.0], [2.0, 0.1, -5.0, 0.0, 1.0]])
    log_odds = np.log([0.25, 0.75])
    values = dict(
        zip(
            LIST_FEATURES,
            list_features(features, np.array([0.5, 0.9]), np.array([1.0, 3.0]), log_odds, 0.6),
            strict=True,
        )
    )
    assert values["explained"] == 0.9
    assert values["affinity"] == 0.2
    assert values["rate"] == -5.0
    assert values["nearest"] == 0.6
    assert values["entropy"] == pytest.approx(0.5623, abs=1e-4)
    assert values["log number"] == pytest.approx(np.log(2))
    assert values["evidence"] == 3.0


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(AnnotationError):
        AnnotateConfig(propose=-1)
