"""mzML and mzXML: XML around base64-coded binary arrays."""

import base64
import importlib
import re
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import InputError, Reason, SpectrumError
from mzseek.core.text import shorten
from mzseek.io import Source
from mzseek.io.sources import MAX_ELEMENT_TEXT, MAX_ELEMENTS, MAX_PEAKS
from mzseek.io.xml_stream import BrokenXmlError, Element, iter_elements
from mzseek.spectra.records import Record, parse_time

# Decoders of the pynumpress package, for those who have it installed.
_NUMPRESS = {
    "MS-Numpress linear prediction compression": "decode_linear",
    "MS-Numpress positive integer compression": "decode_pic",
    "MS-Numpress short logged float compression": "decode_slof",
}
_THEN_ZLIB = " followed by zlib compression"


def decode_array(
    text: str, kind: str, compression: str = "no compression", values_a_peak: int = 1
) -> npt.NDArray[np.generic]:
    """Decode the numbers of an array, at most `MAX_PEAKS` peaks whatever it would unfold to.

    Parameters
    ----------
    text : str
        Base64, white space allowed.
    kind : str
        The numbers' type, in numpy's words (``<f8``).
    compression : str
        As mzML names it.
    values_a_peak : int
        2 where m/z and intensity take turns.

    Raises
    ------
    SpectrumError
        Damaged, past the bound, or packed in a way that is not known.

    Examples
    --------
    >>> decode_array("AAAAAAAA8D8=", "<f8").tolist()
    [1.0]
    """
    width, max_values = np.dtype(kind).itemsize, MAX_PEAKS * values_a_peak
    inner = compression.removesuffix(_THEN_ZLIB)
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        if inner in _NUMPRESS:
            return _decode_numpress(data, inner, inner != compression, max_values)
        if compression == "zlib compression":
            data = _inflate(data, max_values * width)
        elif compression != "no compression":
            raise SpectrumError(
                f"its peaks are packed in a way that is not known ({compression})", "bad-packing"
            )
        if len(data) > max_values * width:
            raise _too_many()
        if len(data) % width:
            raise ValueError(f"{len(data)} bytes of {kind} numbers")
    except (ValueError, RuntimeError, zlib.error) as error:
        raise SpectrumError(f"its peaks cannot be decoded ({error})", "bad-packing") from error
    return np.frombuffer(data, dtype=kind)


def _inflate(data: bytes, max_size: int) -> bytes:
    """Unpack bytes, at most `max_size`."""
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(data, max_size + 1)
    if len(unpacked) > max_size:
        raise _too_many()
    if not unpacker.eof:
        raise ValueError("packed data that was cut short")
    return unpacked


def _decode_numpress(
    data: bytes, compression: str, is_zipped: bool, max_values: int
) -> npt.NDArray[np.generic]:
    try:
        decoder = getattr(importlib.import_module("pynumpress"), _NUMPRESS[compression])
    except ImportError as error:
        raise SpectrumError(
            f"its peaks are packed by {compression}: pip install pynumpress, or convert with zlib",
            "bad-packing",
        ) from error
    if is_zipped:
        data = _inflate(data, max_values * 8)
    if len(data) > max_values * 8:  # a number takes half a byte at least
        raise _too_many()
    return np.asarray(decoder(np.frombuffer(data, dtype=np.uint8)))


def _too_many() -> SpectrumError:
    return SpectrumError(f"has more than {MAX_PEAKS:,} peaks", "too-large")


_GROUP = "referenceableParamGroup"
_KINDS = {
    "32-bit float": "<f4",
    "64-bit float": "<f8",
    "32-bit integer": "<i4",
    "64-bit integer": "<i8",
}
# Thermo's native id, of the first mass spectrometer; ids of other controllers stay whole, so that
# equal scan numbers stay distinct.
_THERMO_ID = re.compile(r"controllerType=0 controllerNumber=1 (scan=\d+)")
_TIME_FACTORS = {"second": 1.0, "UO:0000010": 1.0, "minute": 60.0, "UO:0000031": 60.0}
_PAIRS = {"", "m/z-int"}


class Value(NamedTuple):
    """Value of a parameter, and its unit's name (or accession, where that is all there is)."""

    text: str
    unit: str = ""


_NO_VALUE = Value("")
Parameters = dict[str, Value]
Groups = dict[str, Parameters]


def read_mzml(source: Source) -> Iterator[Record]:
    """Read every ``<spectrum>`` of an mzML file, survey scans included."""
    groups: Groups = {}
    size = count = 0

    def fill(record: Record, element: Element) -> None:
        _fill_mzml(record, element, groups)

    def add_group(element: Element) -> None:
        nonlocal size, count
        size, count = size + element.size, count + len(element.children)
        if element.problem or size > MAX_ELEMENT_TEXT or count > MAX_ELEMENTS:
            raise InputError(source.name, f"its elements {_GROUP} are too many or too long")
        groups[element.attributes.get("id", "")] = _parameters(element, {})

    return _read(source, "spectrum", fill, add_group)


def read_mzxml(source: Source) -> Iterator[Record]:
    """Read every ``<scan>`` of an mzXML file, survey scans included."""
    return _read(source, "scan", _fill_mzxml)


def _read(
    source: Source,
    tag: str,
    fill: Callable[[Record, Element], None],
    add_group: Callable[[Element], None] | None = None,
) -> Iterator[Record]:
    count = 0
    with source.open() as stream:
        try:
            for element in iter_elements(stream, {tag, _GROUP} if add_group else {tag}):
                if add_group and element.name == _GROUP:
                    add_group(element)
                    continue
                count += 1
                name = element.attributes.get("id") or element.attributes.get("num")
                name = shorten(_short_id(name) if name else f"record {count}", 200)
                where = f"{source.name}: record {count} ({name})"
                record = Record(where, fallback_name=name, is_scan=True)
                reason = Reason(element.problem, "too-large") if element.problem else None
                try:
                    fill(record, element)
                except SpectrumError as error:
                    reason = reason or Reason(shorten(error.reason, 200), error.reason.code)
                except (ValueError, OverflowError) as error:
                    reason = reason or Reason(shorten(str(error), 200), "bad-number")
                if record.fields.get("ms_level") != "1":  # survey scans are skipped for being so
                    record.problem = record.problem or reason
                yield record
        except BrokenXmlError as error:
            problem = f"broken XML after record {count} ({shorten(str(error), 90)})"
            raise InputError(source.name, problem) from error


def _fill_mzml(record: Record, spectrum: Element, groups: Groups) -> None:
    parameters = _parameters(spectrum, groups)
    record.add("ms_level", parameters.get("ms level", _NO_VALUE).text)
    for mode in ("positive", "negative"):
        if f"{mode} scan" in parameters:
            record.add("ionmode", mode)
    native_id = spectrum.attributes.get("id", "")
    record.add("title", _short_id(native_id))
    record.add("native_id", native_id)
    if "profile spectrum" in parameters or "centroid spectrum" in parameters:
        record.add("centroided", "no" if "profile spectrum" in parameters else "yes")
    for scan in spectrum.all("scanList", "scan")[:1]:
        start = _parameters(scan, groups).get("scan start time")
        if start is not None:
            factor = _TIME_FACTORS.get(start.unit)
            time = f"{float(start.text) * factor:g} s" if factor else start.text
            record.add("retention_time", time)
    # Of several precursors (MS3) the first is what was isolated last.
    for precursor in spectrum.all("precursorList", "precursor")[:1]:
        _add_precursor(record, precursor, groups)
    if record.fields.get("ms_level") == "1":  # decoding all would be most of the work
        record.pending = lambda: _mzml_peaks(spectrum, groups)
        return
    record.mz, record.intensities = _mzml_peaks(spectrum, groups)


def _mzml_peaks(
    spectrum: Element, groups: Groups
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    arrays: dict[str, Element] = {}
    for array in spectrum.all("binaryDataArrayList", "binaryDataArray"):
        for name in _parameters(array, groups).keys() & {"m/z array", "intensity array"}:
            if name in arrays:
                raise SpectrumError(f"has two of {name}")
            arrays[name] = array
    for name in ("m/z array", "intensity array"):
        if name not in arrays:
            raise SpectrumError(f"has no {name}", "no-peaks")
    return _decode(arrays["m/z array"], groups), _decode(arrays["intensity array"], groups)


def _short_id(native_id: str) -> str:
    """Return the scan number of Thermo's native ids; others as they are.

    Examples
    --------
    >>> _short_id("controllerType=0 controllerNumber=1 scan=2540")
    'scan=2540'
    >>> _short_id("sample=1 period=1 cycle=5 experiment=2")
    'sample=1 period=1 cycle=5 experiment=2'
    """
    match = _THERMO_ID.fullmatch(native_id)
    return match[1] if match else native_id


def _add_precursor(record: Record, precursor: Element, groups: Groups) -> None:
    ions = precursor.all("selectedIonList", "selectedIon")[:1]
    ion = _parameters(ions[0], groups) if ions else {}
    windows = precursor.all("isolationWindow")[:1]
    window = _parameters(windows[0], groups) if windows else {}
    record.add("precursor_mz", ion.get("selected ion m/z", _NO_VALUE).text)
    if "precursor_mz" not in record.fields:
        record.add("precursor_mz", window.get("isolation window target m/z", _NO_VALUE).text)
    charge = ion.get("charge state")
    if charge is not None:
        record.add("charge", str(int(float(charge.text))))
    for activation in precursor.all("activation"):
        energy = _parameters(activation, groups).get("collision energy")
        if energy is not None:
            record.add("collision_energy", str(float(energy.text)))


def _parameters(element: Element, groups: Groups) -> Parameters:
    """Return the parameters directly inside an element, those of its groups included."""
    parameters: Parameters = {}
    for child in element.children:
        attributes = child.attributes
        if child.name in {"cvParam", "userParam"}:
            unit = attributes.get("unitName") or attributes.get("unitAccession", "")
            parameters[attributes.get("name", "")] = Value(attributes.get("value", ""), unit)
        elif child.name == f"{_GROUP}Ref":
            reference = attributes.get("ref", "")
            if reference not in groups:
                raise SpectrumError(f"refers to the group {shorten(reference)!r}, which is absent")
            parameters |= groups[reference]
    return parameters


def _decode(array: Element, groups: Groups) -> npt.NDArray[np.generic]:
    parameters = _parameters(array, groups)
    kinds = [_KINDS[name] for name in parameters if name in _KINDS]
    packing = [name for name in parameters if name.endswith("compression")]
    if len(kinds) != 1 or len(packing) > 1:
        raise SpectrumError("an array must state one type of number and one compression")
    text = "".join(binary.text for binary in array.all("binary"))
    return decode_array(text, kinds[0], packing[0] if packing else "no compression")


def _fill_mzxml(record: Record, scan: Element) -> None:
    attributes = scan.attributes
    record.add("ms_level", attributes.get("msLevel") or "2")
    record.add("ionmode", attributes.get("polarity", ""))
    record.add("title", f"scan={attributes.get('num', '')}")
    if "retentionTime" in attributes:
        # A duration (PT349.2S); a bare number, which the format does not have, is in no known unit.
        time = parse_time(attributes["retentionTime"])
        text = f"{time[0]:g} s" if time and time[1] == "s" else attributes["retentionTime"]
        record.add("retention_time", text)
    if "centroided" in attributes:
        record.add("centroided", "yes" if attributes["centroided"] in {"1", "true"} else "no")
    if "collisionEnergy" in attributes:
        record.add("collision_energy", str(float(attributes["collisionEnergy"])))
    for precursor in scan.all("precursorMz")[:1]:
        record.add("precursor_mz", precursor.text)
        record.add("charge", precursor.attributes.get("precursorCharge", ""))
    level = record.fields.get("ms_level", "")
    if not level.isdecimal():
        raise SpectrumError(f"msLevel {shorten(level)!r} is not a number", "bad-number")
    if level == "1":
        record.pending = lambda: _mzxml_peaks(scan)
        return
    record.mz, record.intensities = _mzxml_peaks(scan)


def _mzxml_peaks(scan: Element) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    peaks = scan.all("peaks")
    if len(peaks) != 1:
        raise SpectrumError(f"has {len(peaks)} elements <peaks>, expected one", "no-peaks")
    attributes = peaks[0].attributes
    content = attributes.get("contentType") or attributes.get("pairOrder", "")
    if content not in _PAIRS:
        raise SpectrumError(f"its peaks are {shorten(content)!r}, expected m/z-int")
    if not {"precision", "byteOrder"} <= attributes.keys():
        raise SpectrumError("its peaks state no precision or byteOrder")
    order = ">" if attributes["byteOrder"] in {"network", "big"} else "<"
    kind = f"{order}f{4 if attributes['precision'] == '32' else 8}"
    packing = attributes.get("compressionType") or "none"
    compression = {"none": "no compression", "zlib": "zlib compression"}.get(packing, packing)
    values = decode_array(peaks[0].text, kind, compression, values_a_peak=2)
    return values[0::2], values[1::2]
