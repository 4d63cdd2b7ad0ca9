"""Licences of records: which may be passed on, and the file that says so."""

import re
from collections.abc import Iterable, Sequence

MAY_BE_SHIPPED = ("CC0", "CC BY", "CC BY-SA", "dl-de/by")
ANY = "any"
_WORDS = re.compile(r"[a-z]+0?")
_CONDITIONS = ("by", "nc", "nd", "sa")
_NAMES = {
    "CC0": "Creative Commons Zero (public domain)",
    "CC BY": "Creative Commons Attribution",
    "CC BY-SA": "Creative Commons Attribution-ShareAlike",
    "dl-de/by": "Data licence Germany, attribution, version 2.0",
}

# Lists that the bundle of mzseek itself is made of.
_LISTS = {
    "massbank": " (structures, names and identifiers that MassBank's records state)",
    "chemicals": " (structures of common chemicals in PubChem, which is in the public domain)",
}


def licence_family(text: str) -> str:
    """A licence without its version, written in one way.

    Examples
    --------
    >>> [licence_family(text) for text in ("CC BY-SA 4.0", "cc-by-nc-sa", "dl-de/by-2-0", "CC0")]
    ['CC BY-SA', 'CC BY-NC-SA', 'dl-de/by', 'CC0']
    >>> licence_family("https://creativecommons.org/licenses/by/4.0/"), licence_family(" mine ")
    ('CC BY', 'mine')
    """
    words = _WORDS.findall(text.lower())
    conditions = [word for word in words if word in _CONDITIONS]
    commons = "cc" in words or "creativecommons" in words
    if "cc0" in words or ("creativecommons" in words and "zero" in words):
        return "CC0"
    if words[:2] == ["dl", "de"] and len(words) > 2:
        return f"dl-de/{words[2]}"
    if commons and conditions:
        return f"CC {'-'.join(word.upper() for word in conditions)}"
    return " ".join(text.split())


def is_allowed(licence: str, allowed: Sequence[str] = MAY_BE_SHIPPED) -> bool:
    """Whether records of this licence may go into a bundle; ``any`` allows all.

    Examples
    --------
    >>> is_allowed("CC BY 4.0"), is_allowed("CC BY-NC"), is_allowed(""), is_allowed("", ["any"])
    (True, False, False, True)
    """
    return ANY in allowed or licence_family(licence) in {licence_family(each) for each in allowed}


def licence_text(
    records: Iterable[tuple[str, str, int]], lists: Iterable[tuple[str, int]], shipped: bool
) -> str:
    """What `LICENCE.md` says.

    Parameters
    ----------
    records : iterable of (contributor, licence, records)
    lists : iterable of (source, molecules)
        Of the molecule database, besides the molecules of the library.
    shipped : bool
        Whether all of its records may be passed on under CC BY-SA 4.0.
    """
    rows = sorted(records)
    families = sorted({licence_family(licence) for _, licence, _ in rows} - {""})
    head = [
        "# Licence of this bundle",
        "",
        "The spectra, molecules and fitted numbers in this folder are licensed under the Creative "
        "Commons Attribution-ShareAlike 4.0 International licence (CC BY-SA 4.0, "
        "https://creativecommons.org/licenses/by-sa/4.0/). The code of mzseek is under the MIT "
        "licence."
        if shipped
        else "Some records in this folder have a licence that does not let them be passed on, or "
        "none that is known. Keep it to yourself unless you have their owners' leave.",
        "",
        "Every record keeps the licence that its contributor gave it. `records.parquet` names the "
        "identifier, the contributor and the licence of each; `mzseek model info --records` shows "
        "them. Spectra were made compact: the highest peaks were kept, m/z and heights rounded.",
        "",
        *(f"- {family}: {_NAMES.get(family, 'as its owner says')}" for family in families),
        "",
        "| contributor | licence | records |",
        "|---|---|---|",
        *(f"| {who or '–'} | {licence or '–'} | {number:,} |" for who, licence, number in rows),
    ]
    more = sorted(lists)
    if more:
        head += ["", "Molecules of the bundled database that come from lists:", ""]
        head += [
            f"- {source}: {number:,} molecules{_LISTS.get(source, '')}" for source, number in more
        ]
    return "\n".join(head) + "\n"
