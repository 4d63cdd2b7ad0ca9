import sys
import tomllib
from pathlib import Path

import pytest

from mzseek.core.errors import EXTRAS, MissingExtra, MzseekError, has, require

ROOT = Path(__file__).resolve().parents[2]
# Names on the package index that differ from what is imported.
INDEX = {"myopic_mces": "myopic-mces", "yaml": "pyyaml"}


def test_every_extra_brings_its_package_and_is_in_the_docs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    docs = (ROOT / "docs" / "install.md").read_text()
    for package, extra in EXTRAS.items():
        wanted = project["optional-dependencies"][extra]
        assert any(each.startswith(INDEX.get(package, package)) for each in wanted)
        assert f"`[{extra}]`" in docs


def test_every_dependency_is_explained_in_the_docs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    docs = (ROOT / "docs" / "install.md").read_text()
    for each in project["dependencies"]:
        assert f"\n| {each.partition('>')[0]} |" in docs


def test_what_is_there_is_not_loaded_and_what_is_missing_is_told(monkeypatch) -> None:
    require("matplotlib", "drawing")
    monkeypatch.setitem(sys.modules, "duckdb", None)  # as if it were not installed
    assert not has("duckdb")
    with pytest.raises(MissingExtra, match=r"^SQL needs duckdb: pip install 'mzseek\[sql\]'$"):
        require("duckdb", "SQL")
    assert issubclass(MissingExtra, MzseekError)
    assert issubclass(MissingExtra, ImportError)


def test_a_name_in_no_extra_is_a_fault_of_ours(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "nowhere", None)
    with pytest.raises(KeyError):
        require("nowhere", "this")
