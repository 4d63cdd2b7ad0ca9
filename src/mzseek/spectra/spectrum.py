"""One tandem mass spectrum, and the cleaning of its peaks."""

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import MissingExtra, SpectrumError
from mzseek.io.sources import MAX_PEAKS

MAX_MZ = 20_000.0
# No instrument counts so many ions, and squares of larger numbers overflow.
MAX_INTENSITY = 1e30
# Peaks nearer to each other than this share of their m/z (0.1 ppm) are one: no instrument resolves
# them, and numbers of 32 bits are no more precise.
SAME_MZ = 1e-7
# A spectrum is in profile mode if most of its points are this near to the next one, and few of
# them are maxima: none of 64,209 centroided MassBank spectra is.
_PROFILE_POINTS, _PROFILE_GAP = 100, 0.05
_PROFILE_NEAR, _PROFILE_MAXIMA = 0.7, 0.25

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A tandem spectrum that has passed the reader's checks.

    Attributes
    ----------
    mz : float64 array, shape (peaks,)
        Finite, positive, rising.
    intensities : float64 array, shape (peaks,)
        Finite, positive, as the file has them (not normalised).
    precursor_mz : float
        m/z of the ion that was fragmented.
    adduct : str or None
        In its usual spelling; None where the file names none, or more than one.
    charge : int or None
        Signed; None where neither the file nor the adduct tells.
    identifier : str
        Unique within the file it was read from.
    metadata : dict of str to str
        Everything else the record says, under lower-case names (``smiles``, ``inchikey``,
        ``collision_energy``, ``ionmode`` …).
    peak_ppm : float or None
        Tolerance of its peaks, where that was estimated (`mzseek.spectra.recalibration`).
    """

    mz: npt.NDArray[np.float64]
    intensities: npt.NDArray[np.float64]
    precursor_mz: float
    adduct: str | None
    charge: int | None
    identifier: str
    metadata: dict[str, str] = field(default_factory=dict)
    peak_ppm: float | None = None

    @classmethod
    def from_matchms(cls, spectrum: Any) -> "Spectrum":
        """Convert a matchms spectrum by the rules that records of files go through.

        Raises `SpectrumError` for one that has no precursor m/z, no peaks, or contradicts itself.
        """
        from mzseek.spectra.read import from_matchms

        return from_matchms(spectrum)

    def to_matchms(self) -> Any:
        """Convert to a `matchms.Spectrum`; raises `MissingExtra` where matchms is not installed."""
        try:
            matchms = importlib.import_module("matchms")
        except ImportError as error:
            raise MissingExtra("to_matchms needs matchms: pip install matchms") from error
        stated = {
            "spectrum_id": self.identifier,
            "precursor_mz": self.precursor_mz,
            "adduct": self.adduct,
            "charge": self.charge,
        }
        known = {name: value for name, value in stated.items() if value is not None}
        return matchms.Spectrum(self.mz, self.intensities, {**self.metadata, **known})

    @property
    def polarity(self) -> int:
        """1 or −1 as the adduct, the charge or the ion mode states; 0 where none does."""
        charge = parse_adduct(self.adduct).charge if self.adduct else self.charge
        if charge:
            return 1 if charge > 0 else -1
        return {"positive": 1, "negative": -1}.get(self.metadata.get("ionmode", ""), 0)

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        adduct = self.adduct or "adduct unknown"
        return (
            f"Spectrum({self.identifier!r}, {adduct}, precursor {self.precursor_mz:.4f}, "
            f"{len(self)} peaks)"
        )


def is_spectrum(value: Any) -> bool:
    """Return whether an object is a spectrum: of mzseek, matchms, or with the same attributes."""
    if isinstance(value, Spectrum):
        return True
    peaks = getattr(value, "peaks", value)
    return all(hasattr(peaks, n) for n in ("mz", "intensities")) and hasattr(value, "metadata")


def clean_peaks(
    mz: npt.ArrayLike, intensities: npt.ArrayLike, floor: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Sort peaks and drop those of zero intensity; refuse what no instrument measures.

    Peaks of zero intensity are padding and are left out. A peak that is not finite or is negative
    shows that the record is damaged, and the record is refused whole.

    Parameters
    ----------
    mz, intensities : array-like, shape (peaks,)
    floor : float
        Peaks below this fraction of the largest are left out.

    Returns
    -------
    mz, intensities : float64 arrays
        m/z rising; equal m/z by rising intensity, so that the file's order leaves no trace.

    Raises
    ------
    SpectrumError

    Examples
    --------
    >>> clean_peaks([80.0, 50.0, 60.0], [1.0, 100.0, 0.0])
    (array([50., 80.]), array([100.,   1.]))
    """
    mz = np.asarray(mz, dtype=np.float64)
    intensities = np.asarray(intensities, dtype=np.float64)
    if mz.shape != intensities.shape or mz.ndim != 1:
        raise SpectrumError(
            f"{mz.size} m/z values but {intensities.size} intensities", "peak-count"
        )
    if mz.size == 0:
        raise SpectrumError("has no peaks", "no-peaks")
    if mz.size > MAX_PEAKS:
        raise SpectrumError(f"has {mz.size:,} peaks, expected at most {MAX_PEAKS:,}", "too-large")
    largest = float(intensities.max())
    # Four comparisons that a NaN fails too: only a damaged record is looked at more closely.
    is_sound = mz.min() > 0 and mz.max() <= MAX_MZ and intensities.min() >= 0
    if not (is_sound and largest <= MAX_INTENSITY):
        _refuse(~np.isfinite(mz) | ~np.isfinite(intensities), mz, intensities, "is not finite")
        _refuse(mz <= 0, mz, intensities, "has no positive m/z")
        _refuse(mz > MAX_MZ, mz, intensities, f"is past m/z {MAX_MZ:,.0f}")
        _refuse(intensities < 0, mz, intensities, "has a negative intensity")
        _refuse(intensities > MAX_INTENSITY, mz, intensities, f"is past {MAX_INTENSITY:g}")
    if largest == 0:
        raise SpectrumError("has no peak of positive intensity", "no-peaks")
    if floor > 0 or intensities.min() == 0:
        keep = (intensities > 0) & (intensities >= floor * largest)
        mz, intensities = mz[keep], intensities[keep]
    if (mz[1:] <= mz[:-1]).any():
        order = np.lexsort((intensities, mz))
        mz, intensities = mz[order], intensities[order]
    return mz, intensities


def measurable_peaks(
    mz: npt.ArrayLike, intensities: npt.ArrayLike
) -> tuple[npt.ArrayLike, npt.ArrayLike, int]:
    """Drop the peaks that no instrument can have measured, and count them.

    They have an m/z or an intensity that is not finite, negative or beyond all bounds: what
    `clean_peaks` refuses. Arrays of different shapes, or without any other peak, stay as they are.

    Examples
    --------
    >>> mz, intensities, skipped = measurable_peaks([50.0, 60.0, -1.0], [1.0, np.nan, 2.0])
    >>> mz.tolist(), intensities.tolist(), skipped
    ([50.0], [1.0], 2)
    """
    if np.shape(mz) != np.shape(intensities):
        return mz, intensities, 0
    x, y = np.asarray(mz, np.float64), np.asarray(intensities, np.float64)
    # Comparisons that a NaN fails.
    sound = (x > 0) & (x <= MAX_MZ) & (y >= 0) & (y <= MAX_INTENSITY)
    if sound.all() or not sound.any():
        return mz, intensities, 0
    return x[sound], y[sound], int(sound.size - sound.sum())


def merge_duplicates(mz: FloatArray, intensities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge peaks of the same m/z into one, with the largest of their intensities.

    The maximum, not the sum: a line that a program has written twice must not raise its peak, and
    a spectrum with repeated lines is then exactly the one without them. Where two ions were rounded
    to one m/z, the weaker one is lost.

    Parameters
    ----------
    mz, intensities : float64 arrays, shape (peaks,)
        As `clean_peaks` returns them.

    Returns
    -------
    mz, intensities : float64 arrays
        The same objects where no m/z is repeated.

    Examples
    --------
    >>> merge_duplicates(np.array([50.0, 50.0, 80.0]), np.array([1.0, 3.0, 2.0]))
    (array([50., 80.]), array([3., 2.]))
    """
    begins = np.ones(len(mz), bool)
    begins[1:] = np.diff(mz) > SAME_MZ * mz[1:]
    if begins.all():
        return mz, intensities
    # The most intense of each group; of equal ones that of the lowest m/z.
    order = np.lexsort((mz, -intensities, np.cumsum(begins)))
    largest = order[np.flatnonzero(begins)]
    return mz[largest], intensities[largest]


def looks_like_profile(mz: FloatArray, intensities: FloatArray) -> bool:
    """Return whether peaks are points of a profile, by their spacing and their few maxima.

    Examples
    --------
    >>> mz = np.arange(100.0, 102.0, 0.01)
    >>> looks_like_profile(mz, 1 + np.cos(20 * mz))
    True
    >>> looks_like_profile(50 * mz, 1 + np.cos(20 * mz))
    False
    """
    if len(mz) < _PROFILE_POINTS or (np.diff(mz) < _PROFILE_GAP).mean() < _PROFILE_NEAR:
        return False
    middle = intensities[1:-1]
    maxima = (middle > intensities[:-2]) & (middle >= intensities[2:])
    return bool(maxima.mean() < _PROFILE_MAXIMA)


def _refuse(bad: npt.NDArray[np.bool_], mz: FloatArray, intensities: FloatArray, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise SpectrumError(
            f"peak {first + 1} (m/z {mz[first]:g}, {intensities[first]:g}) {why}", "bad-peak"
        )
