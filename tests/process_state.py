"""What of a process main calls of the library change: run by test_process.py in a fresh one."""

import csv
import ctypes
import gc
import hashlib
import json
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

# Others' libraries are loaded first: what they do to a process when they are imported is theirs.
import duckdb  # noqa: F401
import jinja2  # noqa: F401
import joblib.externals.loky  # noqa: F401
import matplotlib
import matplotlib.figure
import numpy as np
import pyarrow.parquet  # noqa: F401
import scipy.sparse
import scipy.stats  # noqa: F401
import torch
from rdkit import RDConfig, rdBase  # noqa: F401

torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # loads half of torch, with its settings
LIBC = ctypes.CDLL(None)


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def handler_in_c(number: int) -> int:
    """The address that the system calls, which RDKit changes behind Python's back."""
    action = (ctypes.c_ulong * 32)()
    LIBC.sigaction(number, None, ctypes.byref(action))
    return int(action[0])


def maps_large_blocks() -> bool:
    """Whether the C library still asks the system for large blocks, as it does by default."""
    if not hasattr(LIBC, "mallinfo2"):
        return True
    LIBC.mallinfo2.restype = type(
        "Info",
        (ctypes.Structure,),
        {"_fields_": [(name, ctypes.c_size_t) for name in "abcdefghij"]},
    )
    LIBC.malloc.restype = ctypes.c_void_p
    LIBC.free.argtypes = [ctypes.c_void_p]
    before = LIBC.mallinfo2().d  # blocks that were asked for by themselves
    block = LIBC.malloc(ctypes.c_size_t(64 << 20))
    after = LIBC.mallinfo2().d
    LIBC.free(block)
    return bool(after > before)


def state() -> dict[str, object]:
    loggers = {
        name: each.level
        for name, each in logging.root.manager.loggerDict.items()
        if isinstance(each, logging.Logger) and each.level
    }
    return {
        "handlers": {n: repr(signal.getsignal(n)) for n in sorted(signal.valid_signals())},
        "handlers in C": {n: handler_in_c(n) for n in (signal.SIGINT, signal.SIGTERM)},
        "blocked signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "sys.path": list(sys.path),
        "hooks": [repr(hook) for hook in (sys.excepthook, sys.displayhook, threading.excepthook)],
        "limits": [sys.getrecursionlimit(), sys.get_int_max_str_digits(), csv.field_size_limit()],
        "garbage": [gc.isenabled(), gc.get_threshold()],
        "warnings": [repr(each) for each in warnings.filters],
        "loggers": loggers,
        "root logger": [logging.root.level, logging.root.manager.disable, logging.root.handlers[:]],
        "rdkit's log": rdBase.LogStatus(),
        "threads of torch": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "torch": [
            str(torch.get_default_dtype()), torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(), torch.are_deterministic_algorithms_enabled(),
        ],
        "random numbers": [
            digest(random.getstate()), digest(torch.get_rng_state().tolist()),
            digest(np.random.get_state()[1].tolist()),  # noqa: NPY002 (others may use it)
        ],
        "numpy": [np.geterr(), np.get_printoptions()["precision"]],
        "matplotlib": {name: repr(value) for name, value in dict.items(matplotlib.rcParams)},
        "pyplot is loaded": "matplotlib.pyplot" in sys.modules,
        "large blocks are mapped": maps_large_blocks(),
    }  # fmt: skip


def calls(source: Path, out: Path, jobs: int) -> Iterator[str]:
    """The main journey: spectra, a prepared folder, a database, negatives, a run, its report."""
    import mzseek as mz

    yield "import mzseek"
    from mzseek.chem import fingerprints, standardise
    from mzseek.datasets.check import check_dataset
    from mzseek.datasets.extra_lists import add_negatives
    from mzseek.datasets.files import find_dataset
    from mzseek.export.figures import molecule_svg
    from mzseek.parallel import LocalEngine

    yield "import its rooms"
    assert len(list(mz.read_spectra(source / "spectra.tsv"))) > 80
    yield "read_spectra"
    standardise("CC(=O)[O-].[Na+]")
    yield "standardise"
    fingerprints(["CCO", "c1ccccc1O"], "maccs")
    yield "fingerprints"
    check_dataset(find_dataset(source), jobs=jobs)
    yield "check_dataset"
    prepared = mz.prepare(source, out / "prepared", jobs=jobs, watch=False)
    yield "prepare"
    smiles = [prepared.smiles[molecule] for molecule in range(len(prepared.smiles))]
    (out / "molecules.smi").write_text("\n".join([*smiles, "no molecule", ""]))
    database = mz.Database.build(out / "molecules.smi", out / "database", jobs=jobs, watch=False)
    yield "Database.build"
    add_negatives(prepared, database, keep=4, ppm=1e5, engine=LocalEngine(jobs))
    yield "add_negatives"
    run = mz.train(
        out / "prepared", "fp-cos", out / "run", epochs=2, batch_size=16, threads=1, watch=False,
        parts={"encoder": {"width": 32, "blocks": 1}},
    )  # fmt: skip
    yield "train"
    run.evaluate(watch=False)
    yield "evaluate"
    run.beliefs(watch=False)
    yield "beliefs"
    run.report(out / "report", watch=False)
    yield "report"
    molecule_svg("CCO")
    yield "molecule_svg"


if __name__ == "__main__":
    before = state()
    changed = {}
    for call in calls(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])):
        after = state()
        for name in before:
            if after[name] != before[name]:
                changed.setdefault(call, {})[name] = [repr(before[name]), repr(after[name])]
        before = after
    print(json.dumps(changed))
