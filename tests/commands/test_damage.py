"""Folders of mzseek's, anything in them changed: using them works, or is refused in a line."""

import contextlib
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.cli.commands.database import show_database
from mzseek.cli.commands.prepare import show_prepared
from mzseek.core.errors import CacheError, DatabaseError, DatasetError, MzseekError, RunError
from mzseek.database import Database, add_molecules
from mzseek.database.sources import file_sources
from mzseek.datasets.bands import set_bands
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.extra_lists import add_negatives, standard_forms, truths_of
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.evidence.decoys import add_matched
from mzseek.io.skipped import read_skipped
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run
from mzseek.training.options import Options
from mzseek.training.train import train

from .conftest import World

Use = Callable[[Path], Any]
WRONG: tuple[Any, ...] = (None, "x", -1, 1.5, True, [], {}, [None], {"x": None}, 10**30, 2**62)


def use_prepared(folder: Path) -> None:
    """All that commands do with a prepared folder, short of training on it."""
    prepared = Prepared.open(folder)
    repr(prepared)
    show_prepared(prepared, is_new=True)
    for setting in prepared.settings:
        BatchMaker(prepared, "bins", (setting,), prepared.in_fold("train")).make(
            prepared.in_fold("train")[:4]
        )
        set_bands(prepared, setting, fold=None, jobs=1)
    BatchMaker(prepared, "peaks", (), prepared.in_fold("val")).make(prepared.in_fold("val"))
    kind = str(prepared.manifest["options"]["fingerprint"])
    truths_of(standard_forms(prepared, engine=LocalEngine(1)), kind)
    for place in range(len(prepared)):
        prepared.adduct(place), prepared.identifiers[place], prepared.peaks(place)
    list(prepared.smiles), list(prepared.formulas)
    assert len(prepared.collision_energy) == len(prepared.precursor_mz) == len(prepared)


def use_store(folder: Path) -> None:
    """All that commands do with a database, but adding to it."""
    store = Database.open(folder)
    show_database(store)
    store.by_mass(150.0, 2e5).table.to_pylist()
    store.many_by_mass([120.0, 150.0])
    store.by_formula("C8H10N4O2").table.to_pylist()
    store.by_key("RYYVLZVUVIJVGH")
    store.collections()
    store.by_similarity("CCO", 5).table.to_pylist()
    for batch in store.batches():
        batch.to_pylist()
    store.rows(np.arange(len(store))[::7]).to_pylist()


def use_run(folder: Path) -> None:
    """All that commands do with a run, but going on with it."""
    run = Run.open(folder)
    run.history()
    evaluate(run, Scoring()).to_dict()


@contextlib.contextmanager
def refused_or_fine() -> Iterator[list[str]]:
    """Whatever happens inside must end well, or in one line of ours, and warn of nothing."""
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield said
        except MzseekError as error:
            said.append(str(error))
    for line in said:
        assert "\n" not in line
        assert len(line) < 1_000


@pytest.fixture
def copy(world: World, tmp_path: Path) -> Callable[[str], Path]:
    """A folder of each kind of one's own."""

    def get(kind: str) -> Path:
        source = {"prepared": world.prepared, "store": world.store, "run": world.run.folder}[kind]
        shutil.copytree(source, tmp_path / kind)
        return tmp_path / kind

    return get


USES: dict[str, Use] = {"prepared": use_prepared, "store": use_store, "run": use_run}
JSON = {"prepared": "manifest.json", "store": "manifest.json", "run": "run.json"}


def broken(text: bytes) -> Iterator[tuple[str, bytes]]:
    """A JSON file, damaged as disks and editors do."""
    yield "empty", b""
    for end in range(97, len(text.rstrip()), 97):
        yield f"cut at {end}", text[:end]
    yield "nested beyond reason", b"[" * 100_000
    yield "nested objects", b'{"a":' * 50_000
    yield "5,000 digits", b'{"format_version": ' + b"1" * 5_000 + b"}"
    yield "no UTF-8", b"\xff" + text
    yield "UTF-16", text.decode().encode("utf-16")
    yield "a list", b"[" + text + b"]"
    yield "a number", b"7"
    yield "zeros", bytes(len(text))


@pytest.mark.parametrize("kind", USES)
def test_damaged_json_is_one_line(kind: str, copy: Callable[[str], Path]) -> None:
    folder = copy(kind)
    path = folder / JSON[kind]
    text = path.read_bytes()
    for what, damaged in broken(text):
        path.write_bytes(damaged)
        with refused_or_fine() as said:
            USES[kind](folder)
        assert len(said) == 1, what
        assert str(folder) in said[0]
    path.write_bytes(text)
    USES[kind](folder)


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a JSON object, down to the leaves; of lists and alike names the first two."""
    if path:
        yield path
    if isinstance(found, dict):
        for key in list(found)[: 2 if path and path[-1] in ("files", "best") else None]:
            yield from places(found[key], (*path, key))
    elif isinstance(found, list):
        for place in range(min(len(found), 2)):
            yield from places(found[place], (*path, place))


def changed(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with one field replaced, or left out where the value is `...`."""
    found = json.loads(json.dumps(found))
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found


OPENS: dict[str, Use] = {"prepared": Prepared.open, "store": Database.open, "run": Run.open}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPENS)
def test_a_backslash_anywhere_breaks_no_line(kind: str, copy: Callable[[str], Path]) -> None:
    folder = copy(kind)
    path = folder / JSON[kind]
    text = path.read_bytes()
    refused = 0
    places = range(0, len(text), 3)
    for place in places:  # of `.npy` it makes a line break, for one
        path.write_bytes(text[:place] + b"\\" + text[place + 1 :])
        with refused_or_fine() as said:
            OPENS[kind](folder)
        refused += len(said)
    assert len(places) / 2 < refused <= len(places)


@pytest.mark.slow
@pytest.mark.parametrize("kind", USES)
def test_every_field_missing_or_of_another_type(kind: str, copy: Callable[[str], Path]) -> None:
    folder = copy(kind)
    path = folder / JSON[kind]
    whole = json.loads(path.read_text())
    draw, tried = random.Random(0), 0
    for place in places(whole):
        used = (..., *draw.sample(WRONG, 2))  # the others are only opened, which is sooner done
        for value in (..., *WRONG):
            path.write_text(json.dumps(changed(whole, place, value)))
            with refused_or_fine():
                (USES if value in used else OPENS)[kind](folder)
            tried += 1
    assert tried > 240


@pytest.mark.slow
@pytest.mark.parametrize("kind", USES)
def test_every_file_with_bytes_changed_at_the_same_size(
    kind: str, copy: Callable[[str], Path]
) -> None:
    folder, draw = copy(kind), random.Random(1)
    refused = 0
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole = path.read_bytes()
        for _ in range(3 if kind != "store" else 40):
            data = bytearray(whole)
            for _ in range(draw.choice((1, 1, 8, 64))):
                low = 0 if draw.random() < 0.6 else min(len(data) - 1, 128)
                data[draw.randrange(low, len(data))] = draw.randrange(256)
            path.write_bytes(data)
            with refused_or_fine() as said:
                USES[kind](folder)
            refused += len(said)
        path.write_bytes(whole)
    assert refused > 10
    with refused_or_fine() as said:
        USES[kind](folder)
    assert said == []  # what was damaged was mended again


def test_a_checksum_finds_what_no_form_can_tell(copy: Callable[[str], Path]) -> None:
    folder = copy("prepared")
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(CacheError, match=f"{path.name} has changed; run `mzseek"):
            Prepared.open(folder, verify=True)
        path.write_bytes(whole)
    Prepared.open(folder, verify=True)


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(0, "1 to 65,536"), (-1, "a whole number of 0 or more"), (2**62, "1 to 65,536")],
)
def test_a_number_of_bits_that_no_fingerprint_has_is_refused(
    bits: int, expected: str, copy: Callable[[str], Path]
) -> None:
    path = copy("prepared") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fingerprint_bits": bits}))
    with pytest.raises(CacheError, match=f"fingerprint_bits is {bits}, expected {expected}"):
        Prepared.open(path.parent)


def flipped(path: Path, place: int = -1) -> None:
    """Change a bit of a file, and nothing about its size."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_training_and_evaluating_on_changed_data_is_refused(
    world: World, copy: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = copy("prepared")
    flipped(folder / "bins.data.npy")
    prepared = Prepared.open(folder)  # which looks at sizes alone
    with pytest.raises(CacheError, match=r"bins\.data\.npy has changed"):
        train(prepared, Options.of_run(world.run), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(CacheError, match=r"bins\.data\.npy has changed"):
        evaluate(world.run, Scoring(), data=folder)


def test_changed_predictions_are_refused_and_made_again_when_they_are_removed(
    world: World, copy: Callable[[str], Path]
) -> None:
    run = Run.open(copy("run"))
    expected = evaluate(run, Scoring()).to_dict()
    folder = run.predictions(run.best["hit_rate@1/mass"]["step"], "test")
    flipped(folder / "mass.scores.npy")
    with pytest.raises(RunError, match=r"mass\.scores\.npy has changed; remove that folder"):
        evaluate(run, Scoring())
    shutil.rmtree(folder)
    assert evaluate(run, Scoring()).to_dict() == expected


def test_predictions_of_another_run_are_refused(
    world: World, copy: Callable[[str], Path], trained: Callable[..., Run]
) -> None:
    run, other = Run.open(copy("run")), trained("bce", seed=1)
    shutil.rmtree(run.folder / "predictions")
    step = run.best["hit_rate@1/mass"]["step"]
    source = next((other.folder / "predictions").glob("step-*/test"))
    shutil.copytree(source, run.predictions(step, "test"))
    with pytest.raises(RunError, match="is of another run; remove that folder"):
        evaluate(run, Scoring())


# Masses that no longer fit their table.


def test_a_look_up_by_mass_is_right_or_refused(copy: Callable[[str], Path], resign) -> None:
    folder = copy("store")
    path, draw = folder / "masses.npy", np.random.default_rng(0)
    whole = path.read_bytes()
    masses = np.load(path)
    expected = {m: Database.open(folder).by_mass(m, 300.0).table.to_pylist() for m in masses[::9]}
    refused = 0
    for _ in range(20):
        wrong = masses.copy()
        places = draw.choice(len(wrong), 5, replace=False)
        wrong[places] += draw.normal(0, 30, len(places))
        path.write_bytes(whole[:128] + wrong.tobytes())
        with pytest.raises(DatabaseError, match=r"masses\.npy has changed; build it again"):
            Database.open(folder).by_mass(150.0)
        store = Database.open(resign(folder))  # as if it had been written so
        for mass, rows in expected.items():
            try:
                assert store.by_mass(mass, 300.0).table.to_pylist() == rows
            except DatabaseError:
                refused += 1
        with pytest.raises(DatabaseError, match=r"masses\.npy does not rise"):
            store.many_by_mass([150.0])
    assert refused > 0


def test_a_damaged_database_is_not_added_to(world: World, copy: Callable[[str], Path]) -> None:
    folder = copy("store")
    flipped(folder / "molecules.parquet", 5_000)
    with pytest.raises(DatabaseError, match=r"molecules\.parquet has changed; build it again"):
        add_molecules(
            Database.open(folder), file_sources([world.molecules[1]]), engine=LocalEngine(1)
        )


# The state of a run that was interrupted.


class Stop(Exception):
    """Stands for whatever ends a process."""


def begin(world: World, options: Options, out: Path) -> Path:
    """A run that has reached its second validation."""

    def stop(stage: str, done: int, total: int | None = None) -> None:
        if stage == "training" and done == 12:
            raise Stop

    with pytest.raises(Stop):
        train(Prepared.open(world.prepared), options, out, progress=stop)
    return out


@pytest.fixture(scope="module")
def begun_once(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(world, Options.of_run(world.run), tmp_path_factory.mktemp("begun") / "run")


@pytest.fixture
def begun(begun_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun_once, tmp_path / "begun"))


def go_on(world: World, folder: Path) -> None:
    train(Prepared.open(world.prepared), Options.of_run(world.run), folder, resume=True)


@pytest.mark.slow
def test_a_damaged_state_is_refused_in_one_line(world: World, begun: Path, tmp_path: Path) -> None:
    path = begun / "state" / "state.json"
    text = path.read_bytes()
    for what, damaged in broken(text):
        path.write_bytes(damaged)
        with refused_or_fine() as said:
            go_on(world, begun)
        assert len(said) == 1, what
        assert str(begun / "state") in said[0]
    whole, draw = json.loads(text), random.Random(2)
    for place in [*places(whole)][:40]:
        if place in {("digest",), ("run",)}:
            continue
        value = draw.choice((..., None, "x", -1, [], {}))
        path.write_text(json.dumps(changed(whole, place, value)))
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(begun, tmp_path / "copy")
        with refused_or_fine():
            go_on(world, tmp_path / "copy")


@pytest.mark.parametrize("place", [3, 40, 2_000, -1])
def test_a_state_with_a_changed_number_is_refused(place: int, world: World, begun: Path) -> None:
    flipped(begun / "state" / "state.safetensors", place)
    with refused_or_fine() as said:
        go_on(world, begun)
    assert len(said) == 1
    assert str(begun / "state") in said[0]


def test_the_state_of_another_run_is_refused(
    world: World, begun: Path, small_options: Callable[..., Any], tmp_path: Path
) -> None:
    other = begin(world, small_options(seed=1), tmp_path / "other")
    shutil.rmtree(begun / "state")
    shutil.copytree(other / "state", begun / "state")
    with pytest.raises(RunError, match=r"is the state of another run; remove .* to begin the run"):
        go_on(world, begun)
    shutil.rmtree(begun / "state")  # as it says
    go_on(world, begun)
    assert Run.open(begun).finished


# Rejects, and why a folder is made anew.


@pytest.mark.parametrize(
    "text", [b"", b"where\n", b"where\treason\nno tab\n", b"where\treason\na\tb\tc\n", b"\xff\xfe"]
)
def test_a_damaged_list_of_rejects_is_one_line(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "rejects.tsv").write_bytes(text)
    with pytest.raises(DatasetError, match=r"rejects\.tsv: ") as refused:
        read_skipped(tmp_path / "rejects.tsv")
    assert "\n" not in str(refused.value)


def test_prepare_says_why_it_makes_a_folder_anew(world: World, tmp_path: Path) -> None:
    out, table = tmp_path / "out", tmp_path / "spectra.tsv"
    shutil.copy(world.table, table)
    lists = {"mass": world.mass}

    def said(**changes: Any) -> str:
        lines: list[str] = []
        options = changes.pop("options", None)
        prepare(table, changes.get("lists", lists), out, options, jobs=1, say=lines.append)
        return "\n".join(lines)

    assert said() == ""
    assert said() == ""
    flipped(out / "bins.data.npy")
    assert said() == f"{out}: made anew, since it was damaged: bins.data.npy has changed"
    (out / "peaks.mz.npy").unlink()
    assert said() == f"{out}: made anew, since it was damaged: peaks.mz.npy is missing"
    table.write_text(table.read_text().replace("S0-1", "S0-one"))
    assert said() == f"{out}: made anew, since the source spectra (spectra.tsv) has changed"
    both = lists | {"formula": world.formula}
    assert "the source candidates.formula is new" in said(lists=both)
    assert "the source candidates.formula is no longer named" in said()
    maccs = PrepareOptions(fingerprint="maccs")
    assert said(options=maccs).endswith("the option fingerprint is maccs, was morgan2")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["versions"]["rdkit"], manifest["key"] = "1999.9", "0" * 64
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert "the version of rdkit is " in (line := said(options=maccs))
    assert line.endswith("was 1999.9")


def test_prepare_says_that_drawn_lists_are_gone(world: World, tmp_path: Path) -> None:
    out, options = tmp_path / "out", PrepareOptions(fingerprint="maccs")
    made, _ = prepare(world.table, {"mass": world.mass}, out, options, jobs=1)
    made, _ = add_negatives(made, Database.open(world.store), keep=4, engine=LocalEngine(1))
    add_matched(made, Database.open(world.store), ppm=4e5, engine=LocalEngine(1))
    lines: list[str] = []
    prepare(world.table, {"formula": world.formula}, out, options, jobs=1, say=lines.append)
    assert lines[1:] == [
        f"{out}: its negatives are gone (hard-mass-4); mine them again",
        f"{out}: its matched lists are gone (matched); draw them again",
    ]
