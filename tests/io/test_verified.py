"""A file whose checksum was compared is not read again before it changes, in any process."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mzseek.io import manifest as verified
from mzseek.io.manifest import changed_file

SUM = sha256(b"abc").hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, for files that count as written long ago."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(verified, "_SETTLED", -1.0)
    monkeypatch.setattr(verified, "_verified", {})
    return tmp_path / "cache" / "mzseek" / "verified.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data").write_bytes(b"abc")
    return tmp_path / "data"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be another process."""
    monkeypatch.setattr(verified, "_verified", {})
    monkeypatch.setattr(verified, "_lists_read", set())


def test_another_process_need_not_read_it(cache, file, monkeypatch) -> None:
    assert changed_file({file: SUM}) is None
    assert len(json.loads(cache.read_text())) == 1
    forget(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(verified, "content_hash", lambda path: pytest.fail("read"))
        assert changed_file({file: SUM}) is None
    reads = []
    monkeypatch.setattr(verified, "content_hash", lambda path: reads.append(path) or SUM)
    assert changed_file({file: SUM}, anew=True) is None
    assert reads == [file]


def test_a_change_is_noticed_though_size_and_time_are_put_back(cache, file, monkeypatch) -> None:
    assert changed_file({file: SUM}) is None
    before = file.stat()
    file.write_bytes(b"abd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    forget(monkeypatch)
    assert changed_file({file: SUM}) == file


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"1:2": 3}', b"\xff", b"[" * 99_999])
def test_a_damaged_list_is_written_anew(cache, file, content: bytes) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(content)
    assert changed_file({file: SUM}) is None
    assert SUM in cache.read_text()


def test_it_works_without_a_home_and_where_nothing_can_be_written(
    cache, file, tmp_path, monkeypatch
) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    assert changed_file({file: SUM}) is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    forget(monkeypatch)
    assert changed_file({file: SUM}) is None
    assert changed_file({file: "0" * 64}) == file
    assert not (tmp_path / "missing").exists()


def test_the_list_does_not_grow_without_end(cache, file, monkeypatch) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(json.dumps({f"1:{n}": [1, 1, 1, "x"] for n in range(5_000)}))
    assert changed_file({file: SUM}) is None
    assert len(json.loads(cache.read_text())) == 1_000
    assert SUM in cache.read_text()


def test_two_processes_may_write_at_once(cache, tmp_path) -> None:
    code = (
        "import sys; from pathlib import Path; from mzseek.io import manifest as verified\n"
        "verified._SETTLED = -1.0\n"
        "for n in range(40):\n"
        "    path = Path(sys.argv[1], f'{sys.argv[2]}-{n}'); path.write_bytes(b'abc')\n"
        f"    assert verified.changed_file({{path: '{SUM}'}}) is None\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    listed = json.loads(cache.read_text())
    assert 40 <= len(listed) <= 80
    assert list(cache.parent.iterdir()) == [cache]
