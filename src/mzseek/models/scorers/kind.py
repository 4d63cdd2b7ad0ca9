"""What is known about a scorer, without a look at torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzseek.registry import NoOptions, load

if TYPE_CHECKING:
    from mzseek.models.scorers.base import Scorer


@dataclass(frozen=True)
class ScorerKind:
    """Facts about a scorer.

    Attributes
    ----------
    name : str
    code : str
        The class of its network, ``module:name``; torch is not loaded before it is asked for.
    reads_fingerprint : bool
        Does it read the predicted fingerprint (or the embedding)?
    options : type
        A dataclass: the options that it has.
    sizes : tuple of str
        What else its network is built from: ``width``, the length of an embedding, and ``bits``,
        that of a fingerprint.
    maps_candidates : bool
        Does it have weights that candidates pick rows of? Then their transpose is worth making.
    similarity : str or None
        Where a score is a plain similarity of the predicted fingerprint: its name.
    """

    name: str
    code: str
    reads_fingerprint: bool
    options: type = NoOptions
    sizes: tuple[str, ...] = ()
    maps_candidates: bool = True
    similarity: str | None = None

    @property
    def network(self) -> "type[Scorer]":
        """The class of its network, built from the options and the sizes by name."""
        network: type[Scorer] = load(self.code)
        return network
