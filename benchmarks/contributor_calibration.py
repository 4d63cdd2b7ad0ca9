"""Probabilities and sets on spectra of contributors that nothing was learned from.

    python benchmarks/contributor_calibration.py TABLE LISTS [--least 15] [--parts 4]

Contributors are dealt into parts. Channels learn from the train fold once whole and once without
the contributors of each part; rankers are cross-fitted on val, without them as well. Val spectra of
a contributor are scored by what has not learned from it, and probabilities and 90 % sets are then
made in two ways:

- ``before``: temperature and threshold fitted on molecules as they come (scores of the whole fit,
  of other structure groups than the molecule's);
- ``after``: fitted on the other contributors, each scored by what has not learned from it, and on
  other structure groups.

One JSON object for each contributor with enough val molecules, and one for their means: HR@1, mean
probability of the first candidate and the gap between the two, calibration error in points, what
error probabilities that hold would have by chance on so few molecules, and what share the sets
hold. Equal weights of molecules; positive mode.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from corrupted import GROUPS, drawn, fit, groups_of, labelled, say, scores_of, training_set
from mzseek.core.ragged import Ragged
from mzseek.datasets.files import read_candidates, read_table
from mzseek.decision import (
    calibration_error,
    first_places,
    fit_calibration,
    fit_set_threshold,
    prediction_sets,
)
from mzseek.decision.calibration import BINS
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.spectra import Spectrum

COVERAGE = 0.9
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("lists", type=Path)
    parser.add_argument("--molecules", type=int, default=1500, help="of train")
    parser.add_argument("--each", type=int, default=2, help="spectra of a molecule, by contributor")
    parser.add_argument("--most", type=int, default=16, help="candidates of a train list")
    parser.add_argument("--least", type=int, default=15, help="val molecules of a contributor")
    parser.add_argument("--parts", type=int, default=4)
    given = parser.parse_args()
    folds: dict[str, list[Spectrum]] = {"train": [], "val": []}
    for spectrum in read_table(given.table, lambda where, reason: None):
        if spectrum.metadata["fold"] in folds and (spectrum.adduct or "").endswith("+"):
            folds[spectrum.metadata["fold"]].append(spectrum)
    lists = dict(read_candidates(given.lists, lambda where, reason: None))
    named = sorted({contributor(spectrum) for spectrum in folds["val"]})
    chosen = [
        spectrum
        for name in named
        for spectrum in drawn(
            [s for s in folds["val"] if contributor(s) == name], len(folds["val"]), given.each
        )
    ]
    val = labelled(chosen, lists)
    queries = labelled(drawn(folds["train"], given.molecules, given.each), lists, given.most)
    for asked in (queries, val):
        asked.molecules.compute(["morgan2", "rdkit4"], fragments=True)
    whole = training_set(folds["train"], queries)
    groups = groups_of(whole, val)
    say(f"{len(queries)} spectra of train, {len(val)} of val, molecules are read")
    whose = np.array([contributor(spectrum) for spectrum in val.spectra])
    usual = scores_of(*fit(whole, val, groups, 1), groups, val)
    shifted = usual.copy()
    for part in dealt(whose, given.parts):
        left_out = np.isin(whose, part)
        others = val.only(np.flatnonzero(~left_out))
        fitted, rankers = fit(without(whole, part), others, groups, 1)
        own = np.flatnonzero(left_out)
        shifted[val.rows(own)] = scores_of(fitted, rankers, groups, val.only(own))
        say(f"without {', '.join(part)}")
    group = groups.groups_of(val.inchikey14)
    rows = []
    for name in np.unique(whose):
        own = whose == name
        if len(np.unique(val.inchikey14[own])) < given.least:
            continue
        row: dict[str, object] = {"contributor": str(name), "spectra": int(own.sum())}
        row["molecules"] = len(np.unique(val.inchikey14[own]))
        row["before"] = judged(val, usual, shifted, own, group, np.ones(len(val), np.bool_))
        row["after"] = judged(val, shifted, shifted, own, group, ~own)
        rows.append(row)
        print(json.dumps(row), flush=True)
    for way in ("before", "after"):
        measured = [row[way] for row in rows]
        means = {key: round(np.mean([m[key] for m in measured]), 1) for key in measured[0]}
        inside_range = sum(87 <= m["held"] <= 93 for m in measured)
        print(json.dumps({way: means, "sets within 87 to 93": f"{inside_range} of {len(rows)}"}))


def contributor(spectrum: Spectrum) -> str:
    """Of a MassBank record: the middle of MSBNK-CONTRIBUTOR-NUMBER."""
    return "-".join(spectrum.identifier.split("-")[1:-1])


def dealt(whose: npt.NDArray[np.str_], parts: int) -> list[list[str]]:
    """Deal contributors into parts, the largest first, each to the smallest part."""
    names, counts = np.unique(whose, return_counts=True)
    made: list[list[str]] = [[] for _ in range(parts)]
    sizes = [0] * parts
    for number in np.argsort(-counts, kind="stable"):
        smallest = int(np.argmin(sizes))
        made[smallest].append(str(names[number]))
        sizes[smallest] += int(counts[number])
    return made


def without(training: TrainingSet, names: list[str]) -> TrainingSet:
    """Leave out all spectra of these contributors."""
    kept = [n for n, s in enumerate(training.spectra) if contributor(s) not in names]
    queries = training.queries
    asked = [n for n, s in enumerate(queries.spectra) if contributor(s) not in names]
    return replace(
        training,
        spectra=[training.spectra[n] for n in kept],
        molecule=training.molecule[kept],
        queries=queries.only(np.array(asked, np.int64)),
    )


def judged(
    val: Queries,
    to_fit: Floats,
    scores: Floats,
    own: Flags,
    group: npt.NDArray[np.int64],
    among: Flags,
) -> dict[str, float]:
    """Hit rate, confidence, calibration error and coverage, cross-fitted over structure groups."""
    p = np.zeros(val.ragged.total)
    inside = np.zeros(val.ragged.total, np.bool_)
    for number in range(GROUPS):
        queries = np.flatnonzero(own & (group == number))
        if not len(queries):
            continue
        others = np.flatnonzero(among & (group != number))
        rows = val.rows(others)
        fitted_on = (val.counts[others], val.labels[rows])
        calibration = fit_calibration(to_fit[rows], *fitted_on, val.inchikey14[others])
        threshold = fit_set_threshold(
            calibration.posterior(to_fit[rows], val.counts[others]), *fitted_on, COVERAGE,
            val.inchikey14[others],
        )  # fmt: skip
        asked = val.rows(queries)
        p[asked] = calibration.posterior(scores[asked], val.counts[queries])
        inside[asked] = prediction_sets(p[asked], val.counts[queries], threshold)
    queries = np.flatnonzero(own)
    rows, counts = val.rows(queries), val.counts[queries]
    labels, molecule = val.labels[rows], val.inchikey14[queries]
    weights = val.only(queries).molecule_weights()
    highest, right = first_places(p[rows], counts, labels)
    held = Ragged(counts).any(inside[rows] & labels)
    sizes = Ragged(counts).sum(inside[rows].astype(np.float64))
    accuracy, confidence = (
        float(np.average(values, weights=weights)) for values in (right, highest)
    )
    return {
        "hit_rate@1": round(100 * accuracy, 1),
        "confidence": round(100 * confidence, 1),
        "gap": round(100 * abs(confidence - accuracy), 1),
        "error": round(100 * calibration_error(p[rows], counts, labels, groups=molecule), 1),
        "chance": round(100 * error_by_chance(highest, molecule), 1),
        "held": round(100 * float(np.average(held, weights=weights)), 1),
        "size": round(float(np.average(sizes, weights=weights)), 1),
    }


def error_by_chance(
    confidence: Floats, molecule: npt.NDArray[np.bytes_], draws: int = 200
) -> float:
    """Mean calibration error if probabilities held; spectra of a molecule are drawn together."""
    random = np.random.default_rng(0)
    names, index, counts = np.unique(molecule, return_inverse=True, return_counts=True)
    weights = 1 / counts[index] / len(names)
    bin_of = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    errors = []
    for _ in range(draws):
        right = random.random(len(names))[index] < confidence
        gaps = np.bincount(bin_of, weights * (confidence - right), BINS)
        errors.append(np.abs(gaps).sum())
    return float(np.mean(errors))


if __name__ == "__main__":
    main()
