"""What training does by default, and what it does in the paper; no library is loaded to say it."""

from dataclasses import dataclass
from typing import Any

from mzseek.registry import option

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
