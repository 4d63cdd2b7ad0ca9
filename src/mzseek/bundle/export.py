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
from mzseek.bundle.bundle import KIND, MOST_PEAKS, Bundle
from mzseek.bundle.fit_confidence import fit_confidence
from mzseek.bundle.fit_prior import FittedPrior, make_prior
from mzseek.bundle.molecules import BundledMolecules
from mzseek.bundle.refit import (
    Details,
    References,
    measured,
    reference_queries,
    references_from,
    refit_channels,
)
from mzseek.bundle.write import Contents, is_allowed, licence_text, rewrite_molecules, write_bundle
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
    fitted: EvidenceModel,
    confidence: Confidence,
    references: References,
    molecules: BundledMolecules,
    measured: Mapping[str, Any],
    made_of: Mapping[str, Any],
    folds: Sequence[str],
    most_peaks: int,
    prior: FittedPrior | None = None,
) -> dict[str, Any]:
    """What a bundle says of itself, as plain data.

    Parameters
    ----------
    measured : mapping
        From `mzseek.bundle.relearn.measured`.
    made_of : mapping
        Of the sources: names and SHA-256, spectra kept and left out by licence, options.
    folds : sequence of str
        That the channels in the bundle have learned from.
    prior : FittedPrior, optional
        That answers may be asked to count in.
    """
    return {
        "made_of": dict(made_of),
        "channels": [channel.label for channel in fitted.channels],
        "learned_from": list(folds),
        "library": _library(references, most_peaks),
        "database": _database(molecules),
        "measured": dict(measured),
        "in_database": {
            mode: None
            if own.in_database is None
            else {"auc": dict(own.in_database.auc), "error": own.in_database.error}
            for mode, own in confidence.modes.items()
        },
        "fitted_on": {
            mode: {"molecules": own.molecules, "own": own.own}
            for mode, own in confidence.modes.items()
        },
        "prior": None if prior is None else _prior(prior, measured),
        "limits": _limits(confidence, folds, len(molecules)),
        "licence": "CC BY-SA 4.0; every record has its own, see LICENCE.md",
    }


def with_molecules(
    card: Mapping[str, Any], molecules: BundledMolecules, lists: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Return a card of the same bundle with other molecules.

    Parameters
    ----------
    card : mapping
    molecules : BundledMolecules
    lists : sequence of mappings
        Name and SHA-256 of each file that they come from.
    """
    size = _SMALL.format(len(molecules))
    limits = [size if _SIZE.fullmatch(line) else line for line in card["limits"]]
    return {
        **card,
        "made_of": {**card["made_of"], "molecule_lists": list(lists)},
        "database": _database(molecules),
        "limits": limits,
    }


def _library(references: References, most_peaks: int) -> dict[str, Any]:
    records = references.records.to_pydict()
    modes = [_MODE[int(mode)] for mode in references.ions.modes]
    by_mode: dict[str, dict[str, Any]] = {}
    for mode in dict.fromkeys([*MODES, *modes]):
        inside = [place for place, own in enumerate(modes) if own == mode]
        if inside:
            by_mode[mode] = {
                "spectra": len(inside),
                "molecules": len({int(references.molecule_of[place]) for place in inside}),
                "ions": _counted(records["adduct"][place] for place in inside),
                "instruments": _counted(records["instrument_type"][place] for place in inside),
            }
    return {
        "spectra": len(modes),
        "molecules": len(references.molecules),
        "peaks": len(references.peaks.values),
        "most_peaks": most_peaks,
        "modes": by_mode,
        "contributors": _counted(records["contributor"]),
        "licences": _counted(records["license"]),
    }


def _database(molecules: BundledMolecules) -> dict[str, Any]:
    sources = Counter(name for each in molecules.table["sources"].to_pylist() for name in each)
    named = sum(1 for each in molecules.table["names"].to_pylist() if each)
    identifiers = [each for each in molecules.table["identifiers"].to_pylist() if each]
    return {
        "molecules": len(molecules),
        "sources": dict(sorted(sources.items())),
        "named": named,
        "identified": len(identifiers),
        "linked": sum(1 for each in identifiers if any(map(link, each))),
    }


def _prior(made: FittedPrior, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of the prior, and what is reached without it and with it, on the same lists."""
    return {
        "weights": dict(made.prior.weights),
        "without": {
            mode: {name: measured[mode][name] for name in own}
            for mode, own in made.measured.items()
        },
        "with": dict(made.measured),
    }


def _limits(confidence: Confidence, folds: Sequence[str], molecules: int) -> list[str]:
    lines = [
        "Ions and instruments that are not listed above were not tried.",
        "Probabilities were fitted on molecules of other structures than the channels learned "
        "from, with lists of equal mass; they hold for molecules and lists like those, and they "
        "assume that the molecule is among the candidates.",
        "Whether the molecule is among the candidates was fitted on lists with and without their "
        "truth, in equal numbers: say how often yours lack it.",
        _SMALL.format(molecules),
    ]
    if "test" in folds:
        lines.insert(
            0,
            "The numbers on this card were measured with channels that had learned from the train "
            "fold alone. The channels in this bundle then learned once more, from all folds; the "
            "ranker and confidence stayed as they were, cross-fitted.",
        )
    lines += [
        f"{mode} mode has too few molecules to fit on: its numbers are those of both modes."
        for mode, own in confidence.modes.items()
        if not own.own
    ]
    return lines


def _counted(values: Any) -> dict[str, int]:
    """How often each value occurs, the most frequent first; what is empty is not stated."""
    counts = Counter(value or "not stated" for value in values)
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


@dataclass(frozen=True)
class Extras:
    """What goes into a bundle besides a run.

    Attributes
    ----------
    details : mapping of str to mapping
        By identifier what is known of spectra besides their peaks.
    library : path or None
        A library to ship in the place of the spectra that channels learned from.
    lists : MoleculeLists
        Where the molecules of the bundled database come from, besides those of the library.
    relearn : bool
        Channels learn once more, from all folds.
    most_peaks : int
        Of a reference spectrum.
    made_of : mapping
        For the card: what is known of the sources.
    """

    details: Details = field(default_factory=dict)
    library: StrPath | None = None
    lists: MoleculeLists = field(default_factory=MoleculeLists)
    refit_channels: bool = False
    most_peaks: int = MOST_PEAKS
    made_of: Mapping[str, Any] = field(default_factory=dict)


def export_run(
    run: Run,
    out: StrPath,
    extras: Extras | None = None,
    *,
    data: StrPath | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Make a bundle of a fitted run; confidence is fitted on what it says of validation.

    Parameters
    ----------
    run : Run
    out : path
        Folder to make; a bundle that is there is replaced.
    extras : Extras, optional
    data : path, optional
        The prepared folder, if it is no longer where it was.
    jobs : int, optional
        Processes that find fragments of molecules.

    Raises
    ------
    BundleError, EvidenceError, RunError, DatasetError
        The run was trained and not fitted, lacks what is needed, or the folder cannot be replaced.
    """
    given = extras or Extras()
    if not 1 <= given.most_peaks <= 10_000:
        raise BundleError(f"peaks to keep are {given.most_peaks}, expected 1 to 10,000")
    fitted, prepared, options = EvidenceModel.open(run), run.open_data(data), fit_options(run)
    libraries = [] if given.library is None else [Path(given.library)]
    sources = [run.folder, prepared.folder, *given.lists.files, *libraries]
    ensure_replaceable(Path(out), KIND, list(map(Path, sources)))
    train = reference_queries(prepared, [FITTED_ON])
    known = references_from(prepared, train, given.details, given.most_peaks)
    folds: Sequence[str] = FOLDS if given.refit_channels else (FITTED_ON,)
    final, shown = fitted, known
    if given.refit_channels:
        say("Channels learn once more, from all folds.")
        final = refit_channels(
            fitted, prepared, options, most_peaks=given.most_peaks, jobs=jobs, progress=progress
        )
        queries = reference_queries(prepared, folds)
        shown = references_from(prepared, queries, given.details, given.most_peaks)
    if given.library is not None:
        shown = _library_export(given.library)
    molecules = _molecules(shown.molecules, given.lists, jobs, progress, say)
    say("Confidence is fitted on validation, cross-fitted.")
    confidence = fit_confidence(
        run, fitted, prepared, known.library(prepared.folder), shown.features_by_ion(),
        options.candidates, molecules, progress=progress,
    )  # fmt: skip
    found = measured(run, prepared, confidence, options.candidates)
    say("A prior learns beside them, and is weighed on validation.")
    prior = make_prior(run, prepared, confidence, options, folds, jobs=jobs, progress=progress)
    contents = _contents(run, final, confidence, shown, molecules, found, folds, given, prior)
    return write_bundle(out, contents, sources, most=given.most_peaks)


def _contents(
    run: Run,
    fitted: EvidenceModel,
    confidence: Confidence,
    shown: References,
    molecules: BundledMolecules,
    found: Mapping[str, Any],
    folds: Sequence[str],
    given: Extras,
    prior: FittedPrior | None,
) -> Contents:
    made_of = {
        **given.made_of,
        "molecule_lists": _hashes(given.lists.files),
        "options": dict(run.description.options),
    }
    card = card_of(
        fitted, confidence, shown, molecules, found, made_of, folds, given.most_peaks, prior
    )
    return Contents(
        fitted=fitted,
        fingerprint=str(run.metadata["data"]["fingerprint"]),
        confidence=confidence,
        peaks=shown.peaks,
        ions=shown.ions,
        records=shown.records,
        molecule_of=shown.molecule_of,
        keys=shown.keys,
        molecules=molecules,
        card=card,
        licence=_licence(shown.records, molecules),
        prior=None if prior is None else prior.prior,
    )


def fit_options(run: Run) -> FitOptions:
    """The options that a run was fitted with; what it does not say has its default."""
    known = {each.name for each in fields(FitOptions)}
    said = {name: value for name, value in run.description.options.items() if name in known}
    if said.get("fit_on") is not None:
        said["fit_on"] = tuple(said["fit_on"])
    return FitOptions(**said)


def _library_export(path: StrPath) -> References:
    opened = Library.open(path)
    opened.check()
    found = References.of_library(opened)
    if not len(found.records):
        raise LibraryError(f"{path}: holds no spectra")
    return found


def replace_molecules(
    bundle: Bundle,
    out: StrPath,
    lists: MoleculeLists,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Make the bundled database of a bundle anew; all else stays as it is.

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
    card = with_molecules(bundle.card, molecules, _hashes(lists.files))
    licence = _licence(bundle.library.records, molecules)
    return rewrite_molecules(bundle, out, molecules, card, licence, lists.files)


def _molecules(
    library: Sequence[DescribedMolecule],
    lists: MoleculeLists,
    jobs: int | None,
    progress: Progress,
    say: Log,
) -> BundledMolecules:
    rejects = SkippedGroups()
    molecules = bundled_molecules(library, lists, report=rejects, jobs=jobs, progress=progress)
    for group in rejects.by_count():
        say(f"{group.count:,} records skipped: {group.reason} (first: {group.where})")
    return molecules


def _licence(records: pa.Table, molecules: BundledMolecules) -> str:
    columns = records.select(["contributor", "license"]).to_pydict()
    counts = Counter(zip(columns["contributor"], columns["license"], strict=True))
    rows = [(who, licence, number) for (who, licence), number in counts.items()]
    sources = Counter(
        name for each in molecules.table["sources"].to_pylist() for name in each if name != LIBRARY
    )
    shipped = all(is_allowed(licence) for _, licence, _ in rows)
    return licence_text(rows, sources.items(), shipped)


def _hashes(paths: Sequence[StrPath]) -> list[dict[str, str]]:
    return [{"name": Path(path).name, "sha256": content_hash(Path(path))} for path in paths]
