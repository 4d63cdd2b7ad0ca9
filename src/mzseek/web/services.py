"""What the API and the pages use: one object over settings, workers and jobs."""

import asyncio
import json
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mzseek.annotation.config import AnnotateConfig
from mzseek.core.errors import MzseekError
from mzseek.io import sole_writer
from mzseek.io.writing import disk_errors
from mzseek.web.errors import ApiError
from mzseek.web.jobs import Jobs
from mzseek.web.models import (
    AnnotateRequest,
    DecideRequest,
    ExplainRequest,
    FormulaOptions,
    FormulaRequest,
    LibrarySearchRequest,
    Options,
    SpectrumFields,
    TradeOffRequest,
    command_line,
)
from mzseek.web.pool import Pool
from mzseek.web.settings import ServerSettings

# Options whose values are more than their type says, and need no file to be checked.
_CHECKED = frozenset({"adduct", "ppm", "peak_ppm", "instrument", "elements", "columns"})


class MoleculeQuery(NamedTuple):
    """Molecules that are looked for.

    Attributes
    ----------
    kind : str
        Name, formula, mass or smiles.
    query : str
    ppm : float
        Tolerance of a mass.
    """

    kind: str
    query: str
    ppm: float = 10.0


class Services:
    """The model, the databases and the jobs of a server.

    Results of single requests are JSON texts, as worker processes make them.

    Parameters
    ----------
    settings : ServerSettings

    Attributes
    ----------
    settings : ServerSettings
    databases : mapping of str to str
        Description of each database by its name; the first is searched by default.
    libraries : mapping of str to str
        Description of each library by its name.
    jobs : Jobs
    pool : Pool
    requests : Counter
        Number of requests by method, route and status.
    seconds : dict
        Time of requests by method and route.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._open = ExitStack()
        with disk_errors(settings.data_dir):
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.databases = {name: _described(path) for name, path in settings.databases.items()}
        self.libraries = {name: _described(path) for name, path in settings.libraries.items()}
        self.requests, self.seconds = (
            Counter[tuple[str, str, int]](),
            defaultdict[tuple[str, str], float](float),
        )
        self.began = time.time()

    async def start(self) -> None:
        """Lock the data folder, take up its jobs and start the workers.

        Raises
        ------
        BusyError
            Another server uses the data folder.
        """
        folder = self.settings.data_dir
        self._open.enter_context(sole_writer(folder / "jobs", "serving"))
        for path in folder.glob(".download-*"):
            path.unlink(missing_ok=True)
        self.jobs = Jobs(
            self.settings,
            lambda files, options, candidates: command_line(
                files, options, candidates, self.settings.model
            ),
        )
        jobs = self.jobs
        self.pool = Pool(self.settings, jobs.message, jobs.lost, jobs.assign)
        await self.pool.start()
        await jobs.start(self.pool)

    async def stop(self) -> None:
        """End the workers; jobs go on when the server is started again."""
        await self.pool.stop()
        await self.jobs.stop()
        self._open.close()

    async def annotate(self, request: AnnotateRequest) -> bytes:
        """Annotate a few spectra: `AnnotateResponse` as JSON."""
        limits = self.settings.limits
        self._check_spectrum(request)
        self.check_options(request.options)
        if request.candidates is not None:
            if len(request.candidates) > limits.candidates:
                raise ApiError(
                    "too_many_candidates",
                    f"there are {len(request.candidates):,} candidates, expected at most "
                    f"{limits.candidates:,}: submit a job",
                    "candidates",
                )
            self._check_smiles(request.candidates, "candidates")
        given = request.model_dump(mode="json", exclude={"options"})
        return await self.pool.call("annotate", given | {"options": self.complete(request.options)})

    async def formula(self, request: FormulaRequest) -> bytes:
        """Rank the formulas behind a few spectra: `FormulaResponse` as JSON."""
        self._check_spectrum(request)
        self._check_peaks(request.ms1, "ms1")
        self.check_options(request.options)
        given = request.model_dump(mode="json", exclude={"options"})
        return await self.pool.call("formula", given | {"options": request.options.given()})

    async def explain(self, request: ExplainRequest) -> bytes:
        """Explain peaks by fragments of a molecule: `ExplainResponse` as JSON."""
        self._check_spectrum(request)
        self._check_smiles([request.smiles], "smiles")
        return await self.pool.call("explain", request.model_dump(mode="json"))

    async def search_database(
        self, query: MoleculeQuery, limit: int = 50, database: str | None = None
    ) -> bytes:
        """Look molecules up: `MoleculesResponse` as JSON."""
        name = database or self.settings.default_database
        self._check_name(name, self.databases, "database")
        return await self._find("search_database", query, limit=limit, database=name)

    async def find_references(
        self, query: MoleculeQuery, limit: int = 50, library: str | None = None
    ) -> bytes:
        """Look reference spectra up: `ReferencesResponse` as JSON."""
        if library is not None:
            self._check_name(library, self.libraries, "library")
        return await self._find("find_references", query, limit=limit, library=library)

    async def _find(self, task: str, query: MoleculeQuery, **request: Any) -> bytes:
        if query.kind == "smiles":
            self._check_smiles([query.query], "smiles")
        return await self.pool.call(task, query._asdict() | request)

    async def search_library(self, request: LibrarySearchRequest) -> bytes:
        """Search for similar reference spectra: `MatchesResponse` as JSON."""
        self._check_spectrum(request)
        if request.library is not None:
            self._check_name(request.library, self.libraries, "library")
        return await self.pool.call("search_library", request.model_dump(mode="json"))

    async def decide(self, request: DecideRequest) -> bytes:
        """Decide for each objective: `DecideResponse` as JSON."""
        return await self.pool.call("decide", await self._list(request))

    async def trade_off(self, request: TradeOffRequest) -> bytes:
        """Return band, costs and bounds of a list of candidates: `TradeOffResponse` as JSON."""
        return await self.pool.call("trade_off", await self._list(request))

    async def _list(self, request: DecideRequest) -> dict[str, Any]:
        """Return a request about candidates; those of a feature of a job are filled in."""
        given = request.model_dump(mode="json")
        if request.job is not None and request.feature is not None:
            feature = await asyncio.to_thread(self.jobs.feature, request.job, request.feature)
            found = feature["candidates"]
            if not found:
                raise ApiError("bad_probabilities", "the feature has no candidates", "feature")
            given["smiles"] = [candidate["smiles"] for candidate in found]
            given["probabilities"] = [candidate["probability"] for candidate in found]
        smiles, limits = given["smiles"], self.settings.limits
        if smiles is None or given["probabilities"] is None:
            raise ApiError("invalid", "expected smiles and probabilities, or job and feature")
        if len(smiles) > limits.candidates:
            raise ApiError(
                "too_many_candidates",
                f"there are {len(smiles):,} candidates, expected at most {limits.candidates:,}",
                "smiles",
            )
        self._check_smiles(smiles, "smiles")
        return given

    def complete(self, options: Options) -> dict[str, Any]:
        """Return the options that were given, with the database and libraries in any case."""
        defaults = {"database": self.settings.default_database, "library": list(self.libraries)}
        given = {name: value for name, value in options.given().items() if value is not None}
        return defaults | given

    def check_options(self, options: FormulaOptions) -> None:
        """Refuse names that the server does not have, and values that cannot be used.

        Each value is tried alone, so that the error names its field.
        """
        given = options.given()
        if given.get("database") is not None:
            self._check_name(given["database"], self.databases, "database")
        for name in given.get("library") or ():
            self._check_name(name, self.libraries, "library")
        for name, value in given.items():
            if name in _CHECKED:
                try:
                    AnnotateConfig(**{name: value})
                except MzseekError as error:
                    code = "bad_adduct" if name == "adduct" else "bad_option"
                    raise ApiError(code, str(error), f"options.{name}") from error

    @property
    def status(self) -> Literal["loading", "ready", "failed"]:
        """Whether annotations can be made: loading, ready or failed."""
        return "failed" if self.pool.reason else "ready" if self.pool.is_ready else "loading"

    def metrics(self) -> str:
        """Return metrics in the text format of Prometheus."""
        jobs = self.jobs.store.counts()
        disk = shutil.disk_usage(self.settings.data_dir)
        families: list[tuple[str, str, str, list[tuple[Mapping[str, object], float]]]] = [
            ("mzseek_requests_total", "counter", "Requests by what was asked for and status.", [
                ({"method": method, "route": route, "status": status}, number)
                for (method, route, status), number in sorted(self.requests.items())]),
            ("mzseek_request_seconds_total", "counter", "Time of requests.", [
                ({"method": method, "route": route}, round(seconds, 6))
                for (method, route), seconds in sorted(self.seconds.items())]),
            ("mzseek_jobs", "gauge", "Jobs by state.", [
                ({"state": state}, jobs.get(state, 0))
                for state in ("queued", "running", "done", "failed", "cancelled")]),
            ("mzseek_job_bytes", "gauge", "Bytes that jobs take.",
                [({}, self.jobs.store.bytes())]),
            ("mzseek_disk_free_bytes", "gauge", "Free bytes where jobs are kept.",
                [({}, disk.free)]),
            ("mzseek_workers_ready", "gauge", "Worker processes that can annotate.",
                [({}, self.pool.ready)]),
            ("mzseek_worker_restarts_total", "counter", "Worker processes that had ended.",
                [({}, self.pool.restarts)]),
            ("mzseek_waiting_requests", "gauge", "Single requests that wait for a worker.",
                [({}, self.pool.waiting)]),
            ("mzseek_start_time_seconds", "gauge", "When the server was started.",
                [({}, self.began)]),
        ]  # fmt: skip
        lines = []
        for name, kind, meaning, samples in families:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            for labels, value in samples:
                shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
                lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
        return "\n".join(lines) + "\n"

    def _check_spectrum(self, request: SpectrumFields) -> None:
        self._check_peaks(request.peaks, "peaks")

    def _check_peaks(self, peaks: Sequence[Any] | None, field: str) -> None:
        most = self.settings.limits.peaks
        if peaks is not None and len(peaks) > most:
            message = f"there are {len(peaks):,} peaks, expected at most {most:,}"
            raise ApiError("too_many_peaks", message, field)

    def _check_smiles(self, smiles: list[str], field: str) -> None:
        most = self.settings.limits.smiles
        longest = max(map(len, smiles), default=0)
        if longest > most:
            raise ApiError(
                "smiles_too_long",
                f"a SMILES has {longest:,} characters, expected at most {most:,}",
                field,
            )

    def _check_name(self, name: str, known: Mapping[str, str], what: str) -> None:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ApiError(f"unknown_{what}", f"{what} {name!r}: this server has {listed}", what)


def _described(path: str | None) -> str:
    """Return what is said of a database or library beside its name."""
    if path is None:
        return "the small one that comes with mzseek"
    manifest = Path(path) / "manifest.json"
    if not manifest.is_file():
        return "a list of candidates"
    counts = json.loads(manifest.read_text("utf-8")).get("counts", {})
    known = [(name, counts[name]) for name in ("spectra", "molecules") if name in counts]
    return ", ".join(f"{number:,} {name}" for name, number in known)
