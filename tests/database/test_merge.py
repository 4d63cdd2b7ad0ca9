from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.database import build as module
from mzseek.database.build import merge_equal, merge_parts
from mzseek.database.records import part_schema
from mzseek.parallel import silent

LISTS = ("sources", "identifiers", "names")
LISTED = st.lists(st.sampled_from("uvwxyz"), max_size=4, unique=True)
ROW = st.fixed_dictionaries(
    {
        "key": st.sampled_from("ABC"),
        "mass": st.sampled_from([10.0, 10.000001, 20.0, 30.5]),
        **dict.fromkeys(LISTS, LISTED),
    }
)


def table_of(rows: list[dict], first: int = 0) -> pa.Table:
    """A part: rows in the order of their masses, with places in the order given."""
    schema = part_schema("maccs")
    filled = [
        {
            "smiles": f"smiles {first + n}", "formula": "C", "bits": n % 100,
            "fingerprint": bytes(schema.field("fingerprint").type.byte_width),
            "sources": [], "identifiers": [], "names": [], "place": first + n, **row,
        }
        for n, row in enumerate(rows)
    ]  # fmt: skip
    return pa.Table.from_pylist(sorted(filled, key=lambda row: row["mass"]), schema=schema)


class TablePart:
    """A part in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @property
    def masses(self) -> np.ndarray:
        return self.table["mass"].to_numpy()

    def rows(self, start: int, end: int) -> pa.Table:
        return self.table.slice(start, end - start)


def merge(tables: list[pa.Table], path: Path, progress=silent) -> list[float]:
    parts = [TablePart(table) for table in tables]
    return merge_parts(parts, tables[0].schema, path, progress).tolist()


def merged_plainly(rows: list[dict]) -> list[dict]:
    """What merging has to give, by way of a dictionary."""
    found: dict[tuple[float, str], dict] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        first = found.setdefault((row["mass"], row["key"]), {**row, **{n: [] for n in LISTS}})
        for name in LISTS:
            first[name] = list(dict.fromkeys([*first[name], *row[name]]))
    return [found[where] for where in sorted(found)]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROW_GROUP", 3)
    monkeypatch.setattr(module, "_SLICE", 4)
    monkeypatch.setattr(module, "_SAMPLE", 2)


@given(st.lists(ROW, max_size=25))
def test_equal_rows_are_merged_as_a_dictionary_would(rows: list[dict]) -> None:
    table = table_of(rows)
    assert merge_equal(table).to_pylist() == merged_plainly(table.to_pylist())


@given(parts=st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=4), data=st.data())
def test_parts_become_one_sorted_file(
    parts: list[list[dict]], data, tmp_path_factory: pytest.TempPathFactory
) -> None:
    starts = np.cumsum([0, *map(len, parts)])
    tables = [table_of(rows, int(first)) for rows, first in zip(parts, starts, strict=False)]
    path = tmp_path_factory.mktemp("merge") / "molecules.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW_GROUP", data.draw(st.integers(1, 5)))
        patch.setattr(module, "_SLICE", data.draw(st.integers(1, 8)))
        patch.setattr(module, "_SAMPLE", data.draw(st.integers(1, 4)))
        masses = merge(tables, path)
    expected = merged_plainly([row for table in tables for row in table.to_pylist()])
    for row in expected:
        del row["place"]
    assert masses == [row["mass"] for row in expected]
    assert pq.read_table(path).to_pylist() == expected


@given(
    st.lists(st.lists(st.integers(1, 8).map(float), max_size=20), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_slices_cover_all_and_never_part_equal_masses(masses: list[list[float]], size: int) -> None:
    arrays = [np.sort(np.array(each)) for each in masses]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SLICE", size)
        patch.setattr(module, "_SAMPLE", 2)
        slices = list(module._slices(arrays, sum(map(len, arrays))))
    assert slices[0][0] == -np.inf
    assert slices[-1][1] == np.inf
    assert all(high == low for (_, high), (low, _) in pairwise(slices))
    held = [[mass for each in arrays for mass in each if low <= mass < high]
            for low, high in slices]  # fmt: skip
    assert sum(map(len, held)) == sum(map(len, arrays))
    assert sum(len(set(each)) for each in held) == len({m for each in masses for m in each})


@pytest.mark.usefixtures("tiny")
def test_row_groups_are_full_but_the_last(tmp_path: Path) -> None:
    tables = [table_of([{"key": f"K{n:02}", "mass": float(n % 7)} for n in range(11)])]
    assert len(merge(tables, tmp_path / "m.parquet")) == 11
    groups = pq.ParquetFile(tmp_path / "m.parquet").metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [3, 3, 3, 2]


@pytest.mark.usefixtures("tiny")
def test_the_first_record_describes_and_lists_have_no_repeats(tmp_path: Path) -> None:
    same = {"key": "A", "mass": 1.0}
    first = table_of([{**same, "smiles": "late", "names": ["x"], "sources": ["b"]}], first=9)
    second = table_of([{**same, "smiles": "early", "names": ["y", "x"], "sources": ["b"]}])
    merge([first, second], tmp_path / "m.parquet")
    [row] = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert (row["smiles"], row["names"], row["sources"]) == ("early", ["y", "x"], ["b"])


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    tables = [table_of([{"key": "A", "mass": 1.0}, {"key": "A", "mass": 1.0}])] * 2
    merge(tables, tmp_path / "m.parquet", lambda *each: seen.append(each))
    assert seen[-1] == ("merging", 4, 4)
