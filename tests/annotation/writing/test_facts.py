"""What made a run, as JSON that any reader takes."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np

from mzseek.export.run_record import checksums, run_facts, write_facts
from mzseek.version import __version__


def test_checksums_are_those_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_bytes(b"BEGIN IONS")
    gone = tmp_path / "gone.mgf"
    assert checksums([path, gone]) == [
        {"path": str(path), "bytes": 10, "sha256": hashlib.sha256(b"BEGIN IONS").hexdigest()},
        {"path": str(gone), "bytes": None, "sha256": None},
    ]


def test_facts_are_plain_and_finite(tmp_path: Path) -> None:
    options = {"ppm": np.float64(10), "path": Path("x"), "bad": math.nan, "names": ("a", "b")}
    facts = run_facts(
        options=options, inputs=[], bundle={"name": "built-in"}, database={},
        counts={"records": 3, "answered": 2, "set_aside": 1}, seconds=1.23456, files=["b", "a"],
    )  # fmt: skip
    write_facts(tmp_path / "run.json", facts)
    read = json.loads((tmp_path / "run.json").read_text())
    assert read["options"] == {"ppm": 10.0, "path": "x", "bad": None, "names": ["a", "b"]}
    assert (read["kind"], read["seconds"], read["files"]) == (
        "mzseek annotation",
        1.235,
        ["a", "b"],
    )
    assert read["versions"]["mzseek"] == __version__
    assert {"python", "numpy", "rdkit"} <= set(read["versions"])
