import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mzseek.database.store import ManyFound, capped, cascade

SOURCES = ["hmdb", "mine", "zinc"]
ROWS = st.lists(
    st.tuples(
        st.text("ABC", min_size=3, max_size=3), st.sampled_from([100.0, 100.001, 100.002, 99.999]),
        st.lists(st.sampled_from(SOURCES), max_size=2),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def table_of(rows) -> pa.Table:
    keys, masses, sources = zip(*rows, strict=True)
    sources = pa.array(sources, pa.list_(pa.string()))
    return pa.table({"key": list(keys), "mass": list(masses), "sources": sources})


@given(rows=ROWS, priorities=st.lists(st.sampled_from(SOURCES), unique=True), cap=st.integers(1, 9))
def test_a_capped_list_takes_wanted_sources_then_the_nearest_then_keys(
    rows, priorities: list[str], cap: int
) -> None:
    rows = sorted(rows, key=lambda row: row[1])

    def order(place: int) -> tuple[int, float, str]:
        key, mass, sources = rows[place]
        ranks = [priorities.index(s) for s in sources if s in priorities]
        return min(ranks, default=len(priorities)), abs(mass - 100.0), key

    expected = sorted(range(len(rows)), key=order)
    table = table_of(rows)
    assert cascade(table, priorities, 100.0).tolist() == expected
    found = capped(table, cap, priorities, 100.0)
    assert found.table.to_pylist() == table.take(sorted(expected[:cap])).to_pylist()
    assert (found.total, found.capped) == (len(rows), len(rows) > cap)


def test_without_a_mass_the_order_is_that_of_the_keys() -> None:
    table = table_of([("B", 100.0, []), ("A", 999.0, []), ("C", 1.0, ["mine"])])
    assert cascade(table, []).tolist() == [1, 0, 2]
    assert cascade(table, ["mine"]).tolist() == [2, 1, 0]
    assert capped(table, None, ["mine"]).table == table


def test_rows_of_one_of_many_look_ups() -> None:
    many = ManyFound(np.array([0, 2, 2, 3]), np.array([5, 6, 9]))
    assert [many.of(place).tolist() for place in range(3)] == [[5, 6], [], [9]]
