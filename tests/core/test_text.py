import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.text import Table, Tabular, distinct_labels, visible

PARTS = st.lists(st.sampled_from(["a", "b", "run", "run\x1b", "run\x07", " ", "c d", "c  d"]),
                 min_size=1, max_size=4)  # fmt: skip


def test_a_name_is_enough_where_it_is_the_only_one(tmp_path: Path) -> None:
    assert distinct_labels([tmp_path / "bce", tmp_path / "iou"]) == ["bce", "iou"]
    assert distinct_labels([]) == []


def test_equal_names_get_as_much_of_their_path_as_tells_them_apart(tmp_path: Path) -> None:
    folders = [tmp_path / path for path in ("x/a/run", "x/b/run", "y/a/run", "y/other")]
    assert distinct_labels(folders) == ["x/a/run", "b/run", "y/a/run", "other"]


def test_a_folder_is_what_it_resolves_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a" / "run").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "run")
    monkeypatch.chdir(tmp_path / "a")
    given = [Path("run"), tmp_path / "link", tmp_path / "a" / ".." / "a" / "run", Path("run/.")]
    assert distinct_labels(given) == ["run"] * 4


def test_labels_that_stand_for_something_else_are_not_used(tmp_path: Path) -> None:
    assert distinct_labels([tmp_path / "runs" / "random"], taken=("random",)) == ["runs/random"]


@pytest.mark.parametrize("name", [" ", "\u200b", "\u3164", "\u00a0 "])
def test_a_name_that_cannot_be_seen_is_in_quotes(name: str, tmp_path: Path) -> None:
    assert distinct_labels([tmp_path / name]) == [f'"{name}"']


def test_names_that_differ_in_what_cannot_be_seen_are_numbered(tmp_path: Path) -> None:
    one, other = distinct_labels([tmp_path / "run\x1b", tmp_path / "run\x07"])
    assert one.endswith("run\N{REPLACEMENT CHARACTER} (1)")
    assert other.endswith("run\N{REPLACEMENT CHARACTER} (2)")


@given(st.lists(PARTS, min_size=1, max_size=6))
def test_different_folders_never_look_the_same(paths: list[list[str]]) -> None:
    folders = [Path("/nowhere", *parts) for parts in paths]
    labels = distinct_labels(folders, taken=("run",))
    by_folder = dict(zip(folders, labels, strict=True))
    looks = {" ".join(label.split()) for label in by_folder.values()}
    assert len(looks) == len(by_folder)
    assert "run" not in looks
    assert [by_folder[folder] for folder in folders] == labels


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\x1b[2Jb", "a�[2Jb"),
        ("two\nlines", "two�lines"),
        ("\u202egnp", "�gnp"),
        ("a\u2028b", "a�b"),
        (os.fsdecode(b"run\xff"), "run�"),
        (r"$\frac$ _x^2 <b> [red]", r"$\frac$ _x^2 <b> [red]"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_what_would_do_something_is_a_mark(text: str, wanted: str) -> None:
    assert visible(text) == wanted
    visible(text).encode("utf-8")


def table() -> Table:
    return Table(
        {"name": ["a<b>", "b"], "value": [0.5, None], "count": [1200, 3]},
        "Two of them",
        frozenset({"value"}),
    )


def test_people_see_percent_and_frames_have_fractions() -> None:
    assert str(table()).splitlines() == [
        "Two of them",
        "name  value, %  count",
        "a<b>      50.0  1,200",
        "b            –      3",
    ]
    frame = table().to_frame()
    assert list(frame.columns) == ["name", "value", "count"]
    assert frame["value"][0] == 0.5
    assert list(table())[1] == {"name": "b", "value": None, "count": 3}


def test_html_holds_every_cell_and_no_markup_of_names() -> None:
    page = table()._repr_html_()
    assert "<caption>Two of them</caption>" in page
    assert "a&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 3
    assert "\x1b" not in Table({"name": ["\x1b[2J"]})._repr_html_()


def test_long_tables_say_what_is_left_out() -> None:
    long = Table({"n": list(range(1_000))})
    assert "940 more rows" in str(long)
    assert "940 more rows" in long._repr_html_()
    assert len(long.to_frame()) == 1_000


def test_numbers_are_written_as_people_read_them() -> None:
    shown = str(Table({"x": [194.0803756, 1200.0, 1.5e-7, float("nan")], "y": [True, False] * 2}))
    assert " ".join(shown.split()) == "x y 194.0804 yes 1,200 no 1.5e-07 yes – no"


def test_columns_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Table({"a": [1], "b": []})


def test_what_is_read_as_a_table_shows_as_one() -> None:
    class Result(Tabular):
        def to_table(self) -> Table:
            return table()

    assert Result()._repr_html_() == table()._repr_html_()
    assert Result().to_frame().equals(table().to_frame())
