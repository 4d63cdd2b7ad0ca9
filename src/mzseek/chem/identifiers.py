"""Identifiers of molecules and spectra, and their web pages.

The canonical form is the accession as its resource writes it: ``HMDB0001847``, ``CHEBI:27732``,
``DTXSID0020232``, ``LMFA01010001``. Accessions that say nothing by themselves carry the name of
their resource: ``CID:2519`` (PubChem), ``KEGG:C07481``. Identifiers of user databases often have
the name of a collection in front (``hmdb:HMDB0001847``, ``pubchem:CID2519``), which is skipped.
"""

import re
from typing import NamedTuple
from urllib.parse import quote


class Resource(NamedTuple):
    """A web resource that has a page for each of its identifiers."""

    prefix: str  # short name, in mzTab files the prefix of identifiers
    pattern: str  # usual spellings of an identifier; the group is the accession
    page: str  # address of an accession's page, with {} for the accession
    home: str
    canonical: str = "{}"  # canonical form of an identifier, with {} for the accession


_RESOURCES = [
    Resource("CID", r"(?:PubChem[ :_]*CID|PubChem|CID)[ :]*(\d+)",
             "https://pubchem.ncbi.nlm.nih.gov/compound/{}",
             "https://pubchem.ncbi.nlm.nih.gov", "CID:{}"),
    Resource("HMDB", r"(?:HMDB[ :]+)?(HMDB\d{5,7})", "https://hmdb.ca/metabolites/{}",
             "https://hmdb.ca"),
    Resource("CHEBI", r"(?:ChEBI[ :]+)+(\d+)",
             "https://www.ebi.ac.uk/chebi/searchId.do?chebiId=CHEBI:{}",
             "https://www.ebi.ac.uk/chebi", "CHEBI:{}"),
    Resource("KEGG", r"(?:KEGG[ :]*(?:compound|drug|glycan|cpd)?[ :]+|cpd:)([CDG]\d{5})",
             "https://www.genome.jp/entry/{}", "https://www.genome.jp", "KEGG:{}"),
    Resource("LM", r"(?:(?:LIPID ?MAPS|LM)[ :]+)?(LM[A-Z]{2}[0-9A-Z]{8,10})",
             "https://www.lipidmaps.org/databases/lmsd/{}", "https://www.lipidmaps.org"),
    Resource("DTXSID", r"(?:(?:CompTox|DTXSID)[ :]+)?(DTXSID\d+)",
             "https://comptox.epa.gov/dashboard/chemical/details/{}", "https://comptox.epa.gov"),
    Resource("CHEMBL", r"(?:ChEMBL[ :]+)?(CHEMBL\d+)",
             "https://www.ebi.ac.uk/chembl/explore/compound/{}", "https://www.ebi.ac.uk/chembl"),
    Resource("DrugBank", r"(?:DrugBank[ :]+)?(DB\d{5})", "https://go.drugbank.com/drugs/{}",
             "https://go.drugbank.com"),
    Resource("COCONUT", r"(?:COCONUT[ :]+)?(CNP\d{7}(?:\.\d+)?)",
             "https://coconut.naturalproducts.net/compounds/{}",
             "https://coconut.naturalproducts.net"),
    Resource("FooDB", r"(?:FooDB[ :]+)?(FDB\d{6})", "https://foodb.ca/compounds/{}",
             "https://foodb.ca"),
    Resource("MassBank", r"(MSBNK-[\w.+-]+-[\w.-]+)",
             "https://massbank.eu/MassBank/RecordDisplay?id={}", "https://massbank.eu"),
    Resource("GNPS", r"(CCMSLIB\d{11})",
             "https://gnps.ucsd.edu/ProteoSAFe/gnpslibraryspectrum.jsp?SpectrumID={}",
             "https://gnps.ucsd.edu"),
]  # fmt: skip
_BY_PREFIX = {resource.prefix: resource for resource in _RESOURCES}
_PATTERNS = [
    (re.compile(resource.pattern, re.ASCII | re.IGNORECASE), resource) for resource in _RESOURCES
]
_BARE_KEGG = re.compile(r"C\d{5}", re.ASCII)
_COLLECTION = re.compile(r"[\w .-]{1,60}:(?=.)", re.ASCII)
_HMDB_DIGITS = 7  # since version 4; HMDB00001 is HMDB0000001


def link(identifier: str) -> str | None:
    """Return the address of an identifier's page; None where its resource is not known.

    Examples
    --------
    >>> link("hmdb:HMDB01847"), link("my own 7"), link("CAS 58-08-2")
    ('https://hmdb.ca/metabolites/HMDB0001847', None, None)
    """
    parsed = source_of(identifier)
    return _BY_PREFIX[parsed[0]].page.format(quote(parsed[1])) if parsed else None


def links(identifiers: tuple[str, ...]) -> list[str]:
    """Return the addresses of identifiers; an identifier of no known resource stays as it is."""
    return list(dict.fromkeys(link(text) or text for text in identifiers if text.strip()))


def canonical(identifier: str) -> str:
    """Return the canonical form of an identifier; one of no known resource stays as it is.

    Examples
    --------
    >>> [canonical(text) for text in ("PubChem CID 2519", "hmdb:HMDB01847", "C07481", "lab 7")]
    ['CID:2519', 'HMDB0001847', 'KEGG:C07481', 'lab 7']
    """
    parsed = source_of(identifier)
    return _BY_PREFIX[parsed[0]].canonical.format(parsed[1]) if parsed else identifier


def source_of(identifier: str) -> tuple[str, str] | None:
    """Return the prefix of an identifier's resource and its accession; None if it is not known.

    Examples
    --------
    >>> source_of("CHEBI:27732"), source_of("pubchem:CID2519"), source_of("x")
    (('CHEBI', '27732'), ('CID', '2519'), None)
    """
    text = identifier.strip()
    if _BARE_KEGG.fullmatch(text):
        return "KEGG", text
    while text:
        for pattern, resource in _PATTERNS:
            if match := pattern.fullmatch(text):
                accession = match[1] if resource.prefix == "MassBank" else match[1].upper()
                if resource.prefix == "HMDB":
                    accession = "HMDB" + accession[4:].zfill(_HMDB_DIGITS)
                return resource.prefix, accession
        collection = _COLLECTION.match(text)
        text = text[collection.end() :].strip() if collection else ""
    return None


def home_of(prefix: str) -> str:
    """Return the home page of a resource, by its prefix."""
    return _BY_PREFIX[prefix].home
