"""Where experiments are run: the folder of all that they make, and the data they are run on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.database import Database, build_database, file_sources
from mzseek.datasets.demo import write_demo
from mzseek.datasets.table import DatasetFiles, dataset_of, find_dataset
from mzseek.errors import ExperimentError
from mzseek.files import StrPath, atomic_file
from mzseek.prepared.negatives import add_negatives, negatives_name
from mzseek.prepared.reader import Prepared
from mzseek.prepared.writer import PrepareOptions, prepare
from mzseek.work.progress import Progress, silent

_MARK = "MADE-BY-MZSEEK-EXPERIMENTS.txt"


@dataclass
class Site:
    """A folder of experiments.

    Attributes
    ----------
    out : Path
    files : DatasetFiles
        The data set.
    database : Path or None
        Molecules to mine negatives from.
    molecules : Path or None
        A file to build one from, where none is given.
    is_simulated : bool
        The data are those that mzseek makes itself.
    """

    out: Path
    files: DatasetFiles
    database: Path | None = None
    molecules: Path | None = None
    is_simulated: bool = False
    progress: Progress = silent
    _opened: dict[str, Prepared] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        out: StrPath,
        data: StrPath | None = None,
        database: StrPath | None = None,
        progress: Progress = silent,
    ) -> "Site":
        """A folder for experiments on a data set: a folder, its table, or None to simulate one."""
        out = Path(out)
        chosen = None if database is None else Path(database)
        if data is not None:
            table = Path(data)
            files = find_dataset(table) if table.is_dir() else dataset_of(table)
            return cls(out, files, chosen, progress=progress)
        made = out / "data"
        if not (made / "set").is_dir():
            write_demo(made, progress=progress)
        files = find_dataset(made / "set")
        return cls(out, files, chosen, made / "molecules.tsv", True, progress)

    def prepared(self, fingerprint: str) -> Prepared:
        """The data set with that fingerprint; prepared once."""
        if fingerprint not in self._opened:
            folder = self.out / "prepared" / fingerprint
            self._opened[fingerprint], _ = prepare(
                self.files.spectra, self.files.candidates, folder,
                PrepareOptions(fingerprint=fingerprint), progress=self.progress,
            )  # fmt: skip
        return self._opened[fingerprint]

    def lists(self, fingerprint: str, hard: tuple[str, int] | None) -> Prepared:
        """The data set, with negatives mined if they are asked for."""
        prepared = self.prepared(fingerprint)
        if hard is None:
            return prepared
        by, keep = hard
        if negatives_name("hardest", by, keep) not in prepared.settings:
            prepared, _ = add_negatives(
                prepared, self._molecules(fingerprint), by=by, keep=keep, progress=self.progress
            )
            self._opened[fingerprint] = prepared
        return prepared

    def runs(self, fingerprint: str) -> Path:
        """Folder of the runs on that fingerprint."""
        return self.out / "runs" / fingerprint

    def facts(self) -> Mapping[str, Any]:
        """Which data these are."""
        return {
            "spectra": "spectra that mzseek simulates"
            if self.is_simulated
            else self.files.spectra.name,
            "simulated": self.is_simulated,
        }

    def _molecules(self, fingerprint: str) -> Database:
        if self.database is not None:
            return Database.open(self.database)
        if self.molecules is None:
            raise ExperimentError("hard negatives need molecules: give --database")
        folder = self.out / "databases" / fingerprint
        if not folder.exists():
            build_database(file_sources([self.molecules]), folder, fingerprint=fingerprint)
        return Database.open(folder)


def claim(out: StrPath) -> None:
    """Mark a folder as one of experiments, unless it holds something else.

    Raises
    ------
    ExperimentError
        It is a file, or a folder of something else.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ExperimentError(f"{out}: is a file, expected a folder to make")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        raise ExperimentError(f"{out}: exists and holds no experiments; name another --out")
    with atomic_file(out / _MARK) as partial:
        partial.write_text("Runs and results of `mzseek reproduce` or `mzseek tune`.\n")
