import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.io import LongLine, content_hash, open_source, text_lines
from mzseek.io import sources as source


def lines_of(data: bytes) -> list[str]:
    return [line for _, line in text_lines(io.BytesIO(data))]


@given(st.lists(st.text(alphabet="aé \t\x0c\u2028=1", max_size=8), min_size=1, max_size=8))
def test_lines_are_those_written(texts: list[str]) -> None:
    assert lines_of(("\n".join(texts) + "\n").encode()) == [text + "\n" for text in texts]


def test_line_ends_of_all_systems() -> None:
    assert lines_of(b"a\r\nb\rc\n") == ["a\n", "b\n", "c\n"]


def test_numbers_run_on_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_BLOCK", 3)
    assert list(text_lines(io.BytesIO(b"one\ntwo\nthree"))) == [
        (1, "one\n"),
        (2, "two\n"),
        (3, "three"),
    ]


def test_a_cut_last_line_has_no_end() -> None:
    assert lines_of(b"whole\ncu") == ["whole\n", "cu"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_met_in_the_wild(encoding: str) -> None:
    assert lines_of("NAME=naïve\nPEPMASS=1\n".encode(encoding)) == ["NAME=naïve\n", "PEPMASS=1\n"]


def test_one_latin_1_line_leaves_the_others_utf_8() -> None:
    data = "é\n".encode() + "é\n".encode("latin-1") + "é\n".encode()
    assert lines_of(data) == ["é\n", "é\n", "é\n"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("length", range(8, 36))
def test_a_line_past_the_bound_is_marked_and_the_next_are_read(
    monkeypatch: pytest.MonkeyPatch, length: int, end: bytes
) -> None:
    monkeypatch.setattr(source, "MAX_LINE", 20)
    monkeypatch.setattr(source, "_BLOCK", 4)
    monkeypatch.setattr(source, "_SHOWN", 5)
    data = b"first" + end + b"x" * length + end + b"next" + end + end + b"last"
    lines = list(text_lines(io.BytesIO(data)))
    shown = "x" * length if length <= 20 else "xxxxx"
    assert isinstance(lines[1][1], LongLine) == (length > 20)
    expected = ["first\n", shown + "\n", "next\n", "\n", "last"]
    assert lines == list(enumerate(expected, 1))


def test_an_endless_line_takes_no_memory() -> None:
    class Endless:
        def __init__(self) -> None:
            self.left = 200

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return b"x" * size if self.left >= 0 else b""

    tracemalloc.start()
    (line,) = text_lines(Endless())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(line[1], LongLine)
    assert not line[1].endswith("\n")  # the file ended inside it
    assert peak < 20_000_000


def test_gzip_is_known_by_content(tmp_path: Path) -> None:
    path = tmp_path / "file.mgf"  # a wrong name on purpose
    path.write_bytes(gzip.compress(b"hello"))
    with open_source(path).open() as stream:
        assert stream.read() == b"hello"
    renamed = tmp_path / "file.mgf.gz"
    path.rename(renamed)
    assert open_source(renamed).suffix == ".mgf"
    assert open_source(str(renamed)).suffix == ".mgf"


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_source(tmp_path / "absent")
    with pytest.raises(InputError, match="is a folder"):
        open_source(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty"):
        open_source(tmp_path / "empty")


def test_pipes_are_refused_since_their_head_would_be_lost(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or device"):
        open_source(tmp_path / "pipe")


def test_damage_met_while_reading_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(os.urandom(5000))[:-100])
    with (
        pytest.raises(InputError, match="damaged or cut short") as caught,
        open_source(path).open() as stream,
    ):
        stream.read()
    assert caught.value.where == str(path)


def test_lines_that_end_in_cr_alone_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE", 10)
    monkeypatch.setattr(source, "_BLOCK", 7)
    assert lines_of(b"abcdef\r" * 9) == ["abcdef\n"] * 9


def test_hash_is_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert content_hash(tmp_path / "a").startswith("ba7816bf8f01cfea")
    one = content_hash(tmp_path)
    (tmp_path / "b").write_bytes(b"x")
    assert content_hash(tmp_path) != one


NOTE = b"\x50\x2a\x4d\x18\x04\0\0\0note"  # a frame that readers skip


@pytest.mark.parametrize("note", [b"", NOTE])
def test_zstd_is_known_by_content_and_read_across_frames(tmp_path: Path, note: bytes) -> None:
    path = tmp_path / "file.tsv.zst"
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(note + pack(b"one\n" * 50_000) + pack(b"two\n"))
    opened = open_source(path)
    assert opened.suffix == ".tsv"
    with opened.open() as stream:
        assert stream.read(5) == b"one\no"
        assert stream.read() == b"ne\n" + b"one\n" * 49_998 + b"two\n"


@pytest.mark.parametrize("cut", [1, 9, 400])
def test_zstd_that_is_cut_short(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file.zst"
    packed = zstandard.ZstdCompressor().compress(os.urandom(500))
    path.write_bytes(packed[:-cut])
    with pytest.raises(InputError, match=r"file\.zst: damaged or cut short"):
        open_source(path).head()
    path.write_bytes(packed + b"more")
    with pytest.raises(InputError, match="damaged or cut short"):
        open_source(path).head()
