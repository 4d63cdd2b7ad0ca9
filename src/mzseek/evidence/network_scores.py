"""Channel: scores of a trained network.

It was trained elsewhere, on the train fold of its own data: a ranker may be fitted on none of those
molecules. Its weights are copied into the fitted run, which then no longer needs the trained one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import option
from mzseek.datasets.slices import peak_slices
from mzseek.evidence.model import Channel, ChannelState, Features
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.models import ModelSpec
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.checkpoints import best_model, load_weights, model_for, network_of
from mzseek.runs.run import Run
from mzseek.spectra import bin_spectra

_ROWS = 20_000  # candidates at a time
_BINNING = ("bin_width", "low", "high")


@dataclass(frozen=True)
class NetworkOptions:
    """Options of the network channel."""

    path: str = option("", "the run's folder")
    metric: str = option("hit_rate@20", "validation metric whose best weights are taken")


class Network(Channel):
    """The score of a trained run."""

    name: ClassVar[str] = "run"
    options_type: ClassVar[type] = NetworkOptions
    pretrained: ClassVar[bool] = True
    feature_names = ("score",)

    @property
    def label(self) -> str:
        """The run's name."""
        return f"{self.name}:{Path(self.options.path).name}"

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Load the run's weights; the training set is not used.

        Raises
        ------
        MissingExtra
            torch is not installed.
        RunError, EvidenceError
            There is no such run, it has no weights, or its data are gone.
        """
        run = Run.open(self.options.path)
        prepared = run.open_data()
        model_for(run, prepared)  # refuses a run without one
        metric = self._metric(run)
        best_model(run, metric, prepared)  # refuses weights that are not the run's
        arrays, spec, _ = load_weights(run.checkpoint(metric))
        trained_on = np.unique(prepared.molecule[prepared.in_fold("train")])
        options = prepared.manifest["options"]
        metadata = {
            "model": spec.to_dict(),
            "run": run.identity,
            "metric": metric,
            "fingerprint": options["fingerprint"],
            "sees_spectrum": run.description.sees_spectrum,
            **{name: float(options[name]) for name in _BINNING},
        }
        return ChannelState(arrays, metadata, np.unique(prepared.inchikey14[trained_on]))

    def _metric(self, run: Run) -> str:
        """The metric whose weights are taken: on the lists the run is measured on, or the first."""
        preferred = f"{self.options.metric}/{run.measured_on}"
        named = [name for name in run.best if name.partition("/")[0] == self.options.metric]
        if not named:
            raise EvidenceError(
                f"{run.folder}: has no weights that were best by {self.options.metric}, it has: "
                f"{', '.join(run.best) or 'none'}"
            )
        return preferred if preferred in named else named[0]

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """The network's own score, by the fingerprint that it was trained on."""
        metadata = state.metadata
        if "network" not in state.cache:
            spec = ModelSpec.from_dict(metadata["model"])
            state.cache["network"] = network_of(spec, dict(state.arrays), Path(self.label))
        network = state.cache["network"]
        scores = np.zeros((queries.ragged.total, 1), np.float32)
        for rows, part in queries.in_parts(_ROWS):
            if network.reads == "bins":
                width, low, high = (metadata[name] for name in _BINNING)
                read = network.read(bin_spectra(part.spectra, width=width, low=low, high=high))
            else:
                peaks = [(spectrum.mz, spectrum.intensities) for spectrum in part.spectra]
                precursors = np.array([spectrum.precursor_mz for spectrum in part.spectra])
                read = network.read(peak_slices(peaks, precursors))
            kind = str(metadata["fingerprint"])
            bits = part.molecules.fingerprints(part.candidates, kind).astype(np.float32)
            scores[rows, 0] = network.scores(read, bits, part.counts)
        return scores
