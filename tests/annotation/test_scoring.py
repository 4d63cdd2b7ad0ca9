"""Bundled molecules that candidates are compared with."""

from dataclasses import replace

import pytest

from mzseek.annotation.candidates import Molecule
from mzseek.annotation.query import FeatureQuery, Hypothesis
from mzseek.annotation.scoring import BACKGROUND, background_of, score_with_background
from mzseek.bundle import Bundle
from mzseek.bundle.molecules import BundledMolecules

from .conftest import CAFFEINE, ISOMER, MASS, THEOBROMINE, a_feature, molecule, store


def test_the_background_holds_molecules_of_the_mass_first_and_no_candidates(query):
    bundled = store(CAFFEINE, ISOMER, THEOBROMINE, "CCO")
    background = background_of(query, bundled)
    assert background is not None
    smiles = [m.smiles for m in background.molecules[0]]
    assert smiles == [molecule(text).smiles for text in (CAFFEINE, THEOBROMINE, "CCO")]
    assert {m.row for m in background.molecules[0]} == {-1}
    without = background_of(query, bundled, without=[molecule(CAFFEINE).key])
    assert without is not None
    assert molecule(CAFFEINE).key not in {m.key for m in without.molecules[0]}


def test_a_long_list_is_compared_with_molecules_of_its_mass_only(query):
    long = replace(query, molecules=([replace(molecule(ISOMER), key=f"K{n}")
                                      for n in range(BACKGROUND)],))  # fmt: skip
    assert background_of(long, store(THEOBROMINE, "CCO")) is None
    background = background_of(long, store(CAFFEINE, THEOBROMINE, "CCO"))
    assert background is not None
    assert [m.smiles for m in background.molecules[0]] == [molecule(CAFFEINE).smiles]


def test_without_bundled_molecules_there_is_no_background(query):
    assert background_of(query, store()) is None


def test_background_and_candidates_have_the_same_analogs() -> None:
    """A known candidate must not raise the scores of background molecules by its own spectra."""
    bundle = Bundle.open()
    # Ranking a shortlist again depends on the list, and leaves the sum over it.
    fitted = bundle.fitted.first_stage
    known, feature = molecule(CAFFEINE), a_feature()
    assert known.smiles in bundle.library.molecules["smiles"].to_pylist()
    reading = Hypothesis("[M+H]+", ("[M+H]+",), MASS, 0.002)
    both = [known, molecule(ISOMER)]

    def scored(candidates: list[Molecule], background: BundledMolecules):
        query = FeatureQuery(feature, (reading,), (candidates,), (reading,), len(candidates))
        [(_, evidence)], _ = score_with_background(
            [query], [0.9], fitted, bundle.confidence, bundle.fingerprint, background
        )
        return evidence

    as_candidate = scored(both, store())
    as_background = scored(both[:1], store(ISOMER))
    assert as_background.scores[0] == pytest.approx(as_candidate.scores[0], abs=1e-6)
    assert as_background.background[0] == pytest.approx(as_candidate.scores[1], abs=1e-6)
