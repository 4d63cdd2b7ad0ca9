"""Fit the model of compound classes of a bundle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from mzseek.bundle.bundle import Bundle
from mzseek.bundle.write import rewrite_classes
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.classes.formula import ELEMENTS, composition
from mzseek.classes.model import (
    MAX_CANDIDATES,
    SOURCES,
    ClassModel,
    Keys,
    fit_weights,
    reference_votes,
)
from mzseek.classes.structure import KINDS, fit_structure_model, side_by_side
from mzseek.classes.taxonomy import LEVELS, Floats, Ints, Lineage, Taxonomy, parse_lineage
from mzseek.core.errors import BundleError, InputError, Reason
from mzseek.evidence.analogs import Regression
from mzseek.evidence.fitting import StructureGroups
from mzseek.evidence.queries import Molecules, ReferenceSpectra
from mzseek.io import StrPath, open_source, stable_hash
from mzseek.io.skipped import Report, SkippedGroups
from mzseek.io.sources import content_hash
from mzseek.io.text_tables import format_names, normalise_name, open_table
from mzseek.library.library import Index
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.similarity.packed import packed_tanimoto

MIN_MOLECULES = 10  # labelled ones of a class, for it to be in the tree
NEAR = 0.6  # Tanimoto similarity from which on a labelled molecule is of the same cluster
PPM = 10.0  # of the mass of isomers
ANALOGS = 10  # reference spectra that vote
_GROUPS = 5
_RIDGE, _BIN = 1.0, 0.01  # of the regression; required by the index, which has its own bins
_REQUIRED = ("inchikey", "chemont")
_SOURCE = (
    "Lineages are facts that the records of MassBank (massbank.eu) state about their molecules. "
    "The names of classes are those of ChemOnt (Djoumbou Feunang et al., J. Cheminform. 8:61, "
    "2016)."
)


def read_lineages(path: StrPath, report: Report) -> dict[str, Lineage]:
    """Read the lineages that a table of known molecules states.

    Parameters
    ----------
    path : path
        Columns ``inchikey`` and ``chemont``: "Organic compounds; Benzenoids; …".
    report : callable
        Gets where and why for each row that is skipped.

    Raises
    ------
    InputError
        The file cannot be read, or is no such table.
    """
    source = open_source(path)
    table = open_table(source, lambda names: set(_REQUIRED) <= set(map(normalise_name, names)))
    if table is None:
        raise InputError(path, f"is no table of molecules with {format_names(_REQUIRED)}")
    columns = [normalise_name(name) for name in table.names]
    lineages = {}

    def skip(line: int, why: str) -> None:
        report(f"{source.name}: line {line}", why)

    for number, cells in table.whole_rows(skip):
        row = dict(zip(columns, map(str.strip, cells), strict=True))
        if len(row["inchikey"]) < BLOCK_LENGTH:
            skip(number, Reason("has no InChIKey", "no-molecule"))
        elif lineage := parse_lineage(row["chemont"]):  # others are in no class
            lineages[row["inchikey"][:BLOCK_LENGTH].upper()] = lineage
    return lineages


def add_classes(
    bundle: Bundle,
    out: StrPath,
    known: StrPath,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Fit the model of compound classes, and write the bundle with it.

    Parameters
    ----------
    bundle : Bundle
    out : path
        Folder to write; that of ``bundle`` itself is replaced.
    known : path
        Table of molecules with their lineages, see `read_lineages`.
    jobs : int, optional
        Processes that compute fingerprints.

    Raises
    ------
    BundleError, InputError
        The table cannot be read or names no bundled molecule, or the folder cannot be replaced.
    """
    skipped = SkippedGroups()
    lineages = read_lineages(known, skipped)
    for group in skipped.by_count():
        say(f"{group.count:,} rows skipped: {group.reason} (first: {group.where})")
    model = fit_classes(bundle, lineages, jobs=jobs, progress=progress)
    metadata = {
        **model.metadata,
        "source": _SOURCE,
        "table": {"name": Path(known).name, "sha256": content_hash(Path(known))},
    }
    say(
        f"{len(model.keys):,} labelled molecules, "
        + ", ".join(
            f"{len(nodes):,} {name}"
            for nodes, name in zip(
                model.tree.nodes, ("superclasses", "classes", "subclasses"), strict=True
            )
        )
    )
    return rewrite_classes(bundle, out, replace(model, metadata=metadata), [known])


def fit_classes(
    bundle: Bundle,
    lineages: Mapping[str, Lineage],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> ClassModel:
    """Fit the classifier of structures on labelled molecules, and the weights of the sources.

    Weights are fitted on one spectrum of each reference molecule and ion mode, cross-fitted: the
    molecule, its cluster, and labelled molecules near to it do not vote for its class.

    Parameters
    ----------
    bundle : Bundle
        Labelled molecules are those of its database; reference spectra those of its library.
    lineages : mapping of str to tuple
        By first InChIKey block.
    """
    stored = bundle.molecules
    keys = sorted(key for key in lineages if key in stored.rows_by_key)
    if not keys:
        raise BundleError("no molecule of the bundle has a lineage, expected some")
    rows = np.array([stored.rows_by_key[key][0] for key in keys])
    tree = Taxonomy.of([lineages[key] for key in keys], MIN_MOLECULES)
    lineage = np.array([tree.index(lineages[key]) for key in keys])
    molecules = Molecules(stored.smiles, KINDS[0], jobs=jobs)
    molecules.compute(KINDS, progress=progress)
    everything = np.arange(len(stored))
    bits = side_by_side({kind: molecules.fingerprints(everything, kind) for kind in KINDS})
    progress("classes of structures", 0, None)
    formulas = stored.table["formula"].to_pylist()
    none = (0,) * len(ELEMENTS)
    model = ClassModel(
        tree,
        np.array(keys, f"S{BLOCK_LENGTH}"),
        lineage,
        np.array([composition(formulas[row]) or none for row in rows.tolist()], np.int64),
        fit_structure_model(tree, csr_array(bits[rows]), lineage),
        np.zeros((len(LEVELS), len(SOURCES))),
    )
    progress("weights of classes", 0, None)
    queries = _one_spectrum_each(bundle, model)
    if not len(queries.spectra):
        raise BundleError("no reference spectrum is of a molecule with a lineage, expected some")
    of_library = np.unique(queries.keys)
    first = molecules.fingerprints(rows[np.searchsorted(model.keys, of_library)], KINDS[0])
    groups = StructureGroups.of(of_library, first, _GROUPS)
    own = rows[np.searchsorted(model.keys, queries.keys)]
    near = packed_tanimoto(molecules.words(KINDS[0])[own], molecules.words(KINDS[0])[rows]) >= NEAR
    votes = [
        np.array([
            model.formula_votes(formulas[row], is_near)
            for row, is_near in zip(own.tolist(), near, strict=True)
        ]),
        _isomer_votes(bundle, model, bits, own, [set(rows[is_near].tolist()) for is_near in near]),
        *_spectral_votes(bundle, model, queries, groups),
    ]  # fmt: skip
    truth = model.find([key.decode() for key in queries.keys.tolist()])
    # Every cluster counts once: an unknown molecule rarely belongs to one of the largest.
    cluster = groups.cluster[groups.indices(queries.keys)]
    weights = fit_weights(tree, votes, model.prior, truth, 1.0 / np.bincount(cluster)[cluster])
    fitted_on = {"queries": len(truth), "molecules": len(groups), "labelled": len(keys)}
    return replace(model, weights=weights, metadata={"fitted_on": fitted_on})


@dataclass(frozen=True, eq=False)
class _Queries:
    """Reference spectra of labelled molecules, one of each molecule and ion mode."""

    spectra: Ints  # of the library
    keys: Keys  # first InChIKey block of each one's molecule


def _one_spectrum_each(bundle: Bundle, model: ClassModel) -> _Queries:
    """Choose the spectra by a hash of their identifiers."""
    library = bundle.library
    names = [key[:BLOCK_LENGTH] for key in library.molecules["inchikey"].to_pylist()]
    known = model.find(names) >= 0
    molecule_of = np.asarray(library.molecule_of, np.int64)
    chosen: dict[tuple[str, bool], tuple[int, int]] = {}
    identifiers = library.records["identifier"].to_pylist()
    modes = np.asarray(library.ions.modes)
    for spectrum in np.flatnonzero(known[molecule_of]).tolist():
        group = names[int(molecule_of[spectrum])], bool(modes[spectrum] < 0)
        lot = stable_hash(identifiers[spectrum].encode()), spectrum
        chosen[group] = min(chosen.get(group, lot), lot)
    ordered = sorted(chosen.items())
    return _Queries(
        np.array([spectrum for _, (_, spectrum) in ordered], np.int64),
        np.array([name for (name, _), _ in ordered], model.keys.dtype),
    )


def _isomer_votes(
    bundle: Bundle, model: ClassModel, bits: csr_array, own: Ints, near: Sequence[set[int]]
) -> Floats:
    """Return the classes of bundled isomers, those near the molecule left out."""
    masses = bundle.molecules.masses
    keys = bundle.molecules.table["key"].to_pylist()
    lineages = model.of_structures(keys, bits)
    votes = np.zeros((len(own), len(model.tree)))
    for at, row in enumerate(own.tolist()):
        width = masses[row] * PPM * 1e-6
        low, high = np.searchsorted(masses, [masses[row] - width, masses[row] + width])
        isomers = [
            other
            for other in range(int(low), int(high))
            if keys[other] != keys[row] and other not in near[at]
        ]
        votes[at] = lineages[isomers[:MAX_CANDIDATES]].sum(0)
    return votes


def _spectral_votes(
    bundle: Bundle, model: ClassModel, queries: _Queries, groups: StructureGroups
) -> tuple[Floats, Floats]:
    """Return votes of the regression and of the nearest references, whole clusters left out."""
    library = bundle.library
    names = [key[:BLOCK_LENGTH] for key in library.molecules["inchikey"].to_pylist()]
    molecule_of = np.asarray(library.molecule_of, np.int64)
    lineage = model.find(names)
    labelled = lineage >= 0
    of_molecule = np.zeros((len(names), len(model.tree)))
    of_molecule[labelled, lineage[labelled]] = 1.0
    by_lineage = csr_array(of_molecule.T)
    references = ReferenceSpectra(
        PeakLists._make(map(np.array, library.peaks)),
        PrecursorIons._make(map(np.array, library.ions)),
        molecule_of, (), np.array(names, model.keys.dtype),
    )  # fmt: skip
    group_of = dict(zip(groups.inchikey14.tolist(), groups.group.tolist(), strict=True))
    of_spectrum = np.array([group_of.get(name.encode(), -1) for name in names])[molecule_of]
    regressed = np.zeros((len(queries.spectra), len(model.tree)))
    nearest = np.zeros_like(regressed)
    for group in range(_GROUPS):
        inside = np.flatnonzero(of_spectrum[queries.spectra] == group)
        others = references.only(np.flatnonzero((of_spectrum != group) & labelled[molecule_of]))
        asked = references.only(queries.spectra[inside])
        if not len(inside) or not len(others):
            continue
        regression = Regression.of(others.peaks, others.ions, others.molecule, _RIDGE)
        weights = regression.by_molecule(asked.peaks, asked.ions, len(names))
        # A sparse product: that of dense matrices adds in an order that depends on threads.
        regressed[inside] = np.asarray(by_lineage @ weights).T
        index = Index("analog", others.peaks, others.ions, _BIN)
        every = np.arange(len(others))
        best = index.search(asked.peaks, asked.ions, ANALOGS, every, np.ones(len(every), np.bool_))
        for row, records, scores in zip(inside.tolist(), best.records, best.scores, strict=True):
            molecules, first = np.unique(others.molecule[records[records >= 0]], return_index=True)
            similarities = scores[records >= 0][first]  # the best comes first
            nearest[row] = reference_votes(of_molecule[molecules], similarities)
    return regressed, nearest
