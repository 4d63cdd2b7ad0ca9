"""`data get`: MassSpecGym's files from the Hugging Face hub, or from a folder that has them."""

import os
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from mzseek.core.errors import DatasetError
from mzseek.core.registry import check_name
from mzseek.datasets.files import DatasetFiles
from mzseek.io import StrPath, sole_writer
from mzseek.io.download import download
from mzseek.parallel.engine import Progress, silent

HUB = "https://huggingface.co"
REPOSITORY = "roman-bushuiev/MassSpecGym"
MB = 1_000_000

# v1.5 has all SMILES in RDKit's canonical form; in v1 keys and candidates are as deposited. The
# paper's published code reads v1, and the leaderboard's first rows, which it cites, are of v1.
PAPER_S = "1"
FILES = {
    "1": {
        "spectra": "data/MassSpecGym.tsv",
        "mass": "data/molecules/MassSpecGym_retrieval_candidates_mass.json",
        "formula": "data/molecules/MassSpecGym_retrieval_candidates_formula.json",
    },
    "1.5": {
        "spectra": "data/MassSpecGym1.5.tsv",
        "mass": "data/molecules/MassSpecGym1.5_retrieval_candidates_mass.json",
        "formula": "data/molecules/MassSpecGym1.5_retrieval_candidates_formula.json",
    },
}

# The molecules of PubChem that the paper's hard negatives are mined from: 118 million.
MOLECULES = "data/molecules/candidate_pools/MassSpecGym_retrieval_molecules_pubchem_118M.tsv"


def get_molecules(
    folder: StrPath, *, endpoint: str | None = None, revision: str | None = None,
    progress: Progress = silent,
) -> Path:  # fmt: skip
    """Download MassSpecGym's list of 118 million molecules into ``folder``."""
    files = {"molecules": MOLECULES}
    return _fetch(Path(folder), PAPER_S, files, endpoint, revision, progress)["molecules"]


def get_massspecgym(
    folder: StrPath,
    version: str = PAPER_S,
    *,
    endpoint: str | None = None,
    revision: str | None = None,
    progress: Progress = silent,
) -> DatasetFiles:
    """Download MassSpecGym into ``folder``; files that are there are kept.

    Parameters
    ----------
    folder : Path
        Files that lie in it, in the hub's subfolders or flat, are taken as they are.
    version : str
        ``"1"``, which the paper's numbers are of, or ``"1.5"``.
    endpoint : str, optional
        Address of a hub or mirror; huggingface.co by default, or ``HF_ENDPOINT``.
    revision : str, optional
        Commit or tag, for a run that must be repeatable.

    Raises
    ------
    DatasetError
        The version is unknown, or the hub cannot be reached or lacks a file.
    BusyError, WriteError
        Another process is downloading into the folder, or it cannot be written.
    """
    check_name(FILES, version, "MassSpecGym", DatasetError)
    paths = _fetch(Path(folder), version, FILES[version], endpoint, revision, progress)
    return DatasetFiles(paths.pop("spectra"), paths)


def _fetch(
    folder: Path,
    version: str,
    names: Mapping[str, str],
    endpoint: str | None,
    revision: str | None,
    progress: Progress,
) -> dict[str, Path]:
    """Return the paths of files, downloaded unless they are there."""

    def present(name: str) -> Path | None:
        # A pinned revision is compared by the hub with what is there.
        return _present(folder, name) if revision is None else None

    paths = {part: path for part, name in names.items() if (path := present(name))}
    if len(paths) < len(names):
        with sole_writer(folder / "MassSpecGym", "downloading MassSpecGym"):
            for done, (part, name) in enumerate(names.items(), 1):
                paths[part] = present(name) or _download(
                    folder, version, name, endpoint, revision, progress
                )
                progress("files", done, len(names))
    return {part: paths[part] for part in names}


def _present(folder: Path, name: str) -> Path | None:
    for candidate in (folder / name, folder / Path(name).name):
        for path in (candidate, candidate.with_name(candidate.name + ".gz")):
            if path.is_file() and path.stat().st_size > 0:
                return path
    return None


def _download(
    folder: Path,
    version: str,
    name: str,
    endpoint: str | None,
    revision: str | None,
    progress: Progress,
) -> Path:
    hub = (endpoint or os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    url = f"{hub}/datasets/{REPOSITORY}/resolve/{quote(revision or 'main', safe='')}/{quote(name)}"
    stage = f"{Path(name).name}, MB"
    try:
        download(url, folder / name, lambda done, total: progress(stage, done // MB, total // MB))
    except HTTPError as error:
        raise DatasetError(f"{name}: not received from {REPOSITORY} ({error})") from error
    except URLError as error:
        names = ", ".join(Path(file).name for file in FILES[version].values())
        raise DatasetError(
            f"the hub cannot be reached ({error.reason}); put {names} into {folder} by hand "
            f"(they are in the data set {REPOSITORY} on huggingface.co)"
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        raise DatasetError(f"{name}: not received from {REPOSITORY} ({error})") from error
    return folder / name
