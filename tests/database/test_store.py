import json
import shutil
from functools import partial
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
    MASSES,
    MOLECULES,
    SKIPPED_FILE,
    capped,
    cascade,
    entries,
    read_manifest,
    rows_of,
)
from mzseek.io.manifest import Manifest, measured
from mzseek.parallel import LocalEngine

from .conftest import METHANES, NAMELESS, all_rows, build, vector, write_table

building = settings(max_examples=12, deadline=None)
looking = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def found_rows(found) -> list[int]:
    assert tuple(found.table.column_names[:8]) == ("row", *COLUMNS)
    return found.table["row"].to_pylist()


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
def test_by_name_is_a_scan(store: Database, data) -> None:
    names = [row["names"] for row in all_rows(store)]
    part = data.draw(st.sampled_from([name for own in names for name in own]))[:4]
    same = [n for n, own in enumerate(names) if any(part.lower() in name.lower() for name in own)]
    found = store.by_name(f" {part.upper()} ", len(names)).table
    assert sorted(found["row"].to_pylist()) == same
    lengths = [min(len(name) for name in own if part.lower() in name.lower())
               for own in found["names"].to_pylist()]  # fmt: skip
    assert lengths == sorted(lengths)
    assert (store.by_name(part, 1).total, len(store.by_name(part, 1))) == (len(same), 1)


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
def test_a_formula_is_one_in_any_order_and_case(formulas: Database, written: str) -> None:
    assert len(formulas.by_formula(written)) == 2


@pytest.fixture(scope="module")
def formulas(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder = tmp_path_factory.mktemp("formulas")
    rows = [("CCO",), ("COC",), ("C[N+](C)(C)C",), ("C[N+](C)(C)[11CH3]",), ("CC(C)(C)N",)]
    return build(write_table(folder / "m.tsv", rows), folder / "store")


def test_charged_labelled_and_nameless_molecules_are_found(
    formulas: Database, store: Database
) -> None:
    assert len(formulas.by_formula("C4H12N+")) == 2
    assert len(formulas.labelled) == 1
    methanes = [Chem.CanonSmiles(smiles) for smiles in METHANES]
    assert store.by_formula("CH4").table["smiles"].to_pylist() == methanes
    assert store.by_key(inchikey_block("C")).table["smiles"].to_pylist() == methanes
    assert len(store.keys) == len(store)
    assert len(store.labelled) == len(METHANES) - 1
    [row] = store.by_mass(exact_mass(NAMELESS), 1.0).table.to_pylist()
    assert row["key"].startswith("SMILES=")
    assert store.collections() == ["one", "three", "two"]


def test_rows_ranges_and_batches_are_of_one_table(make_store, pool, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.database.build.ROW_GROUP", 7)
    database = make_store([(smiles,) for smiles in pool[:40]])
    whole = database.range(0, len(database)).to_pylist()
    assert set(whole[0]) == set(COLUMNS)
    assert [row["mass"] for row in whole] == database.masses.tolist()
    assert [row["smiles"] for row in whole] == [row["smiles"] for row in all_rows(database)]
    for wanted in ([39, 3, 3, 20], list(range(40)), [7], [14, 13], []):
        found = database.rows(np.array(wanted, np.int64)).drop_columns(["row"]).to_pylist()
        assert found == [whole[row] for row in wanted]
    assert [row for batch in database.batches(size=6) for row in batch.to_pylist()] == whole
    database.check_form()
    database.check_order()


def test_texts_that_share_a_checksum_are_found_together() -> None:
    """The text itself is compared by whoever has the table."""
    texts = ["b", "plumless", "c", "b", "", "buckeroo"]  # two of one CRC-32
    index = np.sort(entries(texts, np.arange(len(texts))))
    expected = {"b": [0, 3], "plumless": [1, 5], "": [4], "d": []}
    assert {text: rows_of(text, index).tolist() for text in expected} == expected
    assert rows_of("d", index[:0]).tolist() == []
    last = 2**32 - 1
    assert rows_of("a", np.sort(entries(["a", "b"], np.array([last, last - 1])))).tolist() == [last]


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


# Capped lists.


@pytest.mark.parametrize("adduct", [None, "[M+H]+", "[2M+Na]+"])
@pytest.mark.parametrize("priorities", [[], ["three", "one"]])
def test_look_ups_are_capped_by_source_and_mass(
    store: Database, adduct: str | None, priorities: list[str]
) -> None:
    mass = float(store.masses[len(store) // 2]) + 0.0123
    mz = parse_adduct(adduct).precursor_mz(mass) if adduct else mass
    ask = (
        partial(store.by_precursor, mz, adduct, 5e5) if adduct else partial(store.by_mass, mz, 5e5)
    )
    every = ask()
    for cap in (1, 5, 20, len(every)):
        found, expected = (
            ask(cap=cap, priorities=priorities),
            capped(every.table, cap, priorities, mass),
        )
        assert found_rows(found) == found_rows(expected)
        assert (len(found), found.total, found.capped) == (cap, len(every), cap < len(every))
    formulas = [row["formula"] for row in all_rows(store)]
    common = max(set(formulas), key=formulas.count)
    assert store.by_formula(common, cap=2, priorities=priorities).capped


# Bad questions.


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda d: d.by_mass(-1), DatabaseError, "mass -1: expected a positive number"),
        (lambda d: d.by_mass(float("nan")), DatabaseError, "mass nan: expected a positive number"),
        (lambda d: d.by_mass(float("inf")), DatabaseError, "mass inf: expected a positive number"),
        (lambda d: d.by_mass(100, -5), DatabaseError, "-5 ppm: expected 0 or more"),
        (lambda d: d.by_mass(100, float("inf")), DatabaseError, "inf ppm: .* below 1,000,000"),
        (lambda d: d.by_precursor(100, "[M+H]+", float("nan")), DatabaseError, "nan ppm: expected"),
        (lambda d: d.by_precursor(100, "[M+Xx]+"), AdductError, "unknown part"),
        (lambda d: d.by_precursor(1, "[M+Na]+"), AdductError, "too small"),
        (lambda d: d.many_by_mass([1.0], -1), DatabaseError, "-1 ppm: expected 0 or more"),
        (lambda d: d.many_by_mass([1.0, -2.0]), DatabaseError, "no positive number"),
        (lambda d: d.many_by_mass([[1.0]]), DatabaseError, "no positive number"),
        (lambda d: d.by_formula("  "), DatabaseError, "the formula is empty"),
        (lambda d: d.by_formula("C2H6Xx"), DatabaseError, "unknown element 'Xx'"),
        (lambda d: d.by_formula("co"), DatabaseError, "can be read as CO or Co"),
        (lambda d: d.by_key("short"), DatabaseError, "'short' is no InChIKey"),
        (lambda d: d.by_key("SMILES=CCOCCOCC"), DatabaseError, "is no InChIKey"),
        (lambda d: d.by_similarity("CCO", 0), DatabaseError, "expected at least 1"),
        (lambda d: d.by_similarity("C1CC"), MoleculeError, "not valid SMILES"),
        (lambda d: d.query("SELECT nonsense FROM molecules"), DatabaseError, "nonsense"),
    ],
)
def test_bad_questions_are_one_line(store: Database, ask, error, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ask(store)
    assert "\n" not in str(caught.value)


# Damage.


@pytest.fixture
def copy(store: Database, tmp_path: Path) -> Path:
    return Path(shutil.copytree(store.folder, tmp_path / "copy"))


def change_manifest(folder: Path, change) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("manifest.json", None, "is no molecule database"),
        ("manifest.json", b"{", "is damaged"),
        ("manifest.json", b"[1]", "holds a list"),
        ("manifest.json", b'{"kind": "demo"}', "is a demo, expected a molecule database"),
        ("nearest.counts.npy", None, r"nearest\.counts\.npy is missing"),
        ("rejects.tsv", b"longer than it was", "has 18 bytes, expected"),
        (MOLECULES, b"PAR1", r"molecules\.parquet has 4 bytes, expected .*; it was cut short or"),
    ],
)
def test_damaged_files_are_noticed_on_opening(copy: Path, name: str, data, message: str) -> None:
    (copy / name).unlink() if data is None else (copy / name).write_bytes(data)
    with pytest.raises(DatabaseError, match=message):
        Database.open(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format_version=99), "written in format 99, expected 2; build it again"),
        (lambda m: m["options"].update(fingerprint_bits=17), "_bits is 17, expected 4096"),
        *(
            (lambda m, name=name: m["files"].pop(name), f"lacks 'files.{name}'; build it again")
            for name in (MOLECULES, MASSES, SKIPPED_FILE, "nearest.words.npy")
        ),
    ],
)
def test_manifests_that_do_not_fit_are_refused(copy: Path, change, message: str) -> None:
    change_manifest(copy, change)
    with pytest.raises(DatabaseError, match=message):
        Database.open(copy)


@pytest.mark.parametrize("kind", ["map4", "morgan6", "morgan8"])
def test_fingerprints_of_earlier_bits_are_refused(pool: list[str], tmp_path: Path, kind) -> None:
    path = write_table(tmp_path / "m.tsv", [(s, str(n)) for n, s in enumerate(pool[:5])])
    folder = build(path, tmp_path / "store", fingerprint=kind).folder
    change_manifest(folder, lambda m: [m["versions"].pop(n) for n in [*m["versions"]] if kind in n])
    expected = rf"store: has {kind} fingerprints of version 1, expected \d: .*; build it again"
    with pytest.raises(DatabaseError, match=expected):
        Database.open(folder)
    assert len(build(path, folder, fingerprint=kind)) == 5  # which it can be, in its place


@pytest.mark.parametrize("name", [MOLECULES, "nearest.words.npy", KEYS, SKIPPED_FILE])
def test_a_changed_byte_is_found_by_check(copy: Path, name: str) -> None:
    Database.open(copy).check()
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 255
    (copy / name).write_bytes(bytes(data))
    database = Database.open(copy)
    database.check([other for other in database.manifest["files"] if other != name])
    for names in (None, [MASSES, name]):
        with pytest.raises(DatabaseError, match=f"{name} has changed; build it again"):
            database.check(names)


def test_a_parquet_file_of_zeros_is_one_line(copy: Path, resign) -> None:
    (copy / MOLECULES).write_bytes(bytes((copy / MOLECULES).stat().st_size))
    for folder, message in ((copy, "has changed; build it again"), (None, "is damaged")):
        database = Database.open(folder or resign(copy))
        for ask in (
            lambda database: next(database.batches()),
            lambda database: database.by_mass(194.08, 1e4),
            lambda database: database.by_formula("C2H6O"),
        ):
            with pytest.raises(DatabaseError, match=rf"molecules\.parquet.* {message}"):
                ask(database)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        (MASSES, np.zeros(3), r"masses\.npy: holds .*, expected float64 of"),
        (MASSES, np.zeros((3, 2)), r"masses\.npy: holds .*, expected float64 of"),
        (MASSES, np.array(["a"]), r"masses\.npy: holds .*, expected float64 of"),
        (MASSES, lambda old: old[::-1], r"masses\.npy does not rise; build it again"),
        (KEYS, lambda old: old[::-1], r"keys\.npy: is damaged .*; build it again"),
        (KEYS, lambda old: np.full_like(old, 7), r"keys\.npy: is damaged"),
        (KEYS, lambda old: old + np.uint64(len(old)), r"keys\.npy: is damaged"),
    ],
)
def test_arrays_that_are_not_those_of_the_store_are_noticed(
    copy: Path, name: str, array, message: str, resign
) -> None:
    np.save(copy / name, array(np.load(copy / name)) if callable(array) else array)
    with pytest.raises(DatabaseError, match=f"{name} has (changed|.* bytes, expected)"):
        _ = Database.open(copy).masses, Database.open(copy).keys
    database = Database.open(resign(copy))
    with pytest.raises(DatabaseError, match=message):
        _ = database.many_by_mass([200.0]), database.keys


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
        with pytest.raises(DatabaseError, match=f"^{copy}[^\n]*$"):
            ask()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.slice(1), r"has \d+ rows, expected \d+ in groups"),
        (lambda table: table.drop_columns(["names"]), "has other columns than expected"),
    ],
)
def test_a_table_of_other_molecules_is_noticed(copy: Path, change, message: str) -> None:
    with pytest.raises(DatabaseError, match=message):
        rewritten(copy, change).by_mass(300.0, 5e5)


def test_no_index_says_so(make_store) -> None:
    database = make_store([("CCO",), ("CCN",)], nearest=False)
    assert not list(database.folder.glob("nearest*"))
    assert len(database.by_formula("C2H6O")) == 1
    with pytest.raises(DatabaseError, match="was built without the index for nearest neighbours"):
        database.by_similarity("CCO")


def test_a_folder_may_have_any_name(make_store) -> None:
    for name in ("star", "it's", "a [1] b", "what?", "st*r", "{a,b}", "ä ö"):
        database = make_store([("CCO",), ("CCN",)], name)
        assert len(database.by_formula("C2H6O")) == 1
        assert len(database.by_similarity("CCO")) == 2
        assert len(all_rows(database)) == 2


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


def test_a_store_that_is_replaced_while_it_is_opened_is_opened_whole(
    copy: Path, make_store, tmp_path: Path, monkeypatch
) -> None:
    other = make_store([("CCO",), ("CCN",)], "other")

    def swap(*arguments: object, **options: object) -> None:
        if other.folder.exists():
            copy.rename(tmp_path / "away")
            other.folder.rename(copy)

    monkeypatch.setattr(Manifest, "check_files", swap)  # between the manifest and the files
    database = Database.open(copy)
    assert database.manifest == read_manifest(copy)
    assert len(database.masses) == len(database) == len(other)


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
    if len({row[0] for row in rows}) == len(rows):
        by_key = sorted(range(len(rows)), key=lambda place: (order(place)[0], rows[place][0]))
        assert cascade(table, priorities).tolist() == by_key
    assert capped(table, None, priorities).table == table
