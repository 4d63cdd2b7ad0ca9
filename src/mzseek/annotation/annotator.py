"""Annotate spectra: one class for the command line, the notebook, a server and workers."""

import json
import platform
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.candidates import (
    ListedSource,
    Source,
    StoreSource,
    file_source,
    library_source,
)
from mzseek.annotation.compound_classes import ClassAnnotator
from mzseek.annotation.confidence import check_share, expected_share
from mzseek.annotation.config import (
    AUTO,
    INSTRUMENTS,
    LIBRARY,
    NO_PRIOR,
    AnnotateConfig,
    Tolerance,
)
from mzseek.annotation.features import Feature
from mzseek.annotation.formulas import (
    FeatureFormulas,
    formulas_beside_candidates,
    with_formulas,
)
from mzseek.annotation.ions import with_ion_support
from mzseek.annotation.posterior import annotate_query, annotate_without_candidates
from mzseek.annotation.query import FeatureQuery, ask
from mzseek.annotation.reading import Features, Named, SpectrumFiles, SpectrumList
from mzseek.annotation.recalibration import file_errors
from mzseek.annotation.references import Neighbours, add_library_candidates, neighbours
from mzseek.annotation.scoring import mode_of, peak_tolerance, score_with_background
from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MAX_PEAKS, compact_ions, compact_peaks
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import (
    AnnotationError,
    BundleError,
    DatabaseError,
    LibraryError,
    MzseekError,
    Reason,
    RecordError,
)
from mzseek.core.ragged import pointers
from mzseek.core.text import pluralize
from mzseek.evidence import channel_from
from mzseek.evidence.model import EvidenceModel, open_states, save_states
from mzseek.evidence.queries import ReferenceSpectra
from mzseek.io.skipped import Skipped, SkipTarget, reporter
from mzseek.io.writing import disk_errors
from mzseek.library import Library
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.parallel import Engine, LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import OpenedOnce
from mzseek.spectra import Spectrum
from mzseek.spectra.cleaning import count_reasons, describe_artefacts
from mzseek.spectra.recalibration import describe_curves
from mzseek.spectra.records import QTOF, instrument_kind, stated_instrument
from mzseek.version import PACKAGES, versions

if TYPE_CHECKING:
    from mzseek.annotation.external_scores import Contribution, ExternalScores
    from mzseek.annotation.prior import Prior

BUNDLE = "the bundle that comes with mzseek"
FORMULAS, SCORES = "the table of formulas", "the table of scores"
BUNDLED_LIBRARY, BUNDLED_DATABASE = "the library of the bundle", "the database of the bundle"
# Damage to what is searched: no feature can be annotated, and none is to blame.
_NOT_OF_A_FEATURE = (BundleError, DatabaseError, LibraryError)
_BATCH = 32  # features, for memory's sake; no annotation depends on others of its batch
_CHUNK = 1_024  # features that are dealt into batches by mass: neighbours share candidates
MAX_RELATED = 200_000  # molecules of a database whose neighbours in mass are edited
_FEW = 8  # features at a time, where results should come soon
MIN_FEATURES = 64  # with fewer, processes take longer to begin than they save
_CANDIDATES, _STATES, _ADDED = "candidates.json", "evidence", "added.json"  # shared state
_PEEKED = 100  # records at the beginning of each file that are looked at
_SHOWN_SCORES = 5  # scored molecules that are no candidates, named in a line
_SHOWN_ROWS = 3  # skipped rows of a table, in a line
_EXPLAINS_NOTHING, _FEW_EXPLAINED = 0.02, 5  # share of the intensity; fewer features tell nothing


@dataclass(frozen=True)
class SkippedFeature:
    """A feature that cannot be annotated: where, why, and how many spectra it has."""

    where: str
    reason: str
    spectra: int


Result = Annotation | SkippedFeature
Added = dict[str, dict[str, int]]  # by channel: new spectra and molecules, and left out ones


class Annotator:
    """Model, database, libraries and prior, opened, with the settings to annotate with.

    Parameters
    ----------
    config : AnnotateConfig, optional
    shared_state : str, optional
        Folder with what another process has made for the same config (`shared_state`).
    key : str, optional
        That another process has for what it has opened: here it must be the same.
    like : Annotator, optional
        Its model, libraries and database are taken over where the config names the same: what was
        opened and computed once is shared.
    **settings
        Fields of `AnnotateConfig`, where no config is given.

    Attributes
    ----------
    added : mapping
        What the user's libraries have added to channels (`extend_channels`).
    skipped_candidates, skipped_weights : list of Skipped
        Rows of a list of candidates that hold no molecule, and of a table of weights.
    prior : Prior or None

    Raises
    ------
    MzseekError
        Something that the config names is missing or damaged.

    Examples
    --------
    >>> annotator = Annotator(top=3)
    >>> annotator.config.top, len(annotator.source) > 40_000
    (3, True)
    >>> [annotation.best for annotation in annotator.run("mine.mgf")]  # doctest: +SKIP
    """

    def __init__(
        self,
        config: AnnotateConfig | None = None,
        shared_state: str | None = None,
        key: str | None = None,
        like: "Annotator | None" = None,
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise AnnotationError(f"config and {next(iter(settings))} were given: expected one")
        self.config = config = config or AnnotateConfig(**settings)
        self._shared = Path(shared_state) if shared_state else None
        self.skipped_candidates: list[tuple[str, str]] = []
        self.skipped_weights: list[Skipped] = []
        self.skipped_scores: list[Skipped] = []
        like = like if like is not None and like.config.model == config.model else None
        self.bundle: Bundle = Bundle.open(config.model) if like is None else like.bundle
        self.fitted: EvidenceModel = _with_tolerance(self.bundle.fitted, config.peak_tolerance)
        if like is not None and like.config.library == config.library:
            opened = like.libraries[1:]
        else:
            opened = [(Path(path).name, Library.open(path)) for path in config.library]
        self.libraries: list[tuple[str, Library]] = [
            (BUNDLED_LIBRARY, self.bundle.library),
            *opened,
        ]
        for channel, state in zip(self.fitted.channels, self.fitted.states, strict=True):
            channel.use_library(state, self.bundle.library)
        # Refused before anything is scored: a coverage that the model does not promise.
        for mode in (1, -1):
            self.bundle.confidence.of(mode).threshold(config.coverage)
        self.prior: Prior | None = None
        if config.prior != NO_PRIOR:
            from mzseek.annotation.prior import open_prior

            self.prior = open_prior(config.prior, self.bundle, self.skipped_weights)
        self.scores: ExternalScores | None = None
        if config.scores is not None:
            from mzseek.annotation.external_scores import read_scores

            self.scores = read_scores(config.scores, config.score_weights, self.skipped_scores)
        same_database = like is not None and like.config.database == config.database
        is_file = config.database is not None and Path(config.database).is_file()
        self.source: Source = (
            like.source if like and same_database and not is_file else self._source()
        )
        # Last, since it takes longest.
        self.added: Added = {}
        if self._shared:
            self._open_extended(self._shared)
        elif like is not None and _have_equal_channels(like.config, config):
            self.fitted, self.added = like.fitted, like.added
        elif opened:
            libraries = [library for _, library in opened]
            self.fitted, self.added = extend_channels(self.fitted, libraries, self.bundle.max_peaks)
        if key is not None and self.key != key:
            raise DatabaseError(
                f"{self.source.label}: it, the model, a library or the prior was replaced while "
                "spectra were annotated; run the command again"
            )

    def run(
        self,
        spectra: Any,
        *,
        skipped: SkipTarget | None = None,
        was_done: Callable[[Feature], bool] = lambda feature: False,
        done: int = 0,
        first: int | None = None,
        at_once: int | None = None,
        engine: Engine | None = None,
        progress: Progress = silent,
        annotate: "Callable[[Sequence[Feature]], list[Result]] | None" = None,
    ) -> "AnnotationRun":
        """Annotate spectra: an iterator over annotations, in the order of the features.

        On one machine, with one installation, an annotation is the same to the last bit whatever
        the number of processes and threads, the order of features and the other features of a
        batch. Another processor or BLAS library rounds the regression of the analog channel
        otherwise: scores then agree within 1e-5, probabilities within 1e-6. A model with a trained
        network among its channels (``run:PATH``) is excepted: its products are in float32, in an
        order that depends on the batch.

        Parameters
        ----------
        spectra : path, paths, Spectrum, matchms spectrum, iterable of spectra, or Features
        skipped : list or callable of (where, reason), optional
            Gets each spectrum that is skipped: one that cannot be read, and each of a feature that
            cannot be annotated.
        was_done : callable of Feature
            Whether a feature is to be passed over, since an earlier run has annotated it.
        done : int
            How many features that holds for.
        first : int, optional
            Annotate so many features only, in this process.
        at_once : int, optional
            Annotate in this process however many features there are, so many at a time, when the
            first of them is asked for.
        engine : Engine, optional
            Where many features are annotated; processes of this machine by default.
        progress : callable
        annotate : callable, optional
            Returns the results of features that are annotated in this process, where another
            caller has them already; `annotate_batch` by default.

        Returns
        -------
        AnnotationRun
        """
        skipped = [] if skipped is None else skipped
        progress("reading", 0, None)
        if not isinstance(spectra, Features):
            spectra = Features(spectra, self.config, skipped)
        progress("estimating mass errors", 0, None)
        self.recalibrate(spectra)
        return AnnotationRun(
            self, spectra, reporter(skipped), was_done, done, first, at_once,
            engine or LocalEngine(), progress, annotate or self.annotate_batch,
        )  # fmt: skip

    def annotate_batch(self, features: Sequence[Feature]) -> list[Result]:
        """Annotate features, in their order; one that breaks does not stop the others."""
        try:
            return self._annotate(features)
        except _NOT_OF_A_FEATURE:
            raise
        except MzseekError as error:
            if len(features) == 1:
                return [_skipped(features[0], error)]
            return [result for feature in features for result in self.annotate_batch([feature])]

    def _annotate(self, features: Sequence[Feature]) -> list[Result]:
        looked_up = [self._query(feature) for feature in features]
        queries = [query for query in looked_up if isinstance(query, FeatureQuery)]
        tolerance = self.config.precursor_tolerance
        neighbour_lists = neighbours(queries, self.libraries, tolerance, self.bundle.names)
        if not self.is_strict:
            queries = list(map(add_library_candidates, queries, neighbour_lists))
        annotated = iter(self._annotate_queries(queries, neighbour_lists))
        return [
            next(annotated) if isinstance(query, FeatureQuery) else query for query in looked_up
        ]

    def _annotate_queries(
        self, queries: Sequence[FeatureQuery], neighbour_lists: Sequence[Neighbours]
    ) -> list[Annotation]:
        """Score and annotate queries, in their order."""
        confidence = self.bundle.confidence
        with_candidates = [index for index, query in enumerate(queries) if query.n_candidates]
        results, molecules = score_with_background(
            [queries[index] for index in with_candidates],
            [neighbour_lists[index].nearest for index in with_candidates],
            self.fitted, confidence, self.bundle.fingerprint, self.bundle.molecules,
            index=self.source.index,
        )  # fmt: skip
        by_query = dict(zip(with_candidates, results, strict=True))
        classes = self.classes
        votes = classes.spectral_votes(queries, neighbour_lists) if classes else None
        # Before the classes, which use them.
        formulas = [
            formulas_beside_candidates(query.feature, self.config)
            if self.config.rank_formulas
            else FeatureFormulas(())
            for query in queries
        ]
        label = None if self.prior is None else self.prior.label
        annotations = []
        for index, query in enumerate(queries):
            if index not in by_query:
                annotation = annotate_without_candidates(
                    query, neighbour_lists[index], self.channels, self.config, label,
                    () if self.scores is None else self.scores.names,
                )  # fmt: skip
                if classes and votes:
                    found = classes.without_candidates(
                        query, neighbour_lists[index], votes[index], formulas[index].formulas
                    )
                    annotation = replace(annotation, compound_class=found)
                annotations.append(annotation)
                continue
            (scored, evidence), mode = by_query[index], mode_of(query)
            prior = None
            if self.prior is not None:
                prior = self.prior.of(query, molecules, scored.rows, mode)
            external: list[Contribution] = []
            notes: list[str] = []
            unmatched: tuple[str, ...] = ()
            if self.scores is not None:
                external, notes, unmatched = self.scores.of(query)
            annotation = annotate_query(
                query, scored, neighbour_lists[index], confidence.of(mode), self.channels,
                molecules.fingerprints(scored.rows), self.config, evidence, prior,
                external=external, share=self.expected_share, in_library=self.in_library,
                classify=None if not classes or not votes else partial(
                    classes.of_candidates, query, neighbour_lists[index], votes[index], molecules,
                    scored.rows, ranked=formulas[index].formulas,
                ),
            )  # fmt: skip
            annotation = with_ion_support(annotation, query, scored, confidence)
            annotations.append(
                replace(annotation, notes=(*annotation.notes, *notes), unmatched_scores=unmatched)
            )
        annotations = list(map(with_formulas, annotations, formulas))
        if self.config.propose:
            annotations = list(map(self._with_proposals, annotations, queries, neighbour_lists))
        return [
            self._finished(annotation).with_details(self.config.explain)
            for annotation in annotations
        ]

    def _with_proposals(
        self, annotation: Annotation, query: FeatureQuery, neighbours: Neighbours
    ) -> Annotation:
        """Add proposed structures, which do not change the candidates."""
        from mzseek.annotation.proposing import propose
        from mzseek.proposals.proposal import default_model

        present = self.expected_share if annotation.present is None else annotation.present
        proposals = propose(
            query, neighbours, self.relatives, self.fitted, self.bundle.confidence,
            self.bundle.fingerprint, default_model(), number=self.config.propose,
            missing=1.0 - present,
        )  # fmt: skip
        return replace(annotation, proposals=proposals)

    @cached_property
    def relatives(self) -> Source:
        """Molecules that structures are proposed from: the database, or the bundled ones.

        Bundled ones where candidates are listed by feature, or the database is a large one, which
        has too many molecules of every mass.
        """
        if self.source.by_feature or len(self.source) > MAX_RELATED:
            return self._bundled_source()
        return self.source

    def _finished(self, annotation: Annotation) -> Annotation:
        """Add the tolerance of peaks and notes of the run; show spectra as measured."""
        tolerance, feature = peak_tolerance(self.fitted), annotation.feature
        processed = None
        if feature.measured:
            stated = [s.peak_ppm for s in feature.spectra if s.peak_ppm is not None]
            file_ppm = max(stated, default=None)  # its spectra may be of several files
            tolerance |= {} if file_ppm is None else {"ppm": file_ppm}
            processed = feature
            feature = replace(feature, spectra=feature.measured, measured=(), artefacts=())
        return replace(
            annotation, feature=feature, processed=processed,
            notes=(*annotation.notes, *self.config.instrument_notes), **tolerance,
        )  # fmt: skip

    def recalibrate(self, features: Features) -> None:
        """Estimate mass errors and background of files, which features then have taken off."""
        if AUTO in (self.config.recalibrate, self.config.clean) and not self.config.is_coarse:
            features.recalibrate(lambda sample: file_errors(sample, self.source, self.config))

    def _query(self, feature: Feature) -> FeatureQuery | SkippedFeature:
        try:
            return ask(feature, self.source, self.config)
        except AnnotationError as error:
            return _skipped(feature, error)

    @cached_property
    def classes(self) -> ClassAnnotator | None:
        """What estimates compound classes; None where the bundle has no model of them."""
        model, store = self.bundle.classes, self.bundle.molecules
        if model is None:
            return None
        return ClassAnnotator(model, store, self.fitted, self.config.class_confidence)

    @cached_property
    def channels(self) -> dict[str, str]:
        """Kind of evidence of each channel, by label."""
        return {channel.label: channel.kind for channel in self.fitted.channels}

    @property
    def is_strict(self) -> bool:
        """Whether only molecules of the database are candidates, whatever the library matches."""
        strict = self.config.strict
        return self.source.by_feature if strict is None else strict

    @cached_property
    def expected_share(self) -> float:
        """Expected share of features whose molecule is in the database."""
        share = self.config.expected_in_database
        if share is not None:
            check_share(share)
            return share
        return expected_share(len(self.source), listed=self.source.by_feature)

    @cached_property
    def in_library(self) -> float:
        """Share of the database's molecules with reference spectra."""
        keys = {
            text[:BLOCK_LENGTH]
            for _, library in self.libraries
            for text in library.molecules["inchikey"].to_pylist()
        }
        return self.source.share_of(keys)

    def named(self) -> Named:
        """Features that the tables of the config name, none of them met yet."""
        tables = {FORMULAS: list(self.config.formula_of), self.source.label: self.source.features()}
        if self.scores is not None:
            tables[SCORES] = list(self.scores.scores)
        return Named({table: names for table, names in tables.items() if names})

    def _source(self) -> Source:
        name = self.config.database
        if name is None:
            return self._bundled_source()
        if name == LIBRARY:
            label, library = self.libraries[-1]
            return library_source(library, label, self.bundle.names)
        if Path(name).is_dir():
            return StoreSource.open(name)
        if self._shared:
            return ListedSource.load(self._shared / _CANDIDATES)
        return file_source(name, self.skipped_candidates, self.config.list_columns)

    def _bundled_source(self) -> Source:
        metadata = {
            "kind": "bundled",
            "path": str(self.bundle.folder),
            "shipped": self.bundle.is_shipped,
        }
        bundled = self.bundle.molecules
        return StoreSource(BUNDLED_DATABASE, metadata, len(bundled), bundled.by_mass)

    @contextmanager
    def shared_state(self) -> Iterator[str | None]:
        """Open a folder with what other processes need not make again; None for nothing.

        That is the described candidates of a file, and the states of extended channels.
        """
        of_file = self.config.database not in (None, LIBRARY)
        listed = self.source if of_file and isinstance(self.source, ListedSource) else None
        if not self.added and listed is None:
            yield None
            return
        with TemporaryDirectory(prefix="mzseek-") as name:
            folder = Path(name)
            with disk_errors(folder):
                if listed is not None:
                    listed.save(folder / _CANDIDATES)
                if self.added:
                    pairs = zip(self.fitted.channels, self.fitted.states, strict=True)
                    extended = [pair for pair in pairs if pair[0].label in self.added]
                    save_states(folder / _STATES, *zip(*extended, strict=True))
                    (folder / _ADDED).write_text(json.dumps(self.added), encoding="utf-8")
            yield name

    def _open_extended(self, folder: Path) -> None:
        """Take over the states of channels that another process has extended, if there are any."""
        if not (folder / _ADDED).is_file():
            return
        self.added = json.loads((folder / _ADDED).read_text(encoding="utf-8"))
        channels = [channel for channel in self.fitted.channels if channel.label in self.added]
        opened = dict(zip(self.added, open_states(folder / _STATES, channels), strict=True))
        states = [
            opened.get(channel.label, state)
            for channel, state in zip(self.fitted.channels, self.fitted.states, strict=True)
        ]
        self.fitted = replace(self.fitted, states=states)

    def contents(self) -> dict[str, Any]:
        """Return checksums of what annotations are made of, by the setting that names it."""
        index = self.source.index
        return {
            "model": _checksums(self.bundle),
            "database": [self.source.metadata(), None if index is None else dict(index.files)],
            "library": [_checksums(library) for _, library in self.libraries[1:]],
            "prior": None if self.prior is None else self.prior.metadata(),
            "scores": None if self.scores is None else self.scores.metadata(),
        }

    @cached_property
    def key(self) -> str:
        """Checksum of `contents`."""
        return sha256(json.dumps(self.contents(), sort_keys=True).encode()).hexdigest()

    def metadata(self) -> dict[str, Any]:
        """Return the model, database, libraries and prior for ``run.json``."""
        library = self.bundle.library
        about = f"{len(library):,} spectra of {len(library.molecules):,} molecules"
        return {
            "model": {
                "path": str(self.bundle.folder),
                "name": BUNDLE if self.bundle.is_shipped else self.bundle.folder.name,
                "about": f"Learned from {about}.",
                "sha256": _checksums(self.bundle),
            },
            "database": self.source.metadata(),
            "expected_share": self.expected_share,
            "libraries": [
                {"label": label, "spectra": len(library), "sha256": _checksums(library)}
                for label, library in self.libraries
            ],
            "prior": None if self.prior is None else self.prior.metadata(),
            "scores": None if self.scores is None else self.scores.metadata(),
            "added": self.added,
        }


def open_on_node(config: AnnotateConfig, key: str, used: tuple[tuple[str, str], ...]) -> Annotator:
    """Open an annotator on another machine, which must find the same files by the same paths.

    Parameters
    ----------
    config : AnnotateConfig
    key : str
        `Annotator.key` of the process that hands out the work.
    used : tuple of (str, str)
        Its versions of packages: others may give other annotations.

    Raises
    ------
    AnnotationError
        Something is missing there, or is another one; the message has the path and the node.
    """
    node = platform.node()
    for path in config.paths():
        if not path.exists() and str(path) != config.formulas_path:  # which were read before
            raise AnnotationError(
                f"{path}: is not on node {node}: workers must reach model, database and libraries "
                "by the same path as this machine (a shared file system, or copies)"
            )
    own = versions(*PACKAGES)
    other = next((name for name, version in used if own.get(name) != version), None)
    if other is not None:
        raise AnnotationError(
            f"node {node} has {other} {own.get(other)}, and this machine {dict(used)[other]}: "
            "install the same versions on all nodes"
        )
    annotator = Annotator(config)
    if annotator.key != key:
        raise AnnotationError(
            f"{annotator.source.label}: it, the model ({annotator.bundle.folder}), a library or "
            f"the prior on node {node} is another one than on this machine"
        )
    return annotator


class AnnotationRun(Iterator[Annotation]):
    """Annotations of spectra, made as they are asked for, and what is to be said of them all.

    Attributes
    ----------
    annotator : Annotator
    features : Features
    records : int
        Spectra that were read, skipped ones included.
    annotated : int
        Spectra of the features that were annotated so far.
    levels : Counter of str
        Features by the level of their annotation, so far.
    left : int
        Features that were not looked at, where `first` were asked for.
    """

    def __init__(
        self,
        annotator: Annotator,
        features: Features,
        skipped: Callable[[str, str], object],
        was_done: Callable[[Feature], bool],
        done: int,
        first: int | None,
        at_once: int | None,
        engine: Engine,
        progress: Progress,
        annotate: Callable[[Sequence[Feature]], list[Result]],
    ) -> None:
        self.annotator, self.features = annotator, features
        self.records = features.records + features.skipped
        self.annotated, self.left, self.levels = 0, 0, Counter[str]()
        self._skipped, self._was_done, self._first = skipped, was_done, first
        self._at_once = 1 if first is not None else at_once
        self._done, self._engine, self._progress = done, engine, progress
        self._annotate_here = annotate
        self._named = annotator.named()
        self._explained: list[float] = []
        self._removed: Counter[str] = Counter()
        self._unmatched, self._first_unmatched = 0, list[tuple[str, str]]()
        self._artefacts, self._peaks = Counter[str](), 0
        self._mismatches = self._with_mismatches = 0
        self._annotations = self._annotate()

    def __next__(self) -> Annotation:
        """Return the next annotation."""
        return next(self._annotations)

    def _annotate(self) -> Iterator[Annotation]:
        met = map(self._with_artefacts_counted, self._named.meet(self.features))
        left = (feature for feature in met if not self._was_done(feature))
        for result in self._results(left):
            if isinstance(result, SkippedFeature):
                for number in range(1, result.spectra + 1):
                    which = f", spectrum {number} of {result.spectra}" if result.spectra > 1 else ""
                    self._skipped(f"{result.where}{which}", result.reason)
                continue
            self._count(result)
            yield result
            if sum(self.levels.values()) == self._first:
                self.left = len(self.features) - self._done - 1
                break
        while self._named and next(left, None):  # those not annotated: their names count
            pass

    def _results(self, features: Iterator[Feature]) -> Iterator[Result]:
        """Yield results in the order of the features: of many by processes, of few by this one."""
        if self._at_once or len(self.features) - self._done <= MIN_FEATURES:
            while few := list(islice(features, self._at_once or _FEW)):
                for result in self._annotate_here(few):
                    yield result
                    self._tell(1)
            return
        waiting: deque[tuple[list[int], int]] = deque()  # of each batch: indices, its chunk's size
        chunk: dict[int, Result] = {}
        config, key = self.annotator.config, self.annotator.key
        work: OpenedOnce[Annotator, list[Feature], list[Result]]
        with ExitStack() as stack:
            if self._engine.shares_files:
                folder = stack.enter_context(self.annotator.shared_state())
                work = OpenedOnce(Annotator.annotate_batch, Annotator, config, folder, key)
            else:
                used = tuple(versions(*PACKAGES).items())
                work = OpenedOnce(Annotator.annotate_batch, open_on_node, config, key, used)
            for batch in self._engine.results(work, _batches(features, waiting)):
                indices, size = waiting.popleft()
                chunk |= zip(indices, batch, strict=True)
                self._tell(len(batch))
                if len(chunk) == size:
                    yield from (chunk.pop(index) for index in range(size))

    def _with_artefacts_counted(self, feature: Feature) -> Feature:
        """Count peaks and removed ones of a feature, also if an earlier run has annotated it."""
        self._peaks += sum(map(len, feature.measured or feature.spectra))
        for reasons in feature.artefacts:
            self._artefacts.update(count_reasons(reasons))
        return feature

    def _tell(self, number: int) -> None:
        self._done += number
        self._progress("features", self._done, len(self.features))

    def _count(self, annotation: Annotation) -> None:
        self.annotated += annotation.feature.records
        self.levels[annotation.level.number] += 1
        if annotation.best is not None:
            self._explained.append(annotation.best.explained)
        self._removed.update(annotation.removed)
        self._unmatched += len(annotation.unmatched_scores)
        missing = _SHOWN_SCORES - len(self._first_unmatched)
        self._first_unmatched += [
            (annotation.feature.name, key) for key in annotation.unmatched_scores[:missing]
        ]
        self._mismatches += annotation.mass_mismatches
        self._with_mismatches += annotation.mass_mismatches > 0

    def metadata(self) -> dict[str, Any]:
        """Return share, libraries, tables, adduct rules and masses for ``run.json``."""
        searched = self.annotator.metadata()
        return {
            **{name: searched[name] for name in ("expected_share", "libraries", "added")},
            "tables": self._named.metadata(),
            "recalibration": {
                file: curve.to_dict() for file, curve in self.features.curves.items()
            },
            "cleaning": {
                "peaks": self._peaks,
                "removed": dict(sorted(self._artefacts.items())),
                "background_mz": {
                    file: list(lines) for file, lines in self.features.background.items()
                },
            },
            "renamed_features": self._named.renamed(),
            "scores": searched["scores"],
            "unmatched_scores": {"count": self._unmatched, "first": self._first_unmatched},
            "candidates_removed_by_ion_rules": dict(sorted(self._removed.items())),
            "mass_mismatches": {
                "candidates": self._mismatches,
                "features": self._with_mismatches,
            },
        }

    def warnings(self) -> list[str]:
        """Return lines about spectra, listed candidates and tables that need a look."""
        return [
            *self.features.warnings(),
            *self._skipped_row_lines(),
            *self._mismatch_lines(),
            *self._named.lines(),
        ]

    def routine(self) -> list[str]:
        """Return lines about what was added, recalibrated and removed, which need no look."""
        return [
            *extension_lines(self.annotator.added),
            *describe_curves(self.features.curves),
            *describe_artefacts(self._artefacts, self._peaks),
        ]

    def remarks(self) -> list[str]:
        """Return all lines that the user should read about the run."""
        config = self.annotator.config
        return [
            *self.features.warnings(),
            *self._skipped_row_lines(),
            *(f"{note[0].upper()}{note[1:]}." for note in config.instrument_notes),
            *config.remarks,
            *self.routine(),
            *unexplained_remark(self._explained, config.peak_tolerance),
            *self._mismatch_lines(),
            *self._score_lines(),
            *self._named.lines(),
        ]

    def _skipped_row_lines(self) -> list[str]:
        annotator = self.annotator
        skipped: dict[str, Sequence[tuple[str, str]]] = {
            "candidates": annotator.skipped_candidates,
            "weights": annotator.skipped_weights,
            "scores": annotator.skipped_scores,
        }
        lines = []
        for what, rows in skipped.items():
            if rows:
                shown = "; ".join(f"{where}: {reason}" for where, reason in rows[:_SHOWN_ROWS])
                more = f"; and {len(rows) - _SHOWN_ROWS:,} more" if len(rows) > _SHOWN_ROWS else ""
                lines.append(f"Skipped {what}: {len(rows):,} ({shown}{more})")
        return lines

    def _score_lines(self) -> list[str]:
        if not self._unmatched:
            return []
        shown = ", ".join(f"{key} of {name}" for name, key in self._first_unmatched)
        molecules = pluralize(self._unmatched, "molecule with", "molecules with")
        more = ", …" if self._unmatched > len(self._first_unmatched) else ""
        return [
            f"The table of scores has {molecules} scores that "
            f"{'is' if self._unmatched == 1 else 'are'} no candidate of the feature: {shown}{more}."
        ]

    def _mismatch_lines(self) -> list[str]:
        if not self._mismatches:
            return []
        listed = pluralize(self._mismatches, "listed candidate", "listed candidates")
        counts = f"{listed} of {pluralize(self._with_mismatches, 'feature', 'features')}"
        mass = "mass contradicts the precursor under every ion tried"
        if self.annotator.config.keep_mass_mismatches:
            return [f"Kept {counts} whose {mass}."]
        return [f"Skipped {counts} whose {mass} (--keep-mass-mismatches keeps them)."]


def _have_equal_channels(config: AnnotateConfig, other: AnnotateConfig) -> bool:
    tolerances = config.peak_tolerance, other.peak_tolerance
    return config.library == other.library and tolerances[0] == tolerances[1]


def config_for(config: AnnotateConfig, spectra: SpectrumFiles | SpectrumList) -> AnnotateConfig:
    """Return the settings with the instrument that files state, where the user gives no tolerance.

    The first hundred records of each file are looked at.
    """
    if not config.instrument is config.ppm is config.peak_ppm is None or not spectra.paths:
        return config
    instrument, remarks = _stated_instrument(spectra.first(_PEEKED))
    return replace(
        config,
        instrument=instrument,
        instrument_from_files=instrument is not None,
        remarks=(*config.remarks, *remarks),
    )


def _stated_instrument(
    spectra: Sequence[Sequence[Spectrum]],
) -> tuple[str | None, tuple[str, ...]]:
    """Return ``qtof`` if all spectra of files state such an instrument, and a line about it."""
    stated = [{stated_instrument(s.metadata) for s in first} for first in spectra]
    is_qtof = [instrument_kind(s.metadata) == QTOF for first in spectra for s in first]
    if not any(is_qtof):
        return None, ()
    if not all(is_qtof) or not all(stated):
        line = (
            "Some records state a QTOF instrument, others do not: all were searched with the "
            f"tolerances of the model. Annotate those separately with --instrument {QTOF}."
        )
        return None, (line,)
    instrument, shown = INSTRUMENTS[QTOF], min(text for names in stated for text in names)
    line = (
        f"The spectra are of a QTOF instrument ({shown}): searched within {instrument.precursor} "
        f"(precursors) and {instrument.peaks} (peaks). --instrument, --ppm and --peak-ppm change "
        "this."
    )
    return QTOF, (line,)


def unexplained_remark(explained: Sequence[float], peaks: Tolerance | None) -> list[str]:
    """Return a line if the best candidates explain next to nothing at the model's tolerance.

    Parameters
    ----------
    explained : sequence of float
        Share of the intensity that the best candidate of each feature explains.
    peaks : Tolerance or None
        None: as the model has it.
    """
    if peaks is not None or len(explained) < _FEW_EXPLAINED:
        return []
    if median(explained) > _EXPLAINS_NOTHING:
        return []
    return [
        f"The best candidates explain {median(explained):.0%} of the intensity in the median: are "
        f"the spectra of a QTOF? Then add --instrument {QTOF}, which widens the tolerances to "
        f"{INSTRUMENTS[QTOF].peaks}."
    ]


def _skipped(feature: Feature, error: MzseekError) -> SkippedFeature:
    code = error.reason.code if isinstance(error, RecordError) else "not-annotated"
    reason = Reason(str(error), code)
    return SkippedFeature(f"{feature.where}: {feature.name}", reason, feature.records)


def _batches(
    features: Iterable[Feature], waiting: "deque[tuple[list[int], int]]"
) -> Iterator[list[Feature]]:
    """Yield features of nearly one mass together; note where they stood in their chunk."""
    source = iter(features)
    while chunk := list(islice(source, _CHUNK)):
        order = sorted(range(len(chunk)), key=lambda at: chunk[at].spectra[0].precursor_mz)
        for start in range(0, len(order), _BATCH):
            indices = order[start : start + _BATCH]
            waiting.append((indices, len(chunk)))
            yield [chunk[index] for index in indices]


def _checksums(opened: Bundle | Library) -> dict[str, str]:
    """SHA-256 of files, as a manifest lists them."""
    return {name: file["sha256"] for name, file in opened.manifest["files"].items()}


def _with_tolerance(fitted: EvidenceModel, peaks: Tolerance | None) -> EvidenceModel:
    """Return the same channels, those that explain peaks with a tolerance of the user's."""
    if peaks is None:
        return fitted
    channels = [
        channel_from(channel.name, {**vars(channel.options), "ppm": max(peaks.ppm, 1e-6),
                                    "least": peaks.least})
        if {"ppm", "least"} <= vars(channel.options).keys() else channel
        for channel in fitted.channels
    ]  # fmt: skip
    return replace(fitted, channels=channels)


def extend_channels(
    fitted: EvidenceModel, libraries: Sequence[Library], max_peaks: int = MAX_PEAKS
) -> tuple[EvidenceModel, Added]:
    """Return the same channels and ranker, extended by the reference spectra of libraries.

    Spectra are made as compact as those of the bundle, with `max_peaks` each.

    Returns
    -------
    EvidenceModel, dict
        For each channel that takes in spectra, how many ``spectra`` and ``molecules`` are new to
        it, and how many molecules are ``left_out``.
    """
    more = library_spectra(libraries, max_peaks)
    states, added = list(fitted.states), {}
    for index, channel in enumerate(fitted.channels):
        extended = channel.extend(states[index], more) if len(more) else None
        if extended is not None:
            states[index] = extended.state
            added[channel.label] = {
                "spectra": extended.spectra,
                "molecules": extended.molecules,
                "left_out": extended.left_out,
            }
    return replace(fitted, states=states), added


def library_spectra(libraries: Sequence[Library], max_peaks: int = MAX_PEAKS) -> ReferenceSpectra:
    """Return the spectra of libraries, one after the other, compact as those of a bundle."""
    peaks = [
        compact_peaks(PeakLists._make(map(np.array, library.peaks)), max_peaks)
        for library in libraries
    ]
    ions = [compact_ions(PrecursorIons._make(map(np.array, library.ions))) for library in libraries]
    before = np.cumsum([0, *(len(library.molecules) for library in libraries)])
    molecules = [
        np.asarray(library.molecule_of, np.int64) + offset
        for library, offset in zip(libraries, before, strict=False)
    ]
    keys = [key for library in libraries for key in library.molecules["inchikey"].to_pylist()]
    return ReferenceSpectra(
        PeakLists(
            pointers(_joined([np.diff(part.pointers) for part in peaks], np.int64)),
            _joined([part.values for part in peaks], np.float64),
            _joined([part.weights for part in peaks], np.float64),
        ),
        PrecursorIons(
            _joined([part.precursors for part in ions], np.float64),
            _joined([part.modes for part in ions], np.int8),
        ),
        _joined(molecules, np.int64),
        [smiles for library in libraries for smiles in library.molecules["smiles"].to_pylist()],
        np.array([key[:BLOCK_LENGTH] for key in keys], f"S{BLOCK_LENGTH}"),
    )


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.zeros(0, dtype), *arrays])


def extension_lines(added: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return lines about what libraries have added to channels.

    Examples
    --------
    >>> extension_lines({"analogs": {"spectra": 1200, "molecules": 300, "left_out": 0}})
    ['Your libraries add 1,200 spectra to analogs, with 300 new molecules.']
    """
    lines = []
    for label, counts in added.items():
        spectra = pluralize(counts["spectra"], "spectrum", "spectra")
        molecules = pluralize(counts["molecules"], "new molecule", "new molecules")
        line = f"Your libraries add {spectra} to {label}, with {molecules}"
        if counts["left_out"]:
            others = pluralize(counts["left_out"], "further molecule", "further molecules")
            line += f"; spectra of {others} are for matches only"
        lines.append(f"{line}.")
    return lines
