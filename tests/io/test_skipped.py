"""Reasons of every reader, by kind: each kind whole, few of them, and nothing lost."""

import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from mzseek.chem import parse_molecule
from mzseek.chem.adducts import parse_adduct
from mzseek.chem.molecules import parse_inchi
from mzseek.core.errors import AdductError, InputError, MoleculeError
from mzseek.io.skipped import MAX_KINDS, OTHER, Reason, ReasonGroup, SkippedGroups, reporter
from mzseek.spectra import read_spectra

MZML = '<mzML xmlns="http://psi.hupo.org/ms/mzml"><run><spectrumList>{}</spectrumList></run></mzML>'


def kinds(*reasons: str) -> list[tuple[str, int]]:
    groups = SkippedGroups(("x", reason) for reason in reasons).by_count()
    return [(group.kind, group.count) for group in groups]


def assert_sensible(groups: list[ReasonGroup], total: int, most: int) -> None:
    """Every word of a kind is a whole word of the reasons, and the counts add up."""
    assert sum(group.count for group in groups) == total
    assert len(groups) <= most
    assert [group.count for group in groups] == sorted((g.count for g in groups), reverse=True)
    for group in groups:
        words = set(re.findall(r"\w+", group.kind))
        assert words <= set(re.findall(r"\w+", group.reason))
        assert words
        pieces = [re.escape(piece) for piece in re.split("…", group.kind)]
        shape = r".*".join(pieces).replace(r"\ ", r"(?:\ \(.*\))?\ ")
        assert re.fullmatch(shape + r"(?:\ \(.*\))?", group.reason)
        assert not group.kind.endswith((" an", " a", " is", " has", " line", "("))


def test_lists_callables_and_codes() -> None:
    rejects: list = []
    for reason in (Reason("its list is empty", code="empty"), "its list is empty"):
        reporter(rejects)("a", reason)
    assert rejects == [("a", "its list is empty")] * 2
    assert [skipped.code for skipped in rejects] == ["empty", None]
    assert kinds(*(reason for _, reason in rejects)) == [("its list is empty", 2)]
    reporter(lambda where, reason: rejects.append(reason))("a", "b")
    assert rejects[-1] == "b"


MS1 = "is an MS1 spectrum, expected MS2 or higher"
CHARGE = "charge {!r} is not one charge such as 1+, -2 or 1"
TWO_ADDUCTS = "states two adducts, [M+H]+ and [2M-2H]2-"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ((MS1, MS1), [(MS1, 2)]),
        (("SMILES 'C1(' is bad", "SMILES 'C2)(' is bad"), [("SMILES … is bad", 2)]),
        (("column C18 of 13C", "column C18 of 14C"),
         [("column C18 of 13C", 1), ("column C18 of 14C", 1)]),
        (("has 100,001 peaks, expected at most 100,000",
          "has 200,000 peaks, expected at most 100,000"),
         [("has … peaks, expected at most 100,000", 2)]),
        ((CHARGE.format("2+ and 3+"), CHARGE.format("it's")),
         [("charge … is not one charge such as 1+, -2 or 1", 2)]),
        ((TWO_ADDUCTS, "charge 2+ contradicts adduct [M+H]+",
          "charge 3+ contradicts adduct [M+H]+"),
         [("charge … contradicts adduct [M+H]+", 2), (TWO_ADDUCTS, 1)]),
        (("is a duplicate (of A-1)", "is a duplicate (of A-2)", "'odd' is not a number"),
         [("is a duplicate", 2), ("'odd' is not a number", 1)]),
        (("has no precursor m/z (only adduct [M+?]+)", "has no precursor m/z"),
         [("has no precursor m/z", 2)]),
        (("broken XML (a (b) c)", "broken XML (cut off…"), [("broken XML", 2)]),
    ],
)  # fmt: skip
def test_reasons_are_grouped_by_what_they_have_in_common(reasons, expected) -> None:
    assert kinds(*reasons) == expected


def test_thousands_of_reasons_are_few_kinds_in_little_memory() -> None:
    groups = SkippedGroups()
    tracemalloc.start()
    for number in range(5_000):
        # A word that varies, as no reason of ours has it, and texts of any length.
        groups(f"record {number}", f"word{number} is odd " + "x" * (number % 2500))
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


@pytest.mark.parametrize(
    "reason", ["", "(", ")", "'", "[[", '"' * 900, "(" * 5000, "[M" * 400, "'…'", "1 " * 3000]
)
def test_any_text_is_a_reason(reason: str) -> None:
    (group,) = SkippedGroups([("here", reason), ("there", reason)]).by_count()
    assert group.kind
    assert (group.count, group.where, group.reason) == (2, "here", reason[:2000])


def bad_files(folder: Path) -> Iterator[Path]:
    """Files in every format, full of records that are set aside, each for several values."""
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
    yield from folder.iterdir()


def test_reasons_of_every_reader_are_few_whole_kinds(tmp_path: Path) -> None:
    groups = SkippedGroups()
    reasons: set[str] = set()
    for path in bad_files(tmp_path):
        rejects: list[tuple[str, str]] = []
        try:
            list(read_spectra(path, rejects))
        except InputError as error:
            rejects.append((error.where, error.reason))
        assert rejects
        for where, reason in rejects:
            groups(where, reason)
            reasons.add(reason)
    assert_sensible(groups.by_count(), groups.total, most=55)
    assert len(reasons) > 80


BAD_SMILES = [
    "", "C C", "C(", "c1ccccc", "C(C)(C)(C)(C)C", "N(C)(C)(C)C", "c1cccc1", "c1ccc2cccc2c1", "*",
    "C*C", "C(" * 200, "Xx", "CC)", "[C", "C1CC", "F(C)C", "Cl(C)(C)C", "c1ccccc1c", "nc",
    "C" * 9999,
]  # fmt: skip


def test_molecule_and_adduct_errors_are_few_whole_kinds() -> None:
    rejects = []
    for text in BAD_SMILES * 3:
        with pytest.raises(MoleculeError) as caught:
            parse_molecule(text)
        rejects.append((text[:9], str(caught.value)))
    for text in ["InChI: 1S/x", "1S/y", "InChI=1S/x", "InChI=nothing"]:
        with pytest.raises(MoleculeError) as caught:
            parse_inchi(text)
        rejects.append((text, str(caught.value)))
    for text in ["[M+Xx]+", "[M+Zz]+", "M", "[M+37Cl]-", "nothing", "[M+H]-", "[M+Na]2-"]:
        with pytest.raises(AdductError) as caught_adduct:
            parse_adduct(text)
        rejects.append((text, str(caught_adduct.value)))
    groups = SkippedGroups(rejects).by_count()
    assert_sensible(groups, len(rejects), most=25)
    assert "SMILES …: not valid SMILES" in {group.kind for group in groups}


@pytest.mark.shared
def test_reasons_met_in_real_files_are_few_whole_kinds(shared: Path) -> None:
    for path in (shared / "data" / "massbank_records.zip", shared / "data" / "formats"):
        groups = SkippedGroups()
        list(read_spectra(path, groups))
        found = groups.by_count()
        assert_sensible(found, groups.total, most=4)
        kinds = [each.kind for each in found]
        assert "is an MS1 spectrum, expected MS2 or higher" in kinds
        if path.suffix == ".zip":
            assert "is an EI spectrum, in which no ion was selected, expected MS/MS" in kinds
    assert groups.total == 4 + 2  # and two files that hold no spectra
