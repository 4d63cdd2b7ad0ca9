"""Reading speed and memory of the text formats, on simulated files of a given size.

usage: read.py [--megabytes 200] [--json]
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from measure import Measure
from mzseek.spectra import read_spectra


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("mgf", mgf_record), ("msp", msp_record), ("json", json_record)):
            path = Path(folder) / f"library.{name}"
            write_file(path, write, arguments.megabytes * 1_000_000, name == "json")
            size = path.stat().st_size
            with Measure() as measure:
                count = sum(1 for _ in read_spectra(path))
            results.append(
                {
                    "format": name,
                    "megabytes": round(size / 1e6),
                    "spectra": count,
                    "megabytes_per_second": round(size / 1e6 / measure.seconds, 1),
                    "peak_megabytes": round(measure.peak_bytes / 1e6),
                }
            )
            path.unlink()
    for result in results:
        print(json.dumps(result) if arguments.json else result)


def write_file(path: Path, record, size: int, as_array: bool) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    written = number = 0
    with path.open("w") as stream:
        stream.write("[" if as_array else "")
        while written < size:
            mz = np.sort(rng.uniform(50, 1000, 60)).round(4)
            intensities = rng.exponential(100, 60).round(2)
            text = record(number, list(zip(mz.tolist(), intensities.tolist(), strict=True)))
            stream.write((",\n" if as_array and number else "") + text)
            written += len(text)
            number += 1
        stream.write("]" if as_array else "")


def mgf_record(number: int, peaks: list[tuple[float, float]]) -> str:
    lines = "\n".join(f"{mz} {i}" for mz, i in peaks)
    return (
        f"BEGIN IONS\nTITLE=scan {number}\nPEPMASS=500.1 1000\nCHARGE=1+\nADDUCT=[M+H]+\n"
        f"{lines}\nEND IONS\n\n"
    )


def msp_record(number: int, peaks: list[tuple[float, float]]) -> str:
    lines = "\n".join(f"{mz} {i}" for mz, i in peaks)
    return (
        f"Name: compound {number}\nDB#: id{number}\nPrecursorMZ: 500.1\nPrecursor_type: [M+H]+\n"
        f"Num Peaks: {len(peaks)}\n{lines}\n\n"
    )


def json_record(number: int, peaks: list[tuple[float, float]]) -> str:
    return json.dumps(
        {
            "spectrum_id": f"id{number}",
            "Precursor_MZ": "500.1",
            "Adduct": "M+H",
            "Ion_Mode": "Positive",
            "peaks_json": json.dumps([list(peak) for peak in peaks]),
        }
    )


if __name__ == "__main__":
    main()
