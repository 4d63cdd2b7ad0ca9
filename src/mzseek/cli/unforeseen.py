"""The report of an error that nobody has foreseen."""

import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mzseek.version import __version__

_PACKAGES = (
    "typer", "rich", "numpy", "scipy", "rdkit", "pyarrow", "duckdb",
    "joblib", "torch", "ray",
)  # fmt: skip


def report_of(error: BaseException) -> str:
    """All that helps to find out what happened: the stack, the command and the versions."""
    lines = [
        f"mzseek {__version__} on Python {platform.python_version()}, {platform.platform()}",
        f"at {time.strftime('%Y-%m-%d %H:%M:%S')}",
        f"command: {shlex.join(['mzseek', *sys.argv[1:]])}",
        *(f"{name} {_version(name)}" for name in _PACKAGES),
    ]
    return "\n".join(lines) + "\n\n" + "".join(traceback.format_exception(error))


def keep_report(report: str) -> Path:
    """Write a report to where temporary files go, or else to the current folder.

    Raises
    ------
    OSError
        Neither can be written to.
    """
    try:
        return _written(report, tempfile.gettempdir())
    except OSError:
        return _written(report, os.getcwd())


def _written(text: str, folder: str) -> Path:
    descriptor, name = tempfile.mkstemp(".txt", "mzseek-report-", folder)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"
