"""What experiments cost before they are begun: runs, hours of a core, disk."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mzseek.datasets.files import dataset_of, find_dataset
from mzseek.experiments.experiment import Experiment, Scale
from mzseek.experiments.kinds import kind_named
from mzseek.experiments.reproduce import runnable
from mzseek.experiments.sweep import Trial
from mzseek.io import StrPath

MASSSPECGYM = {"train": 194_119, "val": 19_429}  # spectra, as the paper has them
BATCH, EVERY, USUAL_LENGTH = 64, 1_000, 253  # spectra a step, steps between validations, candidates
VALIDATIONS = 20  # of a run whose protocol follows the number of steps, twice an epoch at most
RUN_BYTES = 1_000_000_000  # weights and predictions of a run of full size, at most
MEASURED_BYTES = 100_000  # what stays of a run whose weights are dropped

# Core-seconds, from docs/performance.md: a step of two threads on lists of 253 candidates, and the
# validation of a spectrum. A loss that reads no list costs as much as the network itself.
NETWORK_SECONDS = 0.080
STEP_SECONDS = {
    "fp-cos": 0.090, "combined": 0.090, "emb-cos": 0.122, "emb-mlp": 0.268, "fp-mlp": 3.406,
}  # fmt: skip
VALIDATION_SECONDS = 0.0004


@dataclass(frozen=True)
class RunSize:
    """What the time of a run depends on: loss, candidates a list, epochs and protocol."""

    loss: str
    length: int
    epochs: int
    protocol: str

    @classmethod
    def of(cls, trial: Trial) -> "RunSize":
        """Return the size of a trial; lists are of the usual length unless negatives are mined."""
        config = trial.config
        length = config.hard[1] if config.hard else USUAL_LENGTH
        return cls(config.loss, length, config.epochs, config.protocol)

    def steps(self, train: int) -> int:
        """Return the steps on that many training spectra."""
        return -(-train // BATCH) * self.epochs

    def hours(self, folds: Mapping[str, int], step: float, validation: float) -> float:
        """Return the hours of a core, from the seconds of a step and of a spectrum's validation."""
        steps = self.steps(folds["train"])
        every = steps // EVERY
        count = every if self.protocol == "paper" else min(VALIDATIONS, 2 * self.epochs)
        return (step * steps + validation * folds["val"] * count) / 3600

    @property
    def step_seconds(self) -> float:
        """Core-seconds of a step; what a loss adds to the network grows with the lists."""
        added = STEP_SECONDS.get(self.loss, NETWORK_SECONDS) - NETWORK_SECONDS
        return NETWORK_SECONDS + added * self.length / USUAL_LENGTH


def count_runs(
    experiments: Iterable[Experiment], scale: Scale, *, can_mine: bool = True
) -> Counter[RunSize]:
    """Count the runs that experiments train, each once, by size; controls that are drawn cost none.

    Unless negatives ``can_mine``, rows that need them are left out.
    """
    trials: dict[tuple[str, str], Trial] = {}
    for experiment in experiments:
        cut, here = runnable(*experiment.at(scale), can_mine)
        for cell in kind_named(cut.kind).plan(cut, here).values():
            config = cell.grid[0][0].config  # whichever options are chosen, they cost the same
            for trial in cell.trials:
                is_run = cell.first_lr in (None, trial.lr) or trial.config == config
                if is_run and trial.config.model != "random":
                    trials[trial.config.fingerprint, trial.name] = trial
    return Counter(map(RunSize.of, trials.values()))


@dataclass(frozen=True)
class Estimate:
    """Runs, hours of a core in all and of the longest run, and bytes on disk at most."""

    runs: int
    hours: float
    longest: float
    disk: int


def estimate(
    runs: Mapping[RunSize, int], folds: Mapping[str, int], *, drop_models: bool = False
) -> Estimate:
    """Estimate what runs cost on folds of that many spectra, full-size models assumed.

    Examples
    --------
    >>> one_epoch = RunSize("bce", 253, epochs=1, protocol="paper")
    >>> estimate({one_epoch: 2}, {"train": 64_000, "val": 900}).hours * 3600
    160.72
    """
    hours = {size: size.hours(folds, size.step_seconds, VALIDATION_SECONDS) for size in runs}
    count = sum(runs.values())
    return Estimate(
        count,
        sum(hours[size] * number for size, number in runs.items()),
        max(hours.values(), default=0.0),
        count * (MEASURED_BYTES if drop_models else RUN_BYTES),
    )


def fold_sizes(data: StrPath | None) -> dict[str, int]:
    """Count training and validation spectra of a data set; bundled spectra for None.

    Where its table has no folds, all spectra count as training and a tenth as validation.
    """
    if data is None:
        return {"train": 1_050, "val": 225}  # of `mzseek.bundle.subset`
    import pandas as pd

    path = Path(data)
    table = (find_dataset(path) if path.is_dir() else dataset_of(path)).spectra
    columns = pd.read_csv(table, sep="\t", usecols=lambda name: name in {"smiles", "fold"})
    if "fold" not in columns:
        return {"train": len(columns), "val": len(columns) // 10}
    return {fold: int((columns["fold"] == fold).sum()) for fold in ("train", "val")}
