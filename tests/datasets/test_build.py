"""Draws from a database, against a plain loop over all its molecules."""

import gzip
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.chem import exact_mass, formula, inchikey_block, precursor_mz
from mzseek.chem.molecules import describe_structure
from mzseek.core.errors import DatabaseError, DatasetError, InputError
from mzseek.core.registry import EQUAL_IN
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.build import (
    INFERRED,
    Annotated,
    BuildOptions,
    assign_folds,
    build_dataset,
    check_drawable,
    draw_candidates,
    join_clusters,
    nearest_similarity,
    read_annotated,
    structure_clusters,
)
from mzseek.datasets.check import check_dataset
from mzseek.datasets.files import find_dataset, read_table
from mzseek.parallel import LocalEngine
from mzseek.similarity import packed as blocks

from ..molecules import MOLECULES

MEASURED_SMILES = [
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
    mz = precursor_mz(describe_structure(smiles).mass, adduct)
    values = {"SPECTRUM_ID": identifier, "PEPMASS": f"{mz:.5f}", "ADDUCT": adduct, "SMILES": smiles}
    lines = [f"{key}={value}" for key, value in (values | fields).items() if value]
    return "\n".join(
        ["BEGIN IONS", *lines, "50.1 10", f"77.1 {len(identifier)}", "105.03 100", "END IONS\n"]
    )


def write_sources(folder: Path) -> tuple[list[Path], Path]:
    first = "".join(record(f"a{n}", smiles) for n, smiles in enumerate(MEASURED_SMILES))
    first += record("sodium", MEASURED_SMILES[0], "[M+Na]+")
    # The same but for its name.
    first += record("a0-copy", MEASURED_SMILES[0]).replace("77.1 7", "77.1 2")
    first += record("no structure", "CCO", SMILES="")
    first += record("by InChI", "CCO", SMILES="", INCHI="InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3")
    first += record("broken structure", "CCO", SMILES="C1CC")
    first += record("no adduct", "CCO", ADDUCT="", INSTRUMENT_TYPE="Q\tTOF")
    first += record("wrong precursor", "CCO", PEPMASS="47.2")
    second = record("a1", MEASURED_SMILES[1])  # an identifier of the first file
    second += record("a3", "CCCO")  # another spectrum of that name
    second += record("enantiomer", "N[C@H](Cc1ccccc1)C(=O)O", COLLISION_ENERGY="20")
    (folder / "first.mgf").write_text(first)
    (folder / "second.mgf").write_text(second)
    (folder / "pool.smi").write_text("\n".join(POOL) + "\n")
    return [folder / "first.mgf", folder / "second.mgf"], folder / "pool.smi"


@pytest.fixture
def sources(tmp_path: Path) -> tuple[list[Path], Path]:
    return write_sources(tmp_path)


def build(library: str | list[Path], pool: str | Path | Database, out: Path, **options) -> Path:
    """The folder of a data set of a library and a pool of molecules, or of their texts."""
    if isinstance(library, str):
        out.with_suffix(".mgf").write_text(library)
        library = [out.with_suffix(".mgf")]
    if isinstance(pool, str):
        out.with_suffix(".smi").write_text(pool)
        pool = out.with_suffix(".smi")
    molecules = pool if isinstance(pool, Database) else [pool]
    build_dataset(library, molecules, out, BuildOptions(**options), jobs=1)
    return out


def spectra_of(folder: Path) -> dict[str, dict[str, str]]:
    """Metadata of the spectra of a data set, by name."""
    spectra = read_table(find_dataset(folder).spectra, lambda *_: None)
    return {spectrum.identifier: spectrum.metadata for spectrum in spectra}


def lists_of(folder: Path) -> dict[str, dict[str, list[str]]]:
    files = find_dataset(folder).candidates
    return {s: json.loads(gzip.decompress(path.read_bytes())) for s, path in files.items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    return build(*write_sources(folder), folder / "out", seed=3)


def test_spectra_are_selected_named_and_standardised(built: Path) -> None:
    by_name = spectra_of(built)
    assert set(by_name) == {
        *(f"a{n}" for n in range(10)), "sodium", "by InChI", "enantiomer", "no adduct", "second a3",
    }  # fmt: skip
    lines = (built / "rejects.tsv").read_text().splitlines()
    reasons = {
        where.rpartition(": ")[2]: why for where, why in (line.split("\t") for line in lines)
    }
    assert reasons["a0-copy"] == "is a duplicate (of a0)"
    assert reasons["no structure"] == "has no structure (SMILES or InChI)"
    assert "not valid SMILES" in reasons["broken structure"]
    assert "expected 47.04" in reasons["wrong precursor"]
    assert reasons["a1"] == "is a duplicate (of a1)"
    assert "not valid SMILES" in reasons["line 11"]
    counts = json.loads((built / "manifest.json").read_text())["counts"]
    assert (counts["spectra"], counts["adducts_inferred"]) == (15, 1)
    assert counts["molecules"] == 12  # stereo twins are one
    assert by_name["a2"]["smiles"] == by_name["enantiomer"]["smiles"] == "NC(Cc1ccccc1)C(=O)O"
    assert by_name["a4"]["smiles"] == "O=C(O)c1ccc(O)cc1"  # no sodium
    assert by_name["no adduct"]["instrument_type"] == "Q TOF"


def test_candidates_fit_and_hold_the_truth_once(built: Path) -> None:
    for setting, lists in lists_of(built).items():
        assert len(lists) == 12
        for truth, candidates in lists.items():
            assert candidates.count(truth) == 1
            keys = [inchikey_block(candidate) for candidate in candidates]
            assert len(set(keys)) == len(keys)
            for candidate in candidates:
                if setting == "formula":
                    assert formula(candidate) == formula(truth)
                assert exact_mass(candidate) == pytest.approx(exact_mass(truth), rel=1.1e-5)
        assert len(lists["CC(=O)Oc1ccccc1C(=O)O"]) == 3
    assert check_dataset(find_dataset(built), jobs=1).faults == 0


def test_same_seed_same_bytes_other_seed_other_split(built: Path, tmp_path: Path) -> None:
    libraries = [built.with_name(name) for name in ("first.mgf", "second.mgf")]
    pool = built.with_name("pool.smi")
    again, other = (build(libraries, pool, tmp_path / f"{seed}", seed=seed) for seed in (3, 2))
    for path in built.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
    table = "spectra.tsv.gz"
    assert (built / table).read_bytes() != (other / table).read_bytes()


def test_the_truth_is_not_given_away_by_its_place(tmp_path: Path) -> None:
    library = "".join(record(f"s{n}", f"{'C' * n}(C)CC(C)O") for n in range(3, 23))
    isomers = [f"{'C' * n}C{'C' * k}O" for n in range(3, 25) for k in range(1, 4)]
    isomers += [f"{'C' * n}OC{'C' * k}" for n in range(1, 14) for k in range(1, 14)]
    lists = lists_of(build(library, "\n".join(isomers), tmp_path / "out"))["mass"]
    places = [values.index(truth) for truth, values in lists.items() if len(values) > 3]
    assert len(places) > 10
    assert len(set(places)) > 3


THIRDS = {"train": 0.34, "val": 0.33, "test": 0.33}
FILLERS = ["CCO", "c1ccccc1", "CCN", "C1CCCC1", "CCS", "O=CC=O", "CC#N", "NCCN", "OCC(O)CO"]


@pytest.mark.parametrize("together", [False, True])
def test_labelled_forms_and_if_wanted_formulas_are_kept_together(
    tmp_path: Path, together: bool
) -> None:
    isomers = ["CC(=O)Oc1ccccc1C(=O)O", "O=C(O)Cc1ccc2c(c1)OCO2", "COC(=O)c1ccc(C(=O)O)cc1"]
    labelled = ["Cn1c(=O)c2c(ncn2C)n(C)c1=O", "[2H]C([2H])([2H])n1cnc2c1c(=O)n(C)c(=O)n2C"]
    named = {f"s{n}": smiles for n, smiles in enumerate([*isomers, *labelled, *FILLERS])}
    library = "".join(record(name, smiles) for name, smiles in named.items())
    folds_of_isomers = set()
    for seed in range(6):
        out = build(
            library, "CCO\n", tmp_path / "out", seed=seed, fractions=THIRDS, similarity=1.0,
            keep_formulas_together=together,
        )  # fmt: skip
        spectra = spectra_of(out)
        folds_of_isomers.add(len({spectra[f"s{n}"]["fold"] for n in range(3)}))
        assert ["[2H]" in spectra[name]["smiles"] for name in ("s3", "s4")] == [False, True]
        assert spectra["s3"]["fold"] == spectra["s4"]["fold"]
    assert (max(folds_of_isomers) > 1) != together
    assert check_dataset(find_dataset(out), jobs=1).faults == 0


def test_lists_are_capped_filled_and_written_as_chemists_do(tmp_path: Path) -> None:
    copies = ["CCCOCC"] * 3 + ["C(C)(C)CCO", "CCC(C)CO", "CCCC(C)O"]
    spellings = ["CCC(C)CO", "C(O)C(C)CC", "OCC(CC)C", "OCC(C)CC", "C(C(C)CC)O"]
    inchi = "InChI=1S/C8H9NO2/c1-6(10)9-7-2-4-8(11)5-3-7/h2-5,11H,1H3,(H,9,10)"
    paracetamol = "CC(=O)Nc1ccc(O)cc1"
    library = record("x", "CCCCCO") + record("y", paracetamol, SMILES="", INCHI=inchi)
    pool = [*spellings * 200, *copies, paracetamol, "CNC(=O)c1ccc(O)cc1"]
    lists = lists_of(build(library, "\n".join(pool), tmp_path / "out", max_candidates=5))
    assert len(lists["formula"]["CCCCCO"]) == 5
    assert sorted(lists["formula"][paracetamol]) == [paracetamol, "CNC(=O)c1ccc(O)cc1"]


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


def test_stereo_is_kept_where_asked_for_and_a_database_where_it_is(sources, tmp_path: Path) -> None:
    libraries, pool = sources
    spectra = spectra_of(build(libraries, pool, tmp_path / "out", keep_stereo=True))
    assert any("@" in metadata["smiles"] for metadata in spectra.values())
    kept = build_database(file_sources([pool]), tmp_path / "db", engine=LocalEngine(1))
    with pytest.raises(DatasetError, match="a database is kept where it is"):
        build_dataset(libraries, kept, tmp_path / "other", keep_database=tmp_path / "again")


def test_only_its_own_folders_are_replaced(sources, built: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(built, tmp_path / "out"))
    build(*sources, out)  # its own: replaced
    (out / "thesis.tex").write_text("precious")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "manifest.json").write_text('{"name": "my web app"}')
    for folder, reason in {
        out: r"holds thesis\.tex, which is not its own",
        tmp_path / "project": "is no data set",
        tmp_path: r"holds the source first\.mgf",
        sources[1]: "is a file, expected a folder",
    }.items():
        with pytest.raises(DatasetError, match=reason):
            build(*sources, folder)
    assert (out / "thesis.tex").read_text() == "precious"
    assert (tmp_path / "project" / "manifest.json").exists()


def test_libraries_without_structures_say_what_can_be_done_with_them(tmp_path: Path) -> None:
    library = tmp_path / "my run.msp"
    library.write_text(msp(Name="a") + msp(Name="b", MS_type="MS1") + msp(Name="cc"))
    with pytest.raises(DatasetError) as caught:
        build([library], "CCO\n", tmp_path / "out")
    message = str(caught.value)
    assert message.startswith(f"{library}: 2 spectra, none with a structure")
    assert f"mzseek show '{library}'" in message
    assert "SMILES or InChI" in message
    assert "\n" not in message
    assert not (tmp_path / "out").exists()


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


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"PrecursorMZ": 250.0}, "has no adduct, and none of the usual ones fits"),
        ({"PrecursorMZ": MASS}, "more than one of the usual ones fits ([M]+ and [M]-)"),
        ({"Ion_mode": "N"}, "has no adduct, and none of the usual ones fits"),
        ({"Charge": "2+"}, "has no adduct, and none of the usual ones fits"),
        ({"Precursor_type": "[M+H]+/[M+Na]+"}, "has no single adduct ([M+H]+/[M+Na]+)"),
        ({"Precursor_type": "[M+Na]+"}, "precursor disagrees with structure and adduct"),
        ({"SMILES": "C1CC", "InChI": "1S/x"},
         "SMILES 'C1CC': not valid SMILES; InChI '1S/x' cannot be read"),
    ],
)  # fmt: skip
def test_what_leaves_structure_or_adduct_open_is_skipped(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    found, reasons = read(tmp_path, msp(**{"SMILES": CAFFEINE} | fields))
    assert found.entries == []
    assert reason in reasons[0]


def test_adducts_are_inferred_where_none_is_known(tmp_path: Path) -> None:
    for stated, inferred in (("[M+H]+", None), ("[M+?]+", INFERRED)):
        found, _ = read(tmp_path, msp(SMILES=CAFFEINE, Precursor_type=stated))
        assert found.entries[0].spectrum.adduct == "[M+H]+"
        assert found.entries[0].spectrum.metadata.get("adduct_from") == inferred


LABELLED = ["[2H]CO", "[13CH3]O", "CO"]


def store_of(folder: Path, smiles: list[str], name: str = "db", **options) -> Database:
    rows = [f"{text}\t{('a', 'b', 'c')[n % 3]}\n" for n, text in enumerate(smiles)]
    path = folder / f"{name}.tsv"
    path.write_text("smiles\tsource\n" + "".join(rows))
    return build_database(
        file_sources([path]), folder / name, engine=LocalEngine(1), nearest=False, **options
    )


@pytest.fixture(scope="module")
def pool() -> list[str]:
    return MOLECULES[:400]


@pytest.fixture(scope="module")
def store(pool: list[str], tmp_path_factory: pytest.TempPathFactory) -> Database:
    return store_of(tmp_path_factory.mktemp("draw"), [*pool, *LABELLED])


def drawn(store: Database, truths: list[str], setting: str, **options) -> dict[str, list[str]]:
    described = [describe_structure(text) for text in truths]
    return {
        truth.smiles: draw_candidates(truth, store, setting, BuildOptions(**options))
        for truth in described
    }


@pytest.mark.parametrize("setting", EQUAL_IN)
def test_lists_without_a_cap_hold_all_that_fits(setting: str, store: Database, pool) -> None:
    every = [describe_structure(text) for text in pool]
    for truth in every[::23]:
        lists = drawn(store, [truth.smiles], setting, candidate_ppm=20.0, max_candidates=10_000)
        expected = {
            other.smiles
            for other in every
            if (
                other.formula == truth.formula
                if setting == "formula"
                else abs(other.mass - truth.mass) <= truth.mass * 20e-6
            )
        }
        assert sorted(lists[truth.smiles]) == sorted(expected)


@pytest.mark.parametrize("setting", EQUAL_IN)
def test_full_lists_are_a_draw_with_the_truth_in(setting: str, store: Database, pool) -> None:
    whole = drawn(store, pool[:60], setting, max_candidates=10_000)
    for most in (1, 2, 5):
        for truth, candidates in drawn(store, pool[:60], setting, max_candidates=most).items():
            assert len(candidates) == min(most, len(whole[truth]))
            assert len(set(candidates)) == len(candidates)
            assert truth in candidates
            assert set(candidates) <= set(whole[truth])
    one, other = (drawn(store, pool[:60], setting, max_candidates=5, seed=seed) for seed in (1, 2))
    assert one == drawn(store, pool[:60], setting, max_candidates=5, seed=1)
    assert one != other
    for truth in pool[:60:11]:  # a list knows nothing of other truths
        alone = drawn(store, [truth], setting, max_candidates=5, seed=1)
        assert alone.items() <= one.items()


def test_the_order_of_the_files_changes_nothing(tmp_path: Path, store: Database, pool) -> None:
    turned = store_of(tmp_path, [*LABELLED, *reversed(pool)])
    for setting in EQUAL_IN:
        one, other = (drawn(s, pool[:40], setting, max_candidates=6) for s in (turned, store))
        assert one == other


def test_wanted_sources_come_first(store: Database, pool) -> None:
    source_of = {
        row["smiles"]: row["sources"][0] for batch in store.batches() for row in batch.to_pylist()
    }
    whole = drawn(store, pool[:60], "formula", max_candidates=10_000)
    preferred = drawn(store, pool[:60], "formula", max_candidates=6, priorities=("c", "a"))
    is_told_apart = 0
    for truth, candidates in preferred.items():
        taken = [source_of[c] for c in candidates if c != truth]
        there = [source_of[c] for c in whole[truth] if c != truth]
        ranked = sorted(there, key=lambda name: "cab".index(name))
        assert sorted(taken) == sorted(ranked[:5])
        is_told_apart += len(set(there)) > 1 and len(there) > 5
    assert is_told_apart > 5


def test_databases_that_would_give_the_truth_away_or_lack_a_source_are_refused(
    tmp_path: Path, store: Database
) -> None:
    with_stereo = store_of(tmp_path, ["C[C@H](N)C(=O)O"], keep_stereo=True)
    check_drawable(with_stereo, BuildOptions(keep_stereo=True))
    check_drawable(store, BuildOptions(priorities=("b",)))
    for database, options, error, message in (
        (with_stereo, {}, DatasetError, "has stereo in its SMILES"),
        (store, {"keep_stereo": True}, DatasetError, "has no stereo in its SMILES"),
        (
            store,
            {"priorities": ("a", "d")},
            DatabaseError,
            "'d' is no source of .*: it has a, b, c",
        ),
    ):
        with pytest.raises(error, match=message):
            check_drawable(database, BuildOptions(**options))


def test_a_labelled_form_of_the_truth_is_no_candidate(store: Database) -> None:
    for truth in LABELLED:
        described = describe_structure(truth)
        found = draw_candidates(described, store, "formula", BuildOptions())
        assert found == [described.smiles]


def test_a_molecule_without_inchikey_is_a_candidate_like_others(tmp_path: Path) -> None:
    nameless = ["[U]" + "(F)" * 21, "[U]" + "(F)" * 20 + "Cl"]
    store = store_of(tmp_path, nameless)
    truth, other = (describe_structure(text) for text in nameless)
    assert truth.inchikey14 == other.inchikey14 == ""
    found = draw_candidates(truth, store, "mass", BuildOptions(candidate_ppm=5e4))
    assert sorted(found) == sorted([truth.smiles, other.smiles])


matrices = st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=14).map(
    lambda rows: np.array([[i in row for i in range(12)] for row in rows], dtype=int)
)


def tanimoto(one: np.ndarray, other: np.ndarray) -> float:
    union = int((one | other).sum())
    return 1.0 if union == 0 else int((one & other).sum()) / union


def linked(size: int, are_linked) -> list[int]:
    """Groups of what is linked, by a plain loop."""
    group = list(range(size))
    for one, other in itertools.product(range(size), repeat=2):
        if are_linked(one, other):
            old, new = group[one], group[other]
            group = [new if each == old else each for each in group]
    return group


def are_same_groups(one: Sequence[int], other: Sequence[int]) -> bool:
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


@given(matrices, st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([3, 1000]))
def test_clusters_are_what_single_linkage_gives(
    dense: np.ndarray, threshold: float, block: int
) -> None:
    near = threshold - 1e-6  # float32 in the code: keep clear of the threshold
    expected = linked(len(dense), lambda i, j: tanimoto(dense[i], dense[j]) >= near)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_ROWS", block)
        found = structure_clusters(csr_array(dense), near)
    assert are_same_groups(found.tolist(), expected)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=15))
def test_clusters_are_joined_where_they_share_a_label(pairs: list[tuple[int, int]]) -> None:
    clusters, labels = (np.array([pair[n] for pair in pairs], dtype=np.int64) for n in (0, 1))
    expected = linked(len(pairs), lambda i, j: clusters[i] == clusters[j] or labels[i] == labels[j])
    assert are_same_groups(join_clusters(clusters, labels).tolist(), expected)


@given(matrices, matrices)
def test_nearest(one: np.ndarray, other: np.ndarray) -> None:
    got = nearest_similarity(csr_array(one), csr_array(other))
    wanted = [max(tanimoto(row, candidate) for candidate in other) for row in one]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert not nearest_similarity(csr_array(one), csr_array((0, 12))).any()
    assert structure_clusters(csr_array((0, 3))).tolist() == []


@given(st.lists(st.integers(0, 40), min_size=1, max_size=400), st.integers(0, 5))
def test_no_cluster_is_torn_and_shares_are_near(labels: list[int], seed: int) -> None:
    clusters = np.unique(labels, return_inverse=True)[1]
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    folds = assign_folds(clusters, fractions, seed)
    for cluster in np.unique(clusters):
        assert len({folds[i] for i in np.flatnonzero(clusters == cluster)}) == 1
    largest = int(np.bincount(clusters).max())
    for name, share in fractions.items():
        assert abs(folds.count(name) - share * len(folds)) <= largest + 1
    assert folds == assign_folds(clusters, fractions, seed)
