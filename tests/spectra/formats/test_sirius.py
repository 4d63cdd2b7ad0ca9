from pathlib import Path

from mzseek.spectra import read_spectra

TEXT = """>compound Kaempferol
>parentmass 287.0555
>ionization [M+H]+
>formula C15H10O6
>smiles O=c1c(O)c(-c2ccc(O)cc2)oc2cc(O)cc(O)c12

>collision 35
153.018 100
121.028 20

>ms2
165.018 5

>ms1
287.055 100

# a comment: >compound is not here
>compound	Other
>parentmass	100.5
>collision 10
50 1
"""


def test_blocks_become_spectra(tmp_path: Path) -> None:
    (tmp_path / "a.ms").write_text(TEXT)
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(tmp_path / "a.ms", rejects))
    assert [len(s) for s in got] == [2, 1, 1]
    assert [s.precursor_mz for s in got] == [287.0555, 287.0555, 100.5]
    assert [s.adduct for s in got] == ["[M+H]+", "[M+H]+", None]
    assert got[0].metadata["collision_energy"] == "35"
    assert got[0].metadata["smiles"].startswith("O=c1c(O)")
    assert len({s.identifier for s in got}) == 3
    assert [skipped.code for skipped in rejects] == ["ms1"]


def test_nothing_vanishes(tmp_path: Path) -> None:
    text = ">compound A\n>parentmass 100\n"
    text += ">compound B\n>parentmass 200\n50 1\n>ms2\n60 1\n>compound C\n"
    (tmp_path / "a.ms").write_text(text)
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(tmp_path / "a.ms", rejects))
    assert [s.mz.tolist() for s in got] == [[60.0]]
    assert [reason[:21] for _, reason in rejects] == [
        "has no block of peaks", "has peaks that belong", "has no block of peaks",
    ]  # fmt: skip


def test_a_compound_that_lost_its_line_takes_nothing_from_the_one_before(tmp_path: Path) -> None:
    lost = TEXT.replace(">compound\tOther", ">compond\tOther")
    (tmp_path / "a.ms").write_text(lost)
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(tmp_path / "a.ms", rejects))
    assert [s.precursor_mz for s in got] == [287.0555, 287.0555]
    assert rejects[1].code == "contradiction"


def test_blocks_of_a_compound_are_one_feature_with_its_ms1_peaks(tmp_path: Path) -> None:
    text = TEXT.replace(">formula", ">rt 438.2\n>formula") + ">compound Kaempferol\n"
    text += ">parentmass 287.05499267578125\n>rt 7.3 min\n>ms1\n287.055 1\n>ms1merged\n287.06 7\n"
    text += "288.06 1\n>collision 10\n50 1\n"
    (tmp_path / "a.ms").write_text(text)
    got = list(read_spectra(tmp_path / "a.ms", []))
    assert [s.metadata["feature_id"] for s in got] == [
        "Kaempferol", "Kaempferol", "Other", "Kaempferol #2",
    ]  # fmt: skip
    assert [s.metadata.get("ms1_peaks") for s in got] == [
        "287.055:100.0", "287.055:100.0", None, "287.06:7.0 288.06:1.0",
    ]  # fmt: skip
    assert [s.metadata.get("formula") for s in got] == ["C15H10O6", "C15H10O6", None, None]
    times = [s.metadata.get("retention_time") for s in got]
    assert times == ["438.2 s", "438.2 s", None, "7.3 min"]


def test_a_compound_of_very_many_blocks_is_not_held_whole(tmp_path: Path) -> None:
    block = ">collision 10\n50 1\n"
    text = ">compound A\n>parentmass 100\n" + block * 2_500 + ">ms1\n100 1\n"
    (tmp_path / "a.ms").write_text(text)
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(tmp_path / "a.ms", rejects))
    assert (len(got), len(rejects)) == (2_500, 1)
    assert {s.metadata["feature_id"] for s in got} == {"A"}
    assert "ms1_peaks" not in got[0].metadata
    assert got[-1].metadata["ms1_peaks"] == "100.0:1.0"
