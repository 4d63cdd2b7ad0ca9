"""Annotations as one JSON array.

Numbers are finite or null. All characters but plain ones are escaped, so that nothing in a name is
markup or a terminal's code wherever the file is shown; what is read back is what was there.
"""

import json
import re
from typing import Any

from mzseek.annotation.annotation import Annotation, Candidate, Reference
from mzseek.annotation.story import describe
from mzseek.chem.identifiers import links
from mzseek.classes import LEVELS, CompoundClass
from mzseek.export.proposals import proposal_values
from mzseek.export.tables import FIRST
from mzseek.export.writer import Writer, plain_data
from mzseek.formulas import RankedFormula

_MARKUP = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&"}
_TEXT = rb'"(?:[^"\\]|\\.)*"'


class JsonArray(Writer):
    """Write a file that ends in ``.json``."""

    signature = re.compile(
        rb'\A(?:\[\]\n\Z|\[\n\{"feature": %s, "named_by": %s, "file": %s, "spectra": \[)'
        % (_TEXT, _TEXT, _TEXT)
    )

    def write(self, annotation: Annotation) -> None:
        """Add an object."""
        text = json.dumps(annotation_object(annotation), allow_nan=False).translate(_MARKUP)
        self.spool.write(("[\n" if self.spool.is_empty else ",\n") + text)

    def finish(self) -> list[str]:
        """Close the array."""
        self.spool.write("[]\n" if self.spool.is_empty else "\n]\n")
        return super().finish()


def annotation_object(annotation: Annotation) -> Any:
    """Return an annotation as plain data, all numbers finite."""
    feature = annotation.feature
    return plain_data(
        {
            "feature": feature.name,
            "named_by": feature.named_by,
            "file": feature.where,
            "spectra": [spectrum.identifier for spectrum in feature.spectra],
            "ionMass": feature.precursor_mz,
            "retentionTimeInSeconds": feature.retention_time,
            "confidence": annotation.confidence,
            "inDatabaseProbability": annotation.present,
            "setSize": annotation.set_size,
            "coverage": annotation.coverage,
            "candidatesFound": annotation.found,
            "scored": annotation.scored,
            "ions": annotation.ions,
            "objective": annotation.objective,
            "nearestSimilarity": annotation.nearest,
            "unlike": annotation.unlike,
            "level": annotation.level.number,
            "levelReason": annotation.level.reason,
            "notes": annotation.notes,
            "candidates": [
                _candidate_object(annotation, candidate, rank)
                for rank, candidate in enumerate(annotation.ranked, 1)
            ],
            "matches": [_reference_object(match) for match in annotation.matches],
            "ionSupport": [
                {
                    "adduct": own.adduct,
                    "spectra": own.spectra,
                    "probability": own.probability,
                    "preferred": own.preferred,
                    "preferredName": own.preferred_name,
                    "preferredProbability": own.preferred_probability,
                }
                for own in annotation.ion_support
            ],
            "removedPeaks": [
                {"spectrum": spectrum.identifier, "mz": mz, "reason": reason}
                for spectrum, reasons in zip(feature.spectra, annotation.artefacts, strict=True)
                for mz, reason in zip(spectrum.mz.tolist(), reasons, strict=True)
                if reason
            ],
            "class": annotation.compound_class and _class_object(annotation.compound_class),
            "formulas": [
                formula_object(
                    formula, rank, probabilityAmongCandidates=annotation.among_candidates(formula)
                )
                for rank, formula in enumerate(annotation.formulas, 1)
            ],
            "proposals": [
                proposal_values(proposal, rank)
                for rank, proposal in enumerate(annotation.proposals, 1)
            ],
            "story": describe(annotation),
        }
    )


def _class_object(found: CompoundClass) -> dict[str, Any]:
    return {
        "name": found.name,
        "level": found.level,
        "probability": found.probability,
        "posterior": {
            level: [
                {"name": entry.name, "lineage": entry.lineage, "probability": entry.probability}
                for entry in entries
            ]
            for level, entries in zip(LEVELS, found.levels, strict=True)
        },
        "references": [
            {
                "record": reference.record,
                "name": reference.name,
                "smiles": reference.smiles,
                "similarity": reference.similarity,
                "lineage": reference.lineage,
                "supports": found.is_supported_by(reference),
            }
            for reference in found.references
        ],
    }


def _candidate_object(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, Any]:
    values = {name: value(annotation, candidate) for name, value in FIRST.items()}
    del values["feature"]
    kinds = sorted(set(annotation.kinds.values()))
    return values | {
        "rank": rank,
        "channels": dict(zip(annotation.channels, candidate.parts, strict=True)),
        "nats": {kind: annotation.nats(candidate, kind) for kind in kinds},
        "explainedIntensity": candidate.explained,
        "explainedPeaks": candidate.peaks_explained,
        "libraryMatch": candidate.match and _reference_object(candidate.match),
        "analog": candidate.analog and _reference_object(candidate.analog),
        "sources": candidate.sources,
        "identifiers": candidate.identifiers,
        "links": links(candidate.identifiers),
    }


def formula_object(formula: RankedFormula, rank: int, **probabilities: Any) -> dict[str, Any]:
    """Return a formula as plain data, with what other probabilities it has."""
    return {
        "rank": rank,
        "molecularFormula": formula.formula,
        "adduct": formula.adduct,
        "probability": formula.probability,
        **probabilities,
        "mass": formula.mass,
        "errorPpm": formula.error_ppm,
        "explainedIntensity": formula.explained,
        "explainedPeaks": formula.peaks_explained,
        "isotopeScore": formula.isotope_score,
        "prior": formula.prior,
        "contributions": formula.contributions,
        "peaks": [
            {"mz": peak.mz, "formula": peak.formula, "errorPpm": peak.error_ppm}
            for peak in formula.peaks
        ],
    }


def _reference_object(reference: Reference) -> dict[str, Any]:
    return {
        "record": reference.record,
        "smiles": reference.smiles,
        "name": reference.name,
        "similarity": reference.similarity,
        "peaks": reference.peaks,
        "likeness": reference.tanimoto,
        "contributor": reference.contributor,
        "licence": reference.licence,
        "library": reference.library,
        "adduct": reference.adduct,
        "precursorMz": reference.precursor_mz,
    }
