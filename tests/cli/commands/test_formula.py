"""``mzseek formula``: the table, its protection, and what cannot be ranked."""

import csv
from pathlib import Path

import pytest

from mzseek.datasets.files import DEMO_QUERIES

pytestmark = pytest.mark.slow


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_table_has_the_formulas_of_each_feature(mzseek, tmp_path: Path) -> None:
    out = tmp_path / "formulas.tsv"
    done = mzseek.json("formula", DEMO_QUERIES, "--out", out, "--top", "3", "--json")
    assert (done["features"], done["without_formula"], done["skipped"]) == (9, 0, 0)
    first = {row["feature"]: row for row in rows(out) if row["rank"] == "1"}
    assert len(first) == 9
    assert first["caffeine"]["molecularFormula"] == "C8H10N4O2"
    assert first["reserpine"]["molecularFormula"] == "C33H40N2O9"
    assert list(rows(out)[0])[:5] == [
        "feature", "rank", "molecularFormula", "adduct", "probability",
    ]  # fmt: skip
    assert all(0 <= float(row["probability"]) <= 1 for row in rows(out))
    assert max(int(row["rank"]) for row in rows(out)) == 3
    # Written again: nothing differs, and the file may be replaced since it is such a table.
    before = out.read_bytes()
    mzseek.ok("formula", DEMO_QUERIES, "--out", out, "--top", "3", "--jobs", "1")
    assert out.read_bytes() == before


def test_other_files_are_not_replaced(mzseek, assert_refused, tmp_path: Path) -> None:
    out = tmp_path / "mine.tsv"
    out.write_text("feature\tmine\n")
    assert_refused("was not written by mzseek formula", "formula", DEMO_QUERIES, "--out", out)
    assert out.read_text() == "feature\tmine\n"
    table = tmp_path / "mine.json"
    assert_refused("expected a name that ends in .tsv", "formula", DEMO_QUERIES, "--out", table)
    spectra = tmp_path / "s.mgf"
    spectra.write_bytes(DEMO_QUERIES.read_bytes())
    assert_refused("name another --out", "formula", spectra, "--out", spectra, "--force")


def test_a_coarse_precursor_has_no_formulas_and_stops_nothing(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    record = "BEGIN IONS\nTITLE={}\nPEPMASS={}\nCHARGE=1+\n138.0662 9\n110.0713 5\nEND IONS\n"
    path.write_text(record.format("fine", "195.0877") + record.format("coarse", "301"))
    out = tmp_path / "formulas.tsv"
    done = mzseek.json("formula", path, "--out", out, "--json")
    assert (done["features"], done["without_formula"]) == (2, 1)
    assert {row["feature"] for row in rows(out)} == {"fine"}


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--elements", "CHXx"), "elements 'CHXx'"), (("--ppm", "x"), "tolerance 'x'")],
)
def test_settings_that_cannot_be_used_are_refused(assert_refused, words, message: str) -> None:
    assert_refused(message, "formula", DEMO_QUERIES, *words)


def test_a_table_of_features_gives_isotope_patterns(mzseek, assert_refused, tmp_path: Path) -> None:
    spectra, table, out = (tmp_path / name for name in ("a.mgf", "quant.txt", "formulas.tsv"))
    spectra.write_text(
        "BEGIN IONS\nFEATURE_ID=17\nPEPMASS=195.0877\nCHARGE=1+\n138.0662 9\n110.0713 5\nEND IONS\n"
    )
    table.write_text(
        "Alignment ID\tAverage Mz\tMS1 isotopic spectrum\n"
        "17\t195.0877\t195.0877:1000 196.0906:98 197.0930:7\n"
    )
    told = mzseek.ok("formula", spectra, "--features", table, "--out", out)
    assert "quant.txt: 1 feature without a survey scan took the isotope pattern" in told
    assert {bool(row["isotopeScore"]) for row in rows(out)} == {True}
    assert rows(out)[0]["molecularFormula"] == "C8H10N4O2"
    before = table.read_bytes()
    words = ("formula", spectra, "--features", table, "--force")
    assert_refused("is read as well", *words, "--out", table)
    assert table.read_bytes() == before
    table.write_text("SMILES\nCCO\n")
    assert_refused("is no table of features", *words)
