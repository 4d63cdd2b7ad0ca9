"""What ``import mzseek`` gives, and what it leaves alone."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import mzseek

ROOT = Path(__file__).resolve().parents[1]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_it_loads_no_library() -> None:
    code = (
        "import sys, mzseek; from mzseek import cli; heavy = 'torch numpy rdkit pandas'\n"
        "print([name for name in heavy.split() if name in sys.modules])"
    )
    assert python(code) == "[]\n"


def test_reading_spectra_loads_no_torch() -> None:
    code = "import sys, mzseek as mz; mz.read_spectra; print('torch' in sys.modules)"
    assert python(code) == "False\n"


@pytest.mark.parametrize("name", [name for name in mzseek.__all__ if name != "__version__"])
def test_every_name_is_there(name: str) -> None:
    assert getattr(mzseek, name).__name__ == name
    assert name in dir(mzseek)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'annotated'"):
        mzseek.annotated  # noqa: B018


def documented() -> dict[str, Any]:
    """Functions and methods that the reference names."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    names = [name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)]
    found: dict[str, Any] = {}
    for name in names:
        thing = pkgutil.resolve_name(name)
        inside = {name: thing} if inspect.isfunction(thing) else _public(name, thing)
        found |= inside
    return found


def _public(name: str, thing: Any) -> dict[str, Any]:
    own = inspect.getmodule(thing)
    return {
        f"{name}.{key}": value
        for key, value in inspect.getmembers(thing, inspect.isroutine)
        if not key.startswith("_") and inspect.getmodule(value) is own
    }


def hints(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:  # a name that is imported for type checkers alone
        return dict(function.__annotations__)


def takes_only_paths(hint: Any) -> bool:
    if isinstance(hint, str):
        return re.search(r"\bPath\b", hint) is not None
    return hint is Path or any(takes_only_paths(inside) for inside in get_args(hint))


# Called with paths that mzseek has made.
INTERNAL = ("Library.load", "Library.from_arrays", "Output.finish")


def test_paths_may_be_text_or_anything_like_a_path() -> None:
    functions = documented()
    assert len(functions) > 50
    strict = [
        f"{name}({parameter})"
        for name, function in functions.items()
        if not name.endswith(INTERNAL)
        for parameter, hint in hints(function).items()
        if parameter not in ("return", "where") and takes_only_paths(hint)
    ]
    assert strict == []


def packages() -> list[str]:
    found = pkgutil.walk_packages(mzseek.__path__, "mzseek.")
    return ["mzseek", *(each.name for each in found if each.ispkg)]


@pytest.mark.parametrize("name", packages())
def test_no_name_of_a_package_hides_a_module(name: str) -> None:
    """``from package import x`` gives a function or a module, never now one and now the other."""
    package = importlib.import_module(name)
    inside = [module.name for module in pkgutil.iter_modules(package.__path__)]
    for module in inside:
        importlib.import_module(f"{name}.{module}")
    hidden = [m for m in inside if not isinstance(getattr(package, m), types.ModuleType)]
    assert hidden == []
