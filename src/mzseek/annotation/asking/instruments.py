"""Tolerances by instrument: how near masses are on each kind, and why."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.errors import AnnotationError, MzseekError
from mzseek.files import StrPath
from mzseek.registry import check_name

DEFAULT = Tolerance()  # of precursors, where no instrument is named
QTOF = "qtof"
# Names of time-of-flight instruments; a Xevo TQ is a triple quadrupole.
_IS_QTOF = re.compile(
    r"tof\b|tof[ -]?ms|maxis|\bimpact (?:hd|ii)|synapt|xevo(?!.*\btq)|\bx500", re.I
)
_STATES = ("instrument_type", "instrument", "source_instrument", "instrument_name")
_PEEKED = 100  # records at the beginning of each file
_EXPLAINS_NOTHING, _MIN_FEATURES = 0.02, 5  # share of the intensity; fewer features tell nothing


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


def stated_tolerances(
    paths: Sequence[StrPath],
) -> tuple[str | None, Tolerance, Tolerance | None, tuple[str, ...]]:
    """Return what files say of their instrument, where the user gives no tolerance.

    Parameters
    ----------
    paths : sequence of paths
        Of spectra; the first hundred records of each are looked at.

    Returns
    -------
    instrument : str or None
        ``qtof`` if all files state such instruments.
    precursor, peaks : Tolerance
    remarks : tuple of str
        A line for the end of the run, where there is anything to say.
    """
    stated = [_stated(path) for path in paths]
    is_qtof = [_IS_QTOF.search(text) is not None for names in stated for text in names]
    if not any(is_qtof):
        return None, *tolerances(None), ()
    if not all(is_qtof) or not all(stated):
        line = (
            "Some records state a QTOF instrument, others do not: all were searched with the "
            f"tolerances of the model. Annotate those apart with --instrument {QTOF}."
        )
        return None, *tolerances(None), (line,)
    own = INSTRUMENTS[QTOF]
    shown = sorted({text for names in stated for text in names})
    line = (
        f"The spectra are of a QTOF instrument ({shown[0]}): searched within {own.precursor} "
        f"(precursors) and {own.peaks} (peaks). --instrument, --ppm and --peak-ppm change this."
    )
    return QTOF, replace(own.precursor, strict=False), own.peaks, (line,)


def _stated(path: StrPath) -> list[str]:
    """Instruments that the first records of a file name, an empty one for those that do not."""
    from mzseek.spectra import read_spectra  # not needed for --help

    found = set()
    try:
        for spectrum in islice(read_spectra(path, []), _PEEKED):
            names = [spectrum.metadata.get(key, "").strip() for key in _STATES]
            found.add(", ".join(filter(None, names)))
    except MzseekError:  # which is reported where the file is read
        return []
    return sorted(found)


def unexplained_remark(explained: Sequence[float], peaks: Tolerance | None) -> list[str]:
    """Return a line if the best candidates explain next to nothing at the model's tolerance.

    Parameters
    ----------
    explained : sequence of float
        Share of the intensity that the best candidate of each feature explains.
    peaks : Tolerance or None
        None: as the model has it.
    """
    if peaks is not None or len(explained) < _MIN_FEATURES:
        return []
    if median(explained) > _EXPLAINS_NOTHING:
        return []
    return [
        f"The best candidates explain {median(explained):.0%} of the intensity in the median: are "
        f"the spectra of a QTOF? Then add --instrument {QTOF}, which widens the tolerances to "
        f"{INSTRUMENTS[QTOF].peaks}."
    ]


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
