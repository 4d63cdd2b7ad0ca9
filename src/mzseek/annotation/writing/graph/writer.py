"""The GraphML file: features as nodes, with annotations; edges of a network, if one is given."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from mzseek.annotation.writing.graph.network import Key, Network, Node, open_network
from mzseek.annotation.writing.lookup import Keeping, Lookup, same_feature
from mzseek.annotation.writing.spool import Settings
from mzseek.annotation.writing.tables.cells import decimal, words
from mzseek.annotation.writing.tables.summary import BEFORE, JOINED, NUMBERS

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
)
_RETURN = {"\r": "&#13;"}  # readers of XML would make a line end of it
# Cytoscape finds nodes of other networks and tables again by their "shared name".
_OWN = [
    Key("mzseek_shared_name", "node", "shared name", "string"),
    Key("mzseek_mz", "node", "mzseek_ionMass", "double"),
]
_KEYS = [
    Key(f"{BEFORE}{name}", "node", f"{BEFORE}{name}", "double" if name in NUMBERS else "string")
    for name in JOINED
]


class GraphMl(Keeping):
    """Writes a file that ends in ``.graphml``."""

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        # A network that cannot be read is refused before any work is done.
        self._network = None if settings.network is None else open_network(settings.network)
        super().__init__(folder, name, settings)

    def finish(self) -> list[str]:
        """Put nodes, annotations and edges together."""
        self._answers.place()
        with (self.folder / self.name).open("w", encoding="utf-8", newline="\n") as file:
            said = self._write_graph(file)
        super().finish()
        return said

    def _write_graph(self, file: IO[str]) -> list[str]:
        network = self._network
        self._lookup = Lookup(self._answers.path)
        left = dict(self._lookup.places)
        keys = [*(network.keys if network else []), *_OWN, *_KEYS]
        directed = "directed" if network and network.directed else "undirected"
        file.write(_HEAD)
        file.writelines(map(_key_line, keys))
        file.write(f'  <graph edgedefault="{directed}">\n')
        used: set[str] = set()
        nodes = bare = 0
        if network:
            named = any(key.name.lower() == "shared name" for key in network.keys)
            for node in network.nodes():
                place = left.pop(same_feature(node.feature), None)
                nodes, bare = nodes + 1, bare + (place is None)
                used.add(node.id)
                file.write(_node_lines(node, self._found(place), not named))
        alone = [*left.values(), *self._lookup.twins]
        for place in sorted(alone):
            file.write(_node_lines(self._node_at(place, used), self._found(place), True))
        for number, edge in enumerate(network.edges() if network else []):
            ends = f"source={_quoted(edge.source)} target={_quoted(edge.target)}"
            data = "".join(map(_data_line, edge.data))
            file.write(f'    <edge id="edge{number}" {ends}>\n{data}    </edge>\n')
        file.write("  </graph>\n</graphml>\n")
        return _said(network, nodes, bare, len(alone))

    def _found(self, place: int | None) -> list[tuple[str, str]]:
        if place is None:
            return []
        kept = self._lookup.read(place)
        return [(_OWN[1].id, decimal(kept.mz, 5)), *kept.cells.items()]

    def _node_at(self, place: int, used: set[str]) -> Node:
        """A node of its own for a feature, with an id that no other has."""
        name = self._lookup.read(place).name
        own, number = name, 1
        while own in used:
            number += 1
            own = f"{name} ({number})"
        used.add(own)
        return Node(own, name, [])


def _said(network: Network | None, nodes: int, bare: int, alone: int) -> list[str]:
    if network is None:
        return []
    said = [f"network: {nodes - bare:,} of {nodes:,} nodes have an annotation"]
    if alone:
        said.append(f"network: {alone:,} features are none of its nodes, and stand alone")
    return said


def _key_line(key: Key) -> str:
    named = f"attr.name={_quoted(key.name)} attr.type={_quoted(key.type)}"
    return f"  <key id={_quoted(key.id)} for={_quoted(key.of)} {named}/>\n"


def _node_lines(node: Node, found: Iterable[tuple[str, str]], named: bool) -> str:
    own = [(_OWN[0].id, words(node.feature))] if named else []
    data = "".join(map(_data_line, [*node.data, *own, *_with_text(found)]))
    return f"    <node id={_quoted(node.id)}>\n{data}    </node>\n"


def _with_text(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return (each for each in found if each[1])


def _data_line(data: tuple[str, str]) -> str:
    key, text = data
    return f"      <data key={_quoted(key)}>{escape(text, _RETURN)}</data>\n"


def _quoted(text: str) -> str:
    return quoteattr(text)
