import json
import math
from pathlib import Path

import pytest

from mzseek.core.errors import DatasetError
from mzseek.datasets.molecules import collect

HEADER = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\tcollision_energy\n"
ROWS = [
    "a\t50.5,80\t1,0.5\tCCO\t47.05\t[M+H]+\ttrain\t30 eV\n",
    "b\t60\t1\tOCC\t69.03\t[M+Na]+\ttest\t\n",
    "c\t70\t1\tCCO\t47.05\t[M+H]+\tval\tramp\n",
    "far\t5000\t1\tCCN\t46.06\t[M+H]+\ttrain\t\n",
]


@pytest.fixture
def spectra(tmp_path: Path) -> Path:
    (tmp_path / "spectra.tsv").write_text(HEADER + "".join(ROWS))
    return tmp_path / "spectra.tsv"


def test_what_is_read_stands_side_by_side(spectra: Path) -> None:
    found = collect(spectra, {})
    assert found.identifiers == ["a", "b", "c"]
    assert found.smiles == {"CCO": 0, "OCC": 1}
    assert list(found.spectrum_smiles) == [0, 1, 0]
    assert list(found.folds) == [0, 2, 1]
    assert [found.adducts[code] for code in found.adduct_codes] == ["[M+H]+", "[M+Na]+", "[M+H]+"]
    assert list(found.peak_counts) == [2, 1, 1]
    assert list(found.mz) == [50.5, 80, 60, 70]
    assert found.energies[0] == 30
    assert all(math.isnan(energy) for energy in found.energies[1:])


def test_a_spectrum_without_a_peak_in_the_range_is_set_aside(spectra: Path) -> None:
    [(where, reason)] = collect(spectra, {}).skipped
    assert where.endswith(": far")
    assert "has no peak between m/z" in reason
    with pytest.raises(DatasetError, match=r"no spectrum could be used \(the first: has no peak"):
        collect(spectra, {}, low=900, high=950)


def test_lists_share_the_numbers_of_the_spectra_s_smiles(spectra: Path, tmp_path: Path) -> None:
    (tmp_path / "lists.json").write_text(json.dumps({"CCO": ["CCO", "CCC"], "OCC": ["CCC"]}))
    told: list[tuple] = []
    found = collect(
        spectra, {"mass": tmp_path / "lists.json"}, progress=lambda *step: told.append(step)
    )
    numbers = {number: smiles for smiles, number in found.smiles.items()}
    lists = found.lists["mass"]
    assert [numbers[key] for key in lists.keys] == ["CCO", "OCC"]
    assert list(lists.counts) == [2, 1]
    assert [numbers[member] for member in lists.members] == ["CCO", "CCC", "CCC"]
    assert [step[:2] for step in told] == [("spectra", 3), ("mass candidates", 2)]
