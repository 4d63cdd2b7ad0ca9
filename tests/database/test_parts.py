from collections.abc import Iterator
from pathlib import Path

import pytest

from mzseek.database import parts as module
from mzseek.database.describe import Work, describe
from mzseek.database.parts import Parts, describe_all
from mzseek.database.record import Record
from mzseek.errors import DatabaseError
from mzseek.work import LocalEngine, silent

PLAN = {"sources": ["a"], "fingerprint": "morgan2"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "CHUNK", 6)


def records(count: int = 15, bad: int = 5) -> list[Record]:
    texts = ["C1CC" if n % bad == bad - 1 else "C" * (count - n) for n in range(count)]
    return [Record(f"line {n}", text) for n, text in enumerate(texts)]


def described(folder: Path, stream: list[Record], progress=silent) -> tuple[Parts, int]:
    parts = Parts(folder, PLAN)
    return parts, describe_all(iter(stream), "morgan2", parts, LocalEngine(1), progress, None)


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


def test_rejects_come_in_the_order_of_the_sources(tmp_path: Path) -> None:
    parts, chunks = described(tmp_path / "parts", records())
    found = list(parts.read_rejects(chunks))
    assert [where for where, _ in found] == ["line 4", "line 9", "line 14"]


def test_equal_masses_stay_in_the_order_of_their_places(tmp_path: Path) -> None:
    parts, _ = described(tmp_path / "parts", [Record("a", t) for t in ("CCCO", "COCC", "CC(C)O")])
    assert parts.read(0).rows(0, 3)["place"].to_pylist() == [0, 1, 2]


def test_chunks_that_are_there_are_not_made_again(tmp_path: Path, monkeypatch) -> None:
    parts, _ = described(tmp_path / "parts", records())
    parts.arrow(1).unlink()
    made: list[int] = []

    def noted(work: Work, kind: str):
        made.append(work.first)
        return describe(work, kind)

    monkeypatch.setattr(module, "describe", noted)
    again, chunks = described(tmp_path / "parts", records())
    assert made == [6, 8, 10]
    assert chunks == 3
    assert len(again.read(1).masses) == 5


def test_a_chunk_whose_rejects_are_gone_is_made_again(tmp_path: Path) -> None:
    parts, chunks = described(tmp_path / "parts", records())
    whole = list(parts.read_rejects(chunks))
    parts.rejects(0).unlink()
    again, chunks = described(tmp_path / "parts", records())
    assert list(again.read_rejects(chunks)) == whole


def test_parts_of_another_plan_are_thrown_away(tmp_path: Path) -> None:
    parts, _ = described(tmp_path / "parts", records())
    assert Parts(tmp_path / "parts", PLAN).done(0)
    other = Parts(tmp_path / "parts", {**PLAN, "fingerprint": "maccs"})
    assert not other.done(0)
    assert [path.name for path in other.folder.iterdir()] == ["plan.json"]
    assert not parts.done(0)


def test_records_are_read_as_they_are_needed(tmp_path: Path) -> None:
    taken: list[int] = []

    def stream() -> Iterator[Record]:
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


def test_progress_counts_what_an_earlier_build_has_done(tmp_path: Path) -> None:
    parts, _ = described(tmp_path / "parts", records())
    parts.arrow(2).unlink()
    seen: list[int] = []
    described(tmp_path / "parts", records(), lambda stage, done, total=None: seen.append(done))
    assert seen == [14, 15]


def test_a_damaged_part_is_one_line(tmp_path: Path) -> None:
    parts, _ = described(tmp_path / "parts", records())
    parts.arrow(0).write_bytes(parts.arrow(0).read_bytes()[:100])
    with pytest.raises(DatabaseError, match=r"part-000000\.arrow: cannot be read"):
        _ = parts.read(0).masses


def test_no_records_are_no_chunks(tmp_path: Path) -> None:
    parts, chunks = described(tmp_path / "parts", [])
    assert chunks == 0
    assert list(parts.read_rejects(chunks)) == []
