import json
import os
from pathlib import Path

import pytest

from mzseek.errors import CacheError, DatasetError
from mzseek.files import content_hash
from mzseek.files.owned import MANIFEST, check_files, ensure_replaceable, kind_of, why_not

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


def test_a_folder_inside_a_source_is_not_replaced(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", data="x")
    with pytest.raises(DatasetError, match="own: lies in the source"):
        ensure_replaceable(folder, KIND, [tmp_path])


@pytest.mark.parametrize("manifest", ['{"kind": "prepared folder", "files": 5}', "[" * 100_000])
def test_odd_manifests_are_nobodys(manifest: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "own", data="x")
    (folder / MANIFEST).write_text(manifest)
    with pytest.raises(DatasetError, match=r"is no prepared folder|which is not its own"):
        ensure_replaceable(folder, KIND, [])


def test_a_folder_of_another_kind_is_called_by_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"kind": "run folder"}')
    with pytest.raises(
        DatasetError, match=r"exists and is no prepared folder \(it is a run folder"
    ):
        ensure_replaceable(tmp_path / "run", KIND, [])


KINDS = ("prepared folder", "molecule database", "run folder", "data set")


@pytest.mark.parametrize("expected", KINDS)
@pytest.mark.parametrize("found", [kind for kind in KINDS if kind != "run folder"])
def test_one_kind_in_the_place_of_another_is_told_with_what_takes_it(
    found: str, expected: str, tmp_path: Path
) -> None:
    folder = made(tmp_path / "it", kind=found, data="x")
    assert kind_of(folder) == found
    if found != expected:
        said = why_not(folder, expected)
        assert said.startswith(f"is a {found}, expected a {expected}; `mzseek ")
        assert "take" in said


def test_what_is_no_folder_of_ours_is_told_with_what_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / MANIFEST).write_text("{}")
    for path, said in (
        (tmp_path / "none", "is no run folder (there is no such folder)"),
        (file, "is a file, expected a run folder (a folder that `mzseek train` makes)"),
        (tmp_path, "is no run folder (run.json is missing); `mzseek train` makes one"),
    ):
        assert why_not(path, "run folder") == said
        assert kind_of(path) is None
    said = why_not(tmp_path / "odd", "molecule database")
    assert "(manifest.json does not say what it is); `mzseek database build` makes one" in said


@pytest.mark.parametrize("name", ["../data", "", ".", "..", "sub/data", "/etc/passwd"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("abc")
    with pytest.raises(CacheError, match="is no name of a file"):
        check_files(tmp_path, {name: {"bytes": 3, "sha256": ""}}, CacheError, "make it again")


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "data"
    path.write_text("abc")
    files = {"data": facts(path)}
    monkeypatch.setattr("mzseek.files.owned._SETTLED", -1.0)  # as if it had been written long ago
    check_files(tmp_path, files, CacheError, "make it again", checksums=True)
    with monkeypatch.context() as patched:
        patched.setattr("mzseek.files.owned.content_hash", lambda path: pytest.fail("read"))
        check_files(tmp_path, files, CacheError, "make it again", checksums=True)
    path.write_text("abd")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    with pytest.raises(CacheError, match="data has changed"):
        check_files(tmp_path, files, CacheError, "make it again", checksums=True)


def test_a_file_that_was_just_written_is_read_every_time(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("abc")
    files = {"data": facts(path)}
    check_files(tmp_path, files, CacheError, "make it again", checksums=True)
    path.write_text("abd")  # so soon that its time may be the same
    with pytest.raises(CacheError, match="data has changed"):
        check_files(tmp_path, files, CacheError, "make it again", checksums=True)


def test_a_name_with_a_line_break_does_not_break_the_line(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", kind="two\nlines", data="x")
    assert kind_of(folder) == repr("two\nlines")
    assert "\n" not in why_not(folder, KIND)
    with pytest.raises(CacheError, match=r"'a\\npy' is no name of a file"):
        check_files(tmp_path, {"a\npy": {"bytes": 3, "sha256": ""}}, CacheError, "make it again")
