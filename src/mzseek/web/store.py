"""Jobs in SQLite: what was accepted is there after a restart, however the server has ended."""

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mzseek.core.errors import ServerError

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OPEN = (QUEUED, RUNNING)
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    owner TEXT,
    state TEXT NOT NULL,
    created REAL NOT NULL,
    started REAL,
    expires REAL NOT NULL,
    options TEXT NOT NULL,
    files TEXT NOT NULL,
    command TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    total INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    summary TEXT
);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, created);
CREATE INDEX IF NOT EXISTS jobs_by_owner ON jobs (owner, created);
"""
_JSON = ("options", "files", "error", "summary")


@dataclass(frozen=True)
class Job:
    """A job as it is stored.

    Attributes
    ----------
    id : str
        Cannot be guessed: who knows it may read, cancel and delete the job.
    owner : str or None
        The browser session that has made it.
    state : str
        queued, running, done, failed or cancelled.
    created, expires : float
        Seconds since 1970.
    started : float or None
    options : mapping
        As they were given.
    files : sequence of str
    command : str
    bytes : int
        Of the uploads; of all files when it has ended.
    done : int
        Features.
    total : int or None
    attempts : int
        Workers that ended while they were at it.
    error, summary : mapping or None
    """

    id: str
    owner: str | None
    state: str
    created: float
    started: float | None
    expires: float
    options: Mapping[str, Any]
    files: Sequence[str]
    command: str
    bytes: int
    done: int
    total: int | None
    attempts: int
    error: Mapping[str, Any] | None
    summary: Mapping[str, Any] | None

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in OPEN


def time_text(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC.

    Examples
    --------
    >>> time_text(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class JobStore:
    """The table of jobs. Used by one process, which holds the lock of the data folder.

    Raises
    ------
    ServerError
        The file is none of this version.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            self._lock = threading.Lock()
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise ServerError(f"{path}: is of version {version}, expected {_VERSION}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.DatabaseError as error:
            raise ServerError(f"{path}: cannot be used ({error})") from error

    def add(self, job: Job) -> None:
        """Store a new job."""
        values = {name: _to_column(name, value) for name, value in vars(job).items()}
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        self._run(f"INSERT INTO jobs ({names}) VALUES ({marks})", values)

    def get(self, id: str) -> Job | None:
        """Return a job; None if there is none of this id."""
        rows = self._all("SELECT * FROM jobs WHERE id = ?", id)
        return _job(rows[0]) if rows else None

    def update(self, id: str, **values: Any) -> None:
        """Change fields of a job."""
        columns = {name: _to_column(name, value) for name, value in values.items()}
        changes = ", ".join(f"{name} = :{name}" for name in columns)
        self._run(f"UPDATE jobs SET {changes} WHERE id = :id", {**columns, "id": id})

    def move(self, id: str, before: Sequence[str], state: str, **values: Any) -> bool:
        """Change the state of a job if it is one of some; return whether it was."""
        columns = {name: _to_column(name, value) for name, value in values.items()}
        changes = ", ".join(["state = :state", *(f"{name} = :{name}" for name in columns)])
        among = ", ".join(f"'{name}'" for name in before)
        changed = self._run(
            f"UPDATE jobs SET {changes} WHERE id = :id AND state IN ({among})",
            {**columns, "id": id, "state": state},
        )
        return changed == 1

    def of_state(self, *states: str) -> list[Job]:
        """Return the jobs in some states, the oldest first."""
        marks = ", ".join("?" * len(states))
        query = f"SELECT * FROM jobs WHERE state IN ({marks}) ORDER BY created, id"
        return [_job(row) for row in self._all(query, *states)]

    def of_owner(self, owner: str, limit: int) -> list[Job]:
        """Return the jobs of a browser session, the newest first."""
        query = "SELECT * FROM jobs WHERE owner = ? ORDER BY created DESC, id LIMIT ?"
        return [_job(row) for row in self._all(query, owner, limit)]

    def expired(self, now: float) -> list[Job]:
        """Return the jobs that have ended and whose time is over."""
        query = "SELECT * FROM jobs WHERE expires < ? AND state NOT IN ('queued', 'running')"
        return [_job(row) for row in self._all(query, now)]

    def counts(self) -> dict[str, int]:
        """Return the number of jobs by state."""
        query = "SELECT state, COUNT(*) FROM jobs GROUP BY state"
        return dict(tuple(row) for row in self._all(query))

    def ids(self) -> set[str]:
        """Return the ids of all jobs."""
        return {row[0] for row in self._all("SELECT id FROM jobs")}

    def bytes(self) -> int:
        """Return the bytes that all jobs take."""
        return int(self._all("SELECT COALESCE(SUM(bytes), 0) FROM jobs")[0][0])

    def delete(self, id: str) -> None:
        """Remove a job."""
        self._run("DELETE FROM jobs WHERE id = :id", {"id": id})

    def _all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def _run(self, statement: str, values: Mapping[str, Any]) -> int:
        """Change the table; return how many rows are concerned."""
        with self._lock:
            return self._db.execute(statement, values).rowcount

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _to_column(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _JSON and value is not None else value


def _job(row: sqlite3.Row) -> Job:
    values = dict(row)
    for name in _JSON:
        values[name] = None if values[name] is None else json.loads(values[name])
    return Job(**values)
