import importlib
import math
from dataclasses import dataclass

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.core.registry import (
    IDENTITIES,
    RANKED_BY,
    ComponentConfig,
    LazyRegistry,
    NoOptions,
    choose,
    component_from,
    described,
    lazy_names,
    option,
    option_from_text,
    options_from,
)
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.similarity.lists import LIST_SIMILARITIES


@dataclass(frozen=True)
class Sizes:
    layers: int = option(3, "layers", at_least=1, at_most=9)
    rate: float = option(0.25, "rate", at_least=0, below=1)
    scale: float = option(1 / 64, "scale", above=0, finite=False)
    pairs: bool = option(False, "pairs")
    start: str | None = option(None, "start", among=("zero", "odds"))
    steps: int | None = option(None, "steps", above=0)


@dataclass(frozen=True)
class Kind:
    options: type


KINDS = {"sized": Kind(Sizes), "bare": Kind(NoOptions)}


def test_what_is_known_is_found_and_the_rest_refused_with_it() -> None:
    assert choose({"a": 1}, "a", "letter", RunError) == 1
    for name in ("b", "", None, 3, ["a"], {"a": 1}, "x\n" * 10_000):
        with pytest.raises(RunError, match=r"letter .* is unknown, expected one of: a, c") as error:
            choose({"a": 1, "c": 2}, name, "letter", RunError)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 200


def test_a_lazy_registry_loads_what_is_asked_for() -> None:
    numbers: LazyRegistry[float] = LazyRegistry({"pi": "math:pi", "odd": "no.such.module:x"})
    assert (list(numbers), len(numbers), "odd" in numbers.code) == (["pi", "odd"], 2, True)
    assert numbers["pi"] == math.pi
    with pytest.raises(KeyError):
        numbers["e"]
    with pytest.raises(ModuleNotFoundError):
        numbers["odd"]


def test_names_of_a_package_are_loaded_from_their_modules() -> None:
    find = lazy_names("mzseek.decision", {"bounds": "Band similarity_band", "decide": "top_k"})
    module = importlib.import_module("mzseek.decision.bounds")
    assert find("similarity_band") is module.similarity_band
    for name in ("Bands", "nonsense"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            find(name)


def test_constants_are_those_of_the_packages() -> None:
    assert tuple(IDENTITY_BITS) == IDENTITIES
    assert tuple(LIST_SIMILARITIES) == RANKED_BY


def test_what_is_missing_has_its_default() -> None:
    assert options_from(Sizes, {}, "part") == Sizes()
    assert options_from(Sizes, {"layers": 5, "start": "odds"}, "part") == Sizes(5, start="odds")


def test_numbers_are_taken_for_what_they_are() -> None:
    found = options_from(Sizes, {"layers": np.int64(4), "rate": 0, "scale": np.float32(2)}, "part")
    assert found == Sizes(4, 0.0, 2.0)
    assert [type(value) for value in (found.layers, found.rate, found.scale)] == [int, float, float]
    assert options_from(Sizes, {"scale": math.inf}, "part").scale == math.inf
    assert options_from(Sizes, {"steps": 10**400}, "part").steps == 10**400


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": 1}, "part: option 'depth' is unknown, expected one of: layers, rate"),
        ({"layers": 0}, "part: layers is 0, expected 1 to 9"),
        ({"layers": 10}, "part: layers is 10, expected 1 to 9"),
        ({"layers": 2.5}, "part: layers is 2.5, expected a whole number"),
        ({"layers": True}, "part: layers is True, expected a whole number"),
        ({"layers": "3"}, "part: layers is '3', expected a whole number"),
        ({"layers": None}, "part: layers is None, expected a whole number"),
        ({"rate": 1}, "part: rate is 1.0, expected 0 to less than 1"),
        ({"rate": math.nan}, "part: rate is nan, expected a finite number"),
        ({"rate": math.inf}, "part: rate is inf, expected a finite number"),
        ({"rate": 10**400}, "expected a number"),
        ({"scale": 0}, "part: scale is 0.0, expected more than 0"),
        ({"scale": -math.inf}, "part: scale is -inf, expected a finite number"),
        ({"scale": math.nan}, "part: scale is nan, expected a finite number"),
        ({"pairs": 1}, "part: pairs is 1, expected true or false"),
        ({"start": "one"}, "part: start 'one' is unknown, expected one of: zero, odds"),
        ({"start": 1}, "part: start is 1, expected a text or nothing"),
        ({"steps": 0}, "part: steps is 0, expected more than 0"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(given: dict, message: str) -> None:
    with pytest.raises(RunError) as refused:
        options_from(Sizes, given, "part", RunError)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_part_without_options_says_so() -> None:
    assert options_from(NoOptions, {}, "part") == NoOptions()
    with pytest.raises(RunError, match="part: option 'gamma' is unknown, it has no options"):
        options_from(NoOptions, {"gamma": 2.0}, "part", RunError)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("layers", "4", 4),
        ("rate", "1e-3", 1e-3),
        ("rate", "0", 0.0),
        ("scale", "1/64", 1 / 64),
        ("pairs", "true", True),
        ("pairs", "No", False),
        ("start", "odds", "odds"),
        ("start", "none", None),
        ("steps", "7", 7),
    ],
)
def test_text_is_read_as_the_option_s_type(name: str, text: str, value: object) -> None:
    found = option_from_text(Sizes, name, text, "part")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("layers", "four", "part: layers is 'four', expected a whole number"),
        ("layers", "", "part: layers is '', expected a whole number"),
        ("layers", "4.5", "part: layers is '4.5', expected a whole number"),
        ("rate", "1/0", "part: rate is '1/0', expected a number"),
        ("rate", "much", "part: rate is 'much', expected a number"),
        ("pairs", "perhaps", "part: pairs is 'perhaps', expected true or false"),
        ("depth", "3", "part: option 'depth' is unknown, expected one of: layers"),
    ],
)
def test_text_that_is_none_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(RunError) as refused:
        option_from_text(Sizes, name, text, "part", RunError)
    assert message in str(refused.value)


def test_a_part_comes_back_from_plain_data() -> None:
    part = ComponentConfig("sized", Sizes(5))
    assert component_from(KINDS, part.to_dict(), "thing") == part
    assert component_from(KINDS, {"name": "sized"}, "thing") == ComponentConfig("sized", Sizes())
    assert component_from(KINDS, {"name": "bare", "options": {}}, "thing") == ComponentConfig(
        "bare"
    )
    assert part.replace(layers=7) == ComponentConfig("sized", Sizes(7))
    assert hash(part) == hash(ComponentConfig("sized", Sizes(5)))


@pytest.mark.parametrize(
    "found",
    [None, "sized", [], {}, {"name": 3}, {"name": "odd"}, {"name": "sized", "options": None},
     {"name": "sized", "options": []}, {"name": "sized", "more": 1}],
    ids=str,
)  # fmt: skip
def test_what_is_no_part_is_refused(found: object) -> None:
    with pytest.raises(RunError, match="thing") as refused:
        component_from(KINDS, found, "thing", RunError)
    assert "\n" not in str(refused.value)


def test_options_are_described_for_people() -> None:
    assert described(Sizes)[:4] == [
        ("layers", "3", "layers"),
        ("rate", "0.25", "rate"),
        ("scale", "1/64", "scale"),
        ("pairs", "false", "pairs"),
    ]
