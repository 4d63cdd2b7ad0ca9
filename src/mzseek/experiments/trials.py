"""What has to be trained for a table: which runs, of which options, and which cell needs them."""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.losses import loss_named
from mzseek.models import ENCODERS, scorer_named
from mzseek.registry import check_name

if TYPE_CHECKING:
    from mzseek.training.plan.options import Options

SETTINGS = (
    "loss",
    "model",
    "candidates",
    "fingerprint",
    "similarity",
    "lr",
    "hard_by",
    "hard_keep",
)
USUAL_LISTS = "mass"


@dataclass(frozen=True)
class Setup:
    """What a cell's runs have in common: all but the learning rate, what is tuned, and the seed.

    Attributes
    ----------
    loss, model, fingerprint : str
    candidates : str
        Lists that are trained on.
    hard : (str, int) or None
        Negatives to be mined first: by mass or formula, and how many a list.
    parts : tuple of (str, value)
        Options of parts, such as ("loss.gamma", 2.0).
    epochs : int
    protocol : str
    """

    loss: str
    model: str
    fingerprint: str
    candidates: str
    hard: tuple[str, int] | None
    parts: tuple[tuple[str, Any], ...]
    epochs: int
    protocol: str


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes
    ----------
    setup : Setup
        With the values that are tuned filled in.
    lr : float
    seed : int
    """

    setup: Setup
    lr: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder: what a reader looks for, and a digest of all that makes it.

        An option that has its default is left out: the tables share a run, however they ask for it.
        """
        usual = _defaults(self.setup.loss, self.setup.model)
        own = tuple((name, v) for name, v in self.setup.parts if usual.get(name) != v)
        setup = replace(self.setup, parts=own)
        words = [setup.loss, "" if setup.model == "mlp" else setup.model, setup.candidates]
        words += [f"{name.partition('.')[2]}{_short(value)}" for name, value in setup.parts]
        words += [f"lr{self.lr:g}", f"seed{self.seed}"]
        made = json.dumps([vars(setup), self.lr, self.seed], sort_keys=True, default=str)
        digest = hashlib.sha256(made.encode()).hexdigest()[:8]
        return re.sub(r"[^A-Za-z0-9.+-]+", "-", "-".join(filter(None, words))) + f"-{digest}"

    def options(self) -> "Options":
        """What `mzseek.training.train.train` is asked for."""
        from mzseek.training.plan.options import Options
        from mzseek.training.plan.protocol import with_protocol

        setup = self.setup
        parts: dict[str, dict[str, Any]] = {}
        for name, value in setup.parts:
            part, _, option = name.partition(".")
            parts.setdefault(part, {})[option] = value
        options = Options.of(
            setup.loss, setup.model, parts, candidates=setup.candidates, epochs=setup.epochs,
            lr=self.lr, seed=self.seed,
        )  # fmt: skip
        return with_protocol(options, setup.protocol)


@dataclass(frozen=True)
class Asked:
    """A cell of a table of runs.

    Attributes
    ----------
    grid : tuple of tuples of Trial
        One inner tuple for each point that is chosen among, with a trial for each seed.
    metric : str
    candidates : str
        Lists it is measured on.
    fold : str
    similarity : str or None
    keeps_models : bool
        Whether the models themselves are needed once their numbers are measured.
    """

    grid: tuple[tuple[Trial, ...], ...]
    metric: str
    candidates: str
    fold: str
    similarity: str | None = None
    keeps_models: bool = False

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of its runs."""
        return tuple(itertools.chain.from_iterable(self.grid))


def asked_of(experiment: Experiment, row: Row, column: Column, scale: Scale) -> Asked | None:
    """The runs behind a cell; None where the table has none, or it is carried as published.

    Parameters
    ----------
    experiment : Experiment
    row, column
        Of it.
    scale : Scale
        As `Experiment.at` gives it.

    Raises
    ------
    ExperimentError
        A setting is unknown.
    """
    if row.is_literature or not experiment.has_cell(row, column):
        return None
    where = f"{experiment.name}: {row.key}: {column.key}"
    settings = {**column.settings, **row.settings, **row.in_columns.get(column.key, {})}
    scale = replace(scale, **row.scales.get(scale.name, {}))
    lists = column.candidates or USUAL_LISTS
    setup = _setup(settings, lists, experiment, scale, where)
    rates = settings.get("lr", scale.lr or experiment.lr)
    rates = rates if isinstance(rates, tuple) else (rates,)
    if not rates:
        raise ExperimentError(f"{where}: no learning rate; give one in protocol: lr")
    seeds = range(scale.seeds or experiment.seeds)
    grid = tuple(
        tuple(Trial(point, float(rate), seed) for seed in seeds)
        for point in _points(setup)
        for rate in (rates if setup.model != "random" else rates[:1])
    )
    similarity = settings.get("similarity")
    return Asked(grid, column.metric, lists, experiment.fold, similarity)


def _setup(
    settings: Mapping[str, Any], lists: str, experiment: Experiment, scale: Scale, where: str
) -> Setup:
    for name in settings:
        if "." not in name:
            check_name(SETTINGS, name, f"{where}: setting", ExperimentError)
    if "loss" not in settings:
        raise ExperimentError(f"{where}: loss is missing")
    loss = loss_named(settings["loss"])
    hard = None
    if "hard_keep" in settings:
        hard = (str(settings["hard_by"]), int(settings["hard_keep"]))
    # A loss that reads no lists is the same run whatever it is measured on.
    trained_on = settings.get("candidates", lists if loss.reads_candidates else USUAL_LISTS)
    if hard is not None:
        trained_on = f"hard-{hard[0]}-{hard[1]}"
    epochs = scale.epochs or experiment.epochs
    if loss.reads_candidates and scale.listwise_epochs is not None:
        epochs = scale.listwise_epochs
    parts = {**_fitting(scale.settings, loss.name, settings.get("model", "mlp")), **settings}
    return Setup(
        loss.name, settings.get("model", "mlp"), settings.get("fingerprint", "morgan2"),
        trained_on, hard, tuple(sorted((n, v) for n, v in parts.items() if "." in n)), epochs,
        scale.protocol,
    )  # fmt: skip


def _fitting(settings: Mapping[str, Any], loss: str, model: str) -> dict[str, Any]:
    """Of a scale's options, which are for all parts, those that these parts have."""
    own = _defaults(loss, model)
    return {name: value for name, value in settings.items() if name in own}


def _defaults(loss: str, model: str) -> dict[str, Any]:
    """Every option of the parts of a run, by its whole name, with its default."""
    owners: dict[str, Any] = {"loss": loss_named(loss)}
    owners["scorer"] = scorer_named(loss_named(loss).scorer)
    if model in ENCODERS:
        owners["encoder"] = ENCODERS[model]
    return {
        f"{part}.{name}": value
        for part, owner in owners.items()
        for name, value in vars(owner.options()).items()
    }


def _points(setup: Setup) -> list[Setup]:
    """One setup for each combination of the values that are tuned."""
    names = [name for name, _ in setup.parts]
    values = [value if isinstance(value, tuple) else (value,) for _, value in setup.parts]
    return [
        replace(setup, parts=tuple(zip(names, chosen, strict=True)))
        for chosen in itertools.product(*values)
    ]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
