"""The weights of a network by name, and the certainty that they are those it describes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import ModelError

Array = npt.NDArray[np.float32]


class Weights:
    """Arrays by name. A part takes those it needs, and says of what shape; none may be left.

    Parameters
    ----------
    arrays : mapping of str to array
        As a model file has them: ``encoder.first.weight``, …

    Examples
    --------
    >>> weights = Weights({"head.bias": np.zeros(3)})
    >>> weights.under("head").take("bias", (3,)).dtype
    dtype('float32')
    >>> weights.check_all_taken()
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        self._prefix = ""
        self._taken: set[str] = set()

    def under(self, name: str) -> "Weights":
        """The weights of the part of that name."""
        part = Weights(self._arrays)
        part._prefix, part._taken = f"{self._prefix}{name}.", self._taken
        return part

    def take(self, name: str, shape: tuple[int, ...]) -> Array:
        """One array, as float32.

        Raises
        ------
        ModelError
            It is not there, of another shape, or holds no numbers with a point.
        """
        full = self._prefix + name
        if full not in self._arrays:
            raise ModelError(f"it lacks {full}")
        array = self._arrays[full]
        if array.shape != shape or array.dtype.kind != "f":
            raise ModelError(
                f"{full} is {array.dtype} of {array.shape}, expected numbers of {shape}"
            )
        self._taken.add(full)
        return array.astype(np.float32, copy=False)

    def check_all_taken(self) -> None:
        """Refuse weights that no part has asked for."""
        for name in self._arrays:
            if name not in self._taken:
                raise ModelError(f"it holds {name}")
