import sys
import tomllib
from pathlib import Path

import pytest

from mzseek.core.errors import EXTRAS, MissingExtra, MzseekError, is_installed, require

ROOT = Path(__file__).resolve().parents[2]
# Names on the package index that differ from what is imported.
INDEX = {"python_multipart": "python-multipart", "myopic_mces": "myopic-mces", "yaml": "pyyaml"}


def test_every_dependency_and_extra_is_in_the_docs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    docs = (ROOT / "docs" / "install.md").read_text()
    for package, extra in EXTRAS.items():
        required = project["optional-dependencies"][extra]
        assert any(line.startswith(INDEX.get(package, package)) for line in required)
        assert f"`[{extra}]`" in docs
    for dependency in project["dependencies"]:
        assert f"\n| {dependency.partition('>')[0]} |" in docs


def test_a_missing_extra_is_named_with_its_remedy(monkeypatch) -> None:
    require("matplotlib", "drawing")
    monkeypatch.setitem(sys.modules, "duckdb", None)  # as if it were not installed
    assert not is_installed("duckdb")
    with pytest.raises(MissingExtra, match=r"^SQL needs duckdb: pip install 'mzseek\[sql\]'$"):
        require("duckdb", "SQL")
    assert issubclass(MissingExtra, MzseekError)
    assert issubclass(MissingExtra, ImportError)
