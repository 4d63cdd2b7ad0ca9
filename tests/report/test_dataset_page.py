import re
from pathlib import Path

from mzseek.datasets.files import DEMO_QUERIES
from mzseek.datasets.prepare import prepare
from mzseek.export.run_pages import write_dataset_page


def test_page(tmp_path: Path, read_page, assert_fits_narrow_screens) -> None:
    smiles = ["CC(=O)Oc1ccccc1C(=O)O", "COC(=O)c1ccc(C(=O)O)cc1"]
    table = tmp_path / "s.tsv"
    header = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\n"
    rows = [f"<S{n}>\t50,60,70\t1,2,3\t{s}\t181.05\t[M+H]+\ttrain\n" for n, s in enumerate(smiles)]
    table.write_text(header + "".join(rows))
    lists = tmp_path / "c.json"
    lists.write_text(f'{{"{smiles[0]}": ["{smiles[0]}", "{smiles[1]}"]}}')
    prepared, _ = prepare(table, {"formula": lists}, tmp_path / "p")
    pages = []
    for name in ("one.html", "two.html"):
        page = write_dataset_page(prepared, tmp_path / name, queries=DEMO_QUERIES, simulated=True)
        pages.append(page.read_text())
    assert pages[0] == pages[1]
    text = pages[0]
    assert "Simulated" in text
    assert "&lt;S0&gt;" in text  # identifiers are text, never markup
    assert "<S0>" not in text
    assert not re.search(r'(src|href)="http', text)  # nothing is fetched from elsewhere
    assert "caffeine" in read_page(text)
    assert_fits_narrow_screens(text)
    plain = write_dataset_page(prepared, tmp_path / "three.html").read_text()
    assert "Simulated" not in plain
