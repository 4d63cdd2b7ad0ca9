"""Features that a user's tables name: which of them no file of spectra has."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from mzseek.annotation.features import Feature

_FEW = 5
_LONGEST = 40  # letters of a name that are shown


class Named:
    """Names of features by the table that has them; those that are met are struck off.

    Parameters
    ----------
    tables : mapping of str to collection of str
        For each table, as messages call it, the features that it names.

    Examples
    --------
    >>> named = Named({"the table of formulas": ["7", "8"]})
    >>> named.lines()
    ["the table of formulas: 2 of its 2 features are not among the spectra: '7', '8'"]
    """

    def __init__(self, tables: Mapping[str, Collection[str]]) -> None:
        self._sizes = {table: len(names) for table, names in tables.items()}
        # Dicts, which keep the order of the table.
        self._left = {table: dict.fromkeys(names) for table, names in tables.items()}

    def __bool__(self) -> bool:
        """Whether any name has not been met."""
        return any(self._left.values())

    def meet(self, features: Iterable[Feature]) -> Iterator[Feature]:
        """The same features, each struck off as it goes by."""
        for feature in features:
            for left in self._left.values():
                left.pop(feature.name, None)
            yield feature

    def facts(self) -> dict[str, Any]:
        """For each table how many it names, and what was not met, for a run folder."""
        return {
            table: {"named": self._sizes[table], "not_met": len(left), "first": list(left)[:_FEW]}
            for table, left in self._left.items()
        }

    def lines(self) -> list[str]:
        """A line for each table that names features which were not met."""
        return [self._line(table, list(left)) for table, left in self._left.items() if left]

    def _line(self, table: str, left: list[str]) -> str:
        shown = ", ".join(_short(name) for name in left[:_FEW])
        more = ", …" if len(left) > _FEW else ""
        are = "is" if len(left) == 1 else "are"
        return (
            f"{table}: {len(left):,} of its {self._sizes[table]:,} features {are} not among the "
            f"spectra: {shown}{more}"
        )


def _short(name: str) -> str:
    return repr(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
