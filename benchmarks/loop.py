"""What the training loop adds to the steps that it repeats, on a prepared set.

usage: loop.py PREPARED [LOSS ...]

Milliseconds of CPU time a step, one thread, medians: once in `train`, from one step's end to the
next, and once by hand, batch and step alone. A small model, so that the difference shows.
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from learning import learning, opened
from mzseek.training.options import Options
from mzseek.training.state import TrainingOrder
from mzseek.training.train import train

STEPS, WARM, SPECTRA = 600, 50, 16


def options_for(prepared, loss):
    epochs = -(-STEPS * SPECTRA // len(prepared.in_fold("train")))
    return Options.of(
        loss, parts={"encoder": {"width": 32, "blocks": 1}}, epochs=epochs, batch_size=SPECTRA,
        warmup=0, bias="zero", validate_every=10**6, threads=1,
    )  # fmt: skip


def in_the_loop(prepared, options):
    ends = []
    folder = Path(tempfile.mkdtemp())

    def note(stage, done, total=None):
        if stage == "training":
            ends.append(time.process_time())

    train(prepared, options, folder / "run", progress=note)
    shutil.rmtree(folder)
    return 1000 * np.median(np.diff(ends[WARM:-1]))


def by_hand(prepared, options):
    learner, maker, queries = learning(prepared, options)
    ends = []
    for turn in TrainingOrder(queries, SPECTRA, options.epochs, 0).from_step(0):
        learner.learn(maker.make(turn))
        ends.append(time.process_time())
    return 1000 * np.median(np.diff(ends[WARM:]))


def main():
    prepared, losses = opened(threads=1)
    for loss in losses or ["bce", "emb-cos"]:
        options = options_for(prepared, loss)
        loop, bare = in_the_loop(prepared, options), by_hand(prepared, options)
        print(f"{loss:8s} {loop:.2f} ms in the loop, {bare:.2f} by hand", flush=True)


if __name__ == "__main__":
    main()
