"""Identifiers of molecules and spectra as addresses of pages, where their pattern is known."""

import re
from urllib.parse import quote

# Pattern, short name (in mzTab files the prefix), page of one, home page.
_KNOWN = [
    (r"(?:HMDB:)?(HMDB\d{5,7})", "HMDB", "https://hmdb.ca/metabolites/{}", "https://hmdb.ca"),
    (r"(?:PubChem[ :]?)?CID[: ]?(\d+)", "CID", "https://pubchem.ncbi.nlm.nih.gov/compound/{}",
     "https://pubchem.ncbi.nlm.nih.gov"),
    (r"CHEBI:(\d+)", "CHEBI", "https://www.ebi.ac.uk/chebi/searchId.do?chebiId=CHEBI:{}",
     "https://www.ebi.ac.uk/chebi"),
    (r"KEGG:([CD]\d{5})", "KEGG", "https://www.genome.jp/entry/{}", "https://www.genome.jp"),
    (r"(LM[A-Z]{2}[0-9A-Z]{8,10})", "LM", "https://www.lipidmaps.org/databases/lmsd/{}",
     "https://www.lipidmaps.org"),
    (r"(DTXSID\d+)", "DTXSID", "https://comptox.epa.gov/dashboard/chemical/details/{}",
     "https://comptox.epa.gov"),
    (r"(CHEMBL\d+)", "CHEMBL", "https://www.ebi.ac.uk/chembl/explore/compound/{}",
     "https://www.ebi.ac.uk/chembl"),
    (r"(DB\d{5})", "DrugBank", "https://go.drugbank.com/drugs/{}", "https://go.drugbank.com"),
    (r"(CNP\d{7}(?:\.\d+)?)", "COCONUT", "https://coconut.naturalproducts.net/compounds/{}",
     "https://coconut.naturalproducts.net"),
    (r"(FDB\d{6})", "FooDB", "https://foodb.ca/compounds/{}", "https://foodb.ca"),
    (r"(MSBNK-[\w.+-]+-[\w.-]+)", "MassBank", "https://massbank.eu/MassBank/RecordDisplay?id={}",
     "https://massbank.eu"),
    (r"(CCMSLIB\d{11})", "GNPS",
     "https://gnps.ucsd.edu/ProteoSAFe/gnpslibraryspectrum.jsp?SpectrumID={}",
     "https://gnps.ucsd.edu"),
]  # fmt: skip
_PATTERNS = [
    (re.compile(pattern, re.ASCII), prefix, page, home) for pattern, prefix, page, home in _KNOWN
]


def link(identifier: str) -> str | None:
    """Address of the page of an identifier; None where its pattern is not known.

    Examples
    --------
    >>> link("HMDB0001847"), link("mine:HMDB0001847"), link("my own 7")
    ('https://hmdb.ca/metabolites/HMDB0001847', 'https://hmdb.ca/metabolites/HMDB0001847', None)
    """
    for text in _with_and_without_list(identifier):
        for pattern, _, page, _ in _PATTERNS:
            if match := pattern.fullmatch(text):
                return page.format(quote(match[1]))
    return None


def _with_and_without_list(identifier: str) -> tuple[str, str]:
    """An identifier, and without the name of the user's list that stands before it."""
    return identifier.strip(), identifier.partition(":")[2].strip()


def links(identifiers: tuple[str, ...]) -> list[str]:
    """Addresses of identifiers; one whose pattern is not known stays as it is."""
    return list(dict.fromkeys(link(each) or each for each in identifiers if each.strip()))


def source_of(identifier: str) -> tuple[str, str] | None:
    """The short name of an identifier's source, and the identifier without it; None if not known.

    Examples
    --------
    >>> source_of("CHEBI:27732"), source_of("CID 2519"), source_of("x")
    (('CHEBI', '27732'), ('CID', '2519'), None)
    """
    for text in _with_and_without_list(identifier):
        for pattern, prefix, _, _ in _PATTERNS:
            if match := pattern.fullmatch(text):
                return prefix, match[1]
    return None


def home_of(prefix: str) -> str:
    """Home page of a source, by its short name."""
    return next(home for _, known, _, home in _PATTERNS if known == prefix)
