"""Adduct hypotheses of a feature, and mass tolerances by instrument."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from mzseek.annotation.features import Feature, Tolerance
from mzseek.chem.adducts import Adduct, parse_adduct
from mzseek.core.errors import AdductError, AnnotationError
from mzseek.core.registry import check_name
from mzseek.spectra import Spectrum

# What is tried where a file names no ion, by charge, the commonest first. Of those without a part
# that brings the charge ([M]+), only molecules with a permanent charge are candidates.
USUAL = {
    1: ("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M+H-H2O]+", "[M]+"),
    2: ("[M+2H]2+", "[M+H+Na]2+", "[M+H+K]2+", "[M+H+NH4]2+", "[M]2+"),
    3: ("[M+3H]3+", "[M+2H+Na]3+"),
    -1: ("[M-H]-", "[M+FA-H]-", "[M+Cl]-", "[M+HAc-H]-", "[M]-"),
    -2: ("[M-2H]2-",),
    -3: ("[M-3H]3-",),
}
MIN_REFERENCES = 20  # features of an ion, below which probabilities were not calibrated for it
# Electrons knock one out: such a molecule gains nothing.
_BY_ELECTRONS = ("[M]+",)
_IS_EI = re.compile(r"\bEI\b", re.IGNORECASE)
_MODES = {"positive": 1, "negative": -1}
WIDENS = "+["  # how an ion is written that is tried beside those of the file


@dataclass(frozen=True)
class Ions:
    """Ions that the user asks for.

    Attributes
    ----------
    only : tuple of str
        Tried for every feature of their mode, and no others; empty: as the file says.
    also : tuple of str
        Tried beside those of the file.
    """

    only: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @classmethod
    def parse(cls, names: Sequence[str]) -> "Ions":
        """Of names as users write them: ``[M+Na]+`` is one of the only ones, ``+[M+K]+`` another.

        Examples
        --------
        >>> Ions.parse(["[M+H]+", "+[M+K]+"])
        Ions(only=('[M+H]+',), also=('[M+K]+',))
        """
        only: list[str] = []
        also: list[str] = []
        for name in names:
            widens = name.strip().startswith(WIDENS)
            parsed = parse_adduct(name.strip().removeprefix("+") if widens else name).name
            (also if widens else only).append(parsed)
        return cls(tuple(dict.fromkeys(only)), tuple(dict.fromkeys(also)))


@dataclass(frozen=True)
class Hypothesis:
    """One reading of a feature: the ion of each of its spectra, and the mass that follows.

    Attributes
    ----------
    adduct : str
        Of the feature: of its first spectrum.
    adducts : tuple of str
        Of each spectrum.
    mass, reach : float
        Of the neutral molecule, and how far it may be off.
    stated : bool
        Whether the file or the user names the ion; else it is tried because it is usual.
    """

    adduct: str
    adducts: tuple[str, ...]
    mass: float
    reach: float
    stated: bool = True


def hypotheses(feature: Feature, tolerance: Tolerance, requested: Ions) -> tuple[Hypothesis, ...]:
    """The readings of a feature that are to be tried, at least one.

    Parameters
    ----------
    feature : Feature
    tolerance : Tolerance
        Of the precursor.
    requested : Ions
        By the user.

    Raises
    ------
    AnnotationError
        Its spectra contradict each other, or what is requested.
    """
    stated = tuple(dict.fromkeys(s.adduct for s in feature.spectra if s.adduct))
    charge = _charge(feature, requested)
    # An ion of another charge, or of the other mode, is requested because of other features.
    only = tuple(a for a in requested.only if _fits(a, charge))
    also = tuple(a for a in requested.also if _fits(a, charge))
    if stated:
        if requested.only and not set(stated) <= set(only):
            raise AnnotationError(
                f"names {' and '.join(stated)}, but {' and '.join(requested.only)} was asked for"
            )
        read, tried = [_as_stated(feature, tolerance)], []
    else:
        if requested.only and not only:
            raise AnnotationError(
                f"is {_described(charge)}, but {' and '.join(requested.only)} was asked for"
            )
        read, tried = [], [] if only else list(_usual(feature, charge))
    named = {*only, *also, *(_BY_ELECTRONS if _is_by_electrons(feature) else ())}
    for name in dict.fromkeys([*tried, *only, *also]):
        if name in stated:
            continue
        try:
            read.append(_as_one(feature, parse_adduct(name), tolerance, name in named))
        except AdductError:  # an ion that takes more away than there is: no reading of this m/z
            continue
    if not read:
        raise AnnotationError(f"m/z {feature.precursor_mz:.4f} is too small for every ion tried")
    return tuple(read)


def uncalibrated(
    readings: Sequence[Hypothesis], best: str, shares: Mapping[str, float], floor: float
) -> list[str]:
    """Return a note for each ion that the library has too few reference features of.

    Parameters
    ----------
    readings : sequence of Hypothesis
        Of a feature. Ions that are only tried because they are usual are noted if they are `best`.
    best : str
        Ion of the best candidate.
    shares : mapping of str to float
        Share of each ion among the library's features.
    floor : float
        Share of an ion of half a feature: ``0.5 / (features + 1)``.

    Examples
    --------
    >>> stated = Hypothesis("[2M+H]+", ("[2M+H]+",), 194.08, 0.002)
    >>> uncalibrated([stated], "[2M+H]+", {"[M+H]+": 1.0}, 0.0001)
    ['probabilities are not calibrated for [2M+H]+']
    """
    features = 0.5 / floor - 1
    named = [ion for reading in readings if reading.stated for ion in reading.adducts]
    return [
        f"probabilities are not calibrated for {ion}"
        for ion in dict.fromkeys([best, *named])
        if round(shares.get(ion, 0.0) * features) < MIN_REFERENCES
    ]


def with_ion(spectrum: Spectrum, adduct: str) -> Spectrum:
    """A spectrum read as an ion."""
    if spectrum.adduct == adduct:
        return spectrum
    return Spectrum(
        spectrum.mz, spectrum.intensities, spectrum.precursor_mz, adduct,
        parse_adduct(adduct).charge, spectrum.identifier, spectrum.metadata,
    )  # fmt: skip


def is_mode_known(feature: Feature) -> bool:
    """Whether the file tells the sign of the charge."""
    return any(_stated_mode(spectrum) for spectrum in feature.spectra)


def _as_stated(feature: Feature, tolerance: Tolerance) -> Hypothesis:
    """Every spectrum as the ion that it names; one that names none is what its like are."""
    named = [s for s in feature.spectra if s.adduct]
    adducts, masses, reaches = [], [], []
    for spectrum in feature.spectra:
        nearest = min(named, key=lambda s, mz=spectrum.precursor_mz: abs(s.precursor_mz - mz))  # type: ignore[misc]
        adduct = parse_adduct(str(spectrum.adduct or nearest.adduct))
        try:
            masses.append(adduct.neutral_mass(spectrum.precursor_mz))
        except AdductError as error:
            raise AnnotationError(str(error)) from error
        adducts.append(adduct.name)
        reaches.append(tolerance.of(spectrum.precursor_mz) / adduct.slope)
    mass, reach = float(np.median(masses)), float(max(reaches))
    if max(masses) - min(masses) > 2 * reach:
        low, high = int(np.argmin(masses)), int(np.argmax(masses))
        raise AnnotationError(
            f"its spectra are of two masses, {masses[low]:.4f} ({adducts[low]}) and "
            f"{masses[high]:.4f} ({adducts[high]}); with --group none each is answered by itself"
        )
    return Hypothesis(adducts[0], tuple(adducts), mass, reach)


def _as_one(feature: Feature, adduct: Adduct, tolerance: Tolerance, stated: bool) -> Hypothesis:
    """All spectra as one ion."""
    mz = [spectrum.precursor_mz for spectrum in feature.spectra]
    width = tolerance.of(feature.precursor_mz)
    if max(mz) - min(mz) > 2 * width:
        raise AnnotationError(
            f"its spectra have precursors from m/z {min(mz):.4f} to {max(mz):.4f}, and name "
            "no ions; with --group none each is answered by itself"
        )
    mass = adduct.neutral_mass(feature.precursor_mz)
    return Hypothesis(adduct.name, (adduct.name,) * len(mz), mass, width / adduct.slope, stated)


def _usual(feature: Feature, charge: int | str) -> tuple[str, ...]:
    """Ions of a charge, or of any charge of a mode where it is not known: singly charged ones."""
    size = _MODES[charge] if isinstance(charge, str) else charge
    if size == 1 and _is_by_electrons(feature):
        return _BY_ELECTRONS
    if size not in USUAL:
        raise AnnotationError(f"is {_described(charge)} and names no ion; name it with --adduct")
    return USUAL[size]


def _is_by_electrons(feature: Feature) -> bool:
    return all(_IS_EI.search(s.metadata.get("instrument_type", "")) for s in feature.spectra)


def _charge(feature: Feature, requested: Ions) -> int | str:
    """Signed charge of a feature; its ion mode where the file gives no charge.

    A mode that is not known is that of the only ions requested. Otherwise it is
    taken as positive, which a note says.
    """
    modes = {sign for spectrum in feature.spectra if (sign := _stated_mode(spectrum))}
    if len(modes) > 1:
        raise AnnotationError("its spectra are of both ion modes")
    signs = {_sign(adduct) for adduct in requested.only}
    mode = next(iter(modes or signs)) if len(modes or signs) == 1 else 1
    named = {abs(parse_adduct(s.adduct).charge) for s in feature.spectra if s.adduct}
    sizes = named or {abs(s.charge) for s in feature.spectra if s.charge}
    if len(sizes) > 1 and not named:
        raise AnnotationError(f"its spectra have charges of {' and '.join(map(str, sizes))}")
    if len(sizes) == 1:
        return mode * sizes.pop()
    return "positive" if mode > 0 else "negative"


def _fits(adduct: str, charge: int | str) -> bool:
    if isinstance(charge, str):
        return _sign(adduct) == _MODES[charge]
    return parse_adduct(adduct).charge == charge


def _described(charge: int | str) -> str:
    if isinstance(charge, str):
        return f"of {charge} mode"
    return f"of charge {abs(charge)}{'+' if charge > 0 else '-'}"


def _stated_mode(spectrum: Spectrum) -> int:
    if spectrum.adduct:
        return _sign(spectrum.adduct)
    if spectrum.charge:
        return 1 if spectrum.charge > 0 else -1
    return _MODES.get(spectrum.metadata.get("ionmode", ""), 0)


def _sign(adduct: str) -> int:
    return 1 if parse_adduct(adduct).charge > 0 else -1


# Quadrupoles, ion traps and sectors, as MassBank names them: LC-ESI-QQ, GC-EI-Q, LC-ESI-IT, EI-B.
_COARSE = re.compile(r"(?:.*[-\s])?(?:Q{1,3}|Q?IT|QQ?LIT|B)", re.IGNORECASE)
_COARSE_WORDS = re.compile(r"(?:triple |single )quad|\bquadrupole$|^(?:linear )?ion trap$", re.I)
_COARSE_WIDTH = 0.5  # m/z: such instruments tell nominal masses
_FINE = 3  # decimals from which on what is written tells more than 10 ppm


def as_known(feature: Feature, tolerance: Tolerance) -> tuple[Tolerance, str]:
    """Return the tolerance of a feature's precursor, and a note if it is wider than requested.

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


DEFAULT = Tolerance()  # of precursors, where no instrument is named
QTOF = "qtof"
# Names of time-of-flight instruments; a Xevo TQ is a triple quadrupole.
_IS_QTOF = re.compile(
    r"tof\b|tof[ -]?ms|maxis|\bimpact (?:hd|ii)|synapt|xevo(?!.*\btq)|\bx500", re.I
)
_STATES = ("instrument_type", "instrument", "source_instrument", "instrument_name")
PEEKED = 100  # records at the beginning of each file that are looked at
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
        "Of peaks that a fragment of the molecule explains, 98 % are within 5 ppm (1,500 Orbitrap "
        "spectra of MassBank); the model's own tolerance ranks as well as a narrower one.",
    ),
    "qtof": Instrument(
        Tolerance(20.0, strict=True),
        Tolerance(20.0, 0.001),
        "Of peaks that a fragment of the molecule explains, 92 % are within 20 ppm and 70 % "
        "within 10 (1,500 QTOF spectra of MassBank).",
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
    *,
    is_strict: bool = True,
) -> tuple[Tolerance, Tolerance | None]:
    """Return tolerances of precursors and of peaks: what is given wins over the instrument's.

    Parameters
    ----------
    instrument : str or None
        A name of `INSTRUMENTS`.
    precursor, peaks : tolerances as users write them, or None
        None: the instrument's; without one, 10 ppm, and for peaks what the model has (None).
    is_strict : bool
        Whether the instrument's tolerance of precursors is never widened.

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
    defaults = INSTRUMENTS[instrument] if instrument else Instrument(DEFAULT, None, "")
    usual = defaults.precursor if is_strict else replace(defaults.precursor, strict=False)
    return (
        usual if precursor is None else Tolerance.parse(precursor),
        defaults.peaks if peaks is None else Tolerance.parse(peaks),
    )


def stated_instrument(spectra: Sequence[Sequence[Spectrum]]) -> tuple[str | None, tuple[str, ...]]:
    """Return the instrument that files state, and a line for the end of the run about it.

    Parameters
    ----------
    spectra : sequence of sequences of Spectrum
        The first of each file.

    Returns
    -------
    instrument : str or None
        ``qtof`` if all spectra state such an instrument.
    remarks : tuple of str
    """
    stated = [
        {
            ", ".join(filter(None, (s.metadata.get(key, "").strip() for key in _STATES)))
            for s in first
        }
        for first in spectra
    ]
    is_qtof = [_IS_QTOF.search(text) is not None for names in stated for text in names]
    if not any(is_qtof):
        return None, ()
    if not all(is_qtof) or not all(stated):
        line = (
            "Some records state a QTOF instrument, others do not: all were searched with the "
            f"tolerances of the model. Annotate those separately with --instrument {QTOF}."
        )
        return None, (line,)
    instrument, shown = INSTRUMENTS[QTOF], min(text for names in stated for text in names)
    line = (
        f"The spectra are of a QTOF instrument ({shown}): searched within {instrument.precursor} "
        f"(precursors) and {instrument.peaks} (peaks). --instrument, --ppm and --peak-ppm change "
        "this."
    )
    return QTOF, (line,)


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
    """What every annotation about spectra of an instrument should say.

    Examples
    --------
    >>> instrument_notes("orbitrap"), len(instrument_notes("ion-trap"))
    ((), 1)
    """
    if name is None or INSTRUMENTS[name].fitted:
        return ()
    return (f"the model was not fitted on spectra of {name} instruments: probabilities are unsure",)
