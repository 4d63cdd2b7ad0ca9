"""Broken files and records, each beside good ones: one clear line for the bad, nothing lost."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from mzseek.chem import fingerprints, parse_molecule
from mzseek.core.errors import InputError, MoleculeError, MzseekError
from mzseek.io.skipped import Skipped
from mzseek.spectra import read_spectra

GOOD = (
    "BEGIN IONS\nSPECTRUM_ID=good-{}\nPEPMASS=195.0877\nCHARGE=1+\n50.1 10\n138.066 100\nEND IONS\n"
)


def mgf(fields: str = "PEPMASS=195.0877", peaks: str = "50.1 10\n138.066 100") -> str:
    return f"BEGIN IONS\nSPECTRUM_ID=bad\n{fields}\n{peaks}\nEND IONS\n"


# The code of each, put between two good records of one MGF file.
BAD_RECORDS = [
    (mgf("CHARGE=1+"), "no-precursor"),
    (mgf("PEPMASS=0"), "no-precursor"),
    (mgf("PEPMASS=NaN"), "no-precursor"),
    (mgf("PEPMASS=-195.1"), "bad-number"),
    (mgf("PEPMASS=inf"), "bad-number"),
    (mgf("PEPMASS=1e12"), "bad-number"),
    (mgf("PEPMASS=heavy"), "bad-number"),
    (mgf("PEPMASS=1,234"), "bad-number"),  # or a decimal comma?
    (mgf("PEPMASS=1,234.56"), "bad-number"),
    (mgf("PEPMASS=195.1\nPEPMASS=300"), "contradiction"),
    (mgf("PEPMASS=195\nADDUCT=[M+H]+\nADDUCT=[M+Na]+"), "contradiction"),
    (mgf("PEPMASS=195\nADDUCT=[M+H]+\nCHARGE=2+"), "contradiction"),
    (mgf("PEPMASS=195\nCHARGE=1-\nIONMODE=positive"), "contradiction"),
    (mgf("PEPMASS=195\nCHARGE=2+ and 3+"), "bad-charge"),
    (mgf("PEPMASS=195\nCHARGE=plus"), "bad-charge"),
    (mgf("PEPMASS=195\nADDUCT=[M+Xx]+"), "bad-adduct"),
    (mgf("PEPMASS=195\nADDUCT=[M+H]-"), "bad-adduct"),
    (mgf("PEPMASS=195\nADDUCT=M plus H"), "bad-adduct"),
    (mgf("PEPMASS=195\nMSLEVEL=1"), "ms1"),
    (mgf(peaks=""), "no-peaks"),
    (mgf(peaks="50 0\n60 0"), "no-peaks"),
    (mgf(peaks="50.1 10\n60 nan"), "bad-peak"),
    (mgf(peaks="nan 10\n60 5"), "bad-peak"),
    (mgf(peaks="50.1 inf"), "bad-peak"),
    (mgf(peaks="0 10"), "bad-peak"),
    (mgf(peaks="1,234,5 10"), "bad-number"),
    (mgf(peaks="50.1 -10\n60 5"), "bad-peak"),
    (mgf(peaks="-50.1 10\n60 5"), "bad-peak"),
    (mgf(peaks="50 1\n1e9 10"), "bad-peak"),
    (mgf(peaks="50.1\n60 5"), "bad-peak"),
    (mgf(peaks="50.1 10 60.1 20"), "bad-peak"),
    (mgf(peaks="\x00\x01\x02\ufffd\x7f"), "bad-peak"),
    (mgf(peaks="50.1 strong"), "bad-number"),
    (mgf(peaks="50.1 10\nlorem ipsum"), "malformed"),
    (mgf("PEPMASS=195\nNUM_PEAKS=9"), "peak-count"),
    (mgf().replace("=bad", "=good-1"), "duplicate"),
    (mgf(peaks="50.1 1\n" * 100_001), "too-large"),
]


@pytest.mark.parametrize(("bad", "code"), BAD_RECORDS)
def test_a_bad_record_between_good_ones(tmp_path: Path, bad: str, code: str) -> None:
    path = tmp_path / "library.mgf"
    path.write_text(GOOD.format(1) + bad + GOOD.format(2), encoding="utf-8")
    rejects: list[Skipped] = []
    got = list(read_spectra(path, rejects))
    assert [s.identifier for s in got] == ["good-1", "good-2"]
    (skipped,) = rejects
    assert skipped.where.startswith(f"{path}: record 2")
    assert skipped.code == code
    assert "\n" not in skipped.reason


def whole(text: str = GOOD.format(1) + GOOD.format(2)) -> bytes:
    return text.encode()


def zipped(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


BROKEN_ZIP = bytearray(zipped("a.mgf", GOOD.format(1)))
BROKEN_ZIP[BROKEN_ZIP.index(b"PK\x01\x02") + 10] = 99  # a compression that nobody knows
OFFICE = zipped("[Content_Types].xml", "<Types/>")
ZIPPED = gzip.compress(whole(), mtime=0)

# Longer than what is read at a time: records before the damage are read.
MANY = "".join(GOOD.format(number) for number in range(4000)).encode()
# Files that are wrong as a whole: name, content, good spectra that remain (None: any), code.
BAD_FILES = [
    ("a.mgf", b"", 0, "unreadable"),
    ("a.mgf", b" \n\t\n", 0, "unreadable"),
    ("a.mgf", bytes(range(256)) * 50, 0, "unreadable"),
    ("a.mgf", b"Dear reader,\na letter.\n", 0, "malformed"),
    ("a.xyz", b"hello\n", 0, "unreadable"),
    ("a.png", b"\x89PNG\r\n\x1a\n\x00\x00", 0, "unreadable"),
    ("a.pkl", b"\x80\x04\x95\x00\x00", 0, "unreadable"),
    ("a.mgf", whole()[:-16], 1, "truncated"),
    ("a.mgf.gz", gzip.compress(MANY, mtime=0)[:-30], None, "unreadable"),
    ("a.mgf.gz", ZIPPED[:-6] + b"\xff" * 6, None, "unreadable"),
    ("a.zip", b"PK\x05\x06" + b"\0" * 18, 0, "unreadable"),
    ("a.zip", BROKEN_ZIP, None, "unreadable"),
    ("a.xlsx", OFFICE, 0, "unreadable"),
    ("a.zip", b"PK\x03\x04" + b"\0" * 40, 0, "unreadable"),
    ("a.mgf", GOOD.format(1).encode("utf-16-le"), 0, "unreadable"),
    ("a.mzML", b"<mzML><run><spectrumList>", 0, "unreadable"),
    ("a.mzML", b"<mzML><run></run></mzML>", 0, "no-records"),
    ("a.json", b'[{"peaks_json": "[[50,', 0, "truncated"),
    ("a.json", b'{"settings": true}', 0, "no-peaks"),
    ("a.json", b"[]", 0, "no-records"),
    ("a.tsv", b"smiles\tname\nCCO\tethanol\n", 0, "no-records"),
    ("a.msp", b"Name: x\nPrecursorMZ: 100\nNum Peaks: 0\n", 0, "no-peaks"),
    ("a.ms", b">compound x\n>collision 10\n50 1\n", 0, "no-precursor"),
]


@pytest.mark.parametrize(("name", "content", "survivors", "code"), BAD_FILES)
def test_a_bad_file(
    tmp_path: Path, name: str, content: bytes, survivors: int | None, code: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    rejects: list[Skipped] = []
    got = []
    try:
        got = list(read_spectra(path, rejects))
    except InputError as error:
        rejects.append(Skipped(error.where, error.reason))
    assert survivors is None or len(got) == survivors
    (skipped,) = rejects
    assert name in skipped.where
    assert skipped.code == code
    assert "\n" not in "".join(skipped)


def test_encodings_are_read_not_guessed_away(tmp_path: Path) -> None:
    text = GOOD.format(1).replace("PEPMASS", "NAME=Müllers Säure\nPEPMASS")
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        path = tmp_path / f"{encoding}.mgf"
        path.write_bytes(text.encode(encoding))
        (got,) = read_spectra(path, [])
        assert got.metadata["compound_name"] == "Müllers Säure"


def test_bad_members_of_a_zip_leave_the_good_ones(tmp_path: Path) -> None:
    path = tmp_path / "library.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.mgf", GOOD.format(1))
        archive.writestr("b.mgf", "")
        archive.writestr("c.bin", bytes(range(256)))
        archive.writestr("d.mgf", GOOD.format(2))
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects))
    assert [s.identifier for s in got] == ["good-1", "good-2"]
    assert [where.rpartition(": ")[2] for where, _ in rejects] == ["b.mgf", "c.bin"]


BAD_SMILES = [
    ("", "is empty"),
    ("   ", "is empty"),
    ("caffeine", "not valid SMILES"),
    ("C1CC", "not valid SMILES"),
    ("C[N+", "not valid SMILES"),
    ("[Xx]", "not valid SMILES"),
    ("C(C)(C)(C)(C)C", "valence"),
    ("c1cccc1", "kekulize"),
    ("C" * 50_000, "50,000 characters, expected at most 5,000"),
    ("CC\x00O", "not valid SMILES"),
    ("CCO ethanol", "white space"),
    ("CC*", "an atom of no element"),
]


@pytest.mark.parametrize(("smiles", "message"), BAD_SMILES)
def test_a_bad_molecule_among_good_ones(smiles: str, message: str) -> None:
    with pytest.raises(MoleculeError) as caught:
        parse_molecule(smiles)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250
    rejects: list[Skipped] = []
    rows = fingerprints(["CCO", smiles, "c1ccccc1"], rejects=rejects)
    assert rows.sum(axis=1).tolist() == [6, 0, 3]
    assert rejects == [("molecule 1", str(caught.value))]
    assert rejects[0].code == "bad-molecule"


def test_rejects_may_be_a_function_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_text(GOOD.format(1) + mgf("PEPMASS=0"))
    calls: list[tuple[str, str]] = []
    assert len(list(read_spectra(path, lambda where, reason: calls.append((where, reason))))) == 1
    assert len(calls) == 1
    with pytest.warns(UserWarning, match=r"1 record skipped, the first: .*no precursor"):
        assert len(list(read_spectra(path))) == 1


def test_missing_paths(tmp_path: Path) -> None:
    with pytest.raises(MzseekError, match="no such file"):
        read_spectra(tmp_path / "absent.mgf")
    with pytest.raises(MzseekError, match="holds no files"):
        read_spectra(tmp_path)
