"""Annotations by the name of their feature, kept on disk until a table or network asks for them."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from mzseek.annotation.answers import Answer
from mzseek.annotation.features import NAMED_BY, Feature
from mzseek.annotation.writing.spool import Settings, Spool, Writer
from mzseek.annotation.writing.tables.summary import joined_cells
from mzseek.names import visible

_LONGEST = 200  # characters of a text that may be an id
_PROGENESIS = re.compile(r"\d+\.\d+_\d+\.\d+(?:m/z|n)")


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


class Kept(NamedTuple):
    """What is kept of an annotation.

    Attributes
    ----------
    name : str
        Of its feature.
    mz : float
        Of the precursor.
    cells : dict of str to str
        What is put beside a row or node, by column.
    ion : str
        The adduct that was used; ``+`` or ``-`` where only the polarity is known, else empty.
    ids : list of str
        What other programs may call the feature, beside its name.
    """

    name: str
    mz: float
    cells: dict[str, str]
    ion: str
    ids: list[str]


def keep(spool: Spool, answer: Answer) -> None:
    """Put an annotation on disk, in a line."""
    cells = {key: visible(cell) for key, cell in joined_cells(answer).items()}
    feature = answer.feature
    kept = Kept(
        visible(feature.name), feature.precursor_mz, cells, _ion(answer), other_ids(feature)
    )
    spool.write(json.dumps(kept) + "\n")


def other_ids(feature: Feature) -> list[str]:
    """What a feature is called in other fields of its spectra than the one that named it.

    Progenesis QI writes its compounds as ``Name: Unknown (0.47_755.2738n)``, or, where one was
    identified, has the id in ``Comment`` alone.
    """
    found: dict[str, None] = {}
    for spectrum in feature.spectra:
        fields = (spectrum.metadata.get(field, "") for field in (*NAMED_BY, "comment"))
        for text in (spectrum.identifier, *fields):
            if 0 < len(text) <= _LONGEST:
                found[visible(text.strip())] = None
                found.update(dict.fromkeys(_PROGENESIS.findall(text)))
    found.pop(feature.name, None)
    return list(found)


def _ion(answer: Answer) -> str:
    if answer.best is not None:
        return answer.best.adduct
    for spectrum in answer.feature.spectra:
        if spectrum.adduct:
            return spectrum.adduct
        if spectrum.charge or spectrum.metadata.get("ionmode"):
            mode = spectrum.metadata.get("ionmode") or ""
            return "-" if mode == "negative" or (spectrum.charge or 0) < 0 else "+"
    return ""


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
    by_id : dict of str to list of int
        By what else the features are called (`other_ids`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self.twins: list[int] = []
        self.by_id: dict[str, list[int]] = {}
        with path.open("rb") as file:
            place = 0
            for line in file:
                kept = Kept(*json.loads(line))
                if self.places.setdefault(same_feature(kept.name), place) != place:
                    self.twins.append(place)
                for other in dict.fromkeys(map(same_feature, kept.ids)):
                    self.by_id.setdefault(other, []).append(place)
                place += len(line)

    def read(self, place: int) -> Kept:
        """What was kept at a place."""
        with self.path.open("rb") as file:
            file.seek(place)
            return Kept(*json.loads(file.readline()))
