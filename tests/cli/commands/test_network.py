"""``mzseek network``: nodes, typed edges, annotations at nodes, and what is refused."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.classes import ClassProbability, CompoundClass
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.export import network as export
from mzseek.export.network import component_classes
from mzseek.formulas.ranking import RankedFormula

from ...annotation.conftest import an_annotation

NAMES = {"g": "http://graphml.graphdrawing.org/xmlns"}
PEAKS = [(50.0 + 11.3 * number, 10.0 + number) for number in range(8)]


def record(name: str, mz: float, shift: float = 0.0, mode: str = "1+") -> str:
    peaks = "".join(
        f"{peak + shift * (number % 2):.4f} {height * (0.6 if shift and number % 2 else 1)}\n"
        for number, (peak, height) in enumerate(PEAKS)
    )
    return f"BEGIN IONS\nFEATURE_ID={name}\nPEPMASS={mz}\nCHARGE={mode}\n{peaks}END IONS\n"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A, its homologue B and twin C are alike; D is of the other mode, E like none."""
    path = tmp_path / "study.mgf"
    path.write_text(
        record("A", 300.1)
        + record("B", 314.1157, 14.0157)
        + record("C", 300.1)
        + record("D", 300.1, mode="1-")
        + "BEGIN IONS\nFEATURE_ID=E\nPEPMASS=300.1\nCHARGE=1+\n77.7 1\n88.8 2\nEND IONS\n"
    )
    return path


def graph(path: Path) -> tuple[dict, dict, dict]:
    """Types of data by name; data of nodes by name; data of edges by ends."""
    root = ElementTree.parse(path).getroot()
    keys = {key.get("id"): key for key in root.findall("g:key", NAMES)}

    def data(element) -> dict[str, str]:
        return {
            keys[each.get("key")].get("attr.name"): each.text
            for each in element.findall("g:data", NAMES)
        }

    types = {key.get("attr.name"): key.get("attr.type") for key in keys.values()}
    nodes = {node.get("id"): data(node) for node in root.findall(".//g:node", NAMES)}
    edges = {
        (edge.get("source"), edge.get("target")): data(edge)
        for edge in root.findall(".//g:edge", NAMES)
    }
    return types, nodes, edges


def test_similar_features_are_connected(mzseek, study: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.graphml"
    text = mzseek("network", study, "--out", out, "--no-annotate", "--json")[1]
    counts = json.loads(text.splitlines()[-1])
    found = {name: counts[name] for name in ("features", "edges", "components", "largest")}
    assert found == {"features": 5, "edges": 3, "components": 1, "largest": 3}
    assert counts["single"] == 2
    types, nodes, edges = graph(out)
    assert set(edges) == {("A", "B"), ("A", "C"), ("B", "C")}
    assert edges["A", "C"] == {
        "similarity": "1.0000",
        "matchedPeaks": "8",
        "mzDifference": "0.0000",
    }
    assert edges["A", "B"]["mzDifference"] == "14.0157"
    assert types["similarity"] == "double"
    assert types["component"] == types["matchedPeaks"] == "int"
    assert [nodes[name]["component"] for name in "ABCDE"] == ["1", "1", "1", "0", "0"]
    assert nodes["B"]["componentSize"] == "3"
    assert nodes["B"]["shared name"] == "B"


def test_options_of_edges(mzseek, study: Path, tmp_path: Path) -> None:
    def edges(*options: str) -> set[tuple[str, str]]:
        out = tmp_path / "net.graphml"
        mzseek.ok("network", study, "--out", out, "--no-annotate", *options)
        return set(graph(out)[2])

    assert edges("--similarity", "cosine") == {("A", "C")}
    assert edges("--min-peaks", "9") == set()
    assert edges("--max-component", "2") == {("A", "C")}
    assert edges("--neighbours", "1") == {("A", "C")}
    assert edges("--neighbours", "1", "--no-mutual") > {("A", "C")}


@pytest.mark.slow
def test_annotations_stand_at_the_nodes(mzseek, tmp_path: Path) -> None:
    first, second = tmp_path / "a.graphml", tmp_path / "b.graphml"
    mzseek.ok("network", DEMO_QUERIES, "--out", first)
    mzseek.ok("network", DEMO_QUERIES, "--out", second, "--jobs", "1")
    assert first.read_bytes() == second.read_bytes()
    types, nodes, _ = graph(first)
    assert types["mzseek_confidence"] == "double"
    assert nodes["caffeine"]["mzseek_molecularFormula"] == "C8H10N4O2"


def test_the_class_of_a_component_is_that_of_most_of_its_features() -> None:
    classes = [{"x": 0.6, "y": 0.4}, {"y": 0.9}, {}, {"x": 1.0}]
    assert component_classes([1, 1, 1, 2], classes) == {
        1: ("y", pytest.approx(0.65)),
        2: ("x", 1.0),
    }
    assert component_classes([0, 0], [{"x": 1.0}, {"x": 1.0}]) == {}


def test_formula_and_class_stand_at_nodes() -> None:
    found = ClassProbability(("Organoheterocyclic compounds", "Imidazopyrimidines"), 0.75)
    classes = CompoundClass(((), (found,), ()), found)
    formula = RankedFormula("CH4", "[M+H]+", 0.5, 16.03, 0.1, 0.9, 3, None, 1.0)
    annotation = replace(an_annotation(), compound_class=classes, formulas=(formula,))
    kept = export._kept(annotation)
    assert kept.data["mzseek_class"] == "Imidazopyrimidines"
    assert kept.data["mzseek_rankedFormula"] == "CH4"
    assert kept.classes == {"Imidazopyrimidines": 0.75}


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("net.graphml", "notes of mine", []),
        ("net.sif", None, []),
        ("net.graphml", None, ["--min-similarity", "2"]),
    ],
)
def test_refusals(mzseek, study: Path, tmp_path: Path, name, content, options) -> None:
    out = tmp_path / name
    if content is not None:
        out.write_text(content)
    status, _, error = mzseek("network", study, "--out", out, "--no-annotate", *options)[:3]
    assert status == 2
    assert len(error.strip().splitlines()) == 1
    assert (out.read_text() if out.exists() else None) == content


def test_a_network_of_its_own_is_replaced(mzseek, study: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.graphml"
    mzseek.ok("network", study, "--out", out, "--no-annotate")
    before = out.read_bytes()
    mzseek.ok("network", study, "--out", out, "--no-annotate")
    assert out.read_bytes() == before
