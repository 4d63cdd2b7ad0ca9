"""Binning speed: 100,000 spectra of 60 peaks, and one.

usage: binning.py [--json]
"""

import json
import sys
import time

import numpy as np

from mzseek.spectra import Spectrum, bin_peaks, bin_spectra


def main() -> None:
    rng = np.random.default_rng(0)
    spectra, peaks = 100_000, 60
    mz = rng.uniform(50, 1000, spectra * peaks)
    intensities = rng.exponential(1.0, spectra * peaks)
    counts = np.full(spectra, peaks)
    start = time.perf_counter()
    bin_peaks(mz, intensities, counts)
    many = time.perf_counter() - start
    one = Spectrum(mz[:peaks], intensities[:peaks], 500.0, None, None, "one")
    start = time.perf_counter()
    for _ in range(1000):
        bin_spectra(one)
    single = (time.perf_counter() - start) / 1000
    result = {
        "spectra": spectra,
        "seconds_for_all": round(many, 2),
        "microseconds_each": round(many / spectra * 1e6, 1),
        "microseconds_alone": round(single * 1e6, 1),
    }
    print(json.dumps(result) if "--json" in sys.argv else result)


if __name__ == "__main__":
    main()
