"""What is published states one version, one licence and the same dependencies."""

import re
import tomllib
from pathlib import Path

import pytest

from mzseek.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == __version__
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def test_licence_files_are_there_and_the_bundle_states_its_own() -> None:
    assert PROJECT["license"] == "MIT AND CC-BY-SA-4.0"
    texts = [(ROOT / name).read_text() for name in PROJECT["license-files"]]
    assert "MIT License" in texts[0]
    assert "CC BY-SA 4.0" in texts[1]


def test_the_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = (ROOT / "conda/meta.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = [line.strip("- ").replace(" ", "") for line in run.splitlines()]
    assert listed == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]


@pytest.mark.parametrize("name", ["Dockerfile", "conda/meta.yaml", ".github/workflows/ci.yml"])
def test_no_file_names_a_path_of_one_machine(name: str) -> None:
    assert not re.search(r"/(root|home|work|Users)/", (ROOT / name).read_text())
