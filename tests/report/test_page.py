from pathlib import Path

import pytest
from jinja2 import DictLoader, TemplateNotFound, UndefinedError
from markupsafe import Markup

from mzseek import __version__
from mzseek.export import page
from mzseek.export.page import write_page


@pytest.fixture
def templates(monkeypatch) -> dict[str, str]:
    """Templates of the test's own."""
    found: dict[str, str] = {}
    monkeypatch.setattr(page, "PackageLoader", lambda package: DictLoader(found))
    return found


def test_facts_are_filled_in_as_text(templates, tmp_path: Path) -> None:
    templates["a.html"] = "<p>{{ name }}: {{ count|thousands }} by {{ version }} é</p>"
    path = write_page("a.html", tmp_path / "deep" / "a.html", {"name": "<b>&", "count": 12345})
    assert path == tmp_path / "deep" / "a.html"
    expected = f"<p>&lt;b&gt;&amp;: 12,345 by {__version__} é</p>"
    assert path.read_text(encoding="utf-8") == expected


def test_what_no_page_can_hold_is_a_mark_and_pictures_are_as_they_are(
    templates, tmp_path: Path
) -> None:
    templates["a.html"] = "{{ name }} {{ picture }} {{ number }}"
    facts = {"name": "a\x1b[2J\nb\udcff", "picture": Markup("<svg>\n</svg>"), "number": 1.5}
    path = write_page("a.html", tmp_path / "a.html", facts)
    assert path.read_text(encoding="utf-8") == "a�[2J�b� <svg>\n</svg> 1.5"


def test_a_missing_fact_leaves_the_page_as_it_was(templates, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("before")
    templates["a.html"] = "{{ nobody }}"
    with pytest.raises(UndefinedError, match="nobody"):
        write_page("a.html", tmp_path / "a.html", {})
    assert (tmp_path / "a.html").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_unknown_templates_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateNotFound):
        write_page("absent.html", tmp_path / "a.html", {})
