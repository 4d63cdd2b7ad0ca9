import itertools
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import CacheError
from mzseek.core.ragged import pointers
from mzseek.datasets.layout import KIND, MANIFEST, is_leftover
from mzseek.datasets.molecules import MoleculeTable
from mzseek.datasets.prepare import PrepareOptions, append_segment, prepare
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.io.manifest import ensure_replaceable
from mzseek.runs.run import Run

from .conftest import contents

OWN = "hard-mass-8"  # a name that mined lists have, and lists of one's own may have


@pytest.mark.parametrize("said", [{}, {"versions": []}, {"versions": {"map4 fingerprints": 1}}])
def test_fingerprints_of_earlier_bits_are_refused_and_made_anew(
    write_set, tmp_path: Path, said: dict
) -> None:
    files, options = write_set(), PrepareOptions(fingerprint="map4")
    made, _ = prepare(files.spectra, files.candidates, tmp_path / "prepared", options)
    path = made.folder / "manifest.json"
    earlier = {name: each for name, each in made.manifest.items() if name != "versions"}
    path.write_text(json.dumps(earlier | said | {"key": "of an earlier version"}))
    expected = "has map4 fingerprints of version 1, expected 3: .*; run `mzseek prepare` again"
    with pytest.raises(CacheError, match=expected):
        Prepared.open(made.folder)
    lines: list[str] = []
    again, is_new = prepare(files.spectra, files.candidates, made.folder, options, say=lines.append)
    assert is_new
    assert again.manifest == made.manifest
    assert "version of map4 fingerprints is" in lines[0]


def test_lists_that_came_with_the_data_are_measured_on_whatever_their_name(
    folder: Path, small_options, tmp_path: Path
) -> None:
    for path in folder.glob("candidates.mass.*"):
        path.rename(path.with_name(path.name.replace(".mass.", f".{OWN}.")))
    manifest = folder / "manifest.json"
    written = manifest.read_text().replace('"mass": {', f'"{OWN}": {{')
    manifest.write_text(written.replace("candidates.mass.", f"candidates.{OWN}."))
    prepared = Prepared.open(folder, verify=True)
    assert prepared.measured_settings == prepared.settings == ["formula", OWN]
    assert prepared.measured_on(OWN) == OWN
    made = small_options("emb-cos", candidates=OWN).described(prepared)
    Run.create(tmp_path / "run", made, prepared)
    assert Run.open(tmp_path / "run").measured_on == OWN


FACTS = {"median": 2.0, "mean": 2.0, "largest": 2, "molecules_without": 0, "alone": 0,
         "negatives": {"by": "mass"}}  # fmt: skip


def new_molecules(*names: str) -> MoleculeTable:
    bits = [np.arange(3 + n, dtype=np.uint16) for n in range(len(names))]
    return MoleculeTable(
        kind="maccs",
        smiles=list(names),
        formulas=["C"] * len(names),
        masses=np.arange(len(names), dtype=np.float64),
        inchikey14=np.array([b"AAAAAAAAAAAAAA"] * len(names), "S14"),
        fingerprint_indptr=pointers([len(row) for row in bits]),
        fingerprint_bits=np.concatenate([np.empty(0, np.uint16), *bits]),
    )


def lists_with(prepared: Prepared, other: int) -> CandidateLists:
    """Each measured molecule's list: itself and another."""
    measured = np.unique(prepared.molecule)
    count = len(measured)
    list_of = np.full(len(prepared.candidates("mass").list_of), -1, np.int32)
    list_of[measured] = np.arange(count)
    return CandidateLists(
        indptr=2 * np.arange(count + 1),
        molecules=np.stack([measured, np.full(count, other)], 1).ravel().astype(np.int32),
        identity=np.tile(np.array([3, 0], np.uint8), count),
        list_of=list_of,
    )


def add(prepared: Prepared, setting: str, *names: str) -> Prepared:
    lists = lists_with(prepared, len(prepared.masses) + len(names) - 1)
    facts = FACTS | {"lists": len(lists), "candidates": len(lists.molecules)}
    return append_segment(prepared, setting, lists, new_molecules(*names), facts)


def test_what_was_there_is_not_touched(folder: Path) -> None:
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
    prepared = add(Prepared.open(folder), "mine", "a", "b")
    after = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
    del before["manifest.json"]
    assert {name: after[name] for name in before} == before
    assert all(is_leftover(name) for name in set(after) - set(before) - {"manifest.json"})
    Prepared.open(str(folder), verify=True).check_arrays()
    assert prepared.settings == ["formula", "mass", "mine"]
    assert prepared.measured_settings == ["formula", "mass"]  # as the manifest says
    assert [prepared.measured_on(setting) for setting in ("mine", "formula")] == ["mass", "formula"]
    assert list(prepared.smiles)[-2:] == ["a", "b"]
    assert prepared.manifest["counts"]["molecules"] == len(prepared.masses)


def test_segments_number_their_molecules_through(folder: Path) -> None:
    prepared = Prepared.open(folder)
    own = len(prepared.masses)
    for number, names in enumerate((("a", "b"), (), ("c",)), 1):
        prepared = add(prepared, f"list-{number}", *names)
    assert list(prepared.smiles)[own:] == ["a", "b", "c"]
    rows = prepared.fingerprint_rows(np.array([own + 2, 0, own + 1]))
    assert [len(each) for each in np.split(rows.indices, rows.indptr[1:-1])] == [
        3, prepared.fingerprint_sizes[0], 4,
    ]  # fmt: skip
    first = int(np.unique(prepared.molecule)[0])
    assert [prepared.candidates(f"list-{n}").of_molecule(first).tolist() for n in (1, 2, 3)] == [
        [first, own + 1], [first, own + 1], [first, own + 2],
    ]  # fmt: skip
    assert prepared.candidates("list-1").of_molecule(own + 2).tolist() == []


def test_lists_made_again_leave_molecules_that_others_may_need(folder: Path) -> None:
    prepared = add(add(Prepared.open(folder), "mine", "a", "b"), "yours")
    lists = prepared.candidates("yours").molecules.tolist()
    again = add(prepared, "mine", "c")
    assert again.settings == ["formula", "mass", "mine", "yours"]
    assert again.candidates("yours").molecules.tolist() == lists
    assert list(again.smiles)[-3:] == ["a", "b", "c"]
    assert {path.name for path in folder.iterdir()} == {*again.manifest["files"], "manifest.json"}
    Prepared.open(folder, verify=True).check_arrays()


def test_a_folder_that_is_open_goes_on_being_read(folder: Path) -> None:
    before = Prepared.open(folder)
    add(Prepared.open(folder), "mine", "a")
    assert "a" not in list(before.smiles)
    assert before.settings == ["formula", "mass"]
    before.check_arrays()


@pytest.mark.slow
def test_killed_at_any_moment_the_folder_is_what_it_was_or_what_it_becomes(
    folder: Path, tmp_path: Path
) -> None:
    seen = set()
    for moment in range(40):
        copy = Path(shutil.copytree(folder, tmp_path / f"copy-{moment}"))
        add(Prepared.open(copy), "mine", "x")
        process = os.fork()
        if process == 0:  # another writer, killed when it is about to make its n-th file
            _kill_at(moment)
            add(Prepared.open(copy), "mine", "a", "b")
            os._exit(0)
        _, status = os.waitpid(process, 0)
        found = Prepared.open(copy, verify=True)
        found.check_arrays()
        names = tuple(list(found.smiles)[len(Prepared.open(folder).masses) :])
        assert names in (("x",), ("x", "a", "b"))
        killed = os.WIFSIGNALED(status)
        seen.add((killed, names))
        ensure_replaceable(copy, KIND, [], is_leftover)
        again = add(found, "mine", "c")
        listed = {*again.manifest["files"], "manifest.json"}
        assert {path.name for path in copy.iterdir()} == listed
        if not killed:
            break
        shutil.rmtree(copy)
    assert seen == {(True, ("x",)), (True, ("x", "a", "b")), (False, ("x", "a", "b"))}


def _kill_at(moment: int) -> None:
    """Kill this process when it opens its n-th file to write, renames, or removes one."""
    moments = itertools.count()

    def hook(event: str, arguments: tuple) -> None:
        is_write = event == "open" and "w" in str(arguments[1])
        if (is_write or event in ("os.rename", "os.remove")) and next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def test_a_failure_leaves_the_folder_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = add(Prepared.open(folder), "mine", "a")
    before = contents(folder)
    monkeypatch.setattr(Prepared, "check_arrays", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        add(prepared, "mine", "b")
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m["candidates"]["mine"].update(segment=2), "candidates are in segments"),
        (lambda m: m["candidates"]["mine"].update(segment=0), "candidates are in segments"),
        (lambda m: m["candidates"]["mass"].update(segment=1), "candidates are in segments"),
        (lambda m: m.update(segments=[]), "candidates are in segments"),
        (lambda m: m["segments"][0].update(molecules=10**9), "segments have more molecules than"),
        (lambda m: m["segments"][0].pop("molecules"), r"lacks 'segments\[0\]\.molecules'"),
        (lambda m: m.update(segments=3), "segments is 3, expected a list"),
    ],
)
def test_manifests_that_do_not_hang_together_are_refused(folder: Path, change, reason) -> None:
    add(Prepared.open(folder), "mine", "a")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(CacheError, match=reason):
        Prepared.open(folder)


def test_an_interrupt_after_the_rename_takes_nothing_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, replace = Prepared.open(folder), MANIFEST.replace

    def interrupted(*given) -> None:
        replace(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(MANIFEST), "replace", lambda self, *given: interrupted(*given))
    with pytest.raises(KeyboardInterrupt):
        add(prepared, "mine", "a")
    found = Prepared.open(folder, verify=True)
    found.check_arrays()
    assert list(found.smiles)[-1] == "a"
