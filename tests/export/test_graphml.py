"""Networks come out as they went in, with annotations beside."""

from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.export.graphml import Edge, GraphMl, Key, Node, open_network

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


NETWORK = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="note" attr.type="string"/>
<key id="d1" for="edge" attr.name="cosine" attr.type="double"/>
<graph edgedefault="undirected"><node id="17"><data key="d0">a &lt;b&gt; &amp;
 c</data></node><node id="4"/>
<edge source="17" target="4"><data key="d1">0.81</data></edge></graph></graphml>"""


@pytest.fixture
def written(write_file, tmp_path: Path):
    def write(*annotations, network: str | None = None):
        if network is not None:
            (tmp_path / "in.graphml").write_text(network, "utf-8")
        given = None if network is None else tmp_path / "in.graphml"
        path, said = write_file(GraphMl, "out.graphml", *annotations, network=given)
        return networkx.read_graphml(path), said

    return write


def test_without_a_network_there_are_nodes(written, make_annotation) -> None:
    graph, said = written(make_annotation("17"), make_annotation("18", candidates=()))
    assert said == []
    assert sorted(graph.nodes) == ["17", "18"]
    node = graph.nodes["17"]
    assert (node["shared name"], node["mzseek_name"]) == ("17", "Caffeine")
    assert (node["mzseek_probability"], node["mzseek_ionMass"]) == (0.8, 195.0877)
    assert "mzseek_smiles" not in graph.nodes["18"]


def test_a_network_keeps_all_its_own(written, make_annotation) -> None:
    graph, said = written(make_annotation("0017"), network=NETWORK)  # numbers by value
    assert sorted(graph.nodes) == ["17", "4"]
    assert graph.nodes["17"]["note"] == "a <b> &\n c"
    assert graph.nodes["17"]["mzseek_InChIkey2D"] == "RYYVLZVUVIJVGH"
    assert "mzseek_InChIkey2D" not in graph.nodes["4"]
    assert graph.edges["17", "4"]["cosine"] == 0.81
    assert said == ["network: 1 of 2 nodes have an annotation"]


def test_features_that_are_no_nodes_stand_alone_and_are_told(written, make_annotation) -> None:
    graph, said = written(
        make_annotation("17"), make_annotation("99"), make_annotation("17"), network=NETWORK
    )
    assert sorted(graph.nodes) == ["17", "17 (2)", "4", "99"]
    assert said[1] == "network: 2 features are none of its nodes, and stand alone"


def test_what_was_written_can_be_given_again(
    written, make_annotation, make_candidate, tmp_path
) -> None:
    written(make_annotation("17"), network=NETWORK)
    first = (tmp_path / "out.graphml").read_text("utf-8")
    graph, _ = written(
        make_annotation("17", candidates=(make_candidate(name="Kaffein"),)), network=first
    )
    assert graph.nodes["17"]["mzseek_name"] == "Kaffein"
    assert graph.nodes["17"]["note"] == "a <b> &\n c"
    tree = ElementTree.parse(tmp_path / "out.graphml")
    ids = [key.attrib["id"] for key in tree.getroot() if key.tag.endswith("key")]
    assert len(set(ids)) == len(ids)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=50)  # fmt: skip
@given(
    st.text(st.characters(exclude_categories=[]), min_size=1)
    | st.sampled_from(["<script>", "]]>", "&amp;", "=1", "\x1b[2J", "\x00", "\ufffe", '"><node/>'])
)
def test_no_name_breaks_the_file(written, make_annotation, make_candidate, name: str) -> None:
    graph, _ = written(make_annotation(name, candidates=(make_candidate(name=name),)))
    ((_, node),) = graph.nodes(data=True)
    shown = node.get("mzseek_name", "")
    assert shown[:1] not in set("=+-@") or shown.lstrip("+-").replace(".", "").isdigit()
    assert not set(shown) & {"\x1b", "\x00", "\ufffe"}
