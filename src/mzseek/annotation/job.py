"""A whole job: files of spectra in, a folder or a file of answers out."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from mzseek.annotation.answers import Answer
from mzseek.annotation.pipeline import SetAside, Setup, Workshop, answers
from mzseek.annotation.reading import FeatureFiles, Grouping
from mzseek.annotation.scoring import tolerance_of
from mzseek.annotation.writing import Output, Settings, Writer
from mzseek.files import StrPath, content_hash
from mzseek.version import __version__
from mzseek.work import LocalEngine
from mzseek.work.progress import Progress, Say, silent, unheard

Make = Callable[[Path, str, Settings], Writer]
FEW = 64  # features: with fewer, processes take longer to begin than they save


@dataclass(frozen=True)
class Done:
    """How a job has ended.

    Attributes
    ----------
    out : Path
    counts : mapping of str to int
        Records in, answered and set aside, and features.
    levels : mapping of str to int
        Features by level, of those answered by this process.
    facts : mapping
        What was searched.
    said : list of str
        What the user should read.
    """

    out: Path
    counts: Mapping[str, int]
    levels: Mapping[str, int]
    facts: Mapping[str, Any]
    said: list[str]


def annotate_files(
    paths: Sequence[StrPath],
    out: StrPath,
    setup: Setup,
    *,
    grouping: Grouping | None = None,
    settings: Settings | None = None,
    more: Callable[[Mapping[str, Any]], Mapping[str, Make]] | None = None,
    resume: bool = False,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Say = unheard,
) -> Done:
    """Annotate the spectra of files.

    Parameters
    ----------
    paths : sequence of paths
        Any format that `mzseek.spectra.read_spectra` reads.
    out : path
    setup : Setup
    grouping : Grouping, optional
    settings : Settings, optional
    more : callable of facts, optional
        Makes further writers by name or suffix, given what will be searched.
    resume : bool
        Go on from what a killed process has left.
    jobs : int, optional
    progress, say : callables

    Raises
    ------
    MzseekError
        A file that is missing or of another kind, a model or database that is damaged, an output
        in the way.
    """
    files = [Path(path) for path in paths]
    shop = Workshop(setup)  # whatever is missing is told before anything is made
    facts = shop.facts()
    known = _settings(settings, files, shop, facts)
    own = more(facts) if more is not None else {}
    signature = _digest([facts, _plain(setup), asdict(grouping or Grouping()), _inputs(files)])
    levels: dict[str, int] = {}
    with Output(Path(out), known, signature=signature, resume=resume, more=own) as output:
        progress("reading", 0, None)
        features = FeatureFiles(files, grouping, output.set_aside)
        records = features.records + features.set_aside
        if output.resumed:
            say(f"{output.resumed:,} features were done before.")

        def told(done: int) -> None:
            progress("features", output.resumed + done, len(features))

        for one in _answers(features, output, shop, jobs, told):
            _take(one, output, levels)
        counts = output.counts(records)
        said = output.finish(
            records=records, options=_plain(setup), inputs=files,
            bundle=facts["model"], database=facts["database"],
        )  # fmt: skip
    return Done(
        Path(out), counts, dict(sorted(levels.items())), facts, [*_lost_candidates(shop), *said]
    )


def _lost_candidates(shop: Workshop) -> list[str]:
    """A line about rows of a list of candidates that hold no molecule."""
    if not shop.rejects:
        return []
    where, reason = shop.rejects[0]
    return [f"{len(shop.rejects):,} candidates were set aside, the first: {where}: {reason}"]


def _settings(
    given: Settings | None, files: Sequence[Path], shop: Workshop, facts: Mapping[str, Any]
) -> Settings:
    """What writers must know, filled in."""
    return replace(
        given or Settings(),
        inputs=tuple(str(path) for path in files),
        database=shop.source.label,
        database_version=_digest(facts["database"])[:16],
        options=_plain(shop.setup),
        **tolerance_of(shop.fitted),  # peaks are explained as they were scored
    )


def _take(one: Answer | SetAside, output: Output, levels: dict[str, int]) -> None:
    """Write an answer, or set its records aside, each with the reason."""
    if isinstance(one, SetAside):
        for _ in range(one.spectra):
            output.set_aside(one.where, one.reason)
    else:
        output.write(one)
        levels[one.level.number] = levels.get(one.level.number, 0) + 1


def _answers(
    features: FeatureFiles,
    output: Output,
    shop: Workshop,
    jobs: int | None,
    told: Callable[[int], None],
) -> Iterator[Answer | SetAside]:
    """Answers to what is not done: to few features by what is open, to many by processes."""
    left = (each for each in features if not output.was_done(each))
    if len(features) - output.resumed > FEW:
        yield from answers(left, shop.setup, engine=LocalEngine(jobs), progress=told)
        return
    for done, feature in enumerate(left, 1):
        yield from shop.answers([feature])
        told(done)


def _plain(setup: Setup) -> dict[str, Any]:
    """The setup as plain data."""
    return dict(json.loads(json.dumps(asdict(setup))))


def _inputs(files: Sequence[Path]) -> list[Any]:
    return [[str(path), content_hash(path) if path.is_file() else None] for path in files] + [
        __version__
    ]


def _digest(facts: Any) -> str:
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
