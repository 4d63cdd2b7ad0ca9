"""An experiment: a table that is asked for, the published numbers, and what they are said to show.

Nothing here runs anything; `mzseek.experiments.reading` makes these from data files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
        A name in `mzseek.experiments.claims.CHECKS`.
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
        A name in `mzseek.experiments.registry.KINDS`.
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
