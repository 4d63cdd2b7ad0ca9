"""What made a run, as JSON that any reader takes."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np

from mzseek.export.run_record import checksum, run_record, write_record
from mzseek.export.writer import Settings
from mzseek.version import __version__


def test_checksums_are_those_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_bytes(b"BEGIN IONS")
    gone = tmp_path / "gone.mgf"
    assert [checksum(path), checksum(gone)] == [
        {"path": str(path), "bytes": 10, "sha256": hashlib.sha256(b"BEGIN IONS").hexdigest()},
        {"path": str(gone), "bytes": None, "sha256": None},
    ]


def test_facts_are_plain_and_finite(tmp_path: Path) -> None:
    options = {"ppm": np.float64(10), "path": Path("x"), "bad": math.nan, "names": ("a", "b")}
    record = run_record(
        Settings(options=options, searched={"model": {"name": "built-in"}}), inputs={},
        counts={"records": 3, "answered": 2, "set_aside": 1}, seconds=1.23456, files=["b", "a"],
        more={},
    )  # fmt: skip
    write_record(tmp_path / "run.json", record)
    read = json.loads((tmp_path / "run.json").read_text())
    assert read["options"] == {"ppm": 10.0, "path": "x", "bad": None, "names": ["a", "b"]}
    assert (read["kind"], read["seconds"]) == ("mzseek annotation", 1.235)
    assert (read["files"], read["prior"]) == (["a", "b"], None)
    assert read["bundle"] == {"name": "built-in"}
    assert read["versions"]["mzseek"] == __version__
    assert {"python", "numpy", "rdkit"} <= set(read["versions"])
