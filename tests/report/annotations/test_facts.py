from dataclasses import FrozenInstanceError

import pytest

from mzseek.export.report import Facts


def test_what_is_not_stated_is_empty() -> None:
    facts = Facts(3, {"no peaks": 1}, "box", None)
    assert (facts.small, facts.larger, facts.model, facts.date) == (False, (), "", "")
    assert facts.options == facts.versions == facts.checksums == {}
    with pytest.raises(FrozenInstanceError):
        facts.records = 4  # type: ignore[misc]
