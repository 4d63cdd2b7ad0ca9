"""Options of a training run, its defaults, protocol and limits."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from mzseek.core.errors import LossError, ModelError, MzseekError, RunError
from mzseek.core.registry import (
    ComponentConfig,
    check_name,
    check_ranges,
    component_from,
    described,
    option,
    option_from_text,
    options_from,
)
from mzseek.datasets.prepared import Prepared
from mzseek.losses import LOSSES, Loss, loss_named
from mzseek.models import (
    BASELINES,
    ENCODERS,
    SCORERS,
    ModelSpec,
    build,
    encoder_part,
    scorer_named,
    scorer_part,
)
from mzseek.models.layers import device
from mzseek.runs.checkpoints import model_of_parts
from mzseek.runs.run import Description, Run

PROTOCOLS = ("auto", "paper")
PAPER: dict[str, Any] = {
    "warmup": 500, "validate_every": 1000, "bias": "zero", "other_rankings": True,
}  # fmt: skip
# Of a shorter run, the share that warms up; how often it is validated, and how often an epoch at
# the most: to measure MassBank's validation fold takes a twentieth of an epoch, and 200 MB are
# written each time, to go on from.
WARMING, VALIDATIONS, AN_EPOCH = 10, 20, 2
AS_IN_PAPER = VALIDATIONS * PAPER["validate_every"]

BIASES = ("zero", "log-odds")
OFFSETS = ("prior",)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of training itself, that belong to no part; `Options` says what each is."""

    candidates: str = option("mass", "candidate lists that are trained on, and watched")
    epochs: int = option(50, "passes over the training fold", above=0)
    batch_size: int = option(64, "spectra a step", above=0)
    lr: float = option(1e-4, "learning rate", above=0)
    seed: int = option(0, "of weights, order and dropout", least=0)
    warmup: int | None = option(None, "steps until the full learning rate", least=0)
    clip: float = option(1.0, "largest norm of a gradient", above=0, finite=False)
    bias: str | None = option(None, "start of the fingerprint's bias", among=BIASES)
    validate_every: int | None = option(None, "steps between validations", above=0)
    other_rankings: bool | None = option(None, "also keep what ranks best by Tanimoto")
    patience: int | None = option(None, "validations without gain before it stops", above=0)
    offset: str | None = option(None, "fixed term in the softmax of training", among=OFFSETS)
    start_from: str | None = option(None, "run to take weights from")
    threads: int | None = option(None, "CPU threads", above=0)


MODELS = (*ENCODERS, *BASELINES)
CONTROLS = (*(name for name, kind in ENCODERS.items() if not kind.sees_spectrum), *BASELINES)
PARTS = ("encoder", "scorer", "loss")


def read_settings(
    texts: Iterable[str],
    loss: str,
    model: str,
    given: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Options of the parts, from texts and from what is given already.

    Parameters
    ----------
    texts : iterable of str
        ``PART.OPTION=VALUE``, the part being the encoder, the scorer or the loss.
    loss, model : str
        Names of what is trained: they say which options there are.
    given : mapping, optional
        Options that were given in another way, by part; None means "not given".

    Returns
    -------
    dict
        By part, as `mzseek.training.options.Options.of` takes them.

    Raises
    ------
    RunError, LossError
        A name is unknown, a value does not fit, or an option is given twice.

    Examples
    --------
    >>> read_settings(["encoder.layers=4", "loss.gamma=3"], "focal", "transformer")
    {'encoder': {'layers': 4}, 'scorer': {}, 'loss': {'gamma': 3.0}}
    """
    check_name(LOSSES, loss, "loss", LossError)
    check_name(MODELS, model, "model", RunError)
    taken: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for part, options in (given or {}).items():
        taken[part] |= {name: value for name, value in options.items() if value is not None}
    kinds: dict[str, tuple[str, Any]] = {
        "scorer": (loss_named(loss).scorer, scorer_named(loss_named(loss).scorer)),
        "loss": (loss, loss_named(loss)),
    }
    if model in ENCODERS:
        kinds["encoder"] = (model, ENCODERS[model])
    for text in texts:
        where, equals, value = text.partition("=")
        part, dot, name = where.partition(".")
        if not (equals and dot):
            raise RunError(
                f"--set {text[:80]!r}: expected PART.OPTION=VALUE, such as encoder.width=512"
            )
        check_name(PARTS, part, "--set: part", RunError)
        if part not in kinds:
            raise RunError(f"--set {where[:80]}: the model {model} has no encoder")
        if name in taken[part]:
            raise RunError(f"--set {where}: is given twice")
        whose, kind = kinds[part]
        taken[part][name] = option_from_text(
            kind.options, name, value, f"--set: {part} {whose}", RunError
        )
    return taken


def list_settings() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Every part by its whole name (``encoder mlp``); of its options, name, default and meaning."""
    return [
        (f"{part} {name}", described(kind.options))
        for part, kinds in (("encoder", ENCODERS), ("scorer", SCORERS), ("loss", LOSSES))
        for name, kind in kinds.items()
    ]


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """Options of a run. None means "not given"; it is never guessed from a number.

    The parts carry options of their own, complete: what is not given of them has its default, made
    by `Options.of`. What follows from the number of steps is filled in by
    `mzseek.training.options`. Once a run has begun, None is left only where an option does
    not apply.

    Attributes
    ----------
    loss : ComponentConfig
        A loss in `LOSSES`.
    encoder : ComponentConfig or None
        An encoder in `ENCODERS`; None for a baseline.
    scorer : ComponentConfig
        The scorer that the loss trains.
    baseline : str or None
        ``random``: scored without a model.
    candidates : str
        The retrieval setting that listwise losses read, and that early stopping looks at.
    epochs, batch_size, seed, clip
        The paper's: at most 50 epochs of batches of 64, gradients clipped to a norm of 1.
    lr : float
        Learning rate.
    warmup : int or None
        Steps in which the learning rate rises to its full height.
    bias : str or None
        ``zero`` (small random numbers, as published) or ``log-odds`` (each bit's base rate).
    validate_every : int or None
        Steps between validations.
    other_rankings : bool or None
        Also validate rankings by the other similarities of a predicted fingerprint, and keep the
        weights that were best by each.
    patience : int or None
        Stop after this many validations without a better value of the metric that counts.
    offset : str or None
        ``prior``: the score of a blind scorer stands as a fixed term in the softmax of a listwise
        loss, in training alone; see `mzseek.training.prior_offset`.
    start_from : str or None
        Run whose weights this one starts from (two-stage training).
    threads : int or None
        CPU threads; None leaves them to torch.
    """

    loss: ComponentConfig
    encoder: ComponentConfig | None
    scorer: ComponentConfig
    baseline: str | None = None

    @classmethod
    def of(
        cls,
        loss: str = "bce",
        model: str = "mlp",
        parts: Mapping[str, Mapping[str, Any]] | None = None,
        **training: Any,
    ) -> "Options":
        """Options by the names of the loss and the model.

        Parameters
        ----------
        loss : str
            A name in `LOSSES`.
        model : str
            An encoder, or ``random``.
        parts : mapping, optional
            Options of the parts that are not the default:
            ``{"encoder": {"width": 512}, "scorer": {}, "loss": {"gamma": 3.0}}``.
        **training
            The other fields.

        Raises
        ------
        RunError, LossError, ModelError
            A name or an option is unknown, or a value is out of its range.

        Examples
        --------
        >>> Options.of("focal", parts={"loss": {"gamma": 3.0}}).loss
        ComponentConfig(name='focal', options=FocalOptions(gamma=3.0))
        >>> Options.of("focal", parts={"loss": {"weight": 0.1}})
        Traceback (most recent call last):
        mzseek.core.errors.LossError: loss focal: option 'weight' is unknown, expected one of: gamma
        """
        given = dict(parts or {})
        if training.get("start_from") is not None:
            training["start_from"] = os.fspath(training["start_from"])
        for name in given:
            check_name(PARTS, name, "part", RunError)
        check_name(MODELS, model, "model", RunError)
        trained = {"name": loss, "options": given.get("loss", {})}
        baseline = model if model in BASELINES else None
        if baseline and given.get("encoder"):
            name = next(iter(given["encoder"]))
            raise RunError(f"model {model}: option {name!r} is unknown, it has no options")
        options = cls(
            loss=component_from(LOSSES, trained, "loss", LossError),
            encoder=None if baseline else encoder_part(model, given.get("encoder")),
            scorer=scorer_part(loss_named(loss).scorer, given.get("scorer")),
            baseline=baseline,
            **vars(options_from(TrainingOptions, training, "", RunError)),
        )
        options.check()
        return options

    @property
    def model(self) -> str:
        """Name of the encoder, or of the baseline."""
        return self.baseline or (self.encoder.name if self.encoder else "")

    @property
    def facts(self) -> Loss:
        """What is known about the loss."""
        return loss_named(self.loss.name)

    @property
    def starts_bias(self) -> bool:
        """Whether there is a bias of a fingerprint to start: none, or another run's, is not."""
        return self.facts.predicts_fingerprint and not self.start_from

    def check(self) -> None:
        """Refuse what is out of its range, or does not fit together.

        Raises
        ------
        RunError
        """
        check_ranges(self, RunError)
        if self.seed >= 2**64:
            raise RunError(f"seed is {self.seed}, expected less than 2^64")
        if self.bias == "log-odds" and not self.facts.predicts_fingerprint:
            raise RunError(f"--bias log-odds: {self.loss.name} predicts no fingerprint")
        if self.offset:
            self._check_offset()
        if self.start_from and self.bias == "log-odds":
            raise RunError(
                "--bias log-odds: the bias comes from the run that --start-from names; leave it out"
            )

    def _check_offset(self) -> None:
        """Refuse an offset where there is no softmax for it to stand in."""
        if self.facts.kind != "listwise":
            listwise = ", ".join(name for name, loss in LOSSES.items() if loss.kind == "listwise")
            raise RunError(
                f"--offset {self.offset}: {self.loss.name} is no listwise loss, expected one of: "
                f"{listwise}"
            )
        if self.baseline:
            raise RunError(f"--offset {self.offset}: {self.baseline} is not trained; leave it out")

    def described(self, prepared: Prepared) -> Description:
        """What a run is to be made of, in the sizes of the data."""
        model = self.model_for(prepared)
        return Description(
            loss=self.loss, scorer=self.scorer, encoder=self.encoder, baseline=self.baseline,
            bins=model.bins if model else None, bits=model.bits if model else None,
            options=self.training_dict(),
        )  # fmt: skip

    def model_for(self, prepared: Prepared) -> ModelSpec | None:
        """The model that is asked for, in the sizes of the data; None for a baseline."""
        if self.encoder is None:
            return None
        return model_of_parts(self.encoder, self.scorer, prepared)

    def training_dict(self) -> dict[str, Any]:
        """As plain data, all but the parts, which a run describes by themselves."""
        return {field.name: getattr(self, field.name) for field in fields(TrainingOptions)}

    def flat(self) -> dict[str, Any]:
        """Every option by its whole name (``encoder.width``), to tell two apart."""
        named: dict[str, Any] = {"loss": self.loss.name, "model": self.model}
        for name, part in (("encoder", self.encoder), ("scorer", self.scorer), ("loss", self.loss)):
            if part is not None:
                named |= {f"{name}.{key}": value for key, value in vars(part.options).items()}
        return named | self.training_dict()

    @classmethod
    def of_run(cls, run: Run) -> "Options":
        """The options that a run was begun with.

        Raises
        ------
        RunError
            Its folder names one that is unknown, or that does not fit.
        """
        try:
            options = cls(
                loss=run.loss, encoder=run.encoder, scorer=run.scorer, baseline=run.baseline,
                **vars(options_from(TrainingOptions, run.made.options, "", RunError)),
            )  # fmt: skip
            options.check()
        except MzseekError as error:
            raise RunError(f"{run.path}: {' '.join(str(error).split())}") from error
        return options


# float32, of each weight: itself, its gradient, and the optimiser's two moments.
_BYTES = 16
MOST_THREADS = 1_024
_USUAL_BATCH = 1_024
# Where Linux says how much a container may have, by its two generations of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_size(spec: ModelSpec, options: Options, spectra: int) -> None:
    """Refuse a model that cannot be trained here, and say what can.

    Parameters
    ----------
    spec : ModelSpec
    options : Options
    spectra : int
        Training spectra there are.

    Raises
    ------
    RunError
        Weights and moments would not fit into the machine's memory, or a batch would not.
    """
    if options.batch_size > max(spectra, _USUAL_BATCH):
        raise RunError(
            f"batch_size is {options.batch_size:,}, expected at most {spectra:,}, the number of "
            "training spectra"
        )
    memory = memory_of_machine()
    needed = training_bytes(spec, min(options.batch_size, spectra))
    if needed <= memory:
        return
    repeats = spec.encoder_kind.repeats
    layers = f" with {spec.repeats:,} {repeats}" if repeats else ""
    said = f"width {spec.width:,}{layers} and batches of {options.batch_size:,}"
    raise RunError(
        f"{said} would take {_gigabytes(needed)} of memory, and there are {_gigabytes(memory)}; "
        f"{_what_fits(spec, options, spectra, memory)}"
    )


def memory_of_machine() -> float:
    """Bytes of memory that training may use: the device's, or this machine's or container's."""
    if device() == "cuda":
        return float(torch.cuda.get_device_properties(0).total_memory)
    try:
        sizes = [float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not every system can be asked
        return float("inf")
    for path in _LIMITS:
        try:
            sizes.append(float(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return min(sizes)


def check_threads(options: Options) -> None:
    """Refuse more threads than any machine could start."""
    if options.threads is not None and options.threads > MOST_THREADS:
        raise RunError(f"threads is {options.threads:,}, expected at most {MOST_THREADS:,}")


def training_bytes(spec: ModelSpec, batch: int) -> float:
    """Memory that training takes at the least: weights, moments, and a batch on its way through.

    Nothing is allocated. Layers are alike, so that two small models tell what many layers take.
    """
    if name := spec.encoder_kind.repeats:
        one, two = (_parameters(_with(spec, **{name: layers})) for layers in (1, 2))
        weights = one + (two - one) * (spec.repeats - 1)
    else:
        weights = _parameters(spec)
    kept = spec.width * (spec.repeats + 1) + spec.bits  # what the backward pass reads again
    return _BYTES * weights + 4.0 * batch * kept


def _with(spec: ModelSpec, **options: int) -> ModelSpec:
    """The same with other options of the encoder."""
    return replace(spec, encoder=spec.encoder.replace(**options))


def _parameters(spec: ModelSpec) -> float:
    try:
        with torch.device("meta"):
            return float(sum(weight.numel() for weight in build(spec).parameters()))
    except (RuntimeError, TypeError, OverflowError, ModelError):  # more than can be counted
        return float("inf")


def _what_fits(spec: ModelSpec, options: Options, spectra: int, memory: float) -> str:
    """The largest width that would do, or what else to ask for less of."""
    batch = min(options.batch_size, spectra)

    def fits(width: int) -> bool:
        return training_bytes(_with(spec, width=width), batch) <= memory

    low, high = 0, spec.width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low >= 8:
        return f"a width of {low // 8 * 8:,} would do"
    return f"ask for fewer {spec.encoder_kind.repeats or 'parts'} or smaller batches"


def _gigabytes(size: float) -> str:
    return "more than can be counted" if size == float("inf") else f"{size / 1e9:,.1f} GB"


def with_protocol(options: Options, protocol: str) -> Options:
    """Options in which the protocol of that name has filled what was not given.

    Parameters
    ----------
    options : Options
    protocol : str
        ``paper`` fills in the paper's numbers; ``auto`` leaves the options to `for_steps`.

    Examples
    --------
    >>> with_protocol(Options.of(warmup=100), "paper").warmup
    100
    >>> with_protocol(Options.of(), "paper").warmup, with_protocol(Options.of(), "auto").warmup
    (500, None)
    """
    check_name(PROTOCOLS, protocol, "protocol", RunError)
    return _filled(options, PAPER) if protocol == "paper" else options


def for_steps(options: Options, steps: int) -> Options:
    """Options of a run of so many steps: what was not given follows from them.

    Parameters
    ----------
    options : Options
    steps : int
        Of the whole run, all epochs.

    Examples
    --------
    >>> short, long = for_steps(Options.of(epochs=10), 190), for_steps(Options.of(), 150_000)
    >>> short.warmup, short.validate_every, short.bias
    (19, 10, 'log-odds')
    >>> long.warmup, long.validate_every, long.bias
    (500, 1000, 'zero')
    """
    apart = max(-(-steps // VALIDATIONS), steps // (AN_EPOCH * options.epochs))
    # Some losses, started at zero, first learn the base rates alone: on 1,160 spectra of MassBank,
    # bce takes 500 steps to tell two spectra apart, focal more than 190, and iou never does. Cosine
    # and the listwise losses do from the start; log-odds are now good for them and now bad.
    stalls = steps < AS_IN_PAPER and options.facts.stalls and options.starts_bias
    return _filled(
        options,
        {
            "warmup": min(PAPER["warmup"], steps // WARMING),
            "validate_every": min(PAPER["validate_every"], apart),
            "bias": "log-odds" if stalls else PAPER["bias"],
            "other_rankings": PAPER["other_rankings"],
        },
    )


def as_begun(options: Options, begun: Options) -> Options:
    """Options to go on with: what is not given now is as the run was begun."""
    return _filled(options, {name: getattr(begun, name) for name in PAPER})


def told(options: Options, steps: int) -> list[str]:
    """What a user should know about the protocol of a run, in lines.

    Parameters
    ----------
    options : Options
        Of `for_steps`.
    steps : int

    Examples
    --------
    >>> told(for_steps(Options.of(epochs=10), 190), 190)
    ['190 steps: warm-up 19 steps, validation every 10, bias started at log-odds']
    """
    warmup, every = options.warmup or 0, options.validate_every or steps
    started = f", bias started at {options.bias}" if options.starts_bias else ""
    lines = [f"{steps:,} steps: warm-up {warmup:,} steps, validation every {every:,}{started}"]
    if warmup > steps:
        lines.append(
            f"warning: the warm-up of {warmup:,} steps is longer than the run of {steps:,}: the "
            f"learning rate ends at {100 * steps / warmup:.0f} % of {options.lr:g}. Leave it to "
            "the number of steps, or train for more --epochs"
        )
    if every > steps:
        lines.append(
            f"warning: validation every {every:,} steps of {steps:,}: the model is measured once, "
            "at the end, and no better one before is kept. Leave it to the number of steps"
        )
    return lines


def _filled(options: Options, values: dict[str, Any]) -> Options:
    return replace(
        options,
        **{name: value for name, value in values.items() if getattr(options, name) is None},
    )
