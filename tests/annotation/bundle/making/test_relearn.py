"""Channels that learn once more, from all folds."""

import numpy as np

from mzseek.bundle.refit import reference_queries, refit_channels
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import EvidenceModel, FitOptions
from mzseek.runs.run import Run


def test_they_have_learned_from_all_folds(fitted_run: Run, small: Prepared) -> None:
    fitted = EvidenceModel.open(fitted_run)
    again = refit_channels(fitted, small, FitOptions(), most_peaks=50, jobs=1)
    measured = np.unique(small.inchikey14[small.molecule])
    analogs = [channel.name for channel in again.channels].index("analogs")
    assert again.states[analogs].blocks.tolist() == measured.tolist()
    assert len(again.states[analogs].arrays["precursors"]) == len(small)
    assert np.diff(again.states[analogs].arrays["pointers"]).max() == 50
    assert again.ranker is fitted.ranker


def test_spectra_of_folds_in_the_order_of_the_folder(small: Prepared) -> None:
    assert reference_queries(small, FOLDS).tolist() == list(range(len(small)))
    assert reference_queries(small, ["val"]).tolist() == small.in_fold("val").tolist()
