"""Commands that the docs, the README and the help texts show."""

import re
import shlex
from pathlib import Path

import pytest

from mzseek.cli.app import COMMANDS, loaded

from .conftest import assert_understood

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(page: Path) -> list[list[str]]:
    """Commands in the blocks of a page; those with […] or … describe many and are left out."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [line.strip() for line in lines if line.strip().startswith("mzseek ")]
    return [shlex.split(line, comments=True)[1:] for line in found if not re.search(r"[…\[]", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_exist_with_their_options(page: Path) -> None:
    for words in shown(page):
        assert_understood(words)


def test_pages_show_commands() -> None:
    assert sum(len(shown(page)) for page in PAGES) > 20


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_text_has_an_example_that_is_understood(name: str) -> None:
    command = loaded(name)
    for each in getattr(command, "commands", {name: command}).values():
        _, _, example = " ".join((each.help or "").split()).partition("Example: mzseek ")
        assert example, each.name
        assert_understood(shlex.split(example))
