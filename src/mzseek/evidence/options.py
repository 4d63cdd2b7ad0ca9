"""Options of a fit; nothing heavy is imported, since ``mzseek fit --help`` needs them."""

from dataclasses import dataclass

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import FOLDS, IDENTITIES, check_name, check_ranges, option

SPECTRA = ("own", "swapped")


@dataclass(frozen=True)
class FitOptions:
    """How a ranker is fitted."""

    candidates: str = option("mass", "Candidate lists to fit on: mass, formula, or another name.")
    fit_on: tuple[str, ...] | None = option(
        None,
        "Folds to fit the ranker on: train,val (cross-fitted), train or val; by default both, and "
        "val alone where a trained run is among the channels.",
        option=str | None,
    )
    identity: str = option(
        IDENTITIES[0],
        f"A hit has the same {' or '.join(IDENTITIES)} (its first block).",
        among=IDENTITIES,
    )
    spectra: str = option(
        SPECTRA[0],
        "Predict from each one's own spectrum, or, as a control, swapped: from that of another "
        f"molecule of nearly equal mass ({' or '.join(SPECTRA)}).",
        among=SPECTRA,
    )
    groups: int = option(
        5, "Groups of structure clusters to cross-fit by.", at_least=2, at_most=100
    )
    spectra_each: int = option(5, "spectra of a molecule to fit on", at_least=1)
    most_candidates: int = option(32, "candidates of a list to fit on", at_least=2)
    augment: int = option(
        1,
        "Corrupted copies of each spectrum to fit on, with mass drift, noise and contaminants.",
        at_least=0,
        at_most=10,
    )
    l2: float = option(1e-3, "penalty on the squares of weights", at_least=0)
    by_molecule: bool = option(True, "every molecule counts once")
    calibrated_on: int = option(500, "molecules of train to calibrate with, beside val", at_least=0)
    seed: int = 0

    def check(self) -> None:
        """Refuse what is unknown or out of range."""
        check_ranges(self, EvidenceError)
        for fold in self.fit_on or ():
            check_name(FOLDS[:2], fold, "--fit-on", EvidenceError)
