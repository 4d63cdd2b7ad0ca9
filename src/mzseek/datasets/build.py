"""`data build`: a data set in MassSpecGym's form from any library of annotated spectra."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.chem.fingerprinting import molecule_rows, rows_to_csr
from mzseek.chem.molecule import parse_molecule
from mzseek.datasets.annotated import Entry, read_annotated, why_nothing
from mzseek.datasets.draw import DrawOptions, draw_candidates
from mzseek.datasets.forms import Form
from mzseek.datasets.pool import read_pool
from mzseek.datasets.split import assign_folds, join_clusters, structure_clusters
from mzseek.datasets.table import KIND, MANIFEST, write_candidates, write_rejects, write_table
from mzseek.errors import DatasetError
from mzseek.files import atomic_directory, sole_writer
from mzseek.files.owned import ensure_replaceable
from mzseek.files.steady import SteadySources
from mzseek.version import __version__
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


def build_dataset(
    libraries: Sequence[Path],
    molecules: Path,
    out: Path,
    options: BuildOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Read libraries, merge duplicates, split by structure, draw candidates, write the set.

    Spectra need a structure and an adduct that agree with their precursor; an adduct that is not
    stated is inferred where exactly one fits. Molecules are standardised, and those with one first
    InChIKey block and one mass (isotopes!) are one molecule. Candidates come from ``molecules``,
    standardised alike, lest their form give the truth away; the truth is always among them, at a
    place drawn from the seed.

    Returns
    -------
    dict
        The manifest that is also written into the folder.

    Raises
    ------
    DatasetError, InputError
        Nothing usable could be read, or a source has changed while it was read.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    options = options or BuildOptions()
    with sole_writer(out, "building a data set"):
        ensure_replaceable(out, KIND, [*libraries, molecules])
        steady = SteadySources([*libraries, molecules])
        rejects: list[tuple[str, str]] = []

        def report(where: str, reason: str) -> None:
            rejects.append((where, reason))

        found = read_annotated(
            libraries,
            report,
            precursor_ppm=options.precursor_ppm,
            keep_stereo=options.keep_stereo,
            progress=progress,
        )
        entries, forms = found.entries, found.forms
        if not entries:
            raise DatasetError(why_nothing(libraries, found, rejects))
        folds = _split(forms, options, progress)
        pool = read_pool(molecules, report, jobs=jobs, progress=progress)
        drawing = DrawOptions(
            options.seed, options.candidate_ppm, options.max_candidates, options.keep_stereo
        )
        lists = draw_candidates(forms, pool, drawing, report, jobs, progress)
        manifest = _manifest(steady, options, entries, forms, folds, lists, rejects)
        with atomic_directory(out) as folder:
            write_table(
                folder / "spectra.tsv.gz",
                (_row(entry, forms[entry.molecule], folds[entry.molecule]) for entry in entries),
            )
            for setting, by_molecule in lists.items():
                write_candidates(folder / f"candidates_{setting}.json.gz", by_molecule)
            write_rejects(folder / "rejects.tsv", rejects)
            signed = MANIFEST.write(folder, manifest)
            steady.ensure_unchanged()
    return signed


def _split(forms: list[Form], options: BuildOptions, progress: Progress) -> list[str]:
    progress("splitting", 0)
    molecules = [parse_molecule(form.smiles) for form in forms]
    rows = rows_to_csr(molecule_rows(molecules, "morgan2"), 4096)
    clusters = structure_clusters(rows, options.similarity)
    # A labelled molecule and its plain form share a skeleton, if not a fingerprint.
    skeletons = np.unique([form.block for form in forms], return_inverse=True)[1]
    clusters = join_clusters(clusters, skeletons)
    if options.keep_formulas_together:
        formulas = np.unique([form.formula for form in forms], return_inverse=True)[1]
        clusters = join_clusters(clusters, formulas)
    return assign_folds(clusters, options.fractions, options.seed)


def _row(entry: Entry, form: Form, fold: str) -> dict[str, object]:
    spectrum = entry.spectrum
    relative = spectrum.intensities / spectrum.intensities.max()
    return {
        "identifier": spectrum.identifier,
        "mzs": ",".join(f"{value:.5f}" for value in spectrum.mz),
        "intensities": ",".join(f"{value:.5g}" for value in relative),
        "smiles": form.smiles,
        "inchikey": form.block,
        "formula": form.formula,
        "parent_mass": f"{form.mass:.6f}",
        "precursor_mz": f"{spectrum.precursor_mz:.6f}",
        "adduct": spectrum.adduct,
        "instrument_type": spectrum.metadata.get("instrument_type", ""),
        "collision_energy": spectrum.metadata.get("collision_energy", ""),
        "fold": fold,
        "simulation_challenge": "False",
    }


def _manifest(
    steady: SteadySources,
    options: BuildOptions,
    entries: list[Entry],
    forms: list[Form],
    folds: list[str],
    lists: dict[str, dict[str, list[str]]],
    rejects: list[tuple[str, str]],
) -> dict[str, Any]:
    spectra_of = Counter(folds[entry.molecule] for entry in entries)
    return {
        "made_by": f"mzseek {__version__} data build",
        "options": asdict(options),
        "sources": [
            {"file": path.name, "sha256": sha256} for path, sha256 in steady.hashes.items()
        ],
        "counts": {
            "spectra": len(entries),
            "molecules": len(forms),
            "spectra_by_fold": {f: spectra_of[f] for f in options.fractions},
            "molecules_by_fold": {f: folds.count(f) for f in options.fractions},
            "adducts_inferred": sum(entry.is_inferred for entry in entries),
            "set_aside": len(rejects),
            "candidates": {
                setting: {
                    "median": float(np.median([len(c) for c in by_molecule.values()])),
                    "largest": max(len(c) for c in by_molecule.values()),
                    "molecules_alone": sum(len(c) == 1 for c in by_molecule.values()),
                }
                for setting, by_molecule in lists.items()
            },
        },
    }
