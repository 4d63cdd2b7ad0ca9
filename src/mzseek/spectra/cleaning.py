"""Find peaks of a tandem spectrum that are no fragments of its precursor.

Each kind of artefact has a function that returns which peaks it concerns; `artefacts` applies all
of them. No candidates are needed, and a mass error of some tens of ppm does no harm: rules compare
neighbouring peaks, or mass defects.

**Impossible masses.** The mass defect of an ion (its mass minus the nearest whole number) lies
between those of bromine and of alkanes, as does that of its neutral loss. Electronic noise has any
mass. How much noise lies among the possible masses thus follows from the impossible ones, and so
does the intensity below which most peaks are noise.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import ELECTRON_MASS, ELEMENT_MASSES
from mzseek.core.ragged import Ragged
from mzseek.spectra.recalibration import MassErrorCurve, MassErrors
from mzseek.spectra.spectrum import Spectrum

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

ABOVE, IMPOSSIBLE, LOBE = "above the precursor", "impossible mass", "side lobe"
ISOTOPE, BACKGROUND, NOISE = "isotope peak", "background line", "noise floor"
REASONS = (ABOVE, IMPOSSIBLE, LOBE, ISOTOPE, BACKGROUND, NOISE)

ISOLATION = 4.0  # m/z above the precursor that a wide isolation window, or its isotopes, reach
_MOST = 0.5  # share of the intensity; with more, precursor or charge are not as stated

_MOST_CHARGES = 3
_DEFECT_LOW = -0.00106  # per Da: of Br2, the lowest
_DEFECT_HIGH = 0.01565 / 14.01565  # per Da: of CH2
_ION_SLACK = (0.015, 0.04)  # Da below and above; the second for hydrogens beyond CnH2n
_LOSS_SLACK = (0.06, 0.06)  # Da: precursors are written with few decimals

_LOBE_REACH, _LOBE_HEIGHT = 0.15, 0.03  # m/z, and share of the peak beside it
_FAR_REACH, _FAR_HEIGHT = 0.7, 0.015  # beyond `_LOBE_REACH` no other formula is expected
_SAME_DISTANCE, _SAME_HEIGHT = 0.25, 4.0  # of two lobes: relative difference, and ratio
_MOST_LOBES = 50  # peaks so near to another; more are points of a profile

_CARBON_STEP, _HEAVIER_STEP = 1.003355, 1.9974  # 13C − 12C; 37Cl, 81Br and 34S, whose mean it is
_STEP_ERROR = 0.003  # m/z: less than from an isotope to another hydrogen
_CARBON_RATIO, _HEAVIER_RATIO = 0.0108, 1.1  # 13C over 12C; 81Br over 79Br, and some more
_MASS_PER_CARBON, _LEAST_PER_CARBON = 19.0, 12.5  # Da: on average, and with the most carbon
_RATIO_SPREAD = 1.4  # of measured isotope ratios
_VISIBLE = 3.0  # times the lowest peak: isotope peaks that are expected above it

_MIN_IMPOSSIBLE = 5  # peaks of impossible mass that a noise floor rests on
_MOSTLY_NOISE = 0.7  # share of noise among the peaks below it
_MOST_POSSIBLE = 0.8  # share of possible masses: above it, impossible ones tell little of noise
_GRID = 0.0873  # m/z: in no simple ratio to a whole number
_LINE_PPM = 10.0
_LINE_SHARE, _LINE_PRECURSORS = 0.1, 10  # of spectra, and different nominal masses, with a line
_LINE_EXPLAINED = 0.1  # share of these whose candidates explain it, at most
_USUAL_COUNTS = {"N": 5, "O": 8, "P": 1, "S": 1, "F": 3, "Cl": 2}  # atoms, at most
_COARSE_DIGITS, _COARSE_ROUNDING = 2, 1e-6  # decimals of m/z of low resolution


def artefacts(spectrum: Spectrum, background: Sequence[float] = ()) -> tuple[str, ...]:
    """Return for each peak why it is no fragment of the precursor; empty for all others.

    Without a stated charge the precursor is taken for singly charged. Of spectra of low resolution,
    whose m/z have at most two decimals, only peaks above the precursor are removed.

    Parameters
    ----------
    spectrum : Spectrum
    background : sequence of float
        m/z of background lines of the file.

    Examples
    --------
    >>> mz = np.array([120.0808, 121.0842, 140.5, 166.0863, 310.2])
    >>> intensities = np.array([100.0, 8.0, 0.4, 60.0, 3.0])
    >>> artefacts(Spectrum(mz, intensities, 166.0863, "[M+H]+", 1, "phenylalanine"))
    ('', 'isotope peak of m/z 120.0808', 'impossible mass', '', 'above the precursor')
    """
    mz, heights = spectrum.mz, spectrum.intensities
    charges = max(abs(spectrum.charge or 1), 1)
    reasons = [""] * len(mz)

    def give(reason: str, flags: Flags, parents: Ints | None = None) -> None:
        for index in np.flatnonzero(flags).tolist():
            parent = "" if parents is None else f" of m/z {mz[parents[index]]:.4f}"
            reasons[index] = reasons[index] or f"{reason}{parent}"

    above = above_precursor(mz, heights, spectrum.precursor_mz, charges)
    give(ABOVE, above)
    if (np.abs(mz - mz.round(_COARSE_DIGITS)) < _COARSE_ROUNDING).all():
        return tuple(reasons)
    lobe_parents = side_lobes(mz, heights, charges)
    give(LOBE, lobe_parents >= 0, lobe_parents)
    is_lobe = lobe_parents >= 0
    impossible = ~has_possible_mass(mz, spectrum.precursor_mz, charges) & ~above & ~is_lobe
    impossible = _unless_most(impossible, heights)
    give(IMPOSSIBLE, impossible)
    left = ~above & ~impossible & ~is_lobe
    isotope_parents = isotope_peaks(mz, heights, left, charges)
    give(ISOTOPE, isotope_parents >= 0, isotope_parents)
    give(BACKGROUND, _near(mz, background))
    give(NOISE, below_noise(mz, heights, impossible, left, spectrum.precursor_mz, charges))
    return tuple(reasons) if not all(reasons) else ("",) * len(mz)


def describe_artefacts(counts: Mapping[str, int], peaks: int) -> list[str]:
    """Return a line about the peaks of a run that were removed; none if there are none.

    Examples
    --------
    >>> describe_artefacts({"isotope peak": 3, "noise floor": 1}, 20)[0][:50]
    'Removed 4 of 20 peaks, which are no fragments (iso'
    """
    if not counts:
        return []
    shown = ", ".join(f"{reason} {number:,}" for reason, number in sorted(counts.items()))
    return [
        f"Removed {sum(counts.values()):,} of {peaks:,} peaks, which are no fragments ({shown}). "
        "--clean off keeps them."
    ]


def without(spectrum: Spectrum, reasons: Sequence[str]) -> Spectrum:
    """Return a spectrum without the peaks that have a reason to be removed."""
    kept = np.array([not reason for reason in reasons], np.bool_)
    if kept.all():
        return spectrum
    return replace(spectrum, mz=spectrum.mz[kept], intensities=spectrum.intensities[kept])


def count_reasons(reasons: Iterable[str]) -> Counter[str]:
    """Count removed peaks by kind, a name of `REASONS`.

    Examples
    --------
    >>> count_reasons(["", "isotope peak of m/z 120.0808", "noise floor", "noise floor"])
    Counter({'noise floor': 2, 'isotope peak': 1})
    """
    return Counter(
        next(kind for kind in REASONS if text.startswith(kind)) for text in reasons if text
    )


def above_precursor(mz: Floats, heights: Floats, precursor_mz: float, charges: int = 1) -> Flags:
    """Return which peaks lie above the precursor's isolation window and its heaviest fragment.

    None if they hold most of the intensity: then the precursor has more charges than stated.
    Fragments of a multimer are lighter than it, as all others.
    """
    above = mz > precursor_mz * charges + ISOLATION
    return _unless_most(above, heights)


def _unless_most(peaks: Flags, heights: Floats) -> Flags:
    """Return the same peaks; none where they hold most of the intensity."""
    if heights[peaks].sum() > _MOST * heights.sum():
        return np.zeros(len(peaks), np.bool_)
    return peaks


def has_possible_mass(mz: Floats, precursor_mz: float, charges: int = 1) -> Flags:
    """Return which m/z some ion and its neutral loss can have, by their mass defects.

    All, for precursors of many charges: some fragment ion can be anywhere.

    Examples
    --------
    >>> has_possible_mass(np.array([84.0808, 84.5, 129.9]), 130.0863).tolist()
    [True, False, False]
    """
    if charges > _MOST_CHARGES:
        return np.ones(len(mz), np.bool_)
    possible = np.zeros(len(mz), np.bool_)
    for charge in range(1, charges + 1):
        mass = mz * charge
        # With several charges a fragment is not complementary to one neutral loss.
        loss = np.abs(precursor_mz - mass) if charges == 1 else np.zeros(len(mz))
        possible |= _is_possible(mass, _ION_SLACK) & _is_possible(loss, _LOSS_SLACK)
    return possible


def _is_possible(mass: Floats, slack: tuple[float, float]) -> Flags:
    """Whether a whole number lies so near below or above a mass that a formula can have it."""
    low, high = _DEFECT_LOW * mass - slack[0], _DEFECT_HIGH * mass + slack[1]
    return np.asarray(np.floor(mass - low) >= np.ceil(mass - high))


def side_lobes(mz: Floats, heights: Floats, charges: int = 1) -> Ints:
    """Return for each peak the index of the intense peak whose side lobe it is, −1 for none.

    Near a peak, lobes are symmetric: a small peak counts if there is another one at the same
    distance on the other side. Farther away, where no fragment of the same nominal mass is
    expected, each much smaller peak counts.
    """
    parents = np.full(len(mz), -1, np.int64)
    low, high = (np.searchsorted(mz, mz + reach) for reach in (-_FAR_REACH, _FAR_REACH))
    counts = np.where(high - low <= _MOST_LOBES, high - low, 0)
    parent = np.repeat(np.arange(len(mz)), counts)
    beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - low, counts)
    small = heights[beside] <= _LOBE_HEIGHT * heights[parent]
    parent, beside = parent[small], beside[small]
    away = mz[beside] - mz[parent]
    is_near = np.abs(away) <= _LOBE_REACH
    is_lobe = ~is_near & (heights[beside] <= _FAR_HEIGHT * heights[parent]) & (charges == 1)
    sides = np.zeros((2, len(mz)), np.bool_)
    sides[(away > 0).astype(np.int64)[is_near], parent[is_near]] = True
    for one in np.flatnonzero(sides.all(0)).tolist():
        rows = np.flatnonzero(is_near & (parent == one))
        is_lobe[rows] = _have_mirror_images(away[rows], heights[beside[rows]])
    # Of several intense peaks the highest.
    parent, beside = parent[is_lobe], beside[is_lobe]
    order = np.argsort(heights[parent], kind="stable")
    parents[beside[order]] = parent[order]
    return parents


def _have_mirror_images(away: Floats, heights: Floats) -> Flags:
    """Return which small peaks have a similar one at the same distance on the other side."""
    distance = np.abs(away[:, None] + away) <= _SAME_DISTANCE * np.abs(away)[:, None]
    height = np.abs(np.log(heights[:, None] / heights)) <= np.log(_SAME_HEIGHT)
    return np.asarray((distance & height).any(1))


def isotope_peaks(mz: Floats, heights: Floats, left: Flags, charges: int = 1) -> Ints:
    """Return for each peak the index of the peak whose isotope peak it is, −1 for none.

    An isotope peak is one neutron heavier, and not higher than the carbon in a peak of this mass
    gives; or two, for chlorine, bromine and sulphur. None counts if more are missing than seen, of
    those that are expected: the isolation window may have held the monoisotopic ion alone.

    Parameters
    ----------
    mz, heights : float64 arrays
    left : bool array
        Which peaks are no other artefacts.
    charges : int
    """
    parents = np.full(len(mz), -1, np.int64)
    index = np.flatnonzero(left)
    if not len(index):
        return parents
    visible = _VISIBLE * heights.min()
    for charge in range(1, min(charges, _MOST_CHARGES) + 1):
        carbon = _pairs(mz, index, _CARBON_STEP / charge)
        max_ratio = _RATIO_SPREAD * _CARBON_RATIO * charge * mz[carbon[0]] / _LEAST_PER_CARBON
        carbon = carbon[:, heights[carbon[1]] <= max_ratio * heights[carbon[0]]]
        expected = _CARBON_RATIO * charge * mz[index] / _MASS_PER_CARBON * heights[index] >= visible
        missing = expected & ~np.isin(index, carbon)
        if len(np.unique(carbon[0])) < max(missing.sum(), 1):
            continue
        heavier = _pairs(mz, index, _HEAVIER_STEP / charge)
        heavier = heavier[:, heights[heavier[1]] <= _HEAVIER_RATIO * heights[heavier[0]]]
        for parent, child in np.concatenate([carbon, heavier], 1).T.tolist():
            if parents[child] < 0:
                parents[child] = parent
    return parents


def _pairs(mz: Floats, index: Ints, step: float) -> Ints:
    """Pairs of peaks of `index` that are a step apart, as two rows: the lighter and the heavier."""
    own = mz[index]
    after = np.searchsorted(own, own + step).clip(1, max(len(own) - 1, 1))
    pair = np.stack([after - 1, after]).clip(0, len(own) - 1)
    away = np.abs(own[pair] - own - step)
    nearest = np.where(away[0] <= away[1], pair[0], pair[1])
    is_pair = away.min(0) <= _STEP_ERROR
    return np.stack([index[is_pair], index[nearest[is_pair]]])


def below_noise(
    mz: Floats,
    heights: Floats,
    impossible: Flags,
    left: Flags,
    precursor_mz: float,
    charges: int = 1,
) -> Flags:
    """Return which peaks are below the intensity under which most peaks are noise.

    Noise is taken to be evenly spread over m/z: from the peaks of impossible mass up to a height
    follows how many of the others up to this height are noise as well.

    Parameters
    ----------
    mz, heights : float64 arrays
    impossible, left : bool arrays
        Which peaks have an impossible mass, and which are no artefacts so far.
    precursor_mz : float
    charges : int
    """
    low = np.zeros(len(mz), np.bool_)
    floors = np.sort(heights[impossible])[_MIN_IMPOSSIBLE - 1 :]
    if not len(floors):
        return low
    grid = np.arange(mz.min(), mz.max(), _GRID)
    share = has_possible_mass(grid, precursor_mz, charges).mean()
    if share > _MOST_POSSIBLE:
        return low
    others = np.sort(heights[left])
    below = np.searchsorted(others, floors, side="right")
    noise = np.arange(_MIN_IMPOSSIBLE, _MIN_IMPOSSIBLE + len(floors)) * share / (1 - share)
    is_noisy = (noise >= _MOSTLY_NOISE * below) & (below > 0)
    if is_noisy.any():
        low = left & (heights <= floors[is_noisy].max())
    return low


def background_lines(
    spectra: Sequence[Spectrum], errors: MassErrors, curve: MassErrorCurve | None = None
) -> tuple[float, ...]:
    """Return the m/z that many spectra of a file have and that no fragment explains.

    A line counts if a tenth of the spectra have it, which are of ten precursors or more, the
    candidates of no more than a tenth of these have a fragment of its mass, and it is of no usual
    formula. Small ions that many molecules form are thus kept, radicals (which are not compared)
    and unknown ones included.

    Parameters
    ----------
    spectra : sequence of Spectrum
        Of one file.
    errors : MassErrors
        Of their peaks, against fragments of some candidates of each.
    curve : MassErrorCurve, optional
        The mass error of the file.
    """
    if not spectra:
        return ()
    mz = np.concatenate([spectrum.mz for spectrum in spectra])
    of = np.repeat(np.arange(len(spectra)), [len(spectrum) for spectrum in spectra])
    precursors = np.array([round(spectrum.precursor_mz) for spectrum in spectra])
    # An explained peak has a fragment within the tolerance of the recalibrated m/z.
    centre = 0.0 if curve is None else np.repeat(curve.error_at(errors.mz), errors.counts)
    is_near = Ragged(errors.counts).any(np.abs(errors.ppm - centre) <= _LINE_PPM)
    explained_mz, explained_of = errors.mz[is_near], errors.spectrum[is_near]
    order = np.argsort(mz, kind="stable")
    mz, of = mz[order], of[order]
    lines = []
    gaps = np.flatnonzero(np.diff(mz) > _LINE_PPM * 1e-6 * mz[:-1]) + 1
    starts, ends = np.r_[0, gaps], np.r_[gaps, len(mz)]
    is_frequent = ends - starts >= _LINE_SHARE * len(spectra)
    for low, high in zip(starts[is_frequent], ends[is_frequent], strict=True):
        members = np.unique(of[low:high])
        if (
            len(members) < _LINE_SHARE * len(spectra)
            or len(np.unique(precursors[members])) < _LINE_PRECURSORS
        ):
            continue
        inside = (explained_mz >= mz[low] - 1e-6) & (explained_mz <= mz[high - 1] + 1e-6)
        line = float(np.median(mz[low:high]))
        if len(np.unique(explained_of[inside])) > _LINE_EXPLAINED * len(members):
            continue
        error = 0.0 if curve is None else float(curve.error_at(np.array([line]))[0])
        polarity = -1 if spectra[members[0]].polarity < 0 else 1
        if not _has_usual_formula(line / (1 + error * 1e-6), polarity):
            lines.append(line)
    return tuple(lines)


def _has_usual_formula(mz: float, polarity: int) -> bool:
    """Whether an ion of C, H, N, O and a few P, S, F or Cl has an m/z within the tolerance.

    Examples
    --------
    >>> [_has_usual_formula(mz, 1) for mz in (91.0542, 128.0621, 84.9594)]
    [True, True, False]
    """
    mass = mz + polarity * ELECTRON_MASS
    counts = [np.arange(limit + 1) for limit in (int(mass / 12), *_USUAL_COUNTS.values())]
    masses = [12.0, *(ELEMENT_MASSES[element] for element in _USUAL_COUNTS)]
    grids = np.meshgrid(*counts, indexing="ij", sparse=True)
    left = mass - sum(number * atom for number, atom in zip(grids, masses, strict=True))
    hydrogens = np.rint(left / ELEMENT_MASSES["H"])
    carbon, nitrogen = grids[0], grids[1]
    is_possible = (hydrogens >= 0) & (hydrogens <= 2 * carbon + nitrogen + 4)
    is_near = np.abs(left - hydrogens * ELEMENT_MASSES["H"]) <= _LINE_PPM * 1e-6 * mz
    return bool((is_possible & is_near).any())


def _near(mz: Floats, lines: Sequence[float]) -> Flags:
    if not len(lines):
        return np.zeros(len(mz), np.bool_)
    return np.asarray((np.abs(mz[:, None] / np.asarray(lines) - 1) <= _LINE_PPM * 1e-6).any(1))
