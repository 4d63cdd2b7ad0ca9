"""How far the search for the best Tanimoto decision is from the true optimum.

usage: tanimoto_search.py [--instances 10000] [--most-bits 16] [--seed 0] [--json]

Random candidate sets that can still be enumerated, of several kinds: bits at random, bits of one
density, chains that share most of their bits, few bits each; probabilities from one candidate that
is nearly sure to all alike. The search is told nothing of the enumeration.
"""

import argparse
import json
import time

import numpy as np

from mzseek.decision import distribution
from mzseek.decision.decoders import enumerate_tanimoto, search_tanimoto

KINDS = ("any density", "half", "neighbours", "few bits")


def instance(rng, most_bits):
    m = int(rng.integers(4, most_bits + 1))
    count = int(rng.integers(2, 25))
    kind = KINDS[int(rng.integers(len(KINDS)))]
    if kind == "any density":
        rows = rng.random((count, m)) < rng.random((1, m))
    elif kind == "half":
        rows = rng.random((count, m)) < 0.5
    elif kind == "neighbours":
        rows = (rng.random(m) < 0.5) ^ (rng.random((count, m)) < 0.15)
    else:
        rows = np.argsort(rng.random((count, m)), axis=1) < rng.integers(1, 4)
    p = rng.dirichlet(np.full(count, 10.0 ** rng.uniform(-1.5, 1.5)))
    return kind, rows.astype(np.uint8), p / p.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--most-bits", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    gaps = {kind: [] for kind in KINDS}
    slack, broken, started = [], 0, time.perf_counter()
    for _ in range(options.instances):
        kind, rows, p = instance(rng, options.most_bits)
        known = distribution(rows, p)
        best, found = enumerate_tanimoto(known), search_tanimoto(known)
        gaps[kind].append(best.value - found.value)
        slack.append(found.upper_bound - best.value)
        broken += found.upper_bound < best.value - 1e-9
    every = np.concatenate([np.array(values) for values in gaps.values()])
    facts = {
        "instances": len(every),
        "optimal": float((every < 1e-9).mean()),
        "mean_gap": float(every.mean()),
        "largest_gap": float(every.max()),
        "bound_below_optimum": int(broken),
        "mean_slack_of_bound": float(np.mean(slack)),
        "by_kind": {
            kind: {"optimal": float((np.array(v) < 1e-9).mean()), "mean_gap": float(np.mean(v))}
            for kind, v in gaps.items()
        },
        "seconds": time.perf_counter() - started,
    }
    if options.json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
