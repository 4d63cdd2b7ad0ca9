"""The bundled molecule database, and the shipped one."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MOLECULES
from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.chem import exact_mass, inchikey_block
from mzseek.chem.identifiers import canonical, link
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


def test_look_ups_by_mass_and_key(box: BundledMolecules) -> None:
    assert box.by_mass(20.0)["row"].to_pylist() == [1, 2]
    assert box.by_mass(20.0, 1.0)["key"].to_pylist() == ["B" * 14]
    assert len(box.by_mass(15.0)) == 0
    assert box.rows_by_key == {"A" * 14: [0], "B" * 14: [1], "C" * 14: [2]}
    assert box.smiles[0] == "C" * 10


@pytest.mark.parametrize(("mass", "ppm"), [(0.0, 10), (np.nan, 10), (5.0, -1), (5.0, 1e6)])
def test_what_is_no_mass_or_tolerance_is_refused(
    box: BundledMolecules, mass: float, ppm: float
) -> None:
    with pytest.raises(BundleError, match="expected"):
        box.by_mass(mass, ppm)


def test_a_table_of_another_form_is_refused(box: BundledMolecules) -> None:
    with pytest.raises(BundleError, match="other columns"):
        BundledMolecules(pa.table({"key": ["a"]}))
    with pytest.raises(BundleError, match="not sorted by mass"):
        BundledMolecules(box.table.take([1, 0]))


COMMON = Path(__file__).parents[2] / "benchmarks" / "common_metabolites.tsv"


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return Bundle.open()


def test_common_metabolites_are_present(shipped: Bundle) -> None:
    rows = list(csv.DictReader(COMMON.open(encoding="utf-8"), delimiter="\t"))
    assert len(rows) >= 60
    rows_by_key, masses = shipped.molecules.rows_by_key, shipped.molecules.masses
    found = {row["name"]: rows_by_key.get(inchikey_block(row["smiles"]), []) for row in rows}
    assert [name for name, own in found.items() if not own] == []
    for row in rows:  # permanent cations with their own mass, inner salts neutral
        assert exact_mass(row["smiles"]) == pytest.approx(masses[found[row["name"]][0]], abs=1e-5)


@pytest.mark.parametrize(
    ("smiles", "name"),
    [
        ("Cn1c(=O)c2c(ncn2C)n(C)c1=O", "Caffeine"),
        ("O=c1c(O)c(oc2cc(O)cc(O)c12)-c1ccc(O)c(O)c1", "Quercetin"),
        ("Nc1ncnc2n(cnc12)C1OC(CO)C(O)C1O", "Adenosine"),
        ("OC(=O)CC(O)(CC(=O)O)C(=O)O", "Citric acid"),
        ("OC(=O)CCC(=O)O", "Succinic acid"),
        ("C[N+](C)(C)CCO", "Choline"),
    ],
)
def test_names_are_those_that_chemists_use(shipped: Bundle, smiles: str, name: str) -> None:
    assert shipped.names[inchikey_block(smiles)] == name


def test_names_and_links(shipped: Bundle) -> None:
    rows = shipped.molecules.table.to_pylist()
    measured = [row for row in rows if {"massbank", "library"} & set(row["sources"])]
    assert len(measured) > 15_000
    assert sum(bool(row["names"]) for row in measured) >= 0.95 * len(measured)
    identified = [row["identifiers"] for row in rows if row["identifiers"]]
    assert len(identified) > 10_000
    assert sum(any(map(link, own)) for own in identified) >= 0.8 * len(identified)
    assert all(canonical(text) == text for own in identified for text in own)
    labelled = re.compile(r"13C|15N|-d\d|\[d\d|M\+H")
    assert [name for row in rows for name in row["names"] if labelled.search(name)] == []


def test_only_what_electrospray_ionises_or_was_measured(shipped: Bundle) -> None:
    table = shipped.molecules.table
    smiles, sources = table["smiles"].to_pylist(), table["sources"].to_pylist()
    own = [text for text, names in zip(smiles, sources, strict=True) if "library" not in names]
    assert not [text for text in own if "." in text or re.search(r"\[\d", text)]
    chemicals = [text for text, names in zip(smiles, sources, strict=True) if "chemicals" in names]
    assert sum(not re.search("[NOPSnops]", text) for text in chemicals) < 10
    assert (shipped.folder / MOLECULES).stat().st_size < 1_600_000
