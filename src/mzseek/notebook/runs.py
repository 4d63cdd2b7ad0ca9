"""Train, fit, evaluate and report runs in a notebook."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import require
from mzseek.core.text import Table, Tabular
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import Evaluation
from mzseek.evaluation.evaluate import evaluate as evaluate_run
from mzseek.evaluation.posterior_report import PosteriorReport, posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.io import StrPath
from mzseek.parallel.engine import Progress, no_log, silent
from mzseek.runs import run as folders

if TYPE_CHECKING:
    from mzseek.export.run_pages import Report


_INTERVAL = 0.5  # seconds between two states of the line
_WIDTH = 78


@contextlib.contextmanager
def progress_line(watch: bool) -> Iterator[Progress]:
    """Keep one line on standard error up to date, by a callable of (stage, done, total).

    The line is written over itself, which notebooks and terminals show as one, and is wiped in the
    end. Nothing is written for work that takes less than half a second.
    """
    last, is_shown = time.monotonic(), False

    def show(stage: str, done: int, total: int | None = None) -> None:
        nonlocal last, is_shown
        now = time.monotonic()
        if now - last < _INTERVAL:
            return
        last, is_shown = now, True
        line = f"{stage}: {done:,}{f' of {total:,}' if total else ''}"[:_WIDTH]
        sys.stderr.write(f"\r{line:<{_WIDTH}}")
        sys.stderr.flush()

    try:
        yield show if watch else silent
    finally:
        if is_shown:
            sys.stderr.write("\r" + " " * _WIDTH + "\r")
            sys.stderr.flush()


class Run(folders.Run, Tabular):
    """A run folder: its metrics, posteriors and reports.

    Examples
    --------
    >>> run = Run.open("runs/emb-cos")  # doctest: +SKIP
    >>> run.evaluate(candidates="formula").to_frame()  # doctest: +SKIP
    """

    def evaluate(
        self,
        fold: str = "test",
        candidates: str | None = None,
        *,
        similarity: str | None = None,
        ties: str = "expected",
        identity: str = "fingerprint",
        data: StrPath | None = None,
        watch: bool = True,
    ) -> Evaluation:
        """Compute its metrics on a fold, each from the checkpoint that was best by it.

        Parameters
        ----------
        fold : str
            ``train``, ``val`` or ``test``.
        candidates : str, optional
            Candidate lists; by default those it was trained with.
        similarity : str, optional
            Rank by this similarity of the predicted fingerprint, not by the model's own score.
        ties : str
            ``expected``, ``optimistic`` or ``pessimistic``.
        identity : str
            A hit has the same ``fingerprint``, or the same ``inchikey``.
        data : path, optional
            The prepared folder, if it has been moved.
        watch : bool
            Show how far it is.
        """
        how = Scoring(fold, candidates or self.measured_on, similarity, ties, identity)  # type: ignore[arg-type]
        with progress_line(watch) as progress:
            return evaluate_run(self, how, data=data, progress=progress)

    def posterior_report(
        self,
        fold: str = "test",
        candidates: str | None = None,
        *,
        identity: str = "fingerprint",
        data: StrPath | None = None,
        watch: bool = True,
    ) -> PosteriorReport:
        """Turn its scores into calibrated probabilities, decoded for each metric.

        Parameters are as in `evaluate`.
        """
        how = Scoring(fold, candidates or self.measured_on, identity=identity)
        with progress_line(watch) as progress:
            return posterior_report(self, how, data=data, progress=progress)

    beliefs = posterior_report  # its former name

    def report(
        self,
        out: StrPath,
        beside: Sequence["folders.Run | StrPath"] = (),
        *,
        fold: str = "test",
        candidates: str | None = None,
        decode: bool = True,
        data: StrPath | None = None,
        watch: bool = True,
    ) -> "Report":
        """Write pages about it, and about other runs of the same data, into a folder.

        Parameters
        ----------
        out : path
            Folder to make.
        beside : sequence of Run or path
            Runs to set beside it: a control that never sees the spectrum, above all.
        fold, candidates, data, watch
            As in `evaluate`.
        decode : bool
            Also calibrate and decode.
        """
        require("matplotlib", "a report")
        from mzseek.export.run_pages import report_runs

        others = [run if isinstance(run, folders.Run) else Run.open(run) for run in beside]
        how = Scoring(fold, candidates or self.measured_on)
        with progress_line(watch) as progress:
            return report_runs(
                [self, *others], out, how, decode=decode, data=data, progress=progress
            )

    def to_table(self) -> Table:
        """Return the best of each metric on validation, and the step where it was reached."""
        best = self.best
        return Table(
            {
                "metric on validation": list(best),
                "best": [entry["value"] for entry in best.values()],
                "step": [entry["step"] for entry in best.values()],
            },
            f"{self.folder}: {self.metadata['status']}",
            frozenset({"best"}),
        )


def evaluate(run: "folders.Run | StrPath", fold: str = "test", **options: Any) -> Evaluation:
    """Compute the metrics of a run on a fold; options are those of `Run.evaluate`."""
    folder = run.folder if isinstance(run, folders.Run) else run
    return Run.open(folder).evaluate(fold, **options)


def train(
    prepared: Prepared | StrPath,
    loss: str,
    out: StrPath,
    *,
    model: str = "mlp",
    parts: Mapping[str, Mapping[str, Any]] | None = None,
    protocol: str = "auto",
    resume: bool = False,
    watch: bool = True,
    **options: Any,
) -> Run:
    """Train a model on a prepared folder.

    Parameters
    ----------
    prepared : Prepared or path
    loss : str
        One of `mzseek.losses.LOSSES`.
    out : path
        Run folder to make.
    model : str
        One of `mzseek.models.ENCODERS`, or ``random``.
    parts : mapping, optional
        Options of the parts: ``{"encoder": {"width": 512}, "loss": {"gamma": 3.0}}``.
    protocol : str
        ``auto`` or ``paper``: what warm-up, validations and bias are where they are not given.
    resume : bool
        Go on with a run that was interrupted.
    watch : bool
        Show progress and messages.
    **options
        Fields of `mzseek.training.options.Options`, such as ``epochs=10``.
    """
    require("torch", "training")
    from mzseek.training import train as training  # torch takes a second to load
    from mzseek.training.options import Options, with_protocol

    chosen = with_protocol(Options.of(loss, model, parts, **options), protocol)
    say = print if watch else no_log
    with progress_line(watch) as progress:
        run = training.train(
            _opened(prepared), chosen, out, resume=resume, progress=progress, say=say
        )
    return Run.open(run.folder)


def fit(
    prepared: Prepared | StrPath,
    out: StrPath,
    channels: str = "fragments,analogs",
    *,
    jobs: int | None = None,
    watch: bool = True,
    **options: Any,
) -> Run:
    """Fit evidence channels and the ranker that combines them, on a prepared folder.

    Parameters
    ----------
    prepared : Prepared or path
    out : path
        Run folder to make.
    channels : str
        Names with commas between, as ``mzseek fit --channels`` takes them.
    jobs : int, optional
        Processes; all cores by default.
    watch : bool
        Show progress and messages.
    **options
        Fields of `mzseek.evidence.options.FitOptions`.
    """
    from mzseek.evidence import channels_from, fitting

    with progress_line(watch) as progress:
        run = fitting.fit(
            _opened(prepared), channels_from(channels), out, fitting.FitOptions(**options),
            jobs=jobs, progress=progress, say=print if watch else no_log,
        )  # fmt: skip
    return Run.open(run.folder)


def _opened(prepared: Prepared | StrPath) -> Prepared:
    return prepared if isinstance(prepared, Prepared) else Prepared.open(prepared)
