"""Formats of spectra, one module each: each splits a stream into records and checks none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mzseek.io import Source
from mzseek.spectra.formats import gnps_json, massbank, massspecgym, mgf, msp, sirius, xml
from mzseek.spectra.records import Record


@dataclass(frozen=True)
class SpectrumFormat:
    """How a format is recognised, read, and described in messages."""

    label: str
    suffixes: tuple[str, ...]
    looks_like: Callable[[str], bool]
    read: Callable[[Source], Iterator[Record]]
    record_form: str


FORMATS: dict[str, SpectrumFormat] = {
    "massspecgym": SpectrumFormat(
        "MassSpecGym table", (".tsv",), massspecgym.looks_like, massspecgym.read,
        "columns mzs and intensities",
    ),
    "mgf": SpectrumFormat("MGF", (".mgf",), mgf.looks_like, mgf.read, "BEGIN IONS … END IONS"),
    "massbank": SpectrumFormat(
        "MassBank", (".txt",), massbank.looks_like, massbank.read, "ACCESSION: … //"
    ),
    "sirius": SpectrumFormat("SIRIUS", (".ms",), sirius.looks_like, sirius.read, ">compound …"),
    "mzml": SpectrumFormat("mzML", (".mzml",), xml.looks_like_mzml, xml.read_mzml, "<spectrum>"),
    "mzxml": SpectrumFormat("mzXML", (".mzxml",), xml.looks_like_mzxml, xml.read_mzxml, "<scan>"),
    "json": SpectrumFormat(
        "JSON", (".json", ".jsonl", ".ndjson"), gnps_json.looks_like, gnps_json.read,
        '{"peaks_json": …}',
    ),
    "msp": SpectrumFormat("MSP", (".msp",), msp.looks_like, msp.read, "Name: … Num Peaks: …"),
}  # fmt: skip
