"""Annotations for tests of the report."""

from typing import Any

import numpy as np

from mzseek.annotation.annotation import Annotation, Candidate, Level, Reference
from mzseek.annotation.features import Feature
from mzseek.spectra import Spectrum

from ..annotation.conftest import a_candidate, a_reference, a_spectrum, an_annotation

CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"
RIVALS = (
    "CCn1cnc2c1c(=O)[nH]c(=O)n2C",
    "CC(C)n1c(=O)[nH]c2nc[nH]c2c1=O",
    "CCCn1c(=O)[nH]c(=O)c2[nH]cnc21",
    "CCn1c(=O)[nH]c(=O)c2c1ncn2C",
    "CCCn1cnc2c1c(=O)[nH]c(=O)[nH]2",
)
PEAKS = (
    np.array([42.0338, 69.0447, 83.0604, 110.0713, 138.0662, 195.0877]),
    np.array([5.0, 12.0, 30.0, 40.0, 100.0, 60.0]),
)


def spectrum(name: str = "s1", peaks: Any = PEAKS, **changes: Any) -> Spectrum:
    mz, intensities = (np.asarray(values, np.float64) for values in peaks)
    metadata = {"retention_time": "61.5 s", "collision_energy": "30", **changes.pop("metadata", {})}
    return a_spectrum(name, mz=mz, intensities=intensities, metadata=metadata, **changes)


def reference(record: str = "REF1", **changes: Any) -> Reference:
    mz, intensities = PEAKS
    given = {"smiles": CAFFEINE, "name": "caffeine", "library": "box", **changes}
    return a_reference(**{"record": record, "mz": mz, "intensities": intensities, **given})


def candidate(smiles: str = CAFFEINE, **changes: Any) -> Candidate:
    facts = {
        "smiles": smiles, "name": "", "score": 1.0, "probability": 0.1, "in_set": False,
        "parts": (1.5, 0.5, -0.25), "explained": 0.8, "sources": (), "identifiers": (),
    }  # fmt: skip
    return a_candidate(**{**facts, **changes})


def make_annotation(name: str = "F1", **changes: Any) -> Annotation:
    """Caffeine, 60 % likely, before five rivals of 8 % each."""
    first = candidate(
        name="caffeine", probability=0.6, in_set=True, match=reference(), sources=("box",)
    )
    facts = {
        "feature": Feature(name, "feature_id", (spectrum(),), "a.mgf"),
        "candidates": (first, *(candidate(smiles, probability=0.08) for smiles in RIVALS)),
        "channels": ("fragments", "intensities", "analogs"),
        "kinds": {"fragments": "evidence", "intensities": "evidence", "analogs": "analogy"},
        "ions": {"[M+H]+": 0.9, "[M+Na]+": 0.1}, "set_size": 1,
        "choices": {"hit": 0, "tanimoto": 1}, "present": 0.8, "matches": (first.match,),
        "level": Level("2a", "It matches."), "notes": ("A note.",),
    }  # fmt: skip
    return an_annotation(**{**facts, **changes})


def empty_annotation(name: str = "F2") -> Annotation:
    """Nothing of that mass."""
    return make_annotation(
        name, candidates=(), choices={}, set_size=0, matches=(), present=0.0,
        level=Level("5", "No molecule has this mass."),
    )  # fmt: skip


def hostile_annotation(payload: str) -> Annotation:
    """A payload wherever there is text."""
    bad = reference(
        payload, name=payload, smiles=payload, contributor=payload, licence=payload,
        library=payload, adduct=payload,
    )  # fmt: skip
    worst = candidate(
        payload, name=payload, key=payload, formula=payload, adduct=payload, probability=0.5,
        in_set=True, sources=(payload,), identifiers=(payload,), match=bad, analog=bad,
    )  # fmt: skip
    plain = candidate(name=payload, probability=0.5)
    odd = spectrum(payload, metadata={"collision_energy": payload, "instrument": payload})
    return make_annotation(
        feature=Feature(payload, payload, (odd,), payload), candidates=(plain, worst),
        ions={payload: 0.5, "[M+H]+": 0.5}, channels=(payload, "b", "c"), matches=(bad,),
        kinds={payload: "evidence", "b": "analogy", "c": "prior"},
        choices={"hit": 0, payload: 1}, level=Level(payload, payload), notes=(payload,),
    )  # fmt: skip
