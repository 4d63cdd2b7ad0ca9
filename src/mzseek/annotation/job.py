"""A whole job: files of spectra in, a folder or a file of answers out."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from mzseek.annotation.answers import Answer
from mzseek.annotation.asking.instruments import instrument_notes, unexplained_remark
from mzseek.annotation.asking.named import Named
from mzseek.annotation.opening.lending import lending_lines
from mzseek.annotation.opening.setup import Setup
from mzseek.annotation.pipeline import SetAside, Workshop, answered, answers
from mzseek.annotation.reading import FeatureFiles, Grouping
from mzseek.annotation.scoring import tolerance_of
from mzseek.annotation.writing import Output, Settings, Writer
from mzseek.annotation.writing.output import SET_ASIDE
from mzseek.errors import RunError
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
    _check_out(Path(out), files, setup, settings)
    shop = Workshop(setup)  # whatever is missing is told before anything is made
    facts = shop.facts()
    known, own = _settings(settings, files, shop, facts), more(facts) if more else {}
    signature = _digest([facts, _plain(setup), asdict(grouping or Grouping()), _inputs(files)])
    levels, named, removed = dict[str, int](), shop.named(), Counter[str]()
    explained: list[float] = []
    with Output(Path(out), known, signature=signature, resume=resume, more=own) as output:
        progress("reading", 0, None)
        features = FeatureFiles(files, grouping, output.set_aside)
        records = features.records + features.set_aside
        if before := output.resumed:
            say(f"{before:,} features were done before.")
        told = partial(_told, progress, before, len(features))
        for one in _answers(features, named, output, shop, jobs, told):
            _take(one, output, levels)
            if isinstance(one, Answer):
                removed.update(one.removed)
                explained += [one.best.explained] if one.best else []
        counts = output.counts(records)
        said = output.finish(
            records=records, options=_plain(setup) | _joined(known), inputs=files,
            bundle=facts["model"], database=facts["database"], prior=facts["prior"],
            more=more_facts(facts, named, removed),
        )  # fmt: skip
    said = [*features.warnings(), *remarks(shop, named, explained), *said, *_aside_lines(output)]
    return Done(Path(out), counts, dict(sorted(levels.items())), facts, said)


def _aside_lines(output: Output) -> list[str]:
    """Where reasons are: in a table of the folder; of a single file, here."""
    aside = output.set_aside
    if not aside.count:
        return []
    if output.is_folder:
        return [f"What was set aside, and why: {output.target / SET_ASIDE}"]
    lines = [f"Set aside: {where}: {reason}" for where, reason in aside.first]
    left = aside.count - len(lines)
    return [*lines, *([f"… and {left:,} more: a folder as --out lists them all"] if left else [])]


def _check_out(out: Path, files: Sequence[Path], setup: Setup, settings: Settings | None) -> None:
    """Refuse to write over what is read."""
    tables = [] if settings is None else [settings.network, settings.features]
    named = [setup.database, setup.model, setup.prior, *setup.libraries]
    read = [*files, *(table for table in tables if table), *(Path(n) for n in named if n)]
    if any(out.resolve() == path.resolve() for path in read):
        raise RunError(f"{out}: is read as well, and would be written over; name another --out")


def _told(progress: Progress, before: int, total: int, done: int) -> None:
    progress("features", before + done, total)


def remarks(shop: Workshop, named: Named, explained: Sequence[float]) -> list[str]:
    """What the user should read about all features together.

    Rows of the user's own lists and weights that cannot be used, what libraries have added, an
    instrument that the files state or that the model does not know, tolerances at which the best
    candidates explain nothing (`explained`: share of the intensity), and features of tables that no
    file has.
    """
    said = [
        f"Skipped {what}: {len(rejects):,}, the first: {rejects[0][0]}: {rejects[0][1]}"
        for what, rejects in (("candidates", shop.rejects), ("weights", shop.prior_rejects))
        if rejects
    ]
    said += lending_lines(shop.added)
    said += [f"{note[0].upper()}{note[1:]}." for note in instrument_notes(shop.setup.instrument)]
    said += shop.setup.remarks
    said += unexplained_remark(explained, shop.setup.peaks)
    return said + named.lines()


def more_facts(
    facts: Mapping[str, Any], named: Named, removed: Mapping[str, int]
) -> dict[str, Any]:
    """What ``run.json`` says of the expected share, libraries, tables and ion rules."""
    return {
        "expected_share": facts["expected_share"],
        "libraries": facts["libraries"],
        "added": facts["added"],
        "tables": named.facts(),
        "candidates_removed_by_ion_rules": dict(sorted(removed.items())),
    }


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
        for number in range(1, one.spectra + 1):
            which = f", spectrum {number} of {one.spectra}" if one.spectra > 1 else ""
            output.set_aside(f"{one.where}{which}", one.reason)
    else:
        output.write(one)
        levels[one.level.number] = levels.get(one.level.number, 0) + 1


def _answers(
    features: FeatureFiles,
    named: Named,
    output: Output,
    shop: Workshop,
    jobs: int | None,
    told: Callable[[int], None],
) -> Iterator[Answer | SetAside]:
    """Answers to what is not done: to few features by what is open, to many by processes."""
    left = (each for each in named.meet(features) if not output.was_done(each))
    if len(features) - output.resumed > FEW:
        yield from answers(left, shop.setup, engine=LocalEngine(jobs), shop=shop, progress=told)
        return
    for done, feature in enumerate(left, 1):
        yield from answered(shop, [feature])
        told(done)


def _plain(setup: Setup) -> dict[str, Any]:
    """The setup as plain data."""
    return dict(json.loads(json.dumps(asdict(setup))))


def _joined(settings: Settings) -> dict[str, Any]:
    """Tables and networks that answers are joined to, for the options of a run."""
    tables = {"features": settings.features, "network": settings.network}
    return {name: None if path is None else str(path.resolve()) for name, path in tables.items()}


def _inputs(files: Sequence[Path]) -> list[Any]:
    return [[str(path), content_hash(path) if path.is_file() else None] for path in files] + [
        __version__
    ]


def _digest(facts: Any) -> str:
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
