from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mzseek.core.errors import InputError

from ..conftest import read, read_as, shown


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    table = pa.table(
        {
            "mass": [1.0, 2.0, 3.0],
            "Title": pa.array(["ethanol", None, "x"]).dictionary_encode(),
            "SMILES": ["CCO", "", "CCN"],
            "cid": [702.0, None, 7.0],
            "source": ["", "b", b"hmdb".decode()],
        }
    )
    pq.write_table(table, path)
    records, rejects = read(path)
    assert shown(records) == [("CCO", "702", "ethanol"), ("CCN", "7", "x")]
    assert [(r.source, r.where) for r in records] == [
        ("pool", f"{path}: record 1"), ("hmdb", f"{path}: record 3"),
    ]  # fmt: skip
    assert rejects == [("record 2", "has no molecule")]
    records, _ = read(path, columns={"name": "SMILES", "id": "mass"})
    assert shown(records)[0] == ("CCO", "1", "CCO")
    with pytest.raises(InputError, match=r"no column is called smiles, .*; it has 'mass', 'Title'"):
        pq.write_table(table.select(["mass", "Title"]), path)
        read(path)
    with pytest.raises(InputError, match="damaged or cut short"):
        path.write_bytes(path.read_bytes()[:-30])
        read(path)


def texts(*values: bytes) -> pa.Array:
    """A column of text that nobody has looked at."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


@pytest.mark.parametrize("column", ["smiles", "name"])
def test_parquet_rows_that_are_no_utf8_are_set_aside(tmp_path: Path, column: str) -> None:
    table = {"smiles": texts(b"CCO", b"CCN"), "name": texts(b"x", b"y")}
    table[column] = texts(b"CCO", b"C\xff\xfe")
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert [r.text for r in records] == ["CCO"]
    assert rejects == [("record 2", "holds text that is no UTF-8 (at byte 2)")]


def test_parquet_texts_without_bounds_are_set_aside(tmp_path: Path) -> None:
    table = pa.table({"smiles": ["CCO", "C" * 2_000_000, "CCN"]})
    pq.write_table(table, tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert [r.text for r in records] == ["CCO", "CCN"]
    assert rejects == [("record 2", "holds a text longer than 1,000,000 characters")]


@pytest.mark.parametrize(
    "smiles",
    [
        pa.array(["CCO"], pa.large_string()), pa.array(["CCO"], pa.string_view()),
        pa.array([b"CCO"], pa.binary()), pa.array([b"CCO"], pa.large_binary()),
        pa.array([b"CCO"], pa.binary(3)), pa.array(["CCO"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_parquet_text_of_any_type(tmp_path: Path, smiles: pa.Array) -> None:
    number = pa.array([7], pa.uint8())
    pq.write_table(pa.table({"smiles": smiles, "cid": number}), tmp_path / "a.parquet")
    assert shown(read(tmp_path / "a.parquet")[0]) == [("CCO", "7", "")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"smiles": [1, 2]}, "column 'smiles' holds int64, expected text$"),
        ({"smiles": [["CCO"]]}, "column 'smiles' holds list<.*>, expected text$"),
        ({"smiles": ["CCO"], "name": [{"a": 1}]}, "'name' holds struct<.*>, expected text or numb"),
        ({"smiles": ["C"], "id": pa.array([1], pa.timestamp("s"))}, "'id' holds timestamp"),
    ],
)
def test_parquet_columns_of_something_else_are_refused(
    tmp_path: Path, table: dict, message: str
) -> None:
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet")


def test_parquet_of_nothing_but_nulls_has_no_molecules(tmp_path: Path) -> None:
    pq.write_table(pa.table({"smiles": pa.nulls(2), "name": pa.nulls(2)}), tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert (records, {reason for _, reason in rejects}) == ([], {"has no molecule"})


@pytest.mark.parametrize("names", [["smiles", "smiles"], ["smiles", "SMILES"]])
def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path: Path, names: list[str]) -> None:
    pq.write_table(pa.table([pa.array(["C"])] * 2, names=names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"columns 1 \(.*\) and 2 \(.*\) have one name"):
        read(tmp_path / "a.parquet")


def test_encrypted_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is encrypted Parquet"):
        read_as(tmp_path / "a.parquet", b"PARE\0\0\0\0PARE")


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"smiles": [f"C{n}" for n in range(10_000)]}), path)
    records, _ = read(path)
    assert [r.text for r in records] == [f"C{n}" for n in range(10_000)]
    assert records[-1].where.endswith("record 10000")
