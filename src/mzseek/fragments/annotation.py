"""Annotate the peaks of a spectrum with fragments of a molecule.

Peaks are assigned twice: within the tolerance, and then within the mass error that the spectrum's
own assignments show, around their median. The 13C isotope peak of an assigned peak is named so.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from rdkit.Chem import CanonicalRankAtoms

from mzseek.chem.adducts import fitting_adducts, parse_adduct
from mzseek.core.errors import SpectrumError
from mzseek.core.text import Table
from mzseek.fragments.fragmentation import (
    BONDS,
    HYDROGEN_BITS,
    MAX_CLEAVAGES,
    MAX_FRAGMENT_ROWS,
    PER_DALTON,
    RING_BONDS,
    AtomGraph,
    atom_graph,
    columns_of,
    distinct,
    listed,
    nano_mass,
)
from mzseek.fragments.matching import (
    LEAST,
    MAX_HYDROGENS_MOVED,
    PPM,
    IonForms,
    assign,
    checked_weights,
    ion_forms,
)
from mzseek.spectra import Spectrum

_FAR = 20.0  # ppm: beyond, a known adduct is no reason for a precursor's m/z
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A spectrum's own mass error: median of its assignments, ± so many robust standard deviations.
# Chosen on MassBank spectra; docs/fragments.md has the measurement.
MIN_ASSIGNED = 5
SPREADS, MIN_HALF_WIDTH = 5.0, 3.0  # the second in ppm
_SURE_BONDS = 2  # fewer cleavages and no radical: assignments that are rarely by chance
_ROBUST = 1.4826  # standard deviations of a normal distribution in one median absolute deviation
_HEAVIER = (nano_mass(6, 13) - nano_mass(6)) / PER_DALTON
_PER_CARBON = 0.0107 / 0.9893  # natural abundance of 13C over that of 12C
_AT_MOST, _NOISE = 1.5, 0.01  # an isotope peak: so many times what its carbons give, and some more
_NEARER = 1.0  # ppm by which another formula must be nearer to be preferred to an isotope peak
_CARBONS = re.compile(r"C(?![a-z])(\d*)")
_LABELLED = re.compile(r"\[13C\](\d*)")


class Explanation(NamedTuple):
    """A peak and the fragment that explains it best; of an unexplained one only the peak is known.

    Attributes
    ----------
    mz : float
        Of the peak, as measured.
    formula : str or None
        Of the whole ion, in Hill order, hydrogens moved and atoms carried included; isotopes that
        the molecule names stand in brackets (``[13C]``). The charge is apart.
    error_ppm : float or None
        Measured minus computed m/z.
    atoms : tuple of int
        The fragment: indices of its heavy atoms in the SMILES, from 0.
    bonds : int or None
        Bonds broken.
    hydrogens : int or None
        Hydrogens taken up (+) or lost (−) by the fragment.
    charge : int or None
        Of the ion, signed.
    carried : tuple of str
        Atoms of the adduct that the fragment carries.
    ring_bonds : int or None
        How many of the broken bonds are in rings.
    radical : bool or None
        Whether the ion has an odd number of electrons.
    intensity : float
        Of the peak, as measured.
    weight : float
        What the weights give to this explanation; 0 for none.
    equivalents : int
        Fragments of this mass and these cleavages, this one included.
    note : str
        ``13C isotope of m/z 138.0662`` where the peak is the isotope peak of another one, whose
        fragment it then has.
    removed : str
        Why the peak was removed before candidates were scored (`mzseek.spectra.cleaning`); empty
        for others.
    """

    mz: float
    formula: str | None = None
    error_ppm: float | None = None
    atoms: tuple[int, ...] = ()
    bonds: int | None = None
    hydrogens: int | None = None
    charge: int | None = None
    carried: tuple[str, ...] = ()
    ring_bonds: int | None = None
    radical: bool | None = None
    intensity: float = 0.0
    weight: float = 0.0
    equivalents: int = 0
    note: str = ""
    removed: str = ""


@dataclass(frozen=True)
class Explanations(Sequence[Explanation]):
    """One explanation for each peak, in the spectrum's order.

    Attributes
    ----------
    rows : tuple of Explanation
    adduct : str
        The ion that was taken to be broken.
    cleavages : int
        Up to how many cleavages all fragments were tried.
    requested : int
        Up to how many were asked for.
    """

    rows: tuple[Explanation, ...]
    adduct: str
    cleavages: int
    requested: int = MAX_CLEAVAGES

    @property
    def truncated(self) -> bool:
        """Whether fragments were left out because there are too many."""
        return self.cleavages < self.requested

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Explanation, ...]: ...
    def __getitem__(self, index: int | slice) -> Explanation | tuple[Explanation, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def table(self) -> Table:
        """Return the explanations as a table."""
        title = f"fragments of {self.adduct}"
        if self.truncated:
            title += f"; too many: only those of up to {self.cleavages} cleavages"
        columns = {name: [getattr(row, name) for row in self.rows] for name in Explanation._fields}
        return Table(columns, title=title)


def explain(
    spectrum: Spectrum,
    smiles: str,
    *,
    adduct: str | None = None,
    ppm: float = PPM,
    least: float = LEAST,
    cleavages: int = MAX_CLEAVAGES,
    weights: npt.ArrayLike | None = None,
    refine: bool = True,
) -> Explanations:
    """Explain each peak of a spectrum by the fragment of a molecule that fits it best.

    Parameters
    ----------
    spectrum : Spectrum
    smiles : str
    adduct : str, optional
        Instead of the spectrum's own. Without either, the known adduct that brings the molecule
        nearest to the precursor's m/z.
    ppm, least : float
        The tolerance: the larger of `ppm` of a peak's m/z and `least`.
    cleavages : int
        0 to 3.
    weights : array of shape `KINDS`, optional
        Which explanation of a peak is the best; `plausible` by default.
    refine : bool
        Keep to the spectrum's own mass error, and name isotope peaks. False: every peak within the
        tolerance has a fragment, as channels score them.

    Raises
    ------
    MoleculeError, AdductError, SpectrumError
        No molecule; no adduct; no adduct that can be told.

    Examples
    --------
    >>> peaks = np.array([95.0491, 100.0, 77.0386])
    >>> spectrum = Spectrum(peaks, np.ones(3), 95.0491, "[M+H]+", 1, "phenol")
    >>> [(row.formula, row.bonds, row.hydrogens) for row in explain(spectrum, "Oc1ccccc1")]
    [('C6H7O', 0, 1), (None, None, None), ('C6H5', 1, 0)]
    """
    if not 0 <= cleavages <= MAX_CLEAVAGES:
        raise ValueError(f"cleavages is {cleavages}, expected 0 to {MAX_CLEAVAGES}")
    graph = atom_graph(smiles)
    name = adduct or spectrum.adduct or _adduct_that_fits(spectrum, graph)
    matcher = _Matcher(graph, ion_forms(name), cleavages)
    table = checked_weights(weights)
    order = np.argsort(spectrum.mz, kind="stable")
    mz = np.asarray(spectrum.mz, np.float64)[order]
    reach = np.maximum(mz * ppm * 1e-6, least)
    row, form = matcher.assign(mz, reach, table)
    if refine and (error := matcher.mass_error(mz, row, form)) is not None:
        centre, half = error
        low = np.maximum(-reach, (centre - half) * mz * 1e-6)
        high = np.minimum(reach, (centre + half) * mz * 1e-6)
        reach = (high - low) / 2
        row, form = matcher.assign(mz - (low + high) / 2, reach, table)
    intensities = spectrum.intensities[order].tolist()
    rows = [
        matcher.explanation(*peak, table)
        for peak in zip(mz.tolist(), intensities, row.tolist(), form.tolist(), strict=True)
    ]
    if refine:
        _name_isotopes(rows, reach)
    in_order = tuple(rows[index] for index in np.argsort(order))
    return Explanations(in_order, parse_adduct(name).name, matcher.cleavages, cleavages)


def _name_isotopes(rows: list[Explanation], reach: npt.NDArray[np.float64]) -> None:
    """Assign 13C isotope peaks to the fragment of their stronger parent; rows are sorted by m/z.

    An isotope peak is not higher than the carbons of its formula make it. Where another formula
    explains the peak as well, the nearer one stays.
    """
    mz = np.array([row.mz for row in rows])
    for parent in rows:  # from the lightest: what is an isotope peak itself is none's parent
        carbons = _CARBONS.match(parent.formula or "")
        if carbons is None or parent.note or parent.error_ppm is None or not parent.charge:
            continue
        number = int(carbons[1] or 1)
        max_intensity = parent.intensity * min(1.0, _AT_MOST * number * _PER_CARBON + _NOISE)
        step = _HEAVIER / abs(parent.charge)
        is_near = np.abs(mz - parent.mz - step) <= reach
        for index in np.flatnonzero(is_near).tolist():
            row = rows[index]
            error = (row.mz - parent.mz - step) / row.mz * 1e6  # shares the parent's own error
            expected = parent.mz / (1 + parent.error_ppm * 1e-6) + step
            absolute = (row.mz - expected) / expected * 1e6
            others = np.inf if row.error_ppm is None else abs(row.error_ppm - parent.error_ppm)
            if row.intensity > max_intensity or others + _NEARER < abs(error):
                continue
            rows[index] = parent._replace(
                mz=row.mz,
                intensity=row.intensity,
                formula=_with_isotope(str(parent.formula), number),
                error_ppm=absolute,
                weight=0.0,
                note=f"13C isotope of m/z {parent.mz:.4f}",
            )


def _with_isotope(formula: str, carbons: int) -> str:
    """Replace one carbon of a formula that begins with carbon by 13C.

    Examples
    --------
    >>> _with_isotope("C6H7O", 6), _with_isotope("C2[13C]H7O", 2), _with_isotope("CH4", 1)
    ('C5[13C]H7O', 'C[13C]2H7O', '[13C]H4')
    """
    rest = _CARBONS.sub("", formula, count=1)
    labelled = _LABELLED.match(rest)
    number = int(labelled[1] or 1) + 1 if labelled else 1
    left = {0: "", 1: "C"}.get(carbons - 1, f"C{carbons - 1}")
    return f"{left}[13C]{number if number > 1 else ''}{rest[labelled.end() if labelled else 0 :]}"


def _adduct_that_fits(spectrum: Spectrum, graph: AtomGraph) -> str:
    mass = float(graph.units[:, 0].sum()) / PER_DALTON
    stated = spectrum.metadata.get("ionmode", "").lower()
    mode = stated if stated in ("positive", "negative") else None
    adducts = fitting_adducts(spectrum.precursor_mz, mass, _FAR, spectrum.charge, mode)
    if not adducts:
        raise SpectrumError(
            f"{spectrum.identifier}: names no adduct, and none that is known makes its precursor "
            f"m/z {spectrum.precursor_mz:.4f} of this molecule; name one"
        )
    return min(adducts, key=lambda a: abs(a.precursor_mz(mass) - spectrum.precursor_mz)).name


class _Matcher:
    """Fragments of a molecule, with the bonds broken for each, matched to peaks."""

    def __init__(self, graph: AtomGraph, forms: IonForms, cleavages: int) -> None:
        self.graph, self.forms = graph, forms
        self.values, self.codes, self.bonds, complete = listed(
            graph.units, graph.bonds, cleavages, MAX_FRAGMENT_ROWS
        )
        self.cleavages = int(complete)
        self.distinct = distinct(self.values, self.codes)
        self.ranks = list(CanonicalRankAtoms(graph.molecule, breakTies=False))
        self.atoms_of_row: dict[int, tuple[tuple[int, ...], int]] = {}

    def assign(self, mz: Floats, tolerances: Floats, weights: Floats) -> tuple[Ints, Ints]:
        """Return row and ion form of the best fragment of each peak, −1 for none."""
        fragments = columns_of(self.values[self.distinct], self.codes[self.distinct])
        fragment, form = assign((mz, tolerances), self.forms.arrays, fragments, weights)
        return np.where(fragment >= 0, self.distinct[fragment], -1), form

    def mz_and_electrons(self, row: Ints | int, form: Ints | int) -> tuple[Any, Any]:
        """Return the m/z of fragments as ions, and their electrons."""
        mz = self.values[row, 0] / PER_DALTON + self.forms.shifts[form]
        electrons = (self.values[row, 1] >> HYDROGEN_BITS) + self.forms.electrons[form]
        return mz / np.abs(self.forms.charges[form]), electrons

    def mass_error(self, mz: Floats, row: Ints, form: Ints) -> tuple[float, float] | None:
        """Return median and half width, in ppm, of the errors of assigned peaks; None for few."""
        peaks = np.flatnonzero(row >= 0)
        if len(peaks) < MIN_ASSIGNED:
            return None
        expected, electrons = self.mz_and_electrons(row[peaks], form[peaks])
        errors = (mz[peaks] - expected) / expected * 1e6
        sure = (BONDS[self.codes[row[peaks]]] <= _SURE_BONDS) & (electrons % 2 == 0)
        if sure.sum() >= MIN_ASSIGNED:
            errors = errors[sure]
        centre = float(np.median(errors))
        deviation = _ROBUST * float(np.median(np.abs(errors - centre)))
        return centre, max(SPREADS * deviation, MIN_HALF_WIDTH)

    def explanation(
        self, mz: float, intensity: float, row: int, form: int, weights: Floats
    ) -> Explanation:
        """Explain one peak by a row and an ion form, −1 for none."""
        if row < 0:
            return Explanation(mz, intensity=intensity)
        code, hydrogens = int(self.codes[row]), int(self.forms.hydrogens[form])
        carried = self.forms.carried[form]
        expected, electrons = self.mz_and_electrons(row, form)
        atoms, equivalents = self._atoms(row)
        return Explanation(
            mz=mz,
            formula=_formula(self.graph, atoms, hydrogens, carried),
            error_ppm=float((mz - expected) / expected * 1e6),
            atoms=atoms,
            bonds=int(BONDS[code]),
            hydrogens=hydrogens,
            charge=int(self.forms.charges[form]),
            carried=carried,
            ring_bonds=int(RING_BONDS[code]),
            radical=bool(electrons & 1),
            intensity=intensity,
            weight=float(weights[code, electrons & 1, hydrogens + MAX_HYDROGENS_MOVED]),
            equivalents=equivalents,
        )

    def _atoms(self, row: int) -> tuple[tuple[int, ...], int]:
        """Return a fragment's atoms, and the number of fragments of its mass and cleavages.

        Of several the one whose atoms come first in RDKit's canonical ranks, which do not depend
        on the order of atoms.
        """
        if row not in self.atoms_of_row:
            same = (self.values[:, 0] == self.values[row, 0]) & (self.codes == self.codes[row])
            sets = {
                fragment
                for bonds in self.bonds[same]
                for fragment in _parts(self.graph, {int(bond) for bond in bonds if bond >= 0})
                if self.graph.units[list(fragment), 0].sum() == self.values[row, 0]
            }
            atoms = [tuple(sorted(self.graph.atoms[atom] for atom in part)) for part in sets]
            first = min(atoms, key=lambda part: (sorted(self.ranks[atom] for atom in part), part))
            self.atoms_of_row[row] = first, len(atoms)
        return self.atoms_of_row[row]


def _parts(graph: AtomGraph, broken: set[int]) -> list[frozenset[int]]:
    """Return connected parts of a molecule without some bonds that touch all of these."""
    neighbours: dict[int, list[int]] = {atom: [] for atom in range(len(graph.units))}
    for bond, (begin, end) in enumerate(graph.bonds.tolist()):
        if bond not in broken:
            neighbours[begin].append(end)
            neighbours[end].append(begin)
    parts = []
    left = set(neighbours)
    while left:
        waiting = [left.pop()]
        part = set(waiting)
        while waiting:
            new = [atom for atom in neighbours[waiting.pop()] if atom not in part]
            part.update(new)
            waiting += new
        left -= part
        if all(len(part.intersection(graph.bonds[bond].tolist())) == 1 for bond in broken):
            parts.append(frozenset(part))
    return parts


def _formula(
    graph: AtomGraph, atoms: tuple[int, ...], hydrogens: int, carried: tuple[str, ...]
) -> str:
    """Return the Hill formula of a fragment with hydrogens moved and atoms carried."""
    counts: Counter[tuple[str, int]] = Counter({("H", 0): hydrogens})
    counts.update((symbol, 0) for symbol in carried)
    held = [hydrogen for hydrogen, host in graph.hosts.items() if host in atoms]
    for index in (*atoms, *held):
        atom = graph.molecule.GetAtomWithIdx(index)
        counts[atom.GetSymbol(), atom.GetIsotope()] += 1
        counts["H", 0] += atom.GetTotalNumHs()
    has_carbon = any(symbol == "C" for (symbol, _), count in counts.items() if count)
    first = {"C": 0, "H": 1} if has_carbon else {}
    order = sorted(counts, key=lambda atom: (first.get(atom[0], 2), atom))
    return "".join(
        (f"[{isotope}{symbol}]" if isotope else symbol) + (str(number) if number > 1 else "")
        for symbol, isotope in order
        if (number := counts[symbol, isotope])
    )
