import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import DatabaseError, DatasetError, InputError, MzseekError
from mzseek.database import Database, add_molecules
from mzseek.database import build as build_module
from mzseek.database.build import Part, merge_parts
from mzseek.database.records import part_schema
from mzseek.database.sources import file_sources
from mzseek.parallel import LocalEngine, silent

from ..processes import Forked
from .conftest import all_rows, build, contents, write_table

BATCH, CHUNK = 5, 20


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "BATCH", BATCH)
    monkeypatch.setattr(build_module, "CHUNK", CHUNK)


small_chunks = pytest.mark.usefixtures("_small_chunks")


@pytest.fixture
def molecules(pool: list[str], tmp_path: Path) -> Path:
    """A table with good, bad and repeated molecules."""
    rows = [("C1CC" if n % 17 == 3 else s, str(n), "", "abc"[n % 3]) for n, s in enumerate(pool)]
    return write_table(tmp_path / "molecules.tsv", [*rows[:140], *rows[:40]])


@pytest.fixture
def more(pool: list[str], tmp_path: Path) -> Path:
    return write_table(tmp_path / "more.tsv", [(s, str(n), "", "more") for n, s in
                                               enumerate(pool[100:200])])  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# The same sources give the same store.


@small_chunks
def test_jobs_chunks_and_names_of_folders_do_not_show_in_the_bytes(
    molecules: Path, tmp_path: Path, monkeypatch
) -> None:
    one = contents(build(molecules, tmp_path / "one").folder)
    two = contents(build(molecules, tmp_path / "two", engine=LocalEngine(2)).folder)
    assert one == two
    monkeypatch.setattr(build_module, "BATCH", 7)
    monkeypatch.setattr(build_module, "CHUNK", 28)
    assert contents(build(molecules, tmp_path / "three").folder) == one
    assert contents(build(molecules, tmp_path / "one").folder) == one
    assert names(tmp_path) == ["molecules.tsv", "one", "three", "two"]


@small_chunks
def test_the_manifest_says_what_made_it(molecules: Path, tmp_path: Path) -> None:
    database = build(molecules, tmp_path / "out", fingerprint="maccs")
    manifest = database.manifest
    assert manifest["options"] == {
        "fingerprint": "maccs", "fingerprint_bits": 167, "nearest": True, "keep_stereo": False,
    }  # fmt: skip
    assert [each["name"] for each in manifest["sources"]] == ["molecules.tsv"]
    counts = manifest["counts"]
    assert counts["records"] == 180
    assert counts["molecules"] + counts["merged"] + counts["rejects"] == 180
    assert str(tmp_path) not in json.dumps(manifest["files"])
    assert set(manifest["files"]) | {"manifest.json"} == set(names(tmp_path / "out"))


@small_chunks
def test_skipped_records_are_listed_in_order(tmp_path: Path) -> None:
    """Those that readers refuse come before those that are no molecules."""
    texts = ["CCO", "C1CC", *["CCN"] * 30, "C(C)(C)(C)(C)C", *["CCC"] * 30, "*C", "-"]
    path = write_table(tmp_path / "m.tsv", [(text,) for text in texts])
    database = build(path, tmp_path / "out")
    lines = (database.folder / "rejects.tsv").read_text().splitlines()
    assert lines[0] == "where\treason"
    assert [line.split("\t")[0].rsplit(" ", 1)[1] for line in lines[1:]] == ["66", "3", "34", "65"]
    assert database.manifest["counts"]["rejects"] == 4


@pytest.mark.parametrize("text", ["smiles\nC1CC\n*\n", "smiles\n\n", "smiles\n"])
def test_no_molecule_at_all_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(MzseekError) as caught:
        build(tmp_path / "m.csv", tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["m.csv"]
    if "C1CC" in text:
        assert "no molecule could be read (first: " in str(caught.value)


def test_what_is_not_a_store_is_not_replaced(molecules: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(DatasetError, match="is no molecule database; name another"):
        build(molecules, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    with pytest.raises(DatasetError, match=r"holds the source molecules\.tsv"):
        build(molecules, tmp_path)
    with pytest.raises(MzseekError, match="fingerprint 'ecfp' is unknown"):
        build(molecules, tmp_path / "out", fingerprint="ecfp")
    with pytest.raises(InputError, match="no such file"):
        build(tmp_path / "absent.smi", tmp_path / "out")
    assert names(tmp_path) == ["mine", "molecules.tsv"]


# Interrupted.


class Stop(Exception):
    """Stands for whatever ends a process."""


def stop_at(wanted: str, step: int):
    def progress(stage: str, done: int, total: int | None = None) -> None:
        if stage == wanted and done >= step:
            raise Stop

    return progress


@small_chunks
@pytest.mark.parametrize(
    ("stage", "step"), [("molecules", 5), ("molecules", 90), ("merging", 0), ("indexing", 0)]
)
def test_a_stopped_build_goes_on_where_it_was(
    molecules: Path, tmp_path: Path, stage: str, step: int
) -> None:
    whole = contents(build(molecules, tmp_path / "whole").folder)
    with pytest.raises(Stop):
        build(molecules, tmp_path / "out", progress=stop_at(stage, step))
    assert not (tmp_path / "out").exists()
    begun: list[int] = []

    def noted(stage: str, done: int, total: int | None = None) -> None:
        if stage == "molecules":
            begun.append(done)
            assert total == 180

    assert contents(build(molecules, tmp_path / "out", progress=noted).folder) == whole
    assert min(begun, default=180) > step - CHUNK
    assert bool(begun) == (stage == "molecules")
    assert names(tmp_path) == ["molecules.tsv", "out", "whole"]


@small_chunks
@pytest.mark.parametrize("what", ["source", "fingerprint", "reading"])
def test_a_change_starts_anew(molecules: Path, tmp_path: Path, what: str) -> None:
    with pytest.raises(Stop):
        build(molecules, tmp_path / "out", progress=stop_at("molecules", 100))
    options = {"fingerprint": "maccs"} if what == "fingerprint" else {}
    if what == "source":
        molecules.write_text(molecules.read_text().replace("C1CC", "CCC"))
    sources = file_sources([molecules], columns={"name": "id"} if what == "reading" else None)
    begun: list[int] = []
    database = build(
        sources, tmp_path / "out", progress=lambda _, done, total=None: begun.append(done),
        **options,
    )  # fmt: skip
    assert begun[0] == BATCH
    assert contents(database.folder) == contents(build(sources, tmp_path / "x", **options).folder)


DRIVER = """
import sys
from pathlib import Path
from mzseek.database import Database, add_molecules, build, build_database
from mzseek.database.sources import file_sources
from mzseek.parallel import LocalEngine
build.BATCH, build.CHUNK = {batch}, {chunk}
what, source, out, jobs = sys.argv[1:]
print("go", flush=True)
sources, engine = file_sources([Path(source)]), LocalEngine(int(jobs))
if what == "build":
    build_database(sources, Path(out), engine=engine)
else:
    add_molecules(Database.open(out), sources, engine=engine)
print("done", flush=True)
"""


def started(what: str, source: Path, out: Path, jobs: int) -> Forked:
    """A process of its own group that builds or adds, and has begun."""
    code = DRIVER.format(batch=BATCH, chunk=CHUNK)
    process = Forked(code, what, str(source), str(out), str(jobs))
    assert process.stdout.readline() == "go\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "kills"), [(1, 7), (2, 3)])
@small_chunks
def test_a_killed_build_goes_on_to_the_same_bytes(
    molecules: Path, tmp_path: Path, jobs: int, kills: int
) -> None:
    process = started("build", molecules, tmp_path / "whole", jobs)
    began = time.monotonic()
    assert process.communicate()[0] == "done\n"
    seconds = time.monotonic() - began
    whole = contents(tmp_path / "whole")
    moments = random.Random(jobs)
    for _ in range(kills):
        process = started("build", molecules, tmp_path / "out", jobs)
        time.sleep(moments.uniform(0, seconds))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (tmp_path / "out").exists():  # it was faster than the signal: then it must be whole
            assert contents(tmp_path / "out") == whole
        assert contents(build(molecules, tmp_path / "out").folder) == whole
        assert names(tmp_path) == ["molecules.tsv", "out", "whole"]
        shutil.rmtree(tmp_path / "out")


# Sources that change while they are read.


def changing(path: Path, stage: str, step: int):
    """Progress that changes a file, once, when a stage has come so far."""
    done: list[int] = []

    def progress(at: str, count: int, total: int | None = None) -> None:
        if at == stage and count >= step and not done:
            done.append(count)
            path.write_text(path.read_text().replace("C1CC", "CCCC"))

    return progress


@small_chunks
@pytest.mark.parametrize(
    ("stage", "step"), [("molecules", 5), ("molecules", 100), ("merging", 0), ("indexing", 0)]
)
def test_a_source_that_changes_during_the_build_is_refused(
    molecules: Path, tmp_path: Path, stage: str, step: int
) -> None:
    with pytest.raises(InputError, match=r"molecules\.tsv: has changed while it was read"):
        build(molecules, tmp_path / "out", progress=changing(molecules, stage, step))
    assert names(tmp_path) == ["molecules.tsv"]  # parts of a mixture are not kept either
    database = build(molecules, tmp_path / "out")
    before = contents(database.folder)
    molecules.write_text(molecules.read_text() + "C1CC\n")
    with pytest.raises(InputError, match=r"molecules\.tsv: has changed while it was read"):
        add_molecules(
            database, file_sources([molecules]), engine=LocalEngine(1),
            progress=changing(molecules, stage, step),
        )  # fmt: skip
    assert contents(database.folder) == before


@small_chunks
def test_parts_that_do_not_hold_what_was_read_are_refused(
    molecules: Path, tmp_path: Path, monkeypatch
) -> None:
    real = build_module.Parts.write

    def lossy(self, chunk: int, batches: list) -> None:
        real(self, chunk, batches[1:] if chunk == 2 else batches)

    monkeypatch.setattr(build_module.Parts, "write", lossy)
    with pytest.raises(DatabaseError, match=r"parts hold .* and 180 records were read"):
        build(molecules, tmp_path / "out")
    assert names(tmp_path) == ["molecules.tsv"]


# Adding.


@pytest.mark.slow
@small_chunks
def test_adding_gives_the_store_of_both(molecules: Path, more: Path, tmp_path: Path) -> None:
    both = build(file_sources([molecules, more]), tmp_path / "both")
    database = build(molecules, tmp_path / "out")
    added = add_molecules(database, file_sources([more]), engine=LocalEngine(1))
    assert all_rows(added) == all_rows(both)
    for name in both.manifest["files"]:
        if name.startswith("nearest"):
            assert (added.folder / name).read_bytes() == (both.folder / name).read_bytes()
    assert added.manifest["sources"] == both.manifest["sources"]
    added.check()
    assert names(tmp_path) == ["both", "molecules.tsv", "more.tsv", "out"]
    rows = all_rows(added)
    assert all_rows(add_molecules(added, file_sources([more]), engine=LocalEngine(1))) == rows


@small_chunks
@pytest.mark.parametrize("stage", ["molecules", "merging", "keys", "indexing"])
def test_a_failed_add_leaves_the_store_as_it_was(
    molecules: Path, more: Path, tmp_path: Path, stage: str
) -> None:
    database = build(molecules, tmp_path / "out")
    before = contents(database.folder)
    with pytest.raises(Stop):
        add_molecules(database, file_sources([more]), engine=LocalEngine(1),
                      progress=stop_at(stage, 0))  # fmt: skip
    assert contents(database.folder) == before
    with pytest.raises(InputError):
        add_molecules(database, file_sources([tmp_path / "absent"]), engine=LocalEngine(1))
    assert contents(database.folder) == before


@pytest.mark.slow
@small_chunks
def test_a_killed_add_leaves_the_store_as_it_was(
    molecules: Path, more: Path, tmp_path: Path
) -> None:
    before = contents(build(molecules, tmp_path / "old").folder)
    shutil.copytree(tmp_path / "old", tmp_path / "out")
    process = started("add", more, tmp_path / "out", 1)
    began = time.monotonic()
    assert process.communicate()[0] == "done\n"
    seconds = time.monotonic() - began
    after = contents(tmp_path / "out")
    moments = random.Random(0)
    for _ in range(5):
        shutil.rmtree(tmp_path / "out")
        shutil.copytree(tmp_path / "old", tmp_path / "out")
        process = started("add", more, tmp_path / "out", 1)
        time.sleep(moments.uniform(0, seconds))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found = contents(tmp_path / "out")
        assert found in (before, after)
        database = Database.open(tmp_path / "out")
        if found == before:
            add_molecules(database, file_sources([more]), engine=LocalEngine(1))
            assert contents(tmp_path / "out") == after
            assert names(tmp_path) == ["molecules.tsv", "more.tsv", "old", "out"]


def answers(database: Database) -> dict[str, list]:
    mass = 194.080376
    return {
        "mass": database.by_mass(mass, 5e4).table.to_pylist(),
        "many": database.many_by_mass([mass], 5e4)[1].tolist(),
        "rows": database.rows(np.arange(len(database))).to_pylist(),
        "like": database.by_similarity("Cn1c(=O)c2c(ncn2C)n(C)c1=O", 20).table.to_pylist(),
    }


@small_chunks
@pytest.mark.parametrize("asked_before", [(), ("mass",), ("many", "rows", "like", "mass")])
def test_a_store_opened_before_an_add_answers_while_and_after_it(
    molecules: Path, more: Path, tmp_path: Path, asked_before: tuple[str, ...]
) -> None:
    build(molecules, tmp_path / "out")
    expected = answers(Database.open(tmp_path / "out"))
    opened = Database.open(tmp_path / "out")
    if "mass" in asked_before:
        opened.by_mass(194.08)
    if "rows" in asked_before:
        answers(opened)
    watched = Database.open(tmp_path / "out")
    seen: list[str] = []

    def ask(stage: str, done: int, total: int | None = None) -> None:
        if stage not in seen:
            seen.append(stage)
            assert answers(watched) == expected

    added = add_molecules(
        Database.open(tmp_path / "out"), file_sources([more]), engine=LocalEngine(1), progress=ask
    )
    assert seen == ["molecules", "merging", "keys", "indexing"]
    assert len(added) > len(opened)
    assert answers(opened) == answers(watched) == expected
    opened.check()
    assert len(answers(added)["rows"]) == len(added)


def test_adding_to_a_store_that_was_replaced_is_refused(
    molecules: Path, more: Path, tmp_path: Path
) -> None:
    old = build(molecules, tmp_path / "out")
    add_molecules(old, file_sources([more]), engine=LocalEngine(1))
    with pytest.raises(DatabaseError, match="was replaced since it was opened; open it again"):
        add_molecules(old, file_sources([more]), engine=LocalEngine(1))


def limited(source: Path, out: Path, size: int) -> str:
    """What a build says that may write no file longer than ``size``."""
    code = (
        "import signal, sys; from pathlib import Path\n"
        "from mzseek.database import build_database\n"
        "from mzseek.database.sources import file_sources\n"
        "from mzseek.core.errors import WriteError\n"
        "from mzseek.parallel import LocalEngine\n"
        "try: build_database(file_sources([Path(sys.argv[1])]), Path(sys.argv[2]),\n"
        "                    engine=LocalEngine(1))\n"
        "except WriteError as error: print(error)\n"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-B", "-c", code, str(source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("size", [4_000, 30_000, 60_000])
def test_files_that_cannot_grow_are_one_line(molecules: Path, tmp_path: Path, size: int) -> None:
    said = limited(molecules, tmp_path / "out", size)
    assert "cannot be written (" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
    whole = build(molecules, tmp_path / "whole")
    assert contents(build(molecules, tmp_path / "out").folder) == contents(whole.folder)
    assert names(tmp_path) == ["molecules.tsv", "out", "whole"]


def test_stereo_is_kept_where_asked_for_and_makes_no_other_molecule(tmp_path: Path) -> None:
    rows = [("C[C@H](N)C(=O)O",), ("C[C@@H](N)C(=O)O",), ("CC(N)C(=O)O",)]
    path = write_table(tmp_path / "m.tsv", rows)
    plain = build(path, tmp_path / "plain")
    kept = build(path, tmp_path / "kept", keep_stereo=True, fingerprint="maccs", nearest=False)
    assert (plain.keep_stereo, kept.keep_stereo) == (False, True)
    assert [row["smiles"] for row in all_rows(plain)] == ["CC(N)C(=O)O"]
    assert [row["smiles"] for row in all_rows(kept)] == ["C[C@H](N)C(=O)O"]
    more = write_table(tmp_path / "more.tsv", [("C[C@H](O)F",)])
    added = add_molecules(kept, file_sources([more]), engine=LocalEngine(1))
    assert added.manifest["options"] == kept.manifest["options"]
    assert "C[C@H](O)F" in [row["smiles"] for row in all_rows(added)]


LISTS = ("sources", "identifiers", "names")
LISTED = st.lists(st.sampled_from("uvwxyz"), max_size=4, unique=True)
ROW = st.fixed_dictionaries(
    {
        "key": st.sampled_from("ABC"),
        "mass": st.sampled_from([10.0, 10.000001, 20.0, 30.5]),
        **dict.fromkeys(LISTS, LISTED),
    }
)


def table_of(rows: list[dict], first: int = 0) -> pa.Table:
    """A part: rows in the order of their masses, with places in the order given."""
    schema = part_schema("maccs")
    filled = [
        {
            "smiles": f"smiles {first + n}", "formula": "C", "bits": n % 100,
            "fingerprint": bytes(schema.field("fingerprint").type.byte_width),
            "sources": [], "identifiers": [], "names": [], "place": first + n, **row,
        }
        for n, row in enumerate(rows)
    ]  # fmt: skip
    return pa.Table.from_pylist(sorted(filled, key=lambda row: row["mass"]), schema=schema)


def merge(tables: list[pa.Table], path: Path, progress=silent) -> list[float]:
    parts = [
        Part(table["mass"].to_numpy(), lambda start, end, of=table: of.slice(start, end - start))
        for table in tables
    ]
    return merge_parts(parts, tables[0].schema, path, progress).tolist()


def merged_plainly(rows: list[dict]) -> list[dict]:
    """What merging has to give, by way of a dictionary."""
    found: dict[tuple[float, str], dict] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        first = found.setdefault((row["mass"], row["key"]), {**row, **{n: [] for n in LISTS}})
        for name in LISTS:
            first[name] = list(dict.fromkeys([*first[name], *row[name]]))
    return [found[where] for where in sorted(found)]


@given(parts=st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=4), data=st.data())
def test_parts_become_one_sorted_file(
    parts: list[list[dict]], data, tmp_path_factory: pytest.TempPathFactory
) -> None:
    starts = np.cumsum([0, *map(len, parts)])
    tables = [table_of(rows, int(first)) for rows, first in zip(parts, starts, strict=False)]
    path = tmp_path_factory.mktemp("merge") / "molecules.parquet"
    with pytest.MonkeyPatch.context() as patch:
        group = data.draw(st.integers(1, 5))
        patch.setattr(build_module, "ROW_GROUP", group)
        patch.setattr(build_module, "_SLICE", data.draw(st.integers(1, 8)))
        patch.setattr(build_module, "_SAMPLE", data.draw(st.integers(1, 4)))
        masses = merge(tables, path)
    expected = merged_plainly([row for table in tables for row in table.to_pylist()])
    for row in expected:
        del row["place"]
    assert masses == [row["mass"] for row in expected]
    assert pq.read_table(path).to_pylist() == expected
    written = pq.ParquetFile(path).metadata
    sizes = [written.row_group(n).num_rows for n in range(written.num_row_groups)]
    assert all(size == group for size in sizes[:-1])
