import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mzseek.core.errors import DatabaseError
from mzseek.database import build as module
from mzseek.database.build import Parts, describe_all
from mzseek.database.records import MoleculeRecord, RecordsAt, describe_records
from mzseek.parallel import LocalEngine, silent

PLAN = {"sources": ["a"], "fingerprint": "morgan2"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "CHUNK", 6)


def records(count: int = 15, bad: int = 5) -> list[MoleculeRecord]:
    texts = ["C1CC" if n % bad == bad - 1 else "C" * (count - n) for n in range(count)]
    return [MoleculeRecord(f"line {n}", text) for n, text in enumerate(texts)]


def described(folder: Path, stream: list[MoleculeRecord], progress=silent) -> tuple[Parts, int]:
    parts = Parts(folder, PLAN)
    chunks, read = describe_all(iter(stream), "morgan2", parts, LocalEngine(1), progress, None)
    assert read == len(stream)
    return parts, chunks


def test_chunks_hold_all_records_sorted_by_mass(tmp_path: Path) -> None:
    parts, chunks = described(tmp_path / "parts", records())
    assert chunks == 3
    tables = [parts.read(chunk).rows(0, 6) for chunk in range(chunks)]
    assert [table.num_rows for table in tables] == [5, 5, 2]
    places = []
    for table in tables:
        masses = table["mass"].to_pylist()
        assert masses == sorted(masses)
        places += table["place"].to_pylist()
    assert sorted(places) == [n for n in range(15) if n % 5 != 4]
    assert [where for where, _ in parts.read_skipped(chunks)] == ["line 4", "line 9", "line 14"]
    isomers = [MoleculeRecord("a", text) for text in ("CCCO", "COCC", "CC(C)O")]
    parts, _ = described(tmp_path / "isomers", isomers)
    assert parts.read(0).rows(0, 3)["place"].to_pylist() == [0, 1, 2]


def test_any_run_of_a_part_can_be_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr(module, "CHUNK", 60)
    parts, chunks = described(tmp_path / "parts", records(30))
    assert chunks == 1
    part = parts.read(0)
    whole = part.rows(0, 24)
    assert whole["mass"].to_pylist() == part.masses.tolist()
    assert len(part.masses) == 24
    for start, end in ((0, 1), (3, 5), (4, 8), (7, 24), (23, 24), (5, 5), (24, 24), (0, 0)):
        assert part.rows(start, end).equals(whole.slice(start, end - start))


def test_chunks_that_are_there_are_not_made_again(tmp_path: Path, monkeypatch) -> None:
    parts, _ = described(tmp_path / "parts", records())
    parts.arrow(1).unlink()
    made: list[int] = []

    def noted(batch: RecordsAt, **how):
        made.append(batch.first)
        return describe_records(batch, **how)

    monkeypatch.setattr(module, "describe_records", noted)
    seen: list[int] = []
    again, chunks = described(
        tmp_path / "parts", records(), lambda stage, done, total=None: seen.append(done)
    )
    assert made == [6, 8, 10]
    assert seen == [8, 10, 12]
    assert chunks == 3
    assert len(again.read(1).masses) == 5


def test_parts_of_another_plan_are_thrown_away(tmp_path: Path) -> None:
    parts, _ = described(tmp_path / "parts", records())
    assert Parts(tmp_path / "parts", PLAN).done(0, 6)
    other = Parts(tmp_path / "parts", {**PLAN, "fingerprint": "maccs"})
    assert not other.done(0, 6)
    assert [path.name for path in other.folder.iterdir()] == ["plan.json"]
    assert not parts.done(0, 6)


@pytest.mark.parametrize("what", ["of another build", "of another place"])
def test_a_part_of_something_else_is_never_merged(tmp_path: Path, what: str) -> None:
    parts, _ = described(tmp_path / "parts", records())
    others = Parts(tmp_path / "others", {**PLAN, "sources": ["b"]})
    describe_all(iter(records()), "morgan2", others, LocalEngine(1), silent)
    source, chunk = (others, 1) if what == "of another build" else (parts, 0)
    shutil.copy(source.arrow(chunk), parts.arrow(1))
    shutil.copy(source.skipped_path(chunk), parts.skipped_path(1))
    assert parts.done(0, 6)
    assert not parts.done(1, 6)
    with pytest.raises(DatabaseError, match="is a part of another build"):
        list(parts.read_skipped(2))


def test_a_part_that_has_changed_or_holds_another_number_of_records_is_made_again(
    tmp_path: Path,
) -> None:
    parts, _ = described(tmp_path / "parts", records())
    assert parts.done(0, 6)
    assert not parts.done(0, 5)
    content = parts.arrow(0).read_bytes()
    middle = len(content) // 2
    parts.arrow(0).write_bytes(content[:middle] + b"\xff" + content[middle + 1 :])
    assert not parts.done(0, 6)
    described(tmp_path / "parts", records())
    assert parts.arrow(0).read_bytes() == content
    parts.arrow(0).write_bytes(content[:100])
    with pytest.raises(DatabaseError, match=r"part-000000\.arrow: cannot be read"):
        parts.read(0)


DAMAGE = {
    "empty": lambda text: b"",
    "cut short": lambda text: text[:-20],
    "a list": lambda text: b"[]",
    "nested beyond reason": lambda text: b"[" * 100_000,
    "a number of 5,000 digits": lambda text: b'{"records": ' + b"9" * 5_000 + b"}",
    "no UTF-8": lambda text: b"\xff\xfe" + text,
    "no plan": lambda text: text.replace(b'"plan"', b'"plot"'),
    "rejects without a reason": lambda text: text.replace(b'"rejects": [', b'"rejects": [["x"], '),
    "rejects of another type": lambda text: text.replace(b'"rejects": [', b'"rejects": [[1, 2], '),
    "records of another type": lambda text: text.replace(b'"records": 6', b'"records": "6"'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_list_of_rejects_is_one_line_and_its_chunk_is_made_again(
    tmp_path: Path, damage: str
) -> None:
    parts, chunks = described(tmp_path / "parts", records())
    whole = list(parts.read_skipped(chunks))
    path = parts.skipped_path(0)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(DatabaseError) as caught:
        list(parts.read_skipped(chunks))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert not parts.done(0, 6)
    again, chunks = described(tmp_path / "parts", records())
    assert list(again.read_skipped(chunks)) == whole


@pytest.mark.parametrize("damage", [b"", b"{", b"[" * 100_000, b"[1]", b"\xff", b"9" * 5_000])
def test_parts_beside_a_damaged_plan_are_thrown_away(tmp_path: Path, damage: bytes) -> None:
    described(tmp_path / "parts", records())
    (tmp_path / "parts" / "plan.json").write_bytes(damage)
    (tmp_path / "parts" / "a folder").mkdir()
    parts = Parts(tmp_path / "parts", PLAN)
    assert [path.name for path in parts.folder.iterdir()] == ["plan.json"]


def test_records_are_read_as_they_are_needed(tmp_path: Path) -> None:
    taken: list[int] = []

    def stream() -> Iterator[MoleculeRecord]:
        for number, record in enumerate(records(30)):
            taken.append(number)
            yield record

    seen: list[tuple[int, int]] = []
    parts = Parts(tmp_path / "parts", PLAN)
    describe_all(
        stream(), "morgan2", parts, LocalEngine(1),
        lambda stage, done, total=None: seen.append((done, len(taken))), 30,
    )  # fmt: skip
    assert [done for done, _ in seen] == list(range(2, 31, 2))
    assert all(read - done <= module.CHUNK for done, read in seen)
