from pathlib import Path

import pytest

from mzseek.errors import CacheError
from mzseek.files import read_object


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
