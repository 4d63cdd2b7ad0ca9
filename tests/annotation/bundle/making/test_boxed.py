"""Molecules for the bundled database."""

import re
from pathlib import Path

import pytest

from mzseek.bundle.build_molecules import (
    MoleculeLists,
    amide_form,
    bundled_molecules,
    inner_salt,
    unfit_for_electrospray,
)
from mzseek.chem.molecules import describe_structure, parse_molecule
from mzseek.core.errors import BundleError

KNOWN = """inchikey\tname\tsynonyms\tsmiles\tpubchem_cid\tchebi\tkegg\thmdb\tdtxsid\tin_sets
RYYVLZVUVIJVGH\t1,3,7-trimethylpurine-2,6-dione\tCaffeine|CID 2519\tCn1c(=O)c2c(ncn2C)n(C)c1=O\t2519\tCHEBI:27732 1\tC07481\tHMDB01847\tDTXSID0020232\tyes
PHIQHXFUZVPYII\tL-Carnitine\t\tC[N+](C)(C)CC(O)CC(=O)O\t10917\t16347\t\t\tN/A\tno
DHPHUDKUDBNHMI\tTETRABUTYLPHOSPHONIUM BROMIDE\t\tCCCC[P+](CCCC)(CCCC)CCCC.[Br-]\t\t\t\t\t\tno
UFWIBTONFRDIAS\tNaphthalene\t\tc1ccc2ccccc2c1\t931\t\t\t\t\tyes
UHOVQNZJYSORNB\tBenzene\t\tc1ccccc1\t241\t\t\t\t\tno
"""  # noqa: E501 - a table has long lines


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "molecules.tsv"
    path.write_text("smiles\tsource\tname\tid\nCCO\tchemicals\tethanol\t702\nCCN\tother\t\t\n"
                    "CO\tchemicals\t\t\nC1C\tchemicals\t\t\n")  # fmt: skip
    return path


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "massbank_known.tsv"
    path.write_text(KNOWN)
    return path


def test_molecules_of_the_sources_are_taken(table: Path) -> None:
    library = [describe_structure("OCC"), describe_structure("CCCC")]
    rejects: list[tuple[str, str]] = []
    box = bundled_molecules(
        library, MoleculeLists([table], ["chemicals"]),
        jobs=1, report=lambda where, why: rejects.append((where, why)),
    )  # fmt: skip
    assert box.smiles == ["CO", "CCO", "CCCC"]
    ethanol = box.by_key(library[0].key).table.to_pylist()[0]
    assert ethanol["sources"] == ["library", "chemicals"]
    assert (ethanol["identifiers"], ethanol["names"]) == (["chemicals:702"], ["ethanol"])
    assert [why for _, why in rejects] == ["SMILES 'C1C': not valid SMILES"]


def test_known_molecules_bring_names_and_identifiers(known: Path) -> None:
    caffeine = describe_structure("Cn1c(=O)c2c(ncn2C)n(C)c1=O")
    labelled = describe_structure("[2H]C([2H])([2H])n1c(=O)c2c(ncn2C)n(C)c1=O")
    skipped: list[tuple[str, str]] = []
    box = bundled_molecules(
        [caffeine, labelled], MoleculeLists(known=[known], electrospray_only=True),
        jobs=1, report=lambda where, why: skipped.append((where, why)),
    )  # fmt: skip
    rows = {row["smiles"]: row for row in box.table.to_pylist()}
    found = rows[caffeine.smiles]
    assert (found["names"], found["sources"]) == (["Caffeine"], ["library", "massbank"])
    assert found["identifiers"] == [
        "CID:2519", "HMDB0001847", "CHEBI:27732", "KEGG:C07481", "DTXSID0020232",
    ]  # fmt: skip
    # The label is not in the key: neither the name nor the pages are those of this molecule.
    assert rows[labelled.smiles]["names"] == rows[labelled.smiles]["identifiers"] == []
    carnitine = rows["C[N+](C)(C)CC(O)CC(=O)[O-]"]
    assert (carnitine["names"], carnitine["identifiers"]) == (
        ["L-Carnitine"], ["CID:10917", "CHEBI:16347"],
    )  # fmt: skip
    cation = rows["CCCC[P+](CCCC)(CCCC)CCCC"]
    assert (cation["names"], cation["formula"]) == (["Tetrabutylphosphonium"], "C16H36P+")
    assert "c1ccc2ccccc2c1" in rows  # in the sets
    assert [(where[-6:], why) for where, why in skipped] == [
        ("line 6", "has no atom that takes or loses a proton")
    ]


def test_all_sources_by_default(table: Path) -> None:
    box = bundled_molecules([], MoleculeLists([table]), jobs=1, report=lambda where, why: None)
    assert box.collections() == ["chemicals", "other"]
    assert len(bundled_molecules([], MoleculeLists(), jobs=1, report=print)) == 0


def test_a_source_that_no_molecule_comes_from_is_refused(table: Path) -> None:
    with pytest.raises(BundleError, match="comes from the source 'chemical'"):
        bundled_molecules([], MoleculeLists([table], ["chemical"]), jobs=1, report=print)


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("c1ccccc1", "no atom that takes or loses a proton"),
        ("ClC(Cl)(Cl)Cl", "no atom that takes or loses a proton"),
        ("OS(=O)(=O)O", "inorganic"),
        ("CC[Sn](CC)(CC)O", "metal"),
        ("CC(C)(C)[N]C(C)(C)C", "radical"),
        ("[2H]OCCCC", "isotopes"),
        ("CO", "lighter than 50 Da"),
        ("CCCCO[Si](C)(C)C", "trimethylsilyl"),
        ("C[B-](F)(F)F", "no atom|charge"),
        ("OCCCC[CH+]C", "charge"),
    ],
)
def test_what_electrospray_does_not_ionise(smiles: str, reason: str) -> None:
    assert re.search(reason, str(unfit_for_electrospray(parse_molecule(smiles))))


@pytest.mark.parametrize(
    "smiles",
    ["OC(=O)CCC(=O)O", "C[N+](C)(C)CCO", "C[N+](C)(C)CC(=O)[O-]", "Cn1cnc2c1c(=O)[nH]c(=O)n2C",
     "C[Si]1(C)O[Si](C)(C)O[Si](C)(C)O[Si](C)(C)O1", "CC[n+]1ccc(cc1)-c1cc[n+](C)cc1",
     "Oc1cc(O)c2cc(O)c([o+]c2c1)-c1ccc(O)cc1", "[O-][n+]1ccccc1"],
)  # fmt: skip
def test_what_electrospray_ionises(smiles: str) -> None:
    assert unfit_for_electrospray(parse_molecule(smiles)) is None


@pytest.mark.parametrize(
    ("cation", "neutral"),
    [
        ("C[N+](C)(C)CCOP(O)(O)=O", "C[N+](C)(C)CCOP(=O)([O-])O"),
        ("C[S+](C)CCC(N)C(=O)O", "C[S+](C)CCC(N)C(=O)[O-]"),
        ("C[N+](C)(C)CCCS(=O)(=O)O.[Cl-]", "C[N+](C)(C)CCCS(=O)(=O)[O-]"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),
        ("C[n+]1ccc(O)cc1", "C[n+]1ccc(O)cc1"),
    ],
)
def test_cations_with_an_acid_group_are_inner_salts(cation: str, neutral: str) -> None:
    assert describe_structure(inner_salt(cation)).smiles == describe_structure(neutral).smiles


@pytest.mark.parametrize(
    ("iminol", "amide"),
    [
        ("CC(O)=Nc1ccc(O)cc1", "CC(=O)Nc1ccc(O)cc1"),
        ("N=C(O)NC1N=C(O)N=C1O", "NC(=O)NC1NC(=O)NC1=O"),
        ("OC1=NCCN1Cc1ccc(Cl)nc1", "O=C1NCCN1Cc1ccc(Cl)nc1"),
        ("CC(=NO)C", "CC(C)=NO"),
        ("Oc1ccccn1", "Oc1ccccn1"),
    ],
)
def test_iminols_are_written_as_amides(iminol: str, amide: str) -> None:
    made = amide_form(iminol)
    assert describe_structure(made).smiles == describe_structure(amide).smiles
    assert describe_structure(made).identity == describe_structure(iminol).identity
