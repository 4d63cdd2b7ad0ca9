"""Who may do what: token, sessions, CSRF, Host, and headers."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mzseek.core.errors import ServerError
from mzseek.web.settings import BUNDLED, ServerSettings, named_paths, read_token

TOKEN = "a-long-enough-token"
PAGE = {"accept": "text/html"}
FILE = [("files", ("a.mgf", b"x"))]


def csrf_of(client: TestClient) -> str:
    """Open the page, as a browser does, and read its CSRF token."""
    text = client.get("/", headers=PAGE).text
    return text.split('name="csrf-token" content="')[1].split('"')[0]


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_a_token_is_needed_to_listen_elsewhere() -> None:
    with pytest.raises(ServerError, match="--token"):
        ServerSettings(host="0.0.0.0")
    with pytest.raises(ServerError, match="at least"):
        ServerSettings(host="0.0.0.0", token="short")
    assert ServerSettings(host="0.0.0.0", token=TOKEN).token == TOKEN
    assert ServerSettings(host="::1").is_local


def test_the_token_lets_programs_and_browsers_in(idle: Any) -> None:
    with idle(token=TOKEN) as client:
        assert code(client.get("/api/v1/info")) == (401, "unauthorized")
        wrong = {"authorization": "Bearer not-the-token-at-all"}
        assert code(client.get("/api/v1/info", headers=wrong)) == (401, "unauthorized")
        assert code(client.get("/metrics")) == (401, "unauthorized")
        assert client.get("/health").status_code == 200
        right = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/info", headers=right).status_code == 200
        assert client.post("/api/v1/jobs", files=FILE, headers=right).status_code == 201

        page = client.get("/", headers=PAGE, follow_redirects=False)
        assert (page.status_code, page.headers["location"]) == (303, "/login")
        assert client.post("/login", data={"token": "no"}).status_code == 401
        login = client.post("/login", data={"token": TOKEN}, follow_redirects=False)
        cookie = login.headers["set-cookie"]
        assert "SameSite=Strict" in cookie
        assert "HttpOnly" in cookie
        assert TOKEN not in cookie
        assert client.get("/api/v1/info").status_code == 200
        assert code(client.post("/api/v1/jobs", files=FILE)) == (403, "forbidden")
        csrf = {"x-csrf-token": csrf_of(client)}
        assert client.post("/api/v1/jobs", files=FILE, headers=csrf).status_code == 201


def test_a_link_with_the_token_lets_in_and_hides_it(idle: Any) -> None:
    with idle(token=TOKEN) as client:
        response = client.get(f"/?token={TOKEN}", headers=PAGE, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert client.get("/", headers=PAGE).status_code == 200
        client.cookies.clear()
        client.cookies.set("mzseek_session", "made-up.0123")
        assert code(client.get("/api/v1/info")) == (401, "unauthorized")


def test_pages_of_other_sites_can_change_nothing(idle: Any) -> None:
    with idle() as client:
        assert client.post("/api/v1/jobs", files=FILE).status_code == 201  # curl
        other = {"origin": "http://evil.example"}
        assert code(client.post("/api/v1/jobs", files=FILE, headers=other)) == (403, "forbidden")
        assert code(client.post("/api/v1/jobs", files=FILE, headers={"origin": "null"})) == (
            403, "forbidden",
        )  # fmt: skip
        site = {"sec-fetch-site": "cross-site"}
        assert code(client.post("/api/v1/jobs", files=FILE, headers=site)) == (403, "forbidden")
        csrf = csrf_of(client)
        own = {"origin": "http://127.0.0.1", "x-csrf-token": csrf}
        assert client.post("/api/v1/jobs", files=FILE, headers=own).status_code == 201
        own["x-csrf-token"] = "0" * len(csrf)
        assert code(client.post("/api/v1/jobs", files=FILE, headers=own)) == (403, "forbidden")


@pytest.mark.parametrize(
    ("host", "is_known"),
    [("localhost:8765", True), ("[::1]:80", True), ("ms.lab.org", True), ("evil.example", False),
     ("127.0.0.1.evil.example", False), ("", False), ("127.0.0.1@evil", False)],
)  # fmt: skip
def test_other_names_of_the_server_are_refused(idle: Any, host: str, is_known: bool) -> None:
    with idle(hosts=("ms.lab.org",)) as client:
        response = client.get("/health", headers={"host": host})
        assert response.status_code == (200 if is_known else 400)
        if not is_known:
            assert code(response) == (400, "bad_host")


def test_two_users_see_their_own_jobs(idle: Any) -> None:
    with idle() as client:
        jobs = {}
        sessions = {}
        for user in ("a", "b"):
            client.cookies.clear()
            csrf = {"x-csrf-token": csrf_of(client)}
            sessions[user] = dict(client.cookies)
            jobs[user] = client.post("/api/v1/jobs", files=FILE, headers=csrf).json()["id"]
        for user, cookies in sessions.items():
            client.cookies.clear()
            client.cookies.update(cookies)
            listed = client.get("/api/v1/jobs").json()["jobs"]
            assert [job["id"] for job in listed] == [jobs[user]]
        client.cookies.clear()
        assert client.get("/api/v1/jobs").json() == {"jobs": []}
        assert len(jobs["a"]) >= 32


def test_all_responses_have_the_headers(idle: Any) -> None:
    with idle() as client:
        for response in (client.get("/"), client.get("/nowhere"), client.get("/health"),
                         client.get("/", headers={"host": "evil"})):  # fmt: skip
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "server" not in response.headers
        assert code(client.get("/nowhere")) == (404, "not_found")
        assert code(client.put("/api/v1/info")) == (405, "method_not_allowed")


def test_logs_name_neither_jobs_nor_samples(idle: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="mzseek.web")
    with idle() as client:
        files = [("files", ("patient-7.mgf", b"x"))]
        job = client.post("/api/v1/jobs", files=files).json()["id"]
        client.get(f"/api/v1/jobs/{job}?name=patient-7")
        client.get("/patient-7")
    assert "POST /api/v1/jobs 201" in caplog.text
    assert "GET /api/v1/jobs/{id} 200" in caplog.text
    assert job not in caplog.text
    assert "patient-7" not in caplog.text


def test_a_second_server_cannot_use_the_same_folder(idle: Any, tmp_path: Path) -> None:
    from mzseek.core.errors import BusyError

    with idle(), pytest.raises(BusyError), idle():
        pass


def test_settings_from_paths(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "db", tmp_path / "b" / "db", tmp_path / BUNDLED]
    for path in paths:
        path.mkdir(parents=True)
    assert len({*named_paths(paths), BUNDLED}) == 4
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o644)
    with pytest.raises(ServerError, match="chmod 600"):
        read_token(token)
    token.chmod(0o600)
    assert read_token(token) == TOKEN
