from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import exact_mass, precursor_mz
from mzseek.core.errors import DatasetError
from mzseek.datasets.build import INFERRED, Annotated, build_dataset, read_annotated

CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
INCHI = "1S/C8H10N4O2/c1-10-4-9-6-5(10)7(13)12(3)8(14)11(6)2/h4H,1-3H3"
MASS = exact_mass(CAFFEINE)


def msp(**fields: object) -> str:
    given = {"Name": "x", "PrecursorMZ": precursor_mz(MASS, "[M+H]+")} | fields
    lines = [f"{key}: {value}" for key, value in given.items() if value]
    return "\n".join([*lines, "Num Peaks: 2", f"50.1 {len(str(fields))}", "138.06 100", "", ""])


def read(folder: Path, *records: str) -> tuple[Annotated, list[str]]:
    (folder / "library.msp").write_text("".join(records))
    rejects: list[tuple[str, str]] = []
    found = read_annotated([folder / "library.msp"], lambda *pair: rejects.append(pair))
    return found, [reason for _, reason in rejects]


@pytest.mark.parametrize(
    "fields",
    [
        {"InChI": INCHI},
        {"InChI": f"InChI={INCHI}"},
        {"InChI": f'"InChI={INCHI}"'},
        {"SMILES": INCHI},
        {"SMILES": f"InChI={INCHI}"},
        {"InChI": CAFFEINE},
        {"SMILES": "C1CC", "InChI": INCHI},
        {"SMILES": CAFFEINE, "InChI": "nonsense"},
        {"SMILES": "n/a", "InChI": INCHI},
    ],
)
def test_a_structure_is_read_wherever_it_stands_and_however_it_is_written(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    found, reasons = read(tmp_path, msp(Precursor_type="[M+H]+", **fields))
    assert reasons == []
    assert [molecule.smiles for molecule in found.molecules] == [CAFFEINE]


def test_a_structure_that_fails_in_both_fields_says_both_reasons(tmp_path: Path) -> None:
    found, reasons = read(tmp_path, msp(SMILES="C1CC", InChI="1S/x", Precursor_type="[M+H]+"))
    assert found.entries == []
    assert reasons == ["SMILES 'C1CC': not valid SMILES; InChI '1S/x' cannot be read"]


@pytest.mark.parametrize(
    "adduct", ["[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+2H]2+", "[M-H]-", "[M+FA-H]-", "[2M+H]+"]
)
def test_an_adduct_that_precursor_and_mass_fix_is_inferred(tmp_path: Path, adduct: str) -> None:
    mz = precursor_mz(MASS, adduct)
    for fields in ({}, {"Ion_mode": "P" if "+" in adduct[-2:] else "N"}):
        found, reasons = read(tmp_path, msp(SMILES=CAFFEINE, PrecursorMZ=mz, **fields))
        (entry,) = found.entries
        assert reasons == []
        assert entry.spectrum.adduct == adduct
        assert entry.spectrum.metadata["adduct_from"] == INFERRED
        assert entry.spectrum.charge is not None
        assert np.sign(entry.spectrum.charge) == (1 if adduct.endswith("+") else -1)


def test_a_stated_adduct_is_never_replaced(tmp_path: Path) -> None:
    found, reasons = read(tmp_path, msp(SMILES=CAFFEINE, Precursor_type="[M+Na]+"))
    assert found.entries == []
    assert "precursor disagrees with structure and adduct" in reasons[0]
    found, _ = read(tmp_path, msp(SMILES=CAFFEINE, Precursor_type="[M+H]+"))
    assert "adduct_from" not in found.entries[0].spectrum.metadata


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"PrecursorMZ": 250.0}, "has no adduct, and none of the usual ones fits"),
        ({"PrecursorMZ": MASS}, "more than one of the usual ones fits ([M]+ and [M]-)"),
        ({"Ion_mode": "N"}, "has no adduct, and none of the usual ones fits"),
        ({"Charge": "2+"}, "has no adduct, and none of the usual ones fits"),
        ({"Precursor_type": "[M+H]+/[M+Na]+"}, "has no single adduct ([M+H]+/[M+Na]+)"),
    ],
)
def test_what_leaves_the_adduct_open_is_set_aside(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    found, reasons = read(tmp_path, msp(SMILES=CAFFEINE, **fields))
    assert found.entries == []
    assert reason in reasons[0]


def test_an_ion_of_unknown_adduct_takes_the_one_that_fits(tmp_path: Path) -> None:
    found, _ = read(tmp_path, msp(SMILES=CAFFEINE, Precursor_type="[M+?]+"))
    assert found.entries[0].spectrum.adduct == "[M+H]+"


def test_files_without_structures_say_what_can_be_done_with_them(tmp_path: Path) -> None:
    library = tmp_path / "my run.msp"
    library.write_text(msp(Name="a") + msp(Name="b", MS_type="MS1") + msp(Name="cc"))
    (tmp_path / "pool.smi").write_text("CCO\n")
    with pytest.raises(DatasetError) as caught:
        build_dataset([library], [tmp_path / "pool.smi"], tmp_path / "out")
    message = str(caught.value)
    assert message.startswith(f"{library}: 2 spectra, none with a structure")
    assert f"mzseek show '{library}'" in message
    assert "SMILES or InChI" in message
    assert "\n" not in message
