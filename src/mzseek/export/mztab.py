"""Annotations as mzTab-M 2.0."""

import itertools
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mzseek.annotation.annotation import Annotation, Candidate
from mzseek.annotation.features import Feature
from mzseek.chem.adducts import parse_adduct
from mzseek.chem.identifiers import home_of, link, source_of
from mzseek.core.errors import AdductError
from mzseek.export.tables import decimal
from mzseek.export.writer import Settings, Writer
from mzseek.io.text_tables import text_cell
from mzseek.version import __version__

NULL = "null"
BAR = "|"
_OTHER_BAR = "¦"  # in a text, where a bar would end an element of a list
# The specification's pattern.
_ADDUCT = re.compile(r"\[\d*M([+-][\w\d]+)*\]\d*[+-]", re.ASCII)
_ONE_CHARGE = re.compile(r"\]([+-])$")


def text(value: str) -> str:
    """A cell of text; null for none.

    Examples
    --------
    >>> text("a|b"), text(" "), text("=1")
    ('a¦b', 'null', "'=1")
    """
    cell = text_cell(value).replace(BAR, _OTHER_BAR)
    return f"'{cell}" if cell.startswith('"') else cell or NULL


def number(value: float | None, digits: int = 6) -> str:
    """A decimal; null for none, or none that is finite. The format knows no powers of ten."""
    return decimal(value, digits) or NULL


def several(cells: Iterable[str]) -> str:
    """Elements of a list, of equal length in all columns; null where all of them are."""
    elements = list(cells)
    return BAR.join(elements) if any(each != NULL for each in elements) else NULL


def param(label: str, accession: str, name: str, value: str = "") -> str:
    """A parameter: of a vocabulary, or of one's own where label and accession are empty.

    Examples
    --------
    >>> param("MS", "MS:1000511", "ms level", "2"), param("", "", "a, b")
    ('[MS, MS:1000511, ms level, 2]', '[, , "a, b", ]')
    """
    parts = (label, accession, _part(name), _part(value))
    return f"[{', '.join(parts)}]"


def _part(value: str) -> str:
    plain = text_cell(value).replace('"', "'").replace(BAR, _OTHER_BAR)
    return f'"{plain}"' if set(plain) & set(",[]") else plain


def adduct(name: str) -> str:
    """An ion as the format writes it, with a charge of 1 told; null for one that it cannot write.

    Examples
    --------
    >>> adduct("[M+H]+"), adduct("[M-2H]2-"), adduct("[M]+•")
    ('[M+H]1+', '[M-2H]2-', 'null')
    """
    told = _ONE_CHARGE.sub(r"]1\1", name)
    return told if _ADDUCT.fullmatch(told) else NULL


def location(where: str) -> str:
    """A file as an URI; null where it is not known."""
    if not where.strip():
        return NULL
    if "://" in where:
        return quote(where, safe=":/?#[]@!$&'()*+,;=%-._~")
    return Path(where).absolute().as_uri()


def line(cells: Sequence[str]) -> str:
    """A line; an empty cell would break the format."""
    return "\t".join(cell or NULL for cell in cells) + "\n"


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


_HERE = "\v"  # where columns for files of spectra belong; no cell has it
_MOST_NAMED = 10  # identifications of one summary row; evidence rows have all
_AMBIGUOUS = "1"
_MS_LEVEL = param("MS", "MS:1000511", "ms level", "2")

SML = (
    "SML_ID", "SMF_ID_REFS", "database_identifier", "chemical_formula", "smiles", "inchi",
    "chemical_name", "uri", "theoretical_neutral_mass", "adduct_ions", "reliability",
    "best_id_confidence_measure", "best_id_confidence_value", _HERE, "opt_global_feature",
    "opt_global_confidence", "opt_global_in_database_probability", "opt_global_set_size",
    "opt_global_level_reason",
)  # fmt: skip
SMF = (
    "SMF_ID", "SME_ID_REFS", "SME_ID_REF_ambiguity_code", "adduct_ion", "isotopomer",
    "exp_mass_to_charge", "charge", "retention_time_in_seconds", "retention_time_in_seconds_start",
    "retention_time_in_seconds_end", _HERE, "opt_global_feature",
)  # fmt: skip
SME = (
    "SME_ID", "evidence_input_id", "database_identifier", "chemical_formula", "smiles", "inchi",
    "chemical_name", "uri", "derivatized_form", "adduct_ion", "exp_mass_to_charge", "charge",
    "theoretical_mass_to_charge", "spectra_ref", "identification_method", "ms_level",
    *(f"id_confidence_measure[{place}]" for place in range(1, len(MEASURES) + 1)), "rank",
    "opt_global_inchikey2d", "opt_global_adduct", "opt_global_in_prediction_set",
)  # fmt: skip


class MzTab(Writer):
    """Writes a file that ends in ``.mztab``."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        super().__init__(folder, name, settings)
        self._sml, self._smf, self._sme, self._seen = self.spools.values()
        self._features = sum(1 for _ in self._sml.lines())
        self._evidence = sum(1 for _ in self._sme.lines())
        self._runs: list[Run] = []
        self._prefixes: list[str] = []
        for told in self._seen.lines():
            self._recall(*json.loads(told))

    def spool_names(self) -> list[str]:
        """Rows of the three sections, and what metadata are made of."""
        return [f"{self.name}.{each}" for each in ("sml", "smf", "sme", "seen")]

    def write(self, annotation: Annotation) -> None:
        """Add the rows of a feature."""
        self._features += 1
        run = self._run_of(annotation.feature)
        charge = _charge(annotation)
        if charge:
            self._note_once("polarity", run, "+" if charge > 0 else "-")
        own = str(self._features)
        evidence = [
            line(["SME", *self._evidence_cells(annotation, candidate, rank, run)])
            for rank, candidate in enumerate(annotation.ranked, 1)
        ]
        references = [str(self._evidence - place) for place in reversed(range(len(evidence)))]
        self._sme.write("".join(evidence))
        best = annotation.best
        self._smf.write(
            line(
                ["SMF", own, BAR.join(references), _AMBIGUOUS if len(references) > 1 else NULL,
                 adduct(best.adduct) if best else NULL, NULL,
                 number(annotation.feature.precursor_mz), str(abs(charge) or 1),
                 number(annotation.feature.retention_time, 3), NULL, NULL, _HERE,
                 text(annotation.feature.name)]
            )
        )  # fmt: skip
        self._sml.write(line(["SML", own, own, *self._summary_cells(annotation)]))

    def finish(self) -> list[str]:
        """Put the sections together."""
        if not self._runs:
            self._runs.append(Run(self.settings.inputs[0] if self.settings.inputs else ""))
        assays = [f"abundance_assay[{place}]" for place in range(1, len(self._runs) + 1)]
        variables = ["abundance_study_variable[1]", "abundance_variation_study_variable[1]"]
        made = self.folder / f"{self.name}.made"
        with made.open("w", encoding="utf-8", newline="\n") as file:
            stem = self.name.rpartition(".")[0]
            file.writelines(metadata(stem, self.settings, self._runs, self._prefixes))
            for head, columns, inside, spool in (
                ("SMH", SML, [*assays, *variables], self._sml),
                ("SFH", SMF, assays, self._smf),
                ("SEH", SME, [], self._sme),
            ):
                file.write("\n" + line([head, *columns]).replace(_HERE, "\t".join(inside)))
                nulls = "\t".join([NULL] * len(inside))
                file.writelines(each.replace(_HERE, nulls) for each in spool.lines())
        shutil.move(made, self.folder / self.name)
        return super().finish()

    def _summary_cells(self, annotation: Annotation) -> list[str]:
        named = _named(annotation)
        best = annotation.best
        formulas = several(text(each.formula) for each in named)
        if not named and annotation.level.number == "4" and best is not None:
            formulas = text(best.formula)
        ions = dict.fromkeys(adduct(each.adduct) for each in named)
        return [
            several(self._identifier(each) for each in named),
            formulas,
            several(text(each.smiles) for each in named),
            NULL,
            several(text(each.name) for each in named),
            several(_uri(each) for each in named),
            several(number(each.mass) for each in named),
            several(each for each in ions if each != NULL),
            text(annotation.level.number),
            CONFIDENCE if best else NULL,
            number(annotation.confidence) if best else NULL,
            _HERE,
            text(annotation.feature.name),
            number(annotation.confidence),
            number(annotation.present),
            str(annotation.set_size),
            text(annotation.level.reason),
        ]

    def _evidence_cells(
        self, annotation: Annotation, candidate: Candidate, rank: int, run: int
    ) -> list[str]:
        self._evidence += 1
        measured = annotation.feature.precursor_mz
        match = candidate.match
        charge = _charge_of(candidate.adduct) or _charge(annotation) or 1
        return [
            str(self._evidence),
            f"ms_run[{run}]:feature={text(annotation.feature.name)}",
            self._identifier(candidate),
            text(candidate.formula),
            text(candidate.smiles),
            NULL,
            text(candidate.name),
            _uri(candidate),
            NULL,
            adduct(candidate.adduct),
            number(measured),
            str(abs(charge)),
            number(measured / (1 + candidate.error_ppm * 1e-6)),
            self._spectra(annotation.feature, run),
            SOFTWARE,
            _MS_LEVEL,
            number(annotation.confidence_of(candidate)),
            number(candidate.probability),
            number(candidate.score),
            number(candidate.explained),
            number(match.similarity if match else None),
            str(rank),
            text(candidate.key),
            text(candidate.adduct),
            "true" if candidate.in_set else "false",
        ]

    def _spectra(self, feature: Feature, run: int) -> str:
        """References to a feature's spectra: by their ids in mzML, by their names elsewhere."""
        before = "" if self._runs[run - 1].is_mzml else "databasekey="
        return BAR.join(
            f"ms_run[{run}]:{before}{text(spectrum.identifier)}" for spectrum in feature.spectra
        )

    def _identifier(self, candidate: Candidate) -> str:
        """Of the first source that is known, else of the database that it was taken from."""
        known = next((found for each in candidate.identifiers if (found := source_of(each))), None)
        if known is None:
            return f"{OWN_PREFIX}:{text(candidate.key)}"
        self._note_once("database", 0, known[0])
        return f"{known[0]}:{known[1]}"

    def _run_of(self, feature: Feature) -> int:
        """Number of a feature's file, from 1."""
        self._note_once("run", 0, feature.where)
        return 1 + next(n for n, run in enumerate(self._runs) if run.where == feature.where)

    def _note_once(self, kind: str, run: int, value: str) -> None:
        """Take down what metadata will need, if it is new."""
        known: Sequence[str] = {
            "run": [each.where for each in self._runs],
            "database": self._prefixes,
            "polarity": self._runs[run - 1].polarities if run else [],
        }[kind]
        if value not in known:
            self._recall(kind, run, value)
            self._seen.write(json.dumps([kind, run, value]) + "\n")

    def _recall(self, kind: str, run: int, value: str) -> None:
        if kind == "run":
            self._runs.append(Run(value))
        elif kind == "database":
            self._prefixes.append(value)
        else:
            self._runs[run - 1].polarities.append(value)


def _named(annotation: Annotation) -> list[Candidate]:
    """The identifications of a summary row: none where only a formula or a mass is known."""
    if not annotation.candidates or annotation.level.number in ("4", "5"):
        return []
    if annotation.level.number == "2a":
        return list(annotation.ranked[:1])
    best, *others = annotation.ranked
    return [best, *(each for each in others if each.in_set)][:_MOST_NAMED]


def _uri(candidate: Candidate) -> str:
    """The page of the identifier that the row has."""
    return next((page for each in candidate.identifiers if (page := link(each))), NULL)


def _charge(annotation: Annotation) -> int:
    """Of a feature, signed; 0 where nothing tells."""
    stated = [s.charge for s in annotation.feature.spectra if s.charge]
    if stated:
        return stated[0]
    best = annotation.best
    if best is not None and (charge := _charge_of(best.adduct)):
        return charge
    modes = [s.metadata.get("ionmode", "").lower() for s in annotation.feature.spectra]
    return 1 if "positive" in modes else -1 if "negative" in modes else 0


def _charge_of(name: str) -> int:
    try:
        return parse_adduct(name).charge
    except AdductError:
        return 0
