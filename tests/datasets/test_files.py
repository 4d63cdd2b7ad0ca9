import math
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import DatasetError, MzseekError
from mzseek.datasets import files as candidates_module
from mzseek.datasets.files import (
    DEMO_QUERIES,
    dataset_of,
    find_dataset,
    read_candidates,
    read_table,
    write_candidates,
    write_table,
)
from mzseek.datasets.molecules import collect
from mzseek.io import json_stream
from mzseek.spectra import bin_spectra, read_spectra

from .conftest import row


def test_a_set_is_found_by_its_files_names(write_set) -> None:
    files = write_set()
    assert find_dataset(files.spectra.parent) == files


def test_massspecgyms_layout_is_found(tmp_path: Path) -> None:
    (tmp_path / "data" / "molecules").mkdir(parents=True)
    (tmp_path / "data" / "MassSpecGym1.5.tsv").write_text("identifier\tmzs\tintensities\tsmiles\n")
    (tmp_path / "data" / "other.tsv").write_text("a\tb\n")
    for setting in ("mass", "formula"):
        name = f"MassSpecGym1.5_retrieval_candidates_{setting}.json"
        (tmp_path / "data" / "molecules" / name).write_text("{}")
    files = find_dataset(tmp_path)
    assert files.spectra.name == "MassSpecGym1.5.tsv"
    assert set(files.candidates) == {"mass", "formula"}


def test_lists_with_the_tables_name_are_its_own(write_set) -> None:
    folder = write_set().spectra.parent
    (folder / "spectra_candidates_mass.json").write_text("{}")
    assert find_dataset(folder).candidates == {"mass": folder / "spectra_candidates_mass.json"}


def test_what_is_no_set(tmp_path: Path, write_set) -> None:
    with pytest.raises(DatasetError, match="no such folder"):
        find_dataset(tmp_path / "absent")
    with pytest.raises(DatasetError, match="holds no table of spectra"):
        find_dataset(tmp_path)
    files = write_set()
    (files.spectra.parent / "second.tsv").write_bytes(files.spectra.read_bytes())
    with pytest.raises(DatasetError, match="more than one table"):
        find_dataset(files.spectra.parent)


def test_tables_read_back_and_equal_content_makes_equal_files(tmp_path: Path) -> None:
    rows = [row("A", "CCO", "train")]
    for name in ("one", "two"):
        write_table(tmp_path / f"{name}.tsv.gz", rows)
        write_candidates(tmp_path / f"{name}.json.gz", [("CCO", ["CCO", "COC"])])
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()
    (spectrum,) = read_table(tmp_path / "one.tsv.gz", lambda *_: None)
    assert spectrum.identifier == "A"


def test_candidates_in_are_read_or_set_aside_also_beyond_the_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "candidates.json"
    long, many = "C" * 900, "[]," * 90
    path.write_text(f'{{"C": ["C"], "CC": ["{long}"], "N": [{many}1], "O": ["C"]}}')
    monkeypatch.setattr(json_stream, "MAX_MEMBER", 200)
    rejects: list[tuple[str, str]] = []
    lists = dict(read_candidates(path, lambda *pair: rejects.append(pair)))
    assert list(lists) == ["C", "O"]
    assert [where.rpartition(": ")[2] for where, _ in rejects] == ["entry 2", "entry 3"]
    monkeypatch.setattr(candidates_module, "MAX_FAULTS", 2)
    with pytest.raises(DatasetError, match="2 entries in a row could not be read"):
        list(read_candidates(path, lambda *_: None))


@pytest.mark.parametrize(
    ("energy", "expected"), [("30 eV", 30.0), ("nan", math.nan), ("", math.nan), ("ramp", math.nan)]
)
def test_energies_are_numbers_or_not_known(tmp_path: Path, energy: str, expected: float) -> None:
    write_table(tmp_path / "a.tsv.gz", [row("A", "CCO", "train") | {"collision_energy": energy}])
    (found,) = collect(tmp_path / "a.tsv.gz", {}).energies
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("energy", ["1e999", "inf", "1e39", "9" * 5_000])
def test_an_infinite_energy_in_a_table_sets_its_row_aside(tmp_path: Path, energy: str) -> None:
    """Single precision, in which energies are kept, holds no 1e39 either."""
    rows = [row("A", "CCO", "train"), row("B", "CCO", "train") | {"collision_energy": energy}]
    write_table(tmp_path / "a.tsv.gz", rows)
    collected = collect(tmp_path / "a.tsv.gz", {})
    assert collected.identifiers == ["A"]
    assert "is not a finite number" in collected.skipped[0][1]


def test_one_of_several_tables_is_found_with_its_own_lists(tmp_path: Path) -> None:
    for name in ("set", "set_more"):
        (tmp_path / f"{name}.tsv").write_text("identifier\tmzs\tintensities\tsmiles\n")
        (tmp_path / f"{name}_candidates_mass.json").write_text("{}")
    files = dataset_of(tmp_path / "set.tsv")
    assert files.candidates == {"mass": tmp_path / "set_candidates_mass.json"}
    assert dataset_of(tmp_path / "set_more.tsv").candidates == {
        "mass": tmp_path / "set_more_candidates_mass.json"
    }
    with pytest.raises(DatasetError, match=r"none\.tsv: no such file"):
        dataset_of(tmp_path / "none.tsv")


def test_textbook_queries_are_read_without_a_complaint() -> None:
    skipped: list[tuple[str, str]] = []
    spectra = list(read_spectra(DEMO_QUERIES, skipped))
    assert skipped == []
    assert {"caffeine", "quercetin"} <= {spectrum.identifier for spectrum in spectra}
    assert all(s.adduct == "[M+H]+" and s.metadata["smiles"] for s in spectra)


@pytest.mark.slow
@pytest.mark.shared
def test_textbook_queries_look_like_measured_spectra(shared: Path) -> None:
    queries = {s.metadata["inchikey"]: s for s in read_spectra(DEMO_QUERIES, [])}
    best = dict.fromkeys(queries, 0.0)
    for spectrum in read_spectra(shared / "data" / "massbank.tsv.gz", []):
        key = spectrum.metadata["inchikey"]
        if key in queries and spectrum.adduct == "[M+H]+":
            rows = [bin_spectra(queries[key]), bin_spectra(spectrum)]
            norms = [np.sqrt((row.data**2).sum()) for row in rows]
            cosine = (rows[0] @ rows[1].T).toarray()[0, 0] / np.prod(norms)
            best[key] = max(best[key], float(cosine))
    assert min(best.values()) > 0.9, best


def read(path: Path, text: str) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    path.write_text(text)
    rejects: list[tuple[str, str]] = []
    found = dict(read_candidates(path, lambda w, r: rejects.append((w, r))))
    return found, [(where.removeprefix(f"{path}: "), reason) for where, reason in rejects]


def test_a_truth_that_is_listed_twice_keeps_its_first_list_and_says_so(tmp_path: Path) -> None:
    text = '{"CCO": ["CCO", "COC"], "C": ["C"], "CCO": ["CCO", "CCN"], "CCO": ["CCO", "COC"]}'
    found, rejects = read(tmp_path / "a.json", text)
    assert found == {"CCO": ["CCO", "COC"], "C": ["C"]}
    said = "is listed a second time, with {} candidates; the first list is used"
    assert rejects == [
        ("entry 3 (CCO)", said.format("other")),
        ("entry 4 (CCO)", said.format("the same")),
    ]


def test_bad_entries_leave_the_good_ones(tmp_path: Path) -> None:
    digits = "1" * 5000
    text = f'{{"a": "C", "b": [], "c": [1], "d": {digits}, "e": [nonsense], "CCO": ["CCO"]}}'
    found, rejects = read(tmp_path / "a.json", text)
    assert found == {"CCO": ["CCO"]}
    assert [where.split()[1] for where, _ in rejects] == ["1", "2", "3", "4", "5"]
    assert all("\n" not in reason and len(reason) < 150 for _, reason in rejects)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["CCO"]', "holds an array, expected SMILES"),
        ('{"CCO": ["C"', "ends in the middle"),
        ("", "the file is empty"),
        ("hello", "not a JSON array or object"),
    ],
)
def test_files_that_hold_no_lists_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MzseekError, match=message):
        read(tmp_path / "a.json", text)
