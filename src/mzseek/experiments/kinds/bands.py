"""Similarity bands of candidate lists: nothing is trained."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.decision import Bands
from mzseek.decision.registry import BAND_SIMILARITIES
from mzseek.errors import ExperimentError
from mzseek.experiments.experiment import Experiment, Row, Scale
from mzseek.experiments.kinds.kind import Cells, Kind
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.experiments.trials import USUAL_LISTS
from mzseek.prepared.bands import set_bands
from mzseek.registry import check_name

APART, TWINS = "apart", "twins"  # shares of lists with σ_min = 0, and with σ_max = 1
METRICS = ("low", "high", "width", APART, TWINS)
_SETTINGS = ("fingerprint", "similarity")
_BINS = 50


class BandsKind(Kind):
    """Medians of σ_min, σ_max and their difference over all lists, the truth against the others.

    A row has a ``fingerprint`` (morgan2 unless it says so) and a ``similarity`` (Tanimoto).
    """

    name = "bands"

    def check(self, experiment: Experiment) -> None:
        """See `Kind.check`."""
        for column in experiment.columns:
            check_name(METRICS, column.metric, f"{experiment.name}: metric", ExperimentError)
        lists = {column.candidates or USUAL_LISTS for column in experiment.columns}
        if len(lists) > 1:
            raise ExperimentError(f"{experiment.name}: candidates differ from column to column")
        for row in experiment.rows:
            for name in row.settings:
                check_name(_SETTINGS, name, f"{experiment.name}: {row.key}", ExperimentError)
            fingerprint_kind(_fingerprint(row))
            where = f"{experiment.name}: {row.key}: similarity"
            check_name(BAND_SIMILARITIES, _similarity(row), where, ExperimentError)

    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """See `Kind.measure`; beside the cells, how σ_min, σ_max and the width are distributed."""
        assert site is not None
        lists = experiment.columns[0].candidates or USUAL_LISTS
        cells: Cells = {}
        drawn: dict[str, Any] = {"edges": np.linspace(0, 1, _BINS + 1).tolist()}
        for row in experiment.rows:
            found = set_bands(
                site.prepared(_fingerprint(row)), lists,
                fold=None if experiment.fold == "all" else experiment.fold,
                similarity=_similarity(row), most_lists=scale.most_lists, progress=site.progress,
            )  # fmt: skip
            numbers = _numbers(found)
            cells[row.key] = {c.key: Cell((numbers[c.metric],)) for c in experiment.columns}
            drawn[row.key] = _distributions(found)
        return cells, drawn


def _fingerprint(row: Row) -> str:
    return str(row.settings.get("fingerprint", "morgan2"))


def _similarity(row: Row) -> str:
    return str(row.settings.get("similarity", "tanimoto"))


def _numbers(found: Bands) -> dict[str, float]:
    shares = {
        APART: float(np.mean(found.low[found.usable] == 0)),
        TWINS: float(np.mean(found.high[found.usable] == 1)),
    }
    return found.medians() | shares


def _distributions(found: Bands) -> dict[str, Any]:
    """How many lists there are in each bin, which a figure of many thousands needs no more than."""
    low, high = found.low[found.usable], found.high[found.usable]
    return {
        name: np.histogram(values, bins=_BINS, range=(0, 1))[0].tolist()
        for name, values in (("low", low), ("high", high), ("width", high - low))
    }


KIND = BandsKind()
