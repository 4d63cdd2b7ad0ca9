"""Where models run, and on how many threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def device() -> str:
    """``cuda`` where there is such a GPU, else ``cpu``.

    Apple's GPUs are not taken: they have no float64 and no embedding bags.
    """
    return "cuda" if torch.cuda.is_available() else "cpu"


def machine() -> dict[str, Any]:
    """What a run says about where it was made: device and threads."""
    return {"threads": torch.get_num_threads(), "device": device()}


@contextmanager
def threads_set(count: int | None) -> Iterator[None]:
    """So many threads of torch's in the block, and as many as before after it; None for those."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count:
            torch.set_num_threads(before)
