"""Several runs side by side, each in a process of its own."""

from dataclasses import replace
from pathlib import Path

from mzseek.errors import RunError
from mzseek.files import StrPath
from mzseek.runs.run import Run
from mzseek.training.plan.options import Options
from mzseek.work import Channel, Engine, LocalEngine, Progress, Say, silent, unheard
from mzseek.work.memory import keep_freed_memory

Job = tuple[Path, Options, Path, str]  # prepared folder, options, run folder, name


def train_several(
    data: StrPath,
    wanted: dict[str, Options],
    out: StrPath,
    *,
    processes: int | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    say: Say = unheard,
) -> dict[str, Run]:
    """Train runs side by side, one thread each.

    On a few cores that takes less time than one run after the other with all of them, since no
    thread waits for another.

    Parameters
    ----------
    data : Path
        Prepared folder.
    wanted : dict of str to Options
        By name; each run goes into a folder of its name, and no two into one.
    out : Path
        Folder of the runs. Runs that have ended with the same options are left as they are.
    processes : int, optional
        Runs at a time, on this machine; by default as many as there are cores.
    engine : Engine, optional
        Train elsewhere, such as on a Ray cluster whose machines see both folders. A run whose
        worker dies goes on from its last validation on another.
    progress : callable of (run's name, step, steps)
    say : callable of str
        Gets the warnings of each run.

    Returns
    -------
    dict of str to Run

    Raises
    ------
    RunError
        Two names are one folder.
    MzseekError
        A run has failed, or its process was killed. Runs at work are ended; each goes on from its
        last validation when it is asked for again.
    """
    data = Path(data)
    out = Path(out)
    _check_folders(wanted, out)
    data, out = data.resolve(), out.resolve()
    jobs = [
        (data, replace(options, threads=1), out / name, name) for name, options in wanted.items()
    ]
    engine = engine or LocalEngine(processes)
    for _ in engine.long_results(train_one, jobs, progress=progress, say=say):
        pass
    return {name: Run.open(out / name) for name in wanted}


def train_one(job: Job, channel: Channel) -> None:
    """Train a run, or go on with it, and tell of its steps and warnings by its name."""
    from mzseek.prepared.reader import Prepared
    from mzseek.training.train import train

    if channel.is_elsewhere:
        keep_freed_memory()
    data, options, out, name = job

    def note(stage: str, done: int, total: int | None = None) -> None:
        if stage == "training":
            channel.progress(name, done, total)

    def say(line: str) -> None:
        if line.startswith("warning"):
            channel.say(f"{name}: {line}")

    train(Prepared.open(data), options, out, resume=True, progress=note, say=say)


def _check_folders(wanted: dict[str, Options], out: Path) -> None:
    """Refuse names that are one folder: one run would be trained over the other."""
    owners: dict[Path, str] = {}
    for name in wanted:
        owner = owners.setdefault((out / name).resolve(), name)
        if owner != name:
            raise RunError(f"{out / name}: is the folder of two runs, {owner!r} and {name!r}")
