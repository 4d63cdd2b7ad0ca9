"""Broken files and records, each beside good ones: one clear line for the bad, nothing lost."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from mzseek.chem import fingerprints, parse_molecule
from mzseek.core.errors import MoleculeError, MzseekError
from mzseek.spectra import read_spectra

GOOD = (
    "BEGIN IONS\nSPECTRUM_ID=good-{}\nPEPMASS=195.0877\nCHARGE=1+\n50.1 10\n138.066 100\nEND IONS\n"
)


def mgf(fields: str = "PEPMASS=195.0877", peaks: str = "50.1 10\n138.066 100") -> str:
    return f"BEGIN IONS\nSPECTRUM_ID=bad\n{fields}\n{peaks}\nEND IONS\n"


# Each is put between two good records of one MGF file.
BAD_RECORDS = {
    "no precursor": (mgf("CHARGE=1+"), "no precursor"),
    "precursor zero": (mgf("PEPMASS=0"), "no precursor"),
    "precursor negative": (mgf("PEPMASS=-195.1"), "not between 0 and"),
    "precursor NaN": (mgf("PEPMASS=NaN"), "no precursor"),
    "precursor infinite": (mgf("PEPMASS=inf"), "not between 0 and"),
    "precursor absurd": (mgf("PEPMASS=1e12"), "not between 0 and"),
    "precursor is a word": (mgf("PEPMASS=heavy"), "'heavy' is not a number"),
    "precursor with two separators": (mgf("PEPMASS=1,234.56"), "is not a number"),
    "two precursors": (mgf("PEPMASS=195.1\nPEPMASS=300"), "states two precursor m/z"),
    "two adducts": (mgf("PEPMASS=195\nADDUCT=[M+H]+\nADDUCT=[M+Na]+"), "states two adducts"),
    "thousands or decimals": (mgf("PEPMASS=1,234"), "could be 1234 or a decimal comma"),
    "two charges": (mgf("PEPMASS=195\nCHARGE=2+ and 3+"), "is not one charge"),
    "charge is a word": (mgf("PEPMASS=195\nCHARGE=plus"), "is not one charge"),
    "unknown adduct part": (mgf("PEPMASS=195\nADDUCT=[M+Xx]+"), "unknown part 'Xx'"),
    "impossible adduct": (mgf("PEPMASS=195\nADDUCT=[M+H]-"), "is impossible"),
    "malformed adduct": (mgf("PEPMASS=195\nADDUCT=M plus H"), "not an adduct"),
    "adduct against charge": (mgf("PEPMASS=195\nADDUCT=[M+H]+\nCHARGE=2+"), "contradicts adduct"),
    "charge against mode": (mgf("PEPMASS=195\nCHARGE=1-\nIONMODE=positive"), "contradicts pos"),
    "survey scan": (mgf("PEPMASS=195\nMSLEVEL=1"), "is an MS1 spectrum"),
    "no peaks": (mgf(peaks=""), "has no peaks"),
    "NaN intensity": (mgf(peaks="50.1 10\n60 nan"), "is not finite"),
    "NaN m/z": (mgf(peaks="nan 10\n60 5"), "is not finite"),
    "infinite intensity": (mgf(peaks="50.1 inf"), "is not finite"),
    "negative intensity": (mgf(peaks="50.1 -10\n60 5"), "negative intensity"),
    "negative m/z": (mgf(peaks="-50.1 10\n60 5"), "no positive m/z"),
    "m/z zero": (mgf(peaks="0 10"), "no positive m/z"),
    "all intensities zero": (mgf(peaks="50 0\n60 0"), "no peak of positive intensity"),
    "absurd m/z": (mgf(peaks="50 1\n1e9 10"), "past m/z 20,000"),
    "m/z without intensity": (mgf(peaks="50.1\n60 5"), "is no peak"),
    "four numbers a line": (mgf(peaks="50.1 10 60.1 20"), "one peak with more columns"),
    "ambiguous commas": (mgf(peaks="1,234,5 10"), "is not a number"),
    "words among peaks": (mgf(peaks="50.1 10\nlorem ipsum"), "neither KEY=value nor a peak"),
    "intensity is a word": (mgf(peaks="50.1 strong"), "'strong' is not a number"),
    "wrong number of peaks": (mgf("PEPMASS=195\nNUM_PEAKS=9"), "says it has 9 peaks, but has 2"),
    "identifier used before": (mgf().replace("=bad", "=good-1"), "was used by an earlier record"),
    "binary blob": (mgf(peaks="\x00\x01\x02\ufffd\x7f"), "is no peak"),
    "far too many peaks": (mgf(peaks="50.1 1\n" * 100_001), "has 100,001 peaks"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_between_good_ones(tmp_path: Path, case: str) -> None:
    bad, message = BAD_RECORDS[case]
    path = tmp_path / "library.mgf"
    path.write_text(GOOD.format(1) + bad + GOOD.format(2), encoding="utf-8")
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects))
    assert [s.identifier for s in got] == ["good-1", "good-2"]
    assert len(rejects) == 1
    where, reason = rejects[0]
    assert str(path) in where
    assert "record 2" in where
    assert message in reason
    assert "\n" not in reason


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

# Files that are wrong as a whole: name, content, how many good spectra remain, what is said.
BAD_FILES: dict[str, tuple[str, bytes, int, str]] = {
    "empty": ("a.mgf", b"", 0, "the file is empty"),
    "only blanks": ("a.mgf", b" \n\t\n", 0, "the file is empty"),
    "binary": ("a.mgf", bytes(range(256)) * 50, 0, "not a text file"),
    "another kind of text": ("a.mgf", b"Dear reader,\na letter.\n", 0, "BEGIN IONS"),
    "unknown suffix and content": ("a.xyz", b"hello\n", 0, "not a spectrum file"),
    "a picture": ("a.png", b"\x89PNG\r\n\x1a\n\x00\x00", 0, "not a text file"),
    "a pickle": ("a.pkl", b"\x80\x04\x95\x00\x00", 0, "not a text file"),
    "cut in mid-line": ("a.mgf", whole()[:-16], 1, "ends in the middle of a line"),
    "gzip cut short": ("a.mgf.gz", gzip.compress(whole() * 2000, mtime=0)[:-30], -1, "cut short"),
    "gzip with a changed byte": ("a.mgf.gz", ZIPPED[:-6] + b"\xff" * 6, -1, "damaged"),
    "empty zip": ("a.zip", b"PK\x05\x06" + b"\0" * 18, 0, "holds no files"),
    "zip with a broken directory": ("a.zip", BROKEN_ZIP, -1, ""),
    "an Office document": ("a.xlsx", OFFICE, 0, "is an Office document"),
    "zip cut short": ("a.zip", b"PK\x03\x04" + b"\0" * 40, 0, "not a text file"),
    "UTF-16 without a mark": ("a.mgf", GOOD.format(1).encode("utf-16-le"), 0, "not a text file"),
    "mzML cut short": ("a.mzML", b"<mzML><run><spectrumList>", 0, "broken XML"),
    "mzML without spectra": ("a.mzML", b"<mzML><run></run></mzML>", 0, "holds no record"),
    "JSON cut short": ("a.json", b'[{"peaks_json": "[[50,', 0, "ends in the middle of member 1"),
    "JSON of something else": ("a.json", b'{"settings": true}', 0, "no list of peaks"),
    "an empty JSON array": ("a.json", b"[]", 0, "holds no record"),
    "a table without peaks": ("a.tsv", b"smiles\tname\nCCO\tethanol\n", 0, "expected columns mzs"),
    "MSP without peaks": ("a.msp", b"Name: x\nPrecursorMZ: 100\nNum Peaks: 0\n", 0, "has no peaks"),
    ".ms without precursor": ("a.ms", b">compound x\n>collision 10\n50 1\n", 0, "no precursor"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file(tmp_path: Path, case: str) -> None:
    name, content, survivors, message = BAD_FILES[case]
    path = tmp_path / name
    path.write_bytes(content)
    rejects: list[tuple[str, str]] = []
    got = []
    try:
        got = list(read_spectra(path, rejects))
    except MzseekError as error:
        where, _, reason = str(error).partition(": ")
        rejects.append((where, reason))
    if survivors >= 0:
        assert len(got) == survivors
    assert len(rejects) == 1
    assert name in rejects[0][0]
    assert message in rejects[0][1]
    assert "\n" not in "".join(rejects[0])


def test_encodings_are_read_not_guessed_away(tmp_path: Path) -> None:
    text = GOOD.format(1).replace("PEPMASS", "NAME=Müllers Säure\nPEPMASS")
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        path = tmp_path / f"{encoding}.mgf"
        path.write_bytes(text.encode(encoding))
        (got,) = read_spectra(path, [])
        assert got.metadata["compound_name"] == "Müllers Säure"


@pytest.mark.slow
def test_ten_million_peaks_do_not_fill_the_memory(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "huge.mgf"
    with path.open("w") as stream:
        stream.write(GOOD.format(1) + "BEGIN IONS\nSPECTRUM_ID=huge\nPEPMASS=500\n")
        for _ in range(100):
            stream.write("100.1 1\n" * 100_000)
        stream.write("END IONS\n" + GOOD.format(2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert [s.identifier for s in got] == ["good-1", "good-2"]
    assert "has 10,000,000 peaks" in rejects[0][1]
    assert grown < 150, f"{grown:.0f} MB for one record"


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


BAD_SMILES: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty"),
    "blanks": ("   ", "is empty"),
    "a word": ("caffeine", "not valid SMILES"),
    "unclosed ring": ("C1CC", "not valid SMILES"),
    "unclosed bracket": ("C[N+", "not valid SMILES"),
    "unknown element": ("[Xx]", "not valid SMILES"),
    "five bonds": ("C(C)(C)(C)(C)C", "valence"),
    "impossible aromatic": ("c1cccc1", "kekulize"),
    "50,000 characters": ("C" * 50_000, "50,000 characters, expected at most 5,000"),
    "not text in the end": ("CC\x00O", "not valid SMILES"),
    "with a name behind it": ("CCO ethanol", "white space"),
    "with an open site": ("CC*", "an atom of no element"),
}


@pytest.mark.parametrize("case", BAD_SMILES)
def test_a_bad_molecule_among_good_ones(case: str) -> None:
    smiles, message = BAD_SMILES[case]
    with pytest.raises(MoleculeError) as caught:
        parse_molecule(smiles)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250
    rejects: list[tuple[str, str]] = []
    rows = fingerprints(["CCO", smiles, "c1ccccc1"], rejects=rejects)
    assert rows.sum(axis=1).tolist() == [6, 0, 3]
    assert rejects == [("molecule 1", str(caught.value))]


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
