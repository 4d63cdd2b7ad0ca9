"""What the page says about the run as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.annotation.opening.lending import lending_lines
from mzseek.annotation.opening.setup import larger_databases
from mzseek.annotation.writing import Settings
from mzseek.version import __version__

SMALL = 200_000  # molecules: a smaller database is called small


@dataclass(frozen=True)
class Facts:
    """A run of annotation, in the words of its report.

    Attributes
    ----------
    records : int
        Spectra that were in the files.
    set_aside : mapping of str to int
        For each reason, how many of them got no answer for it.
    database : str
        What was searched.
    molecules : int or None
        How many it holds; None where that is not known.
    small : bool
        Whether the page must say that the database is small.
    larger : tuple of str
        Commands that get a larger one.
    prior : str
        The prior that is applied, in words; empty for none.
    known : float or None
        Share of features that is assumed to be in the database; None where that is not known.
    model, about_model : str
        The model's name, and in a sentence what it learned from.
    library : str
        Reference spectra that were searched, in words.
    files : tuple of str
        Names of the files of spectra.
    options, versions, checksums : mapping of str to str
        What made this, for the end of the page.
    date : str
        When; empty by default, so that equal input makes equal pages.

    Examples
    --------
    >>> Facts(3, {"no peaks": 1}, "molecules of the library", 4406).records
    3
    """

    records: int
    set_aside: Mapping[str, int]
    database: str
    molecules: int | None
    small: bool = False
    larger: tuple[str, ...] = ()
    model: str = ""
    about_model: str = ""
    library: str = ""
    files: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)
    date: str = ""
    prior: str = ""
    known: float | None = None


def facts_of(
    settings: Settings, searched: Mapping[str, Any], records: int, reasons: Mapping[str, int]
) -> Facts:
    """Facts of a job.

    Parameters
    ----------
    settings : Settings
        Of its writers.
    searched : mapping
        ``model``, ``database``, ``libraries``, what these have ``added``, and the ``prior`` that is
        counted in.
    records : int
    reasons : mapping of str to int
        How many were set aside for each.
    """
    database, model = searched["database"], searched["model"]
    spectra = sum(library["spectra"] for library in searched["libraries"])
    molecules = int(database["molecules"])
    return Facts(
        records=records,
        set_aside=reasons,
        database=settings.database,
        molecules=molecules,
        small=molecules < SMALL and database["kind"] != "file",
        larger=larger_databases() if database["kind"] == "in the box" else (),
        model=model.get("name", Path(model["path"]).name),
        about_model=model.get("about", ""),
        library=" ".join([f"{spectra:,} reference spectra.", *lending_lines(searched["added"])]),
        files=tuple(Path(name).name for name in settings.inputs),
        options={name: str(value) for name, value in settings.options.items()},
        versions={"mzseek": __version__},
        checksums={name: digest[:16] for name, digest in model.get("sha256", {}).items()},
        prior=(searched.get("prior") or {}).get("said", ""),
        known=searched.get("expected_share"),
    )
