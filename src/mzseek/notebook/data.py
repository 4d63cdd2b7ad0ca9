"""Data sets and molecule databases in a notebook."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mzseek import database
from mzseek.database.sources import file_sources
from mzseek.datasets.files import DatasetFiles, find_dataset
from mzseek.datasets.prepare import PrepareOptions
from mzseek.datasets.prepare import prepare as write_prepared
from mzseek.datasets.prepared import Prepared
from mzseek.io import StrPath
from mzseek.notebook.runs import progress_line
from mzseek.parallel import LocalEngine


def prepare(
    data: StrPath,
    out: StrPath,
    candidates: Mapping[str, StrPath] | None = None,
    *,
    fingerprint: str = "morgan2",
    jobs: int | None = None,
    watch: bool = True,
) -> Prepared:
    """Turn a data set into the sparse arrays that training reads; done once.

    Parameters
    ----------
    data : path
        Folder of a data set, or its table of spectra.
    out : path
        Folder to make. One that was made from the same data with the same options is taken as it
        is.
    candidates : mapping of str to path, optional
        Candidate file of each retrieval setting, beside a table; a folder has its own.
    fingerprint : str
        One of `mzseek.chem.FINGERPRINTS`.
    jobs : int, optional
        Processes; all cores by default.
    watch : bool
        Show how far it is.

    Returns
    -------
    Prepared

    Examples
    --------
    >>> prepare("set", "prepared")  # doctest: +SKIP
    """
    data = Path(data)
    files = find_dataset(data) if data.is_dir() or not data.exists() else DatasetFiles(data, {})
    lists = {**files.candidates, **(candidates or {})}
    options = PrepareOptions(fingerprint=fingerprint)
    with progress_line(watch) as progress:
        return write_prepared(files.spectra, lists, out, options, jobs=jobs, progress=progress)[0]


class Database(database.Database):
    """A molecule database: open one for look-ups, or build one from lists of molecules.

    Examples
    --------
    >>> mine = Database.build(["mine.smi", "suspects.csv"], "mine-db")  # doctest: +SKIP
    >>> mine.by_mass(194.0804, ppm=5).to_frame()  # doctest: +SKIP
    """

    @classmethod
    def build(
        cls,
        molecules: StrPath | Iterable[StrPath],
        out: StrPath,
        *,
        fingerprint: str = "morgan2",
        jobs: int | None = None,
        watch: bool = True,
    ) -> "Database":
        """Build a database from SMILES lists, tables, SDF or Parquet, and open it.

        Parameters
        ----------
        molecules : path, or iterable of paths
        out : path
            Folder to make.
        fingerprint : str
            For look-ups by structural similarity.
        jobs : int, optional
            Processes; all cores by default.
        watch : bool
            Show how far it is.
        """
        paths = [molecules] if isinstance(molecules, str | os.PathLike) else list(molecules)
        with progress_line(watch) as progress:
            database.build_database(
                file_sources([Path(path) for path in paths]), Path(out),
                fingerprint=fingerprint, engine=LocalEngine(jobs), progress=progress,
            )  # fmt: skip
        return cls.open(out)
