import os
from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.io import content_hash
from mzseek.io import sources as source
from mzseek.io.manifest import SourceGuard


def later(path: Path) -> None:
    """Give a file another time, as writing it a moment later would."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def test_sources_that_stay_are_not_read_again(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").write_text("x")
    steady = SourceGuard([tmp_path / "a"])
    assert steady.hashes == {tmp_path / "a": content_hash(tmp_path / "a")}
    monkeypatch.setattr("mzseek.io.manifest.content_hash", lambda path: pytest.fail("read"))
    steady.ensure_unchanged()


def test_another_time_with_the_same_content_is_no_change(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").write_text("x")
    steady = SourceGuard([tmp_path / "a"])
    later(tmp_path / "a")
    read: list[Path] = []
    monkeypatch.setattr(
        "mzseek.io.manifest.content_hash", lambda path: read.append(path) or content_hash(path)
    )
    steady.ensure_unchanged()
    assert read == [tmp_path / "a"]  # its time made it suspect, its content did not


@pytest.mark.parametrize("how", ["longer", "as long", "replaced", "gone"])
def test_a_source_that_changes_is_refused(how: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("abc")
    steady = SourceGuard([path])
    if how == "longer":
        path.write_text("abcd")
    elif how == "as long":
        path.write_text("abd")
        later(path)
    elif how == "replaced":
        (tmp_path / "b").write_text("xyz")
        (tmp_path / "b").rename(path)
    else:
        path.unlink()
    message = "no such file" if how == "gone" else "has changed while it was read"
    with pytest.raises(InputError, match=message):
        steady.ensure_unchanged()


def test_folders_change_with_their_files_but_not_with_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "deep" / "a.mgf").write_text("x")
    steady = SourceGuard([tmp_path / "lib"])
    (tmp_path / "lib" / ".out.lock").write_text("held")
    (tmp_path / "lib" / ".hidden").mkdir()
    (tmp_path / "lib" / ".hidden" / "b.mgf").write_text("y")
    steady.ensure_unchanged()
    assert [p.name for p in source.files_below(tmp_path / "lib")] == ["a.mgf"]
    (tmp_path / "lib" / "c.mgf").write_text("z")
    with pytest.raises(InputError, match="lib: has changed while it was read"):
        steady.ensure_unchanged()
