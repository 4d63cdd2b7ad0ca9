"""The pages in headless Chromium, with a server in a process of its own."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mzseek.datasets.files import DEMO_MEASURED, DEMO_QUERIES
from mzseek.export.report import templates

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium, which is not installed", allow_module_level=True)
sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install playwright"
)
axe = pytest.importorskip(
    "axe_playwright_python.base", reason="needs axe-core: pip install axe-playwright-python"
)
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'mzseek[web]'")
pytestmark = pytest.mark.slow

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PAGES = ("/", "/search", "/explain", "/trade-off", "/help")
PEAKS = "56.0495 2\n69.0447 5\n83.0604 4\n110.0713 18\n138.0662 100\n195.0877 60"
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
PAYLOADS = (
    "<script>document.title='PWNED'</script>",
    "<img src=x onerror=\"document.title='PWNED'\">",
    '" onmouseover="document.title=\'PWNED\'" x="',
    "</script><svg onload=document.title='PWNED'>",
    "javascript:document.title='PWNED'",
)


class Server:
    """A server that can be killed, and started again with the same jobs."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url, self.folder = f"http://127.0.0.1:{self.port}", folder

    def start(self) -> None:
        options = ["--port", str(self.port), "--data-dir", str(self.folder), "--workers", "1"]
        with (self.folder.parent / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mzseek", "serve", *options], stdout=log, stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
            )  # fmt: skip
        self.wait()

    def wait(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                if self.get("/health")["status"] == "ready":
                    return
            except OSError:
                assert self.process.poll() is None, (self.folder.parent / "log").read_text()
            time.sleep(0.1)
        raise TimeoutError((self.folder.parent / "log").read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def bytes(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("serve") / "data")
    server.start()
    yield server
    server.process.terminate()
    server.process.wait(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(server: Server, browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page as a new user. No script may fail, and nothing may be refused by the policy."""
    problems: list[str] = []
    contexts = []

    def open_page(path: str = "/", **settings: Any) -> Any:
        context = browser.new_context(base_url=server.url, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if "Content Security" in
                message.text else None)  # fmt: skip
        page.on("dialog", lambda dialog: problems.append(dialog.message) or dialog.dismiss())
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def submit(page: Any, name: str = "form") -> None:
    page.locator(f"#{name} [type=submit]").click()


def choose(page: Any, name: str, value: str) -> None:
    page.check(f"input[name={name}][value={value}]")


def wait_for_job(page: Any, state: str = "done") -> str:
    """Wait until a job has ended; return its id."""
    page.wait_for_url("**/jobs/*", wait_until="commit")
    page.wait_for_selector(f"body[data-state={state}]")
    return str(page.url.rpartition("/")[2].partition("#")[0])


@pytest.fixture(scope="module")
def watched(server: Server, browser: Any) -> dict[str, Any]:
    """What a page shows while a job runs with the demo's measured spectra, and its id."""
    page = browser.new_context(base_url=server.url).new_page()
    page.set_default_timeout(60_000)
    page.goto("/")
    choose(page, "source", "files")
    seen = {"pasting": page.locator("#peaks").is_visible()}
    page.set_input_files("#files", DEMO_MEASURED)
    submit(page)
    page.wait_for_url("**/jobs/*", wait_until="commit")
    page.locator("#table tr.row").first.wait_for()
    seen["state"] = page.locator("body").get_attribute("data-state")
    seen["total"] = page.locator("#progress").get_attribute("max")
    seen["job"] = wait_for_job(page)
    page.locator("#f50").wait_for(state="attached")
    seen["rows"] = page.locator("#table tr.row").count()
    seen["title"] = page.locator("#title").inner_text()
    return seen


@pytest.fixture(scope="module")
def finished(watched: dict[str, Any]) -> str:
    """The id of that job."""
    return str(watched["job"])


def test_pasted_peaks_become_candidates(server: Server, visit: Callable[..., Any]) -> None:
    page = visit()
    page.fill("#peaks", PEAKS)
    page.fill("#precursor_mz", "195,0877")
    page.fill("#adduct", "[M+H]+")
    submit(page)
    job = wait_for_job(page)
    card = page.locator(".card").first
    card.wait_for()  # the only feature is open
    drawing = server.get(f"/api/v1/jobs/{job}/features/0")
    assert "Caffeine" in card.inner_text()
    assert drawing["candidates"][0]["smiles"] == CAFFEINE
    assert page.locator("svg.spectrum:not(.mirror) .peak").count() == 6
    assert page.locator("#command").inner_text().startswith("mzseek annotate pasted.mgf")
    assert page.locator("#table tr.row").count() == 1


def test_files_are_annotated_while_the_page_watches(watched: dict[str, Any]) -> None:
    shown = {name: value for name, value in watched.items() if name != "job"}
    assert shown == {
        "pasting": False, "state": "running", "total": "51", "rows": 51, "title": "measured.mgf",
    }  # fmt: skip


def test_results_are_sorted_filtered_and_downloaded(
    server: Server, visit: Callable[..., Any], finished: str
) -> None:
    page = visit(f"/jobs/{finished}")
    rows = page.locator("#table tr.row:not([hidden])")
    page.locator("#downloads a").first.wait_for()
    removed = "“Peaks that are no fragments: leave as measured” in the form keeps them."
    assert removed in page.locator("#remarks").inner_text()
    assert "Removed" not in page.locator("#notes").inner_text()
    page.get_by_role("button", name="confidence").click()
    shares = [float(row.get_attribute("data-sure")) for row in rows.all()]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == 51
    page.fill("#find", "C15H16O2")
    assert 0 < rows.count() < 51
    page.fill("#find", "no such thing")
    assert page.locator("#empty").is_visible()
    links = {link.inner_text(): link.get_attribute("href") for link in
             page.locator("#downloads a").all()}  # fmt: skip
    files = {name: server.bytes(path) for name, path in links.items()}
    assert files["summary.tsv"].count(b"\n") == 52
    assert len(json.loads(files["JSON"])) == 51
    assert files["mzTab-M"].startswith(b"MTD\tmzTab-version")
    assert b"Content-Security-Policy" in files["report.html"]
    names = zipfile.ZipFile(BytesIO(files["all as .zip"])).namelist()
    assert {Path(name).name for name in names} >= {"summary.tsv", "candidates.tsv", "run.json"}
    with page.expect_download() as download:
        page.locator("text=candidates.tsv").click()
    assert Path(download.value.path()).read_bytes() == files["candidates.tsv"]


def feature_with_choices(server: Server, job: str) -> int:
    """Return the first feature for which objectives decide differently."""
    for number in range(51):
        choices = server.get(f"/api/v1/jobs/{job}/features/{number}")["choices"]
        if choices["hit"][0] != choices["tanimoto"][0]:
            return number
    raise AssertionError("all objectives agree for all features")


def test_peaks_candidates_and_objectives_can_be_explored(
    server: Server, visit: Callable[..., Any], finished: str
) -> None:
    number = feature_with_choices(server, finished)
    page = visit(f"/jobs/{finished}#f{number}")
    data = server.get(f"/api/v1/jobs/{finished}/features/{number}")
    pane = page.locator(".detail")
    pane.locator("svg.spectrum").first.wait_for()
    # A peak lights up its fragment.
    pane.locator("svg.spectrum").first.focus()
    page.keyboard.press("ArrowRight")
    assert pane.locator(".halo.on").count() > 0
    assert "m/z" in pane.locator(".readout").inner_text()
    page.keyboard.press("Escape")
    assert pane.locator(".halo.on").count() == 0
    box = pane.locator("svg.spectrum .peak.explained").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)
    assert pane.locator(".halo.on").count() > 0
    # Candidates side by side.
    pane.locator(".card").nth(1).click()
    assert pane.locator(".card[aria-selected=true]").all_inner_texts() == [
        pane.locator(".card").nth(1).inner_text()
    ]
    # Another objective: its decision, and what it loses by the measure of the first.
    pane.locator(".goals input[value=tanimoto]").check()
    rank, name, smiles = data["choices"]["tanimoto"]
    assert f"{rank}. {(name or smiles)[:20]}" in pane.locator(".goals").inner_text()
    expected = data["expected"]["hit"]
    lost = expected["hit"] - expected["tanimoto"]
    cell = pane.locator(".losses tr", has_text="HR@1").locator("td").last.inner_text()
    assert cell == ("0" if lost < 5e-4 else f"−{100 * lost:.1f}")
    # Figures are saved as they are shown.
    for kind, signature in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            pane.get_by_role("button", name=kind).first.click()
        assert Path(download.value.path()).read_bytes().startswith(signature)
    pane.locator("text=The trade-off of this list").click()
    page.locator("#shown .matrix").wait_for()
    assert page.locator("#shown .choice-card").count() > 1


def test_rows_are_those_of_the_report(
    server: Server, visit: Callable[..., Any], finished: str
) -> None:
    def cells(html: str) -> list[str]:
        shown = re.sub(r'(?<== ")-?\d\.\d+|\s+', " ", html)
        return [
            unescape(text)
            for text in re.findall(r'data-[a-z]+="[^"]*"|class="[^"]*"|>[^<>]+(?=<)', shown)
        ]

    page = visit(f"/jobs/{finished}")
    page.locator("#f50").wait_for()
    rows = server.get(f"/api/v1/jobs/{finished}/rows?limit=51")["rows"]
    template = templates().get_template("annotations/row.html")
    made = page.evaluate(
        "async (rows) => { const { featureRow } = await import('/static/renderer.js');"
        "return rows.map((row, i) => featureRow(i, row).outerHTML); }", rows
    )  # fmt: skip
    for place, (row, html) in enumerate(zip(rows, made, strict=True)):
        ours = [text for text in cells(html) if text.strip(" >")]
        theirs = [text for text in cells(template.render(row, place=place)) if text.strip(" >")]
        assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize(
    ("fields", "wrong", "said"),
    [
        ({}, "peaks", "No peaks"),
        ({"peaks": "195.0877 60\nabc 3", "precursor_mz": "195"}, "peaks", "Line 2"),
        ({"peaks": PEAKS}, "precursor_mz", "missing"),
        ({"peaks": PEAKS, "precursor_mz": "ten"}, "precursor_mz", "“ten”"),
        ({"peaks": PEAKS, "precursor_mz": "195.09", "coverage": "900"}, "coverage", "percentage"),
        ({"peaks": PEAKS, "precursor_mz": "195.09", "adduct": "[M+Q]+"}, "adduct", "Q"),
        ({"peaks": PEAKS, "precursor_mz": "195.09", "ppm": "wide"}, "ppm", "wide"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    visit: Callable[..., Any], fields: dict[str, str], wrong: str, said: str
) -> None:
    page = visit()
    for name, value in fields.items():
        page.fill(f"#{name}", value)
    submit(page)
    message = page.locator(f"#{wrong}-error")
    message.wait_for()
    assert said in message.inner_text()
    assert page.locator(f"#{wrong}").get_attribute("aria-invalid") == "true"
    assert page.locator(".error:visible").count() == 1
    assert page.evaluate("() => document.activeElement.id") == wrong
    page.keyboard.type("1")
    assert message.is_hidden()


def test_a_job_that_fails_says_why_and_keeps_what_was_filled_in(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator("#example").click()
    page.select_option("#database", "")
    page.fill("#list", "not a molecule")
    submit(page)
    wait_for_job(page, "failed")
    assert page.locator("#alert").inner_text().startswith("list.smi: is no list of molecules")
    page.locator("#again a").click()
    sync_api.expect(page.locator("#list")).to_have_value("not a molecule")
    assert page.input_value("#precursor_mz") == "195.0877"
    bad, good = "BEGIN IONS\nEND IONS\n", f"BEGIN IONS\nPEPMASS=195.0877\n{PEAKS}\nEND IONS\n"
    page.fill("#peaks", bad + good)
    page.fill("#list", f"{CAFFEINE} caffeine")
    submit(page)
    wait_for_job(page)
    sync_api.expect(page.locator("#skipped tbody tr")).to_have_count(1)
    sync_api.expect(page.locator("#table tr.row")).to_have_count(1)


def test_the_keyboard_alone_is_enough(visit: Callable[..., Any]) -> None:
    page = visit()

    def tab_to(selector: str, most: int = 60) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} was not reached")

    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    tab_to("#example")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.type") == "submit"
    page.keyboard.press("Enter")
    wait_for_job(page)
    page.locator(".card").first.wait_for()
    tab_to("#table button.open")
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 0
    page.keyboard.press("Enter")
    tab_to(".card")
    page.keyboard.press("ArrowRight")
    assert page.locator(".card").nth(1).get_attribute("aria-selected") == "true"
    tab_to("svg.spectrum")
    page.keyboard.press("ArrowRight")
    assert page.locator("svg.spectrum .peak.on").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_at_400_pixels(
    visit: Callable[..., Any], finished: str, scheme: str
) -> None:
    page = visit(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    for path in (*PAGES, f"/jobs/{finished}#f9"):
        page.goto(path)
        if path.startswith("/jobs"):
            page.locator(".detail svg.spectrum").first.wait_for()
        if path in ("/explain", "/trade-off"):
            page.locator("#example").click()
            submit(page)
            page.locator("#shown svg").first.wait_for()
        assert page.locator("html").evaluate("(html) => html.scrollWidth") == 400, path


def test_molecules_and_reference_spectra_are_found(visit: Callable[..., Any]) -> None:
    page = visit("/search")
    queries = {"name": "caffeine", "formula": "C8H10N4O2", "mass": "194.0804", "smiles": CAFFEINE}
    for kind, query in queries.items():
        choose(page, "by", kind)
        page.fill("#query", query)
        submit(page, "molecules")
        page.locator("#list td", has_text="Caffeine").first.wait_for()
        page.evaluate("() => document.getElementById('list').replaceChildren()")
    choose(page, "by", "name")
    page.select_option("#place", "library/")
    page.fill("#query", "caffeine")
    submit(page, "molecules")
    page.locator("#list svg.spectrum").wait_for()
    page.locator("#list td", has_text="Caffeine").first.wait_for()
    choose(page, "by", "formula")
    page.fill("#query", "Q9")
    submit(page, "molecules")
    page.locator("#query-error:visible").wait_for()
    page.fill("#peaks", PEAKS)
    page.fill("#precursor_mz", "195.0877")
    submit(page, "spectra")
    page.locator("svg.mirror").wait_for()
    assert page.locator("svg.mirror .peak.same").count() > 6


def test_a_structure_is_drawn_and_its_peaks_are_explained(visit: Callable[..., Any]) -> None:
    page = visit("/explain")
    page.fill("#smiles", "C1CC")
    page.locator("#preview", has_text="cannot be drawn").wait_for()
    page.fill("#peaks", PEAKS)
    page.fill("#precursor_mz", "195.0877")
    submit(page)
    page.locator("#smiles-error:visible").wait_for()
    page.fill("#smiles", CAFFEINE)
    page.locator("#preview svg.structure").wait_for()
    submit(page)
    page.locator("#shown svg.spectrum .peak.explained").nth(3).wait_for(state="attached")
    page.locator("#shown summary").click()
    assert page.locator("#shown tbody tr", has_text="C₆H₈N₃O⁺").count() == 1


def test_the_trade_off_of_a_list_is_that_of_the_api(
    server: Server, visit: Callable[..., Any]
) -> None:
    page = visit("/trade-off")
    with page.expect_response("**/trade-off") as answer:
        page.locator("#example").click()
        submit(page)
    page.locator("#shown .matrix").wait_for()
    made = answer.value.json()
    assert made["decisions"]["hit"]["index"] != made["decisions"]["tanimoto"]["index"]
    shown = page.locator("#shown").inner_text()
    assert f"between {made['band']['low']:.2f} and {made['band']['high']:.2f}" in shown
    bound, lost = made["bounds"]["hit_under_similarity"], made["regret"]["tanimoto"]["hit"]
    assert f"loses {100 * lost:.1f}, at most {100 * bound:.1f} points" in shown
    page.fill("#list", "C(( 0.5")
    submit(page)
    page.locator("#list-error:visible").wait_for()


def test_two_users_see_their_own_jobs(visit: Callable[..., Any]) -> None:
    pages = [visit(), visit()]
    for number, page in enumerate(pages):
        page.fill("#peaks", PEAKS.replace("100", str(90 + number)))
        page.fill("#precursor_mz", "195.0877")
        submit(page)
    jobs = [wait_for_job(page) for page in pages]
    assert len(set(jobs)) == 2
    for page, job in zip(pages, jobs, strict=True):
        page.goto("/")
        page.locator("#jobs tbody tr").first.wait_for()
        links = page.locator("#jobs a").all()
        assert [link.get_attribute("href") for link in links] == [f"/jobs/{job}"]


def test_markup_in_inputs_is_text(visit: Callable[..., Any], tmp_path: Path) -> None:
    records = DEMO_QUERIES.read_text().partition("BEGIN IONS")[2].partition("END IONS")[0]
    peaks = "\n".join(line for line in records.splitlines() if re.match(r"\d", line))
    mgf = tmp_path / "<img src=x onerror=document.title='PWNED'>.mgf"
    mgf.write_text(
        "".join(
            f"BEGIN IONS\nTITLE={payload}\nFEATURE_ID={payload}\nPEPMASS=195.0877\n"
            f"ADDUCT=[M+H]+\nCOLLISION_ENERGY={payload}\n{peaks}\nEND IONS\n\n"
            for payload in PAYLOADS
        )
    )
    quoted = [f'{CAFFEINE}\t"{name}"' for name in (text.replace('"', '""') for text in PAYLOADS)]
    candidates = tmp_path / "list.tsv"
    candidates.write_text("smiles\tname\n" + "\n".join([*quoted, f'"{PAYLOADS[0]}"\tx']) + "\n")
    page = visit()
    choose(page, "source", "files")
    page.set_input_files("#files", mgf)
    page.select_option("#database", "")
    page.set_input_files("#candidates", candidates)
    submit(page)
    wait_for_job(page)
    for row in page.locator("#table tr.row button.open").all():
        row.click()
    page.locator(".detail svg.spectrum").nth(len(PAYLOADS) - 1).wait_for()
    assert page.locator("#table button.open").all_inner_texts() == list(PAYLOADS)
    page.hover("#table tr.row >> nth=2")
    assert page.title().endswith(" · mzseek")  # a payload would have set it
    page.goto("/trade-off")
    page.fill("#list", f"{PAYLOADS[3].replace(' ', '')} 0.5")
    submit(page)
    page.locator("#list-error:visible").wait_for()
    page.goto("/jobs/" + quote(PAYLOADS[1], safe=""))
    page.locator("#alert:visible").wait_for()
    assert page.title() == "Job · mzseek"
    assert page.locator("main script, main img").count() == 0


def test_a_job_goes_on_after_the_server_was_killed(
    server: Server, visit: Callable[..., Any]
) -> None:
    page = visit()
    choose(page, "source", "files")
    records = DEMO_MEASURED.read_text().split("\n\n")[:25]
    spectra = {
        "name": "many.mgf",
        "mimeType": "text/plain",
        "buffer": "\n\n".join(records).encode(),
    }
    page.set_input_files("#files", spectra)
    submit(page)
    page.wait_for_url("**/jobs/*", wait_until="commit")
    page.locator("#table tr.row").first.wait_for()
    server.kill()
    page.locator("#alert", has_text="cannot be reached").wait_for()
    server.start()
    wait_for_job(page)
    assert page.locator("#table tr.row").count() == 24
    assert page.locator("#alert").is_hidden()
    names = [button.inner_text() for button in page.locator("#table button.open").all()]
    assert len(set(names)) == 24


def test_pages_are_accessible(visit: Callable[..., Any], finished: str) -> None:
    script = axe.AXE_FILE_PATH.read_text("utf-8")
    for scheme in ("light", "dark"):
        page = visit("/", color_scheme=scheme, bypass_csp=True)
        for path in (*PAGES, f"/jobs/{finished}#f9"):
            page.goto(path)
            if path in ("/explain", "/trade-off"):
                page.locator("#example").click()
                submit(page)
                page.locator("#shown svg").first.wait_for()
            if path.startswith("/jobs"):
                page.locator(".detail svg.spectrum").first.wait_for()
            page.evaluate(script)
            found = page.evaluate("() => axe.run()")["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], (path, scheme)
