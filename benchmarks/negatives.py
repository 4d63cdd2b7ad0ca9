"""Mining hard negatives, against RDKit's BulkTanimotoSimilarity on the same lists.

usage: negatives.py PREPARED DATABASE [--keep 256] [--by mass] [--compare 500] [--json]

Mines for all measured molecules of the prepared set; then does all that `mzseek negatives` does, to
a copy in a temporary folder (``command_s``: mining, and adding the segment); then lets RDKit mine
for some of them, one process against one: bit vectors made of the store's packed fingerprints,
BulkTanimotoSimilarity, sorting. Similarities and order must be equal. Reading is not counted for
RDKit, and is for mzseek. The time of BulkTanimotoSimilarity alone, on vectors that are ready, is
given as well.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from rdkit import DataStructs

from mzseek.database import Database
from mzseek.database.negatives import mine
from mzseek.datasets.extra_lists import add_negatives, standard_forms, truths_of
from mzseek.datasets.prepared import Prepared
from mzseek.parallel import LocalEngine


def vector(packed):
    """A packed fingerprint as RDKit's."""
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8))).tolist()
    made = DataStructs.ExplicitBitVect(8 * len(packed))
    made.SetBitsFromList(bits)
    return made


def whole(options, database):
    """Seconds that adding the lists takes with all that goes with it, and what it adds."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(options.prepared, Path(scratch) / "prepared"))
        before = sum(path.stat().st_size for path in copy.iterdir())
        start = time.perf_counter()
        add_negatives(Prepared.open(copy), database, by=options.by, keep=options.keep)
        took = time.perf_counter() - start
        return took, sum(path.stat().st_size for path in copy.iterdir()) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("database", type=Path)
    parser.add_argument("--keep", type=int, default=256)
    parser.add_argument("--by", default="mass")
    parser.add_argument("--compare", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepared, database = Prepared.open(options.prepared), Database.open(options.database)
    truths = truths_of(standard_forms(prepared), database.fingerprint)
    how = {"by": options.by, "keep": options.keep - 1}
    start = time.perf_counter()
    mined = list(mine(database, truths, **how))
    facts = {
        "molecules": len(mined),
        "pairs": sum(each.total for each in mined),
        "seconds": time.perf_counter() - start,
    }
    facts["command_s"], facts["bytes_added"] = whole(options, database)
    middle = max(0, (len(truths) - options.compare) // 2)  # neighbours, as mining takes them
    some = sorted(truths, key=lambda t: t.mass)[middle : middle + options.compare]
    engine = LocalEngine(1)
    list(mine(database, some[:1], **how, engine=engine))  # opens what is opened once
    start = time.perf_counter()
    ours = {each.number: each for each in mine(database, some, **how, engine=engine)}
    facts["one_process_s"] = time.perf_counter() - start
    made_s = bulk_s = 0.0
    differ = 0
    for truth in some:
        width = truth.mass * 1e-5 if options.by == "mass" else 1e-4
        low = np.searchsorted(database.masses, truth.mass - width, side="left")
        high = np.searchsorted(database.masses, truth.mass + width, side="right")
        table = database.range(int(low), int(high), ["key", "formula", "fingerprint"])
        keys, formulas = table["key"].to_pylist(), table["formula"].to_pylist()
        others = [
            i for i, key in enumerate(keys)
            if key != truth.key and (options.by == "mass" or formulas[i] == truth.formula)
        ]  # fmt: skip
        packed = table["fingerprint"].to_pylist()
        start = time.perf_counter()
        vectors, query = [vector(packed[i]) for i in others], vector(truth.fingerprint)
        made_s += time.perf_counter() - start
        start = time.perf_counter()
        alike = np.array(DataStructs.BulkTanimotoSimilarity(query, vectors))
        order = np.argsort(-alike, kind="stable")[: options.keep - 1]
        bulk_s += time.perf_counter() - start
        mined_here = ours[truth.number]
        same = np.array_equal(np.array(others, np.int64)[order] + low, mined_here.rows)
        differ += not (same and np.array_equal(alike[order], mined_here.similarities))
    facts |= {
        "compared": len(some),
        "rdkit_s": made_s + bulk_s,
        "rdkit_bulk_alone_s": bulk_s,
        "ratio": (made_s + bulk_s) / facts["one_process_s"],
        "ratio_to_bulk_alone": bulk_s / facts["one_process_s"],
        "lists_that_differ": differ,
    }
    print(json.dumps(facts) if options.json else json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
