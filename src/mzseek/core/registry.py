"""Registries of components chosen by name, and the options of each component.

Options are dataclasses checked here, not pydantic models: importing pydantic would take half of the
start-up time of ``mzseek --help``.
"""

import dataclasses
import importlib
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

FOLDS = ("train", "val", "test")
PUBLIC_SETS = ("massspecgym",)  # data sets that can be downloaded
Ties = Literal["expected", "optimistic", "pessimistic"]  # what equal scores mean for a hit
TIES: tuple[Ties, ...] = get_args(Ties)
IDENTITIES = ("fingerprint", "inchikey")  # when a candidate is the truth
POOLED_BY = ("molecule",)  # what spectra that are scored together have in common
EQUAL_IN = ("mass", "formula")  # what a molecule shares with its candidates and negatives
MINED = ("hardest", "random")  # which of the mined negatives are kept
# Similarities of a predicted fingerprint that candidates can be ranked by.
RANKED_BY = ("cosine", "tanimoto", "soft-tanimoto", "minmax-tanimoto")

T = TypeVar("T")

_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    NoneType: "nothing",
}
_BOUNDS = {
    "at_least": operator.ge,
    "above": operator.gt,
    "at_most": operator.le,
    "below": operator.lt,
}
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def choose(
    registry: Mapping[str, T], name: str, what: str, error: type[Exception] = ValueError
) -> T:
    """Return the entry of a registry; an unknown name is refused with a list of the known ones.

    Examples
    --------
    >>> choose({"a": 1, "b": 2}, "c", "letter")
    Traceback (most recent call last):
    ValueError: letter 'c' is unknown, expected one of: a, b
    """
    check_name(registry, name, what, error)
    return registry[name]


def check_name(
    names: Collection[str], name: object, what: str, error: type[Exception] = ValueError
) -> None:
    """Raise ``error`` with the list of known names if ``name`` is none of them."""
    if not isinstance(name, str) or name not in names:
        raise error(f"{what} {_short(name, 80)} is unknown, expected one of: {', '.join(names)}")


def load(code: str) -> Any:
    """Import and return ``module:name``."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)


class LazyRegistry(Mapping[str, T]):
    """Registry of ``module:name`` strings whose entries are imported when first used.

    Examples
    --------
    >>> numbers = LazyRegistry({"pi": "math:pi"})
    >>> list(numbers), numbers["pi"]
    (['pi'], 3.141592653589793)
    """

    def __init__(self, code: Mapping[str, str]) -> None:
        self.code = dict(code)

    def __getitem__(self, name: str) -> T:
        component: T = load(self.code[name])
        return component

    def __iter__(self) -> Iterator[str]:
        return iter(self.code)

    def __len__(self) -> int:
        return len(self.code)


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` that imports the names of a package on first use.

    ``modules`` has, by module of the package, the names that it offers, separated by spaces.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = load(f"{package}.{module_of[name]}:{name}")
        setattr(sys.modules[package], name, value)
        return value

    return find


def option(
    default: Any,
    meaning: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    among: Collection[str] | None = None,
    finite: bool = True,
    **command_line: Any,
) -> Any:
    """Declare a field of an options dataclass.

    Its range includes ``at_least`` and ``at_most`` and excludes ``above`` and ``below``; ``among``
    lists the names that it can have; ``finite=False`` allows infinity. ``meaning`` is for people.
    On the command line it may have another type (``option``) and name (``flag``).
    """
    bounds = {"at_least": at_least, "above": above, "at_most": at_most, "below": below}
    limits = {"meaning": meaning, "among": among, "finite": finite, **bounds}
    return field(default=default, metadata=limits | command_line)


@dataclass(frozen=True)
class NoOptions:
    """Options of a component that has none."""


def options_from(
    kind: type[T], table: Mapping[str, Any], whose: str, error: type[Exception] = ValueError
) -> T:
    """Make an options dataclass from plain data; what is missing has its default.

    ``whose`` names the component in messages (``loss focal``) and may be empty.

    Raises
    ------
    error
        An option is unknown, of another type, or out of its range.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Focal:
    ...     gamma: float = option(2.0, "γ", at_least=0)
    >>> options_from(Focal, {}, "loss focal"), options_from(Focal, {"gamma": 3}, "loss focal")
    (Focal(gamma=2.0), Focal(gamma=3.0))
    >>> options_from(Focal, {"delta": 3}, "loss focal")
    Traceback (most recent call last):
    ValueError: loss focal: option 'delta' is unknown, expected one of: gamma
    """
    hints = get_type_hints(kind)
    before = f"{whose}: " if whose else ""
    values: dict[str, Any] = {}
    for name, value in table.items():
        _check_option(hints, name, before, error)
        values[name] = _typed(value, hints[name], f"{before}{name}", error)
    options = kind(**values)
    check_ranges(options, error, before)
    return options


def _check_option(names: Collection[str], name: str, before: str, error: type[Exception]) -> None:
    if not names:
        raise error(f"{before}option {_short(name)} is unknown, it has no options")
    check_name(names, name, f"{before}option", error)


def check_ranges(options: Any, error: type[Exception] = ValueError, before: str = "") -> None:
    """Refuse values that are out of their ranges; ``before`` begins the message."""
    for entry in dataclasses.fields(options):
        value, limits = getattr(options, entry.name), entry.metadata
        if value is None or not limits:
            continue
        if limits["among"] is not None:
            check_name(limits["among"], value, f"{before}{entry.name}", error)
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (expected := _expected_range(value, limits)):
            raise error(f"{before}{entry.name} is {_short(value)}, expected {expected}")


def option_from_text(
    kind: type[Any], name: str, text: str, whose: str, error: type[Exception] = ValueError
) -> Any:
    """Parse one option as written on the command line.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Sizes:
    ...     layers: int = option(3, "how many", at_least=1)
    >>> option_from_text(Sizes, "layers", "4", "encoder mine")
    4
    >>> option_from_text(Sizes, "layers", "four", "encoder mine")
    Traceback (most recent call last):
    ValueError: encoder mine: layers is 'four', expected a whole number
    """
    hints = get_type_hints(kind)
    _check_option(hints, name, f"{whose}: ", error)
    types = _types(hints[name])
    try:
        if NoneType in types and text.lower() in ("", "none"):
            return None
        if bool in types:
            return _BOOLEANS[text.lower()]
        if int in types:
            return int(text)
        if float in types:  # temperatures are written as 1/64
            return float(Fraction(text)) if "/" in text else float(text)
        return text
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):
        raise error(f"{whose}: {name} is {_short(text)}, expected {_type_names(types)}") from None


def described(kind: type[Any]) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of each option."""
    return [
        (entry.name, _value_text(entry.default), str(entry.metadata.get("meaning", "")))
        for entry in dataclasses.fields(kind)
    ]


def format_options(options: Any) -> list[tuple[str, str]]:
    """Return name and value of each option as people write them, without those that are off.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Listwise:
    ...     temperature: float = option(1 / 256, "τ", above=0)
    ...     pairwise: bool = option(False, "the pairwise form")
    >>> format_options(Listwise()), format_options(Listwise(4.0, True))
    ([('temperature', '1/256')], [('temperature', '4.0'), ('pairwise', 'true')])
    """
    values = dataclasses.asdict(options).items()
    return [(name, _value_text(v)) for name, v in values if v is not None and v is not False]


def _value_text(value: Any) -> str:
    if isinstance(value, float) and 0 < value < 0.1 and (1 / value).is_integer():
        return f"1/{1 / value:g}"  # temperatures are powers of two
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class ComponentConfig:
    """Name of a component and its complete options (a frozen dataclass)."""

    name: str
    options: Any = NoOptions()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: ``{"name": …, "options": {…}}``."""
        return {"name": self.name, "options": dataclasses.asdict(self.options)}

    def replace(self, **options: Any) -> "ComponentConfig":
        """Return the same component with other options."""
        return ComponentConfig(self.name, dataclasses.replace(self.options, **options))


def component_from(
    registry: Mapping[str, Any], description: Any, what: str, error: type[Exception] = ValueError
) -> ComponentConfig:
    """Make a component config from plain data, ``{"name": …, "options": {…}}``.

    Entries of the registry have an attribute ``options``, the dataclass of their options; ``what``
    says in messages what the registry holds (``loss``).

    Raises
    ------
    error
        The name or an option is unknown, or a value does not fit.
    """
    if not isinstance(description, Mapping) or not set(description) <= {"name", "options"}:
        raise error(f"{what} is {_short(description)}, expected a name and options")
    name: Any = description.get("name")
    table = description.get("options", {})
    check_name(registry, name, what, error)
    if not isinstance(table, Mapping):
        raise error(f"{what} {name}: options are {_short(table)}, expected names and values")
    options = options_from(registry[name].options, table, f"{what} {name}", error)
    return ComponentConfig(name, options)


def _typed(value: Any, hint: Any, what: str, error: type[Exception]) -> Any:
    """Convert numbers (numpy's included) to the type of an option; refuse everything else."""
    types = _types(hint)
    if type(value) in types:
        return value
    if not isinstance(value, bool):
        if int in types and hasattr(value, "__index__"):
            return int(value)
        if float in types and isinstance(value, Real):
            try:
                return float(value)
            except OverflowError:  # a whole number of hundreds of digits
                pass
    raise error(f"{what} is {_short(value)}, expected {_type_names(types)}")


def _types(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is UnionType else (hint,)


def _type_names(types: tuple[Any, ...]) -> str:
    return " or ".join(_TYPE_NAMES.get(kind, str(kind)) for kind in types)


def _expected_range(value: float, limits: Mapping[str, Any]) -> str | None:
    """Describe the range of a number that is outside of it; None for one inside."""
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if is_infinite and (limits["finite"] or value != math.inf):
        return "a finite number"
    at_least, above, at_most, below = map(limits.get, _BOUNDS)
    if all(limits[name] is None or fits(value, limits[name]) for name, fits in _BOUNDS.items()):
        return None
    low = f"more than {above:g}" if above is not None else ""
    low = f"{at_least:g}" if at_least is not None else low
    high = f"less than {below:g}" if below is not None else ""
    high = f"{at_most:g}" if at_most is not None else high
    if low and high:
        return f"{low} to {high}"
    if low:
        return f"{low} or more" if at_least is not None else low
    return f"at most {high}" if at_most is not None else high


def _short(value: Any, length: int = 60) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        return "a number beyond reason"
    return text if len(text) <= length else f"{text[: length - 1]}…"
