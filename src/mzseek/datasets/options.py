"""Options of a data set that is built; nothing heavy is imported, since ``--help`` needs them."""

from dataclasses import dataclass, field

from mzseek.core.registry import option


@dataclass(frozen=True)
class BuildOptions:
    """How a data set is made; fields with a meaning are options of ``mzseek data build``."""

    seed: int = option(0, "For the split and the candidates.")
    fractions: dict[str, float] = field(
        default_factory=lambda: {"train": 0.8, "val": 0.1, "test": 0.1}
    )
    similarity: float = option(
        0.6, "Tanimoto at which molecules share a cluster.", at_least=0.0, at_most=1.0
    )
    keep_formulas_together: bool = option(
        False, "Never split molecules of one formula between folds."
    )
    candidate_ppm: float = option(
        10.0, "Mass window of the candidates.", at_least=0.0, flag="--ppm"
    )
    precursor_ppm: float = option(20.0, "Largest error of the precursor m/z.", at_least=0.0)
    max_candidates: int = option(256, "Truth included.", at_least=1)
    keep_stereo: bool = option(False, "Keep stereo in SMILES.")
    priorities: tuple[str, ...] = option(
        (),
        "Sources that full lists are filled from first. Several times.",
        option=list[str],
        flag="--priority",
    )
