import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdkit import Chem, DataStructs

from mzseek.chem import exact_mass, inchikey_block
from mzseek.chem.adducts import known_adducts, parse_adduct
from mzseek.core.errors import AdductError, DatabaseError, MoleculeError
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.database.store import (
    COLUMNS,
    FILES,
    KEYS,
    LABELLED,
    MASSES,
    MOLECULES,
    SKIPPED_FILE,
    capped,
    cascade,
    check_entries,
    entries,
    has_checksum,
    read_manifest,
    rows_of,
)
from mzseek.io.manifest import Manifest, measured
from mzseek.parallel import LocalEngine

from .conftest import METHANES, NAMELESS, all_rows, build, write_table

building = settings(max_examples=12, deadline=None)
looking = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def found_rows(found) -> list[int]:
    assert tuple(found.table.column_names[:8]) == ("row", *COLUMNS)
    return found.table["row"].to_pylist()


def vector(fingerprint: bytes) -> DataStructs.ExplicitBitVect:
    bits = np.unpackbits(np.frombuffer(fingerprint, np.uint8))
    made = DataStructs.ExplicitBitVect(len(bits))
    made.SetBitsFromList(np.flatnonzero(bits).tolist())
    return made


# Look-ups are plain scans.


@looking
@given(data=st.data(), ppm=st.sampled_from([0.0, 1.0, 10.0, 500.0, 1e5]))
def test_by_mass_is_a_scan(store: Database, data, ppm: float) -> None:
    rows = all_rows(store)
    near = data.draw(st.sampled_from([row["mass"] for row in rows]))
    mass = near * (1 + data.draw(st.sampled_from([0, 1, -1])) * ppm * 1e-6)
    width = mass * ppm * 1e-6
    expected = [n for n, row in enumerate(rows) if mass - width <= row["mass"] <= mass + width]
    found = store.by_mass(mass, ppm)
    assert found_rows(found) == expected
    assert found.total == len(found) == len(expected)
    assert not found.capped


@looking
@given(data=st.data(), adduct=st.sampled_from(known_adducts()), ppm=st.sampled_from([1.0, 20.0]))
def test_by_precursor_is_a_scan(store: Database, data, adduct: str, ppm: float) -> None:
    rows = all_rows(store)
    ion = parse_adduct(adduct)
    heavy = [row["mass"] for row in rows if row["mass"] > 100]
    mz = ion.precursor_mz(data.draw(st.sampled_from(heavy))) + data.draw(st.floats(-1e-3, 1e-3))
    expected = [n for n, row in enumerate(rows)
                if abs(ion.slope * row["mass"] + ion.offset - mz) <= mz * ppm * 1e-6]  # fmt: skip
    assert found_rows(store.by_precursor(mz, adduct, ppm)) == expected


@looking
@given(data=st.data())
def test_by_formula_and_key_are_scans(store: Database, data) -> None:
    rows = all_rows(store)
    one = data.draw(st.sampled_from(rows))
    same = [n for n, row in enumerate(rows) if row["formula"] == one["formula"]]
    assert found_rows(store.by_formula(f" {one['formula']} ")) == same
    if "=" in one["key"]:
        return
    same = [n for n, row in enumerate(rows) if row["key"] == one["key"]]
    for key in (one["key"], one["key"].lower(), f"{one['key']}-UHFFFAOYSA-N"):
        assert found_rows(store.by_key(key)) == same


@looking
@given(
    data=st.data(), count=st.integers(1, 60), least=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)  # fmt: skip
def test_by_similarity_is_a_scan(store: Database, pool, data, count: int, least: float) -> None:
    rows = all_rows(store)
    others = ["CCOC(=O)c1ccc(N)cc1", "OCC(O)CO", "CCCCCCCCCCCC", "c1ccc2ccccc2c1"]
    smiles = data.draw(st.sampled_from([*pool, *others]))
    generator = Chem.rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=4096)
    asked = generator.GetFingerprint(Chem.MolFromSmiles(smiles))
    values = DataStructs.BulkTanimotoSimilarity(asked, [vector(r["fingerprint"]) for r in rows])
    order = sorted(range(len(rows)), key=lambda n: (-values[n], n))
    expected = [n for n in order if values[n] >= least][:count]
    found = store.by_similarity(smiles, count, least)
    assert found_rows(found) == expected
    assert found.table["similarity"].to_pylist() == [values[n] for n in expected]


@looking
@given(data=st.data(), ppm=st.sampled_from([0.0, 10.0, 2000.0]))
def test_many_by_mass_is_one_by_one(store: Database, data, ppm: float) -> None:
    near = st.sampled_from(store.masses.tolist())
    masses = data.draw(st.lists(near | st.floats(1, 700), max_size=30))
    indptr, rows = store.many_by_mass(masses, ppm)
    assert len(indptr) == len(masses) + 1
    for start, end, mass in zip(indptr[:-1], indptr[1:], masses, strict=True):
        assert rows[start:end].tolist() == found_rows(store.by_mass(mass, ppm))


@pytest.mark.parametrize("written", ["C2H6O", "c2h6o", "OH6C2", "CH3CH2OH", " C2 H6 O "])
def test_a_formula_is_one_in_any_order_and_case(make_store, written: str) -> None:
    database = make_store([("CCO",), ("COC",), ("CCN",), ("C[N+](C)(C)CCO",)])
    assert len(database.by_formula(written)) == 2
    assert len(database.by_formula("NOH14C5+")) == 1


def test_collections_are_named(store: Database) -> None:
    assert store.collections() == ["one", "three", "two"]


def test_rows_of_several_row_groups(make_store, pool, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.database.build.ROW_GROUP", 7)
    database = make_store([(smiles,) for smiles in pool[:40]])
    every = [row["smiles"] for row in all_rows(database)]
    for wanted in ([39, 3, 3, 20], list(range(40)), [7], [14, 13]):
        assert database.rows(np.array(wanted))["smiles"].to_pylist() == [every[n] for n in wanted]


# What is in a store.

POOL = ["CCO", "OCC", "CC[O-].[Na+]", "COC", "CCN", *METHANES, NAMELESS, "C[C@H](N)O", "CC(N)O"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(POOL), st.sampled_from(["", "1", "2"]), st.sampled_from(["", "x", "y"]),
        st.sampled_from(["hmdb", "mine", "zinc"]),
    ),
    min_size=1, max_size=25,
)  # fmt: skip


def listed(values: list[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


@building
@given(rows=ROWS)
def test_the_same_molecule_is_one_row_with_all_it_is_called(
    rows: list[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("dedup")
    path = write_table(folder / "in.tsv", rows)
    database = build_database(file_sources([path]), folder / "out", engine=LocalEngine(1))
    classes = [{0, 1, 2}, {3}, {4}, {5}, {6}, {7}, {8}, {9, 10}]
    expected = []
    for members in classes:
        same = [row for row in rows if POOL.index(row[0]) in members]
        if same:
            expected.append(
                {
                    "sources": listed([row[3] for row in same]),
                    "identifiers": listed([row[1] and f"{row[3]}:{row[1]}" for row in same]),
                    "names": listed([row[2] for row in same]),
                }
            )
    found = [{name: row[name] for name in expected[0]} for row in all_rows(database)]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    counts = database.manifest["counts"]
    assert counts["records"] == len(rows)
    assert counts["molecules"] == len(database) == len(expected)
    assert counts["merged"] == len(rows) - len(expected)
    masses = database.masses.tolist()
    assert masses == sorted(masses)


def test_the_first_record_describes(make_store) -> None:
    tautomers = ["Oc1ccccn1", "O=c1cccc[nH]1"]
    for name, order in (("one", tautomers), ("two", tautomers[::-1])):
        database = make_store([(smiles,) for smiles in order], name)
        assert [row["smiles"] for row in all_rows(database)] == [order[0]]


def test_isotopologues_stay_apart(store: Database) -> None:
    found = store.by_key(inchikey_block("C")).table
    assert found["smiles"].to_pylist() == [Chem.CanonSmiles(smiles) for smiles in METHANES]


def test_a_molecule_without_a_key_survives(store: Database) -> None:
    [row] = store.by_mass(exact_mass(NAMELESS), 1.0).table.to_pylist()
    assert row["key"].startswith("SMILES=")


# Capped lists.


def test_a_capped_list_takes_wanted_sources_first(store: Database) -> None:
    mass, ppm = 300.0, 5e5
    every = store.by_mass(mass, ppm)
    for cap in (1, 10, 150, len(every)):
        found = store.by_mass(mass, ppm, cap=cap, priorities=["three", "one"])
        assert (len(found), found.total) == (cap, len(every))
        assert found.capped == (cap < len(every))
        assert found_rows(found) == sorted(found_rows(found))
        taken = [sources[0] for sources in found.table["sources"].to_pylist()]
        of_three = sum(s == ["three"] for s in every.table["sources"].to_pylist())
        assert taken.count("three") == min(cap, of_three)
        if "two" in taken:
            assert taken.count("one") == sum(
                s == ["one"] for s in every.table["sources"].to_pylist()
            )


@pytest.mark.parametrize("adduct", [None, "[M+H]+", "[2M+Na]+"])
def test_a_capped_list_keeps_the_nearest_by_mass(store: Database, adduct: str | None) -> None:
    masses = store.masses.tolist()
    asked = masses[len(masses) // 2] + 0.0123
    order = sorted(range(len(masses)), key=lambda n: abs(masses[n] - asked))
    for cap in (1, 5, 20):
        if adduct is None:
            found = store.by_mass(asked, 5e5, cap=cap)
        else:
            mz = parse_adduct(adduct).precursor_mz(asked)
            found = store.by_precursor(mz, adduct, 5e5, cap=cap)
        away = [abs(mass - asked) for mass in found.table["mass"].to_pylist()]
        assert sorted(away) == [abs(masses[n] - asked) for n in order[:cap]]
        assert found_rows(found) == sorted(found_rows(found))


def test_formulas_are_capped_too(store: Database) -> None:
    formulas = [row["formula"] for row in all_rows(store)]
    common = max(set(formulas), key=formulas.count)
    assert store.by_formula(common, cap=2, priorities=["two"]).capped


# Bad questions.


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda d: d.by_mass(-1), "mass -1: expected a positive number"),
        (lambda d: d.by_mass(0), "mass 0: expected a positive number"),
        (lambda d: d.by_mass(float("nan")), "mass nan: expected a positive number"),
        (lambda d: d.by_mass(float("1" * 5000)), "mass inf: expected a positive number"),
        (lambda d: d.by_mass(100, -5), "-5 ppm: expected 0 or more"),
        (lambda d: d.by_mass(100, float("nan")), "nan ppm: expected 0 or more"),
        (lambda d: d.by_mass(100, float("inf")), "inf ppm: expected 0 or more, below 1,000,000"),
        (lambda d: d.by_precursor(100, "[M+H]+", float("nan")), "nan ppm: expected 0 or more"),
        (lambda d: d.many_by_mass([1.0], -1), "-1 ppm: expected 0 or more"),
        (lambda d: d.by_formula("  "), "the formula is empty"),
        (lambda d: d.by_formula("C2H6Xx"), "unknown element 'Xx'"),
        (lambda d: d.by_formula("co"), "can be read as CO or Co"),
        (lambda d: d.by_key("short"), "'short' is no InChIKey"),
        (lambda d: d.by_key("SMILES=CCOCCOCC"), "is no InChIKey"),
        (lambda d: d.many_by_mass([1.0, -2.0]), "no positive number"),
        (lambda d: d.many_by_mass([[1.0]]), "no positive number"),
        (lambda d: d.by_similarity("CCO", 0), "expected at least 1"),
        (lambda d: d.query("SELECT nonsense FROM molecules"), "nonsense"),
    ],
)
def test_bad_questions_are_one_line(store: Database, ask, message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as caught:
        ask(store)
    assert "\n" not in str(caught.value)


def test_bad_adducts_and_molecules_say_so(store: Database) -> None:
    with pytest.raises(AdductError):
        store.by_precursor(100, "[M+Xx]+")
    with pytest.raises(AdductError, match="too small"):
        store.by_precursor(1, "[M+Na]+")
    with pytest.raises(MoleculeError):
        store.by_similarity("C1CC")


# Damage.


@pytest.fixture
def copy(store: Database, tmp_path: Path) -> Path:
    return Path(shutil.copytree(store.folder, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "manifest.json").unlink(), "is no molecule database"),
        (lambda f: (f / "manifest.json").write_text("{"), "is damaged"),
        (lambda f: (f / "manifest.json").write_text("[1]"), "holds a list"),
        (
            lambda f: (f / "manifest.json").write_text('{"kind": "demo"}'),
            "is a demo, expected a molecule database",
        ),
        (lambda f: (f / "nearest.counts.npy").unlink(), r"nearest\.counts\.npy is missing"),
        (lambda f: (f / "rejects.tsv").write_text("longer than it was"), "has 18 bytes, expected"),
        (
            lambda f: (f / "molecules.parquet").write_bytes(
                (f / "molecules.parquet").read_bytes()[:-100]
            ),
            r"molecules\.parquet has .* bytes, expected .*; it was cut short or changed",
        ),
    ],
)
def test_damage_is_noticed_on_opening(copy: Path, damage, message: str) -> None:
    damage(copy)
    with pytest.raises(DatabaseError, match=message):
        Database.open(copy)


def test_another_format_is_refused(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"format_version": 99}))
    with pytest.raises(DatabaseError, match="written in format 99, expected 2; build it again"):
        Database.open(copy)


@pytest.mark.parametrize(
    "name", ["molecules.parquet", "nearest.words.npy", "keys.npy", "rejects.tsv"]
)
def test_a_changed_byte_is_found_by_check(copy: Path, name: str) -> None:
    Database.open(copy).check()
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 255
    (copy / name).write_bytes(bytes(data))
    with pytest.raises(DatabaseError, match=f"{name} has changed; build it again"):
        Database.open(copy).check()


def test_a_parquet_file_of_zeros_is_one_line(copy: Path, resign) -> None:
    size = (copy / "molecules.parquet").stat().st_size
    (copy / "molecules.parquet").write_bytes(b"\0" * size)
    with pytest.raises(DatabaseError, match=r"molecules\.parquet has changed; build it again"):
        next(Database.open(copy).batches())
    database = Database.open(resign(copy))
    with pytest.raises(DatabaseError, match="is damaged"):
        next(database.batches())
    with pytest.raises(DatabaseError, match="is damaged"):
        database.by_mass(194.08, 1e4)
    with pytest.raises(DatabaseError):
        database.by_formula("C2H6O")


def rewritten(copy: Path, change) -> Database:
    """The store with another table of molecules in it, as its manifest says."""
    path = copy / "molecules.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["files"]["molecules.parquet"] = measured(path)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return Database.open(copy)


def with_bad_text(table: pa.Table, name: str) -> pa.Table:
    """The same table, with names that are no UTF-8."""
    column = table[name].combine_chunks()
    texts = column.values if pa.types.is_list(column.type) else column
    buffers = texts.buffers()
    spoilt = pa.py_buffer(b"\xff" * buffers[2].size)
    bad = pa.Array.from_buffers(pa.string(), len(texts), [None, buffers[1], spoilt])
    if pa.types.is_list(column.type):
        bad = pa.ListArray.from_arrays(column.offsets, bad)
    return table.set_column(table.schema.get_field_index(name), name, bad)


@pytest.mark.parametrize("name", ["names", "smiles", "sources", "key"])
def test_text_that_is_no_utf8_is_damage_told_in_one_line(copy: Path, name: str) -> None:
    database = rewritten(copy, lambda table: with_bad_text(table, name))
    for ask in (
        lambda: database.by_mass(300.0, 5e5),
        lambda: database.by_mass(300.0, 5e5, cap=3),
        lambda: database.rows(np.array([0, 5])),
        lambda: list(database.batches()),
        lambda: database.query("SELECT * FROM molecules"),
    ):
        with pytest.raises(DatabaseError) as caught:
            ask()
        assert "\n" not in str(caught.value)
        assert str(copy) in str(caught.value)


def test_a_table_of_other_molecules_is_noticed(copy: Path) -> None:
    database = rewritten(copy, lambda table: table.slice(1))
    with pytest.raises(DatabaseError, match=r"has \d+ rows, expected \d+ in groups"):
        database.by_mass(300.0, 5e5)
    database = rewritten(copy, lambda table: table.drop_columns(["names"]))
    with pytest.raises(DatabaseError, match="has other columns than expected"):
        database.by_mass(300.0, 5e5)


@pytest.mark.parametrize("masses", [np.zeros(3), np.zeros((3, 2)), np.array(["a"])])
def test_masses_that_are_not_those_of_the_store_are_noticed(copy: Path, masses, resign) -> None:
    np.save(copy / "masses.npy", masses)
    database = Database.open(resign(copy))
    with pytest.raises(DatabaseError, match=r"masses\.npy: holds .*, expected float64 of"):
        database.by_mass(300.0, 5e5)


def test_changed_bytes_are_read_or_told_in_one_line(copy: Path) -> None:
    path = copy / "molecules.parquet"
    whole = path.read_bytes()
    answers = 0
    for place in range(4, len(whole) - 8, len(whole) // 60):
        damaged = bytearray(whole)
        damaged[place : place + 4] = b"\xff\xff\xff\xff"
        path.write_bytes(bytes(damaged))
        try:
            found = Database.open(copy).by_mass(300.0, 5e5, cap=3)
            found.table.to_pylist()
            answers += 1
        except DatabaseError as error:
            answers += "\n" not in str(error)
    assert answers == len(range(4, len(whole) - 8, len(whole) // 60))


def test_no_index_says_so(make_store) -> None:
    database = make_store([("CCO",), ("CCN",)], nearest=False)
    assert not list(database.folder.glob("nearest*"))
    assert len(database.by_formula("C2H6O")) == 1
    with pytest.raises(DatabaseError, match="was built without the index for nearest neighbours"):
        database.by_similarity("CCO")


@pytest.mark.parametrize("name", ["it's", "a [1] b", "what?", "st*r", "{a,b}", "ä ö"])
def test_a_folder_may_have_any_name(make_store, name: str) -> None:
    database = make_store([("CCO",), ("CCN",)], name)
    assert len(database.by_formula("C2H6O")) == 1
    assert len(database.by_similarity("CCO")) == 2


def test_a_name_with_a_star_means_one_folder(make_store) -> None:
    make_store([("CCO",)], "star")
    assert len(make_store([("CCO",)], "st*r").by_formula("C2H6O")) == 1


def test_files_are_closed_with_the_store(store: Database) -> None:
    opened = Database.open(store.folder)
    assert opened.by_mass(194.08).total >= 0
    held = [Path("/proc/self/fd", str(number)) for number in opened._held.values()]
    if not held[0].parent.is_dir():
        pytest.skip("there is no /proc to look at")
    assert all(path.exists() for path in held)
    del opened
    assert not any(path.exists() for path in held)


def test_similarity_is_asked_in_the_form_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "pool.smi").write_text("C[C@H](N)C(=O)O\nNCC(=O)O\n")
    database = build_database(
        file_sources([tmp_path / "pool.smi"]), tmp_path / "db", fingerprint="map4",
        keep_stereo=True, engine=LocalEngine(1),
    )  # fmt: skip
    found = database.by_similarity("C[C@H](N)C(=O)O", 1)
    assert found.table["similarity"].to_pylist() == [1.0]


@pytest.fixture
def small_store(pool: list[str], tmp_path: Path) -> Path:
    path = write_table(tmp_path / "m.tsv", [(s, str(n)) for n, s in enumerate(pool[:60])])
    return build(path, tmp_path / "store").folder


def edit(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_rows_ranges_and_batches_are_of_one_table(small_store: Path) -> None:
    database = Database.open(small_store)
    whole = database.range(0, len(database)).to_pylist()
    places = np.array([5, 0, len(whole) - 1, 5])
    found = database.rows(places).drop_columns(["row"]).to_pylist()
    assert found == [whole[place] for place in places]
    assert database.rows(np.empty(0, np.int64)).num_rows == 0
    batches = [row for batch in database.batches(size=7) for row in batch.to_pylist()]
    assert batches == whole
    assert set(whole[0]) == set(COLUMNS)
    assert [row["mass"] for row in whole] == database.masses.tolist()
    database.check_form()
    database.check_order()


@pytest.mark.parametrize("name", [MOLECULES, MASSES, SKIPPED_FILE, "nearest.words.npy"])
def test_a_file_that_the_manifest_does_not_name_is_missed(small_store: Path, name: str) -> None:
    files = read_manifest(small_store)["files"]
    edit(small_store, files={key: value for key, value in files.items() if key != name})
    with pytest.raises(DatabaseError, match=f"lacks 'files.{name}'; build it again"):
        Database.open(small_store)


def test_bits_that_are_not_the_fingerprints_are_refused(small_store: Path) -> None:
    options = read_manifest(small_store)["options"]
    edit(small_store, options=options | {"fingerprint_bits": 17})
    with pytest.raises(DatabaseError, match=r"fingerprint_bits is 17, expected 4096"):
        Database.open(small_store)


@pytest.mark.parametrize("kind", ["map4", "morgan6", "morgan8"])
def test_fingerprints_of_earlier_bits_are_refused(pool: list[str], tmp_path: Path, kind) -> None:
    path = write_table(tmp_path / "m.tsv", [(s, str(n)) for n, s in enumerate(pool[:5])])
    folder = build(path, tmp_path / "store", fingerprint=kind).folder
    versions = read_manifest(folder)["versions"]
    edit(folder, versions={name: each for name, each in versions.items() if kind not in name})
    expected = rf"store: has {kind} fingerprints of version 1, expected \d: .*; build it again"
    with pytest.raises(DatabaseError, match=expected):
        Database.open(folder)
    assert len(build(path, folder, fingerprint=kind)) == 5  # which it can be, in its place


def test_only_the_files_asked_for_are_read(small_store: Path) -> None:
    (small_store / SKIPPED_FILE).write_bytes(bytes((small_store / SKIPPED_FILE).stat().st_size))
    database = Database.open(small_store)
    database.check((MOLECULES, MASSES))
    with pytest.raises(DatabaseError, match=r"rejects\.tsv has changed; build it again"):
        database.check((MOLECULES, SKIPPED_FILE))
    with pytest.raises(DatabaseError, match=r"rejects\.tsv has changed; build it again"):
        database.check()


def test_masses_that_fall_are_noticed_once_they_are_searched_in(small_store: Path, resign) -> None:
    masses = np.load(small_store / MASSES)
    np.save(small_store / MASSES, masses[::-1])
    with pytest.raises(DatabaseError, match=r"masses\.npy has changed; build it again"):
        Database.open(small_store).many_by_mass([200.0])
    resign(small_store)
    with pytest.raises(DatabaseError, match=r"masses\.npy does not rise; build it again"):
        Database.open(small_store).many_by_mass([200.0])


def test_a_store_that_is_replaced_while_it_is_opened_is_opened_whole(
    small_store: Path, pool: list[str], tmp_path: Path, monkeypatch
) -> None:
    more = write_table(tmp_path / "n.tsv", [(s, str(n)) for n, s in enumerate(pool[60:160])])
    build(more, tmp_path / "other")
    swapped: list[bool] = []

    def swap(*arguments: object, **options: object) -> None:
        if not swapped:
            swapped.append(True)
            small_store.rename(tmp_path / "away")
            (tmp_path / "other").rename(small_store)

    monkeypatch.setattr(Manifest, "check_files", swap)  # between the manifest and the files
    database = Database.open(small_store)
    assert database.manifest == read_manifest(small_store)
    assert len(database.masses) == len(database) != len(Database.open(tmp_path / "away"))
    shutil.rmtree(tmp_path / "away")


# Two texts with one CRC-32.
COLLIDING = ("plumless", "buckeroo")


def index_of(*texts: str) -> np.ndarray:
    return np.sort(entries(texts, np.arange(len(texts))))


def test_all_rows_of_a_text_are_found() -> None:
    texts = ["b", "a", "c", "b", "", "b"]
    for text in ("a", "b", "c", ""):
        expected = [row for row, each in enumerate(texts) if each == text]
        assert rows_of(text, index_of(*texts)).tolist() == expected
    assert rows_of("d", index_of(*texts)).tolist() == []
    assert rows_of("d", index_of()).tolist() == []


def test_texts_that_share_a_checksum_are_found_together() -> None:
    """The text itself is compared by whoever has the table."""
    assert zlib.crc32(COLLIDING[0].encode()) == zlib.crc32(COLLIDING[1].encode())
    assert rows_of(COLLIDING[0], index_of("x", *COLLIDING)).tolist() == [1, 2]
    assert has_checksum(COLLIDING, COLLIDING[0])
    assert not has_checksum([*COLLIDING, "x"], COLLIDING[0])


def test_the_last_row_that_fits_is_kept_apart_from_the_checksum() -> None:
    last = 2**32 - 1
    index = np.sort(entries(["a", "b"], np.array([last, last - 1])))
    assert rows_of("a", index).tolist() == [last]


def test_a_store_has_every_key_and_the_labelled_molecules(store: Database) -> None:
    rows = all_rows(store)
    assert len(store.keys) == len(rows)
    labelled = sorted(n for n, row in enumerate(rows) if "[2H]" in row["smiles"])
    assert len(labelled) == len(METHANES) - 1
    assert sorted((store.labelled & np.uint64(2**32 - 1)).tolist()) == labelled
    found = store.by_formula("CH4").table["smiles"].to_pylist()
    assert found == ["C", "[2H]C", "[2H]C[2H]"]


def test_charged_molecules_are_found_by_their_formula(make_store) -> None:
    store = make_store([("C[N+](C)(C)C",), ("C[N+](C)(C)[11CH3]",), ("CC(C)(C)N",)])
    assert len(store.by_formula("C4H12N+")) == 2
    assert len(store.labelled) == 1


@pytest.mark.parametrize(
    "index",
    [np.array([3, 2], np.uint64), np.array([2, 2], np.uint64), np.array([1, 9], np.uint64)],
)
def test_entries_that_fall_or_point_past_the_end_are_damage(index: np.ndarray) -> None:
    with pytest.raises(DatabaseError, match=r"x: is damaged .*; again"):
        check_entries(index, 9, "x", "again")
    check_entries(index[:1], 9, "x", "again")
    check_entries(index[:0], 0, "x", "again")


@pytest.mark.parametrize("name", FILES)
def test_an_index_of_another_store_is_noticed(make_store, name: str, resign) -> None:
    store = make_store([("CCO",), ("[2H]CO",), ("CCN",)])
    other = make_store([("N",), ("C",), ("[2H]CO",)], "other")
    (store.folder / name).write_bytes((other.folder / name).read_bytes())
    opened = Database.open(resign(store.folder))
    with pytest.raises(DatabaseError, match=f"{name} and molecules.parquet disagree"):
        if name == KEYS:
            opened.by_key(inchikey_block("N"))
        else:
            opened.by_formula("CH4O")


def test_files_are_of_eight_bytes_a_molecule(store: Database) -> None:
    size = Path(store.folder, KEYS).stat().st_size
    assert size == 8 * len(store) + 128  # the header
    assert Path(store.folder, LABELLED).stat().st_size < size


SOURCES = ["hmdb", "mine", "zinc"]
CAPPED_ROWS = st.lists(
    st.tuples(
        st.text("ABC", min_size=3, max_size=3), st.sampled_from([100.0, 100.001, 100.002, 99.999]),
        st.lists(st.sampled_from(SOURCES), max_size=2),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def table_of(rows) -> pa.Table:
    keys, masses, sources = zip(*rows, strict=True)
    sources = pa.array(sources, pa.list_(pa.string()))
    return pa.table({"key": list(keys), "mass": list(masses), "sources": sources})


@given(
    rows=CAPPED_ROWS,
    priorities=st.lists(st.sampled_from(SOURCES), unique=True),
    cap=st.integers(1, 9),
)
def test_a_capped_list_takes_wanted_sources_then_the_nearest_then_keys(
    rows, priorities: list[str], cap: int
) -> None:
    rows = sorted(rows, key=lambda row: row[1])

    def order(place: int) -> tuple[int, float, str]:
        key, mass, sources = rows[place]
        ranks = [priorities.index(s) for s in sources if s in priorities]
        return min(ranks, default=len(priorities)), abs(mass - 100.0), key

    expected = sorted(range(len(rows)), key=order)
    table = table_of(rows)
    assert cascade(table, priorities, 100.0).tolist() == expected
    found = capped(table, cap, priorities, 100.0)
    assert found.table.to_pylist() == table.take(sorted(expected[:cap])).to_pylist()
    assert (found.total, found.capped) == (len(rows), len(rows) > cap)


def test_without_a_mass_the_order_is_that_of_the_keys() -> None:
    table = table_of([("B", 100.0, []), ("A", 999.0, []), ("C", 1.0, ["mine"])])
    assert cascade(table, []).tolist() == [1, 0, 2]
    assert cascade(table, ["mine"]).tolist() == [2, 1, 0]
    assert capped(table, None, ["mine"]).table == table
