"""What loading adds to a training step, on a prepared set.

usage: load.py PREPARED [LOSS ...]

The batch is gathered in the training process, so its time comes on top of the step's.
"""

import time

import numpy as np

from learning import learning, opened
from mzseek.training.options import Options, with_protocol
from mzseek.training.state import TrainingOrder

STEPS, WARM = 200, 10
# The published code on the shared MassBank set: ms to load a batch, and to train on it.
PUBLISHED = {"bce": (225, 172), "emb-cos": (225, 483), "fp-cos": (225, 928)}


def measure(prepared, loss):
    options = with_protocol(Options.of(loss, epochs=1), "paper")
    learner, maker, queries = learning(prepared, options)
    order = TrainingOrder(queries, 64, 1 + 64 * (WARM + STEPS) // len(queries), 0)
    turns = order.from_step(0)
    loading, stepping, candidates = [], [], []
    for _ in range(WARM + STEPS):
        start = time.perf_counter()
        batch = maker.make(next(turns))
        loaded = time.perf_counter()
        learner.learn(batch)
        loading.append(loaded - start)
        stepping.append(time.perf_counter() - loaded)
        candidates.append(batch.lists["mass"].rows.shape[0] if batch.lists else 0)
    return 1000 * np.median(loading[WARM:]), 1000 * np.median(stepping[WARM:]), np.mean(candidates)


def main():
    prepared, losses = opened(threads=2)
    for loss in losses or ["bce", "emb-cos", "fp-cos"]:
        load, step, candidates = measure(prepared, loss)
        line = f"{loss:8s} load {load:5.2f} ms, step {step:6.1f} ms: loading adds {load / step:.1%}"
        if loss in PUBLISHED:
            line += f"; published code {sum(PUBLISHED[loss]) / (load + step):.1f} × as long"
        print(f"{line}   ({candidates:,.0f} candidates a batch)", flush=True)


if __name__ == "__main__":
    main()
