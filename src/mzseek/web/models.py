"""Requests and responses of the API."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from mzseek.annotation.config import SETTINGS
from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.web.errors import ErrorDetail
from mzseek.web.settings import BUNDLED

_MEANINGS: dict[str, str] = {setting.name: str(setting.metadata["meaning"]) for setting in SETTINGS}
_CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
_PEAKS: Any = [[42.0338, 10], [69.0447, 25], [83.0604, 8], [110.0713, 40], [138.0662, 100]]
Objective = Literal["hit", "tanimoto", "cosine", "bits", "f1"]
Text = Annotated[str, Field(max_length=200)]
Positive = Annotated[FiniteFloat, Field(gt=0)]


def _option(default: Any, name: str, **more: Any) -> Any:
    return Field(default, description=_MEANINGS[name], **more)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FormulaOptions(_Strict):
    """Settings of the ranking of formulas."""

    adduct: tuple[Text, ...] = Field((), max_length=20, description=_MEANINGS["adduct"])
    ppm: Positive | Text | None = _option(None, "ppm")
    instrument: Text | None = _option(None, "instrument")
    recalibrate: Literal["auto", "off"] = _option("auto", "recalibrate")
    elements: Text = _option("CHNOPSFClBrI", "elements")
    group: Text = _option("id", "group")
    rt_window: Annotated[FiniteFloat, Field(ge=0)] = _option(10.0, "rt_window")
    rt_unit: Literal["s", "min"] | None = _option(None, "rt_unit")
    top: Annotated[int, Field(ge=1, le=1_000)] = Field(10, description="Formulas of a feature.")

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class Options(FormulaOptions):
    """Settings of an annotation: fields of `AnnotateConfig` that name no file of the server.

    ``database`` and ``library`` are names that `GET /api/v1/info` lists.
    """

    database: Text | None = Field(None, description="Name of a database of the server.")
    library: tuple[Text, ...] | None = Field(
        None, description="Names of libraries of the server; all of them by default."
    )
    objective: Objective = _option("hit", "objective")
    peak_ppm: Positive | Text | None = _option(None, "peak_ppm")
    clean: Literal["auto", "off"] = _option("auto", "clean")
    coverage: Annotated[FiniteFloat, Field(gt=0, lt=1)] = _option(0.9, "coverage")
    expected_in_database: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = _option(
        None, "expected_in_database"
    )
    strict: bool | None = _option(None, "strict")
    keep_mass_mismatches: bool = _option(False, "keep_mass_mismatches")
    formulas: dict[Text, Text] = Field({}, description="Formula by feature, where it is known.")
    prior: Literal["none", "learned"] = _option("none", "prior")
    max_candidates: Annotated[int, Field(ge=1, le=100_000)] = _option(5_000, "max_candidates")
    top: Annotated[int, Field(ge=1, le=10_000)] = _option(100, "top")
    smiles_column: Text | None = _option(None, "smiles_column")
    name_column: Text | None = _option(None, "name_column")
    columns: tuple[Text, ...] = Field((), max_length=40, description=_MEANINGS["columns"])
    class_confidence: Annotated[FiniteFloat, Field(gt=0, le=1)] = _option(0.7, "class_confidence")
    rank_formulas: bool = _option(True, "rank_formulas")
    propose: Annotated[int, Field(ge=0, le=200)] = _option(0, "propose")


class SpectrumFields(_Strict):
    """A spectrum: its peaks with the m/z of the precursor, or a text in a format of spectra."""

    peaks: list[tuple[FiniteFloat, FiniteFloat]] | None = Field(
        None, description="Pairs of m/z and intensity."
    )
    text: str | None = Field(
        None, description="Spectra as MGF, MSP and the like, or lines of m/z and intensity."
    )
    precursor_mz: Positive | None = Field(None, description="m/z of the precursor.")
    adduct: Text | None = Field(None, description="Adduct, such as [M+H]+.")
    charge: Annotated[int, Field(ge=-20, le=20)] | None = Field(None, description="With its sign.")


class AnnotateRequest(SpectrumFields):
    """What to annotate."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"peaks": _PEAKS, "precursor_mz": 195.0877, "adduct": "[M+H]+"},
                {"text": "BEGIN IONS\nPEPMASS=195.0877\n138.0662 100\nEND IONS\n",
                 "options": {"objective": "tanimoto", "top": 5}},
            ]
        }
    )  # fmt: skip
    instrument: Text | None = Field(None, description=_MEANINGS["instrument"])
    options: Options = Options.model_validate({})
    candidates: list[str] | None = Field(
        None, description="SMILES: the only candidates, instead of those of a database."
    )


class FormulaRequest(SpectrumFields):
    """A spectrum whose molecular formula is sought, without a database."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"peaks": _PEAKS, "precursor_mz": 195.0877, "adduct": "[M+H]+",
                 "ms1": [[195.0877, 100], [196.0907, 10]], "options": {"ppm": 5, "top": 3}}
            ]
        }
    )  # fmt: skip
    ms1: list[tuple[FiniteFloat, FiniteFloat]] | None = Field(
        None,
        description="Peaks of the survey scan, for the isotope pattern. A text has them in "
        "records of its own.",
    )
    options: FormulaOptions = FormulaOptions.model_validate({})


class ExplainRequest(SpectrumFields):
    """A spectrum and a molecule whose fragments may explain its peaks."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"peaks": _PEAKS, "smiles": _CAFFEINE, "precursor_mz": 195.0877,
                 "adduct": "[M+H]+"}
            ]
        }
    )  # fmt: skip
    smiles: str = Field(min_length=1)
    peak_ppm: Positive | Text | None = _option(None, "peak_ppm")


class LibrarySearchRequest(SpectrumFields):
    """A spectrum to look for among reference spectra."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"peaks": _PEAKS, "precursor_mz": 195.0877, "limit": 5}]}
    )
    library: Text | None = Field(None, description="Name of a library; that of the model else.")
    kind: Literal["cosine", "modified", "entropy", "analog"] = "cosine"
    ppm: Positive | None = Field(
        None, description="Only spectra whose precursor is as near as this."
    )
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class DecideRequest(_Strict):
    """Candidates with their probabilities; or a feature of a job, whose candidates are taken.

    Probabilities are divided by their sum.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"smiles": [_CAFFEINE, "CCn1c(=O)[nH]c2ncn(C)c2c1=O"],
                          "probabilities": [0.7, 0.3]}]
        }
    )  # fmt: skip
    smiles: list[str] | None = Field(None, min_length=1)
    probabilities: list[Annotated[FiniteFloat, Field(ge=0)]] | None = Field(
        None, min_length=1, description="One a candidate."
    )
    job: Text | None = Field(None, description="Id of a job.")
    feature: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Number of a feature of the job, from 0."
    )
    fingerprint: Text = Field("morgan2", description=f"One of {', '.join(FINGERPRINTS)}.")


class TradeOffRequest(DecideRequest):
    """Candidates with their probabilities, and the similarity that the bounds are for."""

    similarity: Literal["tanimoto", "cosine", "bits", "f1"] = "tanimoto"


class SkippedRecord(BaseModel):
    """A spectrum that was skipped, and why."""

    where: str
    reason: str


class AnnotateResponse(BaseModel):
    """Annotations.

    Each feature is the record of `mzseek annotate --out annotations.json`, with ``drawing`` and
    ``row``: the data that the report draws from.
    """

    features: list[dict[str, Any]]
    skipped: list[SkippedRecord]
    remarks: list[str] = Field(description="About all features together.")
    command: str = Field(description="The command line that gives the same annotations.")


class FeatureFormulas(BaseModel):
    """The formulas of a feature: those of `formulas` in `annotations.json`."""

    feature: str
    ionMass: float = Field(description="m/z of the precursor.")
    found: int = Field(description="Formulas that were compared, of all ions tried.")
    formulas: list[dict[str, Any]] = Field(description="The most probable first.")
    notes: list[str] = Field(description="Why there are none, or which ions were left out.")


class FormulaResponse(BaseModel):
    """Ranked formulas."""

    features: list[FeatureFormulas]
    skipped: list[SkippedRecord]
    command: str = Field(description="The command line that gives the same formulas.")


class Progress(BaseModel):
    """How far a job is: features; the total is null until all spectra are read."""

    done: int
    total: int | None


State = Literal["queued", "running", "done", "failed", "cancelled"]


class JobResponse(BaseModel):
    """A job."""

    id: str
    state: State
    progress: Progress
    error: ErrorDetail | None = None
    created: str = Field(description="ISO 8601, UTC.")
    expires: str = Field(description="When the job and its results are removed.")
    options: dict[str, Any]
    files: list[str] = Field(description="Names of the files that were uploaded.")
    command: str
    summary: dict[str, Any] | None = Field(
        None, description="When it is done: counts, levels, remarks, the first skipped records."
    )
    formats: list[str] = Field(description="Formats in which results can be downloaded.")


class JobCreated(BaseModel):
    """Where a new job is."""

    id: str
    url: str


class JobList(BaseModel):
    """Jobs of this browser, the newest first."""

    jobs: list[JobResponse]


class RowsResponse(BaseModel):
    """Rows of finished features, in the order of the features."""

    offset: int
    total: int = Field(description="Rows that there are so far.")
    rows: list[dict[str, Any]]


class ExplainResponse(BaseModel):
    """Peaks with the fragments that explain them."""

    smiles: str
    formula: str
    adduct: str
    explained: float = Field(description="Share of the intensity that is explained.")
    peaks: list[dict[str, Any]]
    drawing: dict[str, Any]


class MoleculesResponse(BaseModel):
    """Molecules that were found; `total` counts those left out, too."""

    database: str
    total: int
    molecules: list[dict[str, Any]]


class ReferencesResponse(BaseModel):
    """Reference spectra that were found; `total` counts those left out, too."""

    library: str
    total: int
    references: list[dict[str, Any]]


class MatchesResponse(BaseModel):
    """Reference spectra that are similar, the most similar first."""

    library: str
    matches: list[dict[str, Any]]


class DecideResponse(BaseModel):
    """Decisions by objective.

    ``expected[u][v]`` is the expected utility ``u`` of the decision for ``v``, ``regret[u][v]``
    what is lost of it.
    """

    decisions: dict[str, dict[str, Any]]
    expected: dict[str, dict[str, float]]
    regret: dict[str, dict[str, float]]


class TradeOffResponse(BaseModel):
    """Similarity band, what each decision costs, and the bounds on it."""

    similarity: str
    band: dict[str, float] | None = Field(description="Null for a single candidate.")
    bounds: dict[str, Any]
    expected: dict[str, dict[str, float]]
    regret: dict[str, dict[str, float]]
    decisions: dict[str, dict[str, Any]]


class InfoResponse(BaseModel):
    """What this server has, and what it accepts."""

    version: str
    databases: dict[str, str]
    default_database: str
    libraries: list[str]
    limits: dict[str, float]


class HealthResponse(BaseModel):
    """Whether annotations can be made."""

    status: Literal["loading", "ready", "failed"]
    version: str
    workers: int
    reason: str | None = None


def command_line(
    inputs: Sequence[str],
    options: Mapping[str, Any],
    candidates: str | None = None,
    model: str | None = None,
    out: str = "answers",
) -> str:
    """Return the command that makes the same annotations.

    Examples
    --------
    >>> command_line(["my file.mgf"], {"ppm": 5.0, "adduct": ["[M+H]+"], "strict": True})
    "mzseek annotate 'my file.mgf' --adduct '[M+H]+' --ppm 5 --strict --out answers"
    """
    words = ["mzseek", "annotate", *inputs]
    given = dict(options)
    if candidates is not None:
        given["database"] = candidates
    elif given.get("database") == BUNDLED:
        del given["database"]
    if model is not None:
        words += ["--model", Path(model).name]
    if formulas := given.pop("formulas", None):
        words += ["--formulas", f"TABLE-OF-{len(formulas)}-FORMULAS.tsv"]
    return shlex.join([*words, *_words(given), "--out", out])


def formula_command_line(inputs: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the command that ranks formulas in the same way.

    Examples
    --------
    >>> formula_command_line(["a.mgf"], {"ppm": 5.0, "top": 100})
    'mzseek formula a.mgf --ppm 5 --top 100 --out formulas.tsv'
    """
    given = dict(options)
    top = given.pop("top", None)
    more = [] if top is None else ["--top", str(top)]
    return shlex.join(
        ["mzseek", "formula", *inputs, *_words(given), *more, "--out", "formulas.tsv"]
    )


def _words(options: Mapping[str, Any]) -> list[str]:
    """Return options of a command, those left out that have their default."""
    words: list[str] = []
    for setting in SETTINGS:
        value, option = options.get(setting.name), "--" + setting.name.replace("_", "-")
        if value is None or value == setting.default:
            continue
        if isinstance(value, bool):
            words.append(option if value else "--no-" + option[2:])
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option, f"{each:g}" if isinstance(each, float) else str(each)]
    return words
