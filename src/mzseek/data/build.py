"""`data build`: a data set in MassSpecGym's form from any library of annotated spectra."""

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek import __version__
from mzseek.adducts import parse_adduct
from mzseek.chem.fingerprints import molecule_rows, rows_to_csr
from mzseek.chem.molecule import block_of, parse_inchi, parse_molecule
from mzseek.chem.standardise import standardise
from mzseek.data.dataset import write_candidates, write_rejects, write_table
from mzseek.data.pool import MoleculePool, read_pool
from mzseek.data.progress import Progress, silent
from mzseek.data.split import assign_folds, join_clusters, structure_clusters
from mzseek.errors import AdductError, DatasetError, MoleculeError
from mzseek.files import atomic_directory, content_hash
from mzseek.spectra import Spectrum, read_spectra


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


@dataclass
class _Entry:
    """A usable spectrum and the molecule it belongs to."""

    spectrum: Spectrum
    molecule: int


@dataclass(frozen=True)
class _Form:
    """A molecule in its standard form."""

    smiles: str
    formula: str
    mass: float
    block: str


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

    Spectra need a structure and an adduct that agree with their precursor. Molecules are
    standardised, and those with one first InChIKey block are one molecule. Candidates come from
    ``molecules``, standardised alike, so that their form gives nothing away; the truth is always
    among them, at a place drawn from the seed.

    Returns
    -------
    dict
        The manifest that is also written into the folder.
    """
    options = options or BuildOptions()
    if out.exists() and any(out.iterdir()) and not (out / "manifest.json").exists():
        raise DatasetError(f"{out}: exists and is no data set; name another --out")
    rejects: list[tuple[str, str]] = []

    def report(where: str, reason: str) -> None:
        rejects.append((where, reason))

    entries, forms = _read_libraries(libraries, options, report, progress)
    if not entries:
        first = f" (the first set aside: {rejects[0][0]}: {rejects[0][1]})" if rejects else ""
        raise DatasetError(f"no library holds a usable annotated spectrum{first}")
    folds = _split(forms, options, progress)
    pool = read_pool(molecules, report, jobs=jobs, progress=progress)
    lists = _draw_candidates(forms, pool, options, report, jobs, progress)
    manifest = _manifest(libraries, molecules, options, entries, forms, folds, lists, rejects)
    with atomic_directory(out) as folder:
        write_table(
            folder / "spectra.tsv.gz",
            (_row(entry, forms[entry.molecule], folds[entry.molecule]) for entry in entries),
        )
        for setting, by_molecule in lists.items():
            write_candidates(folder / f"candidates_{setting}.json.gz", by_molecule)
        write_rejects(folder / "rejects.tsv", rejects)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return manifest


def _read_libraries(
    libraries: Sequence[Path], options: BuildOptions, report: Any, progress: Progress
) -> tuple[list[_Entry], list[_Form]]:
    entries: list[_Entry] = []
    forms: list[_Form] = []
    place_of: dict[str, int] = {}
    identifiers: set[str] = set()
    seen: dict[tuple[object, ...], str] = {}
    known: dict[str, _Form | str] = {}
    for library in libraries:
        for spectrum in read_spectra(library, report):
            where = f"{library}: {spectrum.identifier}"
            structure = spectrum.metadata.get("smiles") or spectrum.metadata.get("inchi") or ""
            if structure not in known:
                known[structure] = _standard_form(structure, options.keep_stereo)
            form = known[structure]
            reason = form if isinstance(form, str) else _conflict(spectrum, form, options)
            if reason is None and spectrum.identifier in identifiers:
                reason = "identifier was used by an earlier spectrum"
            if reason is not None:
                report(where, reason)
                continue
            assert isinstance(form, _Form)
            key = _duplicate_key(spectrum, form)
            if key in seen:
                report(where, f"is a duplicate of {seen[key]}")
                continue
            seen[key] = spectrum.identifier
            identifiers.add(spectrum.identifier)
            if form.block not in place_of:
                place_of[form.block] = len(forms)
                forms.append(form)
            entries.append(_Entry(spectrum, place_of[form.block]))
            if len(entries) % 500 == 0:
                progress("spectra", len(entries))
    progress("spectra", len(entries))
    return entries, forms


def _standard_form(structure: str, keep_stereo: bool) -> _Form | str:
    """Standard form of a SMILES or InChI, or the reason why it has none."""
    if not structure:
        return "has no structure (SMILES or InChI)"
    try:
        read = parse_inchi if structure.startswith("InChI=") else parse_molecule
        return _form(standardise(read(structure), keep_stereo=keep_stereo))
    except MoleculeError as error:
        return str(error)


def _form(molecule: Mol) -> _Form:
    block = block_of(molecule)
    if not block:
        raise MoleculeError("has no InChIKey")
    return _Form(
        Chem.MolToSmiles(molecule),
        rdMolDescriptors.CalcMolFormula(molecule),
        rdMolDescriptors.CalcExactMolWt(molecule),
        block,
    )


def _conflict(spectrum: Spectrum, form: _Form, options: BuildOptions) -> str | None:
    if spectrum.adduct is None:
        return "has no (single) adduct"
    try:
        expected = parse_adduct(spectrum.adduct).precursor_mz(form.mass)
    except AdductError as error:
        return str(error)
    ppm = abs(spectrum.precursor_mz - expected) / expected * 1e6
    if ppm > options.precursor_ppm:
        return (
            f"precursor m/z {spectrum.precursor_mz:.4f} is {ppm:.0f} ppm from {expected:.4f}, "
            f"which {form.smiles} has as {spectrum.adduct}"
        )
    return None


def _duplicate_key(spectrum: Spectrum, form: _Form) -> tuple[object, ...]:
    """Equal for spectra of one measurement, entered twice or rescaled."""
    relative = np.round(spectrum.intensities / spectrum.intensities.max(), 2)
    strong = relative > 0
    return (
        form.block,
        spectrum.adduct,
        spectrum.metadata.get("collision_energy"),
        np.round(spectrum.mz[strong], 2).tobytes(),
        relative[strong].tobytes(),
    )


def _split(forms: list[_Form], options: BuildOptions, progress: Progress) -> list[str]:
    progress("splitting", 0)
    molecules = [parse_molecule(form.smiles) for form in forms]
    rows = rows_to_csr(molecule_rows(molecules, "morgan2"), 4096)
    clusters = structure_clusters(rows, options.similarity)
    if options.keep_formulas_together:
        formulas = np.unique([form.formula for form in forms], return_inverse=True)[1]
        clusters = join_clusters(clusters, formulas)
    return assign_folds(clusters, options.fractions, options.seed)


def _draw_candidates(
    forms: list[_Form],
    pool: MoleculePool,
    options: BuildOptions,
    report: Any,
    jobs: int | None,
    progress: Progress,
) -> dict[str, dict[str, list[str]]]:
    """Candidate lists by mass and by formula, in standard form."""
    drawn: dict[str, list[npt.NDArray[np.int64]]] = {"mass": [], "formula": []}
    for form in forms:
        rng = np.random.default_rng([options.seed, zlib.crc32(form.block.encode())])
        for setting, found in (
            ("mass", pool.by_mass(form.mass, options.candidate_ppm)),
            ("formula", pool.by_formula(form.formula)),
        ):
            # A few more than needed: some turn out to be the truth, or each other, once
            # standardised.
            drawn[setting].append(rng.permutation(found)[: options.max_candidates * 5 // 4 + 8])
    needed = np.unique(np.concatenate([np.empty(0, np.int64), *drawn["mass"], *drawn["formula"]]))
    standard = _standardise_pool(pool, needed, options, report, jobs, progress)
    lists: dict[str, dict[str, list[str]]] = {}
    for setting, draws in drawn.items():
        lists[setting] = {
            form.smiles: _one_list(form, setting, [standard.get(int(i)) for i in draw], options)
            for form, draw in zip(forms, draws, strict=True)
        }
    return lists


def _one_list(
    truth: _Form, setting: str, drawn: Sequence[_Form | None], options: BuildOptions
) -> list[str]:
    blocks = {truth.block}
    chosen: list[str] = []
    for form in drawn:
        if form is None or form.block in blocks or len(chosen) == options.max_candidates - 1:
            continue
        fits = (
            form.formula == truth.formula
            if setting == "formula"
            else abs(form.mass - truth.mass) <= truth.mass * options.candidate_ppm * 1e-6
        )
        if fits:  # removing a counter-ion changes the mass
            blocks.add(form.block)
            chosen.append(form.smiles)
    rng = np.random.default_rng([options.seed, zlib.crc32(truth.block.encode()), len(setting)])
    chosen.insert(int(rng.integers(len(chosen) + 1)), truth.smiles)
    return chosen


def _standardise_pool(
    pool: MoleculePool,
    needed: npt.NDArray[np.int64],
    options: BuildOptions,
    report: Any,
    jobs: int | None,
    progress: Progress,
) -> dict[int, _Form]:
    batches = [needed[start : start + 1000] for start in range(0, len(needed), 1000)]
    workers = max(1, min(jobs or joblib.cpu_count(), len(batches)))
    results = joblib.Parallel(n_jobs=workers, return_as="generator")(
        joblib.delayed(_standard_forms)([pool.smiles[i] for i in batch], options.keep_stereo)
        for batch in batches
    )
    standard: dict[int, _Form] = {}
    for batch, forms in zip(batches, results, strict=True):
        for place, form in zip(batch, forms, strict=True):
            if isinstance(form, str):
                report(f"molecule pool: {pool.smiles[place][:60]}", form)
            else:
                standard[int(place)] = form
        progress("candidates", len(standard), len(needed))
    return standard


def _standard_forms(smiles: list[str], keep_stereo: bool) -> list[_Form | str]:
    return [_standard_form(text, keep_stereo) for text in smiles]


def _row(entry: _Entry, form: _Form, fold: str) -> dict[str, object]:
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
    libraries: Sequence[Path],
    molecules: Path,
    options: BuildOptions,
    entries: list[_Entry],
    forms: list[_Form],
    folds: list[str],
    lists: dict[str, dict[str, list[str]]],
    rejects: list[tuple[str, str]],
) -> dict[str, Any]:
    files = [path for path in (*libraries, molecules) if path.is_file()]
    return {
        "made_by": f"mzseek {__version__} data build",
        "options": asdict(options),
        "sources": {path.name: content_hash(path) for path in files},
        "counts": {
            "spectra": len(entries),
            "molecules": len(forms),
            "spectra_by_fold": dict(Counter(folds[entry.molecule] for entry in entries)),
            "molecules_by_fold": dict(Counter(folds)),
            "set_aside": len(rejects),
            "mean_candidates": {
                setting: round(float(np.mean([len(c) for c in by_molecule.values()])), 1)
                for setting, by_molecule in lists.items()
            },
        },
    }
