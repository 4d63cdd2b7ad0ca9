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


@dataclass(frozen=True)
class Options:
    """Options of a run, the paper's by default.

    Attributes
    ----------
    loss : str
        A name in `LOSSES`.
    model : str
        An encoder, or ``random``.
    candidates : str
        The retrieval setting that listwise losses read, and that early stopping looks at.
    epochs, batch_size, seed, warmup, clip
        The protocol: at most 50 epochs of batches of 64, the learning rate rising over the first
        500 steps, gradients clipped to a norm of 1.
    lr : float
        Learning rate.
    temperature : float or None
        τ; None means the loss's own.
    gamma, weight : float
        γ of focal, λ of combined.
    pairwise : bool
        Take the pairwise form of a listwise loss.
    blocks, width, projected, dropout
        Of the model.
    bias : str
        ``zero`` (small random numbers, as published) or ``log-odds`` (each bit's base rate).
    validate_every : int
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
    gamma: float = 2.0
    weight: float = 0.5
    pairwise: bool = False
    blocks: int = 3
    width: int = 1024
    projected: int = 256
    dropout: float = 0.25
    warmup: int = 500
    clip: float = 1.0
    bias: str = "zero"
    validate_every: int = 1000
    patience: int | None = None
    start_from: str | None = None
    threads: int | None = None

    @property
    def facts(self) -> Loss:
        """What is known about the loss."""
        return loss_named(self.loss)

    def resolved(self) -> "Options":
        """The same with every default filled in.

        Raises
        ------
        RunError
            A value is out of its range, or an option does not belong to the loss.
        """
        self._check_ranges()
        loss = self.facts
        if self.temperature is not None and "temperature" not in loss.options:
            raise RunError(f"--temperature: the loss {loss.name} has none")
        if self.gamma != 2.0 and "gamma" not in loss.options:
            raise RunError(f"--gamma: the loss {loss.name} has none")
        if self.weight != 0.5 and "weight" not in loss.options:
            raise RunError(f"--weight: the loss {loss.name} has none")
        if self.pairwise and loss.kind != "listwise":
            raise RunError(f"--pairwise: the loss {loss.name} reads no pairs of candidates")
        if self.bias == "log-odds" and not loss.predicts_fingerprint:
            raise RunError(f"--bias log-odds: {loss.name} predicts no fingerprint")
        if self.start_from and self.bias == "log-odds":
            raise RunError(
                "--bias log-odds: the bias comes from the run that --start-from names; leave it out"
            )
        if self.blocks != 3 and self.model != "mlp":
            raise RunError(f"--blocks: the model {self.model} has none")
        temperature = loss.temperature if self.temperature is None else self.temperature
        return replace(self, temperature=temperature)

    def _check_ranges(self) -> None:
        if self.model not in MODELS:
            raise RunError(f"model {self.model!r} is unknown, expected one of: {', '.join(MODELS)}")
        if self.bias not in BIASES:
            raise RunError(f"bias {self.bias!r} is unknown, expected one of: {', '.join(BIASES)}")
        positive = ("epochs", "batch_size", "lr", "width", "projected", "clip", "validate_every")
        for name in positive:
            if not getattr(self, name) > 0:
                raise RunError(f"{name} is {getattr(self, name)}, expected more than 0")
        for name in ("warmup", "blocks", "gamma", "seed"):
            if not getattr(self, name) >= 0:
                raise RunError(f"{name} is {getattr(self, name)}, expected 0 or more")
        for name in ("patience", "threads", "temperature"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise RunError(f"{name} is {value}, expected more than 0")
        for name in ("lr", "temperature", "gamma"):
            if getattr(self, name) == math.inf:
                raise RunError(f"{name} is inf, expected a finite number")
        if self.seed >= 2**64:
            raise RunError(f"seed is {self.seed}, expected less than 2^64")
        if not 0 <= self.dropout < 1:
            raise RunError(f"dropout is {self.dropout}, expected 0 to less than 1")
        if not 0 <= self.weight <= 1:
            raise RunError(f"weight is {self.weight}, expected 0 to 1")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Options":
        """From plain data."""
        try:
            return cls(**facts)
        except TypeError as error:
            raise RunError(f"options do not fit: {error}") from error
