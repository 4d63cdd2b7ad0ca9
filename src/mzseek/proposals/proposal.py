"""A proposed structure, and how probable proposals are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# Of a proposal: log-odds of its spectrum's evidence, structural similarity to analogs weighed by
# their spectral similarity, log of how often its derivations lead to known molecules, spectral
# similarity of its parent, and whether it takes two steps.
FEATURES = ("evidence", "affinity", "rate", "analog", "two steps")
# Of a list of proposals, for the probability that the molecule is among them.
LIST_FEATURES = ("explained", "affinity", "rate", "nearest", "entropy", "log number", "evidence")


@dataclass(frozen=True, eq=False)
class Proposal:
    """A molecule that no database need hold, made of a known one.

    Attributes
    ----------
    smiles, key, formula : str
        ``key`` is the first block of the InChIKey.
    mass : float
        Monoisotopic, of the neutral molecule.
    adduct : str
    error_ppm : float
        Measured minus computed m/z of the precursor.
    probability : float
        Calibrated, that this is the molecule, given that one of the proposals is.
    confidence : float
        That this is the molecule, in the database or not.
    included : float
        Calibrated, that one of the proposals is the molecule, given that no candidate is.
    parent, parent_key, parent_name : str
        SMILES, key and name of the molecule that it is made of; the name may be empty.
    parent_record : str
        The most similar reference spectrum of the parent; empty where it has none.
    parent_similarity : float
        Of that spectrum; 0 where there is none.
    transformation : str
        Name, or both names joined by ``; ``.
    mass_difference : float
        Its mass less that of the parent.
    score : float
        Log-odds of the channels against the average proposal.
    explained : float
        Share of the intensity that its fragments explain.
    peaks_explained : int
    """

    smiles: str
    key: str
    formula: str
    mass: float
    adduct: str
    error_ppm: float
    probability: float
    confidence: float
    included: float
    parent: str
    parent_key: str
    parent_name: str
    parent_record: str
    parent_similarity: float
    transformation: str
    mass_difference: float
    score: float
    explained: float
    peaks_explained: int


@dataclass(frozen=True, eq=False)
class ProposalModel:
    """Parameters by which proposals are ranked.

    Attributes
    ----------
    weights : mapping of str to float
        Of each of `FEATURES`, in log-odds.
    included : mapping of str to float
        Intercept and weights of `LIST_FEATURES` for the log-odds that the molecule is among the
        proposals.
    rates : mapping of str to float
        Share of the products of a transformation, applied to known molecules, that are known.
    default_rate : float
        Of transformations that were not counted.
    fitted_on : mapping
        What the parameters were fitted on.
    """

    weights: Mapping[str, float]
    included: Mapping[str, float]
    rates: Mapping[str, float]
    default_rate: float
    fitted_on: Mapping[str, Any]

    def rate(self, steps: Sequence[str]) -> float:
        """Return how often the product of some steps is a known molecule."""
        return float(np.prod([self.rates.get(step, self.default_rate) for step in steps]))

    def log_odds(self, features: Floats) -> Floats:
        """Return the log-odds of proposals, shape (proposals,), from their `FEATURES`."""
        return np.asarray(features @ np.array([self.weights[name] for name in FEATURES]))

    def probability_included(self, features: Floats) -> float:
        """Return the probability that the molecule is proposed, from `LIST_FEATURES`."""
        weights = np.array([self.included[name] for name in LIST_FEATURES])
        log_odds = float(features @ weights) + self.included["intercept"]
        return float(1 / (1 + np.exp(-log_odds)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@lru_cache(maxsize=1)
def default_model() -> ProposalModel:
    """Return the parameters that come with mzseek."""
    text = files("mzseek").joinpath("data", "proposals", "model.json").read_text("utf-8")
    return ProposalModel(**json.loads(text))
