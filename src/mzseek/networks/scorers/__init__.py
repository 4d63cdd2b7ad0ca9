"""Scorers by numpy and scipy: one file for each of `mzseek.models.scorers`, and one line here."""

from mzseek.networks.scorers.base import Scorer
from mzseek.networks.scorers.emb_cos import EmbCos
from mzseek.networks.scorers.emb_mlp import EmbMlp
from mzseek.networks.scorers.fp_cos import FpCos
from mzseek.networks.scorers.fp_mlp import FpMlp

SCORERS: dict[str, type[Scorer]] = {
    "fp-cos": FpCos,
    "emb-cos": EmbCos,
    "fp-mlp": FpMlp,
    "emb-mlp": EmbMlp,
}

__all__ = ["SCORERS", "Scorer"]
