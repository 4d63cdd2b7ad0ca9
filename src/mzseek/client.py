"""Client of `mzseek serve`, over the standard library alone."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from mzseek.core.errors import ServerError

Peaks = Sequence[tuple[float, float]]
_ENDED = ("done", "failed", "cancelled")
_POLL = (0.2, 5.0)  # seconds between two questions about a job: at first, and at most
_CHUNK = 1 << 20


class RefusedError(ServerError):
    """A request that the server refuses.

    Attributes
    ----------
    status : int
    code : str
        As the API documents it.
    field : str or None
        The field of the request that is concerned.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


class Client:
    """A server of `mzseek serve`.

    Parameters
    ----------
    url : str
    token : str, optional
    timeout : float
        Seconds to wait for a response.

    Raises
    ------
    RefusedError
        By all methods: the server refuses the request.
    ServerError
        By all methods: it cannot be reached.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8765")
    >>> client.annotate([(138.0662, 100.0)], 195.0877, adduct="[M+H]+")  # doctest: +SKIP
    >>> job = client.submit(["my.mgf"], database="hmdb", ppm=5)  # doctest: +SKIP
    >>> client.wait(job)["state"]  # doctest: +SKIP
    'done'
    >>> client.download(job, "zip", "answers.zip")  # doctest: +SKIP
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 120.0) -> None:
        self._url, self._token, self._timeout = url.rstrip("/"), token, timeout

    def annotate(
        self, peaks: Peaks | str, precursor_mz: float | None = None, *, adduct: str | None = None,
        charge: int | None = None, candidates: Sequence[str] | None = None, **options: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Annotate a spectrum, or the spectra of a text (MGF and the like); one dict a feature."""
        given = {"precursor_mz": precursor_mz, "adduct": adduct, "charge": charge,
                 "candidates": candidates, "options": options}  # fmt: skip
        features: list[dict[str, Any]] = self._of_spectra("annotate", peaks, given)["features"]
        return features

    def formulas(
        self, peaks: Peaks | str, precursor_mz: float | None = None, *, ms1: Peaks | None = None,
        adduct: str | None = None, charge: int | None = None, **options: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Rank molecular formulas without a database; one dict a feature.

        Peaks of the survey scan (``ms1``) give the isotope pattern.
        """
        given = {"precursor_mz": precursor_mz, "adduct": adduct, "charge": charge,
                 "ms1": None if ms1 is None else list(ms1), "options": options}  # fmt: skip
        features: list[dict[str, Any]] = self._of_spectra("formula", peaks, given)["features"]
        return features

    def submit(
        self, files: Iterable[str | Path], *, candidates: str | Path | None = None,
        features: str | Path | None = None, network: str | Path | None = None, **options: Any,
    ) -> str:  # fmt: skip
        """Submit a job with files of spectra; return its id."""
        named = [("files", path) for path in files]
        more = {"candidates": candidates, "features": features, "network": network}
        named += [(name, path) for name, path in more.items() if path is not None]
        border = uuid.uuid4().hex
        parts = [_part(border, "options", json.dumps(options).encode())]
        parts += [_part(border, name, Path(path).read_bytes(), Path(path).name)
                  for name, path in named]  # fmt: skip
        body = b"".join([*parts, f"--{border}--\r\n".encode()])
        made = self._send("POST", "jobs", body, f"multipart/form-data; boundary={border}")
        return str(json.loads(made)["id"])

    def job(self, id: str) -> dict[str, Any]:
        """Return state, progress and results of a job."""
        return self.request("GET", f"jobs/{quote(id)}")

    def wait(self, id: str, seconds: float | None = None) -> dict[str, Any]:
        """Wait until a job has ended, and return it; `TimeoutError` if that takes too long."""
        pause, until = _POLL[0], None if seconds is None else time.monotonic() + seconds
        while (job := self.job(id))["state"] not in _ENDED:
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"job {id} is {job['state']} after {seconds:g} s")
            time.sleep(pause)
            pause = min(1.5 * pause, _POLL[1])
        return job

    def rows(self, id: str, offset: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Return rows of the features that are annotated so far."""
        query = urlencode({"offset": offset, "limit": limit})
        rows: list[dict[str, Any]] = self.request("GET", f"jobs/{quote(id)}/rows?{query}")["rows"]
        return rows

    def download(self, id: str, format: str, path: str | Path) -> Path:
        """Write results of a job into a file."""
        address = f"jobs/{quote(id)}/results/{quote(format)}"
        with self._open("GET", address) as response, Path(path).open("wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
        return Path(path)

    def cancel(self, id: str) -> None:
        """Stop a job."""
        self.request("POST", f"jobs/{quote(id)}/cancel")

    def delete(self, id: str) -> None:
        """Remove a job and its results."""
        self._send("DELETE", f"jobs/{quote(id)}")

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request to another address of the API, such as ``explain``; return its JSON."""
        data = None if body is None else json.dumps(body).encode()
        answer: dict[str, Any] = json.loads(self._send(method, path, data, "application/json"))
        return answer

    def _of_spectra(
        self, path: str, peaks: Peaks | str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        spectra = {"text": peaks} if isinstance(peaks, str) else {"peaks": list(peaks)}
        body = {name: value for name, value in given.items() if value is not None}
        return self.request("POST", path, body | spectra)

    def _send(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> bytes:
        with self._open(method, path, body, kind) as response:
            data: bytes = response.read()
            return data

    def _open(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = {"Content-Type": kind} if kind and body is not None else {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        address = f"{self._url}/api/v1/{path}"
        try:
            return urlopen(Request(address, body, headers, method=method), timeout=self._timeout)
        except HTTPError as error:
            raise _refused(error) from error
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"{self._url}: cannot be reached ({reason})") from error


def _part(border: str, name: str, data: bytes, file: str | None = None) -> bytes:
    quoted = (file or "").replace("\\", "_").replace('"', "%22").replace("\r", "").replace("\n", "")
    named = f'; filename="{quoted}"' if file is not None else ""
    head = f'--{border}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + data + b"\r\n"


def _refused(error: HTTPError) -> RefusedError:
    try:
        detail = json.loads(error.read())["error"]
        return RefusedError(error.code, detail["code"], detail["message"], detail["field"])
    except (ValueError, KeyError, TypeError):
        return RefusedError(error.code, "", f"the server has answered with {error.code}", None)
