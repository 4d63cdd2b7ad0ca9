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
    assert [reason for _, reason in rejects] == ["is an MS1 spectrum, expected MS2 or higher"]


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
    assert "states two precursor m/z" in rejects[1][1]
