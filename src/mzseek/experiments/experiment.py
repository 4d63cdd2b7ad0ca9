"""An experiment: rows, columns, published numbers, claims; read from its data file."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mzseek.core.errors import ExperimentError, require
from mzseek.core.registry import check_name
from mzseek.io import StrPath

Number = tuple[float, float | None]  # as printed: a mean, and a standard deviation if there is one
Settings = Mapping[str, Any]

FOLDS = ("val", "test", "all")


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes
    ----------
    key, label : str
    settings : mapping
        What is trained or measured for it: ``loss``, ``model``, ``candidates``, ``fingerprint``,
        ``similarity``, options of parts such as ``loss.gamma``. A list of values is tuned over.
    in_columns : mapping of str to mapping
        Settings that differ for a column.
    is_literature : bool
        Carried as published, never measured here.
    is_control : bool
        It never sees the spectrum.
    scales : mapping of str to mapping
        What a scale changes for this row alone.
    """

    key: str
    label: str
    settings: Settings = field(default_factory=dict)
    in_columns: Mapping[str, Settings] = field(default_factory=dict)
    is_literature: bool = False
    is_control: bool = False
    scales: Mapping[str, Settings] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes
    ----------
    key, label, group : str
        The group is a second heading above several columns.
    metric : str
        What is measured, in the words of the experiment's kind.
    candidates : str or None
        Lists on which it is measured.
    settings : mapping
        As a row's, for columns that stand for models of their own.
    unit : str
        ``%`` (values are fractions), or nothing.
    rows : tuple of str or None
        Rows that have a value here; None for all.
    """

    key: str
    label: str
    metric: str
    group: str = ""
    candidates: str | None = None
    settings: Settings = field(default_factory=dict)
    unit: str = "%"
    rows: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that numbers can bear out or not.

    Attributes
    ----------
    says : str
    kind : str
        A name in `mzseek.experiments.results.CHECKS`.
    details : mapping
        What that kind of claim is about: rows, columns.
    """

    says: str
    kind: str
    details: Settings


@dataclass(frozen=True)
class Scale:
    """How much of the protocol is run.

    Attributes
    ----------
    name : str
    lr : tuple of float or None
        Learning rates to choose from; None for the experiment's own.
    seeds : int or None
    epochs : int or None
    listwise_epochs : int or None
        Of losses that read candidate lists, which learn faster and cost more.
    protocol : str
        ``paper`` or ``auto``, as `mzseek train --protocol`.
    settings : mapping
        Options of parts that every run gets, such as a smaller width.
    most_lists : int or None
        Candidate lists that bands are measured on, evenly spaced; None for all.
    tests_claims : bool
        Whether models are trained for long enough that their numbers mean something.
    """

    name: str
    lr: tuple[float, ...] | None = None
    seeds: int | None = None
    epochs: int | None = None
    listwise_epochs: int | None = None
    protocol: str = "paper"
    settings: Settings = field(default_factory=dict)
    most_lists: int | None = None
    tests_claims: bool = True


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name, title, about : str
    paper : str
        The table or figure, with its label in the paper's source.
    kind : str
        A name in `mzseek.experiments.kinds.KINDS`.
    fold : str
        Whose scores the published numbers are, and the measured ones.
    lr : tuple of float
    seeds, epochs : int
    select : str
        Validation metric by whose mean over seeds the learning rate is chosen.
    rows, columns : tuple
    published : mapping of row to mapping of column to Number
    texts : mapping of row to mapping of column to str
        What is published there, where it is no number: a fingerprint's bits.
    given : mapping
        What a theory starts from, such as a distribution.
    claims : tuple of Claim
    scales : mapping of str to mapping
        What a scale changes: fields of `Scale`, and ``rows`` to keep.
    figure : mapping
        What is drawn: ``kind`` and its columns; empty for no figure.
    footnotes : tuple of str
    order : int
        Its place among the experiments of the paper.
    """

    name: str
    title: str
    about: str
    paper: str
    kind: str
    fold: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    lr: tuple[float, ...] = ()
    seeds: int = 1
    epochs: int = 50
    select: str = "hit_rate@20"
    published: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    given: Settings = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    scales: Mapping[str, Settings] = field(default_factory=dict)
    figure: Settings = field(default_factory=dict)
    footnotes: tuple[str, ...] = ()
    order: int = 0

    def row(self, key: str) -> Row:
        """The row of that key."""
        return next(row for row in self.rows if row.key == key)

    def column(self, key: str) -> Column:
        """The column of that key."""
        return next(column for column in self.columns if column.key == key)

    def has_cell(self, row: Row, column: Column) -> bool:
        """Whether the table has a number there at all."""
        return column.rows is None or row.key in column.rows

    def at(self, scale: Scale) -> tuple["Experiment", Scale]:
        """The experiment as a scale has it: with fewer rows, and what it changes of the scale."""
        own = dict(self.scales.get(scale.name, {}))
        kept = own.pop("rows", None)
        rows = self.rows if kept is None else tuple(row for row in self.rows if row.key in kept)
        return replace(self, rows=rows), replace(scale, **own)

    def reductions(self, scale: Scale) -> list[str]:
        """What a scale leaves out of the protocol, in words; nothing at full scale."""
        cut, here = self.at(scale)
        said = []
        left = [row.label for row in self.rows if row not in cut.rows]
        if left:
            said.append(f"without the rows {', '.join(left)}")
        if self.lr and here.lr is not None and here.lr != self.lr:
            said.append(f"learning rates {_listed(here.lr)} of {_listed(self.lr)}")
        if self.lr and here.seeds is not None and here.seeds < self.seeds:
            said.append(f"{here.seeds} of {self.seeds} seeds")
        if self.lr and here.epochs is not None and here.epochs < self.epochs:
            listwise = here.listwise_epochs or here.epochs
            apart = f" ({listwise} for listwise losses)" if listwise != here.epochs else ""
            said.append(f"epochs: {here.epochs}{apart} of {self.epochs}")
        if self.lr and here.protocol != "paper":
            said.append("warm-up, validations and bias that follow the number of steps")
        if self.lr and here.settings:
            options = ", ".join(f"{name}={value}" for name, value in here.settings.items())
            said.append(f"smaller models ({options})")
        if here.most_lists is not None and self.kind == "bands":
            said.append(f"at most {here.most_lists:,} lists")
        return said


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


_SCALES = "scales.yaml"
_MOST_BYTES = 1_000_000
_TOP = {
    "title", "about", "paper", "kind", "fold", "protocol", "rows", "columns", "published",
    "given", "claims", "scales", "figure", "footnotes", "order",
}  # fmt: skip
_ROW = {"label", "in_columns", "literature", "control", "scales"}
_COLUMN = {"label", "metric", "group", "candidates", "unit", "rows"}
_SCALE = {field.name for field in fields(Scale)} - {"name"}


@cache
def names() -> tuple[str, ...]:
    """Experiments that come with mzseek, in the order of the paper."""
    found = [
        path.name
        for path in files("mzseek").joinpath("data", "experiments").iterdir()
        if path.name.endswith(".yaml")
    ]
    own = [name.removesuffix(".yaml") for name in found if name != _SCALES]
    return tuple(sorted(own, key=lambda name: (_of_ours(name).order, name)))


def experiment_named(name: str) -> Experiment:
    """The experiment of that name.

    Raises
    ------
    ExperimentError
        There is none; the message lists those there are.
    """
    check_name(names(), name, "experiment", ExperimentError)
    return _of_ours(name)


@cache
def _of_ours(name: str) -> Experiment:
    text = (files("mzseek").joinpath("data", "experiments") / f"{name}.yaml").read_text("utf-8")
    return _experiment(name, _parsed(text, f"{name}.yaml"), f"{name}.yaml")


def read_experiment(path: StrPath) -> Experiment:
    """An experiment of one's own, from a file in the same form."""
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ExperimentError(f"{path}: has more than {_MOST_BYTES:,} bytes")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read ({error})") from error
    return _experiment(path.stem, _parsed(text, str(path)), str(path))


@cache
def scales() -> Mapping[str, Scale]:
    """How much can be run: ``smoke``, ``laptop``, ``paper``."""
    table = _mapping(
        _parsed(
            (files("mzseek").joinpath("data", "experiments") / _SCALES).read_text("utf-8"), _SCALES
        ),
        _SCALES,
    )
    return {name: Scale(name, **_scale(own, f"{_SCALES}: {name}")) for name, own in table.items()}


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    check_name(scales(), name, "scale", ExperimentError)
    return scales()[name]


def _parsed(text: str, where: str) -> Any:
    require("yaml", "reading an experiment")
    import yaml

    try:
        return yaml.load(text, _loader(yaml))
    except (yaml.YAMLError, ExperimentError, RecursionError) as error:
        raise ExperimentError(f"{where}: {' '.join(str(error).split())[:200]}") from error


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader, that also refuses a key that stands twice."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ExperimentError(f"{twice!r} stands twice below line {line}")
            return super().construct_mapping(node, deep)

    return Loader


def _experiment(name: str, table: Any, where: str) -> Experiment:
    table = _mapping(table, where)
    _known(table, _TOP, where)
    for needed in ("title", "paper", "kind", "fold", "rows", "columns"):
        if needed not in table:
            raise ExperimentError(f"{where}: {needed} is missing")
    check_name(FOLDS, table["fold"], f"{where}: fold", ExperimentError)
    protocol = _mapping(table.get("protocol", {}), f"{where}: protocol")
    _known(protocol, {"lr", "seeds", "epochs", "select"}, f"{where}: protocol")
    rows = _each(table["rows"], f"{where}: rows", _row)
    columns = _each(table["columns"], f"{where}: columns", _column)
    keys = [row.key for row in rows], [column.key for column in columns]
    claims = tuple(
        _claim(claim, f"{where}: claim {place}")
        for place, claim in enumerate(table.get("claims", []), 1)
    )
    made = {
        key: _scale(own, f"{where}: scales: {key}", "rows")
        for key, own in _mapping(table.get("scales", {}), f"{where}: scales").items()
    }
    numbers, texts = _published(table.get("published") or {}, keys, f"{where}: published")
    return Experiment(
        name=name, title=table["title"], about=str(table.get("about", "")).strip(),
        paper=str(table["paper"]), kind=table["kind"], fold=table["fold"], rows=rows,
        columns=columns, lr=_numbers(protocol.get("lr", ()), f"{where}: protocol: lr"),
        **{key: protocol[key] for key in ("seeds", "epochs", "select") if key in protocol},
        published=numbers, texts=texts, given=_mapping(table.get("given", {}), f"{where}: given"),
        claims=claims, scales=made, figure=_mapping(table.get("figure", {}), f"{where}: figure"),
        footnotes=tuple(table.get("footnotes", ())), order=int(table.get("order", 0)),
    )  # fmt: skip


def _each(table: Any, where: str, make: Callable[[str, Any, str], Any]) -> tuple[Any, ...]:
    table = _mapping(table, where)
    if not table:
        raise ExperimentError(f"{where}: is empty")
    return tuple(make(str(key), value, f"{where}: {key}") for key, value in table.items())


def _row(key: str, table: Any, where: str) -> Row:
    table = _mapping(table or {}, where)
    inside = _mapping(table.get("in_columns", {}), f"{where}: in_columns")
    scaled = _mapping(table.get("scales", {}), f"{where}: scales")
    return Row(
        key=key, label=str(table.get("label", key)), settings=_settings(table, _ROW, where),
        in_columns={key: _settings(own, set(), f"{where}: {key}") for key, own in inside.items()},
        is_literature=bool(table.get("literature", False)),
        is_control=bool(table.get("control", False)),
        scales={name: _scale(own, f"{where}: scales: {name}") for name, own in scaled.items()},
    )  # fmt: skip


def _column(key: str, table: Any, where: str) -> Column:
    table = _mapping(table or {}, where)
    if "metric" not in table:
        raise ExperimentError(f"{where}: metric is missing")
    rows = table.get("rows")
    return Column(
        key=key, label=str(table.get("label", key)), metric=str(table["metric"]),
        group=str(table.get("group", "")), candidates=table.get("candidates"),
        settings=_settings(table, _COLUMN, where), unit=str(table.get("unit", "%")),
        rows=None if rows is None else tuple(str(row) for row in rows),
    )  # fmt: skip


def _settings(table: Any, others: set[str], where: str) -> dict[str, Any]:
    """What is not about the table itself; fractions such as 1/256 become numbers."""
    return {
        name: _value(value, f"{where}: {name}")
        for name, value in _mapping(table, where).items()
        if name not in others
    }


def _value(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return tuple(_value(each, where) for each in value)
    if isinstance(value, str) and "/" in value:
        try:
            return float(Fraction(value))
        except (ValueError, ZeroDivisionError):
            return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ExperimentError(f"{where}: is {value}, expected a finite number")
    return value


def _claim(table: Any, where: str) -> Claim:
    table = dict(_mapping(table, where))
    says = table.pop("says", None)
    if not says or len(table) != 1:
        raise ExperimentError(f"{where}: expected says, and one way to check it")
    [(kind, details)] = table.items()
    return Claim(str(says), str(kind), _mapping(details, f"{where}: {kind}"))


def _scale(table: Any, where: str, *more: str) -> dict[str, Any]:
    found = _mapping(table or {}, where)
    _known(found, _SCALE | set(more), where)
    if "lr" in found:
        found["lr"] = _numbers(found["lr"], f"{where}: lr")
    if "rows" in found:
        found["rows"] = tuple(str(row) for row in found["rows"])
    return found


def _published(
    table: Any, keys: tuple[list[str], list[str]], where: str
) -> tuple[dict[str, dict[str, Number]], dict[str, dict[str, str]]]:
    """Published numbers, and texts, by row and column."""
    numbers: dict[str, dict[str, Number]] = {}
    texts: dict[str, dict[str, str]] = {}
    for row, values in _mapping(table, where).items():
        check_name(keys[0], str(row), f"{where}: row", ExperimentError)
        numbers[str(row)], texts[str(row)] = {}, {}
        for column, value in _mapping(values, f"{where}: {row}").items():
            check_name(keys[1], str(column), f"{where}: {row}: column", ExperimentError)
            if isinstance(value, str):
                texts[str(row)][str(column)] = value
            elif value is not None:
                numbers[str(row)][str(column)] = _printed(value, f"{where}: {row}: {column}")
    return numbers, texts


def _printed(value: Any, where: str) -> Number:
    """A mean, or a mean with its standard deviation."""
    values = value if isinstance(value, list) else [value, None]
    if len(values) != 2 or not isinstance(values[0], int | float) or isinstance(values[0], bool):
        raise ExperimentError(
            f"{where}: is {value!r}, expected a number, [mean, sd] or a text in quotes"
        )
    return float(values[0]), None if values[1] is None else float(values[1])


def _numbers(value: Any, where: str) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(each, int | float) and each > 0 for each in values):
        raise ExperimentError(f"{where}: is {value!r}, expected numbers above 0")
    return tuple(float(each) for each in values)


def _mapping(table: Any, where: str) -> dict[Any, Any]:
    if not isinstance(table, Mapping):
        raise ExperimentError(f"{where}: is {type(table).__name__}, expected names with values")
    return dict(table)


def _known(table: Mapping[Any, Any], known: set[str], where: str) -> None:
    for name in table:
        check_name(sorted(known), name, f"{where}: entry", ExperimentError)
