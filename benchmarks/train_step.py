"""One training step, timed against the dense yardstick.

usage: train_step.py [--loss NAME ...] [--dense FILE] [--parts] [--json]

Batch 64, 10,050 bins with 60 peaks, 253 candidates of 46 bits a spectrum; forward, backward, clip,
Adam; two threads; the median of 20 steps. The yardstick is a script that prints a JSON object of
milliseconds a step, given the names of losses: by default the one beside the checkout.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from mzseek.losses import LOSSES, loss_named
from mzseek.models import ModelSpec, build
from mzseek.parallel.engine import keep_freed_memory
from mzseek.tensors import SparseRows
from mzseek.training.loop import Objective
from mzseek.training.optimizer import ClippedAdam

BATCH, CANDIDATES, BINS, BITS, PEAKS, SET = 64, 253, 10_050, 4_096, 60, 46
DENSE = Path(__file__).resolve().parents[2] / "shared" / "bench" / "dense_steps.py"
STEPS, WARM = 20, 5


def random_rows(rng, rows, width, entries, values):
    indices = np.argsort(rng.random((rows, width), dtype=np.float32), axis=1)[:, :entries]
    indptr = np.arange(0, rows * entries + 1, entries)
    return indptr, np.sort(indices, axis=1).ravel(), values


def make_batch(rng, length=CANDIDATES):
    """Sparse arrays as a prepared folder has them, before anything is derived."""
    spectra = random_rows(rng, BATCH, BINS, PEAKS, rng.random(BATCH * PEAKS).astype(np.float32))
    parts = [
        random_rows(rng, length, BITS, SET, None) for _ in range(BATCH)
    ]  # by list: a matrix of random keys for all of them would take gigabytes
    bits = np.concatenate([part[1] for part in parts])
    indptr = np.arange(0, BATCH * length * SET + 1, SET)
    truth = bits.reshape(BATCH, length, SET)[:, 0].ravel()
    labels = np.zeros(BATCH * length, bool)
    labels[::length] = True
    return spectra, (indptr, bits, None), (np.arange(0, BATCH * SET + 1, SET), truth, None), labels


def measure(name, length=CANDIDATES):
    """Milliseconds of the parts of each of half the steps."""
    rng = np.random.default_rng(0)
    loss = loss_named(name)
    spectra, candidates, truth, labels = make_batch(rng, length)
    model = build(ModelSpec.of("mlp", loss.scorer), seed=0).train()
    optimizer = ClippedAdam(model.parameters(), lr=1e-4)
    objective = Objective(loss, loss.options())
    counts = torch.full((BATCH,), length)
    labelled = torch.from_numpy(labels)
    needs_transpose = loss.scorer != "fp-cos"
    parts = {"rows": [], "forward": [], "backward": [], "clip and Adam": [], "step": []}
    for _ in range(WARM + STEPS // 2):
        times = [time.perf_counter()]
        x = SparseRows.from_arrays(*spectra, BINS, transpose=True)
        y = SparseRows.from_arrays(*truth, BITS)
        listed = None
        if loss.reads_candidates:
            listed = SparseRows.from_arrays(*candidates, BITS, transpose=needs_transpose)
        times.append(time.perf_counter())
        output = model(x, listed, counts if loss.reads_candidates else None)
        value = objective(output, y, counts, labelled)
        times.append(time.perf_counter())
        value.backward()
        times.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter())
        for part, taken in zip(parts, [*np.diff(times), times[-1] - times[0]], strict=True):
            parts[part].append(1000 * taken)
    return {part: taken[WARM:] for part, taken in parts.items()}


def dense_steps(script, names):
    command = [sys.executable, str(script), *names]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--dense", type=Path, default=DENSE, help="the yardstick's script")
    parser.add_argument("--parts", action="store_true", help="also each part's milliseconds")
    parser.add_argument("--json", action="store_true", help="one JSON object a loss")
    options = parser.parse_args()
    torch.set_num_threads(2)
    keep_freed_memory()
    for name in options.loss:
        # Half of the steps before the yardstick and half after it, since a shared machine changes
        # its speed by the minute.
        before = measure(name)
        dense = dense_steps(options.dense, [name])[name] if options.dense.exists() else None
        after = measure(name)
        parts = {part: float(np.median(before[part] + after[part])) for part in before}
        result = {
            "loss": name,
            "ms_per_step": round(parts["step"], 2),
            "dense_ms_per_step": dense,
            "ratio": None if dense is None else round(dense / parts["step"], 2),
        }
        if options.parts or not options.json:
            result["parts"] = {part: round(ms, 2) for part, ms in parts.items() if part != "step"}
        if options.json:
            print(json.dumps(result), flush=True)
        else:
            against = (
                "no yardstick"
                if dense is None
                else f"dense {dense:8.1f} ms, {dense / parts['step']:5.1f} ×"
            )
            shares = ", ".join(f"{part} {ms:.1f}" for part, ms in result["parts"].items())
            print(f"{name:9s} {parts['step']:8.1f} ms   {against}   ({shares})", flush=True)


if __name__ == "__main__":
    main()
