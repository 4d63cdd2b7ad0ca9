import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.text import visible
from mzseek.export.report import embedded, source_hash

from .conftest import PAYLOADS


@given(st.recursive(st.text() | st.integers() | st.none(), lambda s: st.lists(s, max_size=4)))
def test_all_that_goes_in_is_read_again_as_it_is_shown(data) -> None:
    def shown(value):
        if isinstance(value, list):
            return [shown(each) for each in value]
        return visible(value) if isinstance(value, str) else value

    assert json.loads(embedded(data)) == shown(data)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_can_end_the_script_it_stands_in(payload: str) -> None:
    text = embedded({payload: [payload]})
    assert not set("<>&\u2028\u2029\x1b\x00") & set(text)
    text.encode("utf-8")


def test_numbers_that_no_page_can_read_are_null() -> None:
    assert embedded([1.5, float("nan"), float("inf"), -0.25]) == "[1.5,null,null,-0.25]"


def test_the_hash_is_that_of_the_policy() -> None:
    digest = base64.b64encode(hashlib.sha256("é".encode()).digest()).decode()
    assert source_hash("é") == f"'sha256-{digest}'"
