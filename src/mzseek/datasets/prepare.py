"""Prepare a data set: write its arrays, append segments."""

import contextlib
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import rdkit

from mzseek.chem.fingerprinting import fingerprint_kind, manifest_version
from mzseek.core.errors import CacheError, DatasetError, WriteError
from mzseek.core.ragged import pointers
from mzseek.core.registry import FOLDS
from mzseek.datasets.files import write_rejects
from mzseek.datasets.layout import (
    FORMAT_VERSION,
    KIND,
    LIST_PARTS,
    MANIFEST,
    REJECTS,
    SAME_FINGERPRINT,
    SAME_INCHIKEY,
    WITH_SEGMENTS,
    Array,
    Facts,
    TextColumn,
    in_segment,
    is_for_training,
    is_leftover,
    list_array,
    path_of,
    segments_of,
)
from mzseek.datasets.molecules import (
    Collected,
    MoleculeTable,
    RawLists,
    build_molecule_table,
    collect,
    resolve,
)
from mzseek.datasets.prepared import CandidateLists, Prepared, read_manifest
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.arrays import save_array
from mzseek.io.manifest import SourceGuard, ensure_replaceable, measured
from mzseek.io.writing import disk_errors
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.spectra.binning import BIN_WIDTH, HIGH, LOW, bin_peaks
from mzseek.version import __version__


@dataclass(frozen=True)
class NewMolecules:
    """Molecules that a folder does not have yet.

    Attributes
    ----------
    smiles, formulas : list of str
    masses : float64 array
    inchikey14 : S14 array
        First InChIKey blocks; empty where InChI has no name.
    bit_counts : int array
        Bits set in each fingerprint.
    bits : uint16 array
        These bits, rising, one molecule after the other.
    """

    smiles: list[str]
    formulas: list[str]
    masses: npt.NDArray[np.float64]
    inchikey14: npt.NDArray[np.bytes_]
    bit_counts: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint16]


@contextmanager
def held_for_lists(prepared: Prepared, doing: str) -> Iterator[None]:
    """Hold a folder while lists are made for it, and make sure that it is as it was opened.

    Parameters
    ----------
    prepared : Prepared
    doing : str
        What for, in the words for whoever else would write it.

    Raises
    ------
    CacheError
        It has changed since it was written, or another has taken its place since it was opened.
    BusyError, WriteError
        Another process is writing it, or it cannot be written.
    """
    with sole_writer(prepared.folder, doing):
        ensure_replaceable(prepared.folder, KIND, [], is_leftover)
        if Prepared.open(prepared.folder).manifest != prepared.manifest:
            raise CacheError(f"{prepared.folder}: was replaced since it was opened; open it again")
        prepared.verify()  # lists that are made for damaged molecules would be wrong
        yield


def append_segment(
    prepared: Prepared,
    setting: str,
    lists: CandidateLists,
    molecules: NewMolecules,
    facts: Mapping[str, Any],
) -> Prepared:
    """Add molecules and lists to a folder; lists of this name that were there are gone.

    The caller holds the folder by `held_for_lists`.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the lists.
    lists : CandidateLists
        ``list_of`` is as long as that of the folder's other lists.
    molecules : NewMolecules
        Numbered after all that the folder has.
    facts : mapping
        What the manifest is to say of the lists.

    Returns
    -------
    Prepared
        The folder as it is now.

    Raises
    ------
    WriteError
        It cannot be written; it is then as it was.
    """
    folder, old = prepared.folder, prepared.manifest
    number = len(segments_of(old)) + 1
    written: list[Path] = []
    is_listed = False
    try:
        with disk_errors(folder):
            _remove(_leftovers(prepared))
            written = _write(folder, number, lists, molecules)
            manifest = _extended(old, setting, number, molecules, facts)
            manifest["files"] |= {path.name: measured(path) for path in sorted(written)}
            Prepared(folder, manifest).check_arrays()
            is_listed = True  # from here on another may have read it, and so may we
            MANIFEST.replace(folder, manifest)
    except BaseException:
        if not is_listed or MANIFEST.read(folder) == old:
            _remove(folder.glob(in_segment(number, "*")))
        raise
    _remove(folder / name for name in old["files"] if name not in manifest["files"])
    return Prepared.open(folder)


def _leftovers(prepared: Prepared) -> list[Path]:
    listed = prepared.manifest["files"]
    paths = list(prepared.folder.iterdir())
    return [path for path in paths if path.name not in listed and is_leftover(path.name)]


def _write(folder: Path, number: int, lists: CandidateLists, molecules: NewMolecules) -> list[Path]:
    for name, texts in ((Array.SMILES, molecules.smiles), (Array.FORMULA, molecules.formulas)):
        TextColumn.write(folder, in_segment(number, name), texts)
    arrays: dict[str, npt.NDArray[Any]] = {
        Array.BLOCK: molecules.inchikey14,
        Array.MASS: molecules.masses,
        Array.FINGERPRINT_POINTERS: pointers(molecules.bit_counts),
        Array.FINGERPRINT_BITS: molecules.bits,
        **{f"candidates.{part}": getattr(lists, part) for part in LIST_PARTS},
    }
    for part, array in arrays.items():
        save_array(path_of(folder, in_segment(number, part)), array)
    return list(folder.glob(in_segment(number, "*")))


def _extended(
    old: Facts, setting: str, number: int, molecules: NewMolecules, facts: Mapping[str, Any]
) -> Facts:
    """The manifest with a segment more, its files left out."""
    added = {"molecules": len(molecules.smiles), "fingerprint_bits_set": len(molecules.bits)}
    gone = set()
    if setting in old["candidates"]:
        names = [list_array(old, setting, part) for part in LIST_PARTS]
        gone = {path_of(Path(), name).name for name in names}
    return old | {
        "format_version": WITH_SEGMENTS,
        "counts": old["counts"] | {what: old["counts"][what] + n for what, n in added.items()},
        "candidates": old["candidates"] | {setting: {**facts, "segment": number}},
        "segments": [*segments_of(old), added],
        "files": {name: listed for name, listed in old["files"].items() if name not in gone},
    }


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class PrepareOptions:
    """What shapes a prepared folder besides its sources."""

    fingerprint: str = "morgan2"
    bin_width: float = BIN_WIDTH
    low: float = LOW
    high: float = HIGH
    intensity_floor: float = 0.0


def prepare(
    spectra: StrPath,
    candidates: Mapping[str, StrPath],
    out: StrPath,
    options: PrepareOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> tuple[Prepared, bool]:
    """Write the prepared folder, unless it is there already.

    Parameters
    ----------
    spectra : path
        Table in MassSpecGym's columns, plain or gzipped.
    candidates : mapping of str to path
        Candidate file of each retrieval setting.
    out : path
        Folder to make. An older prepared folder is replaced; any other is refused.
    options : PrepareOptions
    jobs : int
        Processes for the molecules; all cores by default.
    progress : callable
    say : callable of str
        Gets a line that says why, where an older folder is made anew.

    Returns
    -------
    prepared : Prepared
    made : bool
        False where the folder had the same key.

    Raises
    ------
    DatasetError, InputError
        A source cannot be read, or has changed while it was read.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    options, out = options or PrepareOptions(), Path(out)
    # The order of the lists numbers the molecules.
    lists = {name: Path(candidates[name]) for name in sorted(candidates)}
    fingerprint_kind(options.fingerprint)
    sources = {"spectra": Path(spectra), **{f"candidates.{n}": p for n, p in lists.items()}}
    with contextlib.ExitStack() as held:
        unwritable = _hold(out, sources, held)
        steady = SourceGuard(sources.values())
        description = _describe(sources, options, steady)
        ensure_replaceable(out, KIND, sources.values(), is_leftover)
        reasons = _why_anew(out, description)
        if reasons is None:
            return Prepared.open(out), False
        if unwritable:
            raise unwritable
        for reason in reasons:
            say(reason)
        _make(out, sources["spectra"], lists, options, description, steady, jobs, progress)
        return Prepared.open(out), True


def _hold(out: Path, sources: Mapping[str, Path], held: contextlib.ExitStack) -> WriteError | None:
    """Keep others from writing the folder; what hinders us, where it is there already."""
    for path in sources.values():
        if not path.is_file():
            what = "is a folder, expected a file" if path.is_dir() else "no such file"
            raise DatasetError(f"{path}: {what}")
    try:
        held.enter_context(sole_writer(out, "preparing a data set"))
    except WriteError as error:  # what is there already may still be what is wanted
        if not (out / MANIFEST.name).is_file():
            raise
        return error
    return None


def _make(
    out: Path,
    spectra: Path,
    lists: Mapping[str, Path],
    options: PrepareOptions,
    description: dict[str, Any],
    steady: SourceGuard,
    jobs: int | None,
    progress: Progress,
) -> None:
    """Read the sources, and write the folder."""
    collected = collect(
        spectra,
        lists,
        low=options.low,
        high=options.high,
        intensity_floor=options.intensity_floor,
        progress=progress,
    )
    table = build_molecule_table(list(collected.smiles), options.fingerprint, jobs, progress)
    with atomic_directory(out) as folder:
        progress("writing", 0)
        _fill(folder, spectra, collected, table, options, description)
        steady.ensure_unchanged()


def _fill(
    folder: Path,
    spectra: Path,
    collected: Collected,
    table: MoleculeTable,
    options: PrepareOptions,
    description: dict[str, Any],
) -> None:
    kept = _keep_spectra(collected, table, spectra)
    counts = _write_spectra(folder, collected, kept, table, options)
    counts |= _write_molecules(folder, table)
    settings = {
        name: _write_lists(folder, name, lists, table, collected)
        for name, lists in collected.lists.items()
    }
    write_rejects(folder / REJECTS, collected.rejects)
    counts["set_aside"] = len(collected.rejects)
    manifest = description | {
        "fingerprint_bits": fingerprint_kind(options.fingerprint).bits,
        "folds": list(FOLDS),
        "adducts": collected.adducts,
        "counts": counts,
        "candidates": settings,
    }
    MANIFEST.write(folder, manifest)
    Prepared.open(folder).check_arrays()


def _describe(
    sources: Mapping[str, Path], options: PrepareOptions, steady: SourceGuard
) -> dict[str, Any]:
    hashes = {name: steady.hashes[path] for name, path in sources.items()}
    shaping: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "options": vars(options),
        "versions": {
            "mzseek": __version__,
            "rdkit": rdkit.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            **manifest_version(options.fingerprint),
        },
    }
    key = hashlib.sha256(json.dumps([hashes, shaping], sort_keys=True).encode()).hexdigest()
    described = {
        name: {"file": path.name, "bytes": path.stat().st_size, "sha256": hashes[name]}
        for name, path in sources.items()
    }
    return {"key": key, "sources": described} | shaping


def _why_anew(out: Path, description: dict[str, Any]) -> list[str] | None:
    """Why the folder must be made, in lines; None where it is there, whole, and of the same."""
    if not out.is_dir() or not any(out.iterdir()):
        return []
    try:
        manifest = read_manifest(out)
        if manifest["key"] == description["key"]:
            Prepared.open(out, verify=True).check_arrays()
            return None
    except CacheError as error:
        reason = str(error).removeprefix(f"{out}: ").partition("; run")[0]
        return [f"{out}: made anew, since it was damaged: {reason}"]
    lines = [f"{out}: made anew, since {'; '.join(_differences(manifest, description))}"]
    mined = manifest["candidates"].items()
    if lost := [name for name, facts in mined if is_for_training(facts)]:
        lines.append(f"{out}: its negatives are gone ({', '.join(lost)}); mine them again")
    if lost := [name for name, facts in mined if "matched" in facts]:
        lines.append(f"{out}: its matched lists are gone ({', '.join(lost)}); draw them again")
    return lines


def _differences(manifest: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """In what a folder's making differs from the one asked for."""
    told = []
    for part, what in (("sources", "source"), ("options", "option"), ("versions", "version of")):
        old = manifest.get(part)
        old, new = old if isinstance(old, dict) else {}, wanted[part]
        for name in sorted({*old, *new}):
            if name not in new:
                told.append(f"the {what} {name} is no longer named")
            elif name not in old:
                told.append(f"the {what} {name} is new")
            elif part == "sources" and old[name] != new[name]:
                told.append(f"the {what} {name} ({new[name]['file']}) has changed")
            elif old[name] != new[name]:
                told.append(f"the {what} {name} is {new[name]}, was {old[name]}")
    return told or ["it says another key than it was made with"]


def _keep_spectra(
    collected: Collected, table: MoleculeTable, source: Path
) -> npt.NDArray[np.int64]:
    """Spectra whose molecule could be parsed; the others are set aside, and so are candidates."""
    smiles = np.frombuffer(collected.spectrum_smiles, dtype=np.int32)
    molecule = table.index[smiles]
    for spectrum in np.flatnonzero(molecule < 0):
        where = f"{source}: {collected.identifiers[spectrum]}"
        collected.set_aside(where, table.faults[int(smiles[spectrum])])
    measured = set(smiles.tolist())
    for number, reason in table.faults.items():
        if number not in measured:
            collected.set_aside("a candidate", reason)
    kept = np.flatnonzero(molecule >= 0)
    if not kept.size:
        raise DatasetError(f"{source}: no spectrum's molecule could be parsed")
    return kept


def _write_spectra(
    folder: Path,
    collected: Collected,
    kept: npt.NDArray[np.int64],
    table: MoleculeTable,
    options: PrepareOptions,
) -> dict[str, Any]:
    def save(name: str, values: npt.NDArray[Any]) -> None:
        save_array(path_of(folder, name), values)

    counts = np.frombuffer(collected.peak_counts, dtype=np.int32)
    keep_peak = np.zeros(len(counts), dtype=bool)
    keep_peak[kept] = True
    keep_peak = np.repeat(keep_peak, counts)
    counts = counts[kept]
    mz = np.frombuffer(collected.mz, dtype=np.float64)[keep_peak]
    intensities = np.frombuffer(collected.intensities, dtype=np.float32)[keep_peak]
    save(Array.PEAK_POINTERS, pointers(counts))
    save(Array.PEAK_MZ, mz)
    save(Array.PEAK_INTENSITIES, intensities)
    bins = bin_peaks(
        mz, intensities, counts, width=options.bin_width, low=options.low, high=options.high
    )
    save(Array.BIN_POINTERS, bins.indptr.astype(np.int64))
    save(Array.BIN_COLUMNS, bins.indices.astype(np.int32))
    save(Array.BIN_VALUES, bins.data)
    numbers = np.frombuffer(collected.spectrum_smiles, dtype=np.int32)[kept]
    folds = np.frombuffer(collected.folds, dtype=np.int8)[kept]
    save(Array.MOLECULE, table.index[numbers])
    save(Array.FOLD, folds)
    save(Array.PRECURSOR_MZ, np.frombuffer(collected.precursors, dtype=np.float64)[kept])
    save(Array.COLLISION_ENERGY, np.frombuffer(collected.energies, dtype=np.float32)[kept])
    save(Array.ADDUCT, np.frombuffer(collected.adduct_codes, dtype=np.int16)[kept])
    TextColumn.write(folder, Array.IDENTIFIER, [collected.identifiers[i] for i in kept])
    return {
        "spectra": len(kept),
        "spectra_by_fold": {name: int((folds == i).sum()) for i, name in enumerate(FOLDS)},
        "peaks": len(mz),
        "bins_shape": list(bins.shape),
        "bins_filled": int(bins.nnz),
        "measured_molecules": len(np.unique(table.index[numbers])),
    }


def _write_molecules(folder: Path, table: MoleculeTable) -> dict[str, Any]:
    TextColumn.write(folder, Array.SMILES, table.smiles)
    TextColumn.write(folder, Array.FORMULA, table.formulas)
    save_array(path_of(folder, Array.BLOCK), table.inchikey14)
    save_array(path_of(folder, Array.MASS), table.masses)
    save_array(path_of(folder, Array.FINGERPRINT_POINTERS), table.fingerprint_indptr)
    save_array(path_of(folder, Array.FINGERPRINT_BITS), table.fingerprint_bits)
    return {"molecules": len(table), "fingerprint_bits_set": len(table.fingerprint_bits)}


def _write_lists(
    folder: Path, name: str, lists: RawLists, table: MoleculeTable, collected: Collected
) -> dict[str, Any]:
    """Lists as indices into the table, each candidate once, marked where it is the truth."""
    resolved = resolve(lists, table)
    truth, has_truth = resolved.truth, resolved.has_truth
    first = resolved.is_first(len(table))
    owner, member = resolved.owner[first], resolved.member[first]
    identity = (
        SAME_FINGERPRINT * resolved.same_fingerprint + SAME_INCHIKEY * resolved.same_inchikey
    )[first]
    smiles = list(collected.smiles)
    # Of several keys for one molecule, the first whose list has the truth.
    places = np.flatnonzero(has_truth)
    usable = np.zeros(len(truth), dtype=bool)
    usable[places[np.unique(truth[places], return_index=True)[1]]] = True
    for place in np.flatnonzero(~usable):
        where = f"{lists.source}: {smiles[lists.keys[place]][:60]}"
        if truth[place] < 0:
            collected.set_aside(where, "its key was refused")
        elif not has_truth[place]:
            collected.set_aside(where, "the molecule is not among its candidates")
        else:
            collected.set_aside(where, "another key stands for the same molecule")
    in_use = usable[owner]
    owner, member, identity = owner[in_use], member[in_use], identity[in_use]
    sizes = np.bincount(owner, minlength=len(truth))[usable]
    list_of = np.full(len(table), -1, dtype=np.int32)
    list_of[truth[usable]] = np.arange(int(usable.sum()))
    arrays: tuple[npt.NDArray[Any], ...] = (
        pointers(sizes), member.astype(np.int32), identity.astype(np.uint8), list_of,
    )  # fmt: skip
    for part, array in zip(LIST_PARTS, arrays, strict=True):
        save_array(path_of(folder, f"candidates.{name}.{part}"), array)
    measured = np.unique(table.index[np.frombuffer(collected.spectrum_smiles, dtype=np.int32)])
    return {
        "molecules_without": int((list_of[measured[measured >= 0]] < 0).sum()),
        "lists": len(sizes),
        "candidates": len(member),
        "largest": int(sizes.max()) if len(sizes) else 0,
        "median": float(np.median(sizes)) if len(sizes) else 0.0,
    }
