"""The order in which spectra are seen: a function of the seed and the step alone."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def steps_an_epoch(spectra: int, batch_size: int) -> int:
    """Steps in which each of the spectra is seen once; the last batch may be smaller.

    Examples
    --------
    >>> steps_an_epoch(1160, 64)
    19
    """
    return -(-spectra // batch_size)


class TrainingOrder:
    """Batches of every epoch, each epoch in an order of its own.

    Since a step's batch depends on nothing that came before, a run that was killed goes on from any
    step as if it had never stopped.

    Parameters
    ----------
    queries : int64 array
        Spectra to train on.
    batch_size, epochs, seed : int
    """

    def __init__(
        self, queries: npt.NDArray[np.int64], batch_size: int, epochs: int, seed: int
    ) -> None:
        self._queries = queries
        self._batch_size = batch_size
        self._seed = seed
        self.steps_per_epoch = steps_an_epoch(len(queries), batch_size)
        self.steps = self.steps_per_epoch * epochs

    def epoch(self, step: int) -> int:
        """The epoch that a step belongs to, from 0."""
        return step // self.steps_per_epoch

    def from_step(self, first: int) -> Iterator[npt.NDArray[np.int64]]:
        """Spectra of each step, from ``first`` to the end."""
        order = self._queries
        shuffled = -1
        for step in range(first, self.steps):
            epoch, place = divmod(step, self.steps_per_epoch)
            if epoch != shuffled:
                order = np.random.default_rng([self._seed, epoch]).permutation(self._queries)
                shuffled = epoch
            yield order[place * self._batch_size : (place + 1) * self._batch_size]
