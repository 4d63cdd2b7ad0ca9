"""Scorers g(x, c): how well a candidate fits a spectrum. One folder each, and one line here.

The folder's own module has the options and the facts, and loads no torch; ``network.py`` has the
network.
"""

from mzseek.errors import ModelError
from mzseek.models.scorers import emb_cos, emb_mlp, fp_cos, fp_mlp
from mzseek.models.scorers.kind import ScorerKind
from mzseek.registry import choose

SCORERS: dict[str, ScorerKind] = {
    kind.name: kind
    for kind in (
        fp_cos.SCORER,
        emb_cos.SCORER,
        fp_mlp.SCORER,
        emb_mlp.SCORER,
    )
}

__all__ = ["SCORERS", "ScorerKind", "scorer_named"]


def scorer_named(name: str) -> ScorerKind:
    """Facts about the scorer of that name."""
    return choose(SCORERS, name, "scorer", ModelError)
