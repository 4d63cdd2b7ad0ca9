"""What is set aside: where it was, and why.

Functions that work through batches take ``rejects``: a list that gets ``(where, reason)`` pairs, or
a callable that gets the two as arguments.
"""

from collections.abc import Callable

Report = Callable[[str, str], object]
Rejects = list[tuple[str, str]] | Report


def reporter(rejects: Rejects) -> Report:
    """Callable that notes a reject, whichever form was given.

    Examples
    --------
    >>> rejects = []
    >>> reporter(rejects)("library.mgf: record 3", "has no peaks")
    >>> rejects
    [('library.mgf: record 3', 'has no peaks')]
    """
    if isinstance(rejects, list):
        return lambda where, reason: rejects.append((where, reason))
    return rejects
