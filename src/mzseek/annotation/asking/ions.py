"""Which ion a feature is: what its file says, or else those that are usual, each a hypothesis."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mzseek.adducts import Adduct, parse_adduct
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.features import Feature
from mzseek.errors import AdductError, AnnotationError
from mzseek.spectra import Spectrum

# What is tried where a file names no ion, the commonest first.
USUAL = {
    1: ("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M+H-H2O]+"),
    -1: ("[M-H]-", "[M+FA-H]-", "[M+Cl]-", "[M+HAc-H]-"),
}
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
    """

    adduct: str
    adducts: tuple[str, ...]
    mass: float
    reach: float


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
    mode = _mode(feature)
    # What is asked for of the other mode is for other features.
    only = tuple(a for a in asked.only if _sign(a) == mode)
    if stated:
        if only and not set(stated) <= set(only):
            raise AnnotationError(
                f"names {' and '.join(stated)}, but {' and '.join(only)} was asked for"
            )
        read = [_as_stated(feature, tolerance)]
        tried = [a for a in asked.also if _sign(a) == mode and a not in stated]
    else:
        if asked.only and not only:
            raise AnnotationError(
                f"is of {'positive' if mode > 0 else 'negative'} mode, but "
                f"{' and '.join(asked.only)} was asked for"
            )
        read = []
        tried = [*(only or _usual(feature, mode)), *(a for a in asked.also if _sign(a) == mode)]
    for name in dict.fromkeys(tried):
        try:
            read.append(_as_one(feature, parse_adduct(name), tolerance))
        except AdductError:  # an ion that takes more away than there is: no reading of this m/z
            continue
    if not read:
        raise AnnotationError(f"m/z {feature.precursor_mz:.4f} is too small for every ion tried")
    return tuple(read)


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


def _as_one(feature: Feature, adduct: Adduct, tolerance: Tolerance) -> Hypothesis:
    """All spectra as one ion."""
    mz = [spectrum.precursor_mz for spectrum in feature.spectra]
    width = tolerance.of(feature.precursor_mz)
    if max(mz) - min(mz) > 2 * width:
        raise AnnotationError(
            f"its spectra have precursors from m/z {min(mz):.4f} to {max(mz):.4f}, and name "
            "no ions; with --group none each is answered by itself"
        )
    mass = adduct.neutral_mass(feature.precursor_mz)
    return Hypothesis(adduct.name, (adduct.name,) * len(mz), mass, width / adduct.slope)


def _usual(feature: Feature, mode: int) -> tuple[str, ...]:
    charges = {abs(s.charge) for s in feature.spectra if s.charge}
    if len(charges) > 1:
        raise AnnotationError(f"its spectra have charges of {' and '.join(map(str, charges))}")
    if charges and charges != {1}:
        raise AnnotationError(
            f"has a charge of {charges.pop()} and names no ion; name it with --adduct"
        )
    if mode > 0 and all(map(_is_by_electrons, feature.spectra)):
        return _BY_ELECTRONS
    return USUAL[mode]


def _is_by_electrons(spectrum: Spectrum) -> bool:
    return _IS_EI.search(spectrum.metadata.get("instrument_type", "")) is not None


def _mode(feature: Feature) -> int:
    """1 or −1; what is not known is taken as positive, which the answer says."""
    known = {sign for spectrum in feature.spectra if (sign := _stated_mode(spectrum))}
    if len(known) > 1:
        raise AnnotationError("its spectra are of both ion modes")
    return known.pop() if known else 1


def _stated_mode(spectrum: Spectrum) -> int:
    if spectrum.adduct:
        return _sign(spectrum.adduct)
    if spectrum.charge:
        return 1 if spectrum.charge > 0 else -1
    return _MODES.get(spectrum.metadata.get("ionmode", ""), 0)


def _sign(adduct: str) -> int:
    return 1 if parse_adduct(adduct).charge > 0 else -1
