"""Noticing a model that says the same about every spectrum."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.training.plan.options import Options

# A constant prediction has a spread of 0; trained models of every loss here have more than 0.3.
COLLAPSED_BELOW = 0.05
# On MassBank, and on 1,160 spectra of it, a model that starts at zero first learns how frequent
# each bit is, the same for every spectrum, and tells spectra apart from 0.05 on at the latest; a
# model that does not by then (iou) never does.
BEGUN_ABOVE = 0.06


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


def learned(options: Options, step: int) -> float:
    """How far training has come: the learning rates of all steps so far, summed.

    Adam moves a weight by about the learning rate a step, so that this is how far weights can have
    moved: 0.1 after 1,000 steps at 1e-4.

    Examples
    --------
    >>> round(learned(Options.of(lr=1e-4, warmup=0), 1000), 3)
    0.1
    >>> round(learned(Options.of(lr=1e-4, warmup=500), 190), 4)
    0.0036
    """
    warmup = options.warmup or 0
    warming = min(step, warmup)
    risen = warming * (warming + 1) / (2 * warmup) if warmup else 0.0
    return options.lr * (risen + step - warming)


def collapse_warning(
    predictions: npt.NDArray[np.floating] | None, options: Options, step: int
) -> str | None:
    """What to tell the user if the predictions are all alike, or None.

    Parameters
    ----------
    predictions : array, shape (spectra, bits), or None
    options : Options
        Of the run, resolved.
    step : int
        Steps that it has done.
    """
    if predictions is None or len(predictions) < 2:
        return None
    varied = spread(predictions)
    if varied >= COLLAPSED_BELOW:
        return None
    short = learned(options, step) < BEGUN_ABOVE
    from_zero = options.starts_bias and options.bias == "zero"
    remedies = ["--bias log-odds"] if from_zero else []
    remedies += ["more --epochs"] if short else []
    said = (
        f"the model says nearly the same about every spectrum (spread {varied:.3f}, expected at "
        f"least {COLLAPSED_BELOW:g}): "
    )
    if short:
        said += f"after {step:,} steps, {options.loss.name} has hardly begun to learn. "
    else:
        said += (
            f"{options.loss.name} has collapsed. Its Tanimoto similarity can look fine; its hit "
            "rates cannot. "
        )
    return f"{said}Start again with {' and '.join(remedies) or 'a smaller --lr'}"


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
