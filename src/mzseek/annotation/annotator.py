"""Annotate features in batches, in as many processes as wanted."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.candidates import Source
from mzseek.annotation.confidence import check_share, expected_share
from mzseek.annotation.config import LIBRARY, AnnotateConfig
from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import instrument_notes
from mzseek.annotation.posterior import annotate_query, annotate_without_candidates
from mzseek.annotation.prior import open_counted
from mzseek.annotation.query import FeatureQuery, Named, ask
from mzseek.annotation.references import Neighbours, add_library_candidates, neighbours
from mzseek.annotation.scoring import mode_of, score_with_background
from mzseek.annotation.sources import (
    ListedSource,
    StoreSource,
    file_source,
    library_source,
    open_described,
    save_described,
)
from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MOST_PEAKS, compact_ions, compact_peaks
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import (
    AnnotationError,
    BundleError,
    DatabaseError,
    LibraryError,
    MzseekError,
)
from mzseek.core.ragged import pointers
from mzseek.evidence.model import EvidenceModel, open_states, save_states
from mzseek.evidence.queries import ReferenceSpectra
from mzseek.evidence.registry import channel_from
from mzseek.io.writing import disk_errors
from mzseek.library import Library
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.parallel import Engine, LocalEngine
from mzseek.parallel.processes import OpenedOnce

Added = dict[str, dict[str, int]]


def lend(
    fitted: EvidenceModel, libraries: Sequence[Library], most_peaks: int = MOST_PEAKS
) -> tuple[EvidenceModel, Added]:
    """The same channels and ranker, with reference spectra of libraries taken in.

    Parameters
    ----------
    fitted : EvidenceModel
        Stays as it is.
    libraries : sequence of Library
    most_peaks : int
        Of a spectrum: as those of the bundle were made compact.

    Returns
    -------
    EvidenceModel, dict
        For each channel that takes in spectra, how many ``spectra`` and ``molecules`` are new to
        it, and how many molecules are ``left_out``.
    """
    more = measured(libraries, most_peaks)
    states, added = list(fitted.states), {}
    for place, (channel, own) in enumerate(zip(fitted.channels, fitted.states, strict=True)):
        found = channel.extend(own, more) if len(more) else None
        if found is not None:
            states[place] = found.state
            added[channel.label] = {
                "spectra": found.spectra,
                "molecules": found.molecules,
                "left_out": found.left_out,
            }
    return replace(fitted, states=states), added


def measured(libraries: Sequence[Library], most_peaks: int = MOST_PEAKS) -> ReferenceSpectra:
    """Spectra of libraries, one library after the other, compact as those of a bundle."""
    empty = np.zeros(0)
    values, weights, precursors = [empty], [empty], [empty]
    counts, modes = [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
    molecule, smiles, blocks = [np.zeros(0, np.int64)], list[str](), list[str]()
    for library in libraries:
        peaks = compact_peaks(PeakLists._make(np.array(each) for each in library.peaks), most_peaks)
        ions = compact_ions(PrecursorIons._make(np.array(each) for each in library.ions))
        values.append(peaks.values)
        weights.append(peaks.weights)
        counts.append(np.diff(peaks.pointers))
        precursors.append(ions.precursors)
        modes.append(ions.modes)
        molecule.append(np.asarray(library.molecule_of, np.int64) + len(smiles))
        smiles += library.molecules["smiles"].to_pylist()
        blocks += [key[:BLOCK_LENGTH] for key in library.molecules["inchikey"].to_pylist()]
    return ReferenceSpectra(
        PeakLists(
            pointers(np.concatenate(counts)), np.concatenate(values), np.concatenate(weights)
        ),
        PrecursorIons(np.concatenate(precursors), np.concatenate(modes)),
        np.concatenate(molecule),
        smiles,
        np.array(blocks, f"S{BLOCK_LENGTH}"),
    )


def lending_lines(added: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What the user should read about it.

    Examples
    --------
    >>> lending_lines({"analogs": {"spectra": 1200, "molecules": 300, "left_out": 0}})
    ['Your libraries add 1,200 spectra to analogs, with 300 new molecules.']
    """
    lines = []
    for label, own in added.items():
        line = (
            f"Your libraries add {_many(own['spectra'], 'spectrum', 'spectra')} to {label}, with "
            f"{_many(own['molecules'], 'new molecule', 'new molecules')}"
        )
        if own["left_out"]:
            others = _many(own["left_out"], "further molecule", "further molecules")
            line += f"; spectra of {others} are for matches only"
        lines.append(f"{line}.")
    return lines


def _many(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


_STATES, _ADDED = "evidence", "added.json"


@dataclass(frozen=True)
class SharedState:
    """A folder with what was made.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    def put(self, source: ListedSource | None, fitted: EvidenceModel, added: Added) -> None:
        """Write described candidates, and what channels have taken in, if there are any."""
        if source is not None:
            save_described(self.folder, source)
        if added:
            own = [place for place, each in enumerate(fitted.channels) if each.label in added]
            save_states(
                self.folder / _STATES,
                [fitted.channels[place] for place in own],
                [fitted.states[place] for place in own],
            )
            (self.folder / _ADDED).write_text(json.dumps(added), encoding="utf-8")

    def source(self) -> ListedSource:
        """The candidates that were described."""
        return open_described(self.folder)

    def lent(self, fitted: EvidenceModel) -> tuple[EvidenceModel, Added]:
        """The channels with what they have taken in, as `put` was given it."""
        if not (self.folder / _ADDED).is_file():
            return fitted, {}
        added: Added = json.loads((self.folder / _ADDED).read_text(encoding="utf-8"))
        own = [channel for channel in fitted.channels if channel.label in added]
        opened = dict(zip(added, open_states(self.folder / _STATES, own), strict=True))
        states = [
            opened.get(channel.label, known)
            for channel, known in zip(fitted.channels, fitted.states, strict=True)
        ]
        return replace(fitted, states=states), added


BUNDLE = "the bundle that comes with mzseek"
FORMULAS = "the table of formulas"
BUNDLED, BOXED = "the library of the bundle", "the database of the bundle"
# Damage to what is searched: no feature can be answered, and none is to blame.
_NOT_OF_A_FEATURE = (BundleError, DatabaseError, LibraryError)
_FEATURES = 32  # a batch, for memory's sake; what is said of a feature depends on no other
_BY_MASS = 1_024  # features that are dealt into batches by mass: neighbours share candidates


@dataclass(frozen=True)
class SkippedFeature:
    """A feature that cannot be answered, and why.

    Attributes
    ----------
    where, reason : str
    spectra : int
        That it has.
    """

    where: str
    reason: str
    spectra: int


class Annotator:
    """A config with all that it names opened.

    Parameters
    ----------
    config : AnnotateConfig
    handed : str, optional
        Folder with what another process has made of the same config (`Annotator.hand`).
    key : str, optional
        That another process has for what it has opened: here it must be the same.

    Attributes
    ----------
    added : mapping
        What the user's libraries have added to channels, as `lend` says it.
    rejects : list of (str, str)
        Where and why, for each row of a list of candidates that holds no molecule.
    prior : Prior or None
    prior_rejects : list of (str, str)
        Where and why, for each row of a table of weights that cannot be used.

    Raises
    ------
    MzseekError
        Something that it names is missing or damaged.
    """

    def __init__(
        self, config: AnnotateConfig, handed: str | None = None, key: str | None = None
    ) -> None:
        self._formulas = dict(config.formulas)
        self.config, self._handed = config, SharedState(Path(handed)) if handed else None
        self.rejects: list[tuple[str, str]] = []
        self.bundle = Bundle.open(config.model)
        self.fitted = _with_tolerance(self.bundle.fitted, config.peaks)
        own = [(Path(path).name, Library.open(path)) for path in config.libraries]
        self.libraries = [(BUNDLED, self.bundle.library), *own]
        for channel, state in zip(self.fitted.channels, self.fitted.states, strict=True):
            channel.use_library(state, self.bundle.library)
        # Said before anything is scored: a coverage that the model does not promise.
        for mode in (1, -1):
            self.bundle.confidence.of(mode).threshold(config.coverage)
        self.prior_rejects: list[tuple[str, str]] = []
        self.prior = open_counted(config.prior, self.bundle, self.prior_rejects)
        self.source = self._source()
        # Last, since it takes longest.
        self.added: Added = {}
        if self._handed:
            self.fitted, self.added = self._handed.lent(self.fitted)
        elif own:
            libraries = [library for _, library in own]
            self.fitted, self.added = lend(self.fitted, libraries, self.bundle.most_peaks)
        if key is not None and self.key != key:
            raise DatabaseError(
                f"{self.source.label}: it, the model, a library or the prior was replaced while "
                "spectra were annotated; run the command again"
            )

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Labels of what scores are made of."""
        return tuple(channel.label for channel in self.fitted.channels)

    def annotations(self, features: Sequence[Feature]) -> list[Annotation | SkippedFeature]:
        """What is said about each feature, in their order."""
        looked_up: list[FeatureQuery | SkippedFeature] = [
            self._asked(feature) for feature in features
        ]
        queries = [each for each in looked_up if isinstance(each, FeatureQuery)]
        near = neighbours(queries, self.libraries, self.config.precursor, self.bundle.names)
        if not self.is_strict:
            queries = [
                add_library_candidates(query, own) for query, own in zip(queries, near, strict=True)
            ]
        annotated = iter(self._annotated(queries, near))
        found = [next(annotated) if isinstance(each, FeatureQuery) else each for each in looked_up]
        notes = instrument_notes(self.config.instrument)
        return [_noted(one, notes) for one in found] if notes else found

    @property
    def is_strict(self) -> bool:
        """Whether only molecules of the database are candidates, whatever the library matches."""
        strict = self.config.strict
        return self.source.by_feature if strict is None else strict

    @cached_property
    def expected_share(self) -> float:
        """Expected share of features whose molecule is in the database."""
        known = self.config.expected_in_database
        if known is not None:
            check_share(known)
            return known
        return expected_share(len(self.source), listed=self.source.by_feature)

    def named(self) -> Named:
        """Features that the tables of the config name, none of them met yet."""
        tables = {FORMULAS: [name for name, _ in self.config.formulas],
                  self.source.label: self.source.features()}  # fmt: skip
        return Named({table: names for table, names in tables.items() if names})

    def _annotated(
        self, queries: Sequence[FeatureQuery], near: Sequence[Neighbours]
    ) -> list[Annotation | SkippedFeature]:
        """Score and annotate queries, in their order."""
        confidence = self.bundle.confidence
        full = [place for place, query in enumerate(queries) if query.kept]
        scored, molecules = score_with_background(
            [queries[place] for place in full], [near[place].nearest for place in full],
            self.fitted, confidence, self.bundle.fingerprint, self.bundle.molecules,
            index=self.source.index,
        )  # fmt: skip
        label = None if self.prior is None else self.prior.label
        found: list[Annotation | SkippedFeature] = [
            annotate_without_candidates(query, own, self.channels, self.config, label)
            for query, own in zip(queries, near, strict=True)
        ]
        for place, one in zip(full, scored, strict=True):
            query, own = queries[place], one.scored
            mode = mode_of(query)
            prior = None if self.prior is None else self.prior.of(query, molecules, own.rows, mode)
            found[place] = annotate_query(
                query, own, near[place], confidence.of(mode), self.channels,
                molecules.fingerprints(own.rows), self.config, one.evidence, prior,
                share=self.expected_share,
            )  # fmt: skip
        return found

    def _asked(self, feature: Feature) -> FeatureQuery | SkippedFeature:
        config = self.config
        try:
            return ask(
                feature, self.source, tolerance=config.precursor, ions=config.ions,
                most=config.max_candidates, formulas=self._formulas,
                keep_mass_mismatches=config.keep_mass_mismatches,
            )  # fmt: skip
        except AnnotationError as error:
            where = f"{feature.where}: {feature.name}"
            return SkippedFeature(where, str(error), feature.records)

    def _source(self) -> Source:
        name = self.config.database
        if name is None:
            facts = {
                "kind": "bundled",
                "path": str(self.bundle.folder),
                "shipped": self.bundle.is_shipped,
            }
            return StoreSource(self.bundle.molecules, BOXED, facts)
        if name == LIBRARY:
            label, library = self.libraries[-1]
            return library_source(library, label)
        if Path(name).is_dir():
            return StoreSource.open(name)
        if self._handed:
            return self._handed.source()
        return file_source(name, self.rejects, dict(self.config.columns))

    @property
    def is_handing(self) -> bool:
        """Whether it has something that other processes need not make again."""
        return bool(self.added) or self._described is not None

    @property
    def _described(self) -> ListedSource | None:
        """Candidates of a file."""
        name = self.config.database
        is_file = name is not None and name != LIBRARY and not Path(name).is_dir()
        return self.source if is_file and isinstance(self.source, ListedSource) else None

    def hand(self, folder: Path) -> None:
        """Write what other processes need not make again into a folder."""
        SharedState(folder).put(self._described, self.fitted, self.added)

    def contents(self) -> dict[str, Any]:
        """Checksums of what annotations are made of, by the field of the config that names it."""
        index = self.source.index
        return {
            "model": _sums(self.bundle),
            "database": [self.source.facts(), None if index is None else dict(index.files)],
            "libraries": [_sums(library) for _, library in self.libraries[1:]],
            "prior": None if self.prior is None else self.prior.facts(),
        }

    @cached_property
    def key(self) -> str:
        """Checksum of `contents`."""
        return sha256(json.dumps(self.contents(), sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """What a run folder says of what was opened."""
        return {
            "model": {
                "path": str(self.bundle.folder),
                "name": BUNDLE if self.bundle.is_shipped else self.bundle.folder.name,
                "about": _about(self.bundle),
                "sha256": _sums(self.bundle),
            },
            "database": self.source.facts(),
            "expected_share": self.expected_share,
            "libraries": [
                {"label": label, "spectra": len(library), "sha256": _sums(library)}
                for label, library in self.libraries
            ],
            "prior": None if self.prior is None else self.prior.facts(),
            "added": self.added,
        }


def _noted(one: Annotation | SkippedFeature, notes: tuple[str, ...]) -> Annotation | SkippedFeature:
    return replace(one, notes=(*one.notes, *notes)) if isinstance(one, Annotation) else one


def _sums(opened: Bundle | Library) -> dict[str, str]:
    """SHA-256 of files, as a manifest lists them."""
    return {name: file["sha256"] for name, file in opened.manifest["files"].items()}


def _about(bundle: Bundle) -> str:
    """In a sentence what a bundle has learned from."""
    molecules = len(bundle.library.molecules)
    return f"Learned from {len(bundle.library):,} spectra of {molecules:,} molecules."


def _with_tolerance(fitted: EvidenceModel, peaks: Tolerance | None) -> EvidenceModel:
    """The same channels, those that explain peaks with a tolerance of the user's."""
    if peaks is None:
        return fitted
    channels = [
        channel_from(channel.name, {**vars(channel.options), "ppm": max(peaks.ppm, 1e-6),
                                    "least": peaks.least})
        if channel.needs_fragments else channel
        for channel in fitted.channels
    ]  # fmt: skip
    return replace(fitted, channels=channels)


def annotations(
    features: Iterable[Feature],
    config: AnnotateConfig,
    *,
    engine: Engine | None = None,
    annotator: Annotator | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Annotation | SkippedFeature]:
    """What is said about features, in their order.

    On one machine, with one installation, an annotation is the same to the last bit whatever the
    number of processes and threads, the order of features and the other features of a batch.
    Another processor or BLAS library rounds the regression of the analog channel otherwise: scores
    then agree within 1e-5, probabilities within 1e-6. A model with a trained network among its
    channels (``run:PATH``) is excepted: its products are in float32, in an order that depends on
    the batch.

    Parameters
    ----------
    features : iterable of Feature
        Read as they are needed, a thousand at a time.
    config : AnnotateConfig
    engine : Engine, optional
        Processes of this machine by default. Answers do not depend on it.
    annotator : Annotator, optional
        Of the same config, opened: what it has made is handed to the processes.
    progress : callable of int
        Told how many are answered, before these are returned.
    """
    waiting: deque[tuple[list[int], int]] = deque()  # of each batch: places, and its chunk's size
    chunk: dict[int, Annotation | SkippedFeature] = {}
    done = 0
    batches = _batches(features, waiting)
    with _handed(annotator) as folder:
        work: OpenedOnce[Annotator, list[Feature], list[Annotation | SkippedFeature]] = OpenedOnce(
            answered, Annotator, config, folder, None if annotator is None else annotator.key
        )
        for batch in (engine or LocalEngine()).results(work, batches):
            places, size = waiting.popleft()
            chunk |= zip(places, batch, strict=True)
            done += len(batch)
            progress(done)
            if len(chunk) == size:
                yield from (chunk.pop(place) for place in range(size))


@contextmanager
def _handed(annotator: Annotator | None) -> Iterator[str | None]:
    """A folder with what a workshop has made; None where there is nothing to hand on."""
    if annotator is None or not annotator.is_handing:
        yield None
        return
    with TemporaryDirectory(prefix="mzseek-") as folder:
        with disk_errors(Path(folder)):
            annotator.hand(Path(folder))
        yield folder


def _batches(
    features: Iterable[Feature], waiting: "deque[tuple[list[int], int]]"
) -> Iterator[list[Feature]]:
    """Features of nearly one mass together, and for each batch where they stood in their chunk."""
    source = iter(features)
    while chunk := list(islice(source, _BY_MASS)):
        order = sorted(range(len(chunk)), key=lambda at: chunk[at].spectra[0].precursor_mz)
        for start in range(0, len(order), _FEATURES):
            places = order[start : start + _FEATURES]
            waiting.append((places, len(chunk)))
            yield [chunk[place] for place in places]


def answered(annotator: Annotator, features: list[Feature]) -> list[Annotation | SkippedFeature]:
    """What is said about features; one that breaks is set aside, and does not stop the others."""
    try:
        return annotator.annotations(features)
    except _NOT_OF_A_FEATURE:
        raise
    except MzseekError:
        return [one for feature in features for one in _alone(annotator, feature)]


def _alone(annotator: Annotator, feature: Feature) -> list[Annotation | SkippedFeature]:
    try:
        return annotator.annotations([feature])
    except MzseekError as error:
        where = f"{feature.where}: {feature.name}"
        return [SkippedFeature(where, str(error), feature.records)]
