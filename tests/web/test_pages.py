"""Pages, scripts and styles as the server sends them, without a browser."""

import re
from types import SimpleNamespace

import pytest

pytest.importorskip("fastapi")

from fastapi import FastAPI
from fastapi.testclient import TestClient

from mzseek.decision import UTILITIES
from mzseek.export.report import renderer
from mzseek.web.pages import make_router
from mzseek.web.settings import Limits

PATHS = ("/", "/jobs/some", "/search", "/explain", "/trade-off", "/help")
PAYLOAD = "<img src=x onerror=alert(1)>\"'"


@pytest.fixture
def client() -> TestClient:
    """Pages of a server whose database and library have the worst of names."""
    app = FastAPI()
    services = SimpleNamespace(
        settings=SimpleNamespace(limits=Limits()), libraries={PAYLOAD: "spectra"},
        databases={"bundled": "small", PAYLOAD: "large"},
    )  # fmt: skip
    app.include_router(make_router(services))
    return TestClient(app)


@pytest.mark.parametrize("path", PATHS)
def test_pages_hold_no_code_and_load_nothing_from_elsewhere(client: TestClient, path: str) -> None:
    page = client.get(path).text
    assert "<img" not in page
    assert "\n<h1" in page or "><h1" in page
    for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL):
        assert 'type="application/json"' in attributes or not content
    assert "<style" not in page
    tags = re.sub(r'"[^"]*"', '""', "".join(re.findall(r"<[a-z][^>]*>", page)))
    assert not re.search(r"\s(style|on\w+)=", tags)
    assert not re.search(r'(src|href|action)="(?!/|#)', page)
    for name in re.findall(r'"/static/([^"]+)"', page):
        assert client.get(f"/static/{name}").status_code == 200


def test_names_of_databases_are_choices(client: TestClient) -> None:
    assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;" in client.get("/").text


def test_scripts_import_only_what_is_defined(client: TestClient) -> None:
    modules = (
        "api",
        "explain",
        "forms",
        "job",
        "new",
        "peaks",
        "search",
        "structures",
        "trade-off",
    )
    texts = {f"{name}.js": client.get(f"/static/{name}.js").text for name in modules}
    texts["renderer.js"] = client.get("/static/renderer.js").text
    assert texts["renderer.js"].startswith(renderer())
    for text in texts.values():
        for names, module in re.findall(
            r'^import \{ (.*?) \} from "\./(.*?)";', text, re.MULTILINE
        ):
            defined = " ".join(re.findall(r"^export (.*)", texts[module], re.MULTILINE))
            for name in names.split(", "):
                assert re.search(rf"\b{name}\b", defined), (module, name)


def test_options_in_remarks_are_called_as_in_the_form(client: TestClient) -> None:
    form, script = client.get("/").text, client.get("/static/job.js").text
    fields = re.findall(r'"--(\w+) (\w+)": "“(.*?): (.*?)” in the form"', script)
    assert {option for option, *_ in fields} == {"clean", "recalibrate"}
    for option, value, label, text in fields:
        assert f'<label for="{option}">{label}</label>' in form
        choices = form.partition(f'<select id="{option}"')[2].partition("</select>")[0]
        assert f'<option value="{value}">{text}</option>' in choices


def test_assets_are_sent_once(client: TestClient) -> None:
    first = client.get("/static/app.css")
    again = client.get("/static/app.css", headers={"If-None-Match": first.headers["etag"]})
    assert (first.headers["content-type"], again.status_code) == ("text/css; charset=utf-8", 304)
    assert not again.content
    assert client.get("/static/..%2fpages.py").status_code == 404
    assert client.get("/static/pages.py").status_code == 404


def test_structures_are_laid_out_for_previews(client: TestClient) -> None:
    found = client.get("/structure", params={"smiles": "CC=O"}).json()
    assert found["at"] == {"2": ["O", 0, 0, 0]}
    assert client.get("/structure", params={"smiles": "C(("}).status_code == 404
    assert client.get("/structure", params={"smiles": "C" * 1_001}).status_code == 404


def test_objectives_have_a_purpose(client: TestClient) -> None:
    page = client.get("/").text
    for name in UTILITIES:
        assert f'<option value="{name}">' in page
