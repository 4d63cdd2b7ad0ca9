"""Predicted spectra."""

import numpy as np
import pytest

from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import DescribedMolecule, describe_structure
from mzseek.core.errors import EvidenceError
from mzseek.evidence.intensities import Intensities, IntensityOptions
from mzseek.evidence.model import ChannelState, EvidenceModel
from mzseek.evidence.queries import TrainingSet
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.simulation import LEAST, forward_model, simulate

ELECTRON = 0.000548580
MASSES = {"C": 12.0, "H": 1.00782503223, "N": 14.00307400443, "O": 15.99491461957,
          "Na": 22.989769282, "Si": 27.97692653465}  # fmt: skip
PARACETAMOL = ("paracetamol", describe_structure("CC(=O)Nc1ccc(O)cc1"))


@pytest.fixture(scope="module")
def state(training_set: TrainingSet) -> ChannelState:
    return Intensities(IntensityOptions(epochs=8, lr=1e-2)).fit(training_set)


def refuse(where: str, reason: str) -> None:
    raise AssertionError(f"{where}: {reason}")


def mz_of(formula: str) -> float:
    counts = parse_formula(formula.rstrip("+-")).counts
    charge = 1 if formula.endswith("+") else -1
    return sum(MASSES[symbol] * number for symbol, number in counts.items()) - charge * ELECTRON


@pytest.mark.parametrize("adduct", ["[M+H]+", "[M-H]-", "[M+Na]+"])
def test_peaks_are_fragment_ions_with_their_formulas(state: ChannelState, adduct: str) -> None:
    [predicted] = simulate(state, [PARACETAMOL], [adduct], [20.0], "orbitrap", refuse)
    spectrum = predicted.spectrum
    assert spectrum.adduct == adduct
    assert spectrum.metadata["collision_energy"] == "20"
    assert spectrum.intensities.max() == 1000
    assert spectrum.intensities.min() >= 1000 * LEAST
    assert (np.diff(spectrum.mz) > 0).all()
    assert spectrum.mz.max() < spectrum.precursor_mz - 0.5
    assert len(predicted.formulas) == len(spectrum)
    assert [mz_of(formula) for formula in predicted.formulas] == pytest.approx(
        spectrum.mz.tolist(), abs=1e-4
    )


def test_the_energy_and_the_instrument_change_a_spectrum(state: ChannelState) -> None:
    spectra = [
        next(simulate(state, [PARACETAMOL], ["[M+H]+"], [energy], instrument, refuse)).spectrum
        for energy, instrument in ((10.0, None), (60.0, None), (10.0, "qtof"))
    ]
    heights = [dict(zip(s.mz.round(3), s.intensities, strict=True)) for s in spectra]
    assert heights[0] != heights[1]
    assert heights[0] != heights[2]


def test_atoms_that_the_model_does_not_name_leave_a_formula_empty(state: ChannelState) -> None:
    silane = ("silane", describe_structure("C[Si](C)(C)CCCCO"))
    [predicted] = simulate(state, [silane], ["[M+H]+"], [20.0], None, refuse)
    assert "" in predicted.formulas
    assert len(predicted.formulas) == len(predicted.spectrum)


@pytest.mark.parametrize(
    ("smiles", "adduct", "reason"),
    [
        ("C[N+](C)(C)CCO", "[M+H]+", "does not form this ion"),
        ("CCCCCO", "[M]+", "does not form this ion"),
        ("C", "[M+H]+", "no fragment would be seen"),
        ("CO", "[M+H-H2O-H2O]+", "loses more than a molecule"),
    ],
)
def test_ions_that_cannot_be_predicted_are_reported(
    state: ChannelState, smiles: str, adduct: str, reason: str
) -> None:
    told: list[tuple[str, str]] = []
    molecule: DescribedMolecule = describe_structure(smiles)
    found = simulate(
        state, [("it", molecule), PARACETAMOL], [adduct], [20.0], None,
        lambda where, why: told.append((where, why)),
    )  # fmt: skip
    assert all(predicted.spectrum.metadata["compound_name"] != "it" for predicted in found)
    assert told[0][0].startswith("it, ")
    assert reason in told[0][1]


def test_a_model_without_the_channel_is_refused() -> None:
    empty = Ranker({}, np.empty(0), {}, {}, {})
    with pytest.raises(EvidenceError, match="which predicts spectra"):
        forward_model(EvidenceModel([], [], empty))
