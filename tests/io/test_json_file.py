from pathlib import Path

import pytest

from mzseek.core.errors import CacheError
from mzseek.io import read_object
from mzseek.io.manifest import check_fields


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b'{"a": 1', "is damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "is damaged"),
        (b"[1, 2]", "holds a list, expected a JSON object"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(CacheError, match=reason) as caught:
        read_object(path, CacheError, "build it again")
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith("; build it again")
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_in_their_place(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="is missing"):
        read_object(tmp_path / "none.json", CacheError)
    with pytest.raises(CacheError, match="cannot be read"):
        read_object(tmp_path, CacheError)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, "ü"]}', encoding="utf-8")
    assert read_object(tmp_path / "a.json", CacheError) == {"a": [1, "ü"]}


FIELDS = {
    "name": str,
    "count": int,
    "share": float,
    "open": bool,
    "limit?": int | None,
    "lists": [{"size": int}],
    "files": {...: {"bytes": int}},
}
GOOD = {
    "name": "a", "count": 3, "share": 1, "open": False, "lists": [{"size": 0}],
    "files": {"x": {"bytes": 1}}, "more": object(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": 1}, "name is 1, expected a text"),
        ({"count": True}, "count is True, expected a whole number of 0 or more"),
        ({"count": -1}, "count is -1, expected a whole number"),
        ({"count": 1.5}, "count is 1.5, expected a whole number"),
        ({"count": 2**70}, "expected a whole number"),
        ({"share": "1"}, "share is '1', expected a number"),
        ({"share": True}, "share is True, expected a number"),
        ({"open": 0}, "open is 0, expected true or false"),
        ({"limit": "3"}, "limit is '3', expected a whole number of 0 or more or nothing"),
        ({"lists": {}}, "lists is {}, expected a list"),
        ({"lists": [{"size": 1}, {}]}, "lacks 'lists[1].size'"),
        ({"files": []}, "files is [], expected an object"),
        ({"files": {"a.b": 3}}, "files.a.b is 3, expected an object"),
        ({"files": {"y": {"bytes": None}}}, "files.y.bytes is None, expected a whole number"),
        ({"name": "x" * 900, "count": []}, "count is [], expected"),
    ],
)
def test_a_field_of_another_type_is_named(change: dict, said: str) -> None:
    with pytest.raises(CacheError) as caught:
        check_fields(GOOD | change, FIELDS, "m.json", CacheError, "make it again")
    assert str(caught.value).startswith("m.json: ")
    assert said in str(caught.value)
    assert str(caught.value).endswith("; make it again")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", [name for name in FIELDS if not name.endswith("?")])
def test_a_missing_field_is_named(name: str) -> None:
    found = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(CacheError, match=f"m.json: lacks '{name}'"):
        check_fields(found, FIELDS, "m.json", CacheError)


def test_fields_as_expected_pass() -> None:
    check_fields(GOOD, FIELDS, "m.json", CacheError)
    check_fields(GOOD | {"limit": None, "share": 0.5, "files": {}}, FIELDS, "m.json", CacheError)
    check_fields({"a": None}, {"a": float | None}, "m.json", CacheError)


def test_names_that_cannot_be_shown_are_refused_in_one_line() -> None:
    with pytest.raises(CacheError) as caught:  # as a damaged `a.npy` becomes
        check_fields({"files": {"a\npy": {}}}, {"files": {...: dict}}, "m.json", CacheError)
    expected = "m.json: has a field 'a\\npy', expected a printable name"
    assert str(caught.value) == expected
