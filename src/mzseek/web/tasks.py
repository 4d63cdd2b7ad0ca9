"""What worker processes do for single requests. Each task takes and returns plain data."""

import csv
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from mzseek.annotation.annotator import Annotator, Result, SkippedFeature, config_for
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.annotation.reading import Features, Report, SpectrumFiles
from mzseek.bundle import Bundle
from mzseek.bundle.molecules import column_of
from mzseek.chem import fingerprints, parse_molecule
from mzseek.chem.depiction import structure
from mzseek.chem.molecules import BLOCK_LENGTH, describe_structure
from mzseek.core.errors import DatabaseError, InputError, Reason
from mzseek.core.text import visible
from mzseek.database import Database
from mzseek.decision import distribution
from mzseek.decision.comparison import compare_decisions
from mzseek.export.formulas import ranked_features
from mzseek.export.json_array import annotation_object, formula_object
from mzseek.export.report import feature_data, packed_fragments, packed_peaks, row_data
from mzseek.export.writer import IN_FULL, plain_data
from mzseek.fragments import explain as explain_peaks
from mzseek.fragments.matching import LEAST, PPM
from mzseek.io import open_source
from mzseek.library import Library
from mzseek.spectra import Spectrum
from mzseek.spectra.read import read_spectra, recognise
from mzseek.web.errors import ApiError
from mzseek.web.models import FormulaOptions, command_line, formula_command_line
from mzseek.web.molecules import MoleculeTable, named_molecules, number
from mzseek.web.settings import BUNDLED

Data = Mapping[str, Any]
T = TypeVar("T")
_OPENED = 8  # annotators that a worker holds: one for each combination of settings
_PEAK = re.compile(r"\s*([0-9.eE+-]+)[\s,;]+([0-9.eE+-]+)\s*")
_COMMENT = ("#", "//")
CANDIDATES = "candidates.tsv"  # the file that SMILES of a request stand in


class Resources:
    """Databases, libraries and the model that a worker has opened, each once.

    Parameters
    ----------
    settings : mapping
        As `ServerSettings.for_worker` returns it.
    """

    def __init__(self, settings: Data) -> None:
        self.databases: Mapping[str, str | None] = settings["databases"]
        self.library_paths: Mapping[str, str] = settings["libraries"]
        self.model: str | None = settings["model"]
        self.limits: Mapping[str, Any] = settings["limits"]
        self._cache = Path(settings["cache"])
        self._annotators: OrderedDict[AnnotateConfig, Annotator] = OrderedDict()
        self._libraries: dict[str, Library] = {}
        self._of_libraries: dict[str, MoleculeTable] = {}
        self._opened: dict[str, Database] = {}

    def config(self, options: Data, candidates: Path | None = None) -> AnnotateConfig:
        """Return the settings of an annotation for the options of a request.

        Options name a database and libraries: `Services.complete` puts the defaults in.
        """
        given = dict(options)
        database, library = given.pop("database"), given.pop("library")
        if candidates is not None:
            path: str | None = str(candidates)
        elif database in self.databases:
            path = self.databases[database]
        else:  # a job of a server that had other ones
            raise ApiError("unknown_database", f"this server has no {database!r}", "database")
        if missing := [name for name in library if name not in self.library_paths]:
            raise ApiError("unknown_library", f"this server has no {missing[0]!r}", "library")
        return AnnotateConfig(
            database=path, library=tuple(self.library_paths[name] for name in library),
            model=self.model, **given,
        )  # fmt: skip

    def annotator(self, config: AnnotateConfig, *, keep: bool = True) -> Annotator:
        """Return an annotator; `keep` it for the next request with the same settings."""
        if config in self._annotators:
            self._annotators.move_to_end(config)
            return self._annotators[config]
        opened = list(reversed(self._annotators.values()))  # what was used last comes first
        same = [other for other in opened if other.config.library == config.library]
        annotator = Annotator(config, like=next(iter([*same, *opened]), None))
        if not keep:
            return annotator
        self._annotators[config] = annotator
        if len(self._annotators) > _OPENED:
            self._annotators.popitem(last=False)
        return annotator

    @cached_property
    def bundle(self) -> Bundle:
        """The model, with its library and its database."""
        return Bundle.open(self.model)

    def library(self, name: str | None) -> tuple[str, Library]:
        """Return a library with its name; the model's own by default."""
        if name is None:
            return BUNDLED, self.bundle.library
        if name not in self._libraries:
            self._libraries[name] = Library.open(self.library_paths[name])
        return name, self._libraries[name]

    def database(self, name: str) -> Database | None:
        """Return a database that can be searched; None for the model's own."""
        path = self.databases[name]
        if path is None:
            return None
        if not Path(path).is_dir():
            raise DatabaseError(f"{name} is a list of candidates, which cannot be searched")
        if name not in self._opened:
            self._opened[name] = Database.open(path)
        return self._opened[name]

    @cached_property
    def bundled_molecules(self) -> MoleculeTable:
        """The molecules of the model's database, to be searched."""
        return MoleculeTable(self.bundle.molecules.table, self._cache)

    def library_molecules(self, name: str, library: Library) -> MoleculeTable:
        """Return the molecules of a library, to be searched."""
        if name not in self._of_libraries:
            table = named_molecules(library.molecules, self.bundle.molecules.table)
            self._of_libraries[name] = MoleculeTable(table, self._cache)
        return self._of_libraries[name]


class LimitedFiles(SpectrumFiles):
    """Spectra of files, within the limits of the server.

    Parameters
    ----------
    paths : sequence of Path
    spectra : int
        More raise `ApiError`.
    peaks : int
        Spectra with more are skipped.
    """

    def __init__(self, paths: Sequence[Path], spectra: int, peaks: int) -> None:
        super().__init__(paths)
        self._max_spectra, self._max_peaks = spectra, peaks

    def read(self, report: Report) -> Iterator[tuple[Path, str, Spectrum]]:
        """See `SpectrumFiles.read`."""
        for count, (path, file, spectrum) in enumerate(super().read(report), 1):
            if count > self._max_spectra:
                raise ApiError(
                    "too_many_spectra",
                    f"there are more than {self._max_spectra:,} spectra, which is the limit of "
                    "this server",
                )
            if len(spectrum) > self._max_peaks:
                reason = f"has {len(spectrum):,} peaks, expected at most {self._max_peaks:,}"
                report(f"{path}: {spectrum.identifier}", Reason(reason, "too-large"))
            else:
                yield path, file, spectrum


@contextmanager
def working_folder() -> Iterator[Path]:
    """Work in a new folder, so that names of files in results are short; it is removed."""
    with TemporaryDirectory(prefix="mzseek-") as name, chdir(name):
        yield Path(name)


@dataclass(frozen=True, eq=False)
class _Opened:
    """A request whose spectra are read: their features, and what the result says beside them."""

    annotator: Annotator
    features: Features
    skipped: list[tuple[str, str]]
    command: str


def annotate(resources: Resources, request: Data) -> dict[str, Any]:
    """Annotate a spectrum, or the spectra of a text."""
    with working_folder() as folder:
        opened = _open_request(resources, request, folder)
        return _annotated(opened, opened.annotator.annotate_batch(list(opened.features)), request)


def annotate_together(
    resources: Resources, requests: Sequence[Data]
) -> list[dict[str, Any] | Exception]:
    """Annotate the spectra of several requests in one batch: results as `annotate` has them.

    A batch takes half the time. No annotation depends on others of its batch.
    """
    opened: list[_Opened | Exception] = []
    for request in requests:
        with working_folder() as folder:
            opened.append(attempted(_open_request, resources, request, folder))
    groups = defaultdict[Annotator, list[_Opened]](list)
    for one in opened:
        if isinstance(one, _Opened):
            groups[one.annotator].append(one)
    results: dict[_Opened, list[Result]] = {}
    try:
        for annotator, group in groups.items():
            features = {one: list(one.features) for one in group}
            batch = iter(annotator.annotate_batch(list(chain(*features.values()))))
            results |= {one: list(islice(batch, len(own))) for one, own in features.items()}
    except Exception:  # which one request may be to blame for
        return [attempted(annotate, resources, request) for request in requests]
    return [
        attempted(_annotated, one, results[one], request) if isinstance(one, _Opened) else one
        for one, request in zip(opened, requests, strict=True)
    ]


def attempted(task: Callable[..., T], *args: Any) -> T | Exception:
    """Return the result of a call, or the exception that it raised."""
    try:
        return task(*args)
    except Exception as error:
        return error


def _open_request(resources: Resources, request: Data, folder: Path) -> _Opened:
    """Read the spectra of a request, in the working folder."""
    path = Path(write_spectra(request))
    options = _options(request, path)
    if request.get("instrument") is not None:
        options["instrument"] = request["instrument"]
    candidates = None
    if request.get("candidates") is not None:
        candidates = folder / CANDIDATES
        _write_candidates(candidates, request["candidates"])
    files = LimitedFiles([path], resources.limits["spectra"], resources.limits["peaks"])
    config = replace(config_for(resources.config(options, candidates), files), explain=IN_FULL)
    annotator = resources.annotator(config, keep=candidates is None)
    skipped: list[tuple[str, str]] = []
    features = Features(files, annotator.config, skipped)
    annotator.recalibrate(features)
    listed = CANDIDATES if candidates else None
    command = command_line([path.name], options, listed, resources.model, "annotations.json")
    return _Opened(annotator, features, skipped, command)


def _annotated(opened: _Opened, results: Sequence[Result], request: Data) -> dict[str, Any]:
    """Return what a response says of the results of all features of a request."""
    skipped, left = opened.skipped, iter(results)
    run = opened.annotator.run(
        opened.features, skipped=skipped, at_once=len(results) or None,
        annotate=lambda features: list(islice(left, len(features))),
    )  # fmt: skip
    features = [described(annotation) for annotation in run]
    if not features:
        raise _nothing_annotated(request, skipped)
    return {
        "features": features,
        "skipped": [{"where": where, "reason": reason} for where, reason in skipped],
        "remarks": run.remarks(),
        "command": opened.command,
    }


def _options(request: Data, path: Path) -> dict[str, Any]:
    """Return the options of a request, with the adduct that it states for a text."""
    options = dict(request["options"])
    if request.get("text") is not None and path.suffix != ".mgf" and request.get("adduct"):
        options.setdefault("adduct", [request["adduct"]])
    return options


def formula(resources: Resources, request: Data) -> dict[str, Any]:
    """Rank the formulas of a spectrum, or of the spectra of a text, as `mzseek formula` does."""
    skipped: list[tuple[str, str]] = []
    with working_folder():
        path = Path(write_spectra(request))
        options = _options(request, path)
        command = formula_command_line([path.name], options)
        top = options.pop("top", FormulaOptions.model_fields["top"].default)
        files = LimitedFiles([path], resources.limits["spectra"], resources.limits["peaks"])
        config = config_for(AnnotateConfig(model=resources.model, **options), files)
        annotator = resources.annotator(config)
        features = Features(files, annotator.config, skipped)
        annotator.recalibrate(features)
        found = []
        for feature, result in ranked_features(annotator.config, features, top, jobs=1):
            if isinstance(result, SkippedFeature):
                skipped.append((result.where, result.reason))
                continue
            listed = [
                formula_object(ranked, rank) for rank, ranked in enumerate(result.formulas, 1)
            ]
            found.append(
                {"feature": feature.name, "ionMass": feature.precursor_mz, "found": result.found,
                 "formulas": listed, "notes": list(result.notes)}
            )  # fmt: skip
    if not found:
        raise _nothing_annotated(request, skipped)
    return {
        "features": plain_data(found, visible),
        "skipped": [{"where": where, "reason": reason} for where, reason in skipped],
        "command": command,
    }


def described(annotation: Any) -> dict[str, Any]:
    """Return the record of a feature, with what pages show of it."""
    record: dict[str, Any] = annotation_object(annotation)
    record["drawing"] = plain_data(feature_data(annotation), visible)
    record["row"] = plain_data(row_data(annotation), visible)
    return record


def _nothing_annotated(request: Data, skipped: Sequence[tuple[str, str]]) -> ApiError:
    field = "peaks" if request.get("peaks") is not None else "text"
    if not skipped:
        return ApiError("bad_spectrum", "there is no spectrum", field)
    where, reason = skipped[0]
    if isinstance(reason, Reason) and reason.code == "too-large":
        return ApiError("too_many_peaks", f"{where} {reason}", field)
    codes = {"no-precursor": "precursor_mz", "bad-adduct": "adduct", "bad-charge": "charge"}
    field = codes.get(getattr(reason, "code", ""), field)
    return ApiError("bad_spectrum", f"no spectrum can be used: {where}: {reason}", field)


def write_spectra(request: Data) -> str:
    """Write the spectra of a request into the working folder; return the name of the file.

    Raises
    ------
    ApiError
        There is no spectrum, or its text is in no format.
    """
    if request.get("peaks") is not None:
        if request.get("text") is not None:
            raise ApiError("invalid", "peaks and text were given, expected one of them", "text")
        return _write_peaks(request["peaks"], request)
    text = request.get("text")
    if request.get("ms1") is not None and _peak_lines(text or "") is None:
        problem = "ms1 and a text of records were given: survey scans are records of the text"
        raise ApiError("invalid", problem, "ms1")
    if text is None or not text.strip():
        raise ApiError("invalid", "expected peaks, or a text with spectra", "peaks")
    peaks = _peak_lines(text)
    if peaks is not None:
        return _write_peaks(peaks, request)
    path = Path("spectra")
    path.write_text(text, encoding="utf-8")
    try:
        kind = recognise(open_source(path))
    except InputError as error:
        raise ApiError(
            "unsupported_format",
            "the text is in no format that mzseek reads (MGF, MSP, MassBank, JSON, SIRIUS, mzML, "
            "mzXML), nor lines of m/z and intensity",
            "text",
        ) from error
    return str(path.rename(path.with_suffix(kind.suffixes[0])))


def _peak_lines(text: str) -> list[list[str]] | None:
    """Return m/z and intensity of each line; None for a text that holds anything else."""
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_PEAK.fullmatch(line) for line in lines if not line.startswith(_COMMENT)]
    return [list(match.groups()) for match in matches if match] if all(matches) else None


def _write_peaks(peaks: Sequence[Sequence[Any]], request: Data) -> str:
    if request.get("precursor_mz") is None:
        raise ApiError("invalid", "the m/z of the precursor is missing", "precursor_mz")
    head, lines = ["BEGIN IONS", "TITLE=spectrum"], []
    if request.get("ms1"):
        lines += [*head, "MSLEVEL=1", *_peaks(request["ms1"]), "END IONS", ""]
    lines += [*head, f"PEPMASS={request['precursor_mz']!r}"]
    charge = request.get("charge")
    if charge:
        lines.append(f"CHARGE={abs(charge)}{'+' if charge > 0 else '-'}")
    if request.get("adduct"):
        lines.append(f"ADDUCT={' '.join(request['adduct'].split())}")
    # Pairs that a client could not have measured are left for the reader to judge.
    lines += _peaks(peaks)
    path = Path("spectrum.mgf")
    path.write_text("\n".join(lines) + "\nEND IONS\n", encoding="utf-8")
    return str(path)


def _peaks(peaks: Sequence[Sequence[Any]]) -> list[str]:
    return [f"{mz} {intensity}" for mz, intensity in peaks]


def _write_candidates(path: Path, smiles: Sequence[str]) -> None:
    if not smiles:
        raise ApiError("invalid", "the list of candidates is empty", "candidates")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerows([["smiles"], *([text] for text in smiles)])


def one_spectrum(request: Data, resources: Resources) -> Spectrum:
    """Return the only, or first, spectrum of a request.

    Raises
    ------
    ApiError
    """
    skipped: list[tuple[str, str]] = []
    with working_folder():
        path = write_spectra(request)
        spectrum = next(read_spectra(path, skipped, skip_bad_peaks=True), None)
    if spectrum is None:
        raise _nothing_annotated(request, skipped)
    if len(spectrum) > resources.limits["peaks"]:
        most = resources.limits["peaks"]
        raise ApiError("too_many_peaks", f"expected at most {most:,} peaks", "peaks")
    return spectrum


def explain(resources: Resources, request: Data) -> dict[str, Any]:
    """Explain the peaks of a spectrum by fragments of a molecule."""
    spectrum = one_spectrum(request, resources)
    smiles = request["smiles"].strip()
    parse_molecule(smiles)
    tolerance = Tolerance(PPM, LEAST)
    if request.get("peak_ppm") is not None:
        tolerance = Tolerance.parse(request["peak_ppm"])
    rows = explain_peaks(
        spectrum, smiles, adduct=request.get("adduct"), ppm=tolerance.ppm, least=tolerance.least
    )
    molecule = describe_structure(smiles)
    drawn = structure(smiles)
    explained = [row for row in rows if row.formula is not None]
    total = float(spectrum.intensities.sum())
    share = sum(row.intensity for row in explained) / total
    candidate = {
        "rank": 1, "name": "", "smiles": smiles, "key": molecule.inchikey[:BLOCK_LENGTH],
        "formula": molecule.formula, "adduct": rows.adduct, "explained": round(share, 4),
        "count": len(explained), "st": None if drawn is None else 0,
        "pieces": packed_fragments(list(rows)),
    }  # fmt: skip
    drawing = {
        "name": spectrum.identifier,
        "precursor": round(spectrum.precursor_mz, 5),
        "all": len(spectrum),
        "peaks": packed_peaks(spectrum.mz, spectrum.intensities),
        "structures": [] if drawn is None else [drawn],
        "candidates": [candidate],
        "best": 0,
    }
    return {
        "smiles": smiles,
        "formula": molecule.formula,
        "adduct": rows.adduct,
        "explained": share,
        "peaks": [plain_data(row._asdict()) for row in rows],
        "drawing": plain_data(drawing, visible),
    }


def search_database(resources: Resources, request: Data) -> dict[str, Any]:
    """Look molecules up by name, formula, mass or structure."""
    name, kind, query = request["database"], request["kind"], request["query"]
    database = resources.database(name)
    if database is None:
        rows, total = _search_bundled(resources, kind, query, request)
    else:
        rows, total = _search_database(database, kind, query, request)
    shown = ("smiles", "key", "formula", "mass", "names", "sources", "identifiers", "similarity")
    return {
        "database": name,
        "total": total,
        "molecules": [
            {name: row[name] for name in shown if name in row} | {"structure": structure(
                row["smiles"])}
            for row in plain_data(rows, visible)
        ],
    }  # fmt: skip


def _search_database(
    database: Database, kind: str, query: str, request: Data
) -> tuple[list[dict[str, Any]], int]:
    ppm, limit = request["ppm"], request["limit"]
    if kind == "mass":
        found = database.by_mass(number(query), ppm, cap=limit)
    elif kind == "formula":
        found = database.by_formula(query, cap=limit)
    elif kind == "smiles":
        found = database.by_similarity(query, limit)
    else:
        found = database.by_name(query, limit)
    return found.table.to_pylist(), found.total


def _search_bundled(
    resources: Resources, kind: str, query: str, request: Data
) -> tuple[list[dict[str, Any]], int]:
    found = resources.bundled_molecules.search(kind, query, request["ppm"])
    first = found.rows[: request["limit"]]
    rows = resources.bundle.molecules.rows(first).to_pylist()
    if found.similarities is not None:
        pairs = zip(rows, found.similarities[: len(rows)].tolist(), strict=True)
        rows = [row | {"similarity": similarity} for row, similarity in pairs]
    return rows, len(found.rows)


def find_references(resources: Resources, request: Data) -> dict[str, Any]:
    """Look reference spectra up by name, formula, mass or structure of their molecule."""
    name, library = resources.library(request["library"])
    molecules = resources.library_molecules(name, library)
    found = molecules.search(request["kind"], request["query"], request["ppm"])
    place = np.full(len(library.molecules), -1)
    place[found.rows] = np.arange(len(found.rows))
    places = place[library.molecule_of]
    records = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
    shown = records[: request["limit"]]
    rows = _references(resources, library, shown)
    if found.similarities is not None:
        for row, at in zip(rows, places[shown].tolist(), strict=True):
            row["similarity"] = float(found.similarities[at])
    return {"library": name, "total": len(records), "references": plain_data(rows, visible)}


def _references(resources: Resources, library: Library, records: Any) -> list[dict[str, Any]]:
    """Return what is known of reference spectra, with the names of their molecules, and peaks."""
    known = library.records.take(column_of(np.asarray(records, np.int64))).to_pylist()
    indices = np.asarray(library.molecule_of[records], np.int64)
    molecules = library.molecules.take(column_of(indices)).to_pylist()
    rows = []
    for record, molecule, row in zip(records.tolist(), molecules, known, strict=True):
        start, end = library.peaks.pointers[record], library.peaks.pointers[record + 1]
        rows.append(
            {
                "name": resources.bundle.names.get(molecule["inchikey"][:BLOCK_LENGTH], ""),
                **molecule,
                "precursor_mz": float(library.ions.precursors[record]),
                **row,
                "peaks": packed_peaks(
                    np.array(library.peaks.values[start:end]),
                    np.array(library.peaks.weights[start:end]),
                ),
                "structure": structure(molecule["smiles"]),
            }
        )
    return rows


def search_library(resources: Resources, request: Data) -> dict[str, Any]:
    """Search for the reference spectra that are most similar to a spectrum."""
    spectrum = one_spectrum(request, resources)
    name, library = resources.library(request.get("library"))
    ppm = request.get("ppm")
    found = library.search(
        spectrum, request["kind"], request["limit"], precursor_ppm=ppm, threads=1
    )
    described = _references(resources, library, found.records)
    rows = [dict(row) | more for row, more in zip(found.to_table(), described, strict=True)]
    query = {"precursor": round(spectrum.precursor_mz, 5),
             "peaks": packed_peaks(spectrum.mz, spectrum.intensities)}  # fmt: skip
    return {"library": name, "query": query, "matches": plain_data(rows, visible)}


def decide(resources: Resources, request: Data) -> dict[str, Any]:
    """Decide for each objective among candidates, and compare the decisions."""
    smiles, given = request["smiles"], request["probabilities"]
    if len(smiles) != len(given):
        raise ApiError(
            "bad_probabilities",
            f"{len(given):,} probabilities for {len(smiles):,} candidates",
            "probabilities",
        )
    total = sum(given)
    if not total > 0:
        raise ApiError("bad_probabilities", "the probabilities are all 0", "probabilities")
    rows = fingerprints(smiles, request["fingerprint"])
    candidates = distribution(rows, np.array(given) / total)
    return compare_decisions(candidates).to_dict(smiles)


def trade_off(resources: Resources, request: Data) -> dict[str, Any]:
    """Return the similarity band of candidates, what decisions cost, and the bounds on it."""
    compared, similarity = decide(resources, request), request["similarity"]
    bounds = compared.pop("bounds")
    own = bounds[similarity]
    band = None if own["low"] is None else {"low": own["low"], "high": own["high"]}
    return {"similarity": similarity, "band": band, "bounds": own, "all_bounds": bounds, **compared}


TASKS: Mapping[str, Callable[[Resources, Data], dict[str, Any]]] = {
    "annotate": annotate,
    "formula": formula,
    "explain": explain,
    "search_database": search_database,
    "search_library": search_library,
    "find_references": find_references,
    "decide": decide,
    "trade_off": trade_off,
}
