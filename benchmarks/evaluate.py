"""Evaluation at MassSpecGym's test size: 17,556 spectra, 256 candidates each, 2,998 molecules.

usage: evaluate.py PREPARED [SCORER ...]

The set is made of a prepared one: its spectra drawn again, lists of 256 of its molecules. Timed
from the model to the numbers: gathering lists, batches, encoder, scores, hit rates, Tanimoto.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import validation_means
from mzseek.io import content_hash
from mzseek.models import ModelSpec, build
from mzseek.models.model import TorchNetwork
from mzseek.parallel.engine import keep_freed_memory
from mzseek.runs.predictions import predict_fold

SPECTRA, MOLECULES, CANDIDATES = 17_556, 2_998, 256


def make(source, folder):
    """A prepared folder of that size."""
    rng = np.random.default_rng(0)
    prepared = Prepared.open(source)
    shutil.copytree(source, folder)
    drawn = np.sort(rng.integers(0, len(prepared), SPECTRA))
    own = np.unique(rng.choice(len(prepared.masses), MOLECULES, replace=False))
    lists = rng.integers(0, len(prepared.masses), (MOLECULES, CANDIDATES)).astype(np.int32)
    lists[:, 0] = own
    list_of = np.full(len(prepared.masses), -1, np.int32)
    list_of[own] = np.arange(MOLECULES)
    identity = np.zeros((MOLECULES, CANDIDATES), np.uint8)
    identity[:, 0] = 3
    bins = prepared.bins[drawn]
    arrays = {
        "bins.data": bins.data.astype(np.float32),
        "bins.indices": bins.indices.astype(np.int32),
        "bins.indptr": bins.indptr.astype(np.int64),
        "spectra.molecule": rng.choice(own, SPECTRA).astype(np.int32),
        "spectra.fold": np.full(SPECTRA, FOLDS.index("test"), np.int8),
        "spectra.precursor_mz": prepared.precursor_mz[drawn],
        "candidates.mass.indptr": np.arange(0, MOLECULES * CANDIDATES + 1, CANDIDATES),
        "candidates.mass.molecules": lists.ravel(),
        "candidates.mass.identity": identity.ravel(),
        "candidates.mass.list_of": list_of,
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["candidates"] = {
        "mass": {
            "lists": MOLECULES, "candidates": lists.size, "median": float(CANDIDATES),
            "largest": CANDIDATES, "molecules_without": 0,
        }
    }  # fmt: skip
    counts = {"spectra": SPECTRA, "bins_filled": len(bins.data)}
    manifest["counts"] |= counts | {"bins_shape": [SPECTRA, prepared.bins.shape[1]]}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array)
        manifest["files"][path.name] = {"bytes": path.stat().st_size, "sha256": content_hash(path)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return Prepared.open(folder)


def main():
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: evaluate.py PREPARED [SCORER ...]")
    torch.set_num_threads(2)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as scratch:
        prepared = make(Path(sys.argv[1]), Path(scratch) / "set")
        bits = int(prepared.manifest["fingerprint_bits"])
        for scorer in sys.argv[2:] or ["fp-cos", "emb-cos"]:
            model = build(ModelSpec.of("mlp", scorer, bits=bits), seed=0)
            start = time.perf_counter()
            predictions = predict_fold(TorchNetwork(model), prepared, "test")
            scored = time.perf_counter()
            means = validation_means(predictions, prepared)
            end = time.perf_counter()
            count = len(predictions.lists["mass"].scores)
            print(
                f"{scorer:8s} {SPECTRA:,} spectra, {count:,} candidates: {end - start:.1f} s "
                f"(metrics {end - scored:.1f} s)   HR@1 of the untrained model "
                f"{100 * means['hit_rate@1/mass']:.2f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
