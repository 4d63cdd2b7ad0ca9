"""`answers`: features in, answers out, a batch at a time, in as many processes as are wanted."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mzseek.annotation.answering import answer, no_answer
from mzseek.annotation.answers import Answer
from mzseek.annotation.asking.ask import Asked, ask
from mzseek.annotation.asking.instruments import instrument_notes
from mzseek.annotation.asking.named import Named
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.bundle import Bundle
from mzseek.annotation.candidates.extra import (
    add_library_candidates,
    background_of,
    count_same_mass,
    score_backgrounds,
)
from mzseek.annotation.candidates.listed import ListedSource, file_source, library_source
from mzseek.annotation.candidates.source import Source
from mzseek.annotation.candidates.store import StoreSource
from mzseek.annotation.features import Feature
from mzseek.annotation.in_database import check_share, expected_share
from mzseek.annotation.opening.handing import Handed
from mzseek.annotation.opening.lending import Added, lend
from mzseek.annotation.opening.setup import LIBRARY, Setup
from mzseek.annotation.prior import open_counted
from mzseek.annotation.references import Neighbours, neighbours
from mzseek.annotation.scoring import best_ion, list_evidence, score
from mzseek.errors import AnnotationError, BundleError, DatabaseError, LibraryError, MzseekError
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.registry import channel_from
from mzseek.files.fault import naming_output
from mzseek.library import Library
from mzseek.work import Engine, LocalEngine
from mzseek.work.opened import WithOpened

BUNDLE = "the bundle that comes with mzseek"
FORMULAS = "the table of formulas"
BUNDLED, BOXED = "the library of the bundle", "the database of the bundle"
# Damage to what is searched: no feature can be answered, and none is to blame.
_NOT_OF_A_FEATURE = (BundleError, DatabaseError, LibraryError)
_FEATURES = 32  # a batch, for memory's sake; what is said of a feature depends on no other
_BY_MASS = 1_024  # features that are dealt into batches by mass: neighbours share candidates


@dataclass(frozen=True)
class SetAside:
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


class Workshop:
    """A setup with all that it names opened.

    Parameters
    ----------
    setup : Setup
    handed : str, optional
        Folder with what another process has made of the same setup (`Workshop.hand`).

    Attributes
    ----------
    added : mapping
        What the user's libraries have added to channels, as `lend` says it.
    rejects : list of (str, str)
        Where and why, for each row of a list of candidates that holds no molecule.
    prior : CountedPrior or None
    prior_rejects : list of (str, str)
        Where and why, for each row of a table of weights that cannot be used.

    Raises
    ------
    MzseekError
        Something that it names is missing or damaged.
    """

    def __init__(self, setup: Setup, handed: str | None = None) -> None:
        self.setup, self._handed = setup, Handed(Path(handed)) if handed else None
        self.rejects: list[tuple[str, str]] = []
        self.bundle = Bundle.open(setup.model)
        self.fitted = _with_tolerance(self.bundle.fitted, setup.peaks)
        own = [(Path(path).name, Library.open(path)) for path in setup.libraries]
        self.libraries = [(BUNDLED, self.bundle.library), *own]
        for channel, learned in zip(self.fitted.channels, self.fitted.learned, strict=True):
            channel.adopt(learned, self.bundle.library)
        # Said before anything is scored: a coverage that the model does not promise.
        for mode in (1, -1):
            self.bundle.confidence.of(mode).threshold(setup.wanted.coverage)
        self.prior_rejects: list[tuple[str, str]] = []
        self.prior = open_counted(setup.prior, self.bundle, self.prior_rejects)
        self.source = self._source()
        # Last, since it takes longest.
        self.added: Added = {}
        if self._handed:
            self.fitted, self.added = self._handed.lent(self.fitted)
        elif own:
            libraries = [library for _, library in own]
            self.fitted, self.added = lend(self.fitted, libraries, self.bundle.most_peaks)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Labels of what scores are made of."""
        return tuple(channel.label for channel in self.fitted.channels)

    def answers(self, features: Sequence[Feature]) -> list[Answer | SetAside]:
        """What is said about each feature, in their order."""
        looked_up: list[Asked | SetAside] = [self._asked(feature) for feature in features]
        queries = [each for each in looked_up if isinstance(each, Asked)]
        near = neighbours(queries, self.libraries, self.setup.precursor, self.bundle.names)
        if not self.is_strict:
            queries = [
                add_library_candidates(query, own) for query, own in zip(queries, near, strict=True)
            ]
        annotated = iter(self._annotated(queries, near))
        found = [next(annotated) if isinstance(each, Asked) else each for each in looked_up]
        notes = instrument_notes(self.setup.instrument)
        return [_noted(one, notes) for one in found] if notes else found

    @property
    def is_strict(self) -> bool:
        """Whether only molecules of the database are candidates, whatever the library matches."""
        strict = self.setup.strict
        return self.source.by_feature if strict is None else strict

    @cached_property
    def expected_share(self) -> float:
        """Expected share of features whose molecule is in the database."""
        known = self.setup.wanted.known
        if known is not None:
            check_share(known)
            return known
        return expected_share(len(self.source), listed=self.source.by_feature)

    def named(self) -> Named:
        """Features that the tables of the setup name, none of them met yet."""
        tables = {FORMULAS: [name for name, _ in self.setup.formulas],
                  self.source.label: self.source.features()}  # fmt: skip
        return Named({table: names for table, names in tables.items() if names})

    def _annotated(
        self, queries: Sequence[Asked], near: Sequence[Neighbours]
    ) -> list[Answer | SetAside]:
        """Score and annotate queries, in their order."""
        confidence, model = self.bundle.confidence, (self.fitted, self.bundle.confidence)
        full = [place for place, query in enumerate(queries) if query.kept]
        scored, molecules = score(
            [queries[place] for place in full], *model, self.bundle.fingerprint, self.source.index
        )
        ions = [best_ion(queries[place], own) for place, own in zip(full, scored, strict=True)]
        compared = [
            background_of(queries[place], self.bundle.molecules, reading)
            for place, (reading, _) in zip(full, ions, strict=True)
        ]
        backgrounds = score_backgrounds(compared, *model, self.bundle.fingerprint)
        label = None if self.prior is None else self.prior.label
        found: list[Answer | SetAside] = [
            no_answer(query, own, self.channels, self.setup.wanted, label)
            for query, own in zip(queries, near, strict=True)
        ]
        for place, own, (_, rows), others, background in zip(
            full, scored, ions, compared, backgrounds, strict=True
        ):
            query = queries[place]
            evidence = list_evidence(
                query.feature, own, rows, background, self.channels, near[place].nearest,
                count_same_mass(others),
            )  # fmt: skip
            mode = -1 if query.readings[0].adduct.endswith("-") else 1
            prior = None if self.prior is None else self.prior.of(query, molecules, own.rows, mode)
            found[place] = answer(
                query, own, near[place], confidence.of(mode), self.channels,
                molecules.fingerprints(own.rows), self.setup.wanted, evidence, prior,
                share=self.expected_share,
            )  # fmt: skip
        return found

    def _asked(self, feature: Feature) -> Asked | SetAside:
        setup = self.setup
        try:
            return ask(
                feature, self.source, tolerance=setup.precursor, ions=setup.ions, most=setup.most,
                formulas=dict(setup.formulas),
            )  # fmt: skip
        except AnnotationError as error:
            where = f"{feature.where}: {feature.name}"
            return SetAside(where, str(error), len(feature.spectra))

    def _source(self) -> Source:
        name = self.setup.database
        if name is None:
            facts = {"kind": "in the box", "path": str(self.bundle.folder)}
            return StoreSource(self.bundle.molecules, BOXED, facts)
        if name == LIBRARY:
            label, library = self.libraries[-1]
            return library_source(library, label)
        if Path(name).is_dir():
            return StoreSource.open(name)
        if self._handed:
            return self._handed.source()
        return file_source(name, self.rejects, dict(self.setup.columns))

    @property
    def is_handing(self) -> bool:
        """Whether it has something that other processes need not make again."""
        return bool(self.added) or self._described is not None

    @property
    def _described(self) -> ListedSource | None:
        """Candidates of a file."""
        name = self.setup.database
        is_file = name is not None and name != LIBRARY and not Path(name).is_dir()
        return self.source if is_file and isinstance(self.source, ListedSource) else None

    def hand(self, folder: Path) -> None:
        """Write what other processes need not make again into a folder."""
        Handed(folder).put(self._described, self.fitted, self.added)

    def facts(self) -> dict[str, Any]:
        """What a run folder says of what was opened."""
        return {
            "model": {
                "path": str(self.bundle.folder),
                "name": BUNDLE if self.setup.model is None else self.bundle.folder.name,
                "about": _about(self.bundle),
                "sha256": {n: f["sha256"] for n, f in self.bundle.manifest["files"].items()},
            },
            "database": self.source.facts(),
            "expected_share": self.expected_share,
            "libraries": [
                {"label": label, "spectra": len(library)} for label, library in self.libraries
            ],
            "prior": None if self.prior is None else self.prior.facts(),
            "added": self.added,
        }


def _noted(one: Answer | SetAside, notes: tuple[str, ...]) -> Answer | SetAside:
    return replace(one, notes=(*one.notes, *notes)) if isinstance(one, Answer) else one


def _about(bundle: Bundle) -> str:
    """In a sentence what a bundle has learned from."""
    molecules = len(bundle.library.molecules)
    return f"Learned from {len(bundle.library):,} spectra of {molecules:,} molecules."


def _with_tolerance(fitted: Fitted, peaks: Tolerance | None) -> Fitted:
    """The same channels, those that explain peaks with a tolerance of the user's."""
    if peaks is None:
        return fitted
    channels = [
        channel_from(channel.name, {**vars(channel.options), "ppm": max(peaks.ppm, 1e-6),
                                    "least": peaks.least})
        if channel.reads_pieces else channel
        for channel in fitted.channels
    ]  # fmt: skip
    return replace(fitted, channels=channels)


def answers(
    features: Iterable[Feature],
    setup: Setup,
    *,
    engine: Engine | None = None,
    shop: Workshop | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Answer | SetAside]:
    """What is said about features, in their order.

    Parameters
    ----------
    features : iterable of Feature
        Read as they are needed, a thousand at a time.
    setup : Setup
    engine : Engine, optional
        Processes of this machine by default. Answers do not depend on it.
    shop : Workshop, optional
        Of the same setup, opened: what it has made is handed to the processes.
    progress : callable of int
        Told how many are answered, before these are returned.
    """
    waiting: deque[tuple[list[int], int]] = deque()  # of each batch: places, and its chunk's size
    chunk: dict[int, Answer | SetAside] = {}
    done = 0
    batches = _batches(features, waiting)
    with _handed(shop) as folder:
        work: WithOpened[Workshop, list[Feature], list[Answer | SetAside]] = WithOpened(
            answered, Workshop, setup, folder
        )
        for batch in (engine or LocalEngine()).results(work, batches):
            places, size = waiting.popleft()
            chunk |= zip(places, batch, strict=True)
            done += len(batch)
            progress(done)
            if len(chunk) == size:
                yield from (chunk.pop(place) for place in range(size))


@contextmanager
def _handed(shop: Workshop | None) -> Iterator[str | None]:
    """A folder with what a workshop has made; None where there is nothing to hand on."""
    if shop is None or not shop.is_handing:
        yield None
        return
    with TemporaryDirectory(prefix="mzseek-") as folder:
        with naming_output(Path(folder)):
            shop.hand(Path(folder))
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


def answered(shop: Workshop, features: list[Feature]) -> list[Answer | SetAside]:
    """What is said about features; one that breaks is set aside, and does not stop the others."""
    try:
        return shop.answers(features)
    except _NOT_OF_A_FEATURE:
        raise
    except MzseekError:
        return [one for feature in features for one in _alone(shop, feature)]


def _alone(shop: Workshop, feature: Feature) -> list[Answer | SetAside]:
    try:
        return shop.answers([feature])
    except MzseekError as error:
        where = f"{feature.where}: {feature.name}"
        return [SetAside(where, str(error), len(feature.spectra))]
