"""Molecular networks: read GNPS and MZmine networks, write them with annotations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol
from xml.sax.saxutils import escape, quoteattr

from mzseek.core.errors import InputError
from mzseek.core.text import visible
from mzseek.export.feature_tables import Keeping, Lookup, same_feature
from mzseek.export.tables import BEFORE, JOINED, NUMBERS, decimal, words
from mzseek.export.writer import Settings
from mzseek.io import Source, open_source
from mzseek.io.text_tables import TextTable, format_names, header_names, normalise_name, open_table
from mzseek.io.xml_stream import BrokenXmlError, Element, iter_elements

# Names of the two columns of an edge table, as GNPS, MZmine and others spell them.
_ENDS = (("clusterid1", "clusterid2"), ("id1", "id2"), ("node1", "node2"), ("source", "target"))
# Data of a node that say which feature it is, by preference; without any it is the node's id.
_FEATURE = ("cluster index", "shared name")
_ASKED = ("graphml", "graph", "key", "node", "edge", "hyperedge", "port")
_TYPES = {"boolean", "int", "long", "float", "double", "string"}

Data = list[tuple[str, str]]


@dataclass(frozen=True)
class Key:
    """A column of nodes or edges: its id in the file, its name and its type."""

    id: str
    of: str
    name: str
    type: str


@dataclass(frozen=True)
class Node:
    """A node: its id, the feature that it stands for, and its data by key."""

    id: str
    feature: str
    data: Data


@dataclass(frozen=True)
class Edge:
    """An edge: the ids of its ends, and its data by key."""

    source: str
    target: str
    data: Data


class Network(Protocol):
    """Where nodes and edges come from.

    Attributes
    ----------
    directed : bool
    keys : list of Key
    """

    directed: bool
    keys: list[Key]

    def nodes(self) -> Iterator[Node]:
        """Nodes, in the file's order."""

    def edges(self) -> Iterator[Edge]:
        """Edges, in the file's order."""


def open_network(path: Path) -> Network:
    """The network in a file.

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
        found = element.attributes
        key = Key(
            _required(self._source, element, "id"),
            found.get("for", "all"),
            found.get("attr.name", found["id"]),
            found.get("attr.type", "string"),
        )
        if key.type not in _TYPES:
            reason = f"key {key.id!r} has the type {key.type!r}, expected one of: "
            raise InputError(self._source.name, reason + ", ".join(sorted(_TYPES)))
        if not key.id.startswith(BEFORE):  # annotations of an earlier run make way for new ones
            self.keys.append(key)

    def _elements(self) -> Iterator[Element]:
        try:
            with self._source.open() as stream:
                empty = True
                for element in iter_elements(stream, _ASKED):
                    if empty and element.name != "graphml":
                        raise InputError(self._source.name, _expected("GraphML, nor"))
                    if element.name in ("hyperedge", "port") or element.fault:
                        what = element.fault or f"has a {element.name}"
                        raise InputError(self._source.name, f"{what}, expected plain nodes, edges")
                    empty = False
                    yield element
                if empty:
                    raise InputError(self._source.name, _expected("GraphML, nor"))
        except BrokenXmlError as error:
            raise InputError(self._source.name, f"damaged XML ({error})") from error

    def nodes(self) -> Iterator[Node]:
        """Nodes, in the file's order."""
        for element in self._elements():
            if element.name == "node":
                data = self._data(element)
                own = _required(self._source, element, "id")
                told = next((text.strip() for key, text in data if key == self._feature), "")
                yield Node(own, told or own, data)

    def edges(self) -> Iterator[Edge]:
        """Edges, in the file's order."""
        for element in self._elements():
            if element.name == "edge":
                ends = [_required(self._source, element, end) for end in ("source", "target")]
                yield Edge(ends[0], ends[1], self._data(element))

    def _data(self, element: Element) -> Data:
        known = {key.id for key in self.keys}
        found = []
        for data in element.all("data"):
            key = data.attributes.get("key", "")
            if data.children:
                own = element.attributes.get("id", "")
                reason = f"{element.name} {own!r} has elements in its data, expected plain text"
                raise InputError(self._source.name, reason)
            if key in known:
                found.append((key, data.text))
            elif not key.startswith(BEFORE):
                raise InputError(self._source.name, f"has data of a key {key!r} that it lacks")
        return found


class EdgeTable:
    """A network whose edges stand in a table: two columns of features, and more about each edge."""

    def __init__(self, source: Source) -> None:
        self._source, self.directed = source, False
        table = open_table(source, lambda names: _ends(names) is not None)
        if table is None:
            with source.open() as stream:
                first = stream.read(2000).decode("utf-8", "replace").splitlines()[0]
            had = format_names(header_names(first))
            raise InputError(source.name, _expected("GraphML, nor") + f"; it begins with {had}")
        self._table: TextTable = table
        self._places = _ends(table.names) or (0, 1)
        self._others = [n for n in range(len(table.names)) if n not in self._places]
        numbers = self._columns_of_numbers()
        self.keys = [
            Key(f"e{n}", "edge", table.names[n].strip(), "double" if n in numbers else "string")
            for n in self._others
        ]

    def _rows(self) -> Iterator[list[str]]:
        def refuse(line: int, reason: str) -> None:
            raise InputError(f"{self._source.name}: line {line}", reason)

        for line, cells in self._table.rows(refuse):
            if len(cells) <= max(self._places):
                refuse(line, f"has {len(cells)} cells, expected {len(self._table.names)}")
            yield cells

    def _columns_of_numbers(self) -> set[int]:
        numbers = set(self._others)
        for cells in self._rows():
            numbers = {n for n in numbers if _is_number(cells[n] if n < len(cells) else "")}
        return numbers

    def nodes(self) -> Iterator[Node]:
        """The ends of edges, each once."""
        met: set[str] = set()
        for edge in self.edges():
            for end in (edge.source, edge.target):
                if end not in met:
                    met.add(end)
                    yield Node(end, end, [])

    def edges(self) -> Iterator[Edge]:
        """Edges, in the table's order."""
        first, second = self._places
        for cells in self._rows():
            data = [
                (f"e{n}", visible(cells[n])) for n in self._others if n < len(cells) and cells[n]
            ]
            yield Edge(visible(cells[first].strip()), visible(cells[second].strip()), data)


def _ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Places of the two columns that name features."""
    plain = [normalise_name(name) for name in names]
    for one, other in _ENDS:
        if plain.count(one) == 1 and plain.count(other) == 1:
            return plain.index(one), plain.index(other)
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return cell.strip().lower().lstrip("+-") not in ("nan", "inf", "infinity")


def _required(source: Source, element: Element, name: str) -> str:
    if name not in element.attributes:
        raise InputError(source.name, f"a {element.name} has no {name}, which GraphML demands")
    return element.attributes[name]


def _expected(form: str) -> str:
    return (
        f"is not {form} a table of edges, expected a network of GNPS or MZmine: GraphML, or a "
        "table with columns CLUSTERID1 and CLUSTERID2"
    )


SIGNATURE = (  # at the very beginning: only files that have it are replaced
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    "<!-- Written by mzseek annotate -->\n"
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
        self._annotations.place()
        with (self.folder / self.name).open("w", encoding="utf-8", newline="\n") as file:
            said = self._write_graph(file)
        super().finish()
        return said

    def _write_graph(self, file: IO[str]) -> list[str]:
        network = self._network
        self._lookup = Lookup(self._annotations.path)
        left = dict(self._lookup.places)
        keys = [*(network.keys if network else []), *_OWN, *_KEYS]
        directed = "directed" if network and network.directed else "undirected"
        file.write(SIGNATURE)
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
