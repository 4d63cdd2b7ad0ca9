"""Measured molecules in the form in which a database has its own, for mining.

A prepared folder has molecules as its sources write them: charged, as salts, with stereo. A
database has them standardised. Side by side, the form alone would tell the truth from its
negatives, and a model would learn that. So the truths of mined lists are standardised as the
database's molecules are; one that the database has stands there as the database draws it, down to
the tautomer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol

from mzseek.chem.describe import DescribedMolecule, describe_molecules
from mzseek.chem.fingerprinting import molecule_rows
from mzseek.chem.molecule import parse_molecule
from mzseek.chem.standard import standardise
from mzseek.database.negatives import Truth
from mzseek.database.rows import packed
from mzseek.errors import CacheError, MoleculeError
from mzseek.prepared.reader import Prepared
from mzseek.work import Engine, LocalEngine, Progress, silent

_BATCH = 500


@dataclass(frozen=True)
class StandardForm:
    """A measured molecule, standardised.

    Attributes
    ----------
    described : DescribedMolecule
    bits : uint16 array
        Set bits of its fingerprint, rising.
    """

    described: DescribedMolecule
    bits: npt.NDArray[np.uint16]


def standard_forms(
    prepared: Prepared,
    *,
    keep_stereo: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> dict[int, StandardForm]:
    """Every measured molecule of a folder as a database would have it, by its number.

    Those that cannot be standardised, which no database has, are left out.

    Parameters
    ----------
    prepared : Prepared
    keep_stereo : bool
        As the database does.
    engine : Engine
        Where the work is done; all cores of this machine by default.
    progress : callable of (stage, done, total)

    Raises
    ------
    CacheError
        None can be.
    """
    measured = np.unique(np.asarray(prepared.molecule)).tolist()
    smiles = [prepared.smiles[molecule] for molecule in measured]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    kind = str(prepared.manifest["options"]["fingerprint"])
    work = partial(_standardised, kind=kind, keep_stereo=keep_stereo)
    forms: list[StandardForm | None] = []
    for batch in (engine or LocalEngine()).results(work, batches):
        forms += batch
        progress("standardising", len(forms), len(smiles))
    known = {m: form for m, form in zip(measured, forms, strict=True) if form is not None}
    if not known:
        raise CacheError(f"{prepared.folder}: none of its molecules can be standardised")
    return known


def truths_of(forms: dict[int, StandardForm], kind: str) -> list[Truth]:
    """Molecules as mining takes them.

    Parameters
    ----------
    forms : dict of int to StandardForm
    kind : str
        Fingerprint.
    """
    rows = packed([form.bits for form in forms.values()], kind).to_pylist()
    described = [form.described for form in forms.values()]
    return [
        Truth(number, molecule.rounded_mass, molecule.formula, molecule.key, row)
        for number, molecule, row in zip(forms, described, rows, strict=True)
    ]


def _standardised(smiles: Sequence[str], kind: str, keep_stereo: bool) -> list[StandardForm | None]:
    molecules: list[Mol | None] = []
    for text in smiles:
        try:
            molecules.append(standardise(parse_molecule(text), keep_stereo=keep_stereo))
        except MoleculeError:
            molecules.append(None)
    rows = molecule_rows(molecules, kind, threads=1)
    described = iter(describe_molecules([each for each in molecules if each is not None]))
    return [
        None if molecule is None else StandardForm(next(described), row)
        for molecule, row in zip(molecules, rows, strict=True)
    ]
