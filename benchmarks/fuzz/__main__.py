"""Damaged files for all readers: nothing may crash, hang, fill the memory or lose a record.

usage: python benchmarks/fuzz [--inputs 1000000 | --seconds 90] [--seed 0] [--jobs 2]
       [--largest 50000000] [--one-large-in 5000] [--findings DIR] [--json FILE] [--only NUMBER]

Samples of every format, and pieces of real files where the shared data folder is beside the
checkout, are damaged in memory and read. The exit status is 1 if a promise was broken; the files
that broke it are kept in the folder of findings. A number and a seed always make the same file.
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from inputs import Sizes, make_input
from seeds import Seeds, builtin, with_real_files
from targets import check_counts, run
from workers import Finding, Report, fuzz

_MOST_KEPT = 5  # files of one kind of finding


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=None)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--largest", type=int, default=50_000_000, help="bytes")
    parser.add_argument("--one-large-in", type=int, default=5_000, help="inputs past a megabyte")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--only", type=int, default=None, help="read one input in this process")
    arguments = parser.parse_args()
    seeds = gather()
    sizes = Sizes(arguments.largest, arguments.one_large_in)
    if arguments.only is not None:
        return read_one(arguments.seed, arguments.only, seeds, sizes)
    inputs = arguments.inputs or (10**9 if arguments.seconds else 20_000)
    numbers = range(arguments.first, arguments.first + inputs)
    start = time.monotonic()
    report = fuzz(
        arguments.seed, seeds, arguments.jobs, numbers,
        arguments.seconds or float("inf"), sizes, Progress(start),
    )  # fmt: skip
    summary = summarise(report, time.monotonic() - start, arguments.seed, seeds)
    keep_findings(report, arguments.seed, seeds, sizes, arguments.findings)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(summary, indent=1))
    print(json.dumps({key: value for key, value in summary.items() if key != "findings"}, indent=1))
    return 1 if report.findings else 0


def gather() -> Seeds:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    return with_real_files(builtin(), folder) if folder.is_dir() else builtin()


def read_one(seed: int, number: int, seeds: Seeds, sizes: Sizes) -> int:
    """For a debugger: one input, whatever comes of it."""
    import tempfile

    given = make_input(seed, number, seeds, sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / given.name
        path.write_bytes(given.stored)
        print(given.target, given.name, len(given.plain), repr(given.plain[:300]))
        outcome = run(given.target, path)
        print(outcome)
        if given.is_whole:
            check_counts(given.target, given.plain, outcome)
    return 0


class Progress:
    """A line every half minute."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._last = start
        self._shown = 0

    def __call__(self, report: Report) -> None:
        """Print one, if it is time, and each finding."""
        for finding in report.findings[self._shown :]:
            print(shown(finding), file=sys.stderr, flush=True)
        self._shown = len(report.findings)
        now = time.monotonic()
        if now - self._last > 30:
            self._last = now
            rate = report.inputs / (now - self._start)
            line = (
                f"{report.inputs:,} inputs, {rate:,.0f} a second, {len(report.findings)} findings"
            )
            print(line, file=sys.stderr, flush=True)


def summarise(report: Report, seconds: float, seed: int, seeds: Seeds) -> dict[str, object]:
    kinds = Counter(f"{f.target}: {f.what}" for f in report.findings)
    return {
        "inputs": report.inputs,
        "seed": seed,
        "samples": sum(map(len, seeds.values())),
        "seconds": round(seconds),
        "inputs_per_second": round(report.inputs / max(seconds, 1e-9)),
        "bytes": report.bytes,
        "of_a_megabyte_or_more": report.large,
        "by_reader": dict(report.by_target.most_common()),
        "records_read": report.read,
        "records_set_aside": report.set_aside,
        "files_refused": report.refused,
        "slowest_seconds": round(report.slowest, 2),
        "slowest_number": report.slowest_number,
        "most_growth_megabytes": round(report.most_growth / 1e6),
        "most_growth_number": report.most_growth_number,
        "kinds_of_findings": dict(kinds.most_common()),
        "findings": [asdict(finding) for finding in report.findings],
    }


def shown(finding: Finding) -> str:
    return f"{finding.number} {finding.target}: {finding.what}: {finding.detail[:300]}"


def keep_findings(report: Report, seed: int, seeds: Seeds, sizes: Sizes, folder: Path) -> None:
    kept: Counter[str] = Counter()
    for finding in report.findings:
        kind = f"{finding.target}-{finding.what}-{finding.detail[:40]}"
        kept[kind] += 1
        if kept[kind] > _MOST_KEPT or finding.number < 0:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        given = make_input(seed, finding.number, seeds, sizes)
        (folder / f"{finding.number}-{given.target}-{given.name}").write_bytes(given.stored)


if __name__ == "__main__":
    sys.exit(main())
