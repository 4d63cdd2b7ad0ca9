"""An experiment: rows, columns, published numbers, claims; read from its data file."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from mzseek.core.errors import ExperimentError, require
from mzseek.core.registry import check_name
from mzseek.io import StrPath

T = TypeVar("T")
Number = tuple[float, float | None]  # as printed: a mean, and a standard deviation if there is one
Printed = Number | str  # a text is such as a fingerprint's bits
_CONFIG = ConfigDict(extra="forbid")


def _setting(value: Any) -> Any:
    """Turn fractions such as 1/256 into numbers, lists into tuples."""
    if isinstance(value, list):
        return tuple(_setting(item) for item in value)
    if isinstance(value, str) and "/" in value:
        try:
            return float(Fraction(value))
        except (ValueError, ZeroDivisionError):
            return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"is {value}, expected a finite number")
    return value


def _with_key(fields: set[str]) -> Any:
    """Turn a mapping of keys to tables into tables; what is no field becomes a setting."""

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if not value:
            raise ValueError("is empty")
        return tuple(
            {
                "key": str(key),
                "label": str(key),
                "settings": {name: v for name, v in (table or {}).items() if name not in fields},
                **{name: v for name, v in (table or {}).items() if name in fields},
            }
            for key, table in value.items()
        )

    return BeforeValidator(convert)


def _claim(value: Any) -> Any:
    if isinstance(value, Mapping):
        texts = [name for name in value if name in ("says", "adds")]
        checks = [name for name in value if name not in texts]
        if len(texts) != 1 or len(checks) != 1:
            raise ValueError("expected says or adds, and one way to check it")
        [text], [kind] = texts, checks
        by_paper = text == "says"
        return {"says": value[text], "kind": kind, "details": value[kind], "by_paper": by_paper}
    return value


def _printed(table: Any) -> dict[str, dict[str, Printed]]:
    """Turn published numbers, [mean, sd] and texts into one form; null is nothing."""

    def convert(value: Any) -> Printed:
        if isinstance(value, str):
            return value
        mean, sd, *more = value if isinstance(value, list | tuple) else (value, None)
        if more or not isinstance(mean, int | float):
            raise ValueError(f"{value!r}: expected a number, [mean, sd] or a text in quotes")
        return float(mean), None if sd is None else float(sd)

    return {
        str(row): {str(key): convert(value) for key, value in values.items() if value is not None}
        for row, values in (table or {}).items()
    }


Settings = Annotated[
    Mapping[str, Any],
    AfterValidator(lambda table: {name: _setting(value) for name, value in table.items()}),
]
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda v: tuple(map(str, v)))]
Rates = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...],
    BeforeValidator(lambda v: v if isinstance(v, list | tuple) else (v,)),
]


@dataclass(frozen=True, config=_CONFIG)
class Scale:
    """How much of the protocol is run; None for the experiment's own value.

    Losses that read candidate lists have ``listwise_epochs``: they learn faster and cost more. The
    ``protocol`` is ``paper`` or ``auto``, as `mzseek train --protocol`; ``settings`` are options of
    components that every run gets, such as a smaller width. Bands are measured on ``most_lists``
    candidate lists, evenly spaced. ``tests_claims`` says whether models are trained for long enough
    that their numbers mean something. The ``variant`` is one in `VARIANTS`.
    """

    name: str
    variant: str = "text"
    lr: Rates | None = None
    seeds: int | None = None
    epochs: int | None = None
    listwise_epochs: int | None = None
    protocol: str = "paper"
    settings: Settings = Field(default_factory=dict)
    most_lists: int | None = None
    tests_claims: bool = True

    @property
    def label(self) -> str:
        """Name of the scale, and of a variant that is not the usual one."""
        return self.name if self.variant == "text" else f"{self.name}-{self.variant}"


# The paper's equation has three blocks between four matrices; the authors' code builds two, and the
# published numbers belong to these.
VARIANTS: dict[str, tuple[Mapping[str, Any], str]] = {
    "text": ({}, "Protocol variant text: the encoder has three blocks, as the paper's equation."),
    "published": (
        {"encoder.blocks": 2},
        "Protocol variant published: the encoder has two blocks, as the authors' code builds it; "
        "the published numbers belong to it.",
    ),
}


def with_variant(scale: Scale, variant: str) -> Scale:
    """Return a scale in one of `VARIANTS`."""
    check_name(VARIANTS, variant, "variant", ExperimentError)
    return replace(scale, variant=variant)


def _scale_changes(value: Any) -> Any:
    """Check what a scale changes (``rows`` are those to keep), and keep what is given only."""
    changes = {name: v for name, v in (value or {}).items() if name != "rows"}
    checked = TypeAdapter(Scale).validate_python({"name": "", **changes})
    rows = {"rows": tuple(map(str, value["rows"]))} if "rows" in (value or {}) else {}
    return {name: getattr(checked, name) for name in changes} | rows


ScaleChanges = Annotated[Mapping[str, Any], BeforeValidator(_scale_changes)]


@dataclass(frozen=True, config=_CONFIG)
class Row:
    """A row of the table.

    ``settings`` say what is trained or measured for it: ``loss``, ``model``, ``candidates``,
    ``fingerprint``, ``similarity``, options of components such as ``loss.gamma``; a list of values
    is tuned over. ``in_columns`` are settings that differ for a column, ``scales`` what a scale
    changes for this row alone. A row of the ``literature`` is carried as published, never measured
    here; a ``control`` never sees the spectrum.
    """

    key: str
    label: str
    settings: Settings = Field(default_factory=dict)
    in_columns: Mapping[str, Settings] = Field(default_factory=dict)
    literature: bool = False
    control: bool = False
    scales: Mapping[str, ScaleChanges] = Field(default_factory=dict)


@dataclass(frozen=True, config=_CONFIG)
class Column:
    """A column of the table.

    ``metric`` is measured on the lists ``candidates``; the ``group`` is a second heading above
    several columns, ``settings`` are as a row's, for columns that stand for models of their own.
    The ``unit`` is ``%`` (values are fractions) or empty, and ``rows`` are those that have a value
    here, None for all.
    """

    key: str
    label: str
    metric: str
    group: str = ""
    candidates: str | None = None
    settings: Settings = Field(default_factory=dict)
    unit: str = "%"
    rows: Texts | None = None


@dataclass(frozen=True, config=_CONFIG)
class Claim:
    """A sentence that numbers can support or not; the paper's own if ``by_paper``.

    ``kind`` is a name in `mzseek.experiments.claims.CLAIM_CHECKS`, ``details`` are its arguments.
    """

    says: str
    kind: str
    details: Mapping[str, Any]
    by_paper: bool = True


@dataclass(frozen=True, config=_CONFIG)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    paper : str
        The table or figure, with its label in the paper's source.
    kind : str
        A name in `mzseek.experiments.kinds.KINDS`.
    fold : str
        Whose scores the published numbers are, and the measured ones.
    lr, seeds, epochs
        Of the protocol.
    first_lr : float, optional
        One of the learning rates, at which options with several values are chosen first; the other
        rates are then run with these. None for every combination.
    select : str
        Validation metric by whose mean over seeds the learning rate is chosen.
    published : mapping of row to mapping of column to Printed
    given : mapping
        What a theory starts from, such as a distribution.
    scales : mapping of str to mapping
        What a scale changes: fields of `Scale`, and ``rows`` to keep.
    figure : mapping
        What is drawn: ``kind`` and its columns; empty for no figure.
    order : int
        Its place among the experiments of the paper.
    """

    name: str
    title: str
    paper: str
    kind: str
    fold: Literal["val", "test", "all"]
    rows: Annotated[
        tuple[Row, ...], _with_key({"label", "in_columns", "literature", "control", "scales"})
    ]
    columns: Annotated[
        tuple[Column, ...], _with_key({"label", "metric", "group", "candidates", "unit", "rows"})
    ]
    about: Annotated[str, AfterValidator(str.strip)] = ""
    lr: Rates = ()
    first_lr: float | None = None
    seeds: int = 1
    epochs: int = 50
    select: str = "hit_rate@20"
    published: Annotated[Mapping[str, Mapping[str, Printed]], BeforeValidator(_printed)] = Field(
        default_factory=dict
    )
    given: Mapping[str, Any] = Field(default_factory=dict)
    claims: tuple[Annotated[Claim, BeforeValidator(_claim)], ...] = ()
    scales: Mapping[str, ScaleChanges] = Field(default_factory=dict)
    figure: Mapping[str, Any] = Field(default_factory=dict)
    footnotes: Texts = ()
    order: int = 0

    def row(self, key: str) -> Row:
        """Return the row of that key."""
        return next(row for row in self.rows if row.key == key)

    def column(self, key: str) -> Column:
        """Return the column of that key."""
        return next(column for column in self.columns if column.key == key)

    def has_cell(self, row: Row, column: Column) -> bool:
        """Whether the table has a number there at all."""
        return column.rows is None or row.key in column.rows

    def at(self, scale: Scale) -> tuple["Experiment", Scale]:
        """Return the experiment with the rows of a scale, and the scale with its changes."""
        changes = dict(self.scales.get(scale.name, {}))
        keys = changes.pop("rows", None)
        rows = self.rows if keys is None else tuple(row for row in self.rows if row.key in keys)
        return replace(self, rows=rows), replace(scale, **changes)

    def reductions(self, scale: Scale) -> list[str]:
        """List what a scale leaves out of the protocol; nothing at full scale."""
        cut, here = self.at(scale)
        reductions = []
        left_out = [row.label for row in self.rows if row not in cut.rows]
        if left_out:
            reductions.append(f"without the rows {', '.join(left_out)}")
        if self.lr and here.lr is not None and here.lr != self.lr:
            rates = [", ".join(f"{rate:g}" for rate in lr) for lr in (here.lr, self.lr)]
            reductions.append(f"learning rates {rates[0]} of {rates[1]}")
        if self.lr and here.seeds is not None and here.seeds < self.seeds:
            reductions.append(f"{here.seeds} of {self.seeds} seeds")
        if self.lr and here.epochs is not None and here.epochs < self.epochs:
            listwise = here.listwise_epochs or here.epochs
            apart = f" ({listwise} for listwise losses)" if listwise != here.epochs else ""
            reductions.append(f"epochs: {here.epochs}{apart} of {self.epochs}")
        if self.lr and here.protocol != "paper":
            reductions.append("warm-up, validations and bias that follow the number of steps")
        if self.lr and here.settings:
            options = ", ".join(f"{name}={value}" for name, value in here.settings.items())
            reductions.append(f"smaller models ({options})")
        if here.most_lists is not None and self.kind == "bands":
            reductions.append(f"at most {here.most_lists:,} lists")
        return reductions


_FOLDER = files("mzseek").joinpath("data", "experiments")
_SCALES = "scales.yaml"
_MAX_BYTES = 1_000_000


@cache
def names() -> tuple[str, ...]:
    """Return the experiments that come with mzseek, in the order of the paper."""
    stems = (path.name.removesuffix(".yaml") for path in _FOLDER.iterdir())
    bundled = [name for name in stems if f"{name}.yaml" != _SCALES and "." not in name]
    return tuple(sorted(bundled, key=lambda name: (_bundled(name).order, name)))


def experiment_named(name: str) -> Experiment:
    """Return the experiment of that name; an unknown one is refused with the list of names."""
    check_name(names(), name, "experiment", ExperimentError)
    return _bundled(name)


@cache
def _bundled(name: str) -> Experiment:
    file = f"{name}.yaml"
    return _experiment(name, (_FOLDER / file).read_text("utf-8"), file)


def read_experiment(path: StrPath) -> Experiment:
    """Read an experiment of one's own, from a file in the same form."""
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ExperimentError(f"{path}: has more than {_MAX_BYTES:,} bytes")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read ({error})") from error
    return _experiment(path.stem, text, str(path))


@cache
def scales() -> Mapping[str, Scale]:
    """Return how much can be run: ``smoke``, ``laptop``, ``paper``."""
    table = _parse((_FOLDER / _SCALES).read_text("utf-8"), _SCALES)
    named = {name: {"name": name, **scale} for name, scale in table.items()}
    return _validate(dict[str, Scale], named, _SCALES)


def scale_named(name: str) -> Scale:
    """Return the scale of that name."""
    check_name(scales(), name, "scale", ExperimentError)
    return scales()[name]


def _experiment(name: str, text: str, where: str) -> Experiment:
    table = _parse(text, where)
    if not isinstance(table, dict):
        raise ExperimentError(f"{where}: is {type(table).__name__}, expected names with values")
    protocol = table.pop("protocol", {})
    experiment = _validate(Experiment, {**table, **protocol, "name": name}, where)
    for row, values in experiment.published.items():
        at = f"{where}: published"
        check_name([row.key for row in experiment.rows], row, f"{at}: row", ExperimentError)
        for column in values:
            keys = [column.key for column in experiment.columns]
            check_name(keys, column, f"{at}: {row}: column", ExperimentError)
    return experiment


def _parse(text: str, where: str) -> Any:
    require("yaml", "reading an experiment")
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """The safe loader, that also refuses a key that stands twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next((key for n, key in enumerate(keys) if key in keys[:n]), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ExperimentError(f"{twice!r} stands twice below line {line}")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ExperimentError, RecursionError) as error:
        raise ExperimentError(f"{where}: {' '.join(str(error).split())[:200]}") from error


def _validate(kind: type[T], table: Any, where: str) -> T:
    try:
        return TypeAdapter(kind).validate_python(table)
    except ValidationError as error:
        first = min(error.errors(), key=lambda problem: "unexpected" not in problem["type"])
        at = ": ".join(str(part) for part in first["loc"])
        raise ExperimentError(f"{where}: {at}: {first['msg'][:200]}") from error
