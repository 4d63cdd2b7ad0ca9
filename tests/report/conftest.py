"""Reading pages back."""

from collections.abc import Callable
from html.parser import HTMLParser

import pytest


class Balance(HTMLParser):
    """Notes text, and tags that are opened and not closed."""

    VOID = frozenset({"meta", "br", "img", "path", "use", "rect", "line", "circle", "ellipse"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def read_page() -> Callable[[str], str]:
    """Text of a page whose tags must all be closed."""

    def read(html: str) -> str:
        parser = Balance()
        parser.feed(html)
        assert parser.stack == []
        return " ".join(" ".join(parser.text).split())

    return read
