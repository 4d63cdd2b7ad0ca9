import io
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.io import json_stream
from mzseek.io.json_stream import iter_members

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{},"\\é\n ab'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def members(data: bytes, chunk: int) -> list[Any]:
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


def by_hand(text: str) -> tuple[list[str], bool]:
    """Members of an array and whether it was closed, by a loop over its characters."""
    found, begun, depth, in_string, escaped = [], "", 0, False, False
    for mark in text[1:]:
        if in_string:
            in_string, escaped = mark != '"' or escaped, mark == "\\" and not escaped
        elif depth == 0 and mark in ",]}":
            found += [begun.strip()] if begun.strip() else []
            begun = ""
            if mark == "]":
                return found, True
            continue
        else:
            in_string = mark == '"'
            depth += (mark in "[{") - (mark in "]}")
        begun += mark
    return found, False


@settings(max_examples=500)
@given(st.text(alphabet='[]{},"\\a ', max_size=80), st.integers(1, 30))
def test_members_are_those_of_a_plain_loop_whatever_the_text(text: str, chunk: int) -> None:
    text = "[" + text
    expected, is_closed = by_hand(text)
    found, problem = [], ""
    try:
        found.extend(iter_members(io.BytesIO(text.encode()), "test", chunk=chunk))
    except InputError as error:
        problem = error.reason
    assert found == [("array", member) for member in expected]
    assert ("ends in the middle" in problem) == (not is_closed)


@given(st.integers(60, 300), st.text(alphabet='[{1,"', max_size=200), st.integers(1, 4096))
def test_deep_nesting_is_counted_all_the_same(depth: int, inner: str, chunk: int) -> None:
    inner = inner.replace('"', '"]}["')
    opened = inner.replace('"]}["', "").count("[") + inner.replace('"]}["', "").count("{")
    deep = "[" * depth + inner + "]" * opened + "}" * depth
    found = [text for _, text in members(f'[1,{deep},"]"]'.encode(), chunk)]
    assert found == ["1", deep, '"]"']


@pytest.mark.parametrize("many", ["[],", '{"a":1},', '"abc",', "1,"])
def test_a_member_past_its_bounds_is_skipped_and_the_next_are_read(
    monkeypatch: pytest.MonkeyPatch, many: str
) -> None:
    monkeypatch.setattr(json_stream, "MAX_MEMBER", 300)
    long = "[" + many * 200 + "0]"
    data = f'[{{"a": 1}}, {long}, "{"b" * 500}", 3]'.encode()
    for chunk in (1, 50, 10_000):
        assert [text for _, text in members(data, chunk)] == ['{"a": 1}', None, None, "3"]


def test_values_count_too_since_small_ones_take_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_stream, "MAX_VALUES", 10)
    data = b'[[1,2,3,4,5], [1,2,3,4,5,6,7,8,9,10,11,12], {"a": 1}]'
    assert [text for _, text in members(data, 9)] == ["[1,2,3,4,5]", None, '{"a": 1}']


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ['"aaaaaaaa', '\\"', "[],", "[", "[1,", "[[[[[[1]]]]]],", '{"a":', "           "]
)
def test_megabytes_of_anything_take_seconds(pattern: str) -> None:
    data = b'[["' if pattern == '\\"' else b"[["  # all of it inside one member
    data += pattern.encode() * (3_000_000 // len(pattern))
    start = time.process_time()
    with pytest.raises(InputError, match="ends in the middle"):
        list(iter_members(io.BytesIO(data), "test"))
    assert time.process_time() - start < 5


def test_blanks_before_and_behind_are_not_kept() -> None:
    data = b" " * 3_000_000 + b"[1]" + b"\n" * 3_000_000
    assert [text for _, text in members(data, 1000)] == ["1"]
    with pytest.raises(InputError, match="goes on after its end"):
        members(data + b"2", 1000)


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
