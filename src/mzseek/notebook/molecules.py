"""Molecule databases in a notebook."""

import os
from collections.abc import Iterable
from pathlib import Path

from mzseek import database
from mzseek.database.sources import file_sources
from mzseek.files import StrPath
from mzseek.notebook.shown import told
from mzseek.work import LocalEngine


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
            For look-ups by likeness.
        jobs : int, optional
            Processes; all cores by default.
        watch : bool
            Show how far it is.
        """
        paths = [molecules] if isinstance(molecules, str | os.PathLike) else list(molecules)
        with told(watch) as progress:
            database.build_database(
                file_sources([Path(path) for path in paths]), Path(out),
                fingerprint=fingerprint, engine=LocalEngine(jobs), progress=progress,
            )  # fmt: skip
        return cls.open(out)
