"""The metadata section of mzTab-M: all that is mandatory, in the order of the specification."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mzseek.annotation.writing.links import home_of
from mzseek.annotation.writing.mztab.cells import BAR, NULL, line, location, param, text
from mzseek.annotation.writing.spool import Settings
from mzseek.version import __version__

VERSION = "2.0.0-M"
OWN_PREFIX = "mzseek"  # of identifiers in the database that candidates were taken from
SOFTWARE = param("MS", "MS:1000799", "custom unreleased software tool", f"mzseek {__version__}")
# The measures of evidence rows. The first is also that of summary rows.
# A model that does not estimate whether the molecule is in the database takes it for granted.
CONFIDENCE = param(
    "",
    "",
    "confidence: calibrated probability times probability that the molecule is in the database",
)
MEASURES = (
    CONFIDENCE,
    param("", "", "calibrated probability if the molecule is in the database"),
    param("", "", "log-odds score in nats"),
    param("MS", "MS:1002890", "fragmentation score"),
    param("", "", "similarity of the library spectrum"),
)
_UNIT = param("PRIDE", "PRIDE:0000330", "Arbitrary quantification unit")
_RELIABILITY = param("MS", "MS:1002955", "hr-ms compound identification confidence level")
_POLARITY = {
    "+": param("MS", "MS:1000130", "positive scan"),
    "-": param("MS", "MS:1000129", "negative scan"),
    "": param("MS", "MS:1000465", "scan polarity"),
}
_MZML = (
    param("MS", "MS:1000584", "mzML file"),
    param("MS", "MS:1001530", "mzML unique identifier"),
)
_OTHER_IDS = param("MS", "MS:1001532", "spectrum from database string nativeID format")
_FORMATS = {
    ".mgf": param("MS", "MS:1001062", "Mascot MGF file"),
    ".mzxml": param("MS", "MS:1000566", "ISB mzXML file"),
}
_VOCABULARIES = (
    (
        "MS", "PSI-MS controlled vocabulary", "4.1.108",
        "https://raw.githubusercontent.com/HUPO-PSI/psi-ms-CV/master/psi-ms.obo",
    ),
    (
        "PRIDE", "PRIDE PRoteomics IDEntifications (PRIDE) database controlled vocabulary",
        "17.11.2022", "http://purl.obolibrary.org/obo/pride_cv.obo",
    ),
)  # fmt: skip
_PACKED = re.compile(r"\.(gz|zst|bz2)$", re.IGNORECASE)


@dataclass
class Run:
    """A file of spectra.

    Attributes
    ----------
    where : str
        As features call it; empty where it is not known.
    polarities : list of str
        ``+``, ``-``; in the order in which they were met.
    """

    where: str
    polarities: list[str] = field(default_factory=list)

    @property
    def is_mzml(self) -> bool:
        """Whether spectra are referred to by the ids that they have in the file."""
        return _suffix(self.where) == ".mzml"


def metadata(
    name: str, settings: Settings, runs: Sequence[Run], prefixes: Sequence[str]
) -> Iterator[str]:
    """Lines of the section.

    Parameters
    ----------
    name : str
        Of the file, without its suffix: its identifier.
    settings : Settings
    runs : sequence of Run
        At least one.
    prefixes : sequence of str
        Of databases that identifiers were taken from, besides the own.
    """
    for key, value in itertools.chain(
        _head(name, settings), _runs(runs), _vocabularies(), _databases(settings, prefixes), _end()
    ):
        yield line(["MTD", key, value])


def _head(name: str, settings: Settings) -> Iterator[tuple[str, str]]:
    yield "mzTab-version", VERSION
    yield "mzTab-ID", text(name)
    if settings.title.strip():
        yield "title", text(settings.title)
    yield "description", "Molecules found for tandem mass spectra by mzseek; nothing is quantified."
    yield "software[1]", SOFTWARE
    for place, (option, value) in enumerate(_flat(settings.options), 1):
        yield f"software[1]-setting[{place}]", text(f"{option} = {value}")
    yield "quantification_method", param("", "", "no quantification")


def _runs(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    for number, run in enumerate(runs, 1):
        yield f"ms_run[{number}]-location", location(run.where)
        known = _FORMATS.get(_suffix(run.where))
        if run.is_mzml:
            yield f"ms_run[{number}]-format", _MZML[0]
            yield f"ms_run[{number}]-id_format", _MZML[1]
        elif known is not None:
            yield f"ms_run[{number}]-format", known
            yield f"ms_run[{number}]-id_format", _OTHER_IDS
        for place, polarity in enumerate(run.polarities or [""], 1):
            yield f"ms_run[{number}]-scan_polarity[{place}]", _POLARITY[polarity]
    for number, run in enumerate(runs, 1):
        yield f"assay[{number}]", text(run.where) if run.where.strip() else f"assay {number}"
        yield f"assay[{number}]-ms_run_ref", f"ms_run[{number}]"
    yield "study_variable[1]", "undefined"
    assays = BAR.join(f"assay[{number}]" for number in range(1, len(runs) + 1))
    yield "study_variable[1]-assay_refs", assays
    yield "study_variable[1]-description", "all files of spectra"


def _vocabularies() -> Iterator[tuple[str, str]]:
    for number, (label, full_name, version, uri) in enumerate(_VOCABULARIES, 1):
        yield f"cv[{number}]-label", label
        yield f"cv[{number}]-full_name", full_name
        yield f"cv[{number}]-version", version
        yield f"cv[{number}]-uri", uri


def _databases(settings: Settings, prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    own = param("", "", settings.database.strip() or "candidates")
    version = text(settings.database_version)
    listed = [
        (own, OWN_PREFIX, "Unknown" if version == NULL else version, "urn:mzseek:database"),
        *((param("", "", prefix), prefix, "Unknown", home_of(prefix)) for prefix in prefixes),
    ]
    for number, (shown, prefix, release, uri) in enumerate(listed, 1):
        yield f"database[{number}]", shown
        yield f"database[{number}]-prefix", prefix
        yield f"database[{number}]-version", release
        yield f"database[{number}]-uri", uri


def _end() -> Iterator[tuple[str, str]]:
    yield "small_molecule-quantification_unit", _UNIT
    yield "small_molecule_feature-quantification_unit", _UNIT
    yield "small_molecule-identification_reliability", _RELIABILITY
    for number, measure in enumerate(MEASURES, 1):
        yield f"id_confidence_measure[{number}]", measure


def _flat(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Options by name, those inside others after a dot; what is not set is left out."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list | tuple):
            if value:
                yield f"{before}{name}", ", ".join(map(str, value))
        elif value is not None:
            yield f"{before}{name}", str(value)


def _suffix(where: str) -> str:
    plain = _PACKED.sub("", where.strip().lower())
    return plain[plain.rfind(".") :] if "." in plain else ""
