import json
from pathlib import Path

import pytest

from mzseek.errors import CacheError, DatasetError
from mzseek.files import content_hash
from mzseek.files.owned import MANIFEST, check_files, ensure_replaceable

KIND = "prepared folder"


def made(folder: Path, kind: str = KIND, **files: str) -> Path:
    """A folder with a manifest that lists these files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    manifest = {"kind": kind, "files": {name: {} for name in files}}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def refused(folder: Path) -> str:
    """Why a folder may not be replaced, or nothing."""
    try:
        ensure_replaceable(folder, KIND, [])
    except DatasetError as error:
        return str(error)
    return ""


def test_nothing_an_empty_folder_and_an_own_one_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    made(tmp_path / "own", data="x")
    for name in ("none", "empty", "own"):
        assert refused(tmp_path / name) == ""


def test_what_someone_else_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DatasetError, match="is a file, expected a folder"):
        ensure_replaceable(tmp_path / "file", KIND, [])
    other = made(tmp_path / "other", kind="run folder", data="x")
    with pytest.raises(DatasetError, match="exists and is no prepared folder"):
        ensure_replaceable(other, KIND, [])
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "thesis.tex").write_text("x")
    with pytest.raises(DatasetError, match="exists and is no prepared folder"):
        ensure_replaceable(tmp_path / "plain", KIND, [])


def test_a_file_that_was_put_into_an_own_folder_is_kept(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", data="x")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match=r"holds notes\.txt, which is not its own"):
        ensure_replaceable(folder, KIND, [])


def test_a_source_inside_is_not_overwritten(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", data="x")
    with pytest.raises(DatasetError, match="holds the source data"):
        ensure_replaceable(folder, KIND, [folder / "data"])


def test_a_damaged_manifest_is_nobodys(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", data="x")
    (folder / MANIFEST).write_text("{")
    with pytest.raises(DatasetError, match="exists and is no prepared folder"):
        ensure_replaceable(folder, KIND, [])


def facts(path: Path) -> dict[str, object]:
    return {"bytes": path.stat().st_size, "sha256": content_hash(path)}


@pytest.mark.parametrize(
    ("damage", "checksums", "reason"),
    [
        (lambda path: path.unlink(), False, "data is missing; make it again"),
        (lambda path: path.write_text("ab"), False, "data has 2 bytes, expected 3; make it again"),
        (lambda path: path.write_text("abx"), True, "data has changed; make it again"),
    ],
    ids=["missing", "cut short", "changed"],
)
def test_damaged_files_are_noticed(damage, checksums: bool, reason: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("abc")
    files = {"data": facts(tmp_path / "data")}
    damage(tmp_path / "data")
    with pytest.raises(CacheError, match=reason):
        check_files(tmp_path, files, CacheError, "make it again", checksums=checksums)
