from dataclasses import fields

import pytest

from mzseek.core.registry import described
from mzseek.models import ENCODERS, ModelSpec


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_says_how_wide_it_is(name: str) -> None:
    kind = ENCODERS[name]
    names = [field.name for field in fields(kind.options)]
    assert names[0] == "width"
    assert kind.repeats is None or kind.repeats in names
    assert kind.reads in ("bins", "peaks")
    assert all(meaning for _, _, meaning in described(kind.options))
    assert ModelSpec.of(name, encoder={"width": 48}).width == 48


@pytest.mark.parametrize("name", ENCODERS)
def test_repeats_are_the_layers_there_are(name: str) -> None:
    kind = ENCODERS[name]
    assert ModelSpec.of(name).repeats == (3 if kind.repeats else 0)


def test_controls_do_not_see_the_spectrum() -> None:
    assert {n for n, kind in ENCODERS.items() if not kind.sees_spectrum} == {"precursor", "blind"}
