"""Kinds of experiments by name: one file each in `mzseek.experiments.kinds`, and one line here."""

from mzseek.errors import ExperimentError
from mzseek.experiments.kinds import bands, history, regret, runs, theory
from mzseek.experiments.kinds.kind import Kind
from mzseek.registry import choose

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        runs.KIND,
        bands.KIND,
        theory.KIND,
        history.KIND,
        regret.KIND,
    )
}


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    return choose(KINDS, name, "kind of experiment", ExperimentError)
