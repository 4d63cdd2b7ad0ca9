"""mzML and mzXML, through pyteomics."""

from collections.abc import Callable, Iterator
from typing import Any

from mzseek.errors import InputError
from mzseek.files import Source
from mzseek.spectra.numbers import shorten
from mzseek.spectra.record import Record


def looks_like_mzml(head: str) -> bool:
    """Whether the beginning of a file is mzML."""
    return "<mzML" in head or "<indexedmzML" in head


def looks_like_mzxml(head: str) -> bool:
    """Whether the beginning of a file is mzXML."""
    return "<mzXML" in head


def read_mzml(source: Source) -> Iterator[Record]:
    """Every ``<spectrum>`` of an mzML file, survey scans included."""
    from pyteomics import mzml  # here, since it takes a second that the text formats don't need

    return _read(source, mzml.MzML, _mzml_fields)


def read_mzxml(source: Source) -> Iterator[Record]:
    """Every ``<scan>`` of an mzXML file, survey scans included."""
    from pyteomics import mzxml

    return _read(source, mzxml.MzXML, _mzxml_fields)


def _read(source: Source, reader: Any, fill: Callable[[Record, Any], None]) -> Iterator[Record]:
    from lxml.etree import XMLSyntaxError

    class Tolerant(reader):  # type: ignore[misc]
        """Gives the reason where an element cannot be read, instead of ending the file with it."""

        def _get_info_smart(self, element: Any, **options: Any) -> Any:
            try:
                info = super()._get_info_smart(element, **options)
            except XMLSyntaxError:
                raise
            except Exception as error:  # numbers that are none, attributes that are missing
                name = element.get("id") or element.get("num")
                info = {"id": name, "fault": f"cannot be read ({shorten(str(error))})"}
            if element.tag.rpartition("}")[2] == "scan":
                # pyteomics arranges scans by these two.
                info.setdefault("num", "0")
                info.setdefault("msLevel", 2)
            return info

    count = 0
    with source.open() as stream:
        scans = None
        while True:
            try:
                if scans is None:
                    # Binary arrays are decoded one record at a time, so that a damaged one stops no
                    # other; without an index nothing is read ahead.
                    scans = iter(Tolerant(stream, use_index=False, decode_binary=False))
                scan = next(scans)
            except StopIteration:
                return
            except InputError:
                raise
            except Exception as error:  # lxml's syntax errors, and whatever pyteomics trips over
                reason = f"broken XML after record {count} ({shorten(str(error), 90)})"
                raise InputError(source.name, reason) from error
            count += 1
            name = str(scan.get("id") or scan.get("num") or f"record {count}")
            record = Record(f"{source.name}: record {count} ({name})", fallback_name=name)
            record.fault = scan.get("fault")
            if record.fault is None:
                try:
                    fill(record, scan)
                except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
                    record.fault = f"lacks what a scan must say ({shorten(repr(error))})"
                _decode(record, scan)
            yield record


def _decode(record: Record, scan: dict[str, Any]) -> None:
    if record.fields.get("ms_level") == "1":
        return  # survey scans are set aside; decoding them would be most of the work
    try:
        record.mz = scan["m/z array"].decode()
        record.intensities = scan["intensity array"].decode()
    except KeyError as error:
        record.fault = record.fault or f"has no {error.args[0]}"
    except Exception as error:  # zlib, base64, numpy and pyteomics each raise their own
        record.fault = record.fault or f"its peaks cannot be decoded ({shorten(str(error))})"


def _mzml_fields(record: Record, scan: dict[str, Any]) -> None:
    record.add("ms_level", str(scan.get("ms level", "")))
    for mode in ("positive", "negative"):
        if f"{mode} scan" in scan:
            record.add("ionmode", mode)
    record.add("title", str(scan.get("id", "")))
    if "profile spectrum" in scan or "centroid spectrum" in scan:
        record.add("centroided", "no" if "profile spectrum" in scan else "yes")
    scans = scan.get("scanList", {}).get("scan", [{}])
    if "scan start time" in scans[0]:
        start = scans[0]["scan start time"]
        in_minutes = getattr(start, "unit_info", None) == "minute"
        record.add("retention_time", f"{float(start) * (60 if in_minutes else 1):g} s")
    # Of several precursors (MS3) the first is what was isolated last.
    for precursor in scan.get("precursorList", {}).get("precursor", [])[:1]:
        ion = precursor.get("selectedIonList", {}).get("selectedIon", [{}])[0]
        window = precursor.get("isolationWindow", {})
        mz = ion.get("selected ion m/z", window.get("isolation window target m/z"))
        if mz is not None:
            record.add("precursor_mz", str(float(mz)))
        if "charge state" in ion:
            record.add("charge", str(int(ion["charge state"])))
        energy = precursor.get("activation", {}).get("collision energy")
        if energy is not None:
            record.add("collision_energy", str(float(energy)))


def _mzxml_fields(record: Record, scan: dict[str, Any]) -> None:
    record.add("ms_level", str(scan.get("msLevel", "")))
    record.add("ionmode", str(scan.get("polarity", "")))
    record.add("title", f"scan={scan.get('num', '')}")
    if "retentionTime" in scan:
        record.add("retention_time", f"{float(scan['retentionTime']) * 60:g} s")
    if "centroided" in scan:
        record.add("centroided", "yes" if str(scan["centroided"]) in {"1", "True"} else "no")
    if "collisionEnergy" in scan:
        record.add("collision_energy", str(float(scan["collisionEnergy"])))
    for precursor in scan.get("precursorMz", [])[:1]:
        record.add("precursor_mz", str(float(precursor["precursorMz"])))
        if "precursorCharge" in precursor:
            record.add("charge", str(int(precursor["precursorCharge"])))
