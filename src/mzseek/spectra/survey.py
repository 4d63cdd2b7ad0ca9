"""Survey (MS1) scans: kept with the tandem spectra that they belong to, for isotope patterns.

Files pair them in two ways. Records of one feature or compound stand together (MZmine's export for
SIRIUS with ``MSLEVEL=1``, libraries with ``Spectrum_type: MS1``), or a survey scan comes before the
tandem spectra of its ions (mzML, mzXML). Its peaks become the metadata ``ms1_peaks`` of these:
``mz:intensity`` pairs with blanks between, as the reader of SIRIUS files writes them, too.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from mzseek.core.errors import InputError, SpectrumError
from mzseek.spectra.records import IS_PAIRED, MS1_PEAKS, Record, is_ms1, is_nothing, parse_number
from mzseek.spectra.spectrum import MAX_MZ, FloatArray, clean_peaks

_MAX_HELD, _MAX_HELD_PEAKS = 200, 200_000
_MAX_PEAKS = 2_000  # of a survey scan, the most intense
_BELOW, _ABOVE = 1.5, 6.0  # m/z around a precursor, of scans of many ions
_KEYS = ("feature_id", "compound_name", "scans", "title")


def with_survey_scans(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records in their order, tandem spectra with the peaks of their survey scan.

    Consecutive records of one name and ion mode are held back, up to a bound, since survey scans
    may come last. A survey scan without a name belongs to the tandem spectra that follow it.
    """
    held: list[Record] = []
    name: tuple[str, str] | None = None
    size = 0
    scan: Record | None = None
    try:
        for record in records:
            own = _name_of(record)
            if held and (own != name or len(held) >= _MAX_HELD or size > _MAX_HELD_PEAKS):
                yield from _paired(held)
                held, size = [], 0
            if own is not None:
                held.append(record)
                name, size = own, size + np.size(record.mz)
                continue
            if is_ms1(record):
                scan = record
            elif scan is not None and MS1_PEAKS not in record.fields:
                _add_window(record, scan)
            yield record
    except InputError:  # a file that is damaged further on
        yield from _paired(held)
        raise
    yield from _paired(held)


def _name_of(record: Record) -> tuple[str, str] | None:
    """Return the name and ion mode of what a record is of; None for a scan of many ions."""
    if record.is_scan:
        return None
    for key in _KEYS:
        name = record.fields.get(key, "")
        if not is_nothing(name) and name not in ("0", "-1"):
            return f"{key}={name}", record.fields.get("ionmode", "").strip().lower()
    return None


def _paired(held: list[Record]) -> Iterator[Record]:
    scans = [r for r in held if is_ms1(r) and r.problem is None and np.size(r.mz)]
    tandem = [r for r in held if not is_ms1(r) and MS1_PEAKS not in r.fields]
    if scans and tandem:
        # Of several the one of the most peaks: a merged scan beside single ones.
        peaks = _cleaned(max(scans, key=lambda scan: int(np.size(scan.mz))))
        if peaks is not None:
            text = peaks_text(*peaks)
            for record in tandem:
                record.fields[MS1_PEAKS] = text
            for scan in scans:
                scan.fields[IS_PAIRED] = "yes"
    yield from held


def _add_window(record: Record, scan: Record) -> None:
    """Give a tandem spectrum the peaks of a survey scan around its precursor."""
    scan.decode()
    peaks = _cleaned(scan)
    stated = record.values("precursor_mz")
    if peaks is None or not stated:
        return
    try:
        precursor = parse_number(stated[0], "precursor m/z", limit=MAX_MZ)
    except SpectrumError:  # the record is refused for it
        return
    mz, intensities = peaks
    inside = (mz >= precursor - _BELOW) & (mz <= precursor + _ABOVE)
    if inside.any():
        record.fields[MS1_PEAKS] = peaks_text(mz[inside], intensities[inside])
        scan.fields[IS_PAIRED] = "yes"


def _cleaned(scan: Record) -> tuple[FloatArray, FloatArray] | None:
    try:
        return clean_peaks(scan.mz, scan.intensities)
    except SpectrumError:  # a damaged scan tells nothing
        return None


def peaks_text(mz: FloatArray, intensities: FloatArray) -> str:
    """Return peaks as the metadata ``ms1_peaks`` has them; of too many, the most intense."""
    if len(mz) > _MAX_PEAKS:
        strongest = np.sort(np.argsort(-intensities, kind="stable")[:_MAX_PEAKS])
        mz, intensities = mz[strongest], intensities[strongest]
    pairs = zip(mz.tolist(), intensities.tolist(), strict=True)
    return " ".join(f"{m!r}:{i!r}" for m, i in pairs)
