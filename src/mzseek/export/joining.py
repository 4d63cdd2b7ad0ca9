"""Find annotations again by the names that other programs have for features."""

import json
from typing import NamedTuple

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.feature_tables import other_ids, same_feature
from mzseek.core.text import visible
from mzseek.export.tables import cells, summary_values
from mzseek.export.writer import RecordWriter

PREFIX = "mzseek_"  # before the names of joined columns, so that they are like no other
# Columns of the summary that are put beside rows or nodes, and which of them are numbers.
JOINED = (
    "name", "molecularFormula", "adduct", "InChIkey2D", "smiles", "confidence", "probability",
    "inDatabaseProbability", "setSize", "explainedIntensity", "libraryMatch", "librarySimilarity",
    "level", "levelReason", "links", "notes", "class", "classLevel", "classProbability",
    "rankedFormula", "rankedFormulaProbability",
)  # fmt: skip
NUMBERS = frozenset(
    {"confidence", "probability", "inDatabaseProbability", "setSize", "explainedIntensity",
     "librarySimilarity", "classProbability", "rankedFormulaProbability"}
)  # fmt: skip


class JoinRecord(NamedTuple):
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


def join_record(annotation: Annotation) -> JoinRecord:
    """Return what is joined of an annotation, and what it is found by."""
    joined = cells(summary_values(annotation, JOINED))
    return JoinRecord(
        visible(annotation.feature.name),
        annotation.feature.precursor_mz,
        {f"{PREFIX}{name}": visible(cell) for name, cell in joined.items()},
        _ion(annotation),
        other_ids(annotation.feature),
    )


def _ion(annotation: Annotation) -> str:
    if annotation.best is not None:
        return annotation.best.adduct
    for spectrum in annotation.feature.spectra:
        mode = spectrum.metadata.get("ionmode")
        if spectrum.adduct:
            return spectrum.adduct
        if spectrum.charge or mode:
            return "-" if mode == "negative" or (spectrum.charge or 0) < 0 else "+"
    return ""


class JoiningWriter(RecordWriter):
    """Write somebody else's network or table with annotations beside its nodes or rows.

    Records are found by offsets in the spool: only these and names are held in memory.

    Attributes
    ----------
    by_name : dict of str to int
        Offset by name, as `same_feature` has it.
    twins : list of int
        Offsets of annotations whose name another one had before.
    by_id : dict of str to list of int
        Offsets by what else the features are called (`other_ids`).
    """

    def record(self, annotation: Annotation) -> JoinRecord:
        """Return what is joined of an annotation."""
        return join_record(annotation)

    def finish(self) -> list[str]:
        """Index the records, and make the file."""
        self.close()
        self.by_name: dict[str, int] = {}
        self.twins: list[int] = []
        self.by_id: dict[str, list[int]] = {}
        offset = 0
        with self.spool.path.open("rb") as file:
            for line in file:
                record = JoinRecord(*json.loads(line))
                if self.by_name.setdefault(same_feature(record.name), offset) != offset:
                    self.twins.append(offset)
                for other in dict.fromkeys(map(same_feature, record.ids)):
                    self.by_id.setdefault(other, []).append(offset)
                offset += len(line)
        return super().finish()

    def read(self, offset: int) -> JoinRecord:
        """Return the record at an offset."""
        with self.spool.path.open("rb") as file:
            file.seek(offset)
            return JoinRecord(*json.loads(file.readline()))
