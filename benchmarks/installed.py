"""Packages and megabytes of the base install and of ``[train]``, each in a fresh environment.

usage: installed.py [FOLDER]      (environments are made there, and removed; needs a package index)
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
OWN = {"pip", "setuptools", "wheel"}  # what an environment begins with


def measure(extra, folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = next(folder.glob("bin/python"))
    sites = next(folder.glob("lib/python*/site-packages"))
    before = megabytes(sites)
    quiet = ["--quiet", "--disable-pip-version-check", "--constraint", LOCK]
    subprocess.run([python, "-m", "pip", "install", *quiet, f"{ROOT}{extra}"], check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    names = {line.partition("=")[0] for line in listed.stdout.split()}
    return len(names - OWN), megabytes(sites) - before


def megabytes(folder):
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        for extra in ("", "[train]"):
            packages, size = measure(extra, Path(place) / (extra.strip("[]") or "base"))
            print(f"{extra or 'base':8s} {packages} packages, {size:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
