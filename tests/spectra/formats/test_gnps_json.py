import json
from pathlib import Path

from mzseek.spectra import read_spectra


def entry(identifier: str, peaks: object) -> dict[str, object]:
    return {
        "spectrum_id": identifier, "Precursor_MZ": "195.0877", "Adduct": "M+H",
        "Ion_Mode": "Positive", "Charge": "0", "Smiles": "CCO", "peaks_json": peaks,
        "annotation_history": [{"Adduct": "M+Na"}],
    }  # fmt: skip


def read(path: Path, text: str):
    path.write_text(text)
    rejects: list[tuple[str, str]] = []
    return list(read_spectra(path, rejects)), rejects


def test_peaks_as_text_and_as_list(tmp_path: Path) -> None:
    text = json.dumps([entry("A", "[[50.5,1.0],[40,2]]"), entry("B", [[50.5, 1.0], [40, 2]])])
    got, rejects = read(tmp_path / "a.json", text)
    assert rejects == []
    for spectrum in got:
        assert spectrum.mz.tolist() == [40.0, 50.5]
        assert (spectrum.adduct, spectrum.charge) == ("[M+H]+", 1)
        assert "peaks_json" not in spectrum.metadata
    assert [s.identifier for s in got] == ["A", "B"]


def test_a_single_object_counts_as_one(tmp_path: Path) -> None:
    got, _ = read(tmp_path / "a.json", json.dumps(entry("A", [[50, 1]])))
    assert [s.identifier for s in got] == ["A"]


def test_bad_entries_leave_the_good_ones(tmp_path: Path) -> None:
    good = json.dumps(entry("good", [[50, 1]]))
    last = json.dumps(entry("last", [[50, 1]]))
    bad = [
        json.dumps(entry("x", "[[50,")), json.dumps(entry("x", [[50]])), json.dumps(entry("x", [])),
        json.dumps(entry("x", [["a", 1]])), json.dumps(entry("x", None)), "17", '{"a": nonsense}',
        json.dumps(entry("x", [[50, float("nan")]])), json.dumps({"spectrum_id": "x"}),
    ]  # fmt: skip
    got, rejects = read(tmp_path / "a.json", f"[{good}, {', '.join(bad)}, {last}]")
    assert [s.identifier for s in got] == ["good", "last"]
    assert len(rejects) == len(bad)
    assert all("record" in where and reason for where, reason in rejects)


def test_an_array_cut_short_keeps_what_was_whole(tmp_path: Path) -> None:
    text = json.dumps([entry("A", [[50, 1]]), entry("B", [[50, 1]])])[:-40]
    got, rejects = read(tmp_path / "a.json", text)
    assert [s.identifier for s in got] == ["A"]
    assert rejects[0][1] == "ends in the middle of member 2"


def test_json_lines_are_not_half_read_in_silence(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(entry(name, [[50, 1]])) for name in "ABC")
    got, rejects = read(tmp_path / "a.json", text)
    assert len(got) <= 1
    assert "goes on after its end" in rejects[0][1]


def test_a_large_object_of_something_else(tmp_path: Path) -> None:
    got, rejects = read(tmp_path / "a.json", json.dumps({str(n): n for n in range(5000)}))
    assert got == []
    assert "expected an array" in rejects[0][1]


def test_a_single_spectrum_without_a_name(tmp_path: Path) -> None:
    (got,), _ = read(tmp_path / "a.json", '{"Precursor_MZ": 100, "peaks": [[50, 1]]}')
    assert got.identifier == "record 1"


def test_two_values_of_one_key_set_the_record_aside_where_they_are_read(tmp_path: Path) -> None:
    plain = json.dumps(entry("A", [[50, 1]]))[:-1]
    twins = {"Smiles": '"CCN"', "Precursor_MZ": "300", "peaks_json": "[[60, 1]]", "Adduct": '"M+K"'}
    bad = [f'{plain}, "{key}": {value}}}' for key, value in twins.items()]
    good = [f'{plain}, "Smiles": "CCO"}}', f'{plain}, "note": 1, "note": 2}}'.replace('"A"', '"B"')]
    got, rejects = read(tmp_path / "a.json", f"[{', '.join([*bad, *good])}]")
    assert [s.identifier for s in got] == ["A", "B"]
    assert [reason for _, reason in rejects] == [
        f"has two values of one key, '{key}', expected one" for key in twins
    ]
