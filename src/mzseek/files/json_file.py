"""Small JSON files that mzseek writes itself, read again with whatever may have befallen them."""

import json
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

# Far more than any manifest; a file of gigabytes in its place must not fill the memory.
MOST_BYTES = 256 * 1024 * 1024
_WORDS = {
    str: "a text",
    int: "a whole number of 0 or more",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "nothing",
}


def read_object(path: Path, error: type[Exception], remedy: str = "") -> dict[str, Any]:
    """The JSON object in a file.

    Parameters
    ----------
    path : Path
    error : type of exception
        What is raised, in the words of the room that the file belongs to.
    remedy : str
        What to do about it, such as "build it again".

    Raises
    ------
    error
        It is missing, damaged, nested beyond reason, or holds something else than an object.
    """
    hint = f"; {remedy}" if remedy else ""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise error(f"{path}: has {size:,} bytes, expected at most {MOST_BYTES:,}{hint}")
        data = path.read_bytes()
    except FileNotFoundError as missing:
        raise error(f"{path}: is missing{hint}") from missing
    except OSError as unreadable:
        raise error(f"{path}: cannot be read ({unreadable.strerror}){hint}") from unreadable
    return parse_object(data, path, error, remedy)


def parse_object(
    data: bytes | str, where: object, error: type[Exception], remedy: str = ""
) -> dict[str, Any]:
    """The JSON object in a text; ``where`` names it in messages. As `read_object`."""
    hint = f"; {remedy}" if remedy else ""
    try:
        value = json.loads(data.decode("utf-8") if isinstance(data, bytes) else data)
    except (ValueError, RecursionError) as damage:  # also numbers of thousands of digits
        reason = "nested too deeply" if isinstance(damage, RecursionError) else str(damage)
        raise error(f"{where}: is damaged ({reason[:100]}){hint}") from damage
    if not isinstance(value, dict):
        raise error(f"{where}: holds a {type(value).__name__}, expected a JSON object{hint}")
    return value


def check_fields(
    value: Any, expected: Any, where: object, error: type[Exception], remedy: str = ""
) -> None:
    """Make sure that what was read has the fields that will be used, each of its type.

    Parameters
    ----------
    value : any
        What the JSON held.
    expected : type, union of types, dict or list
        A dict names the fields, ``...`` standing for any name, and a name that ends in ``?`` need
        not be there; a list has one element, what all elements must be. Whole numbers must not be
        negative.
    where, error, remedy
        As in `read_object`.

    Raises
    ------
    error
        A field is missing or of another type.

    Examples
    --------
    >>> check_fields({"counts": {"a": 1}}, {"counts": {...: int}}, "x.json", ValueError)
    >>> check_fields({"counts": {"a": "1"}}, {"counts": {...: int}}, "x.json", ValueError)
    Traceback (most recent call last):
    ValueError: x.json: counts.a is '1', expected a whole number of 0 or more
    """
    fault = _fault(value, expected, "")
    if fault:
        raise error(f"{where}: {fault}{f'; {remedy}' if remedy else ''}")


def _fault(value: Any, expected: Any, name: str) -> str | None:
    """The first field that is not as expected, in words."""
    if isinstance(expected, dict) and isinstance(value, dict):
        pairs = list(expected.items())
        if ... in expected:
            pairs = [(key, expected[...]) for key in value]
            odd = next((key for key in value if not key.isprintable()), None)
            if odd is not None:  # a damaged byte makes a line break of `.npy`
                return f"has a field {odd[:40]!r}, expected a name that can be shown"
        for key, inner in pairs:
            field = str(key).removesuffix("?")
            if field not in value:
                if not str(key).endswith("?"):
                    return f"lacks {f'{name}.{field}'.lstrip('.')!r}"
            elif fault := _fault(value[field], inner, f"{name}.{field}".lstrip(".")):
                return fault
        return None
    if isinstance(expected, list) and isinstance(value, list):
        faults = (_fault(item, expected[0], f"{name}[{n}]") for n, item in enumerate(value))
        return next((fault for fault in faults if fault), None)
    kinds = get_args(expected) if get_origin(expected) in (Union, UnionType) else (expected,)
    if any(_is(value, kind) for kind in kinds):
        return None
    words = [_WORDS[kind if isinstance(kind, type) else type(kind)] for kind in kinds]
    return f"{name[:60]} is {repr(value)[:40]}, expected {' or '.join(words)}"


def _is(value: Any, kind: Any) -> bool:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(kind, type) and isinstance(value, kind)
