"""What a scorer that never sees the spectrum reaches on lists of a prepared folder.

usage: blind.py PREPARED LISTS [LISTS …] [--fingerprint KIND] [--trees] [--jobs N] [--json]

For each of the lists: the blind scorer is fitted on the molecules of the train fold, its penalty is
chosen on those of val, and it ranks the lists of test. Hit rates over spectra and over molecules,
chance beside them; ``ratio`` is HR@1 over molecules in units of chance, ``error`` its standard
error, and ``reversed`` the ratio of the same scorer that ranks from behind. On matched lists all
three should be near 1.

Features are bits of the folder's fingerprint, or of another, and descriptors. With --trees also
boosted trees (scikit-learn) on the descriptors and 64 principal components of the bits: what a
scorer that is not linear would find.
"""

import argparse
import json
import time
from functools import partial

import numpy as np

from mzseek.chem import fingerprints
from mzseek.chem.molecules import descriptors
from mzseek.core.ragged import gather_indices
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.decoys import DecoyLists, tune_penalty
from mzseek.evidence.prior import prior_features
from mzseek.metrics import hit_rate
from mzseek.parallel.processes import in_batches


def lists_of(prepared, name, molecules):
    """Lists of measured molecules, by places in the folder's table of molecules."""
    lists = prepared.candidates(name)
    numbers = np.asarray(lists.list_of)[molecules]
    where = gather_indices(np.asarray(lists.indptr), numbers)[1]
    labels = np.asarray(lists.identity)[where] > 0
    return np.asarray(lists.molecules)[where].astype(np.int64), lists.sizes[numbers], labels


def features(prepared, used, kind, jobs):
    """Rows of the molecules that lists have."""
    smiles = [prepared.smiles[int(n)] for n in used]
    table = np.concatenate([rows for _, rows in in_batches(descriptors, smiles, 1000, jobs)])
    if kind == prepared.manifest["options"]["fingerprint"]:
        return prior_features(prepared.fingerprint_rows(used), table)
    from scipy.sparse import vstack

    made = partial(fingerprints, kind=kind, threads=1)
    return prior_features(vstack([r for _, r in in_batches(made, smiles, 1000, jobs)]), table)


def measured(scores, lists, spectra):
    """Hit rates over molecules and over spectra, and HR@1 in units of chance."""
    found = {}
    for k in (1, 5, 20):
        hits = hit_rate(scores, lists.counts, lists.labels, k)
        found[f"hit_rate@{k}"] = float(np.average(hits, weights=spectra))
        found[f"hit_rate@{k}/molecules"] = float(hits.mean())
    chance = hit_rate(np.zeros(len(scores)), lists.counts, lists.labels, 1)
    hits = hit_rate(scores, lists.counts, lists.labels, 1)
    behind = hit_rate(-scores, lists.counts, lists.labels, 1)
    return found | {
        "chance@1": float(np.average(chance, weights=spectra)),
        "ratio": float(hits.mean() / chance.mean()),
        "error": float(hits.std() / np.sqrt(len(hits)) / chance.mean()),
        "reversed": float(behind.mean() / chance.mean()),
        "mean_candidates": float(lists.counts.mean()), "lists": len(lists),
    }  # fmt: skip


def trees(taught, others):
    """Scores of boosted trees, fitted on who is the truth."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier

    bits = taught.rows.shape[1] - 35
    reduce = TruncatedSVD(64, random_state=0).fit(taught.rows[:, :bits])

    def dense(lists):
        table = np.hstack([reduce.transform(lists.rows[:, :bits]), lists.rows[:, bits:].toarray()])
        return table[lists.members]

    weights = taught.repeat_per_list(1 / taught.counts)
    weights[taught.labels] = 1.0
    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=300, max_leaf_nodes=15, early_stopping=True, random_state=0
    )
    model.fit(dense(taught), taught.labels, sample_weight=weights)
    return model.decision_function(dense(others))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared")
    parser.add_argument("lists", nargs="+")
    parser.add_argument("--fingerprint")
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepared = Prepared.open(options.prepared)
    kind = options.fingerprint or prepared.manifest["options"]["fingerprint"]
    report = {}
    for name in options.lists:
        lists = prepared.candidates(name)
        folds = {}
        for fold in ("train", "val", "test"):
            molecules = np.unique(prepared.molecule[prepared.in_fold(fold)])
            folds[fold] = molecules[np.asarray(lists.list_of)[molecules] >= 0]
        members, counts, labels = lists_of(prepared, name, np.concatenate([*folds.values()]))
        used, inverse = np.unique(members, return_inverse=True)
        rows = features(prepared, used, kind, options.jobs)
        whole = DecoyLists(counts, rows, inverse, labels)
        ends = np.cumsum([len(each) for each in folds.values()])
        train, val, test = (whole.only(part) for part in np.split(np.arange(len(whole)), ends[:-1]))
        start = time.perf_counter()
        blind = tune_penalty(train, val)
        took = time.perf_counter() - start
        spectra = np.bincount(prepared.molecule[prepared.in_fold("test")])[folds["test"]]
        report[name] = {
            "fingerprint": kind, "l2": blind.l2, "fit_s": took,
            **measured(test.scores(blind), test, spectra),
        }  # fmt: skip
        if options.trees:
            report[f"{name}, trees"] = measured(trees(train, test), test, spectra)
    if options.json:
        print(json.dumps(report))
        return
    for name, found in report.items():
        rates = " / ".join(f"{100 * found[f'hit_rate@{k}']:.1f}" for k in (1, 5, 20))
        print(
            f"{name}: HR@1, 5, 20 {rates} (chance {100 * found['chance@1']:.1f}); over "
            f"{found['lists']} molecules HR@1 is {found['ratio']:.2f} ± {found['error']:.2f} times "
            f"chance, from behind {found['reversed']:.2f}; {found['mean_candidates']:.1f} "
            f"candidates; {json.dumps({k: found[k] for k in ('l2', 'fit_s') if k in found})}"
        )


if __name__ == "__main__":
    main()
