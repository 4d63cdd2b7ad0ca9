"""Annotations made by hand, reading pages back, and a browser where there is one."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mzseek.export.report import source_hash
from mzseek.export.writer import Settings, Writer

from ..annotation.conftest import (  # noqa: F401
    make_annotation,
    make_candidate,
    make_feature,
    make_other,
    make_peaks,
    make_reference,
)

# Names that matplotlib, HTML, a terminal or a reader could take for something else.
ODD_NAMES = [
    r"$\frac$", "$x^2$", "_hidden", "^", "\\", "100 % {a}", "[red]x[/red]", "<b>x</b>", "R&D",
    "two\nlines", "\x1b[2Jgone", "", " ", "\u200b", "名前", "n" * 300, os.fsdecode(b"\xff"),
]  # fmt: skip
# What would run, or break a page or a terminal, if it were taken for more than text.
PAYLOADS = (
    "<script>document.title='PWNED'</script>",
    "</script><script>document.title='PWNED'</script>",
    "</style><img src=x onerror=\"document.title='PWNED'\">",
    "\" onmouseover=\"document.title='PWNED'\" x=\"",
    "'-alert(1)-'",
    "<!--<script>",
    "\u2028\u2029\x1b[2J\x00\udcff\u202e",
    "{{ 7 * 7 }} {% raw %} ${7*7} javascript:alert(1)",
    "=HYPERLINK(\"http://example.org\")",
)  # fmt: skip
# What the page in it posts becomes attributes of the frame's own page.
FRAME = """<!doctype html><body><script>
const note = ([name, value]) => document.body.setAttribute("data-" + name, value);
addEventListener("message", (event) => note(event.data));
</script><iframe src="browsed.html" width="WIDTH" height="900" style="border:0"></iframe></body>"""


def drawn_texts(svg: str) -> list[str]:
    """Texts of a picture, which must be XML."""
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    return ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]


class Page(HTMLParser):
    """Elements with attributes and what is around them, and text; all tags must be closed."""

    VOID = frozenset(
        {"meta", "input", "br", "img", "path", "use", "rect", "line", "circle", "ellipse"}
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.scripts: list[tuple[str, dict[str, str | None], str]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        around = " ".join(attributes.get("class") or "" for _, attributes in self.stack)
        self.elements.append((tag, dict(attrs), around))
        if tag not in self.VOID:
            self.stack.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.stack and self.stack[-1][0] in ("script", "style") and data.strip():
            self.scripts.append((*self.stack[-1], data))


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., tuple[Path, list[str]]]:
    """Write annotations by a writer: the path of the file, and what the user is told."""

    def write(kind: type[Writer], name: str, *annotations, **settings) -> tuple[Path, list[str]]:
        for old in tmp_path.glob(f"{name}*"):
            old.unlink()
        writer = kind(tmp_path, name, Settings(**settings))
        for annotation in annotations:
            writer.write(annotation)
        return tmp_path / name, writer.finish()

    return write


@pytest.fixture
def read_page() -> Callable[[str], str]:
    """Text of a page whose tags must all be closed."""

    def read(html: str) -> str:
        page = Page(html)
        assert page.stack == []
        return " ".join(" ".join(page.text).split())

    return read


@pytest.fixture
def assert_fits_narrow_screens() -> Callable[[str], None]:
    """What is wide on a page stands in a box of its own, and the box scrolls, not the page."""

    def check(html: str) -> None:
        wide = [(tag, around) for tag, _, around in Page(html).elements if tag in ("table", "svg")]
        style = re.sub(r"\s+", " ", html[html.index("<style>") : html.index("</style>")])
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
        assert any(tag == "svg" for tag, _ in wide)
        assert all(tag == "svg" or "scroll" in around.split() for tag, around in wide)
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
def browse(tmp_path: Path) -> Callable[..., str]:
    """The page as a browser shows it, after its own script and one of the test have run.

    With a width, the page stands in a frame of that width, and what it posts comes back.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs Chromium, which is not installed")

    def run(page: Path, script: str = "", width: int | None = None) -> str:
        text = page.read_text("utf-8")
        if script:  # the policy of the page lets no other script run: this copy names one more
            text = text.replace("script-src ", f"script-src {source_hash(script)} ", 1)
            text = text.replace("</body>", f"<script>{script}</script></body>", 1)
        copy = tmp_path / "browsed.html"
        copy.write_text(text, encoding="utf-8")
        if width is not None:  # no window is narrower than 500 pixels, but a frame may be
            copy = tmp_path / "frame.html"
            copy.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-quic"
        flags += " --disable-background-networking --disable-component-update --disable-sync"
        done = subprocess.run(
            [program, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}",
             "--window-size=1400,1000", "--virtual-time-budget=4000", "--dump-dom",
             copy.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout

    return run
