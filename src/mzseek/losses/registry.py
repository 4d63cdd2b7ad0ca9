"""The losses by name, with the facts that the rest of mzseek asks for."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from mzseek.errors import LossError
from mzseek.losses.kinds.bce import bce
from mzseek.losses.kinds.combined import combined
from mzseek.losses.kinds.contrastive import contrastive
from mzseek.losses.kinds.cosine import cosine
from mzseek.losses.kinds.focal import focal
from mzseek.losses.kinds.iou import iou


@dataclass(frozen=True)
class Loss:
    """Facts about a loss.

    Attributes
    ----------
    name : str
    function : callable
        Called with logits and target if it reads a target, scores, counts and labels if it reads
        candidates, and its options by name.
    kind : str
        ``bitwise``, ``vectorwise``, ``listwise`` or ``mixture``, as the paper groups them.
    scorer : str
        What scores candidates: ``fp-cos``, ``emb-cos``, ``fp-mlp`` or ``emb-mlp``.
    reads_target : bool
        Does it read the fingerprint of the truth?
    reads_candidates : bool
        Does it read candidate lists in training?
    predicts_fingerprint : bool
        Does a model trained with it predict a fingerprint?
    stands_for : str
        The metric that it is a surrogate of.
    options : frozenset of str
        Of gamma, temperature and weight, those that it has.
    temperature : float or None
        The paper's tuned τ.
    """

    name: str
    function: Callable[..., Tensor]
    kind: str
    scorer: str
    reads_target: bool
    reads_candidates: bool
    predicts_fingerprint: bool
    stands_for: str
    options: frozenset[str] = frozenset()
    temperature: float | None = None


def _fingerprint_loss(
    function: Callable[..., Tensor], kind: str, stands_for: str, *options: str
) -> Loss:
    name = function.__name__
    return Loss(name, function, kind, "fp-cos", True, False, True, stands_for, frozenset(options))


def _listwise(name: str, temperature: float) -> Loss:
    return Loss(
        name, contrastive, "listwise", name, False, True, name.startswith("fp-"), "hit_rate@1",
        frozenset({"temperature"}), temperature,
    )  # fmt: skip


LOSSES: dict[str, Loss] = {
    "bce": _fingerprint_loss(bce, "bitwise", "bit_accuracy"),
    "focal": _fingerprint_loss(focal, "bitwise", "bit_accuracy", "gamma"),
    "cosine": _fingerprint_loss(cosine, "vectorwise", "cosine"),
    "iou": _fingerprint_loss(iou, "vectorwise", "tanimoto"),
    "fp-cos": _listwise("fp-cos", 1 / 256),
    "emb-cos": _listwise("emb-cos", 1 / 64),
    "fp-mlp": _listwise("fp-mlp", 1 / 16),
    "emb-mlp": _listwise("emb-mlp", 1 / 16),
    "combined": Loss(
        "combined", combined, "mixture", "fp-cos", True, True, True, "hit_rate@1",
        frozenset({"temperature", "weight"}), 1 / 256,
    ),
}  # fmt: skip


def loss_named(name: str) -> Loss:
    """Facts about the loss of that name."""
    if name not in LOSSES:
        raise LossError(f"loss {name!r} is unknown, expected one of: {', '.join(LOSSES)}")
    return LOSSES[name]
