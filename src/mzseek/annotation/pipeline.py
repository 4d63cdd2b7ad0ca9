"""`answers`: features in, answers out, a batch at a time, in as many processes as are wanted."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from mzseek.annotation.answering import Wanted, answer, no_answer
from mzseek.annotation.answers import Answer
from mzseek.annotation.asking.ask import Asked, ask
from mzseek.annotation.asking.ions import Ions
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.bundle import Bundle
from mzseek.annotation.candidates.listed import file_source, library_source
from mzseek.annotation.candidates.source import Source
from mzseek.annotation.candidates.store import StoreSource
from mzseek.annotation.features import Feature
from mzseek.annotation.references import Neighbours, neighbours
from mzseek.annotation.scoring import score
from mzseek.errors import AnnotationError, MzseekError
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.registry import channel_from
from mzseek.files import StrPath
from mzseek.library import Library
from mzseek.work import Engine, LocalEngine
from mzseek.work.opened import WithOpened

LIBRARY = "library"  # the name of a database that is the library's own molecules
BUNDLE = "the bundle that comes with mzseek"
BUNDLED, BOXED = "the library of the bundle", "the database of the bundle"
_FEATURES = 64  # a batch, for memory's sake; what is said of a feature depends on no other
_BY_MASS = 1_024  # features that are dealt into batches by mass: neighbours share candidates


@dataclass(frozen=True)
class Setup:
    """All that answers depend on, as plain data: it travels to other processes.

    Attributes
    ----------
    model : str or None
        Folder of a bundle; None for the one in the box.
    database : str or None
        Folder of a store, a file of candidates, ``library`` for the library's own molecules, or
        None for the molecules in the box.
    libraries : tuple of str
        Folders of reference spectra beside the bundle's.
    precursor, peaks : Tolerance
        Peaks as the model has them, if None.
    ions : Ions
    most : int
        Candidates of a feature that are scored, at the most.
    formulas : tuple of (str, str)
        Formulas that are known, by the feature's name.
    wanted : Wanted
    """

    model: str | None = None
    database: str | None = None
    libraries: tuple[str, ...] = ()
    precursor: Tolerance = field(default_factory=Tolerance)
    peaks: Tolerance | None = None
    ions: Ions = field(default_factory=Ions)
    most: int = 5_000
    formulas: tuple[tuple[str, str], ...] = ()
    wanted: Wanted = field(default_factory=Wanted)


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

    Attributes
    ----------
    rejects : list of (str, str)
        Where and why, for each row of a list of candidates that holds no molecule.

    Raises
    ------
    MzseekError
        Something that it names is missing or damaged.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.rejects: list[tuple[str, str]] = []
        self.bundle = Bundle.open(setup.model)
        self.fitted = _with_tolerance(self.bundle.fitted, setup.peaks)
        own = [(Path(path).name, Library.open(path)) for path in setup.libraries]
        self.libraries = [(BUNDLED, self.bundle.library), *own]
        # Said before anything is scored: a coverage that the model does not promise.
        for mode in (1, -1):
            self.bundle.confidence.of(mode).threshold(setup.wanted.coverage)
        self.source = self._source()

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Labels of what scores are made of."""
        return tuple(channel.label for channel in self.fitted.channels)

    def answers(self, features: Sequence[Feature]) -> list[Answer | SetAside]:
        """What is said about each feature, in their order."""
        asked: list[Asked | SetAside] = [self._asked(feature) for feature in features]
        good = [each for each in asked if isinstance(each, Asked)]
        near = dict(zip(map(id, good), neighbours(good, self.libraries, self.setup.precursor),
                        strict=True))  # fmt: skip
        full = [each for each in good if each.kept]
        made = self._scored(full, near)
        found: list[Answer | SetAside] = []
        for each in asked:
            if isinstance(each, SetAside):
                found.append(each)
            elif each.kept:
                found.append(made[id(each)])
            else:
                found.append(no_answer(each, near[id(each)], self.channels, self.setup.wanted))
        return found

    def _scored(self, full: Sequence[Asked], near: dict[int, Neighbours]) -> dict[int, Answer]:
        if not full:
            return {}
        confidence = self.bundle.confidence
        scored, molecules = score(
            full, self.fitted, confidence, self.bundle.fingerprint, self.source.index
        )
        return {
            id(each): answer(
                each, own, near[id(each)],
                confidence.of(-1 if each.readings[0].adduct.endswith("-") else 1),
                self.channels, molecules.fingerprints(own.rows), self.setup.wanted,
            )
            for each, own in zip(full, scored, strict=True)
        }  # fmt: skip

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
        return file_source(name, self.rejects)

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
            "libraries": [
                {"label": label, "spectra": len(library)} for label, library in self.libraries
            ],
        }


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
    progress : callable of int
        Told how many are answered, before these are returned.
    """
    work: WithOpened[Workshop, list[Feature], list[Answer | SetAside]] = WithOpened(
        _answered, Workshop, setup
    )
    waiting: deque[tuple[list[int], int]] = deque()  # of each batch: places, and its chunk's size
    chunk: dict[int, Answer | SetAside] = {}
    done = 0
    batches = _batches(features, waiting)
    for batch in (engine or LocalEngine()).results(work, batches):
        places, size = waiting.popleft()
        chunk |= zip(places, batch, strict=True)
        done += len(batch)
        progress(done)
        if len(chunk) == size:
            yield from (chunk.pop(place) for place in range(size))


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


def _answered(shop: Workshop, features: list[Feature]) -> list[Answer | SetAside]:
    try:
        return shop.answers(features)
    except MzseekError:
        if len(features) == 1:
            raise
        # One that breaks must not take the others along: find it.
        return [one for feature in features for one in _alone(shop, feature)]


def _alone(shop: Workshop, feature: Feature) -> list[Answer | SetAside]:
    try:
        return shop.answers([feature])
    except MzseekError as error:
        where = f"{feature.where}: {feature.name}"
        return [SetAside(where, str(error), len(feature.spectra))]


def setup_of(
    *,
    model: StrPath | None = None,
    database: StrPath | None = None,
    library: StrPath | Sequence[StrPath] | None = None,
    **options: Any,
) -> Setup:
    """A setup of paths as users give them."""
    libraries = [library] if isinstance(library, str | os.PathLike) else list(library or ())
    return Setup(
        model=None if model is None else str(Path(str(model)).resolve()),
        database=_resolved(database),
        libraries=tuple(str(Path(str(each)).resolve()) for each in libraries),
        **options,
    )


def _resolved(database: StrPath | None) -> str | None:
    if database is None or str(database) == LIBRARY:
        return None if database is None else LIBRARY
    path = Path(str(database))
    if not path.exists():
        raise AnnotationError(
            f"{path}: no such file or folder, expected a database, or a list of candidates"
        )
    return str(path.resolve())
