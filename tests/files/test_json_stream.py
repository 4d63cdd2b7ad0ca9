import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.errors import InputError
from mzseek.files import iter_members

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{},"\\é\n ab'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def members(data: bytes, chunk: int) -> list[tuple[str, str]]:
    return list(iter_members(io.BytesIO(data), "test", chunk=chunk))


@given(st.lists(values, max_size=6), st.integers(1, 40), st.booleans())
def test_array_members_are_jsons_own(items: list[object], chunk: int, ascii_only: bool) -> None:
    data = json.dumps(items, ensure_ascii=ascii_only).encode()
    assert [json.loads(text) for _, text in members(data, chunk)] == items


@given(st.dictionaries(st.text(), values, max_size=6), st.integers(1, 40))
def test_object_members_are_jsons_own(items: dict[str, object], chunk: int) -> None:
    found: dict[str, object] = {}
    for kind, text in members(json.dumps(items).encode(), chunk):
        assert kind == "object"
        found |= json.loads("{" + text + "}")
    assert found == items


def test_utf_16_is_known_by_its_mark() -> None:
    assert [text for _, text in members('["é", 2]'.encode("utf-16"), 5)] == ['"é"', "2"]


def test_a_broken_member_does_not_take_the_others_along() -> None:
    texts = [text for _, text in members(b'[{"a": 1}, {"a": nonsense}, {"a": 3}]', 7)]
    assert texts == ['{"a": 1}', '{"a": nonsense}', '{"a": 3}']


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no JSON"),
        (b"   \n ", "no JSON"),
        (b"BEGIN IONS", "not a JSON array"),
        (b'[{"a": 1}, {"a":', "ends in the middle of member 2"),
        (b'["unclosed]', "ends in the middle of member 1"),
        (b'{"a": 1}\n{"a": 2}\n', "goes on after its end"),
        (b"[1][2]", "goes on after its end"),
    ],
)
def test_what_is_no_json_is_said_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        members(data, 5)
