from pathlib import Path

import numpy as np
import pytest

from mzseek.spectra.formats.msp import write_msp
from mzseek.spectra.spectrum import Spectrum


def test_fields_and_peaks(read) -> None:
    text = (
        "Name: Caffeine\nDB#: C1\nPrecursorMZ: 195.0877\nPrecursor_type: [M+H]+\nIon_mode: P\n"
        "Num Peaks: 2\n138.066 999\n42.03 5\n"
    )
    (got,), rejects = read("a.msp", text)
    assert rejects == []
    assert (got.identifier, got.precursor_mz, got.adduct) == ("C1", 195.0877, "[M+H]+")
    assert got.metadata["compound_name"] == "Caffeine"
    assert got.mz.tolist() == [42.03, 138.066]


@pytest.mark.parametrize(
    "peaks",
    ["50 1\n60.5 2\n", "50 1; 60.5 2;\n", "50:1 60.5:2\n", '50 1 "a: b"\n60.5\t2 "c=d"\n',
     "50,0 1\n60,5 2\n", "50 1;\n60.5 2;\n"],
)  # fmt: skip
def test_dialects_of_peaks(read, peaks: str) -> None:
    (got,), _ = read("a.msp", f"NAME: x\nPRECURSORMZ: 100\nNUM PEAKS: 2\n{peaks}\n")
    assert got.mz.tolist() == [50.0, 60.5]
    assert got.intensities.tolist() == [1.0, 2.0]


def test_quoted_comments(read) -> None:
    text = (
        'Name: x\nComments: "SMILES=CC(=O)O=1" "ion mode=positive" Parent=428.31 ce="30 eV"\n'
        "Num Peaks: 1\n50 1\n"
    )
    (got,), _ = read("a.msp", text)
    assert got.precursor_mz == 428.31
    assert got.metadata["smiles"] == "CC(=O)O=1"
    assert got.metadata["collision_energy"] == "30 eV"


def test_records_without_blank_lines_or_identifiers(read) -> None:
    got, _ = read("a.msp", "Name: x\nPrecursorMZ: 100\nNum Peaks: 1\n50 1\n" * 3)
    assert [s.identifier for s in got] == ["x", "x #2", "x #3"]
    got, _ = read("a.msp", "Name: a\nPrecursorMZ: 100\n50 1\n\n" * 2)  # no Num Peaks
    assert len(got) == 2


def test_a_wrong_number_of_peaks_is_refused_and_stops_nothing(read) -> None:
    record = "Name: {0}\nPrecursorMZ: 100\nNum Peaks: {1}\n50 1\n60 2\n\n"
    text = record.format("a", 2) + record.format("b", 3) + record.format("c", 2)
    got, rejects = read("a.msp", text)
    assert [s.metadata["compound_name"] for s in got] == ["a", "c"]
    assert rejects[0].code == "peak-count"


def test_fields_may_come_before_the_name(read) -> None:
    text = "".join(
        f"PRECURSORMZ: {n}00.1\nSMILES: {'C' * n}\nNAME: {n}\nNum Peaks: 1\n50 1\n"
        for n in (1, 2, 3)
    )
    got, rejects = read("a.msp", text)
    assert rejects == []
    assert [(s.precursor_mz, s.metadata["smiles"]) for s in got] == [
        (100.1, "C"), (200.1, "CC"), (300.1, "CCC"),
    ]  # fmt: skip


def test_a_block_without_name_is_its_own(read) -> None:
    text = "Name: a\nPrecursorMZ: 100\nNum Peaks: 1\n50 1\n\nPrecursorMZ: 200\nNum Peaks: 1\n60 1\n"
    got, rejects = read("a.msp", text)
    assert [s.precursor_mz for s in got] == [100.0]
    assert [skipped.code for skipped in rejects] == ["malformed"]


def test_several_peaks_a_line_are_told_by_their_number(read) -> None:
    text = "Name: {0}\nPrecursorMZ: 100\n{1}50 1 60 2\n70 3 80 4\n\n"
    got, rejects = read(
        "a.msp",
        text.format("a", "Num Peaks: 4\n")
        + text.format("b", "")
        + text.format("c", "Num Peaks: 2\n"),
    )
    assert [s.mz.tolist() for s in got] == [[50, 60, 70, 80]]
    assert [skipped.code for skipped in rejects] == ["bad-peak", "peak-count"]


def test_colons_in_annotations_and_accessions(read) -> None:
    text = "Name: a\nACCESSION: X1\nPrecursorMZ: 100\nNum Peaks: 2\n"
    (got,), _ = read("a.msp", text + '50 1 C4H9+ err:0.5\n60 2 1 "a:b"\n')
    assert (got.identifier, got.mz.tolist()) == ("X1", [50.0, 60.0])  # and no MassBank record


def test_a_file_cut_short(read) -> None:
    got, rejects = read("a.msp", "Name: a\nPrecursorMZ: 100\nInChIK")
    assert got == []
    assert rejects[0].code == "malformed"
    _, rejects = read("b.msp", "Name: a\nPrecursorMZ: 100\n50.1 1\n60.2 3")
    assert rejects[0].code == "truncated"


def test_two_records_that_ran_together_are_no_record(read) -> None:
    """The first has lost its peaks, the second its name: peaks of one, precursor of the other."""
    text = "Name: a\nPrecursorMZ: 100\nNum Peaks: 2\n\nNamE_ b\nNum Peaks: 1\n50 1\n"
    for lost in ("Nam- b\n", "Comment: b\n", ""):
        got, rejects = read("a.msp", text.replace("NamE_ b\n", lost))
        assert got == []
        assert rejects
    assert "states Num Peaks twice" in rejects[0][1]


def test_a_name_without_a_text_begins_a_record_too(read) -> None:
    text = "Name:\nPrecursorMZ: 100\n\nName: b\nPrecursorMZ: 100.2\nNum Peaks: 1\n50 1\n"
    (got,), rejects = read("a.msp", text)
    assert (got.metadata["compound_name"], got.precursor_mz) == ("b", 100.2)
    assert [skipped.code for skipped in rejects] == ["malformed"]


_PEAKS = "Num Peaks: 1\n50 1\n"


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        # MS-DIAL, two of its exports
        ("NAME: U\nSCANNUMBER: 7\nRETENTIONTIME: 7.3\nPRECURSORMZ: 100\nADDUCTIONNAME: [M+H]+",
         "7.3 min"),
        ("NAME: Unknown\nPRECURSORMZ: 100\nPRECURSORTYPE: [M+H]+\nRETENTIONTIME: 7.3", "7.3 min"),
        # RIKEN's libraries
        ("NAME: x\nPRECURSORMZ: 100\nONTOLOGY: Flavonols\nRETENTION TIME: 7.3", "7.3 min"),
        # MZmine
        ("Name: x\nPrecursorMZ: 100\nRT: 7.3\nPrecursor_type: [M+H]+\nDB#: 12", "7.3 min"),
        # Bruker, and unknown programs
        ("Name: x\nPrecursorMZ: 100\nRetentionTime: 635.4\nIon_mode: POSITIVE", "635.4"),
        ("NAME: x\nPRECURSORMZ: 100\nRETENTIONTIME: 635.4", "635.4"),
        ("Name: x\nPrecursorMZ: 100\nRT: 7.3", "7.3"),
        ("Name: x\nPrecursorMZ: 100\nDB#: 1\nRetention_time: 7.3 min", "7.3 min"),
        ("NAME: x\nPRECURSORMZ: 100\nPRECURSORTYPE: [M+H]+\nRETENTIONTIME: 438 s", "438 s"),
    ],
)  # fmt: skip
def test_units_of_retention_times_by_program(read, fields: str, kept: str) -> None:
    (got,), rejects = read("a.msp", f"{fields}\n{_PEAKS}")
    assert rejects == []
    assert got.metadata["retention_time"] == kept


def test_a_program_is_recognised_by_the_fields_of_each_record_alone(read) -> None:
    first = f"NAME: a\nPRECURSORMZ: 100\nPRECURSORTYPE: [M+H]+\nRETENTIONTIME: 1\n{_PEAKS}\n"
    second = f"NAME: b\nPRECURSORMZ: 100\nRETENTIONTIME: 2\n{_PEAKS}"
    got, _ = read("a.msp", first + second)
    assert [s.metadata["retention_time"] for s in got] == ["1 min", "2"]


def test_written_masses_have_five_decimals(read, tmp_path: Path) -> None:
    peaks = np.array([31.01784]), np.array([9.0])
    spectrum = Spectrum(*peaks, 47.04914126416054, "[M+H]+", 1, "a")
    assert write_msp(tmp_path / "a.msp", [(spectrum, ["CH3O+"])]) == 1
    text = (tmp_path / "a.msp").read_text()
    assert "PrecursorMZ: 47.04914\n" in text
    assert '31.01784 9.00 "CH3O+"\n' in text
    [back], _ = read("b.msp", text)
    assert back.precursor_mz == 47.04914
