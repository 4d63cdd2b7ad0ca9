"""How long work tells whoever watches how far it has got."""

from collections.abc import Callable
from typing import Protocol

Say = Callable[[str], None]  # gets a line at a time


class Progress(Protocol):
    """Called with the stage's name, what is done, and the total where it is known."""

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        """Take note."""


def silent(stage: str, done: int, total: int | None = None) -> None:
    """Nobody watches."""


def unheard(line: str) -> None:
    """Nobody listens."""
