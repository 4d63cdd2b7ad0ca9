"""All readers, what each must hold to, and how many records an independent count finds."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import CacheError, MzseekError
from mzseek.database.formats.sdf import is_sdf
from mzseek.database.search import read_queries
from mzseek.database.sources import read_molecules
from mzseek.datasets.files import read_candidates
from mzseek.datasets.molecules import collect
from mzseek.datasets.scored_table import read_scored_table
from mzseek.io import read_object
from mzseek.io.skipped import read_skipped
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.records import leading_number

_LONGEST_REASON = 1_000
_LARGE = 3_000_000  # past it no second parser is asked


class Broken(Exception):
    """A promise that was not kept."""


@dataclass
class Outcome:
    """What a reader did with an input.

    Attributes
    ----------
    read, set_aside : int
        Records.
    refused : str
        The error's line, where it refused the file.
    ended : bool
        The file ended with a reason, before its end.
    formats : list of str
        What the file was taken for.
    """

    read: int = 0
    set_aside: int = 0
    refused: str = ""
    ended: bool = False
    formats: list[str] = field(default_factory=list)

    def report(self, where: str, reason: str) -> None:
        """Note a record that was set aside, and look at the words."""
        self.set_aside += 1
        for text in (where, reason):
            if not isinstance(text, str) or not text.strip() or "\n" in text or "\r" in text:
                raise Broken(f"a reject that is not one line: {(where, reason)!r:.300}")
        if len(reason) > _LONGEST_REASON:
            raise Broken(f"a reason of {len(reason)} characters: {reason!r:.200}")
        if _ENDS.search(reason):
            self.ended = True


# Reasons that stand for all that would have come after.
_ENDS = re.compile(
    "damaged or cut short|broken XML|ends in the middle of member|goes on after its end|"
    "the file is given up|unfolds to|not a JSON|no JSON in it|is one object of over|"
    "cannot be opened|not a text file|not a spectrum file|the file is empty|have one name|"
    "too many or too long|is packed with LZMA|its header is longer"
)

Reader = Callable[[Path, Outcome], None]


def check_spectrum(spectrum: Spectrum, seen: set[str]) -> None:
    """A spectrum as the docs promise it."""
    mz, intensities = spectrum.mz, spectrum.intensities
    sound = (
        len(mz) == len(intensities) > 0
        and bool(np.isfinite(mz).all() and np.isfinite(intensities).all())
        and bool((mz > 0).all() and (intensities > 0).all() and (np.diff(mz) >= 0).all())
        and math.isfinite(spectrum.precursor_mz)
        and 0 < spectrum.precursor_mz <= 20_000
    )
    if not sound:
        raise Broken(f"a spectrum that is not sound: {spectrum!r:.300}")
    if spectrum.identifier in seen:
        raise Broken(f"an identifier twice: {spectrum.identifier!r:.200}")
    seen.add(spectrum.identifier)
    if spectrum.adduct is not None and parse_adduct(spectrum.adduct).name != spectrum.adduct:
        raise Broken(f"an adduct in another spelling: {spectrum.adduct!r:.200}")
    for name in ("collision_energy", "retention_time", "parent_mass"):
        value = leading_number(spectrum.metadata.get(name, ""))
        if value is not None and math.isinf(value):
            raise Broken(f"{name} is infinite")


def spectra(path: Path, outcome: Outcome) -> None:
    seen: set[str] = set()

    def opened(_: str, label: str) -> None:
        outcome.formats.append(label)

    for spectrum in read_spectra(path, outcome.report, opened=opened):
        outcome.read += 1
        # Of a million equal ones a few are looked at: it is the reader whose time is taken.
        if outcome.read < 1_000 or outcome.read % 100 == 0:
            check_spectrum(spectrum, seen)


def candidates(path: Path, outcome: Outcome) -> None:
    for key, members in read_candidates(path, outcome.report):
        outcome.read += 1
        if not members or not all(isinstance(member, str) for member in members):
            raise Broken(f"candidates that are none: {key!r:.100}")


def data_set(path: Path, outcome: Outcome) -> None:
    found = collect(path, {})
    for where, reason in found.skipped:
        outcome.report(where, reason)
    outcome.read = len(found.identifiers)
    outcome.formats.append("MassSpecGym table")
    if np.isinf(np.array(found.energies)).any() or np.isinf(np.array(found.stated_masses)).any():
        raise Broken("an infinite energy or mass was kept")


def molecules(path: Path, outcome: Outcome) -> None:
    for record in read_molecules([path], outcome.report):
        outcome.read += 1
        if not record.text or "\n" in record.identifier + record.name + record.source:
            raise Broken(f"a record that is none: {record!r:.300}")


def scored(path: Path, outcome: Outcome) -> None:
    found = read_scored_table(path)
    outcome.read = len(found.names)
    if not math.isclose(float(found.probabilities.sum()), 1.0, rel_tol=1e-6):
        raise Broken("probabilities that do not sum to 1")


def queries(path: Path, outcome: Outcome) -> None:
    found = read_queries(path, (), outcome.report)
    outcome.read = len(found)
    if not all(math.isfinite(query.value) and query.value > 0 for query in found):
        raise Broken("a mass that is not positive")


def rejects(path: Path, outcome: Outcome) -> None:
    outcome.read = len(read_skipped(path))


def adduct(path: Path, outcome: Outcome) -> None:
    text = path.read_bytes()[:100_000].decode("utf-8", "replace")
    for mode in (None, "positive", "negative"):
        try:
            found = parse_adduct(text, mode)
        except MzseekError as error:
            outcome.refused = str(error)
            continue
        outcome.read += 1
        if not math.isfinite(found.precursor_mz(1_000.0)) or parse_adduct(found.name) != found:
            raise Broken(f"an adduct that is not its own name: {found!r}")


def json_object(path: Path, outcome: Outcome) -> None:
    outcome.read = len(read_object(path, CacheError)) >= 0


READERS: dict[str, Reader] = {
    "mgf": spectra, "msp": spectra, "massbank": spectra, "sirius": spectra, "table": spectra,
    "json": spectra, "mzml": spectra, "mzxml": spectra, "candidates": candidates,
    "data set": data_set, "molecules": molecules, "sdf": molecules, "parquet": molecules,
    "scored": scored, "queries": queries, "rejects": rejects, "adduct": adduct,
    "object": json_object,
}  # fmt: skip
# How often each is tried, and which seeds and file names it begins with.
WEIGHTS = {
    "mgf": 12, "msp": 12, "massbank": 10, "sirius": 8, "table": 10, "json": 10, "mzml": 10,
    "mzxml": 7, "candidates": 8, "data set": 4, "molecules": 6, "sdf": 4, "parquet": 3,
    "scored": 2, "queries": 3, "rejects": 1, "adduct": 3, "object": 1,
}  # fmt: skip
SEEDS_OF = {"data set": "table"}
NAMES = {
    "mgf": "a.mgf", "msp": "a.msp", "massbank": "a.txt", "sirius": "a.ms", "table": "a.tsv",
    "json": "a.json", "mzml": "a.mzML", "mzxml": "a.mzXML", "candidates": "candidates.json",
    "data set": "a.tsv", "molecules": "a.csv", "sdf": "a.sdf", "parquet": "a.parquet",
    "scored": "a.tsv", "queries": "a.csv", "rejects": "rejects.tsv",
    "adduct": "a.txt", "object": "manifest.json",
}  # fmt: skip
PACKABLE = {*READERS} - {"parquet", "rejects", "adduct", "object"}


def run(target: str, path: Path) -> Outcome:
    """Read a file; `Broken` where a promise is, any other exception as it comes."""
    outcome = Outcome()
    try:
        READERS[target](path, outcome)
    except MzseekError as error:
        outcome.refused = str(error)
        if "\n" in outcome.refused or "\r" in outcome.refused or len(outcome.refused) > 2_000:
            raise Broken(f"a refusal that is not one line: {outcome.refused!r:.300}") from error
        if not outcome.refused.strip():
            raise Broken("a refusal without a word") from error
    return outcome


def check_counts(target: str, data: bytes, outcome: Outcome) -> None:
    """Compare what was read and set aside with a count that knows nothing of the reader."""
    if outcome.refused or outcome.ended:
        return
    for label in dict.fromkeys(outcome.formats or [target]):
        count = COUNTS.get(label)
        expected = count(data) if count is not None and len(outcome.formats) <= 1 else None
        if expected is None:
            continue
        least, most = expected
        total = outcome.read + outcome.set_aside
        if not least <= total <= most:
            raise Broken(
                f"{label}: {least} to {most} records in, {outcome.read} read and "
                f"{outcome.set_aside} set aside"
            )


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


Bounds = tuple[int, float]
Count = Callable[[bytes], Bounds | None]


def _at_least(pattern: str) -> Count:
    """Records begin with lines like this; others may be set aside for having no beginning."""
    line = re.compile(f"^{pattern}", re.MULTILINE | re.IGNORECASE)
    return lambda data: (sum(1 for _ in line.finditer(_text(data))), math.inf)


_NOT_BLANK = re.compile(r"^[^\n]*\S", re.MULTILINE)
_count_mgf = _at_least(r"[^\S\n]*BEGIN[^\S\n]+IONS[^\S\n]*$")
_count_msp = _at_least(r"[ \t]*name[ \t]*:")
_count_massbank = _at_least(r"(?-i:ACCESSION:)")
_count_sirius = _at_least(r"[^\S\n]*>(?:ms[12](?:peaks|merged)?|collision|ce)(?:[ \t]|[^\S\n]*$)")


def _count_table(data: bytes) -> Bounds | None:
    header, _, rest = _text(data).partition("\n")
    if not {"mzs", "intensities"} <= set(header.split("\t")):
        return None
    rows = sum(1 for _ in _NOT_BLANK.finditer(rest))
    return rows, max(rows, 1)


def _count_json(data: bytes) -> Bounds | None:
    try:
        found = json.loads(_text_of_json(data))
    except (ValueError, RecursionError):
        return None
    count = len(found) if isinstance(found, list) else 1
    return count, max(count, 1)


def _count_candidates(data: bytes) -> Bounds | None:
    try:
        pairs = json.loads(_text_of_json(data), object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    return len(pairs), len(pairs)


def _text_of_json(data: bytes) -> str:
    if len(data) > _LARGE:
        raise ValueError
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _count_elements(name: str) -> Count:
    def count(data: bytes) -> Bounds | None:
        if len(data) > _LARGE:
            return None
        try:
            root = ElementTree.fromstring(data)
        except (ElementTree.ParseError, ValueError, LookupError):
            return None
        found = sum(element.tag.rpartition("}")[2] == name for element in root.iter())
        return found, max(found, 1)

    return count


def _count_molecules(data: bytes) -> Bounds | None:
    if b'"' in data or b"M  END" in data or b"$$$$" in data or re.search(rb"V[23]000", data):
        return None
    rows = sum(1 for _ in _NOT_BLANK.finditer(_text(data)))
    return max(0, rows - 1), rows


def _count_sdf(data: bytes) -> Bounds | None:
    if not is_sdf(_text(data[:65_536])):
        return None
    ends = sum(1 for _ in re.finditer(r"^\$\$\$\$", _text(data), re.MULTILINE))
    return ends, ends + 1


COUNTS: dict[str, Count] = {
    "MGF": _count_mgf, "MSP": _count_msp, "MassBank": _count_massbank, "SIRIUS": _count_sirius,
    "MassSpecGym table": _count_table, "GNPS JSON": _count_json,
    "mzML": _count_elements("spectrum"), "mzXML": _count_elements("scan"),
    "candidates": _count_candidates,
    "molecules": _count_molecules, "sdf": _count_sdf,
}  # fmt: skip
