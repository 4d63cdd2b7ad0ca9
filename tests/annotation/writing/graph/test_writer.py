"""Networks come out as they went in, with annotations beside."""

from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.export.graphml import GraphMl
from mzseek.export.writer import Settings

NETWORK = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="note" attr.type="string"/>
<key id="d1" for="edge" attr.name="cosine" attr.type="double"/>
<graph edgedefault="undirected"><node id="17"><data key="d0">a &lt;b&gt; &amp;
 c</data></node><node id="4"/>
<edge source="17" target="4"><data key="d1">0.81</data></edge></graph></graphml>"""


@pytest.fixture
def written(tmp_path: Path):
    def write(*annotations, network: str | None = None):
        for old in tmp_path.glob("out.graphml*"):
            old.unlink()
        path = None
        if network is not None:
            path = tmp_path / "in.graphml"
            path.write_text(network, "utf-8")
        writer = GraphMl(tmp_path, "out.graphml", Settings(network=path))
        for annotation in annotations:
            writer.write(annotation)
        said = writer.finish()
        return networkx.read_graphml(tmp_path / "out.graphml"), said

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
    graph, said = written(make_annotation("17"), network=NETWORK)
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


def test_numbers_are_compared_by_value(written, make_annotation) -> None:
    graph, _ = written(make_annotation("0017"), network=NETWORK)
    assert graph.nodes["17"]["mzseek_name"] == "Caffeine"
    assert len(graph) == 2


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
