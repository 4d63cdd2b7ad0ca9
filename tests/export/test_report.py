"""The annotation report: what it says, that it is safe, and what a browser makes of it."""

import html
import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, UndefinedError
from markupsafe import Markup

from mzseek import __version__
from mzseek.core.text import visible
from mzseek.export import page
from mzseek.export.page import write_page
from mzseek.export.report import ReportWriter, embedded, source_hash
from mzseek.export.tables import SkippedTable
from mzseek.export.writer import Settings

from .conftest import PAYLOADS, Page
from .report_cases import (
    CAFFEINE,
    candidate,
    empty_annotation,
    hostile_annotation,
    make_annotation,
    reference,
)


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


@given(st.recursive(st.text() | st.integers() | st.none(), lambda s: st.lists(s, max_size=4)))
def test_all_that_goes_in_is_read_again_as_it_is_shown(data) -> None:
    def shown(value):
        if isinstance(value, list):
            return [shown(each) for each in value]
        return visible(value) if isinstance(value, str) else value

    assert json.loads(embedded(data)) == shown(data)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_can_end_the_script_it_stands_in(payload: str) -> None:
    text = embedded({payload: [payload]})
    assert not set("<>&\u2028\u2029\x1b\x00") & set(text)
    text.encode("utf-8")


SEARCHED = {
    "model": {"name": "Box 1", "path": "x", "about": "Trained."},
    "database": {"kind": "bundled", "molecules": 4406},
    "libraries": [{"spectra": 12}], "added": {}, "prior": None,
}  # fmt: skip


def write(annotations, out: Path, *, skipped=(), title: str = "t", **settings) -> Path:
    """Write the page as a run does."""
    out.parent.mkdir(exist_ok=True)
    table = SkippedTable(out.parent)
    for reason in skipped:
        table("a.mgf", reason)
    table.spool.close()
    settings = {"database": "box", "searched": SEARCHED, **settings}
    writer = ReportWriter(out.parent, out.name, Settings(title=title, **settings))
    for annotation in annotations:
        writer.write(annotation)
    assert writer.finish() == []
    for name in ("skipped.tsv", f"{out.name}.records"):
        (out.parent / name).unlink()
    return out


def two(tmp_path: Path) -> Path:
    annotations = [make_annotation(), empty_annotation()]
    skipped = ["no peaks", "no peaks", "no precursor"]
    return write(annotations, tmp_path / "report.html", title="A & B", skipped=skipped)


def unscripted(page: Path) -> str:
    """What the page says, without code and data."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def page_of(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def test_the_page_says_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    text = unscripted(two(tmp_path))
    for said in (
        "A & B", "5 records in", "2 answered, as 2 features", "3 skipped", "no peaks 2",
        "A small database was searched: box, 4,406 molecules", "mzseek database",
        "Box 1. Trained.", "12 reference spectra.", "level 2a", "level 5", "in 90 of 100 cases",
        "CC BY Eawag 1",
    ):  # fmt: skip
        assert said in text


def test_percentages_are_explained_as_this_run_made_them(tmp_path: Path) -> None:
    def text(annotation=None, **searched) -> str:
        both = [annotation or make_annotation(), empty_annotation()]
        return unscripted(write(both, tmp_path / "r.html", searched=SEARCHED | searched))

    calibrated = "about 80 are right"
    assert "assumption that 70 % of your features are (--expected-in-database)" in text(
        expected_share=0.7
    )
    assert calibrated in text(expected_share=0.7)
    blind = text(make_annotation(present=None))
    assert "does not estimate whether the molecule is in the database" in blind
    assert "of features whose molecule is in the database, about 80 are right" in blind
    prior = text(prior={"said": "weights of a.csv"})
    assert calibrated not in prior
    assert "with it they are not rates of right answers" in prior
    assert "fitted without the prior" in prior
    assert "chosen for tanimoto" in text(make_annotation(objective="tanimoto"))
    assert "chosen for" not in text().partition("Features")[0]


def test_no_features_make_a_page_too(tmp_path: Path) -> None:
    page = write([], tmp_path / "r.html", searched={})
    assert "No feature was answered" in unscripted(page)


def test_equal_answers_make_equal_pages(tmp_path: Path) -> None:
    assert two(tmp_path / "a").read_bytes() == two(tmp_path / "b").read_bytes()


def test_every_feature_has_its_row_and_its_data(tmp_path: Path) -> None:
    page = page_of(two(tmp_path))
    rows = [a["id"] for tag, a, _ in page.elements if tag == "tr" and a.get("class") == "row"]
    assert rows == ["f0", "f1"]
    data = {a["id"]: json.loads(text) for tag, a, text in page.scripts if "id" in a}
    assert set(data) == {"d0", "d1", "common"}
    assert data["d0"]["candidates"][0]["name"] == "caffeine"


def test_memory_does_not_grow_with_features(tmp_path: Path) -> None:
    def peak(number: int) -> int:
        annotations = (make_annotation(f"F{n}") for n in range(number))
        tracemalloc.start()
        write(annotations, tmp_path / "r.html")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # templates and structures are kept from now on
    few, many = peak(5), peak(50)
    assert many < few + 60_000  # the data of 45 features have some 150,000 bytes


def test_nothing_is_loaded_from_elsewhere_and_only_our_code_may_run(tmp_path: Path) -> None:
    page = page_of(two(tmp_path))
    for _, attributes, _ in page.elements:
        assert not set(attributes) & {"src", "srcset", "style", "action", "data", "ping"}
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for _, a, _ in page.elements if a.get("http-equiv"))
    code = [text for tag, a, text in page.scripts if tag == "script" and "type" not in a]
    style = [text for tag, _, text in page.scripts if tag == "style"]
    assert len(code) == len(style) == 1
    assert policy == (
        f"default-src 'none'; script-src {source_hash(code[0])}; "
        f"style-src {source_hash(style[0])}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in code[0]
    assert "url(" not in style[0]
    assert "@import" not in style[0]


def test_light_and_dark_and_paper_and_narrow_screens(tmp_path: Path) -> None:
    style = next(text for tag, _, text in page_of(two(tmp_path)).scripts if tag == "style")
    for medium in ("(prefers-color-scheme: dark)", "print", "screen and (max-width: 760px)"):
        assert f"@media {medium} {{" in style
    named = set(re.findall(r"var\((--[\w-]+)\)", style))
    assert {name for name in named if f"{name}:" not in style} == {"--line"}  # set by the script


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_files_never_becomes_markup(payload: str, tmp_path: Path) -> None:
    plain = page_of(write([make_annotation()], tmp_path / "p.html"))
    searched = {
        "model": {"name": payload, "about": payload, "sha256": {payload: payload}},
        "database": {"kind": "bundled", "molecules": 1}, "prior": {"said": payload},
    }  # fmt: skip
    path = write(
        [hostile_annotation(payload)], tmp_path / "r.html", title=payload, database=payload,
        inputs=(payload,), options={payload: payload}, searched=searched, skipped=[payload],
    )  # fmt: skip
    page = page_of(path)
    kinds = {tag for tag, _, _ in plain.elements}
    extra = {"div", "h3", "code", "option", "a", "dl", "dt", "dd", "strong", "p", "small", "abbr"}
    assert {tag for tag, _, _ in page.elements} <= kinds | extra
    scripts = [a.get("type") for tag, a, _ in page.elements if tag == "script"]
    assert scripts == ["application/json"] * 2 + [None]
    assert not set("\x00\x1b\u2028\u2029\u202e") & set(path.read_text("utf-8"))


def test_the_plain_install_can_write_it() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('matplotlib', 'torch', 'pandas', 'yaml')));"
        "import mzseek.export.report"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


PROBE = """
document.title = "probed";
const say = (name, value) => parent.postMessage([name, String(value)], "*");
const first = document.querySelector("#f0");
if (!first.classList.contains("is-open")) first.querySelector("button.open").click();
const svg = document.querySelector("svg.spectrum"), figure = document.querySelector(".figure svg");
say("wide", document.documentElement.scrollWidth - document.documentElement.clientWidth);
say("width", innerWidth);
say("explained", document.querySelectorAll("svg.spectrum .peak.explained").length);
say("cards", document.querySelectorAll(".card").length);
const key = (name) => svg.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
key("ArrowRight");
say("lit", figure ? figure.querySelectorAll("circle.halo.on").length : -1);
say("said", document.querySelector(".readout").textContent);
if (figure) {
  figure.querySelector("[data-atom]").dispatchEvent(new Event("pointerover", { bubbles: true }));
  say("peaks", document.querySelectorAll(".peak.on").length);
}
const find = document.querySelector("#find");
find.value = "no such thing at all";
find.dispatchEvent(new Event("input", { bubbles: true }));
say("left", [...document.querySelectorAll("tr.row")].filter((row) => !row.hidden).length);
"""


def noted(dom: str) -> dict[str, str]:
    body = re.search(r"<body([^>]*)>", dom)
    assert body is not None
    return dict(re.findall(r'data-(\w+)="([^"]*)"', body[1]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_in_a_browser_a_peak_lights_up_its_piece(browse, tmp_path: Path, width: int) -> None:
    found = noted(browse(two(tmp_path), PROBE, width))
    assert found["wide"] == "0"
    assert int(found["width"]) == width
    assert int(found["explained"]) >= 4
    assert found["cards"] == "5"
    assert 0 < int(found["lit"]) < 14  # some of caffeine's atoms
    assert "C" in found["said"]
    assert "broken" in found["said"]
    assert int(found["peaks"]) >= 1
    assert found["left"] == "0"


SAVING = """
const say = (name, value) => parent.postMessage([name, String(value)], "*");
const names = [], Plain = Blob;
window.Blob = class extends Plain {
  constructor(parts, how) { super(parts, how); this.text = parts[0]; }
};
let last = null;
URL.createObjectURL = (blob) => { last = blob; return "#"; };
HTMLAnchorElement.prototype.click = function () {
  names.push(this.download);
  say("names", names.join(" "));
  if (last.type === "image/png") return say("png", last.size > 5000);
  const inside = new DOMParser().parseFromString(last.text, "image/svg+xml");
  say("figures", inside.querySelectorAll("svg > svg").length);
  say("classes", inside.querySelectorAll("[class], [style], [data-atom]").length);
  say("blue", inside.querySelectorAll("line[stroke='rgb(0, 103, 165)']").length);
};
// The browser's clock runs ahead of the work on pictures: let it wait.
setInterval(() => { let sum = 0; for (let i = 0; i < 2e7; i++) sum += Math.sqrt(i); }, 50);
Object.defineProperty(navigator, "clipboard", { value: {
  writeText: (text) => { say("copied", text); return Promise.resolve(); } } });
document.querySelector("#f0 button.open").click();
document.querySelector(".identity .copy").click();
const find = document.querySelector("#find");
find.value = "F1";
find.dispatchEvent(new Event("input", { bubbles: true }));
const [one, two] = document.querySelectorAll(".saves button");
one.click();
two.click();
say("also", document.querySelector(".same").textContent);
location.hash = document.querySelector(".same a").getAttribute("href");
setTimeout(() => say("open", document.querySelector("#f1").classList.contains("is-open")), 500);
"""


@pytest.mark.slow
def test_in_a_browser_smiles_are_copied_and_figures_saved(browse, tmp_path: Path) -> None:
    annotations = [make_annotation("F1"), make_annotation("F2"), empty_annotation("F3")]
    page = write(annotations, tmp_path / "r.html")
    found = noted(browse(page, SAVING, 1200))
    assert found["copied"] == CAFFEINE
    assert found["names"] == "F1-1-caffeine.svg F1-1-caffeine.png"
    assert (found["figures"], found["classes"]) == ("2", "0")  # spectrum and structure
    assert int(found["blue"]) >= 4  # explained peaks keep their colour
    assert found["png"] == "true"  # a picture of some size
    assert found["also"] == "caffeine is also the answer for 1 other feature: F2"
    assert found["open"] == "true"  # though it was filtered out


@pytest.mark.slow
def test_in_a_browser_missing_numbers_stop_nothing(browse, tmp_path: Path) -> None:
    nan = float("nan")
    odd = reference(
        similarity=nan, tanimoto=nan, precursor_mz=nan, mz=np.zeros(0), intensities=np.zeros(0)
    )
    bare = candidate("no molecule", explained=nan, error_ppm=nan, probability=nan, match=odd)
    annotations = [
        make_annotation(candidates=(bare,), matches=(odd,), nearest=nan, present=None, choices={})
    ]
    page = write(annotations, tmp_path / "r.html")
    dom = browse(page, "document.title = document.querySelectorAll('svg.mirror').length;")
    assert "<title>1</title>" in dom


@pytest.mark.slow
def test_in_a_browser_no_payload_runs(browse, tmp_path: Path) -> None:
    annotations = [hostile_annotation(payload) for payload in PAYLOADS]
    page = write(annotations, tmp_path / "r.html")
    opening = "document.querySelectorAll('button.open').forEach((each) => each.click());"
    dom = browse(page, opening)
    assert dom.count('class="detail"') == len(PAYLOADS)
    assert "<title>t</title>" in dom
    assert "<img" not in dom
