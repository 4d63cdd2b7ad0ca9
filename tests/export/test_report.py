"""The annotation report: what it says, that it is safe, and what a browser makes of it."""

import html
import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, UndefinedError
from markupsafe import Markup

from mzseek import __version__
from mzseek.annotation.annotation import Level
from mzseek.annotation.features import Feature
from mzseek.annotation.story import describe
from mzseek.core.text import visible
from mzseek.decision import UTILITIES
from mzseek.export import report
from mzseek.export.report import (
    GOALS,
    IN_FULL,
    LISTED,
    MAX_PEAKS,
    REFERENCES,
    ReportWriter,
    badges,
    count_data,
    embedded,
    feature_data,
    goals,
    packed_fragments,
    packed_peaks,
    page_data,
    row_data,
    source_hash,
    templates,
    write_page,
)
from mzseek.export.tables import SkippedTable
from mzseek.export.writer import Settings
from mzseek.formulas.ranking import RankedFormula
from mzseek.fragments import explain

from .conftest import PAYLOADS, Page
from .report_cases import (
    CAFFEINE,
    RIVALS,
    candidate,
    empty_annotation,
    hostile_annotation,
    make_annotation,
    reference,
    spectrum,
)


def test_a_page_holds_text_as_text_and_pictures_as_they_are(monkeypatch, tmp_path: Path) -> None:
    page = "<p>{{ name }} {{ picture }} {{ count|thousands }} by {{ version }} é</p>"
    loader = DictLoader({"a.html": page, "b.html": "{{ nobody }}"})
    monkeypatch.setattr(report, "PackageLoader", lambda package: loader)
    facts = {"name": "<b>&\x1b[2J\nb\udcff", "picture": Markup("<svg>\n</svg>"), "count": 12345}
    path = write_page("a.html", tmp_path / "deep" / "a.html", facts)
    written = path.read_text("utf-8")
    assert path == tmp_path / "deep" / "a.html"
    assert written == (f"<p>&lt;b&gt;&amp;�[2J�b� <svg>\n</svg> 12,345 by {__version__} é</p>")
    with pytest.raises(UndefinedError, match="nobody"):  # which leaves the page as it was
        write_page("b.html", path, {})
    assert [each.read_text("utf-8") for each in path.parent.iterdir()] == [written]


@given(st.recursive(st.text() | st.integers() | st.none(), lambda s: st.lists(s, max_size=4)))
def test_all_that_goes_in_is_read_again_as_it_is_shown(data) -> None:
    def shown(value):
        if isinstance(value, list):
            return [shown(each) for each in value]
        return visible(value) if isinstance(value, str) else value

    assert json.loads(embedded(data)) == shown(data)


def test_no_text_can_end_the_script_it_stands_in() -> None:
    text = embedded({payload: [payload] for payload in PAYLOADS})
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
        "A & B", "5 records in", "2 annotated, as 2 features", "3 skipped", "no peaks 2",
        "A small database was searched: box, 4,406 molecules", "mzseek database",
        "Box 1. Trained.", "12 reference spectra.", "level 2a", "level 5", "in 90 of 100 cases",
        "CC BY Eawag 1",
    ):  # fmt: skip
        assert said in text


def test_options_that_were_not_set_are_left_out(tmp_path: Path) -> None:
    options = {"ppm": None, "ions": [], "clean": "auto", "strict": False, "propose": 0}
    text = unscripted(write([make_annotation()], tmp_path / "r.html", options=options))
    assert "Options clean auto strict False propose 0" in text


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
    assert "with it they are not rates of correct annotations" in prior
    assert "fitted without the prior" in prior
    assert "chosen for tanimoto" in text(make_annotation(objective="tanimoto"))
    nothing = write([], tmp_path / "r.html", searched={})
    assert "No feature was annotated" in unscripted(nothing)
    assert "chosen for" not in text().partition("Features")[0]


def test_every_feature_has_its_row_and_its_data(tmp_path: Path) -> None:
    page = page_of(two(tmp_path / "a"))
    assert two(tmp_path / "a").read_bytes() == two(tmp_path / "b").read_bytes()
    rows = [a["id"] for tag, a, _ in page.elements if tag == "tr" and a.get("class") == "row"]
    assert rows == ["f0", "f1"]
    data = {a["id"]: json.loads(text) for tag, a, text in page.scripts if "id" in a}
    assert set(data) == {"d0", "d1", "common"}
    assert data["d0"]["candidates"][0]["name"] == "caffeine"


@pytest.mark.slow
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
    for medium in ("(prefers-color-scheme: dark)", "print", "screen and (max-width: 980px)"):
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


@given(
    st.lists(st.tuples(st.floats(1, 2000), st.floats(0.001, 1e9)), max_size=30),
    st.integers(1, 40),
)
def test_the_strongest_peaks_are_kept_in_order(peaks, most: int) -> None:
    peaks = sorted(peaks)
    mz, intensities = np.array(peaks, float).reshape(-1, 2).T
    packed = packed_peaks(mz, intensities, most)
    assert len(packed[0]) == len(packed[1]) == min(len(peaks), most)
    assert packed[0] == sorted(packed[0])
    if peaks:
        kept = sorted(intensities, reverse=True)[:most]
        shares = sorted((max(1, round(1000 * each / max(kept))) for each in kept), reverse=True)
        assert sorted(packed[1], reverse=True) == shares


def test_the_spectrum_with_the_most_peaks_stands_for_a_feature() -> None:
    few, rich = spectrum("a", ([50.0], [1.0])), spectrum("b")
    assert Feature("F", "given", (few, rich, few)).representative == 1
    assert Feature("F", "given", (rich, spectrum("c"))).representative == 0


def explained(peaks, **changes):
    annotation = make_annotation(feature=Feature("F", "given", (peaks,)), **changes)
    return packed_fragments(annotation.peaks_of(candidate())[0])


def test_pieces_are_those_that_explain_gives() -> None:
    one = spectrum()
    rows = explain(one, CAFFEINE, adduct="[M+H]+")
    packed = {row[0]: row for row in explained(one)}
    assert set(packed) == {i for i, row in enumerate(rows) if row.formula}
    assert len(packed) >= 4
    for place, (_, formula, charge, error, mask, bonds, hydrogens, alike) in packed.items():
        row = rows[place]
        atoms = {atom for atom in range(64) if int(mask, 16) >> atom & 1}
        assert atoms == set(row.atoms)
        assert (formula, charge, bonds, hydrogens, alike) == (
            row.formula, row.charge, row.bonds, row.hydrogens, row.equivalents
        )  # fmt: skip
        assert abs(error / 10 - row.error_ppm) <= 0.05


def test_the_tolerance_is_that_of_the_annotation() -> None:
    off = spectrum(peaks=([138.0662 * (1 + 30e-6)], [1.0]))
    assert not explained(off, ppm=10, least=0.0005)
    assert explained(off, ppm=40, least=0.0005)


def test_places_are_those_of_the_peaks_that_are_drawn() -> None:
    noise = np.linspace(50.3, 137.7, 3 * MAX_PEAKS)
    mz = np.sort(np.append(noise, 138.0662))
    intensities = np.where(mz == 138.0662, 100.0, 0.5 + np.arange(len(mz)) % 7)
    many = spectrum(peaks=(mz, intensities))
    packed = packed_peaks(many.mz, many.intensities)
    assert len(packed[0]) == MAX_PEAKS
    best = [row for row in explained(many) if row[1] == "C6H8N3O"]
    assert [packed[0][row[0]] for row in best] == [1380662]


def test_every_utility_is_a_goal_in_words() -> None:
    assert set(goals()) == set(UTILITIES) == set(GOALS)


def test_the_ground_of_an_answer_is_its_first_badge() -> None:
    def ground(parts, **given):
        return badges(make_annotation(candidates=(candidate(parts=parts, **given),), choices={}))[0]

    assert ground((0.0, 0.0, 9.0), match=reference()) == "library match"
    assert ground((2.0, 1.0, 1.0)) == "evidence"
    assert ground((0.5, 0.0, 2.0)) == "analogy"
    assert ground((-2.0, 0.0, 0.01)) == "evidence"  # similar spectra say nothing
    assert badges(empty_annotation()) == ["no answer"]


def test_what_a_reader_must_beware_of() -> None:
    silent = Feature("F", "given", (spectrum(adduct=None),))
    annotation = make_annotation(feature=silent, found=900, scored=500, unlike=True)
    assert badges(annotation)[1:] == ["truncated list", "out of domain", "ion guessed"]
    assert badges(make_annotation()) == ["library match"]
    named = make_annotation(feature=silent, ions={"[M+H]+": 1.0})  # the only one, by --adduct
    assert badges(named) == ["library match"]
    other = RankedFormula("C9H12N2O3", "[M+H]+", 0.9, 196.08, 0.1, 0.9, 3, None, 1.0)
    assert badges(make_annotation(formulas=(other,)))[1:] == ["formula differs"]


def counted(*annotations) -> dict:
    """What the head of a page says of annotations."""
    features = [count_data(each, feature_data(each)["refs"]) for each in annotations]
    return page_data(Settings(), features, {})


def test_features_spectra_marks_and_references_are_counted_once() -> None:
    three = Feature("F", "given", (spectrum("a"), spectrum("b"), spectrum("c")))
    shared = reference("R", licence="CC0")
    pair = (
        candidate(probability=0.95, match=reference(), analog=shared), candidate(analog=shared),
    )  # fmt: skip
    head = counted(
        make_annotation(),
        make_annotation(feature=three, candidates=pair, choices={}, present=None),
        empty_annotation(),
    )
    assert head["counts"] == {
        "features": 3, "records": 5, "sure": 1, "fair": 0,
        "badges": {"library match": 2, "no answer": 1},
    }  # fmt: skip
    assert head["licences"] == [(("CC BY", "Eawag"), 2), (("CC0", "Eawag"), 1)]
    assert "It includes the probability" in head["percentages"][1]


def test_levels_come_surest_first_with_their_shares() -> None:
    levels = [make_annotation(level=Level(level, "")) for level in ("5", "3", "2a", "3", "odd")]
    assert [(level, number, share) for level, _, number, share in counted(*levels)["levels"]] == [
        ("2a", 1, 20), ("3", 2, 40), ("5", 1, 20), ("odd", 1, 20)
    ]  # fmt: skip
    assert counted()["levels"] == []


def test_a_row_says_what_is_decided_for() -> None:
    row = row_data(make_annotation("X7"))
    assert (row["name"], row["best"], row["formula"]) == ("X7", "caffeine", "C₈H₁₀N₄O₂")
    assert row["confidence"] == pytest.approx(0.6 * 0.8)
    assert row["width"] == 48.0
    assert row_data(make_annotation(objective="tanimoto"))["best"] != CAFFEINE
    text = templates().get_template("annotations/row.html").render(row, place=3)
    for said in ('id="f3"', 'data-key="RYYVLZVUVIJVGH"', "48 %", "195.0877"):
        assert said in text


def total(data) -> float:
    """Of all that is listed as possible."""
    known = sum(c["p"] for c in data["candidates"]) + sum(row[3] for row in data["others"])
    return known + data["rest"][1] + (0 if data["present"] is None else 1 - data["present"])


@pytest.mark.parametrize("present", [None, 1.0, 0.8, 0.0])
def test_all_that_is_possible_adds_up_to_one(present) -> None:
    data = feature_data(make_annotation(present=present))
    assert len(data["candidates"]) == IN_FULL
    assert len(data["others"]) == 1
    assert total(data) == pytest.approx(1, abs=1e-3)


def test_candidates_that_are_not_listed_are_counted() -> None:
    many = tuple(candidate(CAFFEINE, probability=1 / 40) for _ in range(30))
    data = feature_data(make_annotation(candidates=many, found=40, choices={"hit": 0}))
    assert data["rest"][0] == 40 - LISTED
    assert total(data) == pytest.approx(1, abs=1e-3)


def test_what_is_decided_for_is_always_shown() -> None:
    expected = {"hit": {"hit": 0.6, "bits": 0.08}, "bits": {"hit": 0.91, "bits": 0.935}}
    changes = {"choices": {"hit": 0, "bits": 5}, "expected": expected}
    data = feature_data(make_annotation(objective="bits", **changes))
    assert data["expected"] == expected
    assert [c["rank"] for c in data["candidates"]] == [1, 2, 3, 4, 6]
    assert data["best"] == 4
    assert data["choices"]["bits"] == [6, "", RIVALS[-1]]


def test_identifiers_link_to_their_pages() -> None:
    found = candidate(sources=("hmdb",), identifiers=("hmdb:HMDB01847", "lab:7"))
    shown = feature_data(make_annotation(candidates=(found,), choices={"hit": 0}))["candidates"][0]
    assert shown["links"] == [["HMDB0001847", "https://hmdb.ca/metabolites/HMDB0001847"]]
    assert shown["from"] == ["hmdb", "lab:7"]


def test_kinds_of_reasons_are_sums_of_their_channels() -> None:
    data = feature_data(make_annotation())
    assert data["candidates"][0]["nats"] == [0, 2.0, -0.25, 0, 0]
    assert data["channels"] == [
        ["fragments", "evidence"], ["intensities", "evidence"], ["analogs", "analogy"]
    ]  # fmt: skip


def test_pieces_point_at_atoms_that_are_drawn() -> None:
    data = feature_data(make_annotation())
    seen = 0
    for one in data["candidates"]:
        atoms = len(data["structures"][one["st"]]["xy"]) // 2
        for row in one["pieces"]:
            assert int(row[4], 16).bit_length() <= atoms
            assert row[0] < len(data["peaks"][0])
            seen += 1
    assert seen > 10


def test_a_reference_spectrum_stands_there_once_with_whose_it_is() -> None:
    shared = reference("R9", smiles=RIVALS[0], tanimoto=0.5, name="")
    pair = (
        candidate(probability=0.5, match=reference(), analog=shared),
        candidate(RIVALS[1], probability=0.5, analog=shared),
    )
    data = feature_data(make_annotation(candidates=pair, matches=(reference(),)))
    assert [ref["record"] for ref in data["refs"]] == ["REF1", "R9"]
    assert [c["analog"] for c in data["candidates"]] == [1, 1]
    assert [c["match"] for c in data["candidates"]] == [0, None]
    assert [ref["same"] for ref in data["refs"]] == [True, False]
    first = data["refs"][0]
    assert (first["contributor"], first["licence"], first["library"]) == ("Eawag", "CC BY", "box")
    many = tuple(reference(f"R{n}") for n in range(20))
    assert len(feature_data(make_annotation(matches=many))["refs"]) == REFERENCES


def test_a_feature_without_candidates_is_said_to_have_none() -> None:
    data = feature_data(empty_annotation())
    assert (data["candidates"], data["best"], data["found"]) == ([], None, 0)
    assert len(data["peaks"][0]) == 6
    assert data["story"] == describe(empty_annotation())


def test_it_is_plain_data() -> None:
    data = feature_data(make_annotation(nearest=float("nan")))
    again = json.loads(embedded(data))
    assert again["nearest"] is None
    assert again["ions"] == [["[M+H]+", 0.9], ["[M+Na]+", 0.1]]
    assert again["notes"] == ["A note."]


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
@pytest.mark.parametrize("width", [1280, 800, 400])
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
