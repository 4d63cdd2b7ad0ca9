"""Identifiers of known patterns have pages; others stay as they are."""

import pytest

from mzseek.annotation.writing.links import home_of, link, links, source_of


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
    prefix, own = source_of(identifier)
    assert own in page
    assert home_of(prefix).startswith("https://")


@pytest.mark.parametrize(
    "identifier",
    ["", "17", "caffeine", "C07481", "HMDB0001847<script>", "CID2519\n=1", "javascript:alert(1)"],
)
def test_other_texts_are_no_links(identifier: str) -> None:
    assert link(identifier.replace("\n=1", " =1")) is None
    assert source_of("x" + identifier) is None


def test_links_keep_what_is_not_known_and_drop_twins() -> None:
    assert links(("CHEMBL113", "own 7", "CHEMBL113", " ")) == [
        "https://www.ebi.ac.uk/chembl/explore/compound/CHEMBL113", "own 7",
    ]  # fmt: skip
