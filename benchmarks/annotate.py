"""How long `mzseek annotate` takes, and how that grows with spectra and with the database.

    python benchmarks/annotate.py spectra.mgf --databases small middle large --spectra 100 300 1000

The command is run as a user runs it, file in and table out, with the shipped model, in all cores.
Each number of spectra is asked of the last database, and the largest number of all databases. A
database with an index beside it is asked with it, and, unless --as-it-is, also without it.
Spectra are drawn evenly from the file. Seconds are of the wall clock, from pressing return. With
--memory each is run once more and its memory sampled, which takes time of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Measure
from mzseek.annotation.index import index_path
from mzseek.spectra import read_spectra, write_mgf


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("file", type=Path)
    asked.add_argument("--databases", type=Path, nargs="+", required=True)
    asked.add_argument("--spectra", type=int, nargs="+", default=[100, 300, 1000])
    asked.add_argument("--as-it-is", action="store_true")
    asked.add_argument("--memory", action="store_true")
    given = asked.parse_args()
    spectra = list(read_spectra(given.file))
    most = max(given.spectra)
    cases = [(most, database) for database in given.databases[:-1]]
    cases += [(number, given.databases[-1]) for number in given.spectra]
    for number, database in cases:
        with tempfile.TemporaryDirectory() as made:
            drawn = [spectra[at * len(spectra) // number] for at in range(number)]
            write_mgf(Path(made) / "some.mgf", drawn)
            has_index = index_path(database).is_dir()
            both = has_index and not given.as_it_is
            for with_index in [False, True] if both else [has_index]:
                print(
                    json.dumps(timed(Path(made), database, number, with_index, given.memory)),
                    flush=True,
                )


def timed(
    folder: Path, database: Path, number: int, with_index: bool, memory: bool
) -> dict[str, object]:
    """One run; an index that is not wanted is moved aside for its time."""
    index = index_path(database)
    aside = index.with_name(index.name + ".aside")
    hidden = index.is_dir() and not with_index
    if hidden:
        index.rename(aside)
    try:
        out = folder / f"answers-{with_index}.tsv"
        command = [
            sys.executable, "-c", "from mzseek.cli import main; main()", "annotate",
            str(folder / "some.mgf"), "--database", str(database), "--out", str(out),
        ]  # fmt: skip
        began = time.perf_counter()
        run(command)
        seconds = time.perf_counter() - began
        with Measure() as measured:
            if memory:
                run(command)
    finally:
        if hidden:
            aside.rename(index)
    with out.open(encoding="utf-8") as lines:
        rows = sum(1 for _ in lines) - 1
    return {
        "database": database.name,
        "spectra": number,
        "index": with_index,
        "seconds": round(seconds, 1),
        "peak_megabytes": round(measured.peak_shared_once / 1e6) if memory else None,
        "rows": rows,
    }


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
