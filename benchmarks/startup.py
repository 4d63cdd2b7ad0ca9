"""How long the command line takes to answer what needs no library: help, the version, refusals.

    python benchmarks/startup.py [--repeats 10]

Each command is run in a process of its own, in turns, so that a busy moment of the machine is
spread over all. The processor's time tells what a busy machine hides.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

COMMANDS = [
    "--version",
    "--help",
    "train --help",
    "database search --help",
    "evaluate nowhere",
    "train nowhere --loss bce --out x",
    "prepare nowhere",
    "database search nowhere --mass 1",
]


def answer(command: str, folder: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "from mzseek.cli import main; main()", *command.split()],
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    took, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system
    return took, used - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    found: dict[str, list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            for command in COMMANDS:
                found[command].append(answer(command, folder))
    print(f"{'command':36} {'median':>8} {'slowest':>8} {'processor':>10}   of {repeats} runs")
    for command, times in found.items():
        clock, used = zip(*times, strict=True)
        print(
            f"{command:36} {statistics.median(clock):6.2f} s {max(clock):6.2f} s "
            f"{statistics.median(used):8.2f} s"
        )


if __name__ == "__main__":
    main()
