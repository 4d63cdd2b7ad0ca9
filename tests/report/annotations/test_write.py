"""The whole page: what it says, that it stays whole and safe, and what a browser makes of it."""

import json
import re
import subprocess
import sys
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from mzseek.export.report import source_hash, write_report

from .conftest import (
    CAFFEINE,
    PAYLOADS,
    candidate,
    empty_annotation,
    hostile_annotation,
    make_annotation,
    make_facts,
    reference,
    unscripted,
)


class Elements(HTMLParser):
    """Elements with their attributes, and what scripts and styles hold."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.inside.append((*self.found[-1], data))


def two(tmp_path: Path, **facts) -> Path:
    given = {"records": 5, "set_aside": {"no peaks": 2, "no precursor": 1}, **facts}
    return write_report(
        [make_annotation(), empty_annotation()],
        tmp_path / "report.html",
        title="A & B",
        facts=make_facts(**given),
    )


def test_the_page_says_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    text = unscripted(two(tmp_path, small=True, larger=("mzseek database hmdb",), model="Box 1"))
    for said in (
        "A & B", "5 records in", "2 answered, as 2 features", "3 set aside", "no peaks 2",
        "A small database was searched: box, 4,406 molecules", "mzseek database hmdb", "Box 1",
        "level 2a", "level 5", "in 90 of 100 cases", "CC BY Eawag 1",
    ):  # fmt: skip
        assert said in text
    assert "neither answered nor set aside" not in text


def test_percentages_are_explained_as_this_run_made_them(tmp_path: Path) -> None:
    def text(annotation=None, **facts) -> str:
        both = [annotation or make_annotation(), empty_annotation()]
        page = write_report(both, tmp_path / "r.html", title="t", facts=make_facts(**facts))
        return unscripted(page)

    calibrated = "about 80 are right"
    assert "assumption that 70 % of your features are (--known)" in text(known=0.7)
    assert calibrated in text(known=0.7)
    blind = text(make_annotation(present=None))
    assert "does not estimate whether the molecule is in the database" in blind
    assert "of features whose molecule is in the database, about 80 are right" in blind
    prior = text(prior="weights of a.csv")
    assert calibrated not in prior
    assert "with it they are not rates of right answers" in prior
    assert "fitted without the prior" in prior
    assert "chosen for tanimoto" in text(make_annotation(objective="tanimoto"))
    assert "chosen for" not in text().partition("Features")[0]


def test_records_that_got_lost_are_told(tmp_path: Path) -> None:
    assert "4 records are neither answered nor set aside" in unscripted(two(tmp_path, records=9))


def test_facts_may_be_known_only_at_the_end(tmp_path: Path) -> None:
    seen: list[str] = []

    def annotations():
        for name in ("a", "b"):
            seen.append(name)
            yield make_annotation(name)

    page = write_report(
        annotations(), tmp_path / "r.html", title="t", facts=lambda: make_facts(records=len(seen))
    )
    assert "2 records in" in unscripted(page)


def test_no_features_make_a_page_too(tmp_path: Path) -> None:
    page = write_report([], tmp_path / "r.html", title="t", facts=make_facts(records=0))
    assert "No feature was answered" in unscripted(page)


def test_equal_answers_make_equal_pages(tmp_path: Path) -> None:
    assert two(tmp_path / "a").read_bytes() == two(tmp_path / "b").read_bytes()


def test_every_feature_has_its_row_and_its_data(tmp_path: Path) -> None:
    page = Elements(two(tmp_path))
    rows = [a["id"] for tag, a in page.found if tag == "tr" and a.get("class") == "row"]
    assert rows == ["f0", "f1"]
    data = {a["id"]: json.loads(text) for tag, a, text in page.inside if "id" in a}
    assert set(data) == {"d0", "d1", "common"}
    assert data["d0"]["candidates"][0]["name"] == "caffeine"


def test_a_fault_on_the_way_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    out.write_text("before")

    def annotations():
        yield make_annotation()
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_report(annotations(), out, title="t", facts=make_facts())
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_memory_does_not_grow_with_features(tmp_path: Path) -> None:
    def peak(number: int) -> int:
        annotations = (make_annotation(f"F{n}") for n in range(number))
        tracemalloc.start()
        write_report(annotations, tmp_path / "r.html", title="t", facts=make_facts(), in_full=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # templates and structures are kept from now on
    few, many = peak(5), peak(50)
    assert many < few + 60_000  # the data of 45 features have some 150,000 bytes


def test_nothing_is_loaded_from_elsewhere_and_only_our_code_may_run(tmp_path: Path) -> None:
    page = Elements(two(tmp_path))
    for _, attributes in page.found:
        assert not set(attributes) & {"src", "srcset", "style", "action", "data", "ping"}
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for _, a in page.found if a.get("http-equiv"))
    code = [text for tag, a, text in page.inside if tag == "script" and "type" not in a]
    style = [text for tag, _, text in page.inside if tag == "style"]
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
    style = next(text for tag, _, text in Elements(two(tmp_path)).inside if tag == "style")
    for medium in ("(prefers-color-scheme: dark)", "print", "screen and (max-width: 760px)"):
        assert f"@media {medium} {{" in style
    named = set(re.findall(r"var\((--[\w-]+)\)", style))
    assert {name for name in named if f"{name}:" not in style} == {"--line"}  # set by the script


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_files_never_becomes_markup(payload: str, tmp_path: Path) -> None:
    facts = make_facts(
        set_aside={payload: 1}, database=payload, larger=(payload,), small=True, model=payload,
        about_model=payload, library=payload, files=(payload,), options={payload: payload},
        versions={payload: payload}, checksums={payload: payload}, date=payload,
    )  # fmt: skip
    plain = write_report([make_annotation()], tmp_path / "p.html", title="t", facts=make_facts())
    page = write_report(
        [hostile_annotation(payload)], tmp_path / "r.html", title=payload, facts=facts
    )
    kinds = {tag for tag, _ in Elements(plain).found}
    extra = {"div", "h3", "code", "option", "a", "dl", "dt", "dd", "strong", "p", "small", "abbr"}
    assert {tag for tag, _ in Elements(page).found} <= kinds | extra
    scripts = [a for tag, a in Elements(page).found if tag == "script"]
    assert [a.get("type") for a in scripts] == ["application/json"] * 2 + [None]
    assert not set("\x00\x1b\u2028\u2029\u202e") & set(page.read_text("utf-8"))


def test_the_plain_install_can_write_it() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('matplotlib', 'torch', 'pandas', 'yaml')));"
        "import mzseek.export"
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
    page = write_report(annotations, tmp_path / "r.html", title="t", facts=make_facts())
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
        similarity=nan, likeness=nan, precursor_mz=nan, mz=np.zeros(0), intensities=np.zeros(0)
    )
    bare = candidate("no molecule", explained=nan, error_ppm=nan, probability=nan, match=odd)
    annotations = [
        make_annotation(candidates=(bare,), matches=(odd,), nearest=nan, present=None, choices={})
    ]
    page = write_report(annotations, tmp_path / "r.html", title="t", facts=make_facts())
    dom = browse(page, "document.title = document.querySelectorAll('svg.mirror').length;")
    assert "<title>1</title>" in dom


@pytest.mark.slow
def test_in_a_browser_no_payload_runs(browse, tmp_path: Path) -> None:
    annotations = [hostile_annotation(payload) for payload in PAYLOADS]
    page = write_report(annotations, tmp_path / "r.html", title="t", facts=make_facts())
    opening = "document.querySelectorAll('button.open').forEach((each) => each.click());"
    dom = browse(page, opening)
    assert dom.count('class="detail"') == len(PAYLOADS)
    assert "<title>t</title>" in dom
    assert "<img" not in dom
