"""Annotations as one JSON array.

Numbers are finite or null. All characters but plain ones are escaped, so that nothing in a name is
markup or a terminal's code wherever the file is shown; what is read back is what was there.
"""

import json
import math
import re
from typing import Any

from mzseek.annotation.annotation import Annotation, Candidate, Reference
from mzseek.chem.identifiers import links
from mzseek.export.writer import Writer

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


def annotation_object(annotation: Annotation) -> dict[str, Any]:
    """Return an annotation as plain data, all numbers finite."""
    feature = annotation.feature
    return {
        "feature": feature.name,
        "named_by": feature.named_by,
        "file": feature.where,
        "spectra": [spectrum.identifier for spectrum in feature.spectra],
        "ionMass": _finite(feature.precursor_mz),
        "retentionTimeInSeconds": _finite(feature.retention_time),
        "confidence": _finite(annotation.confidence),
        "inDatabaseProbability": _finite(annotation.present),
        "setSize": annotation.set_size,
        "coverage": _finite(annotation.coverage),
        "candidatesFound": annotation.found,
        "scored": annotation.scored,
        "ions": {ion: _finite(probability) for ion, probability in annotation.ions.items()},
        "objective": annotation.objective,
        "nearestSimilarity": _finite(annotation.nearest),
        "unlike": bool(annotation.unlike),
        "level": annotation.level.number,
        "levelReason": annotation.level.reason,
        "notes": list(annotation.notes),
        "candidates": [
            _candidate_object(annotation, candidate, rank)
            for rank, candidate in enumerate(annotation.ranked, 1)
        ],
        "matches": [_reference_object(match) for match in annotation.matches],
    }


def _candidate_object(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, Any]:
    kinds = sorted(set(annotation.kinds.values()))
    channels = zip(annotation.channels, candidate.parts, strict=True)
    return {
        "rank": rank,
        "smiles": candidate.smiles,
        "InChIkey2D": candidate.key,
        "molecularFormula": candidate.formula,
        "adduct": candidate.adduct,
        "probability": _finite(candidate.probability),
        "confidence": _finite(annotation.confidence_of(candidate)),
        "inSet": bool(candidate.in_set),
        "name": candidate.name,
        "mass": _finite(candidate.mass),
        "errorPpm": _finite(candidate.error_ppm),
        "score": _finite(candidate.score),
        "channels": {channel: _finite(part) for channel, part in channels},
        "nats": {kind: _finite(annotation.nats(candidate, kind)) for kind in kinds},
        "explainedIntensity": _finite(candidate.explained),
        "explainedPeaks": candidate.peaks_explained,
        "libraryMatch": candidate.match and _reference_object(candidate.match),
        "analog": candidate.analog and _reference_object(candidate.analog),
        "sources": list(candidate.sources),
        "identifiers": list(candidate.identifiers),
        "links": links(candidate.identifiers),
    }


def _reference_object(reference: Reference) -> dict[str, Any]:
    return {
        "record": reference.record,
        "smiles": reference.smiles,
        "name": reference.name,
        "similarity": _finite(reference.similarity),
        "peaks": reference.peaks,
        "likeness": _finite(reference.tanimoto),
        "contributor": reference.contributor,
        "licence": reference.licence,
        "library": reference.library,
        "adduct": reference.adduct,
        "precursorMz": _finite(reference.precursor_mz),
    }


def _finite(value: float | None) -> float | None:
    """Return a number as JSON knows it; None where there is none, or no finite one."""
    return None if value is None or not math.isfinite(value) else float(value)
