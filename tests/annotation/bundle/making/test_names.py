"""Names of molecules."""

from pathlib import Path

import pytest

from mzseek.bundle.build_molecules import best_name, read_known, read_names
from mzseek.bundle.write import MAY_BE_SHIPPED
from mzseek.core.errors import InputError

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
