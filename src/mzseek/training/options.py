"""Options of a training run: one dataclass for the command line, the notebook and ``run.json``.

No library is loaded here, so that help texts can list names and defaults.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import LossError, MzseekError, RunError
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
from mzseek.losses import LOSSES, Loss, loss_named
from mzseek.models import BASELINES, ENCODERS, SCORERS, ModelSpec, encoder_part, scorer_part

if TYPE_CHECKING:
    from mzseek.datasets.prepared import Prepared
    from mzseek.runs.run import Description, Run

PROTOCOLS = ("auto", "paper")
PAPER: dict[str, Any] = {
    "warmup": 500, "validate_every": 1000, "bias": "zero", "other_rankings": True,
}  # fmt: skip
# A shorter run warms up for a tenth of its steps and is validated 20 times, at most twice an epoch:
# measuring MassBank's validation fold takes a twentieth of an epoch, and each validation writes
# 200 MB of state to resume from.
WARMUP_SHARE, VALIDATIONS, VALIDATIONS_PER_EPOCH = 10, 20, 2
PAPER_STEPS = VALIDATIONS * PAPER["validate_every"]

BIASES = ("zero", "log-odds")
OFFSETS = ("prior",)
PRECISIONS = ("float32", "bfloat16")
MAX_THREADS = 1_024  # more than any machine could start
MODELS = (*ENCODERS, *BASELINES)
CONTROLS = (*(name for name, kind in ENCODERS.items() if not kind.sees_spectrum), *BASELINES)
PARTS = ("encoder", "scorer", "loss")
_STALLING = ", ".join(name for name, loss in LOSSES.items() if loss.stalls)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run; None means "not given" and is never guessed from a number.

    Every field but the last four says what it is in the words of ``mzseek train --help``, which is
    made from them. The components carry complete options: `Options.of` fills in their defaults.
    `for_steps` fills in what follows from the number of steps. Once a run has begun, None is left
    only where an option does not apply.

    Attributes
    ----------
    loss, scorer : ComponentConfig
        A loss in `LOSSES`, and the scorer that it trains.
    encoder : ComponentConfig or None
        An encoder in `ENCODERS`; None for a baseline.
    baseline : str or None
        ``random``: scored without a model.
    """

    candidates: str = option(
        "mass", "Candidate lists to learn from: mass, formula, or another name."
    )
    epochs: int = option(50, "At most this many.", above=0)
    lr: float = option(1e-4, "Learning rate.", above=0)
    seed: int = option(0, "Of weights, order and dropout.", at_least=0)
    warmup: int | None = option(
        None,
        f"Steps until the full learning rate; {100 // WARMUP_SHARE} % of all, at most "
        f"{PAPER['warmup']:,}.",
        at_least=0,
    )
    batch_size: int = option(64, "Spectra in a step.", above=0)
    clip: float = option(1.0, "Largest norm of a gradient.", above=0, finite=False)
    bias: str | None = option(
        None,
        f"Start of the fingerprint's bias: {BIASES[0]} (small, as published) or {BIASES[1]} (each "
        f"bit's base rate), which {_STALLING} take in runs below {PAPER_STEPS:,} steps.",
        among=BIASES,
    )
    validate_every: int | None = option(
        None,
        f"Steps between validations; {VALIDATIONS} in all, at most {VALIDATIONS_PER_EPOCH} in an "
        f"epoch or {PAPER['validate_every']:,} steps apart.",
        above=0,
    )
    other_rankings: bool | None = option(
        None,
        "Where a fingerprint is predicted, also validate rankings by its Tanimoto, thresholded and "
        "soft, and keep their best weights, for `evaluate --similarity`; done by default.",
    )
    patience: int | None = option(
        None,
        "Stop after so many validations without gain: in HR@1 for ranking losses, else in "
        "Tanimoto.",
        above=0,
    )
    offset: str | None = option(
        None,
        f"{OFFSETS[0]}: the score of a scorer without the spectrum stands as a fixed term in the "
        "softmax of a listwise loss, so that the network learns the rest; saved scores are the "
        "network's alone.",
        among=OFFSETS,
    )
    start_from: str | None = option(None, "Run to take weights from (two-stage training).")
    threads: int | None = option(None, "CPU threads; all by default.", above=0)
    precision: str = option(
        PRECISIONS[0],
        f"Of the encoder's products in training: {PRECISIONS[0]}, as published, or "
        f"{PRECISIONS[1]}, which GPUs compute faster; all else stays in float32.",
        among=PRECISIONS,
    )
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
        """Return options by the names of the loss and the model.

        Parameters
        ----------
        loss, model : str
            A name in `LOSSES`; an encoder, or ``random``.
        parts : mapping, optional
            Options of the components that are not the default:
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
        parts = dict(parts or {})
        for name in parts:
            check_name(PARTS, name, "part", RunError)
        check_name(MODELS, model, "model", RunError)
        if training.get("start_from") is not None:
            training["start_from"] = os.fspath(training["start_from"])
        baseline = model if model in BASELINES else None
        if baseline and parts.get("encoder"):
            name = next(iter(parts["encoder"]))
            raise RunError(f"model {model}: option {name!r} is unknown, it has no options")
        trained = {"name": loss, "options": parts.get("loss", {})}
        return cls._checked(
            training,
            loss=component_from(LOSSES, trained, "loss", LossError),
            encoder=None if baseline else encoder_part(model, parts.get("encoder")),
            scorer=scorer_part(loss_named(loss).scorer, parts.get("scorer")),
            baseline=baseline,
        )

    @classmethod
    def of_run(cls, run: "Run") -> "Options":
        """Return the options that a run was begun with; RunError where its folder holds others."""
        try:
            return cls._checked(
                run.description.options, loss=run.loss, encoder=run.encoder, scorer=run.scorer,
                baseline=run.baseline,
            )  # fmt: skip
        except MzseekError as error:
            raise RunError(f"{run.path}: {' '.join(str(error).split())}") from error

    @classmethod
    def _checked(cls, training: Mapping[str, Any], **components: Any) -> "Options":
        for name in training:
            check_name(TRAINING_FIELDS, name, "option", RunError)
        options = options_from(cls, {**training, **components}, "", RunError)
        options.check()
        return options

    @property
    def model(self) -> str:
        """Name of the encoder, or of the baseline."""
        return self.baseline or (self.encoder.name if self.encoder else "")

    @property
    def loss_kind(self) -> Loss:
        """The registered loss: its function, and what a model trained with it offers."""
        return loss_named(self.loss.name)

    @property
    def starts_bias(self) -> bool:
        """Whether there is a fingerprint's bias to initialise that no other run provides."""
        return self.loss_kind.predicts_fingerprint and not self.start_from

    def check(self) -> None:
        """Raise a RunError for values out of their range, or that do not fit together."""
        check_ranges(self, RunError)
        if self.seed >= 2**64:
            raise RunError(f"seed is {self.seed}, expected less than 2^64")
        if self.threads is not None and self.threads > MAX_THREADS:
            raise RunError(f"threads is {self.threads:,}, expected at most {MAX_THREADS:,}")
        if self.bias == "log-odds" and not self.loss_kind.predicts_fingerprint:
            raise RunError(f"--bias log-odds: {self.loss.name} predicts no fingerprint")
        if self.offset and self.loss_kind.kind != "listwise":
            listwise = ", ".join(name for name, loss in LOSSES.items() if loss.kind == "listwise")
            raise RunError(
                f"--offset {self.offset}: {self.loss.name} is no listwise loss, expected one of: "
                f"{listwise}"
            )
        if self.offset and self.baseline:
            raise RunError(f"--offset {self.offset}: {self.baseline} is not trained; leave it out")
        if self.start_from and self.bias == "log-odds":
            raise RunError(
                "--bias log-odds: the bias comes from the run that --start-from names; leave it out"
            )

    def described(self, prepared: "Prepared") -> "Description":
        """Describe the run on these data, for ``run.json``."""
        from mzseek.runs.run import Description

        model = self.model_for(prepared)
        return Description(self.loss, self.scorer, model, self.baseline, self.training_dict())

    def model_for(self, prepared: "Prepared") -> ModelSpec | None:
        """Return the model in the sizes of the data; None for a baseline."""
        from mzseek.runs.checkpoints import model_of_parts

        if self.encoder is None:
            return None
        return model_of_parts(self.encoder, self.scorer, prepared)

    def training_dict(self) -> dict[str, Any]:
        """Return all but the components as plain data; a run describes these by themselves."""
        return {name: getattr(self, name) for name in TRAINING_FIELDS}

    def flat(self) -> dict[str, Any]:
        """Return every option by its full name (``encoder.width``), to compare two runs."""
        named: dict[str, Any] = {"loss": self.loss.name, "model": self.model}
        for name, part in (("encoder", self.encoder), ("scorer", self.scorer), ("loss", self.loss)):
            if part is not None:
                named |= {f"{name}.{key}": value for key, value in vars(part.options).items()}
        return named | self.training_dict()


# Those with a meaning: all but the components.
TRAINING_FIELDS = {field.name: field for field in fields(Options) if field.metadata}


def read_settings(
    texts: Iterable[str],
    loss: str,
    model: str,
    options_by_part: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Read options of the components, from ``PART.OPTION=VALUE`` and from what is given otherwise.

    Parameters
    ----------
    texts : iterable of str
        The part is the encoder, the scorer or the loss.
    loss, model : str
        Names of what is trained: they decide which options there are.
    options_by_part : mapping, optional
        Options that were given in another way, by part; None means "not given".

    Returns
    -------
    dict
        By part, as `Options.of` takes them.

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
    scorer = loss_named(loss).scorer
    kinds: dict[str, tuple[str, type]] = {
        "scorer": (scorer, SCORERS[scorer].options), "loss": (loss, LOSSES[loss].options)
    }  # fmt: skip
    if model in ENCODERS:
        kinds["encoder"] = (model, ENCODERS[model].options)
    parts: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for part, options in (options_by_part or {}).items():
        parts[part] |= {name: value for name, value in options.items() if value is not None}
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
        if name in parts[part]:
            raise RunError(f"--set {where}: is given twice")
        component, kind = kinds[part]
        parts[part][name] = option_from_text(
            kind, name, value, f"--set: {part} {component}", RunError
        )
    return parts


def list_settings() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """List every component (``encoder mlp``) with name, default and meaning of each option."""
    return [
        (f"{part} {name}", described(kind.options))
        for part, kinds in (("encoder", ENCODERS), ("scorer", SCORERS), ("loss", LOSSES))
        for name, kind in kinds.items()
    ]


def with_protocol(options: Options, protocol: str) -> Options:
    """Fill in what was not given: the paper's numbers (``paper``), or nothing yet (``auto``).

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
    """Fill in what was not given and follows from the steps of the whole run, all epochs.

    Examples
    --------
    >>> short, long = for_steps(Options.of(epochs=10), 190), for_steps(Options.of(), 150_000)
    >>> short.warmup, short.validate_every, short.bias
    (19, 10, 'log-odds')
    >>> long.warmup, long.validate_every, long.bias
    (500, 1000, 'zero')
    """
    apart = max(-(-steps // VALIDATIONS), steps // (VALIDATIONS_PER_EPOCH * options.epochs))
    # Some losses, started at zero, first learn the base rates alone: on 1,160 spectra of MassBank,
    # bce takes 500 steps to tell two spectra apart, focal more than 190, and iou never does. Cosine
    # and the listwise losses do from the start; log-odds are now good for them and now bad.
    stalls = steps < PAPER_STEPS and options.loss_kind.stalls and options.starts_bias
    return _filled(
        options,
        {
            "warmup": min(PAPER["warmup"], steps // WARMUP_SHARE),
            "validate_every": min(PAPER["validate_every"], apart),
            "bias": "log-odds" if stalls else PAPER["bias"],
            "other_rankings": PAPER["other_rankings"],
        },
    )


def for_resume(options: Options, begun: Options) -> Options:
    """Fill in what is not given now as the run was begun."""
    return _filled(options, {name: getattr(begun, name) for name in PAPER})


def _filled(options: Options, values: dict[str, Any]) -> Options:
    return replace(
        options, **{name: value for name, value in values.items() if getattr(options, name) is None}
    )


def protocol_lines(options: Options, steps: int) -> list[str]:
    """Describe the protocol of a run (`for_steps`) in lines, with a warning of what never comes.

    Examples
    --------
    >>> protocol_lines(for_steps(Options.of(epochs=10), 190), 190)
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
