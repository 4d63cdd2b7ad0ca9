"""The mzTab-M file: one summary and one feature row a feature, one evidence row a candidate.

Metadata come first in the file but are known last, and so do the numbers of columns for files of
spectra: rows wait in spools, with a mark where those columns belong.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from mzseek.adducts import parse_adduct
from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.features import Feature
from mzseek.annotation.writing.links import link, source_of
from mzseek.annotation.writing.mztab.cells import (
    BAR,
    NULL,
    adduct,
    line,
    number,
    param,
    several,
    text,
)
from mzseek.annotation.writing.mztab.metadata import (
    CONFIDENCE,
    MEASURES,
    OWN_PREFIX,
    SOFTWARE,
    Run,
    metadata,
)
from mzseek.annotation.writing.spool import Settings, Writer, ranked
from mzseek.errors import AdductError

_HERE = "\v"  # where columns for files of spectra belong; no cell has it
_MOST_NAMED = 10  # identifications of one summary row; evidence rows have all
_AMBIGUOUS = "1"
_MS_LEVEL = param("MS", "MS:1000511", "ms level", "2")

SML = (
    "SML_ID", "SMF_ID_REFS", "database_identifier", "chemical_formula", "smiles", "inchi",
    "chemical_name", "uri", "theoretical_neutral_mass", "adduct_ions", "reliability",
    "best_id_confidence_measure", "best_id_confidence_value", _HERE, "opt_global_feature",
    "opt_global_confidence", "opt_global_in_database_probability", "opt_global_set_size",
    "opt_global_level_reason",
)  # fmt: skip
SMF = (
    "SMF_ID", "SME_ID_REFS", "SME_ID_REF_ambiguity_code", "adduct_ion", "isotopomer",
    "exp_mass_to_charge", "charge", "retention_time_in_seconds", "retention_time_in_seconds_start",
    "retention_time_in_seconds_end", _HERE, "opt_global_feature",
)  # fmt: skip
SME = (
    "SME_ID", "evidence_input_id", "database_identifier", "chemical_formula", "smiles", "inchi",
    "chemical_name", "uri", "derivatized_form", "adduct_ion", "exp_mass_to_charge", "charge",
    "theoretical_mass_to_charge", "spectra_ref", "identification_method", "ms_level",
    *(f"id_confidence_measure[{place}]" for place in range(1, len(MEASURES) + 1)), "rank",
    "opt_global_inchikey2d", "opt_global_adduct", "opt_global_in_prediction_set",
)  # fmt: skip


class MzTab(Writer):
    """Writes a file that ends in ``.mztab``."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        super().__init__(folder, name, settings)
        self._sml, self._smf, self._sme, self._seen = self.spools.values()
        self._features = sum(1 for _ in self._sml.lines())
        self._evidence = sum(1 for _ in self._sme.lines())
        self._runs: list[Run] = []
        self._prefixes: list[str] = []
        for told in self._seen.lines():
            self._recall(*json.loads(told))

    def spool_names(self) -> list[str]:
        """Rows of the three sections, and what metadata are made of."""
        return [f"{self.name}.{each}" for each in ("sml", "smf", "sme", "seen")]

    def write(self, answer: Answer) -> None:
        """Add the rows of a feature."""
        self._features += 1
        run = self._run_of(answer.feature)
        charge = _charge(answer)
        if charge:
            self._note_once("polarity", run, "+" if charge > 0 else "-")
        own = str(self._features)
        evidence = [
            line(["SME", *self._evidence_cells(answer, candidate, rank, run)])
            for rank, candidate in enumerate(ranked(answer), 1)
        ]
        references = [str(self._evidence - place) for place in reversed(range(len(evidence)))]
        self._sme.write("".join(evidence))
        best = answer.best
        self._smf.write(
            line(
                ["SMF", own, BAR.join(references), _AMBIGUOUS if len(references) > 1 else NULL,
                 adduct(best.adduct) if best else NULL, NULL, number(answer.feature.precursor_mz),
                 str(abs(charge) or 1), number(answer.feature.retention_time, 3), NULL, NULL, _HERE,
                 text(answer.feature.name)]
            )
        )  # fmt: skip
        self._sml.write(line(["SML", own, own, *self._summary_cells(answer)]))

    def finish(self) -> list[str]:
        """Put the sections together."""
        if not self._runs:
            self._runs.append(Run(self.settings.inputs[0] if self.settings.inputs else ""))
        assays = [f"abundance_assay[{place}]" for place in range(1, len(self._runs) + 1)]
        variables = ["abundance_study_variable[1]", "abundance_variation_study_variable[1]"]
        made = self.folder / f"{self.name}.made"
        with made.open("w", encoding="utf-8", newline="\n") as file:
            stem = self.name.rpartition(".")[0]
            file.writelines(metadata(stem, self.settings, self._runs, self._prefixes))
            for head, columns, inside, spool in (
                ("SMH", SML, [*assays, *variables], self._sml),
                ("SFH", SMF, assays, self._smf),
                ("SEH", SME, [], self._sme),
            ):
                file.write("\n" + line([head, *columns]).replace(_HERE, "\t".join(inside)))
                nulls = "\t".join([NULL] * len(inside))
                file.writelines(each.replace(_HERE, nulls) for each in spool.lines())
        shutil.move(made, self.folder / self.name)
        return super().finish()

    def _summary_cells(self, answer: Answer) -> list[str]:
        named = _named(answer)
        best = answer.best
        formulas = several(text(each.formula) for each in named)
        if not named and answer.level.number == "4" and best is not None:
            formulas = text(best.formula)
        ions = dict.fromkeys(adduct(each.adduct) for each in named)
        return [
            several(self._identifier(each) for each in named),
            formulas,
            several(text(each.smiles) for each in named),
            NULL,
            several(text(each.name) for each in named),
            several(_uri(each) for each in named),
            several(number(each.mass) for each in named),
            several(each for each in ions if each != NULL),
            text(answer.level.number),
            CONFIDENCE if best else NULL,
            number(answer.confidence) if best else NULL,
            _HERE,
            text(answer.feature.name),
            number(answer.confidence),
            number(answer.present),
            str(answer.set_size),
            text(answer.level.reason),
        ]

    def _evidence_cells(
        self, answer: Answer, candidate: Candidate, rank: int, run: int
    ) -> list[str]:
        self._evidence += 1
        measured = answer.feature.precursor_mz
        match = candidate.match
        charge = _charge_of(candidate.adduct) or _charge(answer) or 1
        return [
            str(self._evidence),
            f"ms_run[{run}]:feature={text(answer.feature.name)}",
            self._identifier(candidate),
            text(candidate.formula),
            text(candidate.smiles),
            NULL,
            text(candidate.name),
            _uri(candidate),
            NULL,
            adduct(candidate.adduct),
            number(measured),
            str(abs(charge)),
            number(measured / (1 + candidate.error_ppm * 1e-6)),
            self._spectra(answer.feature, run),
            SOFTWARE,
            _MS_LEVEL,
            number(answer.confidence_of(candidate)),
            number(candidate.probability),
            number(candidate.score),
            number(candidate.explained),
            number(match.similarity if match else None),
            str(rank),
            text(candidate.key),
            text(candidate.adduct),
            "true" if candidate.in_set else "false",
        ]

    def _spectra(self, feature: Feature, run: int) -> str:
        """References to a feature's spectra: by their ids in mzML, by their names elsewhere."""
        before = "" if self._runs[run - 1].is_mzml else "databasekey="
        return BAR.join(
            f"ms_run[{run}]:{before}{text(spectrum.identifier)}" for spectrum in feature.spectra
        )

    def _identifier(self, candidate: Candidate) -> str:
        """Of the first source that is known, else of the database that it was taken from."""
        known = next((found for each in candidate.identifiers if (found := source_of(each))), None)
        if known is None:
            return f"{OWN_PREFIX}:{text(candidate.key)}"
        self._note_once("database", 0, known[0])
        return f"{known[0]}:{known[1]}"

    def _run_of(self, feature: Feature) -> int:
        """Number of a feature's file, from 1."""
        self._note_once("run", 0, feature.where)
        return 1 + next(n for n, run in enumerate(self._runs) if run.where == feature.where)

    def _note_once(self, kind: str, run: int, value: str) -> None:
        """Take down what metadata will need, if it is new."""
        known: Sequence[str] = {
            "run": [each.where for each in self._runs],
            "database": self._prefixes,
            "polarity": self._runs[run - 1].polarities if run else [],
        }[kind]
        if value not in known:
            self._recall(kind, run, value)
            self._seen.write(json.dumps([kind, run, value]) + "\n")

    def _recall(self, kind: str, run: int, value: str) -> None:
        if kind == "run":
            self._runs.append(Run(value))
        elif kind == "database":
            self._prefixes.append(value)
        else:
            self._runs[run - 1].polarities.append(value)


def _named(answer: Answer) -> list[Candidate]:
    """The identifications of a summary row: none where only a formula or a mass is known."""
    if not answer.candidates or answer.level.number in ("4", "5"):
        return []
    if answer.level.number == "2a":
        return ranked(answer)[:1]
    best, *others = ranked(answer)
    return [best, *(each for each in others if each.in_set)][:_MOST_NAMED]


def _uri(candidate: Candidate) -> str:
    """The page of the identifier that the row has."""
    return next((page for each in candidate.identifiers if (page := link(each))), NULL)


def _charge(answer: Answer) -> int:
    """Of a feature, signed; 0 where nothing tells."""
    stated = [s.charge for s in answer.feature.spectra if s.charge]
    if stated:
        return stated[0]
    best = answer.best
    if best is not None and (charge := _charge_of(best.adduct)):
        return charge
    modes = [s.metadata.get("ionmode", "").lower() for s in answer.feature.spectra]
    return 1 if "positive" in modes else -1 if "negative" in modes else 0


def _charge_of(name: str) -> int:
    try:
        return parse_adduct(name).charge
    except AdductError:
        return 0
