"""``mzseek serve``: the web page and the HTTP API."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.options import EXISTS, IS_BUNDLE, IS_LIBRARY, Address, EngineName
from mzseek.core.errors import ServerError, require
from mzseek.parallel import engine_named
from mzseek.web.settings import BUNDLED, Limits, ServerSettings, named_paths, read_token

_DAY, _GB, _MB = 86_400.0, 1e9, 1e6
_LIMITS = Limits()


def serve(
    database: Annotated[
        list[Path] | None,
        typer.Option(
            help="Candidates: a database or a list of molecules, called by its name. Several "
            "times; the first is the default. The small one that comes with mzseek can always be "
            "chosen."
        ),
        EXISTS,
    ] = None,
    library: Annotated[
        list[Path] | None,
        typer.Option(help="Your reference spectra (`mzseek library build`). Several times."),
        IS_LIBRARY,
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="A bundle; the one that comes with mzseek by default."),
        IS_BUNDLE,
    ] = None,
    data_dir: Annotated[
        Path, typer.Option(help="Folder for jobs: uploads and results. Made if it is not there.")
    ] = Path("mzseek-data"),
    host: Annotated[
        str, typer.Option(help="Address to listen at. Others than this machine's need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any that is free.")] = 8765,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name that clients use for this server, such as ms.lab.org."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="MZSEEK_TOKEN", help="What clients must know, 16 letters or more."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token, which only you can read.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes that annotate, about 0.8 GB each; of several, one is for single "
            "requests.",
        ),
    ] = 2,
    engine: EngineName = "local",
    address: Address = None,
    retention: Annotated[
        float, typer.Option(min=0.0, help="Days that a job and its results are kept.")
    ] = 7.0,
    quota: Annotated[float, typer.Option(help="Gigabytes that jobs may take.")] = 10.0,
    max_upload: Annotated[float, typer.Option(help="Megabytes of a request.")] = _LIMITS.body / _MB,
    max_spectra: Annotated[
        int, typer.Option(help="Spectra of a single request; more need a job.")
    ] = _LIMITS.spectra,
    max_job_spectra: Annotated[int, typer.Option(help="Spectra of a job.")] = _LIMITS.job_spectra,
    max_peaks: Annotated[int, typer.Option(help="Peaks of a spectrum.")] = _LIMITS.peaks,
    max_candidates: Annotated[
        int, typer.Option(help="Candidates that a single request may list.")
    ] = _LIMITS.candidates,
    max_smiles: Annotated[int, typer.Option(help="Characters of a SMILES.")] = _LIMITS.smiles,
    max_jobs: Annotated[int, typer.Option(help="Jobs that wait or run.")] = _LIMITS.jobs,
    time_limit: Annotated[
        float, typer.Option(help="Seconds that a single request may take.")
    ] = _LIMITS.seconds,
    job_time_limit: Annotated[
        float, typer.Option(help="Hours that a job may take.")
    ] = _LIMITS.job_seconds / 3600,
) -> None:
    """Annotate in the browser, or over HTTP: a web page and an API for a laboratory.

    Nothing leaves this machine. The page can be opened at once, while the model is loaded. Ctrl-C
    ends the server; jobs go on when it is started again.

    Example: mzseek serve --database hmdb --library references
    """
    require("fastapi", "mzseek serve")
    require("uvicorn", "mzseek serve")
    require("python_multipart", "mzseek serve")
    if token is not None and token_file is not None:
        raise ServerError("--token and --token-file were given, expected one of them")
    if token_file is not None:
        token = read_token(token_file)
    settings = ServerSettings(
        databases={**named_paths(database or []), BUNDLED: None},
        libraries=named_paths(library or []),
        model=None if model is None else str(model.resolve()),
        data_dir=data_dir.resolve(),
        host=host,
        port=port,
        workers=workers,
        cluster=_cluster(engine, address),
        token=token,
        hosts=tuple(allow_host or ()),
        retention=retention * _DAY,
        quota=int(quota * _GB),
        limits=Limits(
            body=int(max_upload * _MB), spectra=max_spectra, job_spectra=max_job_spectra,
            peaks=max_peaks, candidates=max_candidates, smiles=max_smiles, seconds=time_limit,
            job_seconds=job_time_limit * 3600, jobs=max_jobs,
        ),
    )  # fmt: skip
    from mzseek.web.app import serve as run

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")

    def show(url: str) -> None:
        print(f"mzseek is at {url} (Ctrl-C to stop)", flush=True)
        if settings.token:
            print("The page asks for the token.", flush=True)

    run(settings, show)


def _cluster(engine: str, address: str | None) -> str | None:
    """Return the address of the cluster that annotates large jobs, if one does."""
    engine_named(engine, address=address)
    if engine == "local":
        return None
    require("ray", "--engine ray")
    if address is None:
        raise ServerError("--engine ray: give the --address of a running cluster")
    return address
