"""What the base install leaves out, and the extra that brings it.

Each extra is listed in ``pyproject.toml``; docs/install.md says what it is for.
"""

from importlib.util import find_spec

from mzseek.errors import MzseekError

# The package that is imported, and the extra that installs it.
EXTRAS = {
    "torch": "train",
    "matplotlib": "report",
    "yaml": "report",
    "duckdb": "sql",
    "pandas": "frames",
    "ray": "cluster",
    "pyopenms": "hmdb",
    "myopic_mces": "mces",
    "pulp": "mces",
    "tensorboard": "tensorboard",
}


class MissingExtra(MzseekError, ImportError):
    """Something that the base install cannot do: the message names what to install."""


def has(package: str) -> bool:
    """Whether a package is installed; it is not loaded."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it has been put among the loaded modules by hand
        return True


def require(package: str, what: str) -> None:
    """Refuse what a missing package is needed for.

    Parameters
    ----------
    package : str
        A name in `EXTRAS`.
    what : str
        What it is needed for, as the message begins.

    Raises
    ------
    MissingExtra
        It is not installed.
    """
    if not has(package):
        raise MissingExtra(how_to_get(package, what))


def how_to_get(package: str, what: str) -> str:
    """The line that says what to install.

    Examples
    --------
    >>> how_to_get("torch", "training")
    "training needs torch: pip install 'mzseek[train]'"
    """
    return f"{what} needs {package}: pip install 'mzseek[{EXTRAS[package]}]'"
