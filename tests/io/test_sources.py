import gzip
import io
import os
import re
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.io import LongLine, Source, content_hash, open_source, text_lines, zip_sources
from mzseek.io import sources as module


def lines_of(data: bytes) -> list[str]:
    return [line for _, line in text_lines(io.BytesIO(data))]


@given(st.lists(st.text(alphabet="aé \t\x0c\u2028=1", max_size=8), min_size=1, max_size=8))
def test_lines_are_those_written(texts: list[str]) -> None:
    assert lines_of(("\n".join(texts) + "\n").encode()) == [text + "\n" for text in texts]


def test_numbers_run_on_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 3)
    assert list(text_lines(io.BytesIO(b"one\ntwo\nthree"))) == [
        (1, "one\n"),
        (2, "two\n"),
        (3, "three"),
    ]


def test_line_ends_of_all_systems_and_a_cut_last_line() -> None:
    assert lines_of(b"a\r\nb\rc\ncu") == ["a\n", "b\n", "c\n", "cu"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_met_in_the_wild(encoding: str) -> None:
    assert lines_of("NAME=naïve\nPEPMASS=1\n".encode(encoding)) == ["NAME=naïve\n", "PEPMASS=1\n"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_latin_1_line_leaves_the_others_utf_8(end: str) -> None:
    line = f"é{end}"
    data = line.encode() + line.encode("latin-1") + line.encode()
    assert lines_of(data) == ["é\n", "é\n", "é\n"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("length", range(8, 36))
def test_a_line_past_the_bound_is_marked_and_the_next_are_read(
    monkeypatch: pytest.MonkeyPatch, length: int, end: bytes
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 20)
    monkeypatch.setattr(module, "_BLOCK", 4)
    monkeypatch.setattr(module, "_SHOWN", 5)
    data = b"first" + end + b"x" * length + end + b"next" + end + end + b"last"
    lines = list(text_lines(io.BytesIO(data)))
    shown = "x" * length if length <= 20 else "xxxxx"
    assert isinstance(lines[1][1], LongLine) == (length > 20)
    expected = ["first\n", shown + "\n", "next\n", "\n", "last"]
    assert lines == list(enumerate(expected, 1))


def test_an_endless_line_takes_no_memory() -> None:
    class Endless:
        def __init__(self) -> None:
            self.left = 60_000_000

        def read(self, size: int = -1) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

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
    os.mkfifo(tmp_path / "pipe")  # its head would be lost
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
    monkeypatch.setattr(module, "MAX_LINE", 10)
    monkeypatch.setattr(module, "_BLOCK", 7)
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


def write(path: Path, *members: tuple[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, content in members:
            made.writestr(zipfile.ZipInfo(name), content, packing)
    return path


def read(path: Path) -> dict[str, bytes | str]:
    """Content or reason by member."""
    found: dict[str, bytes | str] = {}
    for source in zip_sources(path):
        name = (source.name if isinstance(source, Source) else source.where).rpartition(": ")[2]
        if isinstance(source, InputError):
            found[name] = source.reason
            continue
        with source.open() as stream:
            found[name] = stream.read()
    return found


@pytest.mark.parametrize(
    "name", ["../x.mgf", "../../etc/x.mgf", "/x.mgf", "C:\\x.mgf", "./x.mgf", "a/../x.mgf", "ü.mgf"]
)
def test_members_of_any_name_are_read(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path / "a.zip", ("a.mgf", b"1"), (name, b"2"))) == {
        "a.mgf": b"1",
        name.rpartition(": ")[2]: b"2",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]  # and nothing is unpacked


@pytest.mark.parametrize("name", [".x.mgf", "a/.git/x.mgf", "__MACOSX/a/x.mgf", ".DS_Store"])
def test_hidden_members_are_left_out(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path / "a.zip", ("a.mgf", b"1"), (name, b"2"))) == {"a.mgf": b"1"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_two_members(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf", b"1"), ("a.mgf", b"2"))
    contents = []
    for source in zip_sources(path):
        assert isinstance(source, Source)
        with source.open() as stream:
            contents.append(stream.read())
    assert contents == [b"1", b"2"]


def test_members_may_be_packed_once_more(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf.gz", gzip.compress(b"hello")))
    (source,) = zip_sources(path)
    assert isinstance(source, Source)
    assert source.suffix == ".mgf"
    with source.open() as stream:
        assert stream.read() == b"hello"


def test_bzip2_is_read_a_little_at_a_time_and_lzma_refused(tmp_path: Path) -> None:
    content = bytes(20_000_000) + b"end"
    path = write(tmp_path / "a.zip", ("a.mgf", content), packing=zipfile.ZIP_BZIP2)
    assert read(path) == {"a.mgf": content}
    path = write(tmp_path / "a.zip", ("a.mgf", b"1"), packing=zipfile.ZIP_LZMA)
    assert "packed with LZMA" in str(read(path)["a.mgf"])


def test_names_are_shown_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", ("a\n\tb.mgf", b""))
    (problem,) = zip_sources(path)
    assert isinstance(problem, InputError)
    assert problem.where == f"{path}: a b.mgf"
    assert problem.reason == "the file is empty"


def directory_of(members: int, name: bytes = b"a.mgf") -> bytes:
    """An archive that has its list of members alone."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", *[0] * 11, len(name), *[0] * 6) + name
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry) * members, 0, 0)
    return entry * members + end


def test_a_list_of_members_is_bounded_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(directory_of(300_000))  # although its end says that there is one
    with pytest.raises(InputError, match="more than 250,000 members"):
        zip_sources(path)
    path.write_bytes(directory_of(1_100, b"a" * 60_000))
    with pytest.raises(InputError, match="its list of members has 66,050,600 bytes"):
        zip_sources(path)
    monkeypatch.setattr(module, "MAX_ZIP_MEMBERS", 2)
    with pytest.raises(InputError, match="more than 2 members"):
        zip_sources(write(tmp_path / "b.zip", *[(f"{n}.mgf", b"1") for n in range(3)]))


def test_archives_with_wide_directories_are_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.zip", *[(f"{n}.mgf", b"1") for n in range(5)])
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)  # writes its wide end for more than these
        write(path, *[(f"{n}.mgf", b"1") for n in range(5)])
    assert b"PK\6\6" in path.read_bytes()
    assert len(read(path)) == 5
    monkeypatch.setattr(module, "MAX_ZIP_MEMBERS", 4)
    with pytest.raises(InputError, match="more than 4 members"):
        zip_sources(path)


def test_archives_that_unfold_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf", bytes(1_000_000)), ("b.mgf", b"1"))
    assert len(read(path)) == 2
    monkeypatch.setattr(module, "RATIO_FROM", 100_000)
    with pytest.raises(InputError, match="unfolds to 1,000,001 bytes, more than 300 times"):
        zip_sources(path)
    many = [(f"{n}.mgf", bytes(range(256)) * 50) for n in range(100)]
    found = read(write(path, ("a.mgf", bytes(1_000_000)), *many))
    assert "unfolds to 1,000,000 bytes" in str(found.pop("a.mgf"))
    assert len(found) == 100


@pytest.mark.parametrize("place", range(0, 150, 7))
def test_damage_is_one_line_or_one_member(tmp_path: Path, place: int) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf", b"BEGIN IONS"), ("b.mgf", b"END IONS"))
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)
    faults = []
    try:
        for source in zip_sources(path):
            if isinstance(source, Source):
                with source.open() as stream:
                    stream.read()
    except InputError as error:
        faults.append(str(error))
    assert all("\n" not in problem for problem in faults)


def test_what_has_no_members_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no files"):
        zip_sources(write(tmp_path / "a.zip"))
    with pytest.raises(InputError, match="holds no files"):
        zip_sources(write(tmp_path / "a.zip", ("folder/", b"")))
    with pytest.raises(InputError, match="Office document"):
        zip_sources(write(tmp_path / "a.zip", ("[Content_Types].xml", b"<Types/>")))
    (tmp_path / "a.zip").write_bytes(b"PK\3\4" + bytes(40))
    with pytest.raises(InputError, match="damaged archive"):
        zip_sources(tmp_path / "a.zip")


TABLE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
# As the table writes what is a power of two in the code.
WRITTEN = {"MAX_WINDOW": "128 MB", "RATIO_FROM": "1 GB"}


def test_every_bound_is_in_the_docs() -> None:
    text = TABLE.read_text()
    table = text[text.index("## Bounds") : text.index("## Interpretation of values")]
    names = [name for name in vars(module) if name.startswith(("MAX_", "RATIO_"))]
    assert len(names) == 23
    missing = [
        name
        for name in names
        if not re.search(rf"\b{WRITTEN.get(name) or f'{vars(module)[name]:,}'}\b", table)
    ]
    assert missing == []
    assert (module.MAX_WINDOW, module.RATIO_FROM) == (128 << 20, 1 << 30)
