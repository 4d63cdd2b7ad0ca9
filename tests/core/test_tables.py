import pytest

from mzseek.core.text import Table, Tabular


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
    assert shown.split() == [
        "x",
        "y",
        "194.0804",
        "yes",
        "1,200",
        "no",
        "1.5e-07",
        "yes",
        "–",
        "no",
    ]


def test_columns_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Table({"a": [1], "b": []})


def test_what_is_read_as_a_table_shows_as_one() -> None:
    class Result(Tabular):
        def to_table(self) -> Table:
            return table()

    assert Result()._repr_html_() == table()._repr_html_()
    assert Result().to_frame().equals(table().to_frame())
