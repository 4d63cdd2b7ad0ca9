"""Export a fitted run as a bundle, with its card."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from mzseek.annotation.confidence import MODES, Confidence
from mzseek.bundle.build_molecules import LIBRARY, MoleculeLists, bundled_molecules
from mzseek.bundle.bundle import KIND, MAX_PEAKS, Bundle, BundledPrior
from mzseek.bundle.fit_confidence import fit_confidence
from mzseek.bundle.fitting import (
    Details,
    References,
    fit_prior,
    measured,
    reference_spectra,
    references_from,
    refit_channels,
)
from mzseek.bundle.molecules import BundledMolecules
from mzseek.bundle.write import is_allowed, licence_text, rewrite_molecules, write_bundle
from mzseek.chem.identifiers import link
from mzseek.chem.molecules import DescribedMolecule
from mzseek.core.errors import BundleError, LibraryError
from mzseek.core.registry import FOLDS
from mzseek.evidence.fitting import FITTED_ON, FitOptions
from mzseek.evidence.model import EvidenceModel
from mzseek.io import StrPath
from mzseek.io.manifest import ensure_replaceable
from mzseek.io.skipped import SkippedGroups
from mzseek.io.sources import content_hash
from mzseek.library import Library
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.runs.run import Run

_SMALL = "The bundled database is small: {:,} molecules."
_SIZE = re.compile(r"The .* is small: [\d,]+ molecules\.")
_MODE = {1: "positive", -1: "negative", 0: "unknown"}


def card_of(
    model: EvidenceModel,
    confidence: Confidence,
    references: References,
    molecules: BundledMolecules,
    *,
    measured: Mapping[str, Any],
    made_of: Mapping[str, Any],
    folds: Sequence[str],
    max_peaks: int,
    prior: tuple[BundledPrior, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the model card of a bundle, as plain data.

    Parameters
    ----------
    measured : mapping
        From `mzseek.bundle.fitting.measured`.
    made_of : mapping
        Sources: names and SHA-256, spectra kept and left out by licence, options.
    folds : sequence of str
        That the channels in the bundle are fitted on.
    prior : BundledPrior and mapping, optional
        That may be applied to annotations, and its performance (`fit_prior`).
    """
    modes = confidence.modes.items()
    limits = [
        "Ions and instruments that are not listed above were not tried.",
        "Probabilities were fitted on molecules of other structures than the channels learned "
        "from, with lists of equal mass; they hold for molecules and lists like those, and they "
        "assume that the molecule is among the candidates.",
        "Whether the molecule is among the candidates was fitted on lists with and without their "
        "truth, in equal numbers: say how often yours lack it.",
        _SMALL.format(len(molecules)),
    ]
    if "test" in folds:
        limits.insert(
            0,
            "The numbers on this card were measured with channels that had learned from the train "
            "fold alone. The channels in this bundle then learned once more, from all folds; the "
            "ranker and confidence stayed as they were, cross-fitted.",
        )
    limits += [
        f"{mode} mode has too few molecules to fit on: its numbers are those of both modes."
        for mode, numbers in modes
        if not numbers.own
    ]
    return {
        "made_of": dict(made_of),
        "channels": [channel.label for channel in model.channels],
        "learned_from": list(folds),
        "library": _library(references, max_peaks),
        "database": _database(molecules),
        "measured": dict(measured),
        "in_database": {
            mode: None
            if numbers.in_database is None
            else {"auc": dict(numbers.in_database.auc), "error": numbers.in_database.error}
            for mode, numbers in modes
        },
        "fitted_on": {
            mode: {"molecules": numbers.molecules, "own": numbers.own} for mode, numbers in modes
        },
        "prior": None
        if prior is None
        else {
            "weights": dict(prior[0].weights),
            "without": {
                mode: {name: measured[mode][name] for name in numbers}
                for mode, numbers in prior[1].items()
            },
            "with": dict(prior[1]),
        },
        "limits": limits,
        "licence": "CC BY-SA 4.0; every record has its own, see LICENCE.md",
    }


def _library(references: References, max_peaks: int) -> dict[str, Any]:
    records = references.records.to_pydict()
    modes = [_MODE[int(mode)] for mode in references.ions.modes]
    by_mode: dict[str, dict[str, Any]] = {}
    for mode in dict.fromkeys([*MODES, *modes]):
        inside = [number for number, ion_mode in enumerate(modes) if ion_mode == mode]
        if inside:
            by_mode[mode] = {
                "spectra": len(inside),
                "molecules": len({int(references.molecule_of[number]) for number in inside}),
                "ions": _frequencies(records["adduct"][number] for number in inside),
                "instruments": _frequencies(
                    records["instrument_type"][number] for number in inside
                ),
            }
    return {
        "spectra": len(modes),
        "molecules": len(references.molecules),
        "peaks": len(references.peaks.values),
        "most_peaks": max_peaks,
        "modes": by_mode,
        "contributors": _frequencies(records["contributor"]),
        "licences": _frequencies(records["license"]),
    }


def _database(molecules: BundledMolecules) -> dict[str, Any]:
    sources = Counter(name for values in molecules.table["sources"].to_pylist() for name in values)
    identifiers = [values for values in molecules.table["identifiers"].to_pylist() if values]
    return {
        "molecules": len(molecules),
        "sources": dict(sorted(sources.items())),
        "named": sum(1 for names in molecules.table["names"].to_pylist() if names),
        "identified": len(identifiers),
        "linked": sum(1 for values in identifiers if any(map(link, values))),
    }


def _frequencies(values: Any) -> dict[str, int]:
    """Count values, the most frequent first; an empty one is "not stated"."""
    counts = Counter(value or "not stated" for value in values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True)
class ExportOptions:
    """What goes into a bundle besides a run.

    Attributes
    ----------
    details : mapping of str to mapping
        Metadata of spectra by identifier: contributor, licence, instrument, energy, source.
    library : path or None
        A library to ship in the place of the spectra that channels were fitted on.
    lists : MoleculeLists
        Where the molecules of the bundled database come from, besides those of the library.
    refit : bool
        Fit the channels once more, on all folds.
    max_peaks : int
        Of a reference spectrum.
    made_of : mapping
        Sources, for the card.
    """

    details: Details = field(default_factory=dict)
    library: StrPath | None = None
    lists: MoleculeLists = field(default_factory=MoleculeLists)
    refit: bool = False
    max_peaks: int = MAX_PEAKS
    made_of: Mapping[str, Any] = field(default_factory=dict)


def export_run(
    run: Run,
    out: StrPath,
    options: ExportOptions | None = None,
    *,
    data: StrPath | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Make a bundle of a fitted run; confidence is fitted on its predictions of validation.

    Parameters
    ----------
    run : Run
    out : path
        Folder to make; a bundle that is there is replaced.
    options : ExportOptions, optional
    data : path, optional
        The prepared folder, if it is no longer where it was.
    jobs : int, optional
        Processes that enumerate fragments.

    Raises
    ------
    BundleError, EvidenceError, RunError, DatasetError
        The run was trained and not fitted, lacks what is needed, or the folder cannot be replaced.
    """
    chosen = options or ExportOptions()
    if not 1 <= chosen.max_peaks <= 10_000:
        raise BundleError(f"peaks to keep are {chosen.max_peaks}, expected 1 to 10,000")
    fitted, prepared, how = EvidenceModel.open(run), run.open_data(data), fit_options(run)
    libraries = [] if chosen.library is None else [Path(chosen.library)]
    sources = [run.folder, prepared.folder, *chosen.lists.files, *libraries]
    ensure_replaceable(Path(out), KIND, list(map(Path, sources)))
    train = references_from(
        prepared, reference_spectra(prepared, [FITTED_ON]), chosen.details, chosen.max_peaks
    )
    folds: Sequence[str] = (FITTED_ON,)
    model, shown = fitted, train
    if chosen.refit:
        say("Channels learn once more, from all folds.")
        folds = FOLDS
        model = refit_channels(
            fitted, prepared, how, max_peaks=chosen.max_peaks, jobs=jobs, progress=progress
        )
        spectra = reference_spectra(prepared, folds)
        shown = references_from(prepared, spectra, chosen.details, chosen.max_peaks)
    if chosen.library is not None:
        library = Library.open(chosen.library)
        library.check()
        shown = References.of_library(library)
        if not len(shown.records):
            raise LibraryError(f"{chosen.library}: holds no spectra")
    molecules = _molecules(shown.molecules, chosen.lists, jobs, progress, say)
    say("Confidence is fitted on validation, cross-fitted.")
    confidence = fit_confidence(
        run, fitted, prepared, train.library(prepared.folder), shown.features_by_ion(),
        how.candidates, molecules, progress=progress,
    )  # fmt: skip
    say("A prior learns beside them, and is weighed on validation.")
    prior = fit_prior(run, prepared, confidence, how, folds, jobs=jobs, progress=progress)
    made_of = {
        **chosen.made_of,
        "molecule_lists": _hashes(chosen.lists.files),
        "options": dict(run.description.options),
    }
    card = card_of(
        model, confidence, shown, molecules,
        measured=measured(run, prepared, confidence, how.candidates), made_of=made_of,
        folds=folds, max_peaks=chosen.max_peaks, prior=prior,
    )  # fmt: skip
    return write_bundle(
        out, model, confidence, shown, molecules,
        fingerprint=str(run.metadata["data"]["fingerprint"]), card=card,
        licence=_licence(shown.records, molecules), prior=None if prior is None else prior[0],
        sources=sources, max_peaks=chosen.max_peaks,
    )  # fmt: skip


def fit_options(run: Run) -> FitOptions:
    """Return the options that a run was fitted with; missing ones have their defaults.

    Runs that do not state `augment` were fitted before there was augmentation.
    """
    known = {option.name for option in fields(FitOptions)}
    stated: dict[str, Any] = {"augment": 0}
    stated |= {name: value for name, value in run.description.options.items() if name in known}
    if stated.get("fit_on") is not None:
        stated["fit_on"] = tuple(stated["fit_on"])
    return FitOptions(**stated)


def replace_molecules(
    bundle: Bundle,
    out: StrPath,
    lists: MoleculeLists,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Build the bundled database of a bundle again and leave all else unchanged.

    Molecules, arrays and licences are those that `export_run` would have written, byte by byte;
    confidence stays as it was fitted.

    Parameters
    ----------
    bundle : Bundle
    out : path
        Folder to write; that of ``bundle`` itself is replaced.
    lists : MoleculeLists
    jobs : int, optional
        Processes that describe molecules.

    Raises
    ------
    BundleError, InputError
        A list cannot be read, or the folder cannot be replaced.
    """
    ensure_replaceable(Path(out), KIND, list(map(Path, lists.files)))
    described = References.of_library(bundle.library).molecules
    molecules = _molecules(described, lists, jobs, progress, say)
    size = _SMALL.format(len(molecules))
    card = {
        **bundle.card,
        "made_of": {**bundle.card["made_of"], "molecule_lists": _hashes(lists.files)},
        "database": _database(molecules),
        "limits": [size if _SIZE.fullmatch(line) else line for line in bundle.card["limits"]],
    }
    licence = _licence(bundle.library.records, molecules)
    return rewrite_molecules(bundle, out, molecules, card, licence, lists.files)


def _molecules(
    library: Sequence[DescribedMolecule],
    lists: MoleculeLists,
    jobs: int | None,
    progress: Progress,
    say: Log,
) -> BundledMolecules:
    skipped = SkippedGroups()
    molecules = bundled_molecules(library, lists, report=skipped, jobs=jobs, progress=progress)
    for group in skipped.by_count():
        say(f"{group.count:,} records skipped: {group.reason} (first: {group.where})")
    return molecules


def _licence(records: pa.Table, molecules: BundledMolecules) -> str:
    columns = records.select(["contributor", "license"]).to_pydict()
    counts = Counter(zip(columns["contributor"], columns["license"], strict=True))
    rows = [(who, licence, number) for (who, licence), number in counts.items()]
    lists = Counter(
        name
        for names in molecules.table["sources"].to_pylist()
        for name in names
        if name != LIBRARY
    )
    shipped = all(is_allowed(licence) for _, licence, _ in rows)
    return licence_text(rows, lists.items(), shipped)


def _hashes(paths: Sequence[StrPath]) -> list[dict[str, str]]:
    return [{"name": Path(path).name, "sha256": content_hash(Path(path))} for path in paths]
