"""The losses by name, with the options of each; no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mzseek.core.errors import LossError
from mzseek.core.registry import NoOptions, choose, load, option

_FINGERPRINT, _RANKING = "mzseek.losses.fingerprint", "mzseek.losses.ranking"


@dataclass(frozen=True)
class Loss:
    """A loss: its function, its options, and what a model trained with it offers.

    Attributes
    ----------
    name : str
    code : str
        ``module:name`` of its function, which loads torch.
    kind : str
        ``bitwise``, ``vectorwise``, ``listwise`` or ``mixture``, as the paper groups them.
    stands_for : str
        The metric that it is a surrogate of.
    options : type
        A dataclass: the options that it has.
    scorer : str
        What scores candidates: ``fp-cos``, ``emb-cos``, ``fp-mlp`` or ``emb-mlp``.
    reads_target : bool
        Does it read the fingerprint of the truth?
    reads_candidates : bool
        Does it read candidate lists in training?
    predicts_fingerprint : bool
        Does a model trained with it predict a fingerprint?
    reports_fingerprint : bool
        Can that be read as the molecule's fingerprint? Not where a network alone reads it, which
        can give its bits any meaning.
    stalls : bool
        Does it first learn the base rates of bits alone, for hundreds of steps, where the bias of a
        fingerprint starts at zero?
    """

    name: str
    code: str
    kind: str
    stands_for: str
    options: type = NoOptions
    scorer: str = "fp-cos"
    reads_target: bool = True
    reads_candidates: bool = False
    predicts_fingerprint: bool = True
    reports_fingerprint: bool = True
    stalls: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The function that computes it.

        It is called with logits and target if the loss reads a target, scores, counts and labels if
        it reads candidates, and its options by name; it returns a scalar tensor.
        """
        function: Callable[..., Any] = load(self.code)
        return function


@dataclass(frozen=True)
class FocalOptions:
    """Options of the focal loss."""

    gamma: float = option(2.0, "γ: how much less the bits count that are nearly right", at_least=0)


@dataclass(frozen=True)
class FpCosOptions:
    """Options of a listwise loss; τ is the one tuned for the cosine of fingerprints."""

    temperature: float = option(1 / 256, "τ: what scores are divided by", above=0)
    pairwise: bool = option(False, "take the pairwise form")


@dataclass(frozen=True)
class EmbCosLossOptions(FpCosOptions):
    """The same, with τ for the cosine of learned projections."""

    temperature: float = option(1 / 64, "τ: what scores are divided by", above=0)


@dataclass(frozen=True)
class MlpLossOptions(FpCosOptions):
    """The same, with τ for the scorers that are networks."""

    temperature: float = option(1 / 16, "τ: what scores are divided by", above=0)


@dataclass(frozen=True)
class CombinedOptions:
    """Options of the mixture."""

    temperature: float = option(1 / 256, "τ of its listwise part", above=0)
    weight: float = option(0.5, "λ: weight on its listwise part", at_least=0, at_most=1)


def _listwise(name: str, options: type) -> Loss:
    """Return the listwise loss that trains the scorer of its name."""
    return Loss(
        name, f"{_RANKING}:listwise", kind="listwise", stands_for="hit_rate@1", options=options,
        scorer=name, reads_target=False, reads_candidates=True,
        predicts_fingerprint=name.startswith("fp-"), reports_fingerprint=name == "fp-cos",
    )  # fmt: skip


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("bce", f"{_FINGERPRINT}:bce", kind="bitwise", stands_for="bit_accuracy", stalls=True),
        Loss(
            "focal", f"{_FINGERPRINT}:focal", kind="bitwise", stands_for="bit_accuracy",
            options=FocalOptions, stalls=True,
        ),
        Loss("cosine", f"{_FINGERPRINT}:cosine", kind="vectorwise", stands_for="cosine"),
        Loss("iou", f"{_FINGERPRINT}:iou", kind="vectorwise", stands_for="tanimoto", stalls=True),
        _listwise("fp-cos", FpCosOptions),
        _listwise("emb-cos", EmbCosLossOptions),
        _listwise("fp-mlp", MlpLossOptions),
        _listwise("emb-mlp", MlpLossOptions),
        Loss(
            "combined", f"{_RANKING}:combined", kind="mixture", stands_for="hit_rate@1",
            options=CombinedOptions, reads_candidates=True,
        ),
    )
}  # fmt: skip


def loss_named(name: str) -> Loss:
    """Return the loss of that name."""
    return choose(LOSSES, name, "loss", LossError)
