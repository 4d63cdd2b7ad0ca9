"""Corrupt curated spectra as instruments and their software do.

Libraries hold recalibrated, cleaned spectra; users' spectra have mass errors, noise, co-isolated
ions, isotope peaks and side lobes, and lack weak peaks. `Corruption` adds these: to training
spectra, and to spectra that a model is measured on.

The ranges follow 302 uncurated spectra of a QTOF (positive mode): 17 % of their peaks are neither a
fragment of their molecule nor an isotope peak, with relative intensities of median 0.024 and
quartiles 0.006 and 0.079, and 25 % are isotope peaks, with 0.8 to 1.3 (quartiles) of the intensity
that an average composition gives. `DriftCurve` follows a laboratory whose fragments are off by
+30 ppm at m/z 60, +27 at 100, +12 at 140, and −3 above 200.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import SpectrumError
from mzseek.spectra.spectrum import Spectrum, clean_peaks, merge_duplicates

Floats = npt.NDArray[np.float64]
Random = np.random.Generator
Peaks = tuple[Floats, Floats]  # m/z and intensities

# In the order in which they are applied: what the ion source and the quadrupole let in, what the
# detector loses and adds, the calibration, and noise, which has no mass.
PARTS = ("contaminants", "isotopes", "missing", "sidelobes", "drift", "noise")

NOISE_SHARE = 0.3  # of all peaks
NOISE_MEDIAN, NOISE_SPREAD = 0.02, 1.5  # of relative intensities: median, and sd of their logarithm
_SCAN_START, _SCAN_BEYOND = 50.0, 50.0  # m/z: where scans begin, and end above the precursor
ISOLATION = 1.5  # m/z on either side of the precursor
CONTAMINANT_SHARE = (0.05, 0.3)  # of the spectrum's total intensity
_DOUBLY_CHARGED = (
    0.25  # share of contaminants with two charges: they have peaks above the precursor
)
_PROTON = 1.007276
_ISOTOPE_STEP = 1.003355  # 13C − 12C
_ISOTOPE_RATIO = 0.0108  # 13C / 12C
_MASS_PER_CARBON = 19.0  # Da, of an average fragment
ISOTOPE_TRANSMISSION = (0.2, 1.0)  # of the M+1 ion by the quadrupole
_ISOTOPE_FLOOR = 0.005  # of the base peak: weaker isotope peaks are not seen
MISSING_FLOOR = (0.003, 0.03)  # of the base peak
_LOBED = 0.3  # of the base peak: lower ones have no side lobes
LOBE_DISTANCE = (0.015, 0.06)  # m/z at m/z 200; in proportion to m/z
LOBE_HEIGHT = (0.005, 0.03)  # of the peak; half of that at twice the distance


@dataclass(frozen=True)
class DriftCurve:
    """Mass error in ppm as a function of m/z: a logistic step from `low` to `high`.

    Examples
    --------
    >>> DriftCurve().ppm(np.array([60.0, 100.0, 140.0, 200.0, 300.0])).round().tolist()
    [30.0, 27.0, 12.0, -4.0, -5.0]
    """

    low: float = 30.0  # ppm, far below `middle`
    high: float = -5.0  # ppm, far above
    middle: float = 140.0  # m/z
    width: float = 17.0  # m/z

    @classmethod
    def draw(cls, random: Random) -> "DriftCurve":
        """Draw what recalibration leaves of a drift."""
        low, high = random.uniform(-8, 8), random.uniform(-3, 3)
        return cls(low, high, random.uniform(100, 200), random.uniform(10, 50))

    def ppm(self, mz: Floats) -> Floats:
        """Measured minus true m/z, in ppm."""
        step = 0.5 * (1 + np.tanh((np.asarray(mz) - self.middle) / (2 * self.width)))
        return np.asarray(self.low + (self.high - self.low) * step, np.float64)


@dataclass(frozen=True, eq=False)
class Contaminants:
    """Spectra that can be co-isolated with others.

    Parameters
    ----------
    spectra : sequence of Spectrum
    molecules : sequence
        Of which molecule each is: none is mixed with its own.
    """

    spectra: Sequence[Spectrum]
    molecules: Sequence[Hashable]
    _order: npt.NDArray[np.int64] = field(init=False)
    _precursors: Floats = field(init=False)

    def __post_init__(self) -> None:
        keys = [(s.precursor_mz, s.identifier) for s in self.spectra]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        object.__setattr__(self, "_order", np.array(order, np.int64))
        object.__setattr__(self, "_precursors", np.array([keys[n][0] for n in order]))

    def draw(self, spectrum: Spectrum, molecule: Hashable, random: Random) -> Peaks | None:
        """Draw the peaks of an ion in the isolation window; None where there is none.

        A doubly charged contaminant is taken to fragment as the singly charged ion of its
        molecule does.
        """
        sign = np.sign(spectrum.charge or 0)
        if sign and random.random() < _DOUBLY_CHARGED:
            centre = 2 * spectrum.precursor_mz - sign * _PROTON
            donor = self._drawn_within(spectrum, molecule, centre, 2 * ISOLATION, random)
            if donor is not None:
                below = donor.mz < donor.precursor_mz - ISOLATION
                if below.any():
                    return donor.mz[below], donor.intensities[below]
        donor = self._drawn_within(spectrum, molecule, spectrum.precursor_mz, ISOLATION, random)
        return None if donor is None else (donor.mz, donor.intensities)

    def _drawn_within(
        self, spectrum: Spectrum, molecule: Hashable, centre: float, reach: float, random: Random
    ) -> Spectrum | None:
        """Draw a molecule in a window, and one of its spectra."""
        low, high = np.searchsorted(self._precursors, [centre - reach, centre + reach])
        by_molecule: dict[Hashable, list[int]] = {}
        for number in self._order[low:high].tolist():
            same_polarity = np.sign(self.spectra[number].charge or 0) == np.sign(
                spectrum.charge or 0
            )
            if same_polarity and self.molecules[number] != molecule:
                by_molecule.setdefault(self.molecules[number], []).append(number)
        if not by_molecule:
            return None
        drawn = list(by_molecule.values())[random.integers(len(by_molecule))]
        return self.spectra[drawn[random.integers(len(drawn))]]


@dataclass(frozen=True, eq=False)
class Corruption:
    """What is done to a spectrum; the same seed, identifier and peaks give the same result.

    Every part draws from a generator of its own: alone it does what it does beside the others.

    Attributes
    ----------
    parts : tuple of str
        Some of `PARTS`.
    contaminants : Contaminants, optional
        Needed for the part of this name.
    drift : DriftCurve, optional
        One for all spectra, as in a file; by default each spectrum draws its own, of what
        recalibration leaves.
    probability : float
        With which each part is applied to a spectrum.
    seed : int

    Examples
    --------
    >>> clean = Spectrum(np.array([60.0, 200.0]), np.array([1.0, 9.0]), 250.0, "[M+H]+", 1, "a")
    >>> Corruption(("drift",), drift=DriftCurve())(clean, "molecule").mz.round(4).tolist()
    [60.0018, 199.9992]
    """

    parts: tuple[str, ...] = PARTS
    contaminants: Contaminants | None = None
    drift: DriftCurve | None = None
    probability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.parts:
            if name not in PARTS:
                raise SpectrumError(f"no part {name!r}, expected some of {', '.join(PARTS)}")
        if "contaminants" in self.parts and self.contaminants is None:
            raise SpectrumError("contaminants are to be added, but no spectra are given for them")

    def __call__(self, spectrum: Spectrum, molecule: Hashable) -> Spectrum:
        """Return a corrupted copy of a spectrum of a molecule; the precursor m/z stays."""
        peaks: Peaks = spectrum.mz, spectrum.intensities
        name = spectrum.identifier.encode()
        for number, part in enumerate(PARTS):
            random = np.random.default_rng([self.seed, number, *name])
            if part not in self.parts or random.random() >= self.probability:
                continue
            if part == "contaminants":
                assert self.contaminants is not None
                donor = self.contaminants.draw(spectrum, molecule, random)
                peaks = peaks if donor is None else mix(peaks, donor, random)
            elif part == "drift":
                curve = self.drift or DriftCurve.draw(random)
                peaks = peaks[0] * (1 + 1e-6 * curve.ppm(peaks[0])), peaks[1]
            elif part == "noise":
                peaks = add_noise(peaks, spectrum.precursor_mz, random)
            else:
                peaks = _OF_PEAKS[part](peaks, random)
        mz, intensities = merge_duplicates(*clean_peaks(*peaks))
        return replace(spectrum, mz=mz, intensities=intensities)


def mix(peaks: Peaks, contaminant: Peaks, random: Random) -> Peaks:
    """Add the peaks of another spectrum, with 5 to 30 % of the total intensity."""
    share = random.uniform(*CONTAMINANT_SHARE) * peaks[1].sum() / contaminant[1].sum()
    return _joined(peaks, (contaminant[0], share * contaminant[1]))


def add_isotopes(peaks: Peaks, random: Random) -> Peaks:
    """Add the 13C isotope peak of every singly charged ion that has a visible one."""
    mz, intensities = peaks
    ratio = _ISOTOPE_RATIO * mz / _MASS_PER_CARBON * random.uniform(*ISOTOPE_TRANSMISSION)
    heights = ratio * intensities
    seen = heights >= _ISOTOPE_FLOOR * intensities.max()
    return _joined(peaks, (mz[seen] + _ISOTOPE_STEP, heights[seen]))


def drop_weak(peaks: Peaks, random: Random) -> Peaks:
    """Drop weak peaks, half of those at a noise floor that is drawn; the base peak stays."""
    mz, intensities = peaks
    low, high = np.log(MISSING_FLOOR)
    floor = np.exp(random.uniform(low, high))
    relative = intensities / intensities.max()
    is_kept = random.random(len(mz)) > 1 / (1 + (relative / floor) ** 2)
    is_kept[np.argmax(intensities)] = True
    return mz[is_kept], intensities[is_kept]


def add_side_lobes(peaks: Peaks, random: Random) -> Peaks:
    """Add two side lobes on either side of intense peaks."""
    mz, intensities = peaks
    intense = intensities >= _LOBED * intensities.max()
    distance = random.uniform(*LOBE_DISTANCE) * mz[intense] / 200
    height = random.uniform(*LOBE_HEIGHT, intense.sum()) * intensities[intense]
    for order in (-2, -1, 1, 2):
        peaks = _joined(peaks, (mz[intense] + order * distance, height / abs(order)))
    return peaks


def add_noise(peaks: Peaks, precursor_mz: float, random: Random) -> Peaks:
    """Add peaks anywhere in the scan until they are 30 %; most are low, a few intense."""
    mz, intensities = peaks
    expected = len(mz) * NOISE_SHARE / (1 - NOISE_SHARE)
    count = int(expected + random.random())
    start = min(_SCAN_START, mz.min())
    heights = NOISE_MEDIAN * np.exp(NOISE_SPREAD * random.standard_normal(count))
    heights = np.minimum(heights, 1.0) * intensities.max()
    return _joined(peaks, (random.uniform(start, precursor_mz + _SCAN_BEYOND, count), heights))


def _joined(peaks: Peaks, more: Peaks) -> Peaks:
    return np.concatenate([peaks[0], more[0]]), np.concatenate([peaks[1], more[1]])


_OF_PEAKS: dict[str, Callable[[Peaks, Random], Peaks]] = {
    "isotopes": add_isotopes,
    "missing": drop_weak,
    "sidelobes": add_side_lobes,
}
