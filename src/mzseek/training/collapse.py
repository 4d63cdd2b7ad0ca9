"""Noticing a model that says the same about every spectrum."""

from typing import Any

import numpy as np
import numpy.typing as npt

# A constant prediction has a spread of 0; trained models of every loss here have more than 0.3.
COLLAPSED_BELOW = 0.05


def spread(predictions: npt.NDArray[np.floating], most: int = 2000) -> float:
    """How much predictions differ: their standard deviation over the length of their mean.

    Parameters
    ----------
    predictions : array, shape (spectra, bits)
    most : int
        Look at no more than this many, evenly spaced.

    Examples
    --------
    >>> spread(np.array([[1.0, 0.0], [1.0, 0.0]])), spread(np.array([[1.0, 0.0], [0.0, 1.0]]))
    (0.0, 1.0)
    """
    if not len(predictions):
        return 0.0
    rows = np.asarray(predictions[:: -(-len(predictions) // most)], np.float32)
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0:
        return 0.0
    deviation = np.sqrt(np.square(rows - mean).sum(axis=1).mean())
    return float(deviation) / length


def collapse_warning(predictions: npt.NDArray[np.floating] | None, loss: str) -> str | None:
    """What to tell the user if the predictions are all alike, or None."""
    if predictions is None or len(predictions) < 2:
        return None
    found = spread(predictions)
    if found >= COLLAPSED_BELOW:
        return None
    return (
        f"the model says nearly the same about every spectrum (spread {found:.3f}, expected at "
        f"least {COLLAPSED_BELOW:g}): {loss} has collapsed. Its Tanimoto similarity can look "
        "fine; its hit rates cannot. Start again with --bias log-odds, or a smaller --lr"
    )


def kept_warning(best: dict[str, dict[str, Any]]) -> str | None:
    """What to tell the user if a checkpoint that was kept had collapsed, or None."""
    # Hit rates at 5 and 20 can be full from the first step on short lists.
    telling = {name: f for name, f in best.items() if name.startswith(("tanimoto", "hit_rate@1/"))}
    kept = [name for name, facts in telling.items() if facts["spread"] < COLLAPSED_BELOW]
    if not kept:
        return None
    return (
        f"the checkpoint that is best by {', '.join(kept)} is from before the model told spectra "
        "apart: it says nearly the same about each"
    )
