"""The rooms are as ARCHITECTURE.md lists them: each imports what the list says, and no more."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mzseek"
ROW = re.compile(r"^\| (\d+) \| `(\w+)/?` \| .* \| (.*) \|$", re.MULTILINE)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Full names of what a file imports, inside functions, too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0, path
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imports() -> dict[str, tuple[set[str], set[str]]]:
    """By room: other rooms, and packages of others, that it imports."""
    by_room: dict[str, tuple[set[str], set[str]]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.parent == PACKAGE and path.stem == "__init__":
            continue
        room = room_of(path)
        rooms, packages = by_room.setdefault(room, (set(), set()))
        for name in imported(path):
            top, _, rest = name.partition(".")
            if top == "mzseek":
                rooms.add(rest.partition(".")[0])
            elif top not in sys.stdlib_module_names:
                packages.add(top)
        rooms.discard(room)
    return by_room


IMPORTS = imports()
PACKAGES = set[str]().union(*(packages for _, packages in IMPORTS.values()))
ROWS = {
    room: (int(layer), allowed)
    for layer, room, allowed in ROW.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
}
LAYERS = {room: layer for room, (layer, _) in ROWS.items()}


def allowed_rooms(room: str) -> tuple[set[str], set[str]]:
    """Rooms that the list names for a room, and those that it means by numbers of layers."""
    layer, text = ROWS[room]
    named = {name for name in re.findall(r"`(\w+)`", text) if name in LAYERS}
    bounds = re.match(r"(\d)(?:–(\d))?\b", text)
    last = int(bounds[2] or bounds[1]) if bounds else layer - 1 if "below" in text else -1
    return named, {other for other, below in LAYERS.items() if below <= last}


def test_every_room_is_listed() -> None:
    assert sorted(LAYERS) == sorted(IMPORTS)


@pytest.mark.parametrize("room", sorted(IMPORTS))
def test_a_room_imports_the_rooms_that_are_listed(room: str) -> None:
    named, below = allowed_rooms(room)
    assert IMPORTS[room][0] - below == named


@pytest.mark.parametrize("room", sorted(IMPORTS))
def test_a_room_imports_the_packages_that_are_listed(room: str) -> None:
    text = re.sub(r"`[^`]*`", "", ROWS[room][1]).lower()
    assert set(re.findall(r"\w+", text)) & PACKAGES == IMPORTS[room][1]
