"""Names of molecules, from records that name them and may be passed on."""

from collections.abc import Sequence

from mzseek.annotation.bundle.licences import is_allowed
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.files import StrPath
from mzseek.rejects import Report
from mzseek.spectra import read_spectra

_LONGEST = 120


def read_names(paths: Sequence[StrPath], licences: Sequence[str], report: Report) -> dict[str, str]:
    """A name for each molecule that a record names: the shortest of those that are given.

    Parameters
    ----------
    paths : sequence of paths
        Files of spectra, folders or zip archives; MassBank's records, for instance.
    licences : sequence of str
        Families of licences under which records are read.
    report : callable
        Gets where and why for each record that cannot be read.

    Returns
    -------
    dict of str to str
        By the first block of the InChIKey.
    """
    found: dict[str, str] = {}
    for path in paths:
        for spectrum in read_spectra(path, report):
            stated = spectrum.metadata
            licence = stated.get("license") or stated.get("licence", "")
            key = stated.get("inchikey", "")[:BLOCK_LENGTH].upper()
            name = " ".join(stated.get("compound_name", "").split())
            if len(key) != BLOCK_LENGTH or not is_named(name) or not is_allowed(licence, licences):
                continue
            held = found.get(key)
            if held is None or (len(name), name) < (len(held), held):
                found[key] = name
    return found


def is_named(name: str) -> bool:
    r"""Whether a text can be shown as a molecule's name.

    Examples
    --------
    >>> is_named("Caffeine"), is_named(""), is_named("a\x1bb")
    (True, False, False)
    """
    return 0 < len(name) <= _LONGEST and name.isprintable()
