"""Manifests, checksums, source guards and overwrite protection."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mzseek.core.errors import CacheError, DatasetError, InputError
from mzseek.io import content_hash, read_object
from mzseek.io import manifest as module
from mzseek.io.manifest import (
    MANIFEST,
    Manifest,
    SourceGuard,
    changed_file,
    check_fields,
    ensure_replaceable,
    kind_of,
    measured,
    why_not,
)

KIND = "prepared folder"
FORM = Manifest(KIND, CacheError, "make it again", {"options": {"a": int}}, versions=(1, 2))


def make_folder(folder: Path, kind: str = KIND, **files: str) -> Path:
    """A folder with a manifest that lists these files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    manifest = {"kind": kind, "files": {name: {} for name in files}}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b'{"a": 1', "is damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "is damaged"),
        (b"[1, 2]", "holds a list"),
    ],
    ids=["empty", "no text", "cut", "deep", "digits", "list"],
)
def test_damaged_json_is_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
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
    (tmp_path / "a.json").write_text('{"a": [1, "ü"]}', encoding="utf-8")
    assert read_object(tmp_path / "a.json", CacheError) == {"a": [1, "ü"]}


FIELDS = {
    "name": str, "count": int, "share": float, "open": bool, "limit?": int | None,
    "lists": [{"size": int}], "files": {...: {"bytes": int}},
}  # fmt: skip
VALID = {
    "name": "a", "count": 3, "share": 1, "open": False, "lists": [{"size": 0}],
    "files": {"x": {"bytes": 1}}, "more": object(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
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
        ({"files": {"a\npy": {}}}, "has a field 'a\\npy'"),  # as a damaged `a.npy` becomes
        ({"name": "x" * 900, "count": []}, "count is [], expected"),
    ],
)
def test_a_field_of_another_type_is_named(change: dict, reason: str) -> None:
    with pytest.raises(CacheError) as caught:
        check_fields(VALID | change, FIELDS, "m.json", CacheError, "make it again")
    assert str(caught.value).startswith("m.json: ")
    assert reason in str(caught.value)
    assert str(caught.value).endswith("; make it again")
    assert len(str(caught.value)) < 200


def test_missing_fields_are_named_and_valid_ones_pass() -> None:
    for name in FIELDS:
        without = {key: value for key, value in VALID.items() if key != name}
        if not name.endswith("?"):
            with pytest.raises(CacheError, match=f"m.json: lacks '{name}'"):
                check_fields(without, FIELDS, "m.json", CacheError)
    more = {"limit": None, "share": 0.5, "files": {}}
    check_fields(VALID | more, FIELDS, "m.json", CacheError)
    check_fields({"a": None}, {"a": float | None}, "m.json", CacheError)


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
    manifest = {"files": {"data": measured(tmp_path / "data")}}
    FORM.check_files(tmp_path, manifest, checksums=True)
    damage(tmp_path / "data")  # so soon that its time may be the same
    with pytest.raises(CacheError, match=reason):
        FORM.check_files(tmp_path, manifest, checksums=checksums)


@pytest.mark.parametrize("expected", ["prepared folder", "molecule database", "run folder"])
@pytest.mark.parametrize("kind", ["prepared folder", "molecule database", "data set"])
def test_one_kind_in_the_place_of_another_is_named_with_its_use(
    kind: str, expected: str, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "it", kind=kind, data="x")
    assert kind_of(folder) == kind
    if kind != expected:
        reason = why_not(folder, expected)
        assert reason.startswith(f"is a {kind}, expected a {expected}; `mzseek ")
        assert "take" in reason


def test_what_is_no_folder_of_mzseek_is_named_with_what_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / MANIFEST).write_text("{}")
    for path, reason in (
        (tmp_path / "none", "is no run folder (there is no such folder)"),
        (file, "is a file, expected a run folder (a folder that `mzseek train` makes)"),
        (tmp_path, "is no run folder (run.json is missing); `mzseek train` makes one"),
    ):
        assert why_not(path, "run folder") == reason
        assert kind_of(path) is None
    reason = why_not(tmp_path / "odd", "molecule database")
    assert "(manifest.json does not say what it is); `mzseek database build` makes one" in reason
    folder = make_folder(tmp_path / "two", kind="two\nlines", data="x")
    assert kind_of(folder) == repr("two\nlines")
    assert "\n" not in why_not(folder, KIND)


@pytest.mark.parametrize("name", ["../data", "", ".", "..", "sub/data", "/etc/passwd", "a\npy"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("abc")
    with pytest.raises(CacheError, match="is no name of a file") as caught:
        FORM.check_files(tmp_path, {"files": {name: {"bytes": 3, "sha256": ""}}})
    assert "\n" not in str(caught.value)


def test_what_is_written_is_read_and_lists_every_file(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name * 3)
    written = FORM.write(tmp_path, {"options": {"a": 1}})
    assert FORM.read(tmp_path) == written
    assert list(written) == ["kind", "format_version", "options", "files"]
    assert (written["kind"], written["format_version"]) == (KIND, 2)
    assert written["files"] == {name: measured(tmp_path / name) for name in ("a", "b")}
    FORM.check_files(tmp_path, written, checksums=True)
    again = FORM.write(tmp_path, {"options": {"a": 1}})  # the manifest does not list itself
    assert again == written
    for version in (1, 2):
        FORM.write(tmp_path, {"options": {"a": 1}, "format_version": version})
        assert FORM.read(tmp_path)["format_version"] == version


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"kind": "data set"}, "is a data set, expected a prepared folder"),
        ({"format_version": 1}, "does not say what it is"),
        ({"kind": KIND, "format_version": 3}, "written in format 3, expected 1 or 2; make it"),
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


SUM = sha256(b"abc").hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty list of verified files, which count as written long ago."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_SETTLED", -1.0)
    return tmp_path / "cache" / "mzseek" / "verified.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data").write_bytes(b"abc")
    return tmp_path / "data"


def forget() -> None:
    """Be another process."""
    module._verified.cache_clear()


def test_a_verified_file_is_not_read_again_also_by_another_process(
    cache, file, monkeypatch
) -> None:
    assert changed_file({file: SUM}) is None
    assert len(json.loads(cache.read_text())) == 1
    with monkeypatch.context() as patched:
        patched.setattr(module, "content_hash", lambda path: pytest.fail("read"))
        assert changed_file({file: SUM}) is None
        forget()
        assert changed_file({file: SUM}) is None
    reads = []
    monkeypatch.setattr(module, "content_hash", lambda path: reads.append(path) or SUM)
    assert changed_file({file: SUM}, anew=True) is None
    assert reads == [file]


def test_a_change_is_noticed_though_size_and_time_are_put_back(cache, file, monkeypatch) -> None:
    assert changed_file({file: SUM}) is None
    before = file.stat()
    file.write_bytes(b"abd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    forget()
    assert changed_file({file: SUM}) == file


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b'{"1:2": 3}', b"\xff", b"[" * 99_999,
     json.dumps({f"1:{n}": [1, 1, 1, "x"] for n in range(5_000)}).encode()],
    ids=["empty", "cut", "list", "odd", "no text", "deep", "long"],
)  # fmt: skip
def test_a_damaged_or_long_list_is_written_anew(cache, file, content: bytes) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(content)
    assert changed_file({file: SUM}) is None
    assert SUM in cache.read_text()
    assert len(json.loads(cache.read_text())) <= 1_000


def test_files_are_verified_without_a_home_and_where_nothing_can_be_written(
    cache, file, tmp_path, monkeypatch
) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    assert changed_file({file: SUM}) is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    forget()
    assert changed_file({file: SUM}) is None
    assert changed_file({file: "0" * 64}) == file
    assert not (tmp_path / "missing").exists()


def test_two_processes_may_write_the_list_at_once(cache, tmp_path) -> None:
    code = (
        "import sys; from pathlib import Path; from mzseek.io import manifest\n"
        "manifest._SETTLED = -1.0\n"
        "for n in range(40):\n"
        "    path = Path(sys.argv[1], f'{sys.argv[2]}-{n}'); path.write_bytes(b'abc')\n"
        f"    assert manifest.changed_file({{path: '{SUM}'}}) is None\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    assert 40 <= len(json.loads(cache.read_text())) <= 80
    assert list(cache.parent.iterdir()) == [cache]


def touch_later(path: Path) -> None:
    """Give a file another time, as writing it a moment later would."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def test_sources_are_read_again_only_if_their_time_differs(file, monkeypatch) -> None:
    guard = SourceGuard([file])
    assert guard.hashes == {file: content_hash(file)}
    reads: list[Path] = []
    monkeypatch.setattr(
        module, "content_hash", lambda path: reads.append(path) or content_hash(path)
    )
    guard.ensure_unchanged()
    assert reads == []
    touch_later(file)
    guard.ensure_unchanged()
    assert reads == [file]  # its time made it suspect, its content did not


@pytest.mark.parametrize("how", ["longer", "as long", "replaced", "gone"])
def test_a_source_that_changes_is_refused(how: str, file: Path, tmp_path: Path) -> None:
    guard = SourceGuard([file])
    if how == "gone":
        file.unlink()
    elif how == "replaced":
        (tmp_path / "b").write_text("xyz")
        (tmp_path / "b").rename(file)
    else:
        file.write_text("abcd" if how == "longer" else "abd")
        touch_later(file)
    message = "no such file" if how == "gone" else "has changed while it was read"
    with pytest.raises(InputError, match=message):
        guard.ensure_unchanged()


def test_folders_change_with_their_files_but_not_with_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "deep" / "a.mgf").write_text("x")
    guard = SourceGuard([tmp_path / "lib"])
    (tmp_path / "lib" / ".out.lock").write_text("held")
    (tmp_path / "lib" / ".hidden").mkdir()
    (tmp_path / "lib" / ".hidden" / "b.mgf").write_text("y")
    guard.ensure_unchanged()
    (tmp_path / "lib" / "c.mgf").write_text("z")
    with pytest.raises(InputError, match="lib: has changed while it was read"):
        guard.ensure_unchanged()


def test_nothing_an_empty_folder_and_an_own_one_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_folder(tmp_path / "own", data="x")
    for name in ("none", "empty", "own"):
        ensure_replaceable(tmp_path / name, KIND, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "own"]


def test_what_mzseek_did_not_write_is_not_replaced(tmp_path: Path) -> None:
    def refused(folder: Path, reason: str, sources=()) -> None:
        with pytest.raises(DatasetError, match=reason):
            ensure_replaceable(folder, KIND, sources)

    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file, expected a folder")
    refused(make_folder(tmp_path / "other", kind="run folder", data="x"), "is no prepared folder")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "thesis.tex").write_text("x")
    refused(tmp_path / "plain", "exists and is no prepared folder")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"kind": "run folder"}')
    refused(tmp_path / "run", r"is no prepared folder \(it is a run folder")
    folder = make_folder(tmp_path / "own", data="x")
    refused(folder, "holds the source data", [folder / "data"])
    refused(folder, "own: lies in the source", [tmp_path])
    (folder / "notes.txt").write_text("mine")
    refused(folder, r"holds notes\.txt, which is not its own")
    for manifest in ("{", '{"kind": "prepared folder", "files": 5}', "[" * 100_000):
        (folder / MANIFEST).write_text(manifest)
        refused(folder, r"is no prepared folder|which is not its own")
