"""Time molecular networks of MassBank spectra, all pairs compared.

python benchmarks/molecular_network.py massbank.tsv.gz --spectra 5000
"""

import argparse
import time
from itertools import islice
from pathlib import Path

from mzseek.annotation.references import without_precursor
from mzseek.datasets.files import read_table
from mzseek.library.network import network_of
from mzseek.library.options import SIMILARITIES, NetworkOptions

STEP = 8  # every so many spectra are taken, so that many molecules are among them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--spectra", type=int, default=5000)
    given = parser.parse_args()
    table = read_table(given.table, lambda where, reason: None)
    spectra = [without_precursor(s) for s in islice(table, 0, given.spectra * STEP, STEP)]
    for similarity in SIMILARITIES:
        options = NetworkOptions(similarity=similarity)
        network_of(spectra[:20], options, threads=1)  # compile
        started, worked = time.perf_counter(), time.process_time()
        network = network_of(spectra, options, threads=1)
        print(
            f"{similarity}: {len(spectra):,} spectra, {len(network.ends):,} edges, "
            f"{len(network.sizes):,} components, {time.process_time() - worked:.1f} s of one core, "
            f"{time.perf_counter() - started:.1f} s on this machine"
        )


if __name__ == "__main__":
    main()
