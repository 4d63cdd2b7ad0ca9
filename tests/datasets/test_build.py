import gzip
import json
from pathlib import Path

import pytest

from mzseek.chem import exact_mass, formula, inchikey_block, precursor_mz
from mzseek.core.errors import DatasetError, InputError
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.build import BuildOptions, build_dataset
from mzseek.datasets.check import check_dataset
from mzseek.datasets.files import find_dataset, read_table
from mzseek.parallel import LocalEngine

MOLECULES = [
    "CC(=O)Oc1ccccc1C(=O)O", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "N[C@@H](Cc1ccccc1)C(=O)O",
    "OC(=O)CCCCC(=O)O", "Oc1ccc(cc1)C(=O)O.[Na+]", "CN1CCC[C@H]1c1cccnc1",
    "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "C1CCNCC1",
    "O=C(O)c1cccnc1",
]  # fmt: skip
POOL = [
    "COC(=O)c1ccc(C(=O)O)cc1", "O=C(O)Cc1ccc2c(c1)OCO2", "CC(N)(C(=O)O)c1ccccc1",
    "CCn1cnc2c1c(=O)[nH]c(=O)n2C", "COC(=O)CCCC(=O)OC", "O=Cc1ccc(O)c(O)c1", "CCCCC(=O)N",
    "NC(Cc1ccccc1)C(=O)O", "CC(=O)[O-].[K+]", "O=C(O)c1ccncc1", "not a molecule",
]  # fmt: skip


def record(identifier: str, smiles: str, adduct: str = "[M+H]+", **fields: str) -> str:
    from rdkit import Chem

    from mzseek.chem import parse_molecule, standardise

    neutral = Chem.MolToSmiles(standardise(parse_molecule(smiles)))
    mz = precursor_mz(exact_mass(neutral), adduct)
    values = {"SPECTRUM_ID": identifier, "PEPMASS": f"{mz:.5f}", "ADDUCT": adduct, "SMILES": smiles}
    lines = [f"{key}={value}" for key, value in (values | fields).items() if value]
    return "\n".join(
        ["BEGIN IONS", *lines, "50.1 10", f"77.1 {len(identifier)}", "105.03 100", "END IONS\n"]
    )


@pytest.fixture
def sources(tmp_path: Path) -> tuple[list[Path], Path]:
    first = "".join(record(f"a{n}", smiles) for n, smiles in enumerate(MOLECULES))
    first += record("sodium", MOLECULES[0], "[M+Na]+")
    first += record("a0-copy", MOLECULES[0]).replace(
        "77.1 7", "77.1 2"
    )  # the same but for its name
    first += record("no structure", "CCO", SMILES="")
    first += record("by InChI", "CCO", SMILES="", INCHI="InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3")
    first += record("broken structure", "CCO", SMILES="C1CC")
    first += record("no adduct", "CCO", ADDUCT="")
    first += record("wrong precursor", "CCO", PEPMASS="47.2")
    second = record("a1", MOLECULES[1])  # an identifier of the first file
    second += record("enantiomer", "N[C@H](Cc1ccccc1)C(=O)O", COLLISION_ENERGY="20")
    (tmp_path / "first.mgf").write_text(first)
    (tmp_path / "second.mgf").write_text(second)
    (tmp_path / "pool.smi").write_text("\n".join(POOL) + "\n")
    return [tmp_path / "first.mgf", tmp_path / "second.mgf"], tmp_path / "pool.smi"


def test_build(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    manifest = build_dataset(libraries, [pool], tmp_path / "out", BuildOptions(seed=3))
    files = find_dataset(tmp_path / "out")
    spectra = list(read_table(files.spectra, lambda *_: None))
    names = {s.identifier for s in spectra}
    assert names == {
        *(f"a{n}" for n in range(10)), "sodium", "by InChI", "enantiomer", "no adduct",
    }  # fmt: skip
    reasons = dict(
        line.split("\t") for line in (tmp_path / "out" / "rejects.tsv").read_text().splitlines()
    )
    reasons = {where.rpartition(": ")[2]: reason for where, reason in reasons.items()}
    assert reasons["a0-copy"] == "is a duplicate (of a0)"
    assert reasons["no structure"] == "has no structure (SMILES or InChI)"
    assert "not valid SMILES" in reasons["broken structure"]
    assert "expected 47.04" in reasons["wrong precursor"]
    assert reasons["a1"] == "is a duplicate (of a1)"
    assert "not valid SMILES" in reasons["line 11"]
    assert manifest["counts"]["spectra"] == 14
    assert manifest["counts"]["adducts_inferred"] == 1
    assert manifest["counts"]["molecules"] == 11  # stereo twins are one
    by_name = {s.identifier: s.metadata for s in spectra}
    assert by_name["a2"]["smiles"] == by_name["enantiomer"]["smiles"] == "NC(Cc1ccccc1)C(=O)O"
    assert by_name["a4"]["smiles"] == "O=C(O)c1ccc(O)cc1"  # no sodium


def test_candidates_fit_and_hold_the_truth_once(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    build_dataset(libraries, [pool], tmp_path / "out")
    files = find_dataset(tmp_path / "out")
    for setting, path in files.candidates.items():
        lists = json.loads(gzip.decompress(path.read_bytes()))
        assert len(lists) == 11
        for truth, candidates in lists.items():
            assert candidates.count(truth) == 1
            blocks = [inchikey_block(c) for c in candidates]
            assert len(set(blocks)) == len(blocks)
            for candidate in candidates:
                if setting == "formula":
                    assert formula(candidate) == formula(truth)
                assert exact_mass(candidate) == pytest.approx(exact_mass(truth), rel=1.1e-5)
        assert len(lists["CC(=O)Oc1ccccc1C(=O)O"]) == 3
    report = check_dataset(files)
    assert report.faults == 0


def test_the_truth_is_not_given_away_by_its_place(tmp_path: Path) -> None:
    alkanes = [f"{'C' * n}(C)CC(C)O" for n in range(3, 23)]
    library = "".join(record(f"s{n}", smiles) for n, smiles in enumerate(alkanes))
    (tmp_path / "l.mgf").write_text(library)
    isomers = [f"{'C' * n}C{'C' * k}O" for n in range(3, 25) for k in range(1, 4)]
    isomers += [f"{'C' * n}OC{'C' * k}" for n in range(1, 14) for k in range(1, 14)]
    (tmp_path / "pool.smi").write_text("\n".join(isomers))
    build_dataset([tmp_path / "l.mgf"], [tmp_path / "pool.smi"], tmp_path / "out")
    path = find_dataset(tmp_path / "out").candidates["mass"]
    lists = json.loads(gzip.decompress(path.read_bytes()))
    places = [values.index(truth) for truth, values in lists.items() if len(values) > 3]
    assert len(places) > 10
    assert len(set(places)) > 3


def test_same_seed_same_bytes_other_seed_other_split(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        build_dataset(libraries, [pool], tmp_path / name, BuildOptions(seed=seed), jobs=1)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    assert (tmp_path / "one" / "spectra.tsv.gz").read_bytes() != (
        tmp_path / "three" / "spectra.tsv.gz"
    ).read_bytes()


def test_formulas_can_be_kept_together(tmp_path: Path) -> None:
    # Four isomers far from each other in structure, and fillers for the folds.
    isomers = ["CC(=O)Oc1ccccc1C(=O)O", "O=C(O)Cc1ccc2c(c1)OCO2", "COC(=O)c1ccc(C(=O)O)cc1"]
    others = ["CCO", "c1ccccc1", "CCN", "C1CCCC1", "CCS", "O=CC=O", "CC#N", "NCCN", "OCC(O)CO"]
    library = "".join(record(f"s{n}", smiles) for n, smiles in enumerate(isomers + others))
    (tmp_path / "l.mgf").write_text(library)
    (tmp_path / "pool.smi").write_text("CCO\n")
    thirds = {"train": 0.34, "val": 0.33, "test": 0.33}
    for together in (False, True):
        folds = set()
        for seed in range(6):
            options = BuildOptions(
                seed=seed, fractions=thirds, similarity=1.0, keep_formulas_together=together
            )
            build_dataset([tmp_path / "l.mgf"], [tmp_path / "pool.smi"], tmp_path / "out", options)
            spectra = read_table(find_dataset(tmp_path / "out").spectra, lambda *_: None)
            folds.add(
                len({s.metadata["fold"] for s in spectra if s.metadata["formula"] == "C9H8O4"})
            )
        assert (max(folds) > 1) != together


def test_lists_are_capped_with_the_truth_in(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    build_dataset(libraries, [pool], tmp_path / "out", BuildOptions(max_candidates=2))
    path = find_dataset(tmp_path / "out").candidates["mass"]
    for truth, candidates in json.loads(gzip.decompress(path.read_bytes())).items():
        assert truth in candidates
        assert len(candidates) <= 2


def lists_of(folder: Path) -> dict[str, dict[str, list[str]]]:
    files = find_dataset(folder).candidates
    return {s: json.loads(gzip.decompress(path.read_bytes())) for s, path in files.items()}


def test_a_database_and_its_molecules_make_the_same_lists(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    (tmp_path / "more.csv").write_text("CID,Canonical SMILES\n1,CC(C)C(=O)OC\n2,OC(=O)CCC=C\n")
    lists = [pool, tmp_path / "more.csv"]
    manifest = build_dataset(
        libraries, lists, tmp_path / "one", keep_database=tmp_path / "db", jobs=1
    )
    assert [each["file"] for each in manifest["sources"]] == [
        "first.mgf", "second.mgf", "pool.smi", "more.csv",
    ]  # fmt: skip
    kept = Database.open(tmp_path / "db")
    assert len(kept) == 12
    assert kept.collections() == ["more", "pool"]
    again = build_dataset(libraries, kept, tmp_path / "two", jobs=1)
    build_dataset(libraries, lists, tmp_path / "three", jobs=1)
    assert lists_of(tmp_path / "one") == lists_of(tmp_path / "two") == lists_of(tmp_path / "three")
    assert again["sources"][-1]["file"] == "db/molecules.parquet"
    assert again["counts"]["set_aside"] == manifest["counts"]["set_aside"] - 1  # the pool's own
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"first.mgf", "second.mgf", "pool.smi", "more.csv", "one", "two", "three", "db"}


def test_a_temporary_database_is_gone_however_it_ends(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    before = {path.name for path in tmp_path.iterdir()}

    class StopError(Exception):
        pass

    def stop(stage: str, done: int, total: int | None = None) -> None:
        seen.append(stage)
        if stage == at:
            raise StopError

    for at in ("molecules", "mass candidates"):
        seen: list[str] = []
        with pytest.raises(StopError):
            build_dataset(libraries, [pool], tmp_path / "out", jobs=1, progress=stop)
        assert {path.name for path in tmp_path.iterdir()} == before
        assert seen[-1] == at


def test_nothing_is_kept_of_a_database_that_is_given(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    kept = build_database(file_sources([pool]), tmp_path / "db", engine=LocalEngine(1))
    with pytest.raises(DatasetError, match="a database is kept where it is"):
        build_dataset(libraries, kept, tmp_path / "out", keep_database=tmp_path / "other")


def test_stereo_can_be_kept(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    build_dataset(libraries, [pool], tmp_path / "out", BuildOptions(keep_stereo=True))
    spectra = read_table(find_dataset(tmp_path / "out").spectra, lambda *_: None)
    assert any("@" in s.metadata["smiles"] for s in spectra)


def test_nothing_to_build_from(tmp_path: Path, sources) -> None:
    _, pool = sources
    (tmp_path / "bare.mgf").write_text("BEGIN IONS\nPEPMASS=100\n50 1\nEND IONS\n")
    with pytest.raises(DatasetError, match=r"none with a structure"):
        build_dataset([tmp_path / "bare.mgf"], [pool], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").touch()
    with pytest.raises(DatasetError, match="exists and is no data set"):
        build_dataset([tmp_path / "bare.mgf"], [pool], tmp_path / "mine")


def test_only_its_own_folders_are_replaced(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    out = tmp_path / "out"
    build_dataset(libraries, [pool], out)
    build_dataset(libraries, [pool], out)  # its own: replaced
    (out / "thesis.tex").write_text("precious")
    with pytest.raises(DatasetError, match=r"holds thesis\.tex, which is not its own"):
        build_dataset(libraries, [pool], out)
    assert (out / "thesis.tex").read_text() == "precious"
    project = tmp_path / "project"
    project.mkdir()
    (project / "manifest.json").write_text('{"name": "my web app"}')
    (project / "app.js").touch()
    with pytest.raises(DatasetError, match="is no data set"):
        build_dataset(libraries, [pool], project)
    assert (project / "app.js").exists()
    with pytest.raises(DatasetError, match=r"holds the source first\.mgf"):
        build_dataset(libraries, [pool], tmp_path)
    with pytest.raises(DatasetError, match="is a file, expected a folder"):
        build_dataset(libraries, [pool], pool)


def test_isotope_labels_make_another_molecule_in_the_same_fold(tmp_path: Path) -> None:
    plain, labelled = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "[2H]C([2H])([2H])n1cnc2c1c(=O)n(C)c(=O)n2C"
    others = ["CCO", "c1ccccc1", "CCN", "C1CCCC1", "CCS", "CC#N"]
    library = record("plain", plain) + record("labelled", labelled)
    library += "".join(record(f"s{n}", smiles) for n, smiles in enumerate(others))
    (tmp_path / "l.mgf").write_text(library)
    (tmp_path / "pool.smi").write_text("CCO\n")
    thirds = {"train": 0.34, "val": 0.33, "test": 0.33}
    for seed in range(4):
        options = BuildOptions(seed=seed, fractions=thirds, similarity=1.0)
        build_dataset([tmp_path / "l.mgf"], [tmp_path / "pool.smi"], tmp_path / "out", options)
        files = find_dataset(tmp_path / "out")
        by_name = {s.identifier: s for s in read_table(files.spectra, lambda *_: None)}
        assert "[2H]" not in by_name["plain"].metadata["smiles"]
        assert "[2H]" in by_name["labelled"].metadata["smiles"]
        assert by_name["plain"].metadata["fold"] == by_name["labelled"].metadata["fold"]
    assert check_dataset(files).faults == 0


def test_structures_from_inchi_are_written_as_chemists_do(tmp_path: Path) -> None:
    inchi = "InChI=1S/C8H9NO2/c1-6(10)9-7-2-4-8(11)5-3-7/h2-5,11H,1H3,(H,9,10)"
    library = record("paracetamol", "CC(=O)Nc1ccc(O)cc1", SMILES="", INCHI=inchi)
    (tmp_path / "l.mgf").write_text(library)
    (tmp_path / "pool.smi").write_text("CC(=O)Nc1ccc(O)cc1\nCNC(=O)c1ccc(O)cc1\n")
    build_dataset([tmp_path / "l.mgf"], [tmp_path / "pool.smi"], tmp_path / "out")
    path = find_dataset(tmp_path / "out").candidates["formula"]
    ((truth, candidates),) = json.loads(gzip.decompress(path.read_bytes())).items()
    assert truth == "CC(=O)Nc1ccc(O)cc1"
    assert sorted(candidates) == sorted([truth, "CNC(=O)c1ccc(O)cc1"])


def test_names_that_are_unique_in_a_file_only(tmp_path: Path) -> None:
    for name, smiles in (("one", "CCO"), ("two", "CCN")):
        text = record("x", smiles).replace("SPECTRUM_ID=x", "SCANS=1")
        (tmp_path / f"{name}.mgf").write_text(text)
    (tmp_path / "pool.smi").write_text("COC\n")
    libraries = [tmp_path / "one.mgf", tmp_path / "two.mgf"]
    build_dataset(libraries, [tmp_path / "pool.smi"], tmp_path / "out")
    spectra = list(read_table(find_dataset(tmp_path / "out").spectra, lambda *_: None))
    assert [s.identifier for s in spectra] == ["1", "two 1"]


def test_tabs_in_fields_do_not_break_the_table(tmp_path: Path) -> None:
    (tmp_path / "l.mgf").write_text(record("x", "CCO", INSTRUMENT_TYPE="Q\tTOF"))
    (tmp_path / "pool.smi").write_text("COC\n")
    build_dataset([tmp_path / "l.mgf"], [tmp_path / "pool.smi"], tmp_path / "out")
    (spectrum,) = read_table(find_dataset(tmp_path / "out").spectra, lambda *_: None)
    assert spectrum.metadata["instrument_type"] == "Q TOF"


def test_lists_are_filled_though_many_in_the_pool_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "l.mgf").write_text(record("x", "CCCCCO"))
    copies = [f"CC{'(C)' * 0}COCC" for _ in range(3)] + ["C(C)(C)CCO", "CCC(C)CO", "CCCC(C)O"]
    spellings = ["CCC(C)CO", "C(O)C(C)CC", "OCC(CC)C", "OCC(C)CC", "C(C(C)CC)O"]
    (tmp_path / "pool.smi").write_text("\n".join(spellings * 200 + copies) + "\n")
    build_dataset(
        [tmp_path / "l.mgf"],
        [tmp_path / "pool.smi"],
        tmp_path / "out",
        BuildOptions(max_candidates=5),
    )
    path = find_dataset(tmp_path / "out").candidates["formula"]
    ((_, candidates),) = json.loads(gzip.decompress(path.read_bytes())).items()
    assert len(candidates) == 5


@pytest.mark.parametrize("changed", ["first.mgf", "pool.smi"])
def test_a_source_that_changes_while_it_is_read_is_refused(
    changed: str, sources, tmp_path: Path
) -> None:
    libraries, pool = sources

    def change(stage: str, done: int, total: int | None = None) -> None:
        if stage == "splitting":
            (tmp_path / changed).write_text((tmp_path / changed).read_text() + "\n")

    with pytest.raises(InputError, match=f"{changed}: has changed while it was read"):
        build_dataset(libraries, [pool], tmp_path / "out", jobs=1, progress=change)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_a_library_may_hold_the_output_once(sources, tmp_path: Path) -> None:
    _, pool = sources
    library = tmp_path / "library"
    library.mkdir()
    (tmp_path / "first.mgf").rename(library / "first.mgf")
    manifest = build_dataset([library], [pool], library / "out", jobs=1)
    assert manifest["counts"]["spectra"] > 5
    with pytest.raises(DatasetError, match="out: lies in the source"):
        build_dataset([library], [pool], library / "out", jobs=1)
