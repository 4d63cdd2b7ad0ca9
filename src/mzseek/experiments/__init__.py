"""The paper's tables and figures as data files, and what runs them."""

from mzseek.experiments.experiment import (
    Claim,
    Column,
    Experiment,
    Row,
    Scale,
    experiment_named,
    names,
    read_experiment,
    scale_named,
    with_variant,
)

__all__ = [
    "Claim",
    "Column",
    "Experiment",
    "Row",
    "Scale",
    "experiment_named",
    "names",
    "read_experiment",
    "scale_named",
    "with_variant",
]
