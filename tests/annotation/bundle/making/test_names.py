"""Names of molecules."""

from pathlib import Path

from mzseek.annotation.bundle.licences import MAY_BE_SHIPPED
from mzseek.annotation.bundle.making.names import read_names

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


def test_the_shortest_name_that_may_be_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "records.txt"
    rows = [
        ("A1", "CC BY", "1,3,7-trimethylxanthine", CAFFEINE),
        ("A2", "CC0", "Caffeine", CAFFEINE),
        ("A3", "CC BY-NC", "Tea", CAFFEINE),
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
    assert read_names([path], ["any"], print) == {CAFFEINE: "Tea", OTHER: "Ethanol"}
    assert read_names([], MAY_BE_SHIPPED, print) == {}
