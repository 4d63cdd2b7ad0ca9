"""Milliseconds of each decision on lists of a real set, and of a whole fold.

usage: decode.py PREPARED [--candidates mass] [--lists 200] [--json]

Lists with at least 200 candidates (or the longest there are), probabilities drawn at random,
fingerprints gathered beforehand as CSR; one thread. Each decision is made from nothing: rows are
checked and equal ones merged every time.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.decision import UTILITIES, WITHIN, bayes_decision


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--candidates", default="mass")
    parser.add_argument("--lists", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepared = Prepared.open(options.prepared)
    lists = prepared.candidates(options.candidates)
    longest = np.argsort(-lists.sizes, kind="stable")[: options.lists]
    rng = np.random.default_rng(0)
    inputs = []
    for number in longest:
        members = lists.molecules[lists.indptr[number] : lists.indptr[number + 1]]
        p = rng.dirichlet(np.full(len(members), 0.3))
        inputs.append((prepared.fingerprint_rows(members), p / p.sum()))
    facts = {"candidates": float(np.mean([len(p) for _, p in inputs])), "milliseconds": {}}
    for utility in UTILITIES:
        for within in WITHIN:
            taken = []
            for rows, p in inputs:
                start = time.perf_counter()
                bayes_decision(utility, rows, p, within)
                taken.append(1000 * (time.perf_counter() - start))
            facts["milliseconds"][f"{utility}, {within}"] = [
                round(float(np.median(taken)), 3),
                round(float(np.quantile(taken, 0.95)), 3),
            ]
    if options.json:
        print(json.dumps(facts))
        return
    print(
        f"{len(inputs)} lists of {facts['candidates']:.0f} candidates; median and 95th percentile"
    )
    for name, (median, high) in facts["milliseconds"].items():
        print(f"{name:22s} {median:7.2f} ms {high:7.2f} ms")


if __name__ == "__main__":
    main()
