"""What ``import mzseek`` gives, and what it leaves alone."""

import importlib
import pkgutil
import subprocess
import sys
import types

import pytest

import mzseek


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


def rooms() -> list[str]:
    found = pkgutil.walk_packages(mzseek.__path__, "mzseek.")
    return ["mzseek", *(each.name for each in found if each.ispkg)]


@pytest.mark.parametrize("room", rooms())
def test_no_name_of_a_room_hides_a_module(room: str) -> None:
    """``from room import x`` gives a function or a module, never now one and now the other."""
    package = importlib.import_module(room)
    inside = [each.name for each in pkgutil.iter_modules(package.__path__)]
    for name in inside:
        importlib.import_module(f"{room}.{name}")
    hidden = [name for name in inside if not isinstance(getattr(package, name), types.ModuleType)]
    assert hidden == []
