"""Downloads from a small local server that can be told to misbehave."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError, URLError

import numpy as np
import pytest

from mzseek.io.download import ask, download

CONTENT = np.random.default_rng(0).bytes(3_000_000)
SHA = hashlib.sha256(CONTENT).hexdigest()
GIT = hashlib.sha1(f"blob {len(CONTENT)}\0".encode() + CONTENT).hexdigest()


class Site:
    """What the server does, and what was asked of it."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.tag = SHA
        self.cut: list[int] = []  # bytes after which the next answers end
        self.codes: list[int] = []  # of the next answers
        self.ranges = True
        self.asked: list[str] = []
        self.address = ""

    def url(self, path: str = "file") -> str:
        return f"{self.address}/{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def _head(self) -> bool:
            if self.path == "/missing":
                self.send_error(404)
                return False
            if self.path.startswith("/moved"):  # as the hub answers for large files
                aim = "/file" if self.path == "/moved-here" else f"{self._other()}/file"
                self.send_response(302)
                self.send_header("Location", aim)
                self.send_header("X-Linked-ETag", f'"{site.tag}"')
                self.send_header("X-Linked-Size", str(len(site.content)))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False
            return True

        def _other(self) -> str:
            return site.address.replace("127.0.0.1", "localhost")

        def do_HEAD(self) -> None:
            if self._head():
                self.send_response(200)
                self.send_header("ETag", f'"{site.tag}"')
                self.send_header("Content-Length", str(len(site.content)))
                self.end_headers()

        def do_GET(self) -> None:
            if not self._head():
                return
            asked = self.headers.get("Range", "")
            site.asked.append(asked)
            if site.codes:
                self.send_error(site.codes.pop(0))
                return
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and site.ranges else 0
            if start and start >= len(site.content):
                self.send_error(416)
                return
            body = site.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: site.cut.pop(0)] if site.cut else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield site
    server.shutdown()
    server.server_close()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("path", ["file", "moved-here", "moved-away"])
@pytest.mark.parametrize("tag", [SHA, GIT, "anything"])
def test_a_file_comes_whole(site: Site, tmp_path: Path, path: str, tag: str) -> None:
    site.tag = tag
    told: list[tuple[int, int]] = []
    download(site.url(path), tmp_path / "in" / "x", lambda *said: told.append(said))
    assert (tmp_path / "in" / "x").read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert left(tmp_path / "in") == ["x"]
    assert ask(site.url(path)).tag == tag


def test_what_is_there_stays_unless_it_differs(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_bytes(CONTENT)
    download(site.url(), target)
    assert site.asked == []
    target.write_bytes(CONTENT[:-1] + b"?")
    download(site.url(), target)
    assert target.read_bytes() == CONTENT


def test_after_broken_connections_only_the_rest_is_fetched(site: Site, tmp_path: Path) -> None:
    site.cut = [1_000_000, 0, 500_000]
    site.codes = [503]
    download(site.url(), tmp_path / "x", wait=0.01)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert site.asked == ["", "", "bytes=1000000-", "bytes=1000000-", "bytes=1500000-"]


def test_a_second_call_goes_on_where_the_first_ended(site: Site, tmp_path: Path) -> None:
    site.cut = [1_000_000, 0, 0, 0, 0]
    with pytest.raises(OSError, match="5 times"):
        download(site.url(), tmp_path / "x", wait=0.001)
    assert not (tmp_path / "x").exists()
    site.asked.clear()
    download(site.url(), tmp_path / "x")
    assert site.asked == ["bytes=1000000-"]
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert left(tmp_path) == ["x"]


def test_a_server_without_ranges_begins_again(site: Site, tmp_path: Path) -> None:
    site.cut, site.ranges = [1_000_000], False
    download(site.url(), tmp_path / "x", wait=0.01)
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_versions_are_never_mixed(site: Site, tmp_path: Path) -> None:
    site.cut = [1_000_000, 0, 0, 0, 0]
    with pytest.raises(OSError, match="5 times"):
        download(site.url(), tmp_path / "x", wait=0.001)
    site.content = CONTENT[::-1]
    site.tag = hashlib.sha256(site.content).hexdigest()
    download(site.url(), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == site.content
    assert left(tmp_path) == ["x"]


def test_other_content_than_announced_is_refused(site: Site, tmp_path: Path) -> None:
    site.tag = "0" * 64
    with pytest.raises(OSError, match=r"\(3,000,000 bytes\) is not the file that was announced"):
        download(site.url(), tmp_path / "x")
    assert left(tmp_path) == []


def test_what_is_missing_and_who_is_away(site: Site, tmp_path: Path) -> None:
    with pytest.raises(HTTPError, match="404"):
        download(site.url("missing"), tmp_path / "x")
    with pytest.raises(URLError, match="refused"):
        download("http://127.0.0.1:9/file", tmp_path / "x")
    assert left(tmp_path) == []
