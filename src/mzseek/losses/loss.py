"""What is known about a loss, without a look at torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mzseek.registry import NoOptions


@dataclass(frozen=True)
class Loss:
    """Facts about a loss.

    Attributes
    ----------
    name : str
    function : callable
        Called with logits and target if it reads a target, scores, counts and labels if it reads
        candidates, and its options by name; returns a scalar tensor.
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
    function: Callable[..., Any]
    kind: str
    stands_for: str
    options: type = NoOptions
    scorer: str = "fp-cos"
    reads_target: bool = True
    reads_candidates: bool = False
    predicts_fingerprint: bool = True
    reports_fingerprint: bool = True
    stalls: bool = False
