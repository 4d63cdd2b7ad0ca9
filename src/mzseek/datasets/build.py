"""`data build`: a data set in MassSpecGym's form from any library of annotated spectra."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.chem.describe import DescribedMolecule
from mzseek.chem.fingerprinting import molecule_rows, rows_to_csr
from mzseek.chem.molecule import parse_molecule
from mzseek.choices import EQUAL_IN
from mzseek.database import Database, build_database
from mzseek.database.folder import MOLECULES, REJECTS
from mzseek.database.sources import file_sources
from mzseek.datasets.annotated import Annotated, Entry, read_annotated, why_nothing
from mzseek.datasets.draw import DrawOptions, check_drawable, draw_candidates
from mzseek.datasets.split import assign_folds, join_clusters, structure_clusters
from mzseek.datasets.table import (
    KIND,
    MANIFEST,
    read_rejects,
    write_candidates,
    write_rejects,
    write_table,
)
from mzseek.errors import DatasetError
from mzseek.files import StrPath, atomic_directory, sole_writer
from mzseek.files.fault import naming_output
from mzseek.files.owned import ensure_replaceable
from mzseek.files.steady import SteadySources
from mzseek.rejects import Report
from mzseek.version import __version__
from mzseek.work import LocalEngine
from mzseek.work.progress import Progress, silent


@dataclass(frozen=True)
class BuildOptions:
    """How a data set is made."""

    seed: int = 0
    fractions: dict[str, float] = field(
        default_factory=lambda: {"train": 0.8, "val": 0.1, "test": 0.1}
    )
    similarity: float = 0.6
    keep_formulas_together: bool = False
    candidate_ppm: float = 10.0
    precursor_ppm: float = 20.0
    max_candidates: int = 256
    keep_stereo: bool = False
    priorities: tuple[str, ...] = ()


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
    rule of `mzseek.chem.describe`. Candidates come from a database, whose molecules are
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
    out, files = Path(out), [Path(library) for library in libraries]
    given = molecules if isinstance(molecules, Database) else [Path(file) for file in molecules]
    keep = None if keep_database is None else Path(keep_database)
    if keep is not None and not _files_of(given):
        raise DatasetError("a database is kept where it is; keep one that is made of files")
    with sole_writer(out, "building a data set"):
        ensure_replaceable(out, KIND, [*files, *_files_of(given)])
        return _build(files, given, out, options, keep, jobs, progress)


def _files_of(molecules: Database | list[Path]) -> list[Path]:
    """Lists of molecules that a database is to be built from; none where one is given."""
    return [] if isinstance(molecules, Database) else molecules


def _build(
    files: list[Path],
    molecules: Database | list[Path],
    out: Path,
    options: BuildOptions,
    keep: Path | None,
    jobs: int | None,
    progress: Progress,
) -> dict[str, Any]:
    steady = SteadySources([*files, *_files_of(molecules)])
    rejects: list[tuple[str, str]] = []

    def report(where: str, reason: str) -> None:
        rejects.append((where, reason))

    annotated = read_annotated(
        files,
        report,
        precursor_ppm=options.precursor_ppm,
        keep_stereo=options.keep_stereo,
        progress=progress,
    )
    if not annotated.entries:
        raise DatasetError(why_nothing(files, annotated, rejects))
    folds = _split(annotated.molecules, options, progress)
    drawing = DrawOptions(
        options.seed, options.candidate_ppm, options.max_candidates, options.keep_stereo,
        options.priorities,
    )  # fmt: skip
    with (
        _opened(molecules, out, keep, drawing, report, jobs, progress) as database,
        atomic_directory(out) as folder,
    ):
        _write_spectra(folder, annotated, folds)
        sizes = {
            setting: _write_lists(folder, annotated, database, setting, drawing, progress)
            for setting in EQUAL_IN
        }
        write_rejects(folder / "rejects.tsv", rejects)
        facts = {
            "made_by": f"mzseek {__version__} data build",
            "options": asdict(options),
            "sources": _sources(steady, None if _files_of(molecules) else database),
            "counts": _counts(annotated, folds, options.fractions, sizes, len(rejects)),
        }
        manifest = MANIFEST.write(folder, facts)
        steady.ensure_unchanged()
    return manifest


@contextlib.contextmanager
def _opened(
    molecules: Database | Sequence[Path],
    out: Path,
    keep: Path | None,
    drawing: DrawOptions,
    report: Report,
    jobs: int | None,
    progress: Progress,
) -> Iterator[Database]:
    """The database to draw from: the one given, or one of files, for as long as it is needed."""
    if isinstance(molecules, Database):
        check_drawable(molecules, drawing)
        yield molecules
        return
    temporary = out.resolve().with_name(f".{out.resolve().name}.molecules")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    try:
        # Of the temporary one nobody knows: it is the set that there is no room for.
        with naming_output(out if keep is None else keep):
            database = build_database(
                file_sources(molecules),
                keep or temporary / "database",
                nearest=keep is not None,  # which drawing needs not
                keep_stereo=drawing.keep_stereo,
                engine=LocalEngine(jobs),
                progress=progress,
            )
        check_drawable(database, drawing)
        for where, reason in read_rejects(database.folder / REJECTS):
            report(where, reason)
        yield database
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_spectra(folder: Path, annotated: Annotated, folds: Sequence[str]) -> None:
    write_table(
        folder / "spectra.tsv.gz",
        (
            _row(entry, annotated.molecules[entry.molecule], folds[entry.molecule])
            for entry in annotated.entries
        ),
    )


def _write_lists(
    folder: Path,
    annotated: Annotated,
    database: Database,
    setting: str,
    drawing: DrawOptions,
    progress: Progress,
) -> list[int]:
    """Write the candidate lists of a setting as they are drawn; returns their lengths."""
    sizes: list[int] = []

    def drawn() -> Iterator[tuple[str, list[str]]]:
        draws = draw_candidates(annotated.molecules, database, setting, drawing, progress)
        for truth, candidates in draws:
            sizes.append(len(candidates))
            yield truth, candidates

    write_candidates(folder / f"candidates_{setting}.json.gz", drawn())
    return sizes


def _split(
    molecules: Sequence[DescribedMolecule], options: BuildOptions, progress: Progress
) -> list[str]:
    progress("splitting", 0)
    parsed = [parse_molecule(molecule.smiles) for molecule in molecules]
    rows = rows_to_csr(molecule_rows(parsed, "morgan2"), 4096)
    clusters = structure_clusters(rows, options.similarity)
    # A labelled molecule and its plain form share a skeleton, if not a fingerprint.
    skeletons = np.unique([molecule.block for molecule in molecules], return_inverse=True)[1]
    clusters = join_clusters(clusters, skeletons)
    if options.keep_formulas_together:
        formulas = np.unique([molecule.formula for molecule in molecules], return_inverse=True)[1]
        clusters = join_clusters(clusters, formulas)
    return assign_folds(clusters, options.fractions, options.seed)


def _row(entry: Entry, molecule: DescribedMolecule, fold: str) -> dict[str, object]:
    spectrum = entry.spectrum
    relative = spectrum.intensities / spectrum.intensities.max()
    return {
        "identifier": spectrum.identifier,
        "mzs": ",".join(f"{value:.5f}" for value in spectrum.mz),
        "intensities": ",".join(f"{value:.5g}" for value in relative),
        "smiles": molecule.smiles,
        "inchikey": molecule.block,
        "formula": molecule.formula,
        "parent_mass": f"{molecule.mass:.6f}",
        "precursor_mz": f"{spectrum.precursor_mz:.6f}",
        "adduct": spectrum.adduct,
        "instrument_type": spectrum.metadata.get("instrument_type", ""),
        "collision_energy": spectrum.metadata.get("collision_energy", ""),
        "fold": fold,
        "simulation_challenge": "False",
    }


def _sources(steady: SteadySources, database: Database | None) -> list[dict[str, str]]:
    """What the set was made of: files with their hashes, and a database that was given."""
    sources = [{"file": path.name, "sha256": sha256} for path, sha256 in steady.hashes.items()]
    if database is not None:
        sha256 = database.manifest["files"][MOLECULES]["sha256"]
        sources.append({"file": f"{database.folder.name}/{MOLECULES}", "sha256": sha256})
    return sources


def _counts(
    annotated: Annotated,
    folds: Sequence[str],
    fractions: Mapping[str, float],
    sizes: Mapping[str, Sequence[int]],
    set_aside: int,
) -> dict[str, Any]:
    spectra_of = Counter(folds[entry.molecule] for entry in annotated.entries)
    molecules_of = Counter(folds)
    return {
        "spectra": len(annotated.entries),
        "molecules": len(annotated.molecules),
        "spectra_by_fold": {fold: spectra_of[fold] for fold in fractions},
        "molecules_by_fold": {fold: molecules_of[fold] for fold in fractions},
        "adducts_inferred": sum(entry.is_inferred for entry in annotated.entries),
        "set_aside": set_aside,
        "candidates": {
            setting: {
                "median": float(np.median(lengths)),
                "largest": max(lengths),
                "molecules_alone": sum(length == 1 for length in lengths),
            }
            for setting, lengths in sizes.items()
        },
    }
