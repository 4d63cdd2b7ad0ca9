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
from mzseek.core.errors import CacheError, DatasetError, Reason, WriteError
from mzseek.core.ragged import pointers
from mzseek.core.registry import FOLDS
from mzseek.datasets.layout import (
    FORMAT_VERSION,
    KIND,
    LIST_PARTS,
    MANIFEST,
    WITH_SEGMENTS,
    Array,
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
    SmilesLists,
    build_molecule_table,
    collect,
    is_first,
)
from mzseek.datasets.prepared import CandidateLists, Prepared, read_manifest
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.arrays import save_array
from mzseek.io.manifest import SourceGuard, ensure_replaceable, measured
from mzseek.io.skipped import SKIPPED_FILE, write_skipped
from mzseek.io.writing import disk_errors
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.spectra.binning import BIN_WIDTH, HIGH, LOW, bin_peaks
from mzseek.version import __version__


@contextmanager
def held_for_lists(prepared: Prepared, doing: str) -> Iterator[None]:
    """Lock a folder while lists are made for it, and check that it is as it was opened.

    ``doing`` names the purpose in the error of another process that would write it.

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
    molecules: MoleculeTable,
    metadata: Mapping[str, Any],
) -> Prepared:
    """Add molecules and lists to a folder; older lists of this name are replaced.

    The caller holds the folder by `held_for_lists`.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the lists.
    lists : CandidateLists
        ``list_of`` is as long as that of the folder's other lists.
    molecules : MoleculeTable
        New ones, numbered after all that the folder has.
    metadata : mapping
        Of the lists, for the manifest.

    Raises
    ------
    WriteError
        It cannot be written; it is then as it was.
    """
    folder, old = prepared.folder, prepared.manifest
    number = len(segments_of(old)) + 1
    added = {"molecules": len(molecules), "fingerprint_bits_set": len(molecules.fingerprint_bits)}
    replaced = set()
    if setting in old["candidates"]:
        names = (list_array(old, setting, part) for part in LIST_PARTS)
        replaced = {path_of(folder, name).name for name in names}
    manifest = old | {
        "format_version": WITH_SEGMENTS,
        "counts": old["counts"] | {what: old["counts"][what] + n for what, n in added.items()},
        "candidates": old["candidates"] | {setting: {**metadata, "segment": number}},
        "segments": [*segments_of(old), added],
        "files": {name: listed for name, listed in old["files"].items() if name not in replaced},
    }
    is_listed = False
    try:
        with disk_errors(folder):
            _remove(
                path for path in list(folder.iterdir())
                if path.name not in old["files"] and is_leftover(path.name)
            )  # fmt: skip
            _write_molecules(folder, molecules, number)
            _save_lists(folder, in_segment(number, "candidates"), lists)
            written = sorted(folder.glob(in_segment(number, "*")))
            manifest["files"] |= {path.name: measured(path) for path in written}
            Prepared(folder, manifest).check_arrays()
            is_listed = True  # from here on the new manifest may be in place
            MANIFEST.replace(folder, manifest)
    except BaseException:
        if not is_listed or MANIFEST.read(folder) == old:
            _remove(folder.glob(in_segment(number, "*")))
        raise
    _remove(folder / name for name in replaced)
    return Prepared.open(folder)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class PrepareOptions:
    """Options of a prepared folder."""

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
        Gets the reasons, in lines, for which an older folder is made anew.

    Returns
    -------
    prepared : Prepared
    is_new : bool
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
    for path in sources.values():
        if not path.is_file():
            what = "is a folder, expected a file" if path.is_dir() else "no such file"
            raise DatasetError(f"{path}: {what}")
    unwritable = None
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(sole_writer(out, "preparing a data set"))
        except WriteError as error:  # an existing folder may be up to date
            if not (out / MANIFEST.name).is_file():
                raise
            unwritable = error
        guard = SourceGuard(sources.values())
        description = _describe(sources, options, guard)
        ensure_replaceable(out, KIND, sources.values(), is_leftover)
        reasons = _why_anew(out, description)
        if reasons is None:
            return Prepared.open(out), False
        if unwritable:
            raise unwritable
        for reason in reasons:
            say(reason)
        collected = collect(
            sources["spectra"], lists, low=options.low, high=options.high,
            intensity_floor=options.intensity_floor, progress=progress,
        )  # fmt: skip
        table = build_molecule_table(list(collected.smiles), options.fingerprint, jobs, progress)
        with atomic_directory(out) as folder:
            progress("writing", 0)
            counts = _write_spectra(folder, sources["spectra"], collected, table, options)
            _write_molecules(folder, table)
            counts |= {"molecules": len(table), "fingerprint_bits_set": len(table.fingerprint_bits)}
            settings = {
                name: _write_lists(folder, name, raw, table, collected)
                for name, raw in collected.lists.items()
            }
            write_skipped(folder / SKIPPED_FILE, collected.skipped)
            counts["set_aside"] = len(collected.skipped)
            manifest = description | {
                "fingerprint_bits": fingerprint_kind(options.fingerprint).bits,
                "folds": list(FOLDS),
                "adducts": collected.adducts,
                "counts": counts,
                "candidates": settings,
            }
            MANIFEST.write(folder, manifest)
            Prepared.open(folder).check_arrays()
            guard.ensure_unchanged()
        return Prepared.open(out), True


def _describe(
    sources: Mapping[str, Path], options: PrepareOptions, guard: SourceGuard
) -> dict[str, Any]:
    hashes = {name: guard.hashes[path] for name, path in sources.items()}
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
    """Say in lines why the folder must be made; None if it is intact and has the same key."""
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
    if lost := [name for name, entry in mined if is_for_training(entry)]:
        lines.append(f"{out}: its negatives are gone ({', '.join(lost)}); mine them again")
    if lost := [name for name, entry in mined if "matched" in entry]:
        lines.append(f"{out}: its matched lists are gone ({', '.join(lost)}); draw them again")
    return lines


def _differences(manifest: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """List differences of sources, options and versions from those of a folder."""
    differences = []
    for part, what in (("sources", "source"), ("options", "option"), ("versions", "version of")):
        old = manifest.get(part)
        old, new = old if isinstance(old, dict) else {}, expected[part]
        for name in sorted({*old, *new}):
            if name not in new:
                differences.append(f"the {what} {name} is no longer named")
            elif name not in old:
                differences.append(f"the {what} {name} is new")
            elif part == "sources" and old[name] != new[name]:
                differences.append(f"the {what} {name} ({new[name]['file']}) has changed")
            elif old[name] != new[name]:
                differences.append(f"the {what} {name} is {new[name]}, was {old[name]}")
    return differences or ["it says another key than it was made with"]


def _write_spectra(
    folder: Path,
    source: Path,
    collected: Collected,
    table: MoleculeTable,
    options: PrepareOptions,
) -> dict[str, Any]:
    """Write spectra whose molecule could be parsed; note the others, and refused candidates."""
    numbers = collected.spectrum_smiles
    molecule = table.index[numbers]
    for spectrum in np.flatnonzero(molecule < 0):
        where = f"{source}: {collected.identifiers[spectrum]}"
        collected.skip(where, table.faults[int(numbers[spectrum])])
    measured_smiles = set(numbers.tolist())
    for number, reason in table.faults.items():
        if number not in measured_smiles:
            collected.skip("a candidate", reason)
    usable = molecule >= 0
    if not usable.any():
        raise DatasetError(f"{source}: no spectrum's molecule could be parsed")

    def save(name: str, values: npt.NDArray[Any]) -> None:
        save_array(path_of(folder, name), values)

    usable_peaks = np.repeat(usable, collected.peak_counts)
    peak_counts = collected.peak_counts[usable]
    mz, intensities = collected.mz[usable_peaks], collected.intensities[usable_peaks]
    save(Array.PEAK_POINTERS, pointers(peak_counts))
    save(Array.PEAK_MZ, mz)
    save(Array.PEAK_INTENSITIES, intensities)
    bins = bin_peaks(
        mz, intensities, peak_counts, width=options.bin_width, low=options.low, high=options.high
    )
    save(Array.BIN_POINTERS, bins.indptr.astype(np.int64))
    save(Array.BIN_COLUMNS, bins.indices.astype(np.int32))
    save(Array.BIN_VALUES, bins.data)
    folds = collected.folds[usable]
    save(Array.MOLECULE, molecule[usable])
    save(Array.FOLD, folds)
    save(Array.PRECURSOR_MZ, collected.precursors[usable])
    save(Array.COLLISION_ENERGY, collected.energies[usable])
    save(Array.ADDUCT, collected.adduct_codes[usable])
    save(Array.INSTRUMENT, collected.instruments[usable])
    identifiers = [collected.identifiers[i] for i in np.flatnonzero(usable)]
    TextColumn.write(folder, Array.IDENTIFIER, identifiers)
    return {
        "spectra": len(identifiers),
        "spectra_by_fold": {name: int((folds == i).sum()) for i, name in enumerate(FOLDS)},
        "peaks": len(mz),
        "bins_shape": list(bins.shape),
        "bins_filled": int(bins.nnz),
        "measured_molecules": len(np.unique(molecule[usable])),
    }


def _write_molecules(folder: Path, table: MoleculeTable, segment: int = 0) -> None:
    for name, texts in ((Array.SMILES, table.smiles), (Array.FORMULA, table.formulas)):
        TextColumn.write(folder, in_segment(segment, name), texts)
    arrays: dict[str, npt.NDArray[Any]] = {
        Array.INCHIKEY14: table.inchikey14,
        Array.MASS: table.masses,
        Array.FINGERPRINT_POINTERS: table.fingerprint_indptr,
        Array.FINGERPRINT_BITS: table.fingerprint_bits,
    }
    for part, array in arrays.items():
        save_array(path_of(folder, in_segment(segment, part)), array)


def _write_lists(
    folder: Path, name: str, raw: SmilesLists, table: MoleculeTable, collected: Collected
) -> dict[str, Any]:
    """Write lists as indices into the table, each candidate once, marked where it is the truth."""
    truths, lists, molecules, identity = raw.resolve(table)
    has_truth = lists.any(identity > 0)
    # Of several keys for one molecule, the first whose list has the truth.
    rows = np.flatnonzero(has_truth)
    usable = np.zeros(len(truths), dtype=bool)
    usable[rows[np.unique(truths[rows], return_index=True)[1]]] = True
    smiles = list(collected.smiles)
    for row in np.flatnonzero(~usable):
        where = f"{raw.source}: {smiles[raw.keys[row]][:60]}"
        if truths[row] < 0:
            collected.skip(where, Reason("its key was refused", "bad-molecule"))
        elif not has_truth[row]:
            collected.skip(where, Reason("the molecule is not among its candidates", "no-truth"))
        else:
            collected.skip(where, Reason("another key stands for the same molecule", "duplicate"))
    chosen = is_first(lists, molecules) & usable[lists.list_index]
    sizes = np.bincount(lists.list_index[chosen], minlength=len(truths))[usable]
    list_of = np.full(len(table), -1, dtype=np.int32)
    list_of[truths[usable]] = np.arange(len(sizes))
    written = CandidateLists(
        pointers(sizes), molecules[chosen].astype(np.int32), identity[chosen], list_of
    )
    _save_lists(folder, f"candidates.{name}", written)
    measured = np.unique(table.index[collected.spectrum_smiles])
    return {
        "molecules_without": int((list_of[measured[measured >= 0]] < 0).sum()),
        "lists": len(sizes),
        "candidates": int(chosen.sum()),
        "largest": int(sizes.max(initial=0)),
        "median": float(np.median(sizes)) if len(sizes) else 0.0,
    }


def _save_lists(folder: Path, name: str, lists: CandidateLists) -> None:
    for part in LIST_PARTS:
        save_array(path_of(folder, f"{name}.{part}"), getattr(lists, part))
