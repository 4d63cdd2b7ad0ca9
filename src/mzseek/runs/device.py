"""Where models run."""

import torch


def device() -> str:
    """``cuda`` where there is such a GPU, else ``cpu``.

    Apple's GPUs are not taken: they have no float64 and no embedding bags.
    """
    return "cuda" if torch.cuda.is_available() else "cpu"
