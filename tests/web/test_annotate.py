"""Single requests: results are those of the command line and of Python, errors have codes."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import mzseek as mz
from mzseek.annotation.annotator import Annotator
from mzseek.decision import regret
from mzseek.export.json_array import annotation_object
from mzseek.export.report import row_data
from mzseek.formulas import rank_formulas
from mzseek.web.errors import ApiError
from mzseek.web.models import Options, command_line
from mzseek.web.settings import BUNDLED, ServerSettings
from mzseek.web.tasks import Resources, annotate, annotate_together, attempted

from .conftest import CAFFEINE, LIMITS, PEAKS, SPECTRUM, running, submit, wait


def post(client: TestClient, path: str, **body: Any) -> Any:
    response = client.post(f"/api/v1/{path}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.slow
def test_api_command_line_and_python_agree(
    client: TestClient, measured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "END IONS\n".join(measured.split("END IONS\n")[:2]) + "END IONS\n"
    monkeypatch.chdir(tmp_path)
    Path("spectra.mgf").write_text(text)
    found = mz.annotate("spectra.mgf", top=5, objective="tanimoto")
    found.save("python.json")
    command = ["spectra.mgf", "--top", "5", "--objective", "tanimoto", "--out", "cli.json"]
    run = subprocess.run([sys.executable, "-m", "mzseek", "annotate", *command], check=False)
    assert run.returncode == 0
    expected = json.loads(Path("python.json").read_text())
    assert json.loads(Path("cli.json").read_text()) == expected

    answer = post(client, "annotate", text=text, options={"top": 5, "objective": "tanimoto"})
    features = answer["features"]
    rows = [feature.pop("row") for feature in features]
    drawings = [feature.pop("drawing") for feature in features]
    assert features == expected
    assert rows[0] == json.loads(json.dumps(row_data(found[0])))
    assert drawings[1]["name"] == expected[1]["feature"]
    assert answer["command"].split()[:3] == ["mzseek", "annotate", "spectra.mgf"]

    job = submit(client, text, "spectra.mgf", data={"options": '{"top":5,"objective":"tanimoto"}'})
    assert wait(client, job)["state"] == "done"
    assert client.get(f"/api/v1/jobs/{job}/results/json").json() == expected


@pytest.mark.slow
def test_formulas_of_api_command_line_and_python_agree(
    client: TestClient, measured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "END IONS\n".join(measured.split("END IONS\n")[:2]) + "END IONS\n"
    options = {"ppm": 5, "elements": "CHNOPS", "top": 4}
    answer = post(client, "formula", text=text, options=options)
    assert answer["command"] == (
        "mzseek formula spectra.mgf --ppm 5 --elements CHNOPS --top 4 --out formulas.tsv"
    )
    monkeypatch.chdir(tmp_path)
    Path("spectra.mgf").write_text(text)
    command = [sys.executable, "-m", *answer["command"].split()]
    assert subprocess.run(command, check=False).returncode == 0
    table = Path("formulas.tsv").read_text().splitlines()
    rows = [dict(zip(table[0].split("\t"), line.split("\t"), strict=True)) for line in table[1:]]
    found = [
        (feature["feature"], feature["found"], formula)
        for feature in answer["features"]
        for formula in feature["formulas"]
    ]
    assert len(rows) == len(found) > 4
    for row, (name, number, formula) in zip(rows, found, strict=True):
        assert [row["feature"], int(row["found"])] == [name, number]
        for key in ("molecularFormula", "adduct"):
            assert row[key] == formula[key]
        assert float(row["probability"]) == pytest.approx(formula["probability"], rel=1e-4)
        assert float(row["errorPpm"]) == pytest.approx(formula["errorPpm"], abs=0.006)
        assert float(row["explainedIntensity"]) == pytest.approx(
            formula["explainedIntensity"], abs=1e-4
        )
    spectra = list(mz.read_spectra("spectra.mgf"))
    expected = rank_formulas(spectra[0], ppm=5, elements=("C", "H", "N", "O", "P", "S"), top=4)
    first = answer["features"][0]["formulas"]
    assert [formula["probability"] for formula in first] == [
        ranked.probability for ranked in expected
    ]


@pytest.mark.slow
def test_requests_done_together_have_the_results_of_each_alone(
    measured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = Resources(ServerSettings(data_dir=tmp_path, limits=LIMITS).for_worker())
    options = {"database": BUNDLED, "library": []}
    texts = measured.split("END IONS\n")[:4]
    requests: list[dict[str, Any]] = [
        *({"text": f"{text}END IONS\n", "options": options} for text in texts),
        {**SPECTRUM, "options": options},
        {**SPECTRUM, "adduct": "[M+Xy]+", "options": options},
        {**SPECTRUM, "instrument": "qtof", "options": options},
        {"text": measured, "options": options},  # too many spectra
    ]
    alone = [attempted(annotate, resources, request) for request in requests]
    batches = []
    annotate_batch = Annotator.annotate_batch

    def counted(self: Annotator, features: Any) -> Any:
        batches.append(len(features))
        return annotate_batch(self, features)

    monkeypatch.setattr(Annotator, "annotate_batch", counted)
    together = annotate_together(resources, requests)
    assert batches == [5, 1]  # with and without an instrument
    assert list(map(str, together)) == list(map(str, alone))
    assert [isinstance(result, ApiError) for result in together] == [False] * 5 + [
        True,
        False,
        True,
    ]

    def broken(self: Annotator, features: Any) -> Any:
        if len(features) > 1:
            raise RuntimeError("a defect that one spectrum shows")
        return annotate_batch(self, features)

    monkeypatch.setattr(Annotator, "annotate_batch", broken)
    assert list(map(str, annotate_together(resources, requests))) == list(map(str, alone))


@pytest.mark.slow
def test_waiting_requests_are_done_together_and_survive_a_killed_worker(
    measured: str, tmp_path: Path
) -> None:
    records = [text for text in measured.split("END IONS\n") if "BEGIN IONS" in text]
    texts = [f"{text}END IONS\n" for text in 3 * records]
    with running(ServerSettings(data_dir=tmp_path, workers=1, limits=LIMITS)) as client:
        pool = client.app.state.services.pool  # type: ignore[attr-defined]
        while not pool.is_ready:
            time.sleep(0.05)
        expected = [post(client, "annotate", text=text) for text in texts]
        with ThreadPoolExecutor(len(texts)) as threads:
            answers = [threads.submit(post, client, "annotate", text=text) for text in texts]
            while len(pool._workers[0].tasks) < 2:
                time.sleep(0.001)
            os.kill(pool._workers[0].process.pid, signal.SIGKILL)
            assert [answer.result() for answer in answers] == expected
        assert pool.restarts == 1


def test_formulas_have_their_evidence(client: TestClient) -> None:
    pattern = [[195.0877, 100.0], [196.0907, 9.8]]
    answer = post(client, "formula", **SPECTRUM, ms1=pattern, options={"top": 3})
    (feature,) = answer["features"]
    first = feature["formulas"][0]
    assert (first["molecularFormula"], first["adduct"]) == ("C8H10N4O2", "[M+H]+")
    assert len(feature["formulas"]) == 3 <= feature["found"]
    assert 0.5 < first["probability"] <= 1
    assert abs(first["errorPpm"]) < 1
    assert first["explainedIntensity"] > 0.9
    assert first["isotopeScore"] is not None
    without = post(client, "formula", **SPECTRUM)["features"][0]["formulas"]
    assert {formula["isotopeScore"] for formula in without} == {None}


@pytest.mark.slow
def test_peaks_are_a_spectrum_of_mgf(client: TestClient) -> None:
    spectrum = mz.Spectrum(
        *map(np.array, zip(*PEAKS, strict=True)), 195.0877, "[M+H]+", 1, "spectrum"
    )
    expected = annotation_object(mz.annotate(spectrum)[0])
    (found,) = post(client, "annotate", **SPECTRUM)["features"]
    assert found["candidates"] == json.loads(json.dumps(expected["candidates"]))
    lines = "".join(f"{mz}\t{height}\n" for mz, height in PEAKS)
    pasted = {"text": lines, "precursor_mz": 195.0877, "adduct": "[M+H]+"}
    assert post(client, "annotate", **pasted)["features"] == [found]


def test_candidates_of_a_request_are_the_only_ones(client: TestClient) -> None:
    given = [CAFFEINE, "CCn1c(=O)[nH]c2ncn(C)c2c1=O"]
    answer = post(client, "annotate", **SPECTRUM, candidates=given, options={"strict": True})
    (feature,) = answer["features"]
    assert {candidate["smiles"] for candidate in feature["candidates"]} == set(given)
    assert "--database candidates.tsv" in answer["command"]


def test_explain_search_and_decide(client: TestClient) -> None:
    explained = post(client, "explain", **SPECTRUM, smiles=CAFFEINE)
    assert (explained["formula"], explained["explained"]) == ("C8H10N4O2", 1.0)
    assert [len(explained["peaks"]), len(explained["drawing"]["structures"])] == [4, 1]

    for query in ("name=caffeine", "formula=O2N4C8H10", "mass=194.0804"):
        found = client.get(f"/api/v1/database/search?{query}").json()
        assert CAFFEINE in [molecule["smiles"] for molecule in found["molecules"]], query
    matches = post(client, "library/search", **SPECTRUM, ppm=10, limit=3)["matches"]
    assert (matches[0]["smiles"], matches[0]["name"]) == (CAFFEINE, "Caffeine")
    assert len(matches) == 3

    for query in ("name=CAFFEINE", "formula=O2N4C8H10", "mass=194.0804"):
        found = client.get(f"/api/v1/library/search?limit=50&{query}").json()
        references = {row["identifier"]: row for row in found["references"]}
        assert len(references) == min(found["total"], 50)
        own = references[matches[0]["identifier"]]
        assert own == {name: matches[0][name] for name in own}, query

    rows = [CAFFEINE, "CCn1c(=O)[nH]c2ncn(C)c2c1=O", "CCO"]
    p = [0.4, 0.35, 0.25]
    decided = post(client, "decide", smiles=rows, probabilities=[8, 7, 5])
    bits = mz.fingerprints(rows, "morgan2")
    assert decided["regret"]["hit"]["tanimoto"] == pytest.approx(
        regret("hit", "tanimoto", bits, p), abs=1e-12
    )
    traded = post(client, "trade-off", smiles=rows, probabilities=p, similarity="cosine")
    assert 0 <= traded["band"]["low"] <= traded["band"]["high"] <= 1
    assert traded["expected"] == decided["expected"]


@pytest.mark.slow
def test_structures_are_searched_by_similarity(client: TestClient) -> None:
    for what, rows in (("database", "molecules"), ("library", "references")):
        found = client.get(f"/api/v1/{what}/search", params={"smiles": CAFFEINE, "limit": 40})
        similar = [row["similarity"] for row in found.json()[rows]]
        assert found.json()[rows][0]["smiles"] == CAFFEINE
        assert similar == sorted(similar, reverse=True)
        assert (similar[0], similar[-1] < 1, found.json()["total"] > 40) == (1.0, True, True)


ERRORS: list[tuple[str, dict[str, Any], int, str, str | None]] = [
    ("annotate", {}, 422, "invalid", "peaks"),
    ("annotate", {"peaks": PEAKS}, 422, "invalid", "precursor_mz"),
    ("annotate", {"peaks": [], "precursor_mz": 195.0}, 422, "bad_spectrum", "peaks"),
    ("annotate", {**SPECTRUM, "adduct": "[M+Xy]+"}, 422, "bad_spectrum", "adduct"),
    ("annotate", {**SPECTRUM, "color": 1}, 422, "invalid", "color"),
    ("annotate", {**SPECTRUM, "options": {"model": "/etc"}}, 422, "invalid", "options.model"),
    ("annotate", {**SPECTRUM, "options": {"prior": "/etc/passwd"}}, 422, "invalid",
     "options.prior"),
    ("annotate", {**SPECTRUM, "options": {"ppm": "wide"}}, 422, "bad_option", "options.ppm"),
    ("annotate", {**SPECTRUM, "options": {"database": "x"}}, 422, "unknown_database", "database"),
    ("annotate", {**SPECTRUM, "options": {"library": ["x"]}}, 422, "unknown_library", "library"),
    ("annotate", {"text": "what is this"}, 415, "unsupported_format", "text"),
    ("annotate", {**SPECTRUM, "peaks": [[100.0, 1.0]] * 51}, 413, "too_many_peaks", "peaks"),
    ("annotate", {**SPECTRUM, "candidates": ["C"] * 6}, 413, "too_many_candidates", "candidates"),
    ("annotate", {**SPECTRUM, "candidates": ["C" * 101]}, 413, "smiles_too_long", "candidates"),
    ("annotate", {**SPECTRUM, "candidates": ["not a molecule"]}, 415, "unsupported_format", None),
    ("formula", {"peaks": PEAKS}, 422, "invalid", "precursor_mz"),
    ("formula", {**SPECTRUM, "options": {"elements": "CHUx"}}, 422, "bad_option",
     "options.elements"),
    ("formula", {**SPECTRUM, "options": {"objective": "hit"}}, 422, "invalid",
     "options.objective"),
    ("formula", {**SPECTRUM, "ms1": [[100.0, 1.0]] * 51}, 413, "too_many_peaks", "ms1"),
    ("formula", {"text": "BEGIN IONS\nEND IONS\n", "ms1": PEAKS}, 422, "invalid", "ms1"),
    ("explain", {**SPECTRUM, "smiles": "C1"}, 422, "bad_molecule", "smiles"),
    ("explain", {**SPECTRUM, "smiles": "C", "adduct": "[M+Q]+"}, 422, "bad_spectrum", "adduct"),
    ("decide", {"smiles": ["C"], "probabilities": [0]}, 422, "bad_probabilities", "probabilities"),
    ("decide", {"smiles": ["C"], "probabilities": [1, 2]}, 422, "bad_probabilities",
     "probabilities"),
    ("decide", {"smiles": ["C1"], "probabilities": [1]}, 422, "bad_molecule", "smiles"),
    ("trade-off", {"job": "x", "feature": 0}, 404, "no_such_job", None),
    ("library/search", {**SPECTRUM, "library": "x"}, 422, "unknown_library", "library"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "field"), ERRORS, ids=[f"{e[0]}-{e[3]}" for e in ERRORS]
)
def test_errors_have_codes(
    client: TestClient, path: str, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    response = client.post(f"/api/v1/{path}", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["field"]) == (status, code, field), error
    assert error["message"]
    assert "\n" not in error["message"]


def test_errors_of_the_body(client: TestClient, measured: str) -> None:
    def code(**request: Any) -> tuple[int, str]:
        response = client.post("/api/v1/annotate", **request)
        return response.status_code, response.json()["error"]["code"]

    json_type = {"content-type": "application/json"}
    assert code(content=b"{", headers=json_type) == (400, "bad_json")
    assert code(content=b"a=1", headers={"content-type": "text/csv"}) == (
        415, "unsupported_media_type",
    )  # fmt: skip
    assert code(json={"text": measured}) == (413, "too_many_spectra")
    assert code(content=b" " * 200_001, headers=json_type) == (413, "body_too_large")
    stream = (b" " * 50_000 for _ in range(5))  # without a length
    assert code(content=stream, headers=json_type) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("query", "code"),
    [("", "invalid"), ("name=a&mass=1", "invalid"), ("mass=-1", "invalid"),
     ("name=+", "bad_query"), ("formula=Xx9", "bad_query"), ("smiles=C1", "bad_molecule"),
     ("name=a&database=x", "unknown_database"), ("smiles=" + "C" * 101, "smiles_too_long")],
)  # fmt: skip
def test_errors_of_searches(client: TestClient, query: str, code: str) -> None:
    for what in ("database", "library"):
        address = f"/api/v1/{what}/search?{query.replace('database', what)}"
        assert client.get(address).json()["error"]["code"] == code.replace("database", what)


def test_a_formula_that_cannot_be_read_is_named_once(client: TestClient) -> None:
    for what in ("database", "library"):
        answer = client.get(f"/api/v1/{what}/search?formula=C8Xx").json()
        assert answer["error"]["message"].count("C8Xx") == 1


def test_the_command_line_states_the_options() -> None:
    given = Options(ppm=5, adduct=("[M+H]+", "+[M+K]+"), top=100, database="hmdb", coverage=0.8)
    assert command_line(["a b.mgf"], given.given()) == (
        "mzseek annotate 'a b.mgf' --database hmdb --adduct '[M+H]+' --adduct '+[M+K]+' --ppm 5 "
        "--coverage 0.8 --out answers"
    )
