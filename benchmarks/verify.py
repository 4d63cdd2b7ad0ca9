"""What comparing checksums adds to the first run with a database, and to later ones.

    python benchmarks/verify.py DATABASE [SPECTRA] [--repeats 5]

The database is one of `mzseek database build`, with or without an index. First, the files that
`mzseek annotate` reads of it are verified in processes of their own: with an empty list of verified
files (a first run), and with the list that this leaves (a later run). Then, if spectra are given,
they are annotated, with and without verification in turns. Files are read once before, so that no
disk is measured. The processor's time tells what a busy machine hides.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_OPEN = """
import sys, time
from pathlib import Path
import numpy as np
from mzseek.annotation.index import MoleculeIndex, index_path
from mzseek.annotation.candidates import StoreSource
import mzseek.database.store as folder
import mzseek.io.manifest as manifest
from mzseek.io.manifest import BlockSums
if sys.argv[2] == "trust":
    folder.changed_file = manifest.changed_file = lambda *_, **__: None
    BlockSums.verify_rows = lambda *_: True
began, used = time.perf_counter(), time.process_time()
source = StoreSource.open(sys.argv[1])
found = source.within(300.0, 0.003)
if source.index is not None and found:
    rows = np.array([molecule.row for molecule in found])
    source.index.fragments(rows)
print(time.perf_counter() - began, time.process_time() - used)
"""
_ANNOTATE = """
import sys, time, tempfile
from pathlib import Path
from mzseek.export.job import annotate_files
from mzseek.annotation.config import AnnotateConfig
import mzseek.database.store as folder
import mzseek.io.manifest as manifest
from mzseek.io.manifest import BlockSums
if sys.argv[2] == "trust":
    folder.changed_file = manifest.changed_file = lambda *_, **__: None
    BlockSums.verify_rows = lambda *_: True
with tempfile.TemporaryDirectory() as out:
    began, used = time.perf_counter(), time.process_time()
    annotate_files([sys.argv[3]], Path(out, "out"), AnnotateConfig(database=sys.argv[1]), jobs=1)
    print(time.perf_counter() - began, time.process_time() - used)
"""


def seconds(code: str, cache: str, *arguments: str) -> tuple[float, float]:
    """Return what a process of its own measures: seconds by the clock, and of the processor."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "XDG_CACHE_HOME": cache}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    clock, used = map(float, done.stdout.split()[-2:])
    return clock, used


def measure(code: str, repeats: int, database: str, *more: str) -> None:
    """Print medians of runs that trust what they read, first runs, and later ones."""
    found: dict[str, list[tuple[float, float]]] = {
        "not verified": [],
        "first run": [],
        "later run": [],
    }
    with tempfile.TemporaryDirectory() as trusting:
        seconds(code, trusting, database, "trust", *more)
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                found["not verified"].append(seconds(code, trusting, database, "trust", *more))
                found["first run"].append(seconds(code, cache, database, "verify", *more))
                found["later run"].append(seconds(code, cache, database, "verify", *more))
    print(f"  {'':14} {'clock':>10} {'added':>10} {'processor':>11} {'added':>10}   medians")
    plain = [statistics.median(each) for each in zip(*found["not verified"], strict=True)]
    for name, times in found.items():
        clock, used = (statistics.median(each) for each in zip(*times, strict=True))
        print(
            f"  {name:14} {clock:8.3f} s {clock - plain[0]:+8.3f} s {used:9.3f} s "
            f"{used - plain[1]:+8.3f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("spectra", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    database = options.database.resolve()
    for folder in (database, database.with_name(f"{database.name}.index")):
        if folder.is_dir():
            size = sum(path.stat().st_size for path in folder.iterdir())
            print(f"{folder.name}: {size / 1e6:,.1f} MB")
    print("opening it, and candidates of one mass:")
    measure(_OPEN, options.repeats, str(database))
    if options.spectra:
        print(f"annotating {options.spectra.name}, one process:")
        measure(_ANNOTATE, options.repeats, str(database), str(options.spectra.resolve()))


if __name__ == "__main__":
    main()
