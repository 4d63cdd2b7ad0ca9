"""How well a precursor is known: no better than its file writes it, or its instrument tells it."""

import re
from dataclasses import replace

import numpy as np

from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.features import Feature
from mzseek.spectra import Spectrum

# Quadrupoles, ion traps and sectors, as MassBank names them: LC-ESI-QQ, GC-EI-Q, LC-ESI-IT, EI-B.
_COARSE = re.compile(r"(?:.*[-\s])?(?:Q{1,3}|Q?IT|QQ?LIT|B)", re.IGNORECASE)
_COARSE_WORDS = re.compile(r"(?:triple |single )quad|\bquadrupole$|^(?:linear )?ion trap$", re.I)
_COARSE_WIDTH = 0.5  # m/z: such instruments tell nominal masses
_FINE = 3  # decimals from which on what is written tells more than 10 ppm


def as_known(feature: Feature, tolerance: Tolerance) -> tuple[Tolerance, str]:
    """The tolerance of a feature's precursor, and what is to be said if it is wider than asked for.

    A tolerance that the user has given stays as it is.

    Parameters
    ----------
    feature : Feature
    tolerance : Tolerance

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 181.0, "[M-H]-", -1, "a", {})
    >>> as_known(Feature("1", "index", (one,)), Tolerance())
    (Tolerance(ppm=10.0, least=0.5, strict=False), 'its precursor is written as 181: searched within 0.5 Da')
    """  # noqa: E501
    if tolerance.strict:
        return tolerance, ""
    width, why = max(map(_width, feature.spectra))
    if width <= tolerance.of(feature.precursor_mz):
        return tolerance, ""
    return replace(tolerance, least=width), f"{why}: searched within {width:g} Da"


def _width(spectrum: Spectrum) -> tuple[float, str]:
    instrument = spectrum.metadata.get("instrument_type", "").strip()
    if _COARSE.fullmatch(instrument) or _COARSE_WORDS.search(instrument):
        return _COARSE_WIDTH, f"its instrument ({instrument[:40]}) tells nominal masses"
    decimals = _decimals(spectrum.precursor_mz)
    if decimals >= _FINE:
        return 0.0, ""
    return (
        0.5 * 10.0**-decimals,
        f"its precursor is written as {spectrum.precursor_mz:.{decimals}f}",
    )


def _decimals(mz: float) -> int:
    """Of a number as it was written: the shortest text that is this number.

    A 32-bit float in many digits (287.05499267578125 for 287.055) is taken as what it stands for:
    precise to some 3e-8 of itself, unless it is a short number.

    Examples
    --------
    >>> _decimals(287.05499267578125), _decimals(183.1000061035156), _decimals(287.0550123)
    (3, 1, 6)
    """
    single = np.float32(mz)
    if abs(float(single) - mz) <= 1e-13 * mz:
        return len(str(single).partition(".")[2].rstrip("0"))
    return len(repr(round(mz, 6)).partition(".")[2].rstrip("0"))
