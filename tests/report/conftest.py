"""Reading pages back."""

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

# Names that matplotlib, HTML, a terminal or a reader could take for something else.
ODD_NAMES = [
    r"$\frac$", "$x^2$", "_hidden", "^", "\\", "100 % {a}", "[red]x[/red]", "<b>x</b>", "R&D",
    "two\nlines", "\x1b[2Jgone", "", " ", "\u200b", "名前", "n" * 300, os.fsdecode(b"\xff"),
]  # fmt: skip


def drawn_texts(svg: str) -> list[str]:
    """Texts of a picture, which must be XML."""
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    return ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")]


class Balance(HTMLParser):
    """Notes text, and tags that are opened and not closed."""

    VOID = frozenset({"meta", "br", "img", "path", "use", "rect", "line", "circle", "ellipse"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


class Boxes(HTMLParser):
    """Notes what tables and pictures stand in."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[tuple[str, str]] = []
        self.found: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        around = " ".join(classes for _, classes in self.stack).split()
        if tag in ("table", "svg"):
            self.found.append((tag, around))
        if tag not in Balance.VOID:
            self.stack.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in Balance.VOID:
            self.stack.pop()


@pytest.fixture
def assert_fits_narrow_screens() -> Callable[[str], None]:
    """What is wide on a page stands in a box of its own, and the box scrolls, not the page."""

    def check(html: str) -> None:
        parser = Boxes()
        parser.feed(html)
        style = re.sub(r"\s+", " ", html[html.index("<style>") : html.index("</style>")])
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
        assert any(tag == "svg" for tag, _ in parser.found)
        for tag, around in parser.found:
            assert tag == "svg" or "scroll" in around
        assert ".scroll { overflow-x: auto; max-width: 100%; }" in style
        assert " svg { max-width: 100%; height: auto; }" in style
        # Only what scrolls may have a width of its own, and flexible boxes may shrink.
        for selector, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
            if re.search(r"min-width: (?!0)", rules):
                assert "scroll" in selector or "spectrum svg" in selector or "td" in selector
            if re.search(r"flex: 1 1 ", rules):
                assert "min-width: 0" in rules
            assert not re.search(r"[; ]width: \d+(px|rem)", rules)
        assert re.search(r"\.pair \.spectrum \{[^}]*overflow-x: auto", style)

    return check


@pytest.fixture
def read_page() -> Callable[[str], str]:
    """Text of a page whose tags must all be closed."""

    def read(html: str) -> str:
        parser = Balance()
        parser.feed(html)
        assert parser.stack == []
        return " ".join(" ".join(parser.text).split())

    return read
