"""Features: the spectra of one ion under the name the user knows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mzseek.annotation.config import AnnotateConfig
from mzseek.core.errors import Reason
from mzseek.core.text import pluralize, visible
from mzseek.spectra import Spectrum
from mzseek.spectra.cleaning import artefacts, without
from mzseek.spectra.recalibration import MassErrorCurve, tolerance_of
from mzseek.spectra.records import SKIPPED_PEAKS, parse_time, time_in_seconds, with_time_unit
from mzseek.spectra.spectrum import looks_like_profile, merge_duplicates

# Fields that name a feature, the first that a record has. What a record states as its identifier
# comes after the first of them; a title is often only the name of a file.
FEATURE_ID = "feature_id"
NAMED_BY = (FEATURE_ID, "scans", "title", "compound_name")
IDENTIFIER, INDEX, IN_MEMORY = "identifier", "index", "given"
_NOTHING = {"", "0", "-1"}
_NO_ID = {"", "-1"}  # 0 is the first of MS-DIAL's
_LEVEL = re.compile(r"(?:MS)?\W*(\d{1,2})\b.*", re.IGNORECASE)
# What readers call a record that names itself in no way.
_BY_PLACE = re.compile(r"(?:record|line) \d+(?: #\d+)?")
_TIME = "retention_time"
_ONE_ION = 0.6  # m/z: spectra of one ion are not further apart, however coarse their precursors
_TELLING_PEAKS = 3  # no two measurements have so many peaks of the same intensities
_SAME_PRECURSOR, _SAME_SHARE = 1e-5, 1e-6  # of spectra that are copies, as shares of the numbers


@dataclass(frozen=True, eq=False)
class Feature:
    """Spectra that are judged together.

    Attributes
    ----------
    name : str
        The user's own id.
    named_by : str
        The field that it was taken from.
    spectra : tuple of Spectrum
        At least one.
    where : str
        The file.
    id : str
        As the file has it; another one than `name` where several features have it.
    names : tuple of str
        What tables of the user may call it, by precedence: its name, ``file:id``, and its id if no
        other file has that.
    repeated : int
        Further spectra that were identical with one of these, and were skipped.
    notes : tuple of str
        What was done to its spectra and its name.
    measured : tuple of Spectrum
        The spectra as the file has them, where `spectra` were cleaned or recalibrated; else empty.
    artefacts : tuple of tuples of str
        Of each measured spectrum why each peak was removed, empty for others
        (`mzseek.spectra.cleaning.artefacts`); empty where nothing was removed.
    """

    name: str
    named_by: str
    spectra: tuple[Spectrum, ...]
    where: str = ""
    id: str = ""
    names: tuple[str, ...] = ()
    repeated: int = 0
    notes: tuple[str, ...] = ()
    measured: tuple[Spectrum, ...] = ()
    artefacts: tuple[tuple[str, ...], ...] = ()

    @property
    def records(self) -> int:
        """Spectra that were read for it, the repeated ones included."""
        return len(self.spectra) + self.repeated

    @property
    def table_names(self) -> tuple[str, ...]:
        """What tables of the user may call it."""
        return self.names or (self.name,)

    @property
    def precursor_mz(self) -> float:
        """The median over its spectra; of several ions that of the representative spectrum."""
        mz = [spectrum.precursor_mz for spectrum in self.spectra]
        if max(mz) - min(mz) > _ONE_ION or len({s.polarity for s in self.spectra} - {0}) > 1:
            main = self.spectra[self.representative]
            mz = [
                spectrum.precursor_mz
                for spectrum in self.spectra
                if abs(spectrum.precursor_mz - main.precursor_mz) <= _ONE_ION
                and (0 in (spectrum.polarity, main.polarity) or spectrum.polarity == main.polarity)
            ]
        return float(np.median(mz))

    @property
    def representative(self) -> int:
        """Index of the spectrum with the most peaks; of equals the first."""
        return max(range(len(self.spectra)), key=lambda index: len(self.spectra[index]))

    @property
    def retention_time(self) -> float | None:
        """In seconds, the mean over the spectra that state one with its unit; None for none."""
        stated = [t for s in self.spectra if (t := retention_seconds(s)) is not None]
        return float(np.mean(stated)) if stated else None


def retention_seconds(spectrum: Spectrum) -> float | None:
    """Retention time in seconds; None where it is not stated, or its unit is not known.

    Readers append the unit where the file's format or the program that wrote it defines it.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a",
    ...                {"retention_time": "2.5 min"})
    >>> retention_seconds(one)
    150.0
    """
    return time_in_seconds(spectrum.metadata.get(_TIME, ""))


def lacks_time_unit(spectrum: Spectrum) -> bool:
    """Whether a spectrum states a retention time of which nothing tells the unit."""
    time = parse_time(spectrum.metadata.get(_TIME, ""))
    return time is not None and not time[1]


def with_rt_unit(spectrum: Spectrum, unit: str | None) -> Spectrum:
    """Return the spectrum with a unit for its retention time, if that has none.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a",
    ...                {"retention_time": "2.5"})
    >>> with_rt_unit(one, "min").metadata["retention_time"]
    '2.5 min'
    """
    if unit is None or not lacks_time_unit(spectrum):
        return spectrum
    text = with_time_unit(spectrum.metadata[_TIME], unit)
    return replace(spectrum, metadata=spectrum.metadata | {_TIME: text})


def time_notes(feature: Feature) -> list[str]:
    """Notes about retention times that cannot be used."""
    unclear = next((s for s in feature.spectra if lacks_time_unit(s)), None)
    if unclear is None:
        return []
    text = unclear.metadata[_TIME][:40]
    return [f"its retention time {text} has no unit, and is not used: give it with --rt-unit"]


def normalise_name(text: str) -> str:
    r"""Return the name of a feature as files and tables are compared: on one line, all visible.

    Examples
    --------
    >>> normalise_name(" run 1\t#7\x1b ")
    'run 1 #7�'
    """
    return visible(" ".join(text.split()))


def is_profile(spectrum: Spectrum) -> bool:
    """Return whether a spectrum is in profile mode: as its file states, or else as it looks."""
    stated = spectrum.metadata.get("centroided", "").strip().lower()
    if stated in ("yes", "no"):
        return stated == "no"
    return looks_like_profile(spectrum.mz, spectrum.intensities)


def distinct_spectra(spectra: Iterable[Spectrum]) -> tuple[tuple[Spectrum, ...], int, list[str]]:
    """Return the spectra of a feature with each peak once and each spectrum once.

    Peaks of the same m/z are merged (`merge_duplicates`). A spectrum is a copy
    if another one has its ion, its precursor and its peaks, the intensities in any unit: it is no
    further evidence. Two measurements may have the same one or two peaks: such spectra are copies
    only if no collision energy or retention time tells them apart.

    Returns
    -------
    spectra : tuple of Spectrum
        In an order that does not depend on that of the file.
    repeated : int
        Copies that were skipped.
    notes : list of str
        What was done, and spectra in profile mode.
    """
    distinct, repeated, notes = distinct_places(spectra)
    return tuple(spectrum for _, spectrum in distinct), repeated, notes


def distinct_places(
    spectra: Iterable[Spectrum],
) -> tuple[list[tuple[int, Spectrum]], int, list[str]]:
    """Return what `distinct_spectra` does, each spectrum with its place among those given."""
    merged, unmeasurable, duplicates = [], 0, 0
    for spectrum in spectra:
        mz, intensities = merge_duplicates(spectrum.mz, spectrum.intensities)
        unmeasurable += _skipped_peaks(spectrum)
        if len(mz) < len(spectrum):
            duplicates += len(spectrum) - len(mz)
            spectrum = replace(spectrum, mz=mz, intensities=intensities)
        merged.append(spectrum)
    distinct: list[tuple[int, Spectrum]] = []
    by_peaks: dict[tuple[str | None, int | None, bytes], list[Spectrum]] = {}
    for place in sorted(range(len(merged)), key=lambda place: _order(merged[place])):
        spectrum = merged[place]
        same = by_peaks.setdefault((spectrum.adduct, spectrum.charge, spectrum.mz.tobytes()), [])
        if not any(_is_copy(spectrum, other) for other in same):
            same.append(spectrum)
            distinct.append((place, spectrum))
    repeated = len(merged) - len(distinct)
    profiles = sum(is_profile(spectrum) for _, spectrum in distinct)
    notes = [
        pluralize(number, *words)
        for number, words in (
            (unmeasurable, ("peak was skipped: no instrument measures its m/z or intensity",
                            "peaks were skipped: no instrument measures their m/z or intensity")),
            (duplicates, ("peak was merged with another of the same m/z",
                          "peaks were merged with others of the same m/z")),
            (repeated, ("spectrum was skipped: it repeats another one",
                        "spectra were skipped: they repeat others")),
            (profiles, ("spectrum is in profile mode: centroid it first, its peaks are unsure",
                        "spectra are in profile mode: centroid them first, their peaks are "
                        "unsure")),
        )
        if number
    ]  # fmt: skip
    return distinct, repeated, notes


def _skipped_peaks(spectrum: Spectrum) -> int:
    stated = spectrum.metadata.get(SKIPPED_PEAKS, "")
    return int(stated) if stated.isdecimal() else 0


def _order(spectrum: Spectrum) -> tuple[float, int, bytes, str, str, str]:
    peaks = spectrum.mz.tobytes() + spectrum.intensities.tobytes()
    metadata = repr(sorted(spectrum.metadata.items()))
    ion = f"{spectrum.adduct} {spectrum.charge}"
    return spectrum.precursor_mz, len(spectrum), peaks, ion, metadata, spectrum.identifier


def _is_copy(spectrum: Spectrum, other: Spectrum) -> bool:
    """Whether spectra of one ion and of the same m/z are the same but for the unit of intensity."""
    if abs(spectrum.precursor_mz - other.precursor_mz) > _SAME_PRECURSOR * spectrum.precursor_mz:
        return False
    if len(spectrum) < _TELLING_PEAKS and any(
        spectrum.metadata.get(key) != other.metadata.get(key) for key in ("collision_energy", _TIME)
    ):
        return False
    shares, others = (
        measured.intensities / measured.intensities.max() for measured in (spectrum, other)
    )
    return bool(np.allclose(shares, others, rtol=_SAME_SHARE, atol=0.0))


def feature_id(spectrum: Spectrum, field: str = FEATURE_ID) -> str:
    """The id that a file gives to a spectrum's feature, in some field; empty for none.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"feature_id": "-1"})
    >>> feature_id(one)
    ''
    """
    stated = spectrum.metadata.get(field, "").strip()
    return "" if stated in _NO_ID else stated


def ms_level_problem(spectrum: Spectrum) -> Reason | None:
    """Why no molecule can be asked for behind a spectrum; None if nothing is in the way.

    A fragment that was broken once more tells its own mass, not the molecule's.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "a", {"ms_level": "MS3"})
    >>> ms_level_problem(one)
    'is an MS3 spectrum, of the fragment m/z 100.0000, which tells no mass of the molecule; expected MS2'
    """  # noqa: E501
    level = _LEVEL.fullmatch(spectrum.metadata.get("ms_level", "").strip())
    if level is None or int(level[1]) <= 2:
        return None
    return Reason(
        f"is an MS{int(level[1])} spectrum, of the fragment m/z {spectrum.precursor_mz:.4f}, "
        "which tells no mass of the molecule; expected MS2",
        "ms3",
    )


def name_of(spectrum: Spectrum, index: int, field: str = "") -> tuple[str, str]:
    """Name of a spectrum's feature, and the field it was taken from.

    Parameters
    ----------
    spectrum : Spectrum
    index : int
        Of the spectrum among those that were read, from 1: its name where it has no other.
    field : str, optional
        That names features before all others.

    Examples
    --------
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 100.0, None, None, "17", {"scans": "17"})
    >>> name_of(one, 1)
    ('17', 'scans')
    """
    if own_id := normalise_name(feature_id(spectrum, field or FEATURE_ID)):
        return own_id, field or FEATURE_ID
    named = {
        field: text
        for field in NAMED_BY
        if (text := normalise_name(spectrum.metadata.get(field, ""))) not in _NOTHING
    }
    # Readers take a title or a scan for an identifier where a record states none.
    identifier = normalise_name(spectrum.identifier)
    if (
        identifier
        and not _BY_PLACE.fullmatch(identifier)
        and not any(map(identifier.startswith, named.values()))
    ):
        return identifier, IDENTIFIER
    for field, text in named.items():
        return text, field
    if spectrum.metadata.get("scans", "").strip() == "0":
        return "0", "scans"  # MS-DIAL counts features from 0; a place would be another's number
    return str(index), INDEX


def recalibrated(
    feature: Feature, curves: Sequence[MassErrorCurve | None], config: AnnotateConfig
) -> Feature:
    """Return a feature with the mass errors of its files taken off, and tolerances by what is left.

    A tolerance that the user has given stays.

    Parameters
    ----------
    feature : Feature
    curves : sequence of MassErrorCurve or None
        Of the file of each spectrum; None where nothing is taken off.
    config : AnnotateConfig
    """
    if not any(curves):
        return feature

    def corrected(spectrum: Spectrum, curve: MassErrorCurve | None) -> Spectrum:
        if curve is None:
            return spectrum
        ppm = None if config.peak_ppm is not None else tolerance_of(curve.spread_after)
        return replace(curve.corrected(spectrum), peak_ppm=ppm)

    spectra = tuple(map(corrected, feature.spectra, curves))
    return replace(feature, spectra=spectra, measured=feature.measured or feature.spectra)


def cleaned(feature: Feature, backgrounds: Sequence[Sequence[float]]) -> Feature:
    """Return a feature without peaks that are no fragments.

    Parameters
    ----------
    feature : Feature
    backgrounds : sequence of sequences of float
        For each spectrum the m/z of the background lines of its file.
    """
    reasons = tuple(map(artefacts, feature.spectra, backgrounds))
    if not any(map(any, reasons)):
        return feature
    spectra = tuple(map(without, feature.spectra, reasons))
    return replace(feature, spectra=spectra, measured=feature.spectra, artefacts=reasons)
