import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.database.formats import tables as workbook

from ..conftest import read, shown, write_workbook

ROWS = [
    ["DTXSID", "PREFERRED_NAME", "SMILES", "MONOISOTOPIC_MASS", "MS_READY_SMILES"],
    ["DTXSID9020584", "Ethanol", "CCO", 46.041865, "CCO"],
    ["DTXSID1", "Sodium acetate", "[Na+].CC([O-])=O", 82.0, "CC(O)=O"],
    ["DTXSID2", "Unknown substance", None, None, None],
    ["DTXSID3", "Methane", "C", 16, "-"],
]
KNOWN = [
    ("CCO", "DTXSID9020584", "Ethanol"),
    ("CC(O)=O", "DTXSID1", "Sodium acetate"),
    ("C", "DTXSID3", "Methane"),
]


def test_the_first_sheet_with_molecules_is_read(tmp_path: Path) -> None:
    """CompTox has a cover sheet; what a file is shows in its content."""
    cover = [["CompTox Chemicals Dashboard"], [], ["Export date", 45000]]
    for name, sheets in {"a.xlsx": {"Sheet1": ROWS}, "b": {"Cover": cover, "Main": ROWS}}.items():
        records, rejects = read(write_workbook(tmp_path / name, sheets))
        assert shown(records) == KNOWN
        assert [record.where for record in records] == [
            f"{tmp_path / name}: row {number}" for number in (2, 3, 5)
        ]
        assert rejects == [("row 4", "has no molecule")]


def test_numbers_are_identifiers_and_columns_can_be_named(tmp_path: Path) -> None:
    rows = [[None], ["cid", "Struktur", "feature"], [702, "CCO", 17], [703.0, "CCN", 18]]
    path = write_workbook(tmp_path / "a.xlsx", {"Tabelle1": rows})
    records, _ = read(path, columns={"smiles": "Struktur", "feature": ""})
    assert [(r.identifier, r.text, r.feature) for r in records] == [
        ("702", "CCO", "17"), ("703", "CCN", "18"),
    ]  # fmt: skip


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_workbook(tmp_path / "a.xlsx", {"One": [["Nr", "Wert"], [1, 2]], "Two": []})
    reason = (
        r"a\.xlsx: no sheet has a column that is called smiles, .*: 'One' has 'Nr', 'Wert'; 'Two'"
    )
    with pytest.raises(InputError, match=reason):
        read(path)
    with pytest.raises(InputError, match="no sheet has a column that is called 'Struktur': 'One'"):
        read(path, columns={"smiles": "Struktur"})
    good = write_workbook(tmp_path / "b.xlsx", {"One": ROWS})
    with pytest.raises(InputError, match="no column is called 'Nom'; it has 'DTXSID', 'PREFERRED"):
        read(good, columns={"name": "Nom"})
    monkeypatch.setattr(workbook, "MAX_WORKBOOK", 1_000)
    with pytest.raises(InputError, match=r"unfolds to 2,\d+ bytes, expected at most 1,000"):
        read(good)


def test_other_archives_and_damage_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("spectra.mgf", "BEGIN IONS")
    with pytest.raises(InputError, match="is not a text file; expected a list of SMILES"):
        read(tmp_path / "a.zip")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match="is damaged, or no workbook"):
        read(tmp_path / "old.xls")
    whole = write_workbook(tmp_path / "a.xlsx", {"One": ROWS}).read_bytes()
    (tmp_path / "a.xlsx.gz").write_bytes(gzip.compress(whole))
    with pytest.raises(InputError, match="is not a text file"):
        read(tmp_path / "a.xlsx.gz")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=200)  # fmt: skip
@given(at=st.floats(0, 1), data=st.binary(min_size=1, max_size=8), cut=st.booleans())
def test_damaged_workbooks_are_read_or_refused_in_one_line(
    tmp_path: Path, at: float, data: bytes, cut: bool
) -> None:
    whole = write_workbook(tmp_path / "a.xlsx", {"One": ROWS}).read_bytes()
    place = int(at * len(whole))
    rest = b"" if cut else whole[place + len(data) :]
    (tmp_path / "a.xlsx").write_bytes(whole[:place] + data + rest)
    message = ""
    try:
        read(tmp_path / "a.xlsx")
    except InputError as error:
        message = str(error)
    assert not message or message.startswith(str(tmp_path / "a.xlsx"))
    assert "\n" not in message
