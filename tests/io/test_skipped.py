"""Skipped records: reasons have codes, and are counted by them."""

import json
import pickle
import tracemalloc
from pathlib import Path

import pytest

from mzseek.core.errors import (
    AdductError,
    DatasetError,
    InputError,
    MoleculeError,
    Reason,
    SpectrumError,
)
from mzseek.io.skipped import (
    MAX_KINDS,
    OTHER,
    SkippedGroups,
    read_skipped,
    reporter,
    write_skipped,
)
from mzseek.spectra import read_spectra

MZML = '<mzML xmlns="http://psi.hupo.org/ms/mzml"><run><spectrumList>{}</spectrumList></run></mzML>'


def test_lists_callables_and_codes() -> None:
    rejects: list = []
    for reason in (Reason("its list is empty", "empty-list"), "its list is empty"):
        reporter(rejects)("a", reason)
    assert rejects == [("a", "its list is empty")] * 2
    assert [skipped.code for skipped in rejects] == ["empty-list", None]
    reporter(lambda where, reason: rejects.append(reason))("a", "b")
    assert rejects[-1] == "b"
    with pytest.raises(ValueError, match="'odd' is not declared"):
        Reason("is odd", "odd")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpectrumError("has no peaks", "no-peaks"), "no-peaks"),
        (SpectrumError(Reason("has no peaks", "no-peaks")), "no-peaks"),
        (MoleculeError("SMILES is empty"), "bad-molecule"),
        (AdductError("is none"), "bad-adduct"),
        (InputError("a.mgf", "is empty"), "unreadable"),
    ],
)
def test_codes_of_errors_reach_other_processes(error, code: str) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (again.reason, again.reason.code) == (error.reason, code)
    assert str(again) == str(error)


def test_records_are_counted_by_code_or_else_by_words() -> None:
    reasons = [Reason(f"has {n} peaks", "peak-count") for n in range(3)]
    reasons += ["SMILES 'C1(' is bad (a)", "SMILES 'C2)(' is bad (b)", "is odd", ""]
    groups = SkippedGroups((f"record {n}", reason) for n, reason in enumerate(reasons))
    assert [(g.kind, g.count, g.where) for g in groups.by_count()] == [
        ("peak-count", 3, "record 0"), ("SMILES … is bad…", 2, "record 3"),
        ("is odd", 1, "record 5"), ("…", 1, "record 6"),
    ]  # fmt: skip
    assert groups.by_count()[0].reason == "has 0 peaks"


def test_thousands_of_reasons_are_few_kinds_in_little_memory() -> None:
    groups = SkippedGroups()
    tracemalloc.start()
    for number in range(5_000):
        # A word that varies, as no reason of ours has it, and texts of any length.
        groups(f"record {number}", f"word{'x' * number} is odd")
        groups(f"record {number}", f"line {number}: {'C' * (number % 300)!r} is no peak")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6
    found = groups.by_count()
    assert groups.total == sum(group.count for group in found) == 10_000
    assert len(found) == MAX_KINDS + 1
    assert (found[0].kind, found[0].count) == ("line …: … is no peak", 5_000)
    assert found[-1].kind == OTHER
    assert found[-1].where.startswith("record ")


def write_bad_files(folder: Path) -> None:
    """Files in every format, full of records that are skipped, each for several values."""
    mgf = "BEGIN IONS\nSPECTRUM_ID={}\n{}\nEND IONS\n".format
    peaks = "\n50.1 10"
    fields = [
        f"{line}{peaks}"
        for number in range(3)
        for line in (
            f"CHARGE={number + 1}+", f"PEPMASS=-{number}1", f"PEPMASS=word{number}",
            f"PEPMASS=1,23{number}", f"PEPMASS=100\nPEPMASS={number}99",
            f"PEPMASS=100\nCHARGE={number}+ and 5+", f"PEPMASS=100\nADDUCT=[M+X{number}]+",
            f"PEPMASS=100\nADDUCT=M plus {number}", "PEPMASS=100\nADDUCT=[M+H]-",
            f"PEPMASS=100\nADDUCT=[M+H]+\nCHARGE={number + 2}+", "PEPMASS=100\nMSLEVEL=1",
            "PEPMASS=100\nADDUCT=[M+H]+\nIONMODE=negative",
            "PEPMASS=100\nADDUCT=[M+H]+\nADDUCT=[M+Na]+", f"PARENT_MASS=12{number}",
            f"PEPMASS=100\nNUM_PEAKS={number + 5}", f"PEPMASS=100\n5{number} nan",
            f"PEPMASS=100\n-5{number} 1", f"PEPMASS=100\n2{number}000 1",
            f"PEPMASS=100\n50 -{number}1", f"PEPMASS=100\n5{number}",
            f"PEPMASS=100\n5{number} 1 60 2",
            f"PEPMASS=100\nlorem {number}", f"PEPMASS=100\n5{number} strong",
        )
    ]  # fmt: skip
    (folder / "a.mgf").write_text("".join(map(mgf, range(len(fields)), fields)) + mgf(0, "") * 3)
    msp = "Name: a{0}\nPrecursorMZ: 100\nNum Peaks: {0}\n50 1\n\n".format
    (folder / "b.msp").write_text(
        "".join(map(msp, range(2, 6))) + "Comment: x\nNum Peaks: 1\n5 1\n"
    )
    massbank = "ACCESSION: A{0}\nRECORD_TITLE: x\nDEPRECATED: of 201{0} (x)\n//\n".format
    cut = "ACCESSION: B\nRECORD_TITLE: x\nPK$PEAK: m/z\n  5 1\n"
    (folder / "c.txt").write_text("".join(map(massbank, range(4))) + cut)
    (folder / "d.ms").write_text(">compound a\n>parentmass 100\n>compound b\n5 1\n>ms1\n50 1\n")
    entries = [3, 4.5, "text", "y" * 90, [1, 2], [[1], 3], None, {"peaks_json": 3},
               {"peaks_json": [[1]]}, {"peaks_json": "[[1"}, {"peaks_json": [[50, 1]]}]  # fmt: skip
    (folder / "e.json").write_text(json.dumps(entries))
    rows = ["A\t50", "B\t50,x\t1,2\t100", "C\t5_0\t1\t100", "D\t1,2\t1\t100", "D\t\t\t100"]
    table = "identifier\tmzs\tintensities\tprecursor_mz\n"
    (folder / "f.tsv").write_text(table + "\n".join(rows) + "\n")
    scans = "".join(
        f'<spectrum id="scan={n}" index="{n}" defaultArrayLength="1">'
        f'<cvParam accession="MS:1000511" name="ms level" value="{level}"/></spectrum>'
        for n, level in enumerate((1, 1, 2, "two", "three"))
    )
    (folder / "g.mzML").write_text(MZML.format(scans))
    (folder / "h.mzML").write_text(MZML.format(scans)[:-40])
    (folder / "empty.mgf").touch()
    (folder / "binary.bin").write_bytes(bytes(range(256)))
    (folder / "notes.txt").write_text("a text of another kind")


def test_every_reason_of_every_reader_has_a_code(tmp_path: Path) -> None:
    write_bad_files(tmp_path)
    codes: dict[str, set[str]] = {}
    for path in tmp_path.iterdir():
        rejects: list = []
        try:
            list(read_spectra(path, rejects))
        except InputError as error:
            reporter(rejects)(error.where, error.reason)
        assert rejects
        for skipped in rejects:
            codes.setdefault(skipped.code, set()).add(skipped.reason)
    assert set(codes) == {
        "bad-adduct", "bad-charge", "bad-number", "bad-peak", "contradiction", "deprecated",
        "malformed", "ms1", "no-peaks", "no-precursor", "no-records", "peak-count", "truncated",
        "unreadable",
    }  # fmt: skip
    assert sum(map(len, codes.values())) > 80


@pytest.mark.slow
@pytest.mark.shared
def test_reasons_met_in_real_files(shared: Path) -> None:
    found = {}
    for name in ("massbank_records.zip", "formats"):
        groups = SkippedGroups()
        list(read_spectra(shared / "data" / name, groups))
        found[name] = {group.kind: group.count for group in groups.by_count()}
    assert set(found["massbank_records.zip"]) >= {"ms1", "ei"}
    assert len(found["massbank_records.zip"]) <= 4
    assert found["formats"] == {"ms1": 4, "no-records": 1, "no-peaks": 1}


def test_a_table_of_skipped_records_is_read_back_and_holds_no_formulas(tmp_path: Path) -> None:
    records = [("=cmd|' /C calc'!A0", "-x"), ("'@a", "b\u2028c"), ("a\nb", "x\ty")]
    write_skipped(tmp_path / "r.tsv", records)
    cells = (tmp_path / "r.tsv").read_text(encoding="utf-8").replace("\t", "\n").split("\n")
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert read_skipped(tmp_path / "r.tsv") == [records[0], ("'@a", "b c"), ("a b", "x y")]


@pytest.mark.parametrize("data", [b"", b"reason\twhere\na\tb\n", b"where\treason\n\xff\tb\n"])
def test_a_damaged_table_of_skipped_records_is_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r.tsv").write_bytes(data)
    with pytest.raises(DatasetError, match=r"r\.tsv: is damaged \(.*\)$"):
        read_skipped(tmp_path / "r.tsv")
