"""The database in the box."""

import numpy as np
import pyarrow as pa
import pytest

from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.core.errors import BundleError


def row(key: str, mass: float, source: str = "a", name: str = "") -> dict[str, object]:
    return {
        "key": key, "smiles": "C" * round(mass), "formula": f"C{round(mass)}", "mass": mass,
        "sources": [source], "identifiers": [], "names": [name] if name else [],
    }  # fmt: skip


@pytest.fixture
def box() -> BundledMolecules:
    rows = [row("B" * 14, 20.0), row("A" * 14, 10.0, "a"), row("A" * 14, 10.0000001, "b", "ten")]
    return BundledMolecules(molecule_table([*rows, row("C" * 14, 20.0001)]))


def test_equal_molecules_are_one_with_the_sources_of_all(box: BundledMolecules) -> None:
    assert len(box) == 3
    assert box.table["key"].to_pylist() == ["A" * 14, "B" * 14, "C" * 14]
    assert box.table["sources"].to_pylist()[0] == ["a", "b"]
    assert box.table["names"].to_pylist()[0] == ["ten"]
    assert box.collections() == ["a", "b"]


def test_look_ups_by_mass(box: BundledMolecules) -> None:
    indptr, rows = box.many_by_mass([20.0, 10.0, 15.0], ppm=10)
    assert (indptr.tolist(), rows.tolist()) == ([0, 2, 3, 3], [1, 2, 0])
    one = box.by_mass(20.0, 1.0)
    assert one.table["key"].to_pylist() == ["B" * 14]
    assert box.by_mass(20.0, 10, cap=1).capped
    assert box.smiles[0] == "C" * 10


def test_look_ups_by_key_and_formula(box: BundledMolecules) -> None:
    assert box.by_key("a" * 14 + "-UHFFFAOYSA-N").table["row"].to_pylist() == [0]
    assert len(box.by_key("X" * 14)) == 0
    assert box.by_formula("C20").table["row"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("masses", "ppm"), [([0.0], 10), ([np.nan], 10), ([5.0], -1), ([5.0], 1e6)]
)
def test_what_is_no_question_is_refused(
    box: BundledMolecules, masses: list[float], ppm: float
) -> None:
    with pytest.raises(BundleError, match=r"expected|no positive number"):
        box.many_by_mass(masses, ppm)


def test_a_table_of_another_form_is_refused(box: BundledMolecules) -> None:
    with pytest.raises(BundleError, match="other columns"):
        BundledMolecules(pa.table({"key": ["a"]}))
    with pytest.raises(BundleError, match="not sorted by mass"):
        BundledMolecules(box.table.take([1, 0]))
