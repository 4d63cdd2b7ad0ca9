"""Settings and limits of the server, declared once."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mzseek.core.errors import ServerError
from mzseek.core.text import distinct_labels

BUNDLED = "bundled"  # the name of the database that comes with the model
_DAY = 86_400.0


@dataclass(frozen=True)
class Limits:
    """What the server accepts. Each limit has an error code of its own (`mzseek.web.errors`).

    Attributes
    ----------
    body : int
        Bytes of a request.
    spectra : int
        Spectra in a single request; a job may have ``job_spectra``.
    job_spectra : int
    peaks : int
        Peaks of a spectrum.
    candidates : int
        Candidates in a request; a file of candidates of a job may be as large as a body.
    smiles : int
        Characters of a SMILES.
    seconds, job_seconds : float
        Run time of a single request, and of a job.
    waiting : int
        Single requests that wait for a worker.
    jobs : int
        Jobs that wait or run.
    rows : int
        Results of one page of a listing or search.
    """

    body: int = 64_000_000
    spectra: int = 20
    job_spectra: int = 100_000
    peaks: int = 10_000
    candidates: int = 2_000
    smiles: int = 1_000
    seconds: float = 60.0
    job_seconds: float = 86_400.0
    waiting: int = 1_000
    jobs: int = 50
    rows: int = 1_000

    def __post_init__(self) -> None:
        """Refuse limits that nothing could meet."""
        for limit in fields(self):
            if not getattr(self, limit.name) > 0:
                value = getattr(self, limit.name)
                raise ServerError(f"limit {limit.name} is {value:g}, expected more than 0")


@dataclass(frozen=True)
class ServerSettings:
    """Settings of `mzseek serve`.

    Attributes
    ----------
    databases : mapping of str to str or None
        Path of each database by its name; None for the one that comes with the model. The first
        is searched by default.
    libraries : mapping of str to str
        Path of each library by its name. All are searched by default.
    model : str or None
    data_dir : Path
        Where jobs are kept.
    host : str
    port : int
    workers : int
        Processes that annotate.
    cluster : str or None
        Address of a Ray cluster that annotates the features of large jobs. All workers but the
        first then have one such job each, and pass its features on.
    token : str or None
        What clients must show; needed to listen on other addresses than those of this machine.
    hosts : tuple of str
        Further names that clients may use for the server.
    retention : float
        Seconds that a finished job is kept.
    quota : int
        Bytes that jobs may take altogether.
    limits : Limits

    Raises
    ------
    ServerError
        The server would be open to others without a token, or a value is out of range.
    """

    databases: Mapping[str, str | None] = field(default_factory=lambda: {BUNDLED: None})
    libraries: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    data_dir: Path = Path("mzseek-data")
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 2
    cluster: str | None = None
    token: str | None = None
    hosts: tuple[str, ...] = ()
    retention: float = 7 * _DAY
    quota: int = 10_000_000_000
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse what is unsafe or impossible."""
        if not self.is_local and not self.token:
            raise ServerError(
                f"--host {self.host}: others could use this server without a token; give --token "
                "or --token-file, or listen on 127.0.0.1"
            )
        if self.token is not None and len(self.token) < _MIN_TOKEN:
            raise ServerError(
                f"the token has {len(self.token)} characters, expected at least {_MIN_TOKEN}"
            )
        if self.workers < 1:
            raise ServerError(f"--workers is {self.workers}, expected 1 or more")
        if self.cluster is not None and self.workers < 2:
            raise ServerError(
                f"--engine ray with --workers {self.workers}, expected 2 or more: one is for "
                "single requests and small jobs"
            )
        if not 0 <= self.port <= 65_535:
            raise ServerError(f"--port is {self.port}, expected 0 to 65535")

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can connect."""
        return is_loopback(self.host)

    @property
    def default_database(self) -> str:
        """The name of the database that is searched where none is named."""
        return next(iter(self.databases))

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker process must know, as JSON."""
        return {
            "databases": dict(self.databases),
            "libraries": dict(self.libraries),
            "model": self.model,
            "limits": asdict(self.limits),
            "cache": str(self.data_dir),
        }


_MIN_TOKEN = 16


def is_loopback(host: str) -> bool:
    """Return whether an address or name is this machine's own.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "lab.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def named_paths(paths: list[Path]) -> dict[str, str]:
    """Return absolute paths by name: that of the folder, or as much of its path as is distinct."""
    resolved = [path.resolve() for path in paths]
    labels = distinct_labels(resolved, taken=(BUNDLED,))
    return {label: str(path) for label, path in zip(labels, resolved, strict=True)}


def read_token(path: Path) -> str:
    """Return the token in a file: its first line.

    Raises
    ------
    ServerError
        It cannot be read, or others of this machine can read it.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerError(f"{path}: the token cannot be read ({error})") from error
    if os.name != "nt" and mode & 0o077:
        raise ServerError(f"{path}: others can read the token; run chmod 600 on it")
    if not lines or not lines[0].strip():
        raise ServerError(f"{path}: is empty, expected a token")
    return lines[0].strip()
