"""What is reached on the spectra of a laboratory that nothing was learned from.

    python benchmarks/contributors.py RUN [--least 15]

RUN is a fitted run, such as the one in the work folder of `mzseek model build --work`. For each
contributor of its test fold, the channels learn once more from the train fold without that
contributor's spectra, and are asked about the contributor's spectra of the test fold, whose
molecules are unlike all that was learned from. Beside it, the same spectra asked of the run as it
is. The ranker's few dozen weights stay those of the run. Contributors are read from MassBank's
identifiers. One JSON object a line: hit rates with their intervals over molecules.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import FITTED_ON, FitOptions, queries_of
from mzseek.evidence.model import EvidenceModel, precompute
from mzseek.evidence.prepared_queries import (
    queries_from,
    queries_with_truth,
    sample_spectra,
    training_set_from,
)
from mzseek.metrics import bootstrap, hit_rate
from mzseek.runs.run import Run

ASKED, SENSE = "test", "inchikey"
KS = (1, 5, 20)
Ints = npt.NDArray[np.int64]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("run", type=Path)
    asked.add_argument("--least", type=int, default=15, help="molecules that it must have")
    asked.add_argument("--only", nargs="*", help="these contributors alone")
    given = asked.parse_args()
    run = Run.open(given.run)
    prepared, fitted = Prepared.open(run.metadata["data"]["folder"]), EvidenceModel.open(run)
    options = FitOptions(candidates="mass", identity=SENSE)
    whose = np.array([contributor(name) for name in prepared.identifiers])
    queries = queries_with_truth(prepared, prepared.in_fold(ASKED), options.candidates, SENSE)
    for name in np.unique(whose[queries]):
        own = queries[whose[queries] == name]
        molecules = len(np.unique(prepared.molecule[own]))
        if molecules < given.least or (given.only and name not in given.only):
            continue
        without = learned_without(prepared, fitted, options, whose == name)
        print(
            json.dumps(
                {
                    "contributor": str(name),
                    "spectra": len(own),
                    "molecules": molecules,
                    "without": reached(prepared, without, own, options),
                    "with": reached(prepared, fitted, own, options),
                }
            ),
            flush=True,
        )


def contributor(identifier: str) -> str:
    """Of a record: the middle of MSBNK-CONTRIBUTOR-NUMBER."""
    return "-".join(identifier.split("-")[1:-1])


def learned_without(
    prepared: Prepared, fitted: EvidenceModel, options: FitOptions, left_out: npt.NDArray[np.bool_]
) -> EvidenceModel:
    """The same channels and ranker, channels having learned from what is left of the train fold."""
    train = prepared.in_fold(FITTED_ON)
    train = train[~left_out[train]]
    usable = queries_with_truth(prepared, train, options.candidates, options.identity)
    queries = queries_of(prepared, sample_spectra(prepared, usable, options.spectra_each), options)
    precompute(fitted.channels, queries.molecules)
    training_set = training_set_from(prepared, train, queries)
    return replace(fitted, states=[channel.fit(training_set) for channel in fitted.channels])


def reached(
    prepared: Prepared, fitted: EvidenceModel, queries: Ints, options: FitOptions
) -> dict[str, list[float]]:
    """Hit rates, in per cent, with intervals."""
    lists, same = queries_from(prepared, queries, options.candidates)
    truth = (same & IDENTITY_BITS[SENSE]) > 0
    scores = fitted.scores(lists)
    found = {}
    for k in KS:
        one = bootstrap(hit_rate(scores, lists.counts, truth, k), prepared.molecule[queries])
        found[f"hit_rate@{k}"] = [round(100 * v, 1) for v in (one.mean, one.low, one.high)]
    return found


if __name__ == "__main__":
    main()
