import json
from pathlib import Path

import pytest

from mzseek.core.errors import DatasetError
from mzseek.io.manifest import MANIFEST, ensure_replaceable

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
