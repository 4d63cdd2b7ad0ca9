"""How far a measured m/z may be from a computed one: in ppm, or in m/z."""

import re
from dataclasses import dataclass

from mzseek.errors import AnnotationError

_TEXT = re.compile(r"\s*([0-9.eE+-]+)\s*(ppm|da|mda|)\s*", re.IGNORECASE)
_MOST_PPM, _MOST_MZ = 1000.0, 5.0


@dataclass(frozen=True)
class Tolerance:
    """A tolerance, the larger of two: one that grows with m/z, and one that does not.

    Attributes
    ----------
    ppm : float
    least : float
        In m/z.
    strict : bool
        The user's own: not widened where a precursor is known less well.
    """

    ppm: float = 10.0
    least: float = 0.0
    strict: bool = False

    def __post_init__(self) -> None:
        """Refuse what no instrument has."""
        if not (0 <= self.ppm <= _MOST_PPM and 0 <= self.least <= _MOST_MZ):
            raise AnnotationError(
                f"a tolerance of {self.ppm:g} ppm or {self.least:g} Da, expected 0 to "
                f"{_MOST_PPM:g} ppm or to {_MOST_MZ:g} Da"
            )
        if self.ppm == 0 and self.least == 0:
            raise AnnotationError("a tolerance of 0: nothing would be found")

    @classmethod
    def parse(cls, text: "str | float | Tolerance") -> "Tolerance":
        """Of a text: ``10``, ``10 ppm``, ``0.01 Da`` or ``5 mDa``; a number alone is in ppm.

        What a user has written is strict.

        Examples
        --------
        >>> Tolerance.parse("5 mDa")
        Tolerance(ppm=0.0, least=0.005, strict=True)
        >>> Tolerance.parse(7).of(100.0)
        0.0007
        """
        if isinstance(text, Tolerance):
            return text
        match = _TEXT.fullmatch(str(text))
        try:
            value = float(match[1]) if match else float("nan")
        except ValueError:
            value = float("nan")
        if match is None or value != value:
            raise AnnotationError(
                f"tolerance {str(text)[:40]!r}: expected a number with ppm, Da or mDa"
            )
        unit = match[2].lower()
        if unit in ("", "ppm"):
            return cls(ppm=value, strict=True)
        return cls(ppm=0.0, least=value * (1e-3 if unit == "mda" else 1.0), strict=True)

    def of(self, mz: float) -> float:
        """Half of the window around an m/z."""
        return max(mz * self.ppm * 1e-6, self.least)

    def __str__(self) -> str:
        said = [f"{self.ppm:g} ppm"] if self.ppm else []
        return " or ".join([*said, f"{self.least:g} Da"] if self.least else said)
