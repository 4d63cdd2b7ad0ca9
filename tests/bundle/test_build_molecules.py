"""Names, identifiers and forms of bundled molecules."""

import re
from pathlib import Path

import pytest

from mzseek.bundle.build_molecules import (
    MoleculeLists,
    amide_form,
    best_name,
    bundled_molecules,
    inner_salt,
    read_known,
    read_names,
    unfit_for_electrospray,
)
from mzseek.bundle.write import MAY_BE_SHIPPED
from mzseek.chem.molecules import describe_structure, parse_molecule
from mzseek.core.errors import BundleError, InputError

RECORD = """ACCESSION: {accession}
LICENSE: {licence}
CH$NAME: {name}
CH$LINK: INCHIKEY {key}-UHFFFAOYSA-N
AC$MASS_SPECTROMETRY: MS_TYPE MS2
MS$FOCUSED_ION: PRECURSOR_M/Z 195.0877
PK$NUM_PEAK: 1
PK$PEAK: m/z int. rel.int.
  138.066 1 999
//
"""
CAFFEINE, OTHER = "RYYVLZVUVIJVGH", "LFQSCWFLJHTTHZ"


def test_the_plainest_name_that_may_be_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "records.txt"
    rows = [
        ("A1", "CC BY", "1,3,7-trimethylxanthine", CAFFEINE),
        ("A2", "CC0", "Caffeine", CAFFEINE),
        ("A3", "CC BY-NC", "Coffein", CAFFEINE),
        ("A4", "CC BY-NC", "Ethanol", OTHER),
        ("A5", "CC BY", "x" * 200, OTHER),
    ]
    path.write_text(
        "".join(
            RECORD.format(accession=a, licence=licence, name=name, key=key)
            for a, licence, name, key in rows
        )
    )
    assert read_names([path], MAY_BE_SHIPPED, print) == {CAFFEINE: "Caffeine"}
    assert read_names([path], ["any"], print) == {CAFFEINE: "Coffein", OTHER: "Ethanol"}
    assert read_names([], MAY_BE_SHIPPED, print) == {}


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (["Quercetin", "3,3',4',5,7-Pentahydroxyflavone", "Meletin"], "Quercetin"),
        (["Adenosine", "Ado", "9-beta-D-ribofuranosyladenine"], "Adenosine"),
        (["N-(4-hydroxyphenyl)acetamide", "Paracetamol", "Acetaminophen"], "Paracetamol"),
        (["Citric acid-[1-13C]", "Citrate"], "Citric acid"),
        (["(-)-Epicatechin", "EpCt-pl"], "(-)-Epicatechin"),
        (["EPA-[d5]", "Eicosapentaenoic acid"], "Eicosapentaenoic acid"),
        (["Atrazine-d5"], "Atrazine"),
        (["2,5-DIMETHYLCYCLOPENTANONE (2,5-D2)"], "2,5-Dimethylcyclopentanone"),
        (["Glycocholate", "Glycocholic acid"], "Glycocholic acid"),
        (["Methylphenidate"], "Methylphenidate"),
        (["VEN_278.2114_12.5", "Venlafaxine"], "Venlafaxine"),
        (["[M+H]+ of 7", "Caffeine"], "Caffeine"),
        (["PGD2", "Prostaglandin D2"], "Prostaglandin D2"),
        (["Thiamine hydrochloride", "Thiamine"], "Thiamine"),
        (["PERILLYL ALCOHOL", "4-(1-METHYLETHENYL)CYCLOHEXENE-1-METHANOL"], "Perillyl alcohol"),
        (["1,2-Benzisothiazol-3(2H)-one"], "1,2-Benzisothiazol-3(2H)-one"),
        (["Perfluorotetradecanoic acid (PFTeDA)"], "Perfluorotetradecanoic acid"),
        (["PC 36:5"], "PC 36:5"),
        (["SM d42:1"], "SM d42:1"),
        (["", "DTXSID0027981"], ""),
        (["x" * 200], ""),
    ],
)
def test_the_name_that_is_shown(names: list[str], best: str) -> None:
    assert best_name(names) == best


def test_rows_of_a_known_table_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "known.tsv"
    path.write_text(
        f"inchikey\tname\tsmiles\n{CAFFEINE}\tCaffeine\tC\nshort\tx\tC\n{OTHER}\tEthanol\t\na\tb\n"
    )
    reasons: list[str] = []
    known = read_known(path, lambda where, why: reasons.append(f"{where[-6:]} {why}"))
    assert [(each.name, each.identifiers, each.is_measured) for each in known] == [
        ("Caffeine", (), False)
    ]
    assert reasons == [
        "line 3 has no SMILES or no InChIKey", "line 4 has no SMILES or no InChIKey",
        "line 5 has 2 columns, expected 3",
    ]  # fmt: skip
    path.write_text("name,smiles\nx,C\n")
    with pytest.raises(InputError, match="is no table of molecules with"):
        read_known(path, print)


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
    ethanol = box.table.to_pylist()[box.rows_by_key[library[0].key][0]]
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
    sources = {name for names in box.table["sources"].to_pylist() for name in names}
    assert sources == {"chemicals", "other"}
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
