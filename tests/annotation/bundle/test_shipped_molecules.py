"""The molecule database of the bundle that comes with mzseek."""

import csv
import re
from pathlib import Path

import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MOLECULES
from mzseek.chem import exact_mass, inchikey_block
from mzseek.chem.identifiers import canonical, link

COMMON = Path(__file__).parents[3] / "benchmarks" / "common_metabolites.tsv"


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return Bundle.open()


def test_common_metabolites_are_present(shipped: Bundle) -> None:
    rows = list(csv.DictReader(COMMON.open(encoding="utf-8"), delimiter="\t"))
    assert len(rows) >= 60
    found = {row["name"]: shipped.molecules.by_key(inchikey_block(row["smiles"])) for row in rows}
    assert [name for name, own in found.items() if not len(own)] == []
    for row in rows:  # permanent cations with their own mass, inner salts neutral
        masses = found[row["name"]].table["mass"].to_pylist()
        assert exact_mass(row["smiles"]) == pytest.approx(masses[0], abs=1e-5)


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
