"""Networks of GNPS and MZmine are read; anything else is refused with one line."""

from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.export.graphml import Edge, Key, Node, open_network

GNPS = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d1" for="edge" attr.name="cosine_score" attr.type="double"/>
<key id="d0" for="node" attr.name="parent mass" attr.type="double"/>
<graph edgedefault="undirected"><node id="17"><data key="d0">195.0877</data></node>
<node id="4"/>
<edge source="17" target="4" id="0"><data key="d1">0.81</data></edge>
</graph></graphml>"""
CYTOSCAPE = """<graphml><key id="si" for="node" attr.name="cluster index" attr.type="string"/>
<graph edgedefault="directed"><node id="n0"><data key="si">17</data></node><node id="n1"/>
<edge source="n0" target="n1"/></graph></graphml>"""


@pytest.fixture
def network(tmp_path: Path):
    def opened(text: str, name: str = "net"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return open_network(path)

    return opened


def test_a_network_of_gnps(network) -> None:
    found = network(GNPS)
    assert not found.directed
    assert found.keys == [
        Key("d1", "edge", "cosine_score", "double"), Key("d0", "node", "parent mass", "double"),
    ]  # fmt: skip
    assert list(found.nodes()) == [Node("17", "17", [("d0", "195.0877")]), Node("4", "4", [])]
    assert list(found.edges()) == [Edge("17", "4", [("d1", "0.81")])]


def test_nodes_that_name_their_feature_elsewhere(network) -> None:
    found = network(CYTOSCAPE)
    assert found.directed
    assert [(node.id, node.feature) for node in found.nodes()] == [("n0", "17"), ("n1", "n1")]


@pytest.mark.parametrize(
    "header", ["CLUSTERID1\tCLUSTERID2\tCosine\tNote", '"ID 1","ID 2","Cosine","Note"']
)
def test_a_table_of_edges(network, header: str) -> None:
    mark = "\t" if "\t" in header else ","
    rows = [["17", "4", "0.81", "x"], ["4", "9", "", "y"]]
    found = network("\n".join([header, *map(mark.join, rows)]) + "\n")
    assert [(key.name, key.type) for key in found.keys] == [
        ("Cosine", "double"),
        ("Note", "string"),
    ]
    assert [node.id for node in found.nodes()] == ["17", "4", "9"]
    assert list(found.edges()) == [
        Edge("17", "4", [("e2", "0.81"), ("e3", "x")]), Edge("4", "9", [("e3", "y")]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("<html><body/></html>", "is not GraphML"),
        ("<graphml><graph/><graph/></graphml>", "holds 2 graphs"),
        ("<graphml/>", "holds 0 graphs"),
        ("<graphml><graph><node id='1'>", "damaged XML"),
        ("<graphml><graph><node/></graph></graphml>", "has no id"),
        ("<graphml><graph><edge source='1'/></graph></graphml>", "has no target"),
        ("<graphml><graph><hyperedge/></graph></graphml>", "has a hyperedge"),
        ("<graphml><key id='d' attr.type='list'/><graph/></graphml>", "the type 'list'"),
        ("<graphml><graph><node id='1'><data key='q'/></node></graph></graphml>", "a key 'q'"),
        (
            "<graphml><key id='d'/><graph><node id='1'><data key='d'><b/></data></node></graph>"
            "</graphml>",
            "elements in its data",
        ),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><graphml>&a;</graphml>", "damaged XML"),
        ("17 pp 4\n", "table of edges"),
        ("a,b\n1,2\n", "it begins with 'a', 'b'"),
        ("CLUSTERID1\tCLUSTERID2\n17\n", "line 2: has 1 cells"),
    ],
)
def test_other_forms_are_refused_with_one_line(network, text: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        found = network(text)
        list(found.nodes())
        list(found.edges())
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
