"""Tolerances by instrument: how near masses are on each kind, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.errors import AnnotationError
from mzseek.registry import check_name

DEFAULT = Tolerance()  # of precursors, where no instrument is named


@dataclass(frozen=True)
class Instrument:
    """A kind of instrument.

    Attributes
    ----------
    precursor : Tolerance
    peaks : Tolerance or None
        None: as the model has them.
    why : str
        A sentence.
    fitted : bool
        Whether models are fitted on spectra of such instruments.
    """

    precursor: Tolerance
    peaks: Tolerance | None
    why: str
    fitted: bool = True


INSTRUMENTS: Mapping[str, Instrument] = {
    "orbitrap": Instrument(
        Tolerance(5.0, strict=True),
        None,
        "Of peaks that a piece of the molecule explains, 98 % are within 5 ppm (1,500 Orbitrap "
        "spectra of MassBank); the model's own tolerance ranks as well as a narrower one.",
    ),
    "qtof": Instrument(
        Tolerance(20.0, strict=True),
        Tolerance(20.0, 0.001),
        "Of peaks that a piece of the molecule explains, 92 % are within 20 ppm and 70 % within 10 "
        "(1,500 QTOF spectra of MassBank).",
    ),
    "fticr": Instrument(
        Tolerance(3.0, strict=True),
        None,
        "Makers promise about 1 ppm; not measured here, so that peaks are left as the model has "
        "them.",
    ),
    "ion-trap": Instrument(
        Tolerance(0.0, 0.5, strict=True),
        Tolerance(0.0, 0.3),
        "Of unit resolution: masses are told to a few tenths, and many molecules fit.",
        fitted=False,
    ),
}


def tolerances(
    instrument: str | None,
    precursor: "str | float | Tolerance | None" = None,
    peaks: "str | float | Tolerance | None" = None,
) -> tuple[Tolerance, Tolerance | None]:
    """Tolerances of precursors and of peaks: what is given wins over the instrument's.

    Parameters
    ----------
    instrument : str or None
        A name of `INSTRUMENTS`.
    precursor, peaks : tolerances as users write them, or None
        None: the instrument's; without one, 10 ppm, and for peaks what the model has (None).

    Raises
    ------
    AnnotationError
        An unknown instrument, or no tolerance.

    Examples
    --------
    >>> tolerances(None)
    (Tolerance(ppm=10.0, least=0.0, strict=False), None)
    >>> [each.of(300.0) for each in tolerances("ion-trap", peaks="0.2 Da")]
    [0.5, 0.2]
    """
    check_instrument(instrument)
    own = INSTRUMENTS[instrument] if instrument else Instrument(DEFAULT, None, "")
    return (
        own.precursor if precursor is None else Tolerance.parse(precursor),
        own.peaks if peaks is None else Tolerance.parse(peaks),
    )


def check_instrument(name: object) -> None:
    """Refuse an instrument that is unknown, with the names of those there are."""
    if name is not None:
        check_name(INSTRUMENTS, str(name), "instrument", AnnotationError)


def instrument_notes(name: str | None) -> tuple[str, ...]:
    """What every answer about spectra of an instrument should say.

    Examples
    --------
    >>> instrument_notes("orbitrap"), len(instrument_notes("ion-trap"))
    ((), 1)
    """
    if name is None or INSTRUMENTS[name].fitted:
        return ()
    return (f"the model was not fitted on spectra of {name} instruments: probabilities are unsure",)
