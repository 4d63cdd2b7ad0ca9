"""Download a file, verify it, and continue after an interruption.

Written here and not with pooch, which starts an interrupted download anew.
"""

import contextlib
import glob
import hashlib
import http.client
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen

from mzseek.io.writing import disk_error_reason, disk_errors

_CHUNK = 1 << 20
_TIMEOUT = 30.0  # seconds without a byte
_ATTEMPTS = 5
_REDIRECTS = 5
_AGENT = {"User-Agent": "mzseek", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Remote:
    """Size in bytes and ETag of a file on a server.

    A tag of 64 hexadecimal digits is the content's SHA-256, one of 40 its hash in git.
    """

    size: int | None
    tag: str

    def is_content_of(self, path: Path) -> bool:
        """Whether a local file has this size and, where the tag is a hash, this content."""
        if self.size is not None and path.stat().st_size != self.size:
            return False
        if re.fullmatch("[0-9a-f]{64}", self.tag):
            hashed = hashlib.sha256()
        elif re.fullmatch("[0-9a-f]{40}", self.tag):
            hashed = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        else:
            return True
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                hashed.update(chunk)
        return hashed.hexdigest() == self.tag


def download(
    url: str,
    target: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    wait: float = 1.0,
) -> None:
    """Download a file to ``target``, unless the same file is there already.

    ``progress`` gets bytes received and bytes in all; ``wait`` is the number of seconds before the
    second attempt, doubled before each further one.

    Raises
    ------
    OSError
        The server cannot be reached or has no such file (`urllib.error` says which), or what came
        is not the whole file.
    WriteError
        It cannot be written.
    """
    remote = ask(url)
    if target.is_file() and remote.tag and remote.is_content_of(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Named after the content, so that the rest of another version is never added to this one.
    digest = hashlib.sha256(f"{url} {remote.tag} {remote.size}".encode()).hexdigest()[:12]
    partial = target.with_name(f".{target.name}.{digest}.download")
    for other in target.parent.glob(f".{glob.escape(target.name)}.*.download"):
        if other != partial:
            other.unlink(missing_ok=True)
    with disk_errors(target):
        _receive(url, partial, remote, progress, wait)
        if not remote.is_content_of(partial):
            size = partial.stat().st_size
            partial.unlink()
            raise OSError(f"what was received ({size:,} bytes) is not the file that was announced")
        partial.replace(target)


def ask(url: str) -> Remote:
    """Return size and tag of a file; a store that it is redirected to states fewer headers."""
    opener = build_opener(_NoRedirection)
    for _ in range(_REDIRECTS):
        try:
            with opener.open(Request(url, headers=_AGENT, method="HEAD"), timeout=_TIMEOUT) as ok:
                return _described(ok.headers)
        except HTTPError as response:
            location = urljoin(url, response.headers.get("Location", ""))
            if not 300 <= response.code < 400 or location == url:
                raise
            if urlsplit(location).netloc != urlsplit(url).netloc:
                return _described(response.headers)
            url = location  # the same server under another name
    raise OSError(f"{url}: redirected more than {_REDIRECTS} times")


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Return None, which makes urllib raise the response instead of following it."""


def _described(headers: Any) -> Remote:
    # The hub names the size and tag of what it redirects to in headers of its own.
    tag = headers.get("X-Linked-ETag") or headers.get("ETag") or ""
    size = headers.get("X-Linked-Size") or (
        "" if "Location" in headers else headers.get("Content-Length")
    )
    return Remote(int(size) if size else None, tag.removeprefix("W/").strip('"'))


def _receive(
    url: str, partial: Path, remote: Remote, progress: Callable[[int, int], None], wait: float
) -> None:
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            if _append(url, partial, remote, progress):
                return
            reason: Exception = OSError("the connection ended early")
        except HTTPError as error:
            if error.code == 416:  # nothing is left to send
                return
            if error.code < 500:
                raise
            reason = error
        except (OSError, http.client.HTTPException) as error:
            if disk_error_reason(error):
                raise
            reason = error
    raise OSError(f"{str(reason) or repr(reason)}, {_ATTEMPTS} times") from reason


def _append(url: str, partial: Path, remote: Remote, progress: Callable[[int, int], None]) -> bool:
    """Receive what is missing; return whether that is all."""
    done = partial.stat().st_size if partial.exists() else 0
    headers = _AGENT | ({"Range": f"bytes={done}-"} if done else {})
    with contextlib.closing(urlopen(Request(url, headers=headers), timeout=_TIMEOUT)) as response:
        if response.status != 206:
            done = 0  # the server sends all of it
        with partial.open("ab") as file:
            os.ftruncate(file.fileno(), done)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, remote.size or done)
    return remote.size is None or done >= remote.size
