"""The simulated spectra: physically bounded, repeatable, and telling isomers apart."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcExactMolWt

from mzseek.datasets.demo.fragmenter import ADDUCTS, MAX_PEAKS, Fragmenter
from mzseek.datasets.demo.molecules import demo_molecules

PROTON, SODIUM = 1.007276467, 22.989218
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
PARACETAMOL = "CC(=O)Nc1ccc(O)cc1"

Spectrum = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def fragmenter(smiles: str) -> Fragmenter:
    return Fragmenter(Chem.MolFromSmiles(smiles))


def cosine(first: Spectrum, second: Spectrum) -> float:
    """Cosine on bins of 0.1 Da."""
    rows = np.zeros((2, 6100))
    for row, (mz, intensities) in zip(rows, (first, second), strict=True):
        np.add.at(row, (mz / 0.1).astype(int), intensities)
    return float(rows[0] @ rows[1] / np.prod(np.linalg.norm(rows, axis=1)))


def mean_mz(spectrum: Spectrum) -> float:
    return float(np.average(spectrum[0], weights=spectrum[1]))


def subformula_masses(mol: Chem.Mol) -> npt.NDArray[np.float64]:
    """Neutral masses of all subformulas of a molecule, two hydrogens more allowed."""
    table = Chem.GetPeriodicTable()
    counts: dict[str, int] = {}
    for atom in Chem.AddHs(mol).GetAtoms():
        counts[atom.GetSymbol()] = counts.get(atom.GetSymbol(), 0) + 1
    counts["H"] += 2
    masses = np.zeros(1)
    for element, count in counts.items():
        steps = np.arange(count + 1) * table.GetMostCommonIsotopeMass(element)
        masses = np.add.outer(masses, steps).ravel()
    return np.sort(masses)


def nearest_ppm(
    mz: npt.NDArray[np.float64], theory: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    right = np.clip(np.searchsorted(theory, mz), 1, len(theory) - 1)
    gap = np.minimum(np.abs(mz - theory[right - 1]), np.abs(mz - theory[right]))
    return np.asarray(1e6 * gap / mz)


@pytest.fixture(scope="module")
def sample() -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(m.smiles) for m in demo_molecules(size=1000)[::12]]


@pytest.fixture(scope="module")
def tables(sample: list[Chem.Mol]) -> list[Fragmenter]:
    return [Fragmenter(mol) for mol in sample]


@pytest.mark.parametrize(("adduct", "energy"), list(product(ADDUCTS, [5.0, 20.0, 60.0])))
def test_spectra_are_well_formed(tables: list[Fragmenter], adduct: str, energy: float) -> None:
    rng = np.random.default_rng(0)
    for table in tables:
        mz, intensities = table.spectrum(adduct, energy, rng)
        assert mz.dtype == intensities.dtype == np.float64
        assert mz.shape == intensities.shape
        assert 1 <= len(mz) <= MAX_PEAKS
        assert np.isfinite(mz).all()
        assert (np.diff(mz) >= 0).all()
        assert mz[0] > 0
        assert mz[-1] <= table.precursor_mz(adduct) * (1 + 20e-6)
        assert intensities.max() == 1.0
        assert (intensities > 0).all()


@pytest.mark.parametrize(("adduct", "carrier"), [("[M+H]+", PROTON), ("[M+Na]+", SODIUM)])
def test_precursor_remains_at_low_energy(
    sample: list[Chem.Mol], tables: list[Fragmenter], adduct: str, carrier: float
) -> None:
    rng = np.random.default_rng(1)
    for mol, table in zip(sample, tables, strict=True):
        theory = CalcExactMolWt(mol) + carrier
        assert table.precursor_mz(adduct) == pytest.approx(theory, abs=1e-4)
        mz, intensities = table.spectrum(adduct, 5.0, rng)
        near = np.abs(mz - theory) / theory < 20e-6
        assert intensities[near].sum() > 0.2


def test_precursor_falls_with_energy(tables: list[Fragmenter]) -> None:
    for table in tables:
        left = []
        for energy in (5.0, 15.0, 30.0, 60.0):
            mz, share = table.expected("[M+H]+", energy)
            left.append(share[np.abs(mz - table.precursor_mz("[M+H]+")) < 1e-3].sum())
        assert left == sorted(left, reverse=True)
        assert left[-1] < 0.5 * left[0]


def test_energy_moves_intensity_to_small_fragments(tables: list[Fragmenter]) -> None:
    rng = np.random.default_rng(2)
    means = [
        np.mean([mean_mz(table.spectrum("[M+H]+", energy, rng)) for table in tables])
        for energy in (5.0, 20.0, 40.0, 60.0)
    ]
    assert all(low > high + 1.0 for low, high in pairwise(means))


@pytest.mark.parametrize(
    ("adduct", "carriers"), [("[M+H]+", [PROTON]), ("[M+Na]+", [SODIUM, PROTON])]
)
def test_bulk_of_intensity_is_subformulas(
    sample: list[Chem.Mol], tables: list[Fragmenter], adduct: str, carriers: list[float]
) -> None:
    rng = np.random.default_rng(3)
    for mol, table in list(zip(sample, tables, strict=True))[::4]:
        theory = subformula_masses(mol)
        mz, intensities = table.spectrum(adduct, 30.0, rng)
        ppm = np.min([nearest_ppm(mz - c, theory) for c in carriers], axis=0)
        assert intensities[ppm < 20].sum() > 0.9 * intensities.sum()


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        pytest.param(PARACETAMOL, 110.0600, id="amide: loss of ketene"),
        pytest.param("OCC1OC(Oc2ccc(O)cc2)C(O)C(O)C1O", 163.0601, id="glycoside: sugar cation"),
        pytest.param("OC1CCCCC1c1ccccc1", 159.1168, id="alcohol: loss of water"),
        pytest.param("NCCc1ccc(O)cc1", 121.0648, id="primary amine: loss of ammonia"),
        pytest.param("CC(=O)Oc1ccccc1C(=O)O", 163.0390, id="acid: loss of water"),
        pytest.param("COc1ccc2ccccc2c1", 144.0570, id="aryl methyl ether: loss of CH3 radical"),
        pytest.param("ClC1CCCCC1c1ccccc1", 159.1168, id="chloride: loss of HCl"),
        pytest.param("O=c1ccc2ccccc2o1", 119.0491, id="lactone ring: loss of CO"),
    ],
)
def test_textbook_fragments_appear(smiles: str, expected: float) -> None:
    fragmenter = Fragmenter(Chem.MolFromSmiles(smiles))
    mz, intensities = fragmenter.spectrum("[M+H]+", 20.0, np.random.default_rng(4))
    near = np.abs(mz - expected) / expected < 20e-6
    assert intensities[near].sum() > 0.05


def test_same_generator_state_same_spectrum() -> None:
    mol = Chem.MolFromSmiles(CAFFEINE)
    first = Fragmenter(mol).spectrum("[M+H]+", 25.0, np.random.default_rng(5))
    second = Fragmenter(mol).spectrum("[M+H]+", 25.0, np.random.default_rng(5))
    other = Fragmenter(mol).spectrum("[M+H]+", 25.0, np.random.default_rng(6))
    np.testing.assert_array_equal(first, second)
    assert len(first[0]) != len(other[0]) or not np.array_equal(first[0], other[0])


def test_explicit_hydrogens_change_nothing() -> None:
    mol = Chem.MolFromSmiles(PARACETAMOL)
    plain = Fragmenter(mol).expected("[M+H]+", 25.0)
    explicit = Fragmenter(Chem.AddHs(mol)).expected("[M+H]+", 25.0)
    np.testing.assert_allclose(plain, explicit)


def test_order_of_atoms_does_not_matter() -> None:
    mol = Chem.MolFromSmiles(PARACETAMOL)
    renumbered = Chem.RenumberAtoms(mol, list(reversed(range(mol.GetNumAtoms()))))
    np.testing.assert_allclose(
        Fragmenter(mol).expected("[M+H]+", 25.0), Fragmenter(renumbered).expected("[M+H]+", 25.0)
    )


def test_noise_leaves_a_molecule_more_like_itself_than_like_others(
    tables: list[Fragmenter],
) -> None:
    rng = np.random.default_rng(7)
    first, second = ([table.spectrum("[M+H]+", 25.0, rng) for table in tables] for _ in range(2))
    same = np.mean([cosine(a, b) for a, b in zip(first, second, strict=True)])
    others = np.mean([cosine(a, b) for a, b in zip(first, second[1:], strict=False)])
    assert same > 0.9
    assert others < same - 0.4


@pytest.mark.parametrize(
    ("ring_a", "ring_b"),
    [
        pytest.param(
            "O=C(Nc1ccccc1)c1ccc(OC)cc1", "O=C(Nc1ccc(OC)cc1)c1ccccc1", id="benzanilide OMe"
        ),
        pytest.param(
            "O=C(OCc1ccccc1)c1ccc(Cl)cc1", "O=C(OCc1ccc(Cl)cc1)c1ccccc1", id="benzyl benzoate Cl"
        ),
        pytest.param(
            "O=C1CC(c2ccccc2)Oc2cc(O)cc(O)c12", "O=C1CC(c2ccc(O)cc2)Oc2cc(O)ccc12", id="flavanone"
        ),
        pytest.param("NCCc1ccc(OC)cc1", "CNCCc1ccc(O)cc1", id="methyl on O or N"),
    ],
)
def test_isomers_with_a_moved_substituent_differ(ring_a: str, ring_b: str) -> None:
    one, two = fragmenter(ring_a), fragmenter(ring_b)
    assert one.mass == pytest.approx(two.mass)
    rng = np.random.default_rng(8)
    for energy in (20.0, 40.0):
        (mz_a, share_a), (mz_b, share_b) = (t.expected("[M+H]+", energy) for t in (one, two))
        # Fragments alone: what is left of the precursor is the same for all isomers.
        first = (mz_a[mz_a < one.mass], share_a[mz_a < one.mass])
        second = (mz_b[mz_b < two.mass], share_b[mz_b < two.mass])
        assert cosine(first, second) < 0.8
        repeat = [one.spectrum("[M+H]+", energy, rng) for _ in range(2)]
        assert cosine(*repeat) > cosine(repeat[0], two.spectrum("[M+H]+", energy, rng))


def test_positions_on_one_ring_differ_a_little() -> None:
    tables = [fragmenter(f"CC(=O)N{ring}") for ring in ("c1ccc(O)cc1", "c1cccc(O)c1", "c1ccccc1O")]
    shares = [table.expected("[M+H]+", 40.0) for table in tables]
    assert cosine(shares[0], shares[1]) < 0.99
    assert cosine(shares[0], shares[2]) < 0.99


def test_sodium_keeps_the_precursor_longer(tables: list[Fragmenter]) -> None:
    left = {}
    for adduct in ADDUCTS:
        shares = []
        for table in tables:
            mz, share = table.expected(adduct, 25.0)
            shares.append(share[np.abs(mz - table.precursor_mz(adduct)) < 1e-3].sum())
        left[adduct] = np.mean(shares)
    assert left["[M+Na]+"] > left["[M+H]+"]


def test_molecule_without_cuts_shows_only_its_precursor() -> None:
    table = fragmenter("C#C")
    mz, intensities = table.expected("[M+H]+", 30.0)
    assert mz == pytest.approx([table.precursor_mz("[M+H]+")])
    assert intensities == pytest.approx([1.0])


@pytest.mark.parametrize("adduct", ["[M-H]-", "[M+K]+", "M+H", ""])
def test_unknown_adduct_is_refused_with_the_known_ones(adduct: str) -> None:
    with pytest.raises(ValueError, match=r"unknown adduct .*\[M\+H\]\+, \[M\+Na\]\+"):
        fragmenter(CAFFEINE).spectrum(adduct, 20.0, np.random.default_rng(0))


@pytest.mark.parametrize("energy", [0.0, -5.0, float("nan"), float("inf")])
def test_energy_must_be_positive_and_finite(energy: float) -> None:
    with pytest.raises(ValueError, match="energy must be positive"):
        fragmenter(CAFFEINE).spectrum("[M+H]+", energy, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [("C", "heavy atoms, got 1"), ("C" * 64, "heavy atoms, got 64"), ("CCO.CCN", "one part")],
)
def test_unsuitable_molecules_are_refused(smiles: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        fragmenter(smiles)
