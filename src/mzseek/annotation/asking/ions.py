"""Which ion a feature is: what its file says, or else those that are usual, each a hypothesis."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mzseek.adducts import Adduct, parse_adduct
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.features import Feature
from mzseek.errors import AdductError, AnnotationError
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


def hypotheses(feature: Feature, tolerance: Tolerance, asked: Ions) -> tuple[Hypothesis, ...]:
    """The readings of a feature that are to be tried, at least one.

    Parameters
    ----------
    feature : Feature
    tolerance : Tolerance
        Of the precursor.
    asked : Ions
        By the user.

    Raises
    ------
    AnnotationError
        Its spectra contradict each other, or what is asked for.
    """
    stated = tuple(dict.fromkeys(s.adduct for s in feature.spectra if s.adduct))
    charge = _charge(feature, asked)
    # An ion of another charge, or of the other mode, is asked for because of other features.
    only = tuple(a for a in asked.only if _fits(a, charge))
    also = tuple(a for a in asked.also if _fits(a, charge))
    if stated:
        if asked.only and not set(stated) <= set(only):
            raise AnnotationError(
                f"names {' and '.join(stated)}, but {' and '.join(asked.only)} was asked for"
            )
        read, tried = [_as_stated(feature, tolerance)], []
    else:
        if asked.only and not only:
            raise AnnotationError(
                f"is {_described(charge)}, but {' and '.join(asked.only)} was asked for"
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
        near = min(named, key=lambda s, mz=spectrum.precursor_mz: abs(s.precursor_mz - mz))  # type: ignore[misc]
        adduct = parse_adduct(str(spectrum.adduct or near.adduct))
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


def _charge(feature: Feature, asked: Ions) -> int | str:
    """Signed charge of a feature; its ion mode where the file gives no charge.

    A mode that is not known is that of the only ions asked for. Otherwise it is taken as positive,
    which a note says.
    """
    modes = {sign for spectrum in feature.spectra if (sign := _stated_mode(spectrum))}
    if len(modes) > 1:
        raise AnnotationError("its spectra are of both ion modes")
    signs = {_sign(adduct) for adduct in asked.only}
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
