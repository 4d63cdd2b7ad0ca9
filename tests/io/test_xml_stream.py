import io
import time
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.io import xml_stream
from mzseek.io.xml_stream import BrokenXmlError, Element, iter_elements


def elements(data: str | bytes, *names: str) -> list[Element]:
    data = data.encode() if isinstance(data, str) else data
    return list(iter_elements(io.BytesIO(data), names or ("scan",)))


trees = st.recursive(
    st.builds(lambda text: Element("a", {}, [], [text]), st.text("xy é<&", max_size=5)),
    lambda inner: st.builds(
        lambda name, value, children: Element(name, {"n": value}, children, []),
        st.sampled_from(["scan", "b"]),
        st.text("0 '\"é<&", max_size=4),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


def as_tree(element: Element) -> ElementTree.Element:
    made = ElementTree.Element(element.name, element.attributes)
    made.text = element.text or None
    made.extend(as_tree(child) for child in element.children)
    return made


@given(trees, st.sampled_from(["utf-8", "utf-16", "iso-8859-1", "us-ascii"]))
def test_elements_are_those_of_pythons_own_parser(tree: Element, encoding: str) -> None:
    made = ElementTree.Element("run")
    made.append(as_tree(tree))
    data = ElementTree.tostring(made, encoding=encoding)
    theirs = list(ElementTree.fromstring(data).iter("scan"))
    ours = elements(data)
    assert [e.attributes for e in ours] == [e.attrib for e in theirs]
    for one, other in zip(ours, theirs, strict=True):
        if other.find(".//scan") is None:
            assert ElementTree.tostring(as_tree(one)) == ElementTree.tostring(other)


def test_inner_ones_come_after_the_outer_which_keeps_what_stood_before() -> None:
    found = elements('<r><scan n="1"><p>A</p><scan n="2"><p>B</p></scan><q/></scan><scan/></r>')
    assert [e.attributes.get("n") for e in found] == ["1", "2", None]
    assert [[child.name for child in e.children] for e in found] == [["p"], ["p"], []]
    assert [e.all("p")[0].text for e in found[:2]] == ["A", "B"]


def test_prefixes_are_left_out() -> None:
    (found,) = elements('<m:run xmlns:m="urn:x"><m:scan><m:p>1</m:p></m:scan></m:run>')
    assert found.all("p")[0].text == "1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "no element found"),
        ("<run><scan/>", "no element found"),
        ("<run><scan></run>", "mismatched tag"),
        ("<run/>more", "junk after document element"),
        ('<?xml version="1.0" encoding="klingon"?><run/>', "unknown encoding"),
        ('<!DOCTYPE r [<!ENTITY a "aaa">]><run>&a;</run>', "declares entities"),
        ("<run>&nothing;</run>", "undefined entity"),
        ("<a>" * 300, "nested deeper than 200"),
    ],
)
def test_what_cannot_be_read_on_is_said(data: str, message: str) -> None:
    with pytest.raises(BrokenXmlError, match=message):
        elements(data)


def test_elements_before_the_damage_are_given() -> None:
    found = []
    with pytest.raises(BrokenXmlError):
        for element in iter_elements(
            io.BytesIO(b'<r><scan n="1"/><scan n="2"/><oops</r>'), ["scan"]
        ):
            found.append(element.attributes["n"])  # noqa: PERF401
    assert found == ["1", "2"]


BOUNDS = {
    "MAX_ELEMENT_TEXT": ('<scan n="2"><p>' + "x" * 2_000 + "</p></scan>", "characters"),
    "MAX_ELEMENTS": ('<scan n="2">' + "<p/>" * 2_000 + "</scan>", "elements"),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_one_past_its_bounds_is_skipped_and_the_next_are_read(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(xml_stream, bound, 100)
    long, message = BOUNDS[bound]
    found = elements(f'<r><scan n="1"/>{long}<scan n="3"><p>A</p></scan></r>')
    assert [(e.attributes["n"], e.problem is None) for e in found] == [
        ("1", True),
        ("2", False),
        ("3", True),
    ]
    assert message in str(found[1].problem)
    assert sum(len(child.text) for child in found[1].children) <= 100
    assert len(found[1].children) <= 100


def test_bounds_of_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokenXmlError, match="a tag is longer than"):
        elements("<r><a b='" + "x" * 2_000_000 + "'/></r>")
    with pytest.raises(BrokenXmlError, match="a tag is longer than"):
        elements("<r><!-- " + "x" * 2_000_000 + " --></r>")
    with pytest.raises(BrokenXmlError, match="names of elements"):
        elements("<r>" + "".join(f"<a{n}/>" for n in range(40_000)) + "</r>")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<a/>", "x", "<a>1</a>", '<a b="1"/>', "&lt;", "<!--x-->"])
def test_megabytes_of_anything_take_seconds(unit: str) -> None:
    data = f"<r><scan>{unit * (3_000_000 // len(unit))}</scan></r>"
    start = time.process_time()
    (found,) = elements(data)
    assert time.process_time() - start < 5
    assert found.name == "scan"
