"""A JSON array that is complete, finite, and harmless wherever it is shown."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.annotation.story import describe
from mzseek.classes import ClassProbability, CompoundClass
from mzseek.classes.posterior import ClassReference
from mzseek.export.json_array import JsonArray


@pytest.fixture
def written(write_file):
    return lambda *annotations: write_file(JsonArray, "out.json", *annotations)[0].read_text(
        "utf-8"
    )


def test_objects_say_what_answers_do(written, make_annotation, make_reference) -> None:
    match = make_reference()
    first, second = json.loads(
        written(make_annotation("1", matches=(match,)), make_annotation("2"))
    )
    assert (first["feature"], second["feature"]) == ("1", "2")
    assert first["matches"][0]["record"] == match.record
    best = first["candidates"][0]
    assert (best["rank"], best["InChIkey2D"], best["probability"]) == (1, "RYYVLZVUVIJVGH", 0.8)
    assert best["confidence"] == pytest.approx(0.8 * 0.95)
    assert best["channels"] == {"fragments": 2.5, "analogs": 1.0}
    assert best["nats"] == {"evidence": 2.5, "analogy": 1.0}
    assert best["libraryMatch"] is None
    assert first["story"] == describe(make_annotation("1", matches=(match,)))
    assert json.loads(written()) == []


def test_a_class_has_its_posterior_and_references(written, make_annotation) -> None:
    lineage = ("Lipids", "Fatty Acyls", "Fatty alcohols")
    levels = tuple((ClassProbability(lineage[:depth], 0.9 / depth),) for depth in (1, 2, 3))
    references = (
        ClassReference("r1", "", "CCO", 0.8, lineage),
        ClassReference("r2", "", "C", 0.7, ("X",)),
    )
    found = CompoundClass(levels, levels[0][0], references)
    with_class, without = json.loads(
        written(make_annotation("1", compound_class=found), make_annotation("2"))
    )
    read = with_class["class"]
    assert (read["name"], read["level"], read["probability"]) == ("Lipids", "superclass", 0.9)
    assert read["posterior"]["class"] == [
        {"name": "Fatty Acyls", "lineage": list(lineage[:2]), "probability": 0.45}
    ]
    assert [one["supports"] for one in read["references"]] == [True, False]
    assert without["class"] is None


def test_numbers_are_finite_or_null(written, make_annotation, make_candidate) -> None:
    odd = make_candidate(error_ppm=math.nan, score=-math.inf, explained=math.inf)
    text = written(make_annotation(candidates=(odd,), nearest=math.nan, present=None))
    (read,) = json.loads(text, parse_constant=pytest.fail)
    best = read["candidates"][0]
    assert [best["errorPpm"], best["score"], best["explainedIntensity"]] == [None] * 3
    assert (read["nearestSimilarity"], read["inDatabaseProbability"]) == (None, None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.text(st.characters(exclude_categories=[])))
def test_names_come_back_and_nothing_in_them_acts(written, make_annotation, make_candidate, name):
    text = written(make_annotation(candidates=(make_candidate(name=name),)))
    assert text.isascii()
    assert not set(text) & set("<>&\x1b\x7f")
    assert json.loads(text)[0]["candidates"][0]["name"] == name
