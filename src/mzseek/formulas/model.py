"""The fitted parameters of formula ranking: prior, weights, temperatures, and how common ions are.

They are shipped as `mzseek/data/formulas.json`, which `benchmarks/fit_formulas.py` writes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from mzseek.chem.formulas import parse_formula
from mzseek.formulas.enumeration import counts_of, formula_text
from mzseek.formulas.prior import Floats, FormulaPrior
from mzseek.formulas.subformulas import PART_WEIGHTS

FEATURES = (
    "prior",  # log-odds of the formula
    "ion",  # logarithm of how common the ion is
    "mass",  # squared error of the precursor
    "strong", "medium", "weak", "faint",  # log-odds of peaks against chance, by intensity
    "explained",  # share of the intensity, in square roots
    "isotopes",  # log-likelihood of the isotope pattern
    "related",  # other ions of the molecule in the survey scan
)  # fmt: skip

# What is known of the mass errors of peaks, beside the kinds of instruments.
OTHER, RECALIBRATED = "other", "recalibrated"


@dataclass(frozen=True, eq=False)
class PolarityWeights:
    """Weights of an ion mode.

    Attributes
    ----------
    weights : float64 array, shape (features,)
    temperature : float
        By which scores are divided before they become probabilities.
    ions : mapping of str to float
        Share of each ion among the spectra that the weights were fitted on.
    common : mapping
        Log-weights of common "fragments" and "losses", by element counts.
    """

    weights: Floats
    temperature: float
    ions: Mapping[str, float]
    common: Mapping[str, Mapping[tuple[int, ...], float]]

    def ion_log_share(self, adduct: str) -> float:
        """Return the logarithm of how common an ion is; of one that was not met, half the least."""
        return float(np.log(self.ions.get(adduct, min(self.ions.values()) / 2)))


@dataclass(frozen=True, eq=False)
class FormulaModel:
    """Prior and weights of formula ranking.

    Attributes
    ----------
    prior : FormulaPrior
    modes : mapping of int to PolarityWeights
        By the sign of the charge.
    error_cases : mapping of str to float64 array, shape (cases,)
        Share of spectra of each of `mzseek.formulas.subformulas.ERROR_CASES`, by instrument.
    part_weights : float64 array
        Which parts of ions are fragments, by `mzseek.formulas.subformulas.PART_WEIGHTS`.
    """

    prior: FormulaPrior
    modes: Mapping[int, PolarityWeights]
    error_cases: Mapping[str, Floats]
    part_weights: Floats

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "FormulaModel":
        """Return the model that `to_dict` has written."""
        return cls(
            FormulaPrior.from_dict(data["prior"]),
            {
                int(sign): PolarityWeights(
                    np.array([mode["weights"][name] for name in FEATURES]),
                    mode["temperature"],
                    mode["ions"],
                    {kind: by_counts(mode["common"][kind]) for kind in ("fragments", "losses")},
                )
                for sign, mode in data["modes"].items()
            },
            {name: np.array(shares) for name, shares in data["error_cases"].items()},
            np.array([data["parts"][name] for name in PART_WEIGHTS]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "prior": self.prior.to_dict(),
            "modes": {
                str(sign): {
                    "weights": {
                        name: round(float(weight), 4)
                        for name, weight in zip(FEATURES, mode.weights, strict=True)
                    },
                    "temperature": round(mode.temperature, 4),
                    "ions": {name: round(share, 5) for name, share in mode.ions.items()},
                    "common": {
                        kind: {formula_text(c): round(weight, 2) for c, weight in weights.items()}
                        for kind, weights in mode.common.items()
                    },
                }
                for sign, mode in self.modes.items()
            },
            "error_cases": {
                name: [round(float(share), 4) for share in shares]
                for name, shares in self.error_cases.items()
            },
            "parts": {
                name: round(float(weight), 4)
                for name, weight in zip(PART_WEIGHTS, self.part_weights, strict=True)
            },
        }


def by_counts(weights: Mapping[str, float]) -> dict[tuple[int, ...], float]:
    """Return weights of formulas by their element counts."""
    return {
        tuple(counts_of(parse_formula(text)).tolist()): weight for text, weight in weights.items()
    }


@lru_cache(maxsize=1)
def shipped_model() -> FormulaModel:
    """Return the model that comes with mzseek."""
    return FormulaModel.from_dict(
        json.loads((files("mzseek") / "data" / "formulas.json").read_text("utf-8"))
    )
