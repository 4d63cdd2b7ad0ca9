"""Molecular networks: read GNPS and MZmine networks, write them with annotations.

Networks are streamed, not read with networkx: keys, ids and values stay as the file has them, and
memory does not grow with the number of edges.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO
from xml.sax.saxutils import escape, quoteattr

from mzseek.annotation.feature_tables import same_feature
from mzseek.core.errors import InputError
from mzseek.core.text import visible
from mzseek.export.joining import JOINED, NUMBERS, PREFIX, JoiningWriter
from mzseek.export.tables import decimal, free_text
from mzseek.export.writer import Settings
from mzseek.io import Source, open_source
from mzseek.io.text_tables import (
    first_line,
    format_names,
    header_names,
    normalise_name,
    open_table,
)
from mzseek.io.xml_stream import BrokenXmlError, Element, iter_elements

# Names of the two columns of an edge table, as GNPS, MZmine and others spell them.
_ENDS = (("clusterid1", "clusterid2"), ("id1", "id2"), ("node1", "node2"), ("source", "target"))
# Data of a node that say which feature it is, by preference; without any it is the node's id.
_FEATURE = ("cluster index", "shared name")
_ELEMENTS = ("graphml", "graph", "key", "node", "edge", "hyperedge", "port")
_TYPES = {"boolean", "int", "long", "float", "double", "string"}
_EXPECTED = (
    "is not GraphML, nor a table of edges, expected a network of GNPS or MZmine: GraphML, or a "
    "table with columns CLUSTERID1 and CLUSTERID2"
)
_WRITTEN_BY = "<!-- Written by mzseek {} -->"
_HEAD = (  # at the very beginning: only files that have it are replaced
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    "{}\n"
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
)
FOOT = "  </graph>\n</graphml>\n"

Data = list[tuple[str, str]]


class Key(NamedTuple):
    """A column of nodes or edges: its id in the file, its name and its type."""

    id: str
    of: str
    name: str
    type: str


class Node(NamedTuple):
    """A node: its id, the feature that it stands for, and its data by key."""

    id: str
    feature: str
    data: Data


class Edge(NamedTuple):
    """An edge: the ids of its ends, and its data by key."""

    source: str
    target: str
    data: Data


# Cytoscape finds nodes of other networks and tables again by their "shared name".
SHARED_NAME = Key("mzseek_shared_name", "node", "shared name", "string")
MZ = Key("mzseek_mz", "node", "mzseek_ionMass", "double")
KEYS = [
    SHARED_NAME,
    MZ,
    *(
        Key(f"{PREFIX}{name}", "node", f"{PREFIX}{name}", "double" if name in NUMBERS else "string")
        for name in JOINED
    ),
]


def open_network(path: Path) -> "GraphFile | EdgeTable":
    """Open the network in a file.

    Raises
    ------
    InputError
        It is neither GraphML of one plain graph nor a table of edges.
    """
    source = open_source(path)
    head = source.head().lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head:
        raise InputError(path, "the file is empty")
    return GraphFile(source) if head.startswith(b"<") else EdgeTable(source)


class GraphFile:
    """A network in GraphML."""

    def __init__(self, source: Source) -> None:
        self._source, self.directed = source, False
        self.keys: list[Key] = []
        graphs = 0
        for element in self._elements():
            if element.name == "graph":
                graphs += 1
                self.directed = element.attributes.get("edgedefault") == "directed"
            elif element.name == "key":
                self._add_key(element)
        if graphs != 1:
            raise InputError(source.name, f"holds {graphs} graphs, expected one")
        names = {key.name.lower(): key.id for key in self.keys if key.of in ("node", "all")}
        self._feature = next((names[name] for name in _FEATURE if name in names), None)

    def _add_key(self, element: Element) -> None:
        id_, attributes = self._required(element, "id"), element.attributes
        kind = attributes.get("attr.type", "string")
        if kind not in _TYPES:
            reason = f"key {id_!r} has the type {kind!r}, expected one of: "
            raise InputError(self._source.name, reason + ", ".join(sorted(_TYPES)))
        if not id_.startswith(PREFIX):  # annotations of an earlier run make way for new ones
            name = attributes.get("attr.name", id_)
            self.keys.append(Key(id_, attributes.get("for", "all"), name, kind))

    def _required(self, element: Element, name: str) -> str:
        if name not in element.attributes:
            reason = f"a {element.name} has no {name}, which GraphML demands"
            raise InputError(self._source.name, reason)
        return element.attributes[name]

    def _elements(self) -> Iterator[Element]:
        try:
            with self._source.open() as stream:
                empty = True
                for element in iter_elements(stream, _ELEMENTS):
                    if empty and element.name != "graphml":
                        break
                    if element.name in ("hyperedge", "port") or element.problem:
                        what = element.problem or f"has a {element.name}"
                        raise InputError(self._source.name, f"{what}, expected plain nodes, edges")
                    empty = False
                    yield element
                if empty:
                    raise InputError(self._source.name, _EXPECTED)
        except BrokenXmlError as error:
            raise InputError(self._source.name, f"damaged XML ({error})") from error

    def nodes(self) -> Iterator[Node]:
        """Yield nodes, in the file's order."""
        for element in self._elements():
            if element.name == "node":
                data, id_ = self._data(element), self._required(element, "id")
                feature = next((text.strip() for key, text in data if key == self._feature), "")
                yield Node(id_, feature or id_, data)

    def edges(self) -> Iterator[Edge]:
        """Yield edges, in the file's order."""
        for element in self._elements():
            if element.name == "edge":
                source, target = (self._required(element, end) for end in ("source", "target"))
                yield Edge(source, target, self._data(element))

    def _data(self, element: Element) -> Data:
        known = {key.id for key in self.keys}
        values = []
        for data in element.all("data"):
            key = data.attributes.get("key", "")
            if data.children:
                id_ = element.attributes.get("id", "")
                reason = f"{element.name} {id_!r} has elements in its data, expected plain text"
                raise InputError(self._source.name, reason)
            if key in known:
                values.append((key, data.text))
            elif not key.startswith(PREFIX):
                raise InputError(self._source.name, f"has data of a key {key!r} that it lacks")
        return values


class EdgeTable:
    """A network whose edges stand in a table: two columns of features, and more about each edge."""

    def __init__(self, source: Source) -> None:
        self._source, self.directed = source, False
        table = open_table(source, lambda names: _ends(names) is not None)
        if table is None:
            names = format_names(header_names(first_line(source) or ""))
            raise InputError(source.name, f"{_EXPECTED}; it begins with {names}")
        self._table = table
        self._ends = _ends(table.names) or (0, 1)
        self._others = [n for n in range(len(table.names)) if n not in self._ends]
        numbers = set(self._others)
        for cells in self._rows():
            numbers = {n for n in numbers if _is_number(cells[n] if n < len(cells) else "")}
        self.keys = [
            Key(f"e{n}", "edge", table.names[n].strip(), "double" if n in numbers else "string")
            for n in self._others
        ]

    def _rows(self) -> Iterator[list[str]]:
        def refuse(line: int, reason: str) -> None:
            raise InputError(f"{self._source.name}: line {line}", reason)

        for line, cells in self._table.rows(refuse):
            if len(cells) <= max(self._ends):
                refuse(line, f"has {len(cells)} cells, expected {len(self._table.names)}")
            yield cells

    def nodes(self) -> Iterator[Node]:
        """Yield the ends of edges, each once."""
        seen: set[str] = set()
        for edge in self.edges():
            for end in (edge.source, edge.target):
                if end not in seen:
                    seen.add(end)
                    yield Node(end, end, [])

    def edges(self) -> Iterator[Edge]:
        """Yield edges, in the table's order."""
        for cells in self._rows():
            present = [n for n in self._others if n < len(cells) and cells[n]]
            source, target = (visible(cells[n].strip()) for n in self._ends)
            yield Edge(source, target, [(f"e{n}", visible(cells[n])) for n in present])


def _ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of the two columns that name features."""
    plain = [normalise_name(name) for name in names]
    for source, target in _ENDS:
        if plain.count(source) == 1 and plain.count(target) == 1:
            return plain.index(source), plain.index(target)
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return cell.strip().lower().lstrip("+-") not in ("nan", "inf", "infinity")


class GraphMl(JoiningWriter):
    """Write a file that ends in ``.graphml``."""

    signature = re.compile(
        re.escape(_HEAD.format("@")).replace("@", _WRITTEN_BY.format("(annotate|network)")).encode()
    )

    def __init__(self, folder: Path, name: str, settings: Settings) -> None:
        # A network that cannot be read is refused before any work is done.
        self._network = None if settings.network is None else open_network(settings.network)
        super().__init__(folder, name, settings)

    def assemble(self, file: TextIO) -> list[str]:
        """Write nodes with annotations, features that are no nodes, and edges."""
        network, left = self._network, dict(self.by_name)
        keys = [*(network.keys if network else []), *KEYS]
        file.write(head_text("annotate", keys, directed=bool(network and network.directed)))
        used: set[str] = set()
        nodes = bare = 0
        if network:
            named = any(key.name.lower() == "shared name" for key in network.keys)
            for node in network.nodes():
                offset = left.pop(same_feature(node.feature), None)
                nodes, bare = nodes + 1, bare + (offset is None)
                used.add(node.id)
                file.write(self._node(node, offset, add_name=not named))
        alone = sorted([*left.values(), *self.twins])
        for offset in alone:
            file.write(self._node(new_node(self.read(offset).name, used), offset, add_name=True))
        for number, edge in enumerate(network.edges() if network else []):
            file.write(edge_text(number, edge))
        file.write(FOOT)
        if network is None:
            return []
        lines = [f"network: {nodes - bare:,} of {nodes:,} nodes have an annotation"]
        if alone:
            lines.append(f"network: {len(alone):,} features are none of its nodes, and stand alone")
        return lines

    def _node(self, node: Node, offset: int | None, *, add_name: bool) -> str:
        data = [*node.data]
        if add_name:
            data.append((SHARED_NAME.id, free_text(node.feature)))
        if offset is not None:
            record = self.read(offset)
            cells = [(MZ.id, decimal(record.mz, 5)), *record.cells.items()]
            data += [(key, text) for key, text in cells if text]
        return node_text(node._replace(data=data))


def head_text(command: str, keys: Iterable[Key], *, directed: bool = False) -> str:
    """Return the beginning of a file that a command of mzseek writes, up to its first node."""
    lines = [_HEAD.format(_WRITTEN_BY.format(command))]
    for key in keys:
        attributes = {"id": key.id, "for": key.of, "attr.name": key.name, "attr.type": key.type}
        shown = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
        lines.append(f"  <key {shown}/>\n")
    lines.append(f'  <graph edgedefault="{"directed" if directed else "undirected"}">\n')
    return "".join(lines)


def node_text(node: Node) -> str:
    """Return the lines of a node."""
    return f"    <node id={quoteattr(node.id)}>\n{_data(node.data)}    </node>\n"


def edge_text(number: int, edge: Edge) -> str:
    """Return the lines of an edge."""
    ends = f"source={quoteattr(edge.source)} target={quoteattr(edge.target)}"
    return f'    <edge id="edge{number}" {ends}>\n{_data(edge.data)}    </edge>\n'


def new_node(name: str, used: set[str]) -> Node:
    """Return a node for a feature, with an id that no other has."""
    id_, number = name, 1
    while id_ in used:
        number += 1
        id_ = f"{name} ({number})"
    used.add(id_)
    return Node(id_, name, [])


def _data(data: Iterable[tuple[str, str]]) -> str:
    return "".join(
        # Readers of XML would make a line end of a carriage return.
        f"      <data key={quoteattr(key)}>{escape(text, {chr(13): '&#13;'})}</data>\n"
        for key, text in data
    )
