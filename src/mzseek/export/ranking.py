"""Ranked structures of each feature on one line, the form that identification contests ask for."""

import csv
import io
import re
from collections.abc import Iterable

from mzseek.annotation.annotation import Annotation
from mzseek.chem.molecules import tautomer_key
from mzseek.export.tables import free_text
from mzseek.export.writer import RANKING_COLUMNS, Writer

_BETWEEN = ";"  # which stands in no SMILES


class Ranking(Writer):
    """Write a file that ends in ``.csv``: an id and its structures, the best first, in a row.

    Structures that differ by stereochemistry or are tautomers of one another are given once, by the
    first of them. A feature without candidates has an empty cell.
    """

    signature = re.compile(rb"\A%s\n" % ",".join(RANKING_COLUMNS).encode())

    def write(self, annotation: Annotation) -> None:
        """Add a row."""
        self._begin()
        smiles = distinct_structures(candidate.smiles for candidate in annotation.ranked)
        self.spool.write(_row(free_text(annotation.feature.name), _BETWEEN.join(smiles)))

    def finish(self) -> list[str]:
        """Complete the file: without annotations it is a header."""
        self._begin()
        return super().finish()

    def _begin(self) -> None:
        if self.spool.is_empty:
            self.spool.write(_row(*self.settings.ranking_columns))


def distinct_structures(smiles: Iterable[str]) -> list[str]:
    """Return SMILES without those that are a tautomer or stereoisomer of an earlier one.

    Examples
    --------
    >>> distinct_structures(["O=c1cccc[nH]1", "CCO", "Oc1ccccn1"])
    ['O=c1cccc[nH]1', 'CCO']
    """
    by_key: dict[str, str] = {}
    for text in smiles:
        by_key.setdefault(tautomer_key(text), text)
    return list(by_key.values())


def _row(*cells: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
