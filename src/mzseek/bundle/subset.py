"""Take a data set from a bundle: real spectra, split by structure.

Small enough to train on in a minute or two. Its lists are the bundled molecules that are nearest in
mass, so that they are long enough to rank, and less alike than those of a large database.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.bundle.bundle import Bundle
from mzseek.chem import fingerprints
from mzseek.core.errors import BundleError
from mzseek.datasets.build import assign_folds, structure_clusters
from mzseek.datasets.files import DatasetFiles, write_candidates, write_table
from mzseek.io import stable_hash

_FOLDS = {"train": 0.7, "val": 0.15, "test": 0.15}
_TANIMOTO = 0.6
_KIND = "morgan2"
SETTING = "mass"


def write_subset(
    bundle: Bundle,
    out: Path,
    *,
    spectra: int = 1_500,
    per_molecule: int = 5,
    candidates: int = 40,
    seed: int = 0,
    with_formula: bool = False,
) -> DatasetFiles:
    """Write some of a bundle's spectra as a data set in MassSpecGym's columns.

    Parameters
    ----------
    bundle : Bundle
    out : Path
        Folder to make.
    spectra, per_molecule : int
        Spectra in all, and of one molecule, at the most; of positive mode.
    candidates : int
        Length of a list: the molecule itself, and the others nearest in mass.
    seed : int
        Of the draw of molecules and of the split.
    with_formula : bool
        Also write lists of the bundled molecules of equal formula.

    Returns
    -------
    DatasetFiles

    Raises
    ------
    BundleError
        The bundle has no spectra of positive mode.
    """
    library = bundle.library
    chosen = _chosen(bundle, spectra, per_molecule, seed)
    if not len(chosen):
        raise BundleError(f"{bundle.folder}: has no spectra of positive mode to train on")
    molecule = np.asarray(library.molecule_of)[chosen]
    known = np.unique(molecule)
    table = library.molecules.take(known)
    smiles = table["smiles"].to_pylist()
    clusters = structure_clusters(fingerprints(smiles, _KIND), _TANIMOTO)
    folds = assign_folds(clusters, _FOLDS, seed)
    index = {int(number): at for at, number in enumerate(known)}
    out.mkdir(parents=True, exist_ok=True)
    files = DatasetFiles(out / "spectra.tsv.gz", {SETTING: out / "candidates_mass.json.gz"})
    rows = table.to_pylist()
    write_table(
        files.spectra,
        (
            _row(bundle, int(record), rows[index[int(number)]], folds[index[int(number)]])
            for record, number in zip(chosen, molecule, strict=True)
        ),
    )
    write_candidates(files.candidates[SETTING], _lists(bundle, rows, candidates, seed))
    if with_formula:
        files.candidates["formula"] = out / "candidates_formula.json.gz"
        write_candidates(files.candidates["formula"], _formula_lists(bundle, rows, seed))
    return files


def _chosen(
    bundle: Bundle, max_spectra: int, per_molecule: int, seed: int
) -> npt.NDArray[np.int64]:
    """Draw records by a stable hash: molecule after molecule, some spectra of each."""
    library = bundle.library
    names = library.records["identifier"].to_pylist()
    keys = library.molecules["inchikey"].to_pylist()
    records_of: dict[int, list[int]] = {}
    for record in np.flatnonzero(np.asarray(library.ions.modes) > 0).tolist():
        records_of.setdefault(int(library.molecule_of[record]), []).append(record)
    salt = str(seed).encode()
    chosen: list[int] = []
    for molecule in sorted(records_of, key=lambda at: stable_hash(salt, keys[at].encode())):
        if len(chosen) >= max_spectra:
            break
        lots = sorted(records_of[molecule], key=lambda at: stable_hash(salt, names[at].encode()))
        chosen += lots[:per_molecule]
    return np.array(sorted(chosen[:max_spectra]), np.int64)


def _row(bundle: Bundle, record: int, molecule: dict[str, object], fold: str) -> dict[str, object]:
    library = bundle.library
    metadata = library.records.slice(record, 1).to_pylist()[0]
    here = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    return {
        "identifier": metadata["identifier"],
        "mzs": ",".join(f"{mz:.5f}" for mz in library.peaks.values[here]),
        "intensities": ",".join(f"{height:.6g}" for height in library.peaks.weights[here]),
        "smiles": molecule["smiles"],
        "inchikey": molecule["inchikey"],
        "formula": molecule["formula"],
        "parent_mass": molecule["mass"],
        "precursor_mz": float(library.ions.precursors[record]),
        "adduct": metadata["adduct"],
        "instrument_type": metadata["instrument_type"],
        "collision_energy": metadata["collision_energy"],
        "fold": fold,
    }


def _formula_lists(
    bundle: Bundle, molecules: list[dict[str, object]], seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Bundled molecules of equal formula for each molecule, in an order by hash."""
    same: dict[object, list[dict[str, str]]] = {}
    for row in bundle.molecules.table.select(["key", "smiles", "formula"]).to_pylist():
        same.setdefault(row["formula"], []).append(row)
    salt = str(seed).encode()
    for molecule in molecules:
        key, smiles = str(molecule["inchikey"])[:14], str(molecule["smiles"])
        others = [row["smiles"] for row in same.get(molecule["formula"], []) if row["key"] != key]
        yield smiles, sorted([smiles, *others], key=lambda text: stable_hash(salt, text.encode()))


def _lists(
    bundle: Bundle, molecules: list[dict[str, object]], length: int, seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Bundled molecules nearest in mass to each molecule, in an order by hash."""
    bundled = bundle.molecules
    keys = bundled.table["key"].to_pylist()
    salt = str(seed).encode()
    for molecule in molecules:
        key, mass = str(molecule["inchikey"])[:14], float(str(molecule["mass"]))
        at = int(np.searchsorted(bundled.masses, mass))
        around = np.arange(max(at - length, 0), min(at + length, len(bundled)))
        order = around[np.argsort(np.abs(bundled.masses[around] - mass), kind="stable")]
        others = [bundled.smiles[i] for i in order if keys[i] != key][: length - 1]
        smiles = str(molecule["smiles"])
        yield smiles, sorted([smiles, *others], key=lambda text: stable_hash(salt, text.encode()))
