"""Real files of other programs, and all the MassBank records: every one read or set aside."""

import csv
import gzip
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.formulas import feature_formulas
from mzseek.annotation.query import USUAL
from mzseek.annotation.reading import Features
from mzseek.bundle import Bundle
from mzseek.chem.adducts import parse_adduct
from mzseek.chem.ions import obstacle
from mzseek.core.errors import InputError
from mzseek.datasets.files import read_candidates
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared
from mzseek.export.job import annotate_files
from mzseek.formulas import rank_formulas
from mzseek.spectra import read_spectra
from mzseek.spectra.records import parse_time

pytestmark = pytest.mark.shared

# Read, set aside. What is set aside are MS1 scans.
COUNTS = {
    "Kaempferol.ms": (3, 1),
    "example_5_spectra.mgf": (5, 0),
    "gnps_spectra.json": (5, 0),
    "massbank_five_spectra.msp": (5, 0),
    "pesticides.mgf": (76, 0),
    "testdata.mzXML": (4, 1),
    "testdata.mzml": (10, 2),
}
NO_SPECTRA = {"example_5_spectra_candidates.json", "example_5_spectra_split.tsv"}


def read(path: Path):
    rejects: list[tuple[str, str]] = []
    return list(read_spectra(path, rejects)), rejects


def test_every_file_is_accounted_for(shared: Path) -> None:
    present = {path.name for path in (shared / "data" / "formats").iterdir()}
    assert present == set(COUNTS) | NO_SPECTRA


@pytest.mark.parametrize("name", COUNTS)
def test_read_or_set_aside(shared: Path, name: str) -> None:
    spectra, rejects = read(shared / "data" / "formats" / name)
    assert (len(spectra), len(rejects)) == COUNTS[name]
    assert {reason.code for _, reason in rejects} <= {"ms1"}
    for spectrum in spectra:
        assert (np.diff(spectrum.mz) >= 0).all()
        assert (spectrum.intensities > 0).all()
        assert np.isfinite(spectrum.precursor_mz)


def test_what_other_programs_write_is_understood(shared: Path) -> None:
    """One known value of each real file."""
    folder = shared / "data" / "formats"
    kaempferol, _ = read(folder / "Kaempferol.ms")
    assert {s.metadata["feature_id"] for s in kaempferol} == {"Kaempferol"}
    assert kaempferol[0].metadata["ms1_peaks"].startswith("287.055541992188:29941396.0 288.05")
    pesticides, _ = read(folder / "pesticides.mgf")
    assert {(s.charge, s.metadata["adduct_from"]) for s in pesticides} == {(-1, "name")}
    scans, _ = read(folder / "testdata.mzml")
    assert scans[0].identifier == "scan=2"
    assert scans[0].metadata["native_id"] == "controllerType=0 controllerNumber=1 scan=2"
    assert scans[0].metadata["retention_time"].endswith(" s")
    standards, _ = read(shared / "data" / "cbio_standards.msp")
    times = {s.metadata.get("retention_time") for s in standards} - {None}
    assert times
    assert all(parse_time(text)[1] == "" for text in times)


def test_survey_scans_of_other_programs_are_kept_for_isotope_patterns(shared: Path) -> None:
    folder = shared / "data" / "formats"
    for name in ("testdata.mzml", "testdata.mzXML"):
        scans, _ = read(folder / name)
        assert [s.identifier for s in scans if "ms1_peaks" not in s.metadata] == []
    standards, _ = read(shared / "data" / "cbio_standards.msp")
    assert sum("ms1_peaks" in s.metadata for s in standards) == 636


# Spectra, those whose isotope pattern is evidence, and the first formula of the first of them.
@pytest.mark.parametrize(
    ("name", "spectra", "patterns", "first"),
    [
        ("Kaempferol.ms", 3, 3, "C15H10O6"),
        ("testdata.mzml", 10, 8, "C10H22O4"),
        ("testdata.mzXML", 4, 4, "C14H16O10"),
    ],
)
def test_survey_scans_are_evidence_for_formulas(
    shared: Path, name: str, spectra: int, patterns: int, first: str
) -> None:
    scans, _ = read(shared / "data" / "formats" / name)
    ranked = [rank_formulas(scan, ppm=10) for scan in scans]
    with_pattern = [found[0] for found in ranked if found[0].isotope_score is not None]
    assert (len(ranked), len(with_pattern)) == (spectra, patterns)
    assert with_pattern[0].formula == first


def test_records_of_level_1_are_evidence_for_formulas(shared: Path, tmp_path: Path) -> None:
    """The real spectra of a .ms file, as MZmine exports features for SIRIUS."""
    spectra, _ = read(shared / "data" / "formats" / "Kaempferol.ms")
    scan = spectra[0].metadata["ms1_peaks"].replace(":", " ").split()
    levels = [(1, list(zip(scan[::2], scan[1::2], strict=True)))]
    levels += [(2, list(zip(s.mz, s.intensities, strict=True))) for s in spectra]
    path = tmp_path / "sirius.mgf"
    path.write_text(
        "".join(
            f"BEGIN IONS\nFEATURE_ID=1\nPEPMASS={spectra[0].precursor_mz}\nCHARGE=1+\n"
            f"MSLEVEL={level}\n{chr(10).join(f'{mz} {height}' for mz, height in peaks)}\n"
            "END IONS\n"
            for level, peaks in levels
        )
    )
    again, skipped = read(path)
    assert [reason.code for _, reason in skipped] == ["ms1"]
    assert len(again) == 3
    config = AnnotateConfig(ppm=10)
    (feature,) = Features(path, config)
    best = feature_formulas(feature, config, 1).formulas[0]
    assert (best.formula, best.isotope_score) == ("C15H10O6", 0.0)


def test_files_that_hold_no_spectra_say_so(shared: Path) -> None:
    folder = shared / "data" / "formats"
    spectra, rejects = read(folder / "example_5_spectra_candidates.json")
    assert (len(spectra), len(rejects)) == (0, 1)
    assert "no list of peaks" in rejects[0][1]
    try:
        spectra, rejects = read(folder / "example_5_spectra_split.tsv")
    except InputError as error:
        rejects = [("", str(error))]
    assert "no columns hold peaks (mzs and intensities, or peaks)" in rejects[0][1]


@pytest.mark.parametrize(
    "name", ["example_5_spectra.mgf", "pesticides.mgf", "gnps_spectra.json", "testdata.mzml",
             "massbank_five_spectra.msp", "testdata.mzXML"],
)  # fmt: skip
def test_peaks_and_precursors_are_those_of_matchms(shared: Path, name: str) -> None:
    """matchms is the oracle: another reader, by others."""
    importing = pytest.importorskip("matchms.importing")
    path = str(shared / "data" / "formats" / name)
    suffix = Path(name).suffix.lower()
    theirs = list(getattr(importing, f"load_from_{suffix[1:]}")(path))
    if suffix == ".mzxml":
        theirs += list(importing.load_from_mzxml(path, ms_level=3))
    ours, _ = read(Path(path))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        positive = other.peaks.intensities > 0
        np.testing.assert_allclose(one.mz, other.peaks.mz[positive])
        np.testing.assert_allclose(one.intensities, other.peaks.intensities[positive])
        assert one.precursor_mz == pytest.approx(float(other.get("precursor_mz")))


def test_all_massbank_records(shared: Path) -> None:
    spectra, rejects = read(shared / "data" / "massbank_records.zip")
    assert len(spectra) + len(rejects) == 2500
    assert len(spectra) == 2081
    kinds = Counter(kind(reason) for _, reason in rejects)
    assert kinds == {
        "is an MS1 spectrum, expected MS2 or higher": 152,
        "is an EI spectrum, in which no ion was selected, expected MS/MS": 264,
        "is deprecated": 3,
    }
    adducts = Counter(s.adduct for s in spectra)
    assert adducts["[M+H]+"] == 1312
    assert adducts[None] == 29  # none stated, or two
    assert all(where.endswith(".txt") for where, _ in rejects)


def test_massspecgyms_candidates(shared: Path) -> None:
    path = shared / "data" / "formats" / "example_5_spectra_candidates.json"
    lists = dict(read_candidates(path, lambda *_: None))
    smiles = {
        s.metadata["smiles"] for s in read_spectra(path.with_name("example_5_spectra.mgf"), [])
    }
    assert set(lists) == smiles  # keys as deposited, with stereo


@pytest.mark.slow
def test_massbank_set_prepares_whole(shared: Path, tmp_path: Path) -> None:
    """A quarter of the lists, to keep it short; the benchmark measures all of it."""
    import gzip
    import json

    data = shared / "data"
    lists = json.loads(gzip.decompress((data / "massbank_candidates_formula.json.gz").read_bytes()))
    part = {key: lists[key] for key in sorted(lists)[::16]}
    (tmp_path / "candidates.json").write_text(json.dumps(part))
    prepared, _ = prepare(
        data / "massbank.tsv.gz", {"formula": tmp_path / "candidates.json"}, tmp_path / "out"
    )
    assert isinstance(prepared, Prepared)
    assert prepared.manifest["counts"]["spectra_by_fold"] == {
        "train": 35_531, "val": 5_607, "test": 5_562,
    }  # fmt: skip
    assert prepared.manifest["counts"]["measured_molecules"] == 4_406
    assert prepared.manifest["counts"]["set_aside"] == 0
    assert len(prepared.candidates("formula")) == len(part)


# Answered, set aside: by `mzseek annotate`, whose reasons are told below.
ANNOTATED = {
    "Kaempferol.ms": (3, 1),
    "example_5_spectra.mgf": (5, 0),
    "example_5_spectra_candidates.json": (0, 1),
    "example_5_spectra_split.tsv": (0, 1),
    "gnps_spectra.json": (5, 0),
    "massbank_five_spectra.msp": (5, 0),
    "pesticides.mgf": (76, 0),
    "testdata.mzXML": (1, 4),
    "testdata.mzml": (10, 2),
}
# Why a record is not answered: whatever else is said is a fault of ours.
REASONS = (
    "is an MS1 spectrum, expected MS2 or higher",
    "is an MS1 spectrum: its isotope pattern was kept with its MS2 spectra",
    "is an EI spectrum, in which no ion was selected, expected MS/MS",
    "is an MS3 spectrum, of the fragment m/z …",
    "is an MS4 spectrum, of the fragment m/z …",
    "is no spectrum: has no list of peaks under peaks_json",
    "no columns hold peaks …",
    "is deprecated",
)


def annotated(paths: Iterable[Path], out: Path) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Answered records by file and set-aside ones by reason, as the tables in the folder say."""
    done = annotate_files(list(paths), out, AnnotateConfig(), jobs=2)
    assert done.counts["unaccounted"] == 0
    assert done.counts["records"] == done.counts["answered"] + done.counts["set_aside"]
    answered: Counter[str] = Counter()
    for row in rows(out / "summary.tsv"):
        answered[Path(row["file"]).name] += int(row["spectra"])
    aside: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows(out / "skipped.tsv"):
        aside[Path(row["where"].split(": ")[0]).name][kind(row["reason"])] += 1
    assert answered.total() == done.counts["answered"]
    assert sum(each.total() for each in aside.values()) == done.counts["set_aside"]
    return answered, aside


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def kind(reason: str) -> str:
    return next((each for each in REASONS if reason.startswith(each.rstrip("…"))), reason)


@pytest.mark.slow
def test_every_file_is_annotated_or_set_aside(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "data" / "formats").iterdir())
    answered, aside = annotated(files, tmp_path / "out")
    found = {path.name: (answered[path.name], aside[path.name].total()) for path in files}
    assert found == ANNOTATED
    assert {reason for each in aside.values() for reason in each} <= set(REASONS)


@pytest.mark.slow
def test_every_tenth_massbank_record_is_annotated_or_set_aside(
    shared: Path, tmp_path: Path
) -> None:
    """benchmarks/records.py takes them all."""
    with (
        zipfile.ZipFile(shared / "data" / "massbank_records.zip") as every,
        zipfile.ZipFile(tmp_path / "some.zip", "w") as some,
    ):
        for name in sorted(n for n in every.namelist() if n.endswith(".txt"))[::10]:
            some.writestr(name, every.read(name))
    answered, aside = annotated([tmp_path / "some.zip"], tmp_path / "out")
    reasons = aside["some.zip"]
    assert answered.total() + reasons.total() == 250
    assert set(reasons) <= set(REASONS)
    assert answered.total() > 200


def _some_spectra(path: Path, every: int) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))[::every]


PERMANENT = {"[M]+", "[M]-", "[M]2+"}
TRIED = {ion for ions in USUAL.values() for ion in ions}


@lru_cache(maxsize=1)
def _structure(smiles: str) -> tuple[set[str], int, bool, int]:
    """Elements, hydrogens, whether all bonds are single, and net charge."""
    molecule = Chem.MolFromSmiles(smiles)
    return (
        {atom.GetSymbol() for atom in molecule.GetAtoms()},
        sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms()),
        not any(bond.GetBondTypeAsDouble() > 1 for bond in molecule.GetBonds()),
        Chem.GetFormalCharge(molecule),
    )


def _is_impossible(smiles: str, adduct: str) -> bool:
    """By the structure, in other words than those of the rules."""
    symbols, hydrogens, saturated, charge = _structure(smiles)
    parts = {name: number for number, name in parse_adduct(adduct).parts}
    polar = symbols & {"N", "O", "S", "P", "Se", "As"}
    return (
        (adduct in PERMANENT and not charge)
        or (adduct in TRIED - PERMANENT and charge != 0)
        or (charge * parse_adduct(adduct).charge < 0 and parts.get("H", 0) > -2)
        or (parts.get("H2O", 0) < 0 and "O" not in symbols)
        or (parts.get("NH3", 0) < 0 and "N" not in symbols)
        or (bool({"Na", "K", "NH4"} & set(parts)) and not polar)
        or (parts.get("H", 0) > 0 and saturated and not polar)
        or (adduct == "[M-H]-" and (hydrogens == 0 or (saturated and symbols == {"C"})))
        or (bool({"Cl", "FA", "HAc"} & set(parts)) and symbols == {"C"})
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), [("massbank", 1_900), ("massbank_more", 700)])
def test_no_candidate_is_an_ion_that_cannot_exist(
    shared: Path, tmp_path: Path, name: str, every: int
) -> None:
    """With adducts that are stated, and without."""
    rows = _some_spectra(shared / "data" / f"{name}.tsv.gz", every)
    for is_stated in (True, False):
        lines = []
        for row in rows:
            sign = row["adduct"][-1]
            ion = [f"ADDUCT={row['adduct']}"] if is_stated else []
            peaks = zip(row["mzs"].split(","), row["intensities"].split(","), strict=True)
            lines += ["BEGIN IONS", f"TITLE={row['identifier']}", f"PEPMASS={row['precursor_mz']}",
                      f"CHARGE=1{sign}", *ion, *map(" ".join, peaks), "END IONS", ""]  # fmt: skip
        path, out = tmp_path / f"{is_stated}.mgf", tmp_path / f"{is_stated}.tsv"
        path.write_text("\n".join(lines))
        annotate_files([path], out, AnnotateConfig(), jobs=1)
        with out.open(newline="", encoding="utf-8") as file:
            found = {(r["smiles"], r["adduct"]) for r in csv.DictReader(file, delimiter="\t")}
        assert len(found) > 100
        assert [each for each in found if _is_impossible(*each)] == []


@pytest.mark.slow
def test_no_bundled_molecule_is_a_candidate_for_an_ion_that_cannot_exist(shared: Path) -> None:
    """All molecules with all ions that are tried or that a spectrum of the shared sets states.

    Candidates of every front end pass `obstacle`: no output on these sets can hold another pair.
    """
    data = shared / "data"
    stated = {spectrum.adduct for spectrum in read(data / "massbank_records.zip")[0]} - {None}
    stated |= {row["adduct"] for name in ("massbank", "massbank_more")
               for row in _some_spectra(data / f"{name}.tsv.gz", 1)}  # fmt: skip
    pairs = [(ion, False) for ion in sorted(TRIED)]
    pairs += [(ion, True) for ion in sorted(stated - TRIED)]
    table = Bundle.open().molecules.table.select(["smiles", "formula"]).to_pydict()
    allowed = 0
    for smiles, formula in zip(table["smiles"], table["formula"], strict=True):
        ions = [ion for ion, told in pairs if obstacle(smiles, formula, ion, stated=told) is None]
        allowed += len(ions)
        assert [ion for ion in ions if _is_impossible(smiles, ion)] == [], smiles
    assert allowed > len(table["smiles"])
