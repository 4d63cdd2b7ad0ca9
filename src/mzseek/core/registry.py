"""Registries of components chosen by name, and the options of each component."""

import dataclasses
import importlib
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

FOLDS = ("train", "val", "test")

# Data sets that can be downloaded.
PUBLIC_SETS = ("massspecgym",)

# What equal scores mean for a hit, and when a candidate is the truth.
Ties = Literal["expected", "optimistic", "pessimistic"]
TIES: tuple[Ties, ...] = get_args(Ties)
IDENTITIES = ("fingerprint", "inchikey")

# What spectra may have in common that are scored together.
TOGETHER = ("molecule",)

# What a molecule and its candidates are equal in: lists are drawn, and negatives mined, by it.
EQUAL_IN = ("mass", "formula")
# Which of the mined negatives are kept.
MINED = ("hardest", "random")

# Similarities of a predicted fingerprint that candidates can be ranked by.
RANKED_BY = ("cosine", "tanimoto", "soft-tanimoto", "minmax-tanimoto")


T = TypeVar("T")

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    NoneType: "nothing",
}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def choose(
    registry: Mapping[str, T], name: str, what: str, error: type[Exception] = ValueError
) -> T:
    """What a registry holds under a name.

    Raises
    ------
    error
        There is none of that name; the message lists those there are.

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
    """Refuse a name that is none of the known ones, with the list of those."""
    if not isinstance(name, str) or name not in names:
        shown = repr(name)
        shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
        raise error(f"{what} {shown} is unknown, expected one of: {', '.join(names)}")


def load(code: str) -> Any:
    """What stands in a module under a name, ``module:name``; it is imported now, not before."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)


class LazyRegistry(Mapping[str, T]):
    """A registry of names and of where the code of each stands: loaded when it is asked for.

    Parameters
    ----------
    code : mapping of str to str
        ``module:name`` by name.

    Examples
    --------
    >>> numbers = LazyRegistry({"pi": "math:pi"})
    >>> list(numbers), numbers["pi"]
    (['pi'], 3.141592653589793)
    """

    def __init__(self, code: Mapping[str, str]) -> None:
        self.code = dict(code)

    def __getitem__(self, name: str) -> T:
        """What stands there; importing a module twice costs nothing."""
        part: T = load(self.code[name])
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self.code)

    def __len__(self) -> int:
        return len(self.code)


def lazy_package(room: str) -> Callable[[str], Any]:
    """What makes a room's names importable without loading them: its ``__getattr__``.

    They stand in the room's module ``public``, which is imported when one of them is first used.
    """

    def find(name: str) -> Any:
        if not name.startswith("__"):
            offered = importlib.import_module(f"{room}.public")
            if name in offered.__all__:
                value = getattr(offered, name)
                setattr(sys.modules[room], name, value)
                return value
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return find


def option(
    default: Any,
    meaning: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    among: Collection[str] | None = None,
    finite: bool = True,
) -> Any:
    """A field of an options dataclass.

    Parameters
    ----------
    default : any
    meaning : str
        What it is, in a few words, for people.
    least, above, most, below : float, optional
        Its range: with the end (``least``, ``most``) or without (``above``, ``below``).
    among : collection of str, optional
        The names that it can have.
    finite : bool
        Must it be a finite number?
    """
    bounds = {"least": least, "above": above, "most": most, "below": below, "finite": finite}
    return field(default=default, metadata={"meaning": meaning, "among": among, **bounds})


@dataclass(frozen=True)
class NoOptions:
    """The options of a part that has none."""


def options_from(
    kind: type[T], given: Mapping[str, Any], whose: str, error: type[Exception] = ValueError
) -> T:
    """Options from plain data: what is missing has its default.

    Parameters
    ----------
    kind : type
        A dataclass of options.
    given : mapping of str to plain data
    whose : str
        The part, as messages call it: ``loss focal``; may be empty.
    error : type of exception

    Raises
    ------
    error
        One is unknown, of another type, or out of its range.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Focal:
    ...     gamma: float = option(2.0, "γ", least=0)
    >>> options_from(Focal, {}, "loss focal"), options_from(Focal, {"gamma": 3}, "loss focal")
    (Focal(gamma=2.0), Focal(gamma=3.0))
    >>> options_from(Focal, {"delta": 3}, "loss focal")
    Traceback (most recent call last):
    ValueError: loss focal: option 'delta' is unknown, expected one of: gamma
    """
    hints = get_type_hints(kind)
    fields = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    taken: dict[str, Any] = {}
    before = f"{whose}: " if whose else ""
    for name, value in given.items():
        _check_option(fields, name, before, error)
        taken[name] = _typed(value, hints[name], f"{before}{name}", error)
    made = kind(**taken)
    check_ranges(made, error, before)
    return made


def _check_option(names: Collection[str], name: str, before: str, error: type[Exception]) -> None:
    if not names:
        raise error(f"{before}option {_short(name)} is unknown, it has no options")
    check_name(names, name, f"{before}option", error)


def check_ranges(options: Any, error: type[Exception] = ValueError, before: str = "") -> None:
    """Refuse values that are out of their ranges; ``before`` begins the message."""
    for entry in dataclasses.fields(options):
        value, facts = getattr(options, entry.name), entry.metadata
        if value is None or not facts:
            continue
        if facts["among"] is not None:
            check_name(facts["among"], value, f"{before}{entry.name}", error)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            fault = _out_of_range(value, facts)
            if fault:
                raise error(f"{before}{entry.name} is {_short(value)}, expected {fault}")


def option_from_text(
    kind: type[Any], name: str, text: str, whose: str, error: type[Exception] = ValueError
) -> Any:
    """The value of one option, as a person writes it on the command line.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Sizes:
    ...     layers: int = option(3, "how many", least=1)
    >>> option_from_text(Sizes, "layers", "4", "encoder mine")
    4
    >>> option_from_text(Sizes, "layers", "four", "encoder mine")
    Traceback (most recent call last):
    ValueError: encoder mine: layers is 'four', expected a whole number
    """
    hints = get_type_hints(kind)
    _check_option(hints, name, f"{whose}: ", error)
    kinds = _kinds(hints[name])
    try:
        if NoneType in kinds and text.lower() in ("", "none"):
            return None
        if bool in kinds:
            return _TRUTH[text.lower()]
        if int in kinds:
            return int(text)
        if float in kinds:  # temperatures are told, and given, as 1/64
            return float(Fraction(text)) if "/" in text else float(text)
        return text
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):
        raise error(f"{whose}: {name} is {_short(text)}, expected {_words(kinds)}") from None


def plain(options: Any) -> dict[str, Any]:
    """Options as plain data, all of them written out."""
    return dataclasses.asdict(options)


def described(kind: type[Any]) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each option, for people."""
    return [
        (entry.name, _default(entry.default), str(entry.metadata.get("meaning", "")))
        for entry in dataclasses.fields(kind)
    ]


def format_options(options: Any) -> list[tuple[str, str]]:
    """Name and value of each option, as people write them; what is off or not given is left out.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Listwise:
    ...     temperature: float = option(1 / 256, "τ", above=0)
    ...     pairwise: bool = option(False, "the pairwise form")
    >>> format_options(Listwise()), format_options(Listwise(4.0, True))
    ([('temperature', '1/256')], [('temperature', '4.0'), ('pairwise', 'true')])
    """
    return [
        (name, _default(value))
        for name, value in plain(options).items()
        if value is not None and value is not False
    ]


def _default(value: Any) -> str:
    if isinstance(value, float) and 0 < value < 0.1 and (1 / value).is_integer():
        return f"1/{1 / value:g}"  # temperatures are powers of two
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class ComponentConfig:
    """One part of a whole: its name, and its options, complete.

    Attributes
    ----------
    name : str
    options : frozen dataclass
    """

    name: str
    options: Any = NoOptions()

    def to_dict(self) -> dict[str, Any]:
        """As plain data: ``{"name": …, "options": {…}}``."""
        return {"name": self.name, "options": plain(self.options)}

    def replace(self, **options: Any) -> "ComponentConfig":
        """The same with other options."""
        return ComponentConfig(self.name, dataclasses.replace(self.options, **options))


def component_from(
    registry: Mapping[str, Any], description: Any, what: str, error: type[Exception] = ValueError
) -> ComponentConfig:
    """A part from plain data, ``{"name": …, "options": {…}}``.

    Parameters
    ----------
    registry : mapping of str to kinds
        Each with ``options``, the dataclass of its options.
    description : any
    what : str
        What it is a registry of, for messages: ``loss``.
    error : type of exception

    Raises
    ------
    error
        The name or an option is unknown, or a value does not fit.
    """
    if not isinstance(description, Mapping) or not set(description) <= {"name", "options"}:
        raise error(f"{what} is {_short(description)}, expected a name and options")
    name: Any = description.get("name")
    given = description.get("options", {})
    check_name(registry, name, what, error)
    if not isinstance(given, Mapping):
        raise error(f"{what} {name}: options are {_short(given)}, expected names and values")
    return ComponentConfig(
        name, options_from(registry[name].options, given, f"{what} {name}", error)
    )


def _typed(value: Any, hint: Any, what: str, error: type[Exception]) -> Any:
    """A value of the type that an option has; a whole number is a number, too."""
    kinds = _kinds(hint)
    if type(value) in kinds:
        return value
    if not isinstance(value, bool):  # numpy has numbers of its own
        if int in kinds and hasattr(value, "__index__"):
            return int(value)
        if float in kinds and isinstance(value, Real):
            try:
                return float(value)
            except OverflowError:  # a whole number beyond all others
                pass
    raise error(f"{what} is {_short(value)}, expected {_words(kinds)}")


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is UnionType else (hint,)


def _words(kinds: tuple[Any, ...]) -> str:
    return " or ".join(_WORDS.get(kind, str(kind)) for kind in kinds)


def _out_of_range(value: float, facts: Mapping[str, Any]) -> str | None:
    """What was expected of a number, if it is something else."""
    least, above, most, below = (facts[name] for name in ("least", "above", "most", "below"))
    infinite = isinstance(value, float) and not math.isfinite(value)
    if infinite and (facts["finite"] or value != math.inf):
        return "a finite number"
    inside = (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if inside:
        return None
    low = f"{least:g}" if least is not None else f"more than {above:g}" if above is not None else ""
    high = f"{most:g}" if most is not None else f"less than {below:g}" if below is not None else ""
    if not high:
        return f"{low} or more" if least is not None else low
    return f"{low} to {high}" if low else (f"at most {high}" if most is not None else high)


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        return "a number beyond reason"
    return text if len(text) <= 60 else f"{text[:59]}…"
