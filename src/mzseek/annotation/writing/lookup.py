"""Annotations by the name of their feature, kept on disk until a table or network asks for them."""

import json
from pathlib import Path

from mzseek.annotation.answers import Answer
from mzseek.annotation.writing.spool import Settings, Spool, Writer
from mzseek.annotation.writing.tables.summary import joined_cells
from mzseek.names import visible


def same_feature(name: str) -> str:
    """A feature's name as it is compared: whole numbers by value.

    Examples
    --------
    >>> same_feature(" 0017 "), same_feature("17.0"), same_feature("F17")
    ('17', '17', 'F17')
    """
    plain = name.strip()
    whole = plain.removesuffix(".0")
    return str(int(whole)) if whole.isascii() and whole.isdigit() and len(whole) < 19 else plain


def keep(spool: Spool, answer: Answer) -> None:
    """Put an annotation on disk, in a line."""
    cells = {key: visible(cell) for key, cell in joined_cells(answer).items()}
    kept = [visible(answer.feature.name), answer.feature.precursor_mz, cells]
    spool.write(json.dumps(kept) + "\n")


class Keeping(Writer):
    """A writer that keeps annotations, a line each, and puts them together at the end."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        super().__init__(folder, name, settings)
        (self._answers,) = self.spools.values()

    def spool_names(self) -> list[str]:
        """Annotations, a line each."""
        return [f"{self.name}.answers"]

    def write(self, answer: Answer) -> None:
        """Keep an annotation."""
        keep(self._answers, answer)


class Lookup:
    """Where each annotation stands; of the file only names are held.

    Parameters
    ----------
    path : Path
        That `keep` has written.

    Attributes
    ----------
    places : dict of str to int
        By name, as `same_feature` has it.
    twins : list of int
        Places of annotations whose name another one had before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self.twins: list[int] = []
        with path.open("rb") as file:
            place = 0
            for line in file:
                if self.places.setdefault(same_feature(json.loads(line)[0]), place) != place:
                    self.twins.append(place)
                place += len(line)

    def read(self, place: int) -> tuple[str, float, dict[str, str]]:
        """Name and m/z of a feature, and its cells by column."""
        with self.path.open("rb") as file:
            file.seek(place)
            name, mz, cells = json.loads(file.readline())
        return name, mz, cells
