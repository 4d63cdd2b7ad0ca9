"""Annotations as mzTab-M 2.0."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from mzseek.annotation.annotation import Annotation, Candidate
from mzseek.chem.adducts import parse_adduct
from mzseek.chem.identifiers import home_of, link, source_of
from mzseek.core.errors import AdductError
from mzseek.export.tables import decimal
from mzseek.export.writer import RecordWriter, Settings
from mzseek.io.text_tables import text_cell
from mzseek.version import __version__

NULL = "null"
BAR = "|"
_OTHER_BAR = "¦"  # in a text, where a bar would end an element of a list
# The specification's pattern.
_ADDUCT = re.compile(r"\[\d*M([+-][\w\d]+)*\]\d*[+-]", re.ASCII)
_ONE_CHARGE = re.compile(r"\]([+-])$")


def text(value: str) -> str:
    """Return a cell of text; null for none.

    Examples
    --------
    >>> text("a|b"), text(" "), text("=1")
    ('a¦b', 'null', "'=1")
    """
    cell = text_cell(value).replace(BAR, _OTHER_BAR)
    return f"'{cell}" if cell.startswith('"') else cell or NULL


def number(value: float | None, digits: int = 6) -> str:
    """Return a decimal; null for none that is finite. The format knows no powers of ten."""
    return decimal(value, digits) or NULL


def several(cells: Iterable[str]) -> str:
    """Return elements of a list, of equal length in all columns; null where all of them are."""
    elements = list(cells)
    return BAR.join(elements) if any(element != NULL for element in elements) else NULL


def param(label: str, accession: str, name: str, value: str = "") -> str:
    """Return a parameter: of a vocabulary, or mzseek's own where label and accession are empty.

    Examples
    --------
    >>> param("MS", "MS:1000511", "ms level", "2"), param("", "", "a, b")
    ('[MS, MS:1000511, ms level, 2]', '[, , "a, b", ]')
    """
    plain = [text_cell(v).replace('"', "'").replace(BAR, _OTHER_BAR) for v in (name, value)]
    quoted = [f'"{part}"' if set(part) & set(",[]") else part for part in plain]
    return f"[{', '.join((label, accession, *quoted))}]"


def adduct(name: str) -> str:
    """Return an ion with a charge of 1 written out; null for one that the format cannot write.

    Examples
    --------
    >>> adduct("[M+H]+"), adduct("[M-2H]2-"), adduct("[M]+•")
    ('[M+H]1+', '[M-2H]2-', 'null')
    """
    charged = _ONE_CHARGE.sub(r"]1\1", name)
    return charged if _ADDUCT.fullmatch(charged) else NULL


def location(where: str) -> str:
    """Return a file as a URI; null where it is not known."""
    if not where.strip():
        return NULL
    if "://" in where:
        return quote(where, safe=":/?#[]@!$&'()*+,;=%-._~")
    return Path(where).absolute().as_uri()


def line(cells: Iterable[str]) -> str:
    """Return a line; an empty cell would break the format."""
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
_OTHER_IDS = param("MS", "MS:1001532", "spectrum from database string nativeID format")
# Format and identifiers of spectra, by suffix.
_FORMATS = {
    ".mzml": (
        param("MS", "MS:1000584", "mzML file"),
        param("MS", "MS:1001530", "mzML unique identifier"),
    ),
    ".mgf": (param("MS", "MS:1001062", "Mascot MGF file"), _OTHER_IDS),
    ".mzxml": (param("MS", "MS:1000566", "ISB mzXML file"), _OTHER_IDS),
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


def metadata(
    name: str, settings: Settings, runs: Mapping[str, Iterable[str]], prefixes: Iterable[str]
) -> Iterator[str]:
    """Yield the lines of the metadata section.

    Parameters
    ----------
    name : str
        Of the file, without its suffix: its identifier.
    settings : Settings
    runs : mapping of str to iterable of str
        Polarities (``+``, ``-``) of each file of spectra, by its name; at least one.
    prefixes : iterable of str
        Of databases that identifiers were taken from, besides `OWN_PREFIX`.
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
    for index, (option, value) in enumerate(_flat(settings.options), 1):
        yield f"software[1]-setting[{index}]", text(f"{option} = {value}")
    yield "quantification_method", param("", "", "no quantification")


def _runs(runs: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    for index, (where, polarities) in enumerate(runs.items(), 1):
        run = f"ms_run[{index}]"
        yield f"{run}-location", location(where)
        if _suffix(where) in _FORMATS:
            yield f"{run}-format", _FORMATS[_suffix(where)][0]
            yield f"{run}-id_format", _FORMATS[_suffix(where)][1]
        for n, polarity in enumerate(list(polarities) or [""], 1):
            yield f"{run}-scan_polarity[{n}]", _POLARITY[polarity]
    for index, where in enumerate(runs, 1):
        yield f"assay[{index}]", text(where) if where.strip() else f"assay {index}"
        yield f"assay[{index}]-ms_run_ref", f"ms_run[{index}]"
    yield "study_variable[1]", "undefined"
    assays = BAR.join(f"assay[{index}]" for index in range(1, len(runs) + 1))
    yield "study_variable[1]-assay_refs", assays
    yield "study_variable[1]-description", "all files of spectra"


def _vocabularies() -> Iterator[tuple[str, str]]:
    for index, values in enumerate(_VOCABULARIES, 1):
        for name, value in zip(("label", "full_name", "version", "uri"), values, strict=True):
            yield f"cv[{index}]-{name}", value


def _databases(settings: Settings, prefixes: Iterable[str]) -> Iterator[tuple[str, str]]:
    version = text(settings.database_version)
    searched = settings.database.strip() or "candidates"
    listed = [(searched, OWN_PREFIX, version if version != NULL else "Unknown",
               "urn:mzseek:database")]  # fmt: skip
    listed += [(prefix, prefix, "Unknown", home_of(prefix)) for prefix in prefixes]
    for index, (name, prefix, release, uri) in enumerate(listed, 1):
        yield f"database[{index}]", param("", "", name)
        yield f"database[{index}]-prefix", prefix
        yield f"database[{index}]-version", release
        yield f"database[{index}]-uri", uri


def _end() -> Iterator[tuple[str, str]]:
    yield "small_molecule-quantification_unit", _UNIT
    yield "small_molecule_feature-quantification_unit", _UNIT
    yield "small_molecule-identification_reliability", _RELIABILITY
    for index, measure in enumerate(MEASURES, 1):
        yield f"id_confidence_measure[{index}]", measure


def _flat(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield options by name, nested ones after a dot; what is not set is left out."""
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


_RUN = "\f"  # stands for the number of the file of spectra; no text cell has it
_MAX_NAMED = 10  # identifications of one summary row; evidence rows have all
_AMBIGUOUS = "1"

# Cells of each section by column. Columns of row numbers, and of abundances in files of spectra,
# are added when the file is made.
Named = Sequence[Candidate]  # the identifications of a summary row
SUMMARY: dict[str, Callable[[Annotation, Named], str]] = {
    "database_identifier": lambda a, named: several(map(_identifier, named)),
    "chemical_formula": lambda a, named: _formulas(a, named),
    "smiles": lambda a, named: several(text(c.smiles) for c in named),
    "inchi": lambda *_: NULL,
    "chemical_name": lambda a, named: several(text(c.name) for c in named),
    "uri": lambda a, named: several(map(_uri, named)),
    "theoretical_neutral_mass": lambda a, named: several(number(c.mass) for c in named),
    "adduct_ions": lambda a, named: several(
        ion for ion in dict.fromkeys(adduct(c.adduct) for c in named) if ion != NULL
    ),
    "reliability": lambda a, _: text(a.level.number),
    "best_id_confidence_measure": lambda a, _: CONFIDENCE if a.best else NULL,
    "best_id_confidence_value": lambda a, _: number(a.confidence) if a.best else NULL,
}
SUMMARY_EXTRA: dict[str, Callable[[Annotation], str]] = {
    "opt_global_feature": lambda a: text(a.feature.name),
    "opt_global_confidence": lambda a: number(a.confidence),
    "opt_global_in_database_probability": lambda a: number(a.present),
    "opt_global_set_size": lambda a: str(a.set_size),
    "opt_global_level_reason": lambda a: text(a.level.reason),
    "opt_global_class": lambda a: text(a.compound_class.name) if a.compound_class else NULL,
    "opt_global_class_level": lambda a: text(a.compound_class.level) if a.compound_class else NULL,
    "opt_global_class_probability": lambda a: (
        number(a.compound_class.probability) if a.compound_class else NULL
    ),
    "opt_global_ranked_formula": lambda a: text(a.formulas[0].formula if a.formulas else ""),
    "opt_global_ranked_formula_adduct": lambda a: text(a.formulas[0].adduct if a.formulas else ""),
    "opt_global_ranked_formula_probability": lambda a: number(
        a.formulas[0].probability if a.formulas else None
    ),
}
FEATURE: dict[str, Callable[[Annotation], str]] = {
    "adduct_ion": lambda a: adduct(a.best.adduct) if a.best else NULL,
    "isotopomer": lambda a: NULL,
    "exp_mass_to_charge": lambda a: number(a.feature.precursor_mz),
    "charge": lambda a: str(abs(_charge(a)) or 1),
    "retention_time_in_seconds": lambda a: number(a.feature.retention_time, 3),
    "retention_time_in_seconds_start": lambda a: NULL,
    "retention_time_in_seconds_end": lambda a: NULL,
}
EVIDENCE: dict[str, Callable[[Annotation, Candidate], str]] = {
    "evidence_input_id": lambda a, _: f"ms_run[{_RUN}]:feature={text(a.feature.name)}",
    "database_identifier": lambda _, c: _identifier(c),
    "chemical_formula": lambda _, c: text(c.formula),
    "smiles": lambda _, c: text(c.smiles),
    "inchi": lambda *_: NULL,
    "chemical_name": lambda _, c: text(c.name),
    "uri": lambda _, c: _uri(c),
    "derivatized_form": lambda *_: NULL,
    "adduct_ion": lambda _, c: adduct(c.adduct),
    "exp_mass_to_charge": lambda a, _: number(a.feature.precursor_mz),
    "charge": lambda a, c: str(abs(_charge_of(c.adduct) or _charge(a) or 1)),
    "theoretical_mass_to_charge": lambda a, c: number(
        a.feature.precursor_mz / (1 + c.error_ppm * 1e-6)
    ),
    "spectra_ref": lambda a, _: _spectra(a),
    "identification_method": lambda *_: SOFTWARE,
    "ms_level": lambda *_: param("MS", "MS:1000511", "ms level", "2"),
    "id_confidence_measure[1]": lambda a, c: number(a.confidence_of(c)),
    "id_confidence_measure[2]": lambda _, c: number(c.probability),
    "id_confidence_measure[3]": lambda _, c: number(c.score),
    "id_confidence_measure[4]": lambda _, c: number(c.explained),
    "id_confidence_measure[5]": lambda _, c: number(c.match.similarity if c.match else None),
    "rank": lambda *_: "1",  # of the best candidate; `MzTab.record` counts on
    "opt_global_inchikey2d": lambda _, c: text(c.key),
    "opt_global_adduct": lambda _, c: text(c.adduct),
    "opt_global_in_prediction_set": lambda _, c: "true" if c.in_set else "false",
}


class MzTab(RecordWriter):
    """Write a file that ends in ``.mztab``."""

    signature = re.compile(
        rb"\AMTD\tmzTab-version\t[^\n]+\nMTD\tmzTab-ID\t[^\n]+\n(?:MTD\ttitle\t[^\n]+\n)?"
        rb"MTD\tdescription\t[^\n]+\nMTD\tsoftware\[1\]\t\[[^\n]*, mzseek [^\n]*\]\n"
        rb"(?:MTD\tsoftware\[1\]-setting\[\d+\]\t[^\n]+\n)*MTD\tquantification_method\t"
    )

    def record(self, annotation: Annotation) -> dict[str, Any]:
        """Return cells of the three sections without numbers, and what metadata are made of."""
        charge, named = _charge(annotation), _named(annotation)
        sources = [source for c in annotation.ranked if (source := _source(c)) is not None]
        return {
            "run": annotation.feature.where,
            "polarity": "" if not charge else "+" if charge > 0 else "-",
            "prefixes": list(dict.fromkeys(prefix for prefix, _ in sources)),
            "summary": [cell(annotation, named) for cell in SUMMARY.values()],
            "extra": [cell(annotation) for cell in SUMMARY_EXTRA.values()],
            "feature": [cell(annotation) for cell in FEATURE.values()],
            "evidence": [
                [
                    str(rank) if name == "rank" else cell(annotation, candidate)
                    for name, cell in EVIDENCE.items()
                ]
                for rank, candidate in enumerate(annotation.ranked, 1)
            ],
        }

    def assemble(self, file: TextIO) -> list[str]:
        """Write metadata, then the sections, each with numbers for rows and files."""
        runs: dict[str, dict[str, None]] = {}
        prefixes: dict[str, None] = {}
        for record in self.records():
            polarities = runs.setdefault(record["run"], {})
            polarities |= dict.fromkeys(record["polarity"])
            prefixes |= dict.fromkeys(record["prefixes"])
        runs = runs or {self.settings.inputs[0] if self.settings.inputs else "": {}}
        file.writelines(metadata(self.name.rpartition(".")[0], self.settings, runs, prefixes))
        assays = [f"abundance_assay[{index}]" for index in range(1, len(runs) + 1)]
        variables = ["abundance_study_variable[1]", "abundance_variation_study_variable[1]"]

        columns = [*assays, *variables]
        nulls = [NULL] * len(columns)
        file.write(
            "\n" + line(["SMH", "SML_ID", "SMF_ID_REFS", *SUMMARY, *columns, *SUMMARY_EXTRA])
        )
        for index, record in enumerate(self.records(), 1):
            cells = [*record["summary"], *nulls, *record["extra"]]
            file.write(line(["SML", str(index), str(index), *cells]))

        identifiers = ["SMF_ID", "SME_ID_REFS", "SME_ID_REF_ambiguity_code"]
        file.write("\n" + line(["SFH", *identifiers, *FEATURE, *assays, "opt_global_feature"]))
        nulls, done = [NULL] * len(assays), 0
        for index, record in enumerate(self.records(), 1):
            references = [str(done + n) for n in range(1, len(record["evidence"]) + 1)]
            done += len(references)
            ambiguity = _AMBIGUOUS if len(references) > 1 else NULL
            cells = [str(index), BAR.join(references), ambiguity, *record["feature"], *nulls]
            file.write(line(["SMF", *cells, record["extra"][0]]))

        file.write("\n" + line(["SEH", "SME_ID", *EVIDENCE]))
        numbers = {where: str(index) for index, where in enumerate(runs, 1)}
        evidence = ((r["run"], cells) for r in self.records() for cells in r["evidence"])
        for index, (where, cells) in enumerate(evidence, 1):
            file.write(line(["SME", str(index), *cells]).replace(_RUN, numbers[where]))
        return []


def _formulas(annotation: Annotation, named: Named) -> str:
    if not named and annotation.level.formula:
        return text(annotation.level.formula)
    if not named and annotation.level.number == "4" and annotation.best is not None:
        return text(annotation.best.formula)
    return several(text(candidate.formula) for candidate in named)


def _spectra(annotation: Annotation) -> str:
    """Refer to the spectra of a feature: by their ids in mzML, by their names elsewhere."""
    key = "" if _suffix(annotation.feature.where) == ".mzml" else "databasekey="
    spectra = annotation.feature.spectra
    return BAR.join(f"ms_run[{_RUN}]:{key}{text(spectrum.identifier)}" for spectrum in spectra)


def _named(annotation: Annotation) -> Named:
    """Return the identifications of a summary row: none where only a formula or mass is known."""
    if not annotation.candidates or annotation.level.number in ("4", "5"):
        return []
    best, *others = annotation.ranked
    if annotation.level.number == "2a":
        return [best]
    return [best, *(candidate for candidate in others if candidate.in_set)][:_MAX_NAMED]


def _source(candidate: Candidate) -> tuple[str, str] | None:
    """Return prefix and identifier of the first database that is known; None for none."""
    return next(
        (source for identifier in candidate.identifiers if (source := source_of(identifier))), None
    )


def _identifier(candidate: Candidate) -> str:
    prefix, key = _source(candidate) or (OWN_PREFIX, text(candidate.key))
    return f"{prefix}:{key}"


def _uri(candidate: Candidate) -> str:
    """Return the page of the identifier that the row has."""
    return next((page for identifier in candidate.identifiers if (page := link(identifier))), NULL)


def _charge(annotation: Annotation) -> int:
    """Return the signed charge of a feature; 0 where it is not known."""
    spectra, best = annotation.feature.spectra, annotation.best
    charge = next((spectrum.charge for spectrum in spectra if spectrum.charge), 0)
    if not charge and best is not None:
        charge = _charge_of(best.adduct)
    if charge:
        return charge
    modes = [spectrum.metadata.get("ionmode", "").lower() for spectrum in spectra]
    return 1 if "positive" in modes else -1 if "negative" in modes else 0


def _charge_of(name: str) -> int:
    try:
        return parse_adduct(name).charge
    except AdductError:
        return 0
