"""A bundle of a fitted run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from mzseek.annotation.bundle.bundle import Bundle
from mzseek.annotation.bundle.licences import is_allowed, licence_text
from mzseek.annotation.bundle.making.boxed import LIBRARY, MoleculeLists, bundled_molecules
from mzseek.annotation.bundle.making.card import card_of, with_molecules
from mzseek.annotation.bundle.making.confident import fit_confidence
from mzseek.annotation.bundle.making.measure import measured
from mzseek.annotation.bundle.making.priors import MadePrior, make_prior
from mzseek.annotation.bundle.making.references import Details, References, references_from
from mzseek.annotation.bundle.making.relearn import reference_queries, relearn
from mzseek.annotation.bundle.molecules import BoxedMolecules
from mzseek.annotation.bundle.peaks import MOST_PEAKS
from mzseek.annotation.bundle.write import Contents, rewrite_molecules, write_bundle
from mzseek.annotation.confidence import Confidence
from mzseek.chem.describe import DescribedMolecule
from mzseek.choices import FOLDS
from mzseek.errors import BundleError, LibraryError
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.fit import LEARNED_ON, FitOptions
from mzseek.files import StrPath
from mzseek.files.source import content_hash
from mzseek.library import Library
from mzseek.rejects import Groups
from mzseek.runs.run import Run
from mzseek.work.progress import Progress, Say, silent, unheard


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
    relearn: bool = False
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
    say: Say = unheard,
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
        Processes that find pieces of molecules.

    Raises
    ------
    BundleError, EvidenceError, RunError, DatasetError
        The run was trained and not fitted, lacks what is needed, or the folder cannot be replaced.
    """
    given = extras or Extras()
    if not 1 <= given.most_peaks <= 10_000:
        raise BundleError(f"peaks to keep are {given.most_peaks}, expected 1 to 10,000")
    fitted, prepared, options = Fitted.open(run), run.open_data(data), fit_options(run)
    train = reference_queries(prepared, [LEARNED_ON])
    known = references_from(prepared, train, given.details, given.most_peaks)
    folds: Sequence[str] = FOLDS if given.relearn else (LEARNED_ON,)
    final, shown = fitted, known
    if given.relearn:
        say("Channels learn once more, from all folds.")
        final = relearn(
            fitted, prepared, options, most_peaks=given.most_peaks, jobs=jobs, progress=progress
        )
        queries = reference_queries(prepared, folds)
        shown = references_from(prepared, queries, given.details, given.most_peaks)
    if given.library is not None:
        shown = _library(given.library)
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
    sources = [run.folder, prepared.folder, *given.lists.files]
    return write_bundle(out, contents, sources, most=given.most_peaks)


def _contents(
    run: Run,
    fitted: Fitted,
    confidence: Confidence,
    shown: References,
    molecules: BoxedMolecules,
    found: Mapping[str, Any],
    folds: Sequence[str],
    given: Extras,
    prior: MadePrior | None,
) -> Contents:
    made_of = {
        **given.made_of,
        "molecule_lists": _hashes(given.lists.files),
        "options": dict(run.made.options),
    }
    card = card_of(
        fitted, confidence, shown, molecules, found, made_of, folds, given.most_peaks, prior
    )
    return Contents(
        fitted=fitted,
        fingerprint=str(run.facts["data"]["fingerprint"]),
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
    said = {name: value for name, value in run.made.options.items() if name in known}
    if said.get("fit_on") is not None:
        said["fit_on"] = tuple(said["fit_on"])
    return FitOptions(**said)


def _library(path: StrPath) -> References:
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
    say: Say = unheard,
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
    say: Say,
) -> BoxedMolecules:
    rejects = Groups()
    molecules = bundled_molecules(library, lists, report=rejects, jobs=jobs, progress=progress)
    for group in rejects.by_count():
        say(f"{group.count:,} records skipped: {group.reason} (first: {group.where})")
    return molecules


def _licence(records: pa.Table, molecules: BoxedMolecules) -> str:
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
