"""HTML pages from the templates of this package."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from mzseek.core.text import visible
from mzseek.io import atomic_file
from mzseek.version import __version__


def write_page(template: str, path: Path, variables: dict[str, Any]) -> Path:
    """Fill a template and write the page; returns its path."""
    text = templates().get_template(template).render(**variables)
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def templates() -> Environment:
    """Return the templates of this package; what they are filled with is text, never markup."""
    environment = Environment(
        loader=PackageLoader("mzseek.export"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_as_text,
    )
    environment.filters["thousands"] = lambda value: f"{value:,}"
    environment.globals["version"] = __version__
    return environment


def _as_text(value: Any) -> Any:
    """Return text without characters that no page can hold; markup stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
