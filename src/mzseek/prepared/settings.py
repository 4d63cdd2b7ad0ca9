"""Names of candidate lists: which are measured on, and which are for training alone."""

import re

_NEGATIVES = re.compile(r"(hard|random)-(mass|formula)-(\d+)")


def negatives_name(kind: str, by: str, keep: int) -> str:
    """Name of lists of negatives.

    Examples
    --------
    >>> negatives_name("hardest", "mass", 256)
    'hard-mass-256'
    """
    return f"{'hard' if kind == 'hardest' else kind}-{by}-{keep}"


def is_for_training(setting: str) -> bool:
    """Whether lists of this name are negatives, which nothing is measured on."""
    return _NEGATIVES.fullmatch(setting) is not None


def measured_on(setting: str) -> str:
    """The lists that a model trained on these is measured on.

    Examples
    --------
    >>> measured_on("hard-formula-64"), measured_on("mass")
    ('formula', 'mass')
    """
    found = _NEGATIVES.fullmatch(setting)
    return found[2] if found else setting
