"""Build a data set from annotated spectra: select, split, draw candidates."""

import contextlib
import dataclasses
import shlex
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mzseek.chem.adducts import fitting_adducts, parse_adduct
from mzseek.chem.fingerprint_kinds import molecule_rows, rows_to_csr
from mzseek.chem.ions import mass_of_atoms
from mzseek.chem.molecules import DescribedMolecule, parse_molecule
from mzseek.core.errors import AdductError, DatasetError, Reason
from mzseek.core.registry import EQUAL_IN
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.database.store import MOLECULES, source_ranks
from mzseek.datasets.files import (
    KIND,
    MANIFEST,
    write_candidates,
    write_table,
)
from mzseek.datasets.options import BuildOptions
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.manifest import SourceGuard, ensure_replaceable
from mzseek.io.skipped import SKIPPED_FILE, Report, Skipped, SkippedGroups, reporter, write_skipped
from mzseek.io.writing import disk_errors
from mzseek.library.build import described_spectra
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.similarity import tanimoto_blocks
from mzseek.spectra import Spectrum
from mzseek.spectra.records import UniqueNames
from mzseek.version import __version__

# Value of `metadata["adduct_from"]` for an adduct that is not stated.
INFERRED = "precursor and mass"
# Reasons for which a spectrum with a structure is skipped.
_OF_STRUCTURES = {"bad-molecule", "bad-adduct", "no-adduct", "precursor-mismatch"}


class Entry(NamedTuple):
    """A usable spectrum and the index of its molecule."""

    spectrum: Spectrum
    molecule: int


class Annotated(NamedTuple):
    """Usable spectra of some libraries, in the order of the files, and their molecules, each once.

    Molecules are in standard form.
    """

    entries: list[Entry]
    molecules: list[DescribedMolecule]


def read_annotated(
    libraries: Sequence[Path],
    report: Report,
    *,
    precursor_ppm: float = 20.0,
    keep_stereo: bool = False,
    progress: Progress = silent,
) -> Annotated:
    """Read spectra whose structure and adduct agree with their precursor, without duplicates.

    Where no adduct is stated, it is inferred if exactly one of the usual ones fits the precursor
    and the molecule's mass.
    """
    entries: list[Entry] = []
    molecules: list[DescribedMolecule] = []
    index_of: dict[tuple[str, float], int] = {}
    names = UniqueNames()
    seen: dict[tuple[object, ...], str] = {}
    for spectrum, molecule, library in described_spectra(libraries, report, keep_stereo):
        where = f"{library}: {spectrum.identifier}"
        agreed = _agreed(spectrum, molecule, precursor_ppm)
        if isinstance(agreed, str):
            report(where, agreed)
            continue
        key = _duplicate_key(agreed, molecule)
        if key in seen:
            report(where, Reason(f"is a duplicate (of {seen[key]})", "duplicate"))
            continue
        # Scan numbers and titles are unique in a file only.
        name = spectrum.identifier
        seen[key] = name = names.take(f"{library.stem} {name}" if name in names else name)
        index = index_of.setdefault(molecule.identity, len(molecules))
        if index == len(molecules):
            molecules.append(molecule)
        entries.append(Entry(dataclasses.replace(agreed, identifier=name), index))
        if len(entries) % 500 == 0:
            progress("spectra", len(entries))
    progress("spectra", len(entries))
    return Annotated(entries, molecules)


def why_nothing(libraries: Sequence[Path], skipped: Sequence[tuple[str, str]]) -> str:
    """Say why libraries have no usable spectrum, and what to do if they have no structures."""
    codes = Counter(Skipped(*pair).code for pair in skipped)
    if codes["no-molecule"] and not codes.keys() & _OF_STRUCTURES:
        look = shlex.join(["mzseek", "show", str(libraries[0])])
        return (
            f"{', '.join(map(str, libraries))}: {codes['no-molecule']:,} spectra, none with a "
            "structure, and a data set is made of those: give a library with SMILES or InChI. "
            f"`{look}` shows what is in a file; naming unknown molecules is not built yet"
        )
    reasons = "; ".join(f"{g.count} × {g.kind}" for g in SkippedGroups(skipped).by_count()[:3])
    return f"no usable annotated spectrum in the libraries ({reasons})"


def _agreed(spectrum: Spectrum, molecule: DescribedMolecule, ppm: float) -> Spectrum | Reason:
    """Return the spectrum with an adduct that structure and precursor agree with, or a reason."""
    precursor = spectrum.precursor_mz
    if spectrum.adduct is not None:
        try:
            mass = mass_of_atoms(molecule.smiles, molecule.mass)
            expected = parse_adduct(spectrum.adduct).precursor_mz(mass)
        except AdductError as error:
            return error.reason
        off = abs(precursor - expected) / expected * 1e6
        if off <= ppm:
            return spectrum
        return Reason(
            f"precursor disagrees with structure and adduct ({precursor:.4f}, expected "
            f"{expected:.4f} as {spectrum.adduct}: {off:.0f} ppm off)",
            "precursor-mismatch",
        )
    stated = spectrum.metadata.get("adduct_as_given", "")
    if stated and "?" not in stated:
        return Reason(f"has no single adduct ({stated})", "no-adduct")
    mode = spectrum.metadata.get("ionmode")
    mode = mode if mode in {"positive", "negative"} else None
    fitting = fitting_adducts(precursor, molecule.mass, ppm, spectrum.charge, mode)
    if not fitting:
        return Reason(
            "has no adduct, and none of the usual ones fits "
            f"(precursor {precursor:.4f}, molecule {molecule.mass:.4f})",
            "precursor-mismatch",
        )
    if len(fitting) > 1:
        names = " and ".join(adduct.name for adduct in fitting)
        reason = f"has no adduct, and more than one of the usual ones fits ({names})"
        return Reason(reason, "no-adduct")
    return dataclasses.replace(
        spectrum, adduct=fitting[0].name, charge=fitting[0].charge,
        metadata=spectrum.metadata | {"adduct_from": INFERRED},
    )  # fmt: skip


def _duplicate_key(spectrum: Spectrum, molecule: DescribedMolecule) -> tuple[object, ...]:
    """Return a key that is equal for spectra of one measurement, entered twice or rescaled."""
    relative = np.round(spectrum.intensities / spectrum.intensities.max(), 2)
    strong = relative > 0
    return (
        molecule.identity,
        spectrum.adduct,
        spectrum.metadata.get("collision_energy"),
        np.round(spectrum.mz[strong], 2).tobytes(),
        relative[strong].tobytes(),
    )


def nearest_similarity(rows: csr_array, others: csr_array) -> npt.NDArray[np.float32]:
    """Return the largest Tanimoto similarity of each row to the others (0 if there are none)."""
    nearest = np.zeros(rows.shape[0], dtype=np.float32)
    if others.shape[0]:
        for start, block in tanimoto_blocks(rows, others):
            nearest[start : start + len(block)] = block.max(axis=1)
    return nearest


def structure_clusters(rows: csr_array, threshold: float = 0.6) -> npt.NDArray[np.int64]:
    """Cluster by single linkage: molecules at least ``threshold`` similar are in one cluster.

    Parameters
    ----------
    rows : CSR of 0/1, shape (molecules, bits)
    threshold : float
        Tanimoto similarity.

    Returns
    -------
    int64 array, shape (molecules,)
        Cluster numbers, in the order in which clusters are first met.
    """
    linked_rows, linked_columns = [], []
    for start, block in tanimoto_blocks(rows, rows):
        row, column = np.nonzero(block >= threshold)
        linked_rows.append(row + start)
        linked_columns.append(column)
    size = rows.shape[0]
    if size == 0:
        return np.empty(0, np.int64)
    row, column = np.concatenate(linked_rows), np.concatenate(linked_columns)
    graph = csr_array((np.ones(len(row), np.int8), (row, column)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def join_clusters(
    clusters: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Unite clusters that share a label, such as a formula.

    Examples
    --------
    >>> join_clusters(np.array([0, 0, 1, 2]), np.array([5, 6, 6, 7])).tolist()
    [0, 0, 0, 1]
    """
    size = len(clusters)
    if size == 0:
        return clusters
    first = np.unique(clusters, return_inverse=True)[1]
    second = np.unique(labels, return_inverse=True)[1] + first.max() + 1
    nodes = int(second.max()) + 1
    graph = csr_array((np.ones(size, np.int8), (first, second)), shape=(nodes, nodes))
    component = connected_components(graph, directed=False)[1]
    return np.unique(component[first], return_inverse=True)[1].astype(np.int64)


def assign_folds(
    clusters: npt.NDArray[np.int64], fractions: Mapping[str, float], seed: int = 0
) -> list[str]:
    """Assign a fold to each molecule, whole clusters at a time.

    Clusters are taken from the largest to the smallest (equal ones in an order drawn from the
    seed), each by the fold that lacks most of its share.

    Examples
    --------
    >>> assign_folds(np.array([0, 0, 0, 1, 2]), {"train": 0.6, "val": 0.2, "test": 0.2}, seed=1)
    ['train', 'train', 'train', 'val', 'test']
    """
    names = list(fractions)
    sizes = np.bincount(clusters)
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    lacking = np.array([fractions[name] for name in names]) * len(clusters)
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for cluster in order:
        fold_of[cluster] = int(np.argmax(lacking))
        lacking[fold_of[cluster]] -= sizes[cluster]
    return [names[fold_of[cluster]] for cluster in clusters]


def draw_candidates(
    truth: DescribedMolecule, database: Database, setting: str, options: BuildOptions
) -> list[str]:
    """Draw the candidate list of a molecule: SMILES, the truth's at a random place among them.

    A list is a random draw from all molecules of the database that have the truth's mass or
    formula (``setting``), those of preferred sources first, none with the truth's key, no key
    twice. It depends on the seed, the truth and what the database has of that mass or formula, and
    on nothing else. The truth is in the standard form in which the database has its own.
    """
    # Lists of one set must not share their draws.
    number = zlib.crc32(f"{(truth.inchikey14, round(truth.mass, 3))}{setting}".encode())
    rng = np.random.default_rng([options.seed, number])
    if setting == "formula":
        rows = database.rows_by_formula(truth.formula)
    else:
        rows = database.rows_by_mass(truth.mass, options.candidate_ppm)
    columns = ["key", "smiles", *(["sources"] if options.priorities else [])]
    table = database.rows(rows, columns)
    order = rng.permutation(len(rows))
    if options.priorities:
        order = order[np.argsort(source_ranks(table, options.priorities)[order], kind="stable")]
    keys, smiles = table["key"].to_pylist(), table["smiles"].to_pylist()
    seen = {truth.key}
    chosen: list[str] = []
    for row in order:
        if len(chosen) == options.max_candidates - 1:
            break
        if keys[row] not in seen:
            seen.add(keys[row])
            chosen.append(smiles[row])
    chosen.insert(int(rng.integers(len(chosen) + 1)), truth.smiles)
    return chosen


def check_drawable(database: Database, options: BuildOptions) -> None:
    """Refuse a database whose form of SMILES would reveal truths, or that lacks a source.

    Raises
    ------
    DatasetError
        It has stereo in its SMILES and the data set has not, or the other way round.
    DatabaseError
        No molecule comes from one of the sources to be preferred.
    """
    if database.keep_stereo and not options.keep_stereo:
        raise DatasetError(
            f"{database.folder}: has stereo in its SMILES, which truths without it would be known "
            "by; give --keep-stereo, too, or a database built without it"
        )
    if options.keep_stereo and not database.keep_stereo:
        raise DatasetError(
            f"{database.folder}: has no stereo in its SMILES, and truths with it would be known by "
            "it; build the database with --keep-stereo, too"
        )
    database.require_sources(options.priorities)


def build_dataset(
    libraries: Sequence[StrPath],
    molecules: Database | Sequence[StrPath],
    out: StrPath,
    options: BuildOptions | None = None,
    *,
    keep_database: StrPath | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Read libraries, merge duplicates, split by structure, draw candidates, write the set.

    Spectra need a structure and an adduct that agree with their precursor; an adduct that is not
    stated is inferred where exactly one fits. Molecules are standardised, and one by the identity
    rule of `mzseek.chem.molecules`. Candidates come from a database, whose molecules are
    standardised alike, lest their form give the truth away; the truth is always among them, at a
    place drawn from the seed.

    Parameters
    ----------
    libraries : sequence of paths
        Files, folders or archives of spectra.
    molecules : Database, or sequence of paths
        Where candidates come from; of files, as `mzseek.database` reads them, a database is built.
    out : path
        Folder to make.
    options : BuildOptions
    keep_database : path, optional
        Where the database of the files is kept; without it, it is gone when the set is made.
    jobs : int, optional
        Processes; one a core by default.
    progress : callable of (stage, done, total)

    Returns
    -------
    dict
        The manifest that is also written into the folder.

    Raises
    ------
    DatasetError, DatabaseError, InputError
        Nothing usable could be read, or a source has changed while it was read.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    options = options or BuildOptions()
    out, paths = Path(out), [Path(library) for library in libraries]
    opened = molecules if isinstance(molecules, Database) else None
    files = [] if isinstance(molecules, Database) else [Path(file) for file in molecules]
    if keep_database is not None and not files:
        raise DatasetError("a database is kept where it is; keep one that is made of files")
    with sole_writer(out, "building a data set"):
        ensure_replaceable(out, KIND, [*paths, *files])
        guard = SourceGuard([*paths, *files])
        skipped: list[tuple[str, str]] = []
        report = reporter(skipped)
        annotated = read_annotated(
            paths, report, precursor_ppm=options.precursor_ppm, keep_stereo=options.keep_stereo,
            progress=progress,
        )  # fmt: skip
        if not annotated.entries:
            raise DatasetError(why_nothing(paths, skipped))
        progress("splitting", 0)
        folds = _split(annotated.molecules, options)
        keep = None if keep_database is None else Path(keep_database)
        drawn_from = files if opened is None else opened
        with (
            _opened(drawn_from, out, keep, options, report, jobs, progress) as database,
            atomic_directory(out) as folder,
        ):
            rows = (
                _row(spectrum, annotated.molecules[molecule], folds[molecule])
                for spectrum, molecule in annotated.entries
            )
            write_table(folder / "spectra.tsv.gz", rows)
            write_lists = partial(_write_lists, folder, annotated.molecules, database)
            sizes = {setting: write_lists(setting, options, progress) for setting in EQUAL_IN}
            write_skipped(folder / SKIPPED_FILE, skipped)
            sources = [{"file": path.name, "sha256": hash_} for path, hash_ in guard.hashes.items()]
            if opened is not None:
                sha256 = opened.manifest["files"][MOLECULES]["sha256"]
                sources.append({"file": f"{opened.folder.name}/{MOLECULES}", "sha256": sha256})
            metadata = {
                "made_by": f"mzseek {__version__} data build",
                "options": asdict(options),
                "sources": sources,
                "counts": _counts(annotated, folds, options.fractions, sizes, len(skipped)),
            }
            manifest = MANIFEST.write(folder, metadata)
            guard.ensure_unchanged()
    return manifest


@contextlib.contextmanager
def _opened(
    molecules: Database | list[Path],
    out: Path,
    keep: Path | None,
    options: BuildOptions,
    report: Report,
    jobs: int | None,
    progress: Progress,
) -> Iterator[Database]:
    """Open the database to draw from: the one given, or one of files, while it is needed."""
    if isinstance(molecules, Database):
        check_drawable(molecules, options)
        yield molecules
        return
    temporary = out.resolve().with_name(f".{out.resolve().name}.molecules")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    try:
        # Of the temporary one nobody knows: it is the set that there is no room for.
        with disk_errors(out if keep is None else keep):
            database = build_database(
                file_sources(molecules),
                keep or temporary / "database",
                nearest=keep is not None,  # which drawing needs not
                keep_stereo=options.keep_stereo,
                engine=LocalEngine(jobs),
                progress=progress,
            )
        check_drawable(database, options)
        for where, reason in database.skipped:
            report(where, reason)
        yield database
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_lists(
    folder: Path,
    molecules: Sequence[DescribedMolecule],
    database: Database,
    setting: str,
    options: BuildOptions,
    progress: Progress,
) -> list[int]:
    """Write the candidate lists of a setting as they are drawn; return their lengths."""
    sizes: list[int] = []

    def lists() -> Iterator[tuple[str, list[str]]]:
        for truth in molecules:
            candidates = draw_candidates(truth, database, setting, options)
            sizes.append(len(candidates))
            yield truth.smiles, candidates
            progress(f"{setting} candidates", len(sizes), len(molecules))

    write_candidates(folder / f"candidates_{setting}.json.gz", lists())
    return sizes


def _split(molecules: Sequence[DescribedMolecule], options: BuildOptions) -> list[str]:
    parsed = [parse_molecule(molecule.smiles) for molecule in molecules]
    rows = rows_to_csr(molecule_rows(parsed, "morgan2"), 4096)
    clusters = structure_clusters(rows, options.similarity)
    # A labelled molecule and its plain form share a skeleton, if not a fingerprint.
    skeletons = np.unique([molecule.inchikey14 for molecule in molecules], return_inverse=True)[1]
    clusters = join_clusters(clusters, skeletons)
    if options.keep_formulas_together:
        formulas = np.unique([molecule.formula for molecule in molecules], return_inverse=True)[1]
        clusters = join_clusters(clusters, formulas)
    return assign_folds(clusters, options.fractions, options.seed)


def _row(spectrum: Spectrum, molecule: DescribedMolecule, fold: str) -> dict[str, object]:
    relative = spectrum.intensities / spectrum.intensities.max()
    return {
        "identifier": spectrum.identifier,
        "mzs": ",".join(f"{value:.5f}" for value in spectrum.mz),
        "intensities": ",".join(f"{value:.5g}" for value in relative),
        "smiles": molecule.smiles,
        "inchikey": molecule.inchikey14,
        "formula": molecule.formula,
        "parent_mass": f"{molecule.mass:.6f}",
        "precursor_mz": f"{spectrum.precursor_mz:.6f}",
        "adduct": spectrum.adduct,
        "instrument_type": spectrum.metadata.get("instrument_type", ""),
        "collision_energy": spectrum.metadata.get("collision_energy", ""),
        "fold": fold,
        "simulation_challenge": "False",
    }


def _counts(
    annotated: Annotated,
    folds: Sequence[str],
    fractions: Mapping[str, float],
    sizes: Mapping[str, Sequence[int]],
    skipped: int,
) -> dict[str, Any]:
    spectra_of = Counter(folds[entry.molecule] for entry in annotated.entries)
    molecules_of = Counter(folds)
    adduct_sources = [entry.spectrum.metadata.get("adduct_from") for entry in annotated.entries]
    return {
        "spectra": len(annotated.entries),
        "molecules": len(annotated.molecules),
        "spectra_by_fold": {fold: spectra_of[fold] for fold in fractions},
        "molecules_by_fold": {fold: molecules_of[fold] for fold in fractions},
        "adducts_inferred": adduct_sources.count(INFERRED),
        "set_aside": skipped,
        "candidates": {
            setting: {
                "median": float(np.median(lengths)),
                "largest": max(lengths),
                "molecules_alone": sum(length == 1 for length in lengths),
            }
            for setting, lengths in sizes.items()
        },
    }
