import subprocess
import sys
from pathlib import Path

import pytest

from mzseek.chem.fingerprinting import (
    FINGERPRINTS,
    check_version,
    fingerprint_kind,
    kept_version,
)
from mzseek.core.errors import MoleculeError
from mzseek.core.registry import FINGERPRINT_NAMES, PAPER_FINGERPRINTS


def test_every_name_is_that_of_its_kind() -> None:
    assert {name: kind.name for name, kind in FINGERPRINTS.items()} == {n: n for n in FINGERPRINTS}
    assert tuple(FINGERPRINTS) == FINGERPRINT_NAMES
    assert set(PAPER_FINGERPRINTS) < set(FINGERPRINTS)


def test_a_kind_is_made_once() -> None:
    assert fingerprint_kind("rdkit") is FINGERPRINTS["rdkit"]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(MoleculeError, match="fingerprint 'ecfp' is unknown, expected one of: morg"):
        fingerprint_kind("ecfp")


def test_names_load_no_library() -> None:
    heavy = "{'numpy', 'rdkit'}"
    code = (
        "import sys, mzseek.chem.fingerprinting as r; list(r.FINGERPRINTS); "
        f"sys.exit(bool({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_the_version_that_is_kept_is_the_one_that_is_expected(kind: str) -> None:
    versions = {"rdkit": "2026.3", **kept_version(kind)}
    check_version(kind, {"versions": versions}, Path("here"), MoleculeError, "again")
    with pytest.raises(MoleculeError, match=f"here: has {kind} fingerprints of version 9, expecte"):
        check_version(
            kind, {"versions": {f"{kind} fingerprints": 9}}, Path("here"), MoleculeError, "again"
        )
