"""Identifiers of known resources have pages; others stay as they are."""

import pytest

from mzseek.chem.identifiers import canonical, home_of, link, links, source_of


@pytest.mark.parametrize(
    ("identifier", "page"),
    [
        ("HMDB0001847", "https://hmdb.ca/metabolites/HMDB0001847"),
        ("CID2519", "https://pubchem.ncbi.nlm.nih.gov/compound/2519"),
        ("PubChem CID:2519", "https://pubchem.ncbi.nlm.nih.gov/compound/2519"),
        ("CHEBI:27732", "https://www.ebi.ac.uk/chebi/searchId.do?chebiId=CHEBI:27732"),
        ("KEGG:C07481", "https://www.genome.jp/entry/C07481"),
        ("LMFA01010001", "https://www.lipidmaps.org/databases/lmsd/LMFA01010001"),
        ("DTXSID0020232", "https://comptox.epa.gov/dashboard/chemical/details/DTXSID0020232"),
        ("CHEMBL113", "https://www.ebi.ac.uk/chembl/explore/compound/CHEMBL113"),
        ("DB00201", "https://go.drugbank.com/drugs/DB00201"),
        (
            "MSBNK-Eawag-EA000001",
            "https://massbank.eu/MassBank/RecordDisplay?id=MSBNK-Eawag-EA000001",
        ),
    ],
)
def test_known_patterns(identifier: str, page: str) -> None:
    assert link(identifier) == page
    assert link(f"my list:{identifier}") == page
    prefix, own = source_of(identifier)
    assert own in page
    assert home_of(prefix).startswith("https://")
    assert link(canonical(identifier)) == page


@pytest.mark.parametrize(
    ("canonical_form", "spellings"),
    [
        ("CID:2519", ["CID:2519", "CID 2519", "PubChem CID 2519", "PUBCHEM:CID:2519",
                      "pubchem:CID2519", "pubchem:2519", "PubChem_CID:2519"]),
        ("HMDB0001847", ["HMDB01847", "hmdb:HMDB0001847", "HMDB:HMDB0001847", "hmdb0001847"]),
        ("CHEBI:27732", ["ChEBI:27732", "chebi:CHEBI:27732", "ChEBI 27732", "mine:CHEBI:27732"]),
        ("KEGG:C07481", ["C07481", "kegg:C07481", "KEGG C07481", "cpd:C07481"]),
        ("DTXSID0020232", ["DTXSID0020232", "CompTox:DTXSID0020232"]),
    ],
)  # fmt: skip
def test_usual_spellings_have_one_form(canonical_form: str, spellings: list[str]) -> None:
    assert {canonical(text) for text in spellings} == {canonical_form}
    assert canonical(canonical_form) == canonical_form


@pytest.mark.parametrize(
    "identifier",
    ["", "17", "caffeine", "58-08-2", "CAS 58-08-2", "mine:C07481", "mine:2519", "PubChem SID 7",
     "HMDB0001847<script>", "CID2519\n=1", "javascript:alert(1)"],
)  # fmt: skip
def test_other_texts_are_no_links(identifier: str) -> None:
    assert link(identifier.replace("\n=1", " =1")) is None
    assert source_of("x" + identifier) is None
    assert canonical(identifier) == identifier


def test_links_keep_what_is_not_known_and_drop_twins() -> None:
    assert links(("CHEMBL113", "own 7", "CHEMBL113", " ")) == [
        "https://www.ebi.ac.uk/chembl/explore/compound/CHEMBL113", "own 7",
    ]  # fmt: skip
