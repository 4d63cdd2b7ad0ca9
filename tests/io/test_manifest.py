import json
import os
from pathlib import Path

import pytest

from mzseek.core.errors import CacheError
from mzseek.io import content_hash
from mzseek.io.manifest import MANIFEST, Manifest, kind_of, why_not

KIND = "prepared folder"
FORM = Manifest(KIND, CacheError, "make it again", {"options": {"a": int}}, versions=(1, 2))


def made(folder: Path, kind: str = KIND, **files: str) -> Path:
    """A folder with a manifest that lists these files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    manifest = {"kind": kind, "files": {name: {} for name in files}}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


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
        FORM.check_files(tmp_path, {"files": files}, checksums=checksums)


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
        FORM.check_files(tmp_path, {"files": {name: {"bytes": 3, "sha256": ""}}})


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "data"
    path.write_text("abc")
    files = {"data": facts(path)}
    monkeypatch.setattr("mzseek.io.manifest._SETTLED", -1.0)  # as if written long ago
    FORM.check_files(tmp_path, {"files": files}, checksums=True)
    with monkeypatch.context() as patched:
        patched.setattr("mzseek.io.manifest.content_hash", lambda path: pytest.fail("read"))
        FORM.check_files(tmp_path, {"files": files}, checksums=True)
    path.write_text("abd")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    with pytest.raises(CacheError, match="data has changed"):
        FORM.check_files(tmp_path, {"files": files}, checksums=True)


def test_a_file_that_was_just_written_is_read_every_time(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("abc")
    files = {"data": facts(path)}
    FORM.check_files(tmp_path, {"files": files}, checksums=True)
    path.write_text("abd")  # so soon that its time may be the same
    with pytest.raises(CacheError, match="data has changed"):
        FORM.check_files(tmp_path, {"files": files}, checksums=True)


def test_a_name_with_a_line_break_does_not_break_the_line(tmp_path: Path) -> None:
    folder = made(tmp_path / "own", kind="two\nlines", data="x")
    assert kind_of(folder) == repr("two\nlines")
    assert "\n" not in why_not(folder, KIND)
    with pytest.raises(CacheError, match=r"'a\\npy' is no name of a file"):
        FORM.check_files(tmp_path, {"files": {"a\npy": {"bytes": 3, "sha256": ""}}})


def test_what_is_written_is_read_and_lists_every_file(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name * 3)
    written = FORM.write(tmp_path, {"options": {"a": 1}})
    assert FORM.read(tmp_path) == written
    assert list(written) == ["kind", "format_version", "options", "files"]
    assert (written["kind"], written["format_version"]) == (KIND, 2)
    assert written["files"] == {name: facts(tmp_path / name) for name in ("a", "b")}
    FORM.check_files(tmp_path, written, checksums=True)
    again = FORM.write(tmp_path, {"options": {"a": 1}})  # the manifest does not list itself
    assert again == written


def test_versions_that_are_not_known_are_refused(tmp_path: Path) -> None:
    for version in (1, 2):
        FORM.write(tmp_path, {"options": {"a": 1}, "format_version": version})
        assert FORM.read(tmp_path)["format_version"] == version
    FORM.write(tmp_path, {"options": {"a": 1}, "format_version": 3})
    said = r"written in format 3, expected 1 or 2; make it again"
    with pytest.raises(CacheError, match=said):
        FORM.read(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"kind": "data set"}, "is a data set, expected a prepared folder"),
        ({"format_version": 1}, "does not say what it is"),
        ({"kind": KIND, "format_version": 1, "files": {}}, "lacks 'options'; make it again"),
        ({"kind": KIND, "format_version": 1, "options": {"a": 1}}, "lacks 'files'"),
        (
            {"kind": KIND, "format_version": 1, "options": {"a": 1}, "files": {"x": {"bytes": -1}}},
            r"files\.x\.bytes is -1",
        ),
    ],
)
def test_what_is_no_such_manifest_is_refused(manifest: dict, reason: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CacheError, match=reason):
        FORM.read(tmp_path)


def test_a_manifest_in_use_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    before = FORM.write(tmp_path, {"options": {"a": 1}})
    with pytest.raises(TypeError):
        FORM.replace(tmp_path, before | {"options": {"a": object()}})
    assert FORM.read(tmp_path) == before
    FORM.replace(tmp_path, before | {"options": {"a": 2}})
    assert FORM.read(tmp_path)["options"] == {"a": 2}
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
