"""What a training run is asked to do."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from mzseek.errors import RunError
from mzseek.losses import Loss, loss_named
from mzseek.models import ENCODERS

BASELINES = ("random",)  # scored without a model
MODELS = (*ENCODERS, *BASELINES)
BIASES = ("zero", "log-odds")
# The paper's: γ and λ of the losses that have them, and the blocks of its equation.
_TUNED: dict[str, Any] = {"gamma": 2.0, "weight": 0.5}
_BLOCKS = 3
_POSITIVE = (
    "epochs", "batch_size", "lr", "width", "projected", "clip", "validate_every", "patience",
    "threads", "temperature",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Options of a run. None means "not given"; it is never guessed from a number.

    What the loss or the model fixes is filled in by `resolved`, what follows from the number of
    steps by `mzseek.training.protocol`. Once a run has begun, None is left only where an option
    does not apply.

    Attributes
    ----------
    loss : str
        A name in `LOSSES`.
    model : str
        An encoder, or ``random``.
    candidates : str
        The retrieval setting that listwise losses read, and that early stopping looks at.
    epochs, batch_size, seed, clip
        The paper's: at most 50 epochs of batches of 64, gradients clipped to a norm of 1.
    lr : float
        Learning rate.
    temperature, gamma, weight : float or None
        τ of a listwise loss, γ of focal, λ of combined.
    pairwise : bool
        Take the pairwise form of a listwise loss.
    blocks : int or None
        Of the MLP encoder.
    width, projected, dropout
        Of the model.
    warmup : int or None
        Steps in which the learning rate rises to its full height.
    bias : str or None
        ``zero`` (small random numbers, as published) or ``log-odds`` (each bit's base rate).
    validate_every : int or None
        Steps between validations.
    patience : int or None
        Stop after this many validations without a better value of the metric that counts.
    start_from : str or None
        Run whose weights this one starts from (two-stage training).
    threads : int or None
        CPU threads; None leaves them to torch.
    """

    loss: str = "bce"
    model: str = "mlp"
    candidates: str = "mass"
    epochs: int = 50
    batch_size: int = 64
    lr: float = 1e-4
    seed: int = 0
    temperature: float | None = None
    gamma: float | None = None
    weight: float | None = None
    pairwise: bool = False
    blocks: int | None = None
    width: int = 1024
    projected: int = 256
    dropout: float = 0.25
    warmup: int | None = None
    clip: float = 1.0
    bias: str | None = None
    validate_every: int | None = None
    patience: int | None = None
    start_from: str | None = None
    threads: int | None = None

    @property
    def facts(self) -> Loss:
        """What is known about the loss."""
        return loss_named(self.loss)

    @property
    def starts_bias(self) -> bool:
        """Whether there is a bias of a fingerprint to start: none, or another run's, is not."""
        return self.facts.predicts_fingerprint and not self.start_from

    def resolved(self) -> "Options":
        """The same with what the loss and the model fix filled in.

        Raises
        ------
        RunError
            A value is out of its range, or an option does not belong to the loss or the model.
        """
        self._check_ranges()
        loss = self.facts
        own = {"temperature": loss.temperature, **_TUNED}
        fixed = {name: value for name, value in own.items() if name in loss.options}
        if self.model == "mlp":
            fixed["blocks"] = _BLOCKS
        for name in own:
            if getattr(self, name) is not None and name not in fixed:
                raise RunError(f"--{name}: the loss {loss.name} has none")
        if self.blocks is not None and "blocks" not in fixed:
            raise RunError(f"--blocks: the model {self.model} has none")
        if self.pairwise and loss.kind != "listwise":
            raise RunError(f"--pairwise: the loss {loss.name} reads no pairs of candidates")
        if self.bias == "log-odds" and not loss.predicts_fingerprint:
            raise RunError(f"--bias log-odds: {loss.name} predicts no fingerprint")
        if self.start_from and self.bias == "log-odds":
            raise RunError(
                "--bias log-odds: the bias comes from the run that --start-from names; leave it out"
            )
        missing = {name: value for name, value in fixed.items() if getattr(self, name) is None}
        return replace(self, **missing)

    def _check_ranges(self) -> None:
        if self.model not in MODELS:
            raise RunError(f"model {self.model!r} is unknown, expected one of: {', '.join(MODELS)}")
        if self.bias not in (None, *BIASES):
            raise RunError(f"bias {self.bias!r} is unknown, expected one of: {', '.join(BIASES)}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise RunError(f"{name} is {value}, expected more than 0")
        for name in ("warmup", "blocks", "gamma", "seed"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise RunError(f"{name} is {value}, expected 0 or more")
        for name in ("lr", "temperature", "gamma"):
            if getattr(self, name) == math.inf:
                raise RunError(f"{name} is inf, expected a finite number")
        if self.seed >= 2**64:
            raise RunError(f"seed is {self.seed}, expected less than 2^64")
        if not 0 <= self.dropout < 1:
            raise RunError(f"dropout is {self.dropout}, expected 0 to less than 1")
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise RunError(f"weight is {self.weight}, expected 0 to 1")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Options":
        """From plain data, also that of a version that wrote numbers where none apply."""
        try:
            options = cls(**facts)
            idle: dict[str, Any] = {
                name: None for name in _TUNED if name not in options.facts.options
            }
        except TypeError as error:
            raise RunError(f"options do not fit: {error}") from error
        if options.model != "mlp":
            idle["blocks"] = None
        return replace(options, **idle)
