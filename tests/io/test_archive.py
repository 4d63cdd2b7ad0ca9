import gzip
import io
import struct
import zipfile
from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.io import Source, zip_sources
from mzseek.io import sources as archive


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


def test_bzip2_is_read_a_little_at_a_time(tmp_path: Path) -> None:
    content = bytes(20_000_000) + b"end"
    path = write(tmp_path / "a.zip", ("a.mgf", content), packing=zipfile.ZIP_BZIP2)
    assert read(path) == {"a.mgf": content}


def test_lzma_is_refused_in_words(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf", b"1"), packing=zipfile.ZIP_LZMA)
    assert "packed with LZMA" in str(read(path)["a.mgf"])


def test_names_are_shown_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", ("a\n\tb.mgf", b""))
    (fault,) = zip_sources(path)
    assert isinstance(fault, InputError)
    assert fault.where == f"{path}: a b.mgf"
    assert fault.reason == "the file is empty"


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
    monkeypatch.setattr(archive, "MAX_ZIP_MEMBERS", 2)
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
    monkeypatch.setattr(archive, "MAX_ZIP_MEMBERS", 4)
    with pytest.raises(InputError, match="more than 4 members"):
        zip_sources(path)


def test_archives_that_unfold_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.zip", ("a.mgf", bytes(1_000_000)), ("b.mgf", b"1"))
    assert len(read(path)) == 2
    monkeypatch.setattr(archive, "RATIO_FROM", 100_000)
    with pytest.raises(InputError, match="unfolds to 1,000,001 bytes, more than 300 times"):
        zip_sources(path)
    many = [(f"{n}.mgf", bytes(range(256)) * 50) for n in range(100)]
    found = read(write(path, ("a.mgf", bytes(1_000_000)), *many))
    assert "unfolds to 1,000,000 bytes" in str(found.pop("a.mgf"))
    assert len(found) == 100


@pytest.mark.parametrize("place", range(0, 150, 3))
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
    assert all("\n" not in fault for fault in faults)


def test_what_has_no_members_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no files"):
        zip_sources(write(tmp_path / "a.zip"))
    with pytest.raises(InputError, match="holds no files"):
        zip_sources(write(tmp_path / "a.zip", ("folder/", b"")))
    with pytest.raises(InputError, match="Office document"):
        zip_sources(write(tmp_path / "a.zip", ("[Content_Types].xml", b"<Types/>")))
    buffer = io.BytesIO(b"PK\3\4" + bytes(40))
    (tmp_path / "a.zip").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="damaged archive"):
        zip_sources(tmp_path / "a.zip")
