import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import CacheError, DatabaseError, WriteError
from mzseek.database import Database
from mzseek.datasets.bands import set_bands
from mzseek.datasets.extra_lists import add_negatives
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.evidence.decoys import add_matched
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run
from mzseek.training.train import train

from .conftest import MISSING

ALONE = LocalEngine(1)
HOW = {"ppm": 4e5, "engine": ALONE}


def listed(prepared: Prepared, name: str) -> dict[int, tuple[list[int], list[int]]]:
    """Members and marks of each measured molecule that has a list."""
    lists, found = prepared.candidates(name), {}
    for molecule in np.unique(prepared.molecule).tolist():
        number = int(lists.list_of[molecule])
        if number >= 0:
            here = slice(int(lists.indptr[number]), int(lists.indptr[number + 1]))
            found[molecule] = lists.molecules[here].tolist(), lists.identity[here].tolist()
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_lists_have_the_truth_once_among_others_of_its_mass(folder: Path, store: Database) -> None:
    prepared, facts = add_matched(Prepared.open(folder), store, **HOW)
    Prepared.open(folder, verify=True).check_arrays()
    found = listed(prepared, "matched")
    assert found
    places = []
    for molecule, (members, marks) in found.items():
        assert sorted(marks) == [0] * (len(marks) - 1) + [SAME_FINGERPRINT | SAME_INCHIKEY]
        truth = members[int(np.argmax(marks))]
        assert truth == molecule  # all are written as the store writes them
        assert len(set(members)) == len(members) >= 5
        mass = prepared.masses[molecule]
        assert (abs(prepared.masses[members] - mass) <= 0.4 * mass).all()
        bits = prepared.fingerprint_rows(np.array(members)).toarray()
        alike = (bits == bits[int(np.argmax(marks))]).all(axis=1)
        assert alike.sum() == 1
        blocks = prepared.inchikey14[members].tolist()
        assert len(set(blocks)) == len(blocks)
        places.append(np.argmax(marks) / (len(marks) - 1))
    assert 0.3 < np.mean(places) < 0.7
    assert any(prepared.smiles[molecule] in MISSING for molecule in found)
    sizes = prepared.candidates("matched").sizes
    assert (facts["lists"], facts["mean"]) == (len(sizes), pytest.approx(sizes.mean()))
    measured = prepared.manifest["counts"]["measured_molecules"]
    assert facts["lists"] + sum(facts["set_aside"].values()) == measured
    assert facts["molecules_without"] == measured - facts["lists"]
    assert set(facts["matched"]["blind"]) == {"val", "test"}
    val = np.unique(prepared.molecule[prepared.in_fold("val")])
    chance = np.mean([1 / len(found[n][0]) for n in val.tolist() if n in found])
    assert facts["matched"]["blind"]["val"]["random"] == pytest.approx(chance)


def test_what_was_there_stays_and_lists_live_side_by_side(folder: Path, store: Database) -> None:
    before = contents(folder)
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    prepared, facts = add_matched(prepared, store, by="formula", name="other", **HOW | {"pool": 9})
    after = contents(folder)
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: content for name, content in before.items() if name != "manifest.json"
    }
    assert (
        prepared.settings == prepared.measured_settings == ["formula", "mass", "matched", "other"]
    )
    assert facts["name"] == "other"
    assert prepared.measured_on("matched") == "matched"
    assert prepared.drawn_by("matched")["by"] == "mass"
    for molecule, (members, _) in listed(prepared, "other").items():
        assert {prepared.formulas[each] for each in members} == {prepared.formulas[molecule]}


def test_the_same_again_is_the_same_and_replaces_it(folder: Path, store: Database) -> None:
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    first, files = listed(prepared, "matched"), len(contents(folder))
    again, _ = add_matched(prepared, store, **HOW)
    assert listed(again, "matched") == first
    other, _ = add_matched(again, store, seed=1, keep=6, **HOW)
    assert listed(other, "matched") != first
    assert max(len(members) for members, _ in listed(other, "matched").values()) <= 6
    assert other.settings == ["formula", "mass", "matched"]
    Prepared.open(folder, verify=True)
    assert len(contents(folder)) >= files


def test_truths_are_drawn_as_the_store_draws_them(folder: Path, store: Database) -> None:
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    bands = set_bands(prepared, "matched", fold=None, jobs=1)
    assert len(bands.high) == len(listed(prepared, "matched"))
    assert (bands.high < 1).all()  # none is its own rival


def test_runs_are_trained_and_measured_on_them(
    folder: Path, store: Database, small_options, tmp_path: Path
) -> None:
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    run = train(prepared, small_options("emb-cos", candidates="matched"), tmp_path / "run")
    assert run.measured_on == "matched"
    assert {"hit_rate@1/matched", "hit_rate@1/mass"} <= set(run.best)
    found = evaluate(run, Scoring(candidates="matched"), data=folder)
    with_list = listed(prepared, "matched")
    queries = [n for n in prepared.in_fold("test") if int(prepared.molecule[n]) in with_list]
    assert len(found.values["hit_rate@1"]) == len(queries) > 0
    assert found.without_list == len(prepared.in_fold("test")) - len(queries)
    again, _ = add_matched(prepared, store, seed=1, **HOW)
    other = train(again, small_options("emb-cos", candidates="matched"), tmp_path / "other")
    assert other.identity != run.identity


def test_a_run_from_before_is_measured_on_lists_drawn_since(
    folder: Path, store: Database, trained, tmp_path: Path
) -> None:
    """Also where predictions were saved: of no such lists, or of others of that name."""
    run = Run.open(shutil.copytree(trained("bce").folder, tmp_path / "run"))
    evaluate(run, Scoring(candidates="mass"), data=folder)
    prepared = Prepared.open(folder)
    for seed in (0, 1):
        prepared, _ = add_matched(prepared, store, seed=seed, **HOW)
        found = evaluate(run, Scoring(candidates="matched"), data=folder)
        fresh = Run.open(shutil.copytree(trained("bce").folder, tmp_path / f"fresh{seed}"))
        shutil.rmtree(fresh.folder / "predictions")
        expected = evaluate(fresh, Scoring(candidates="matched"), data=folder)
        assert found.to_dict() | {"run": ""} == expected.to_dict() | {"run": ""}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"by": "colour"}, DatabaseError, "matched lists by 'colour'"),
        ({"keep": 4}, DatabaseError, "lists of 4 molecules, expected at least 5"),
        ({"pool": 3}, DatabaseError, "lists of 3 molecules, expected at least 5"),
        ({"name": "mass"}, CacheError, "has lists 'mass' that are no matched ones"),
        ({"name": "hard-mass-4"}, CacheError, "has lists 'hard-mass-4' that are no matched"),
        ({"name": "../out"}, CacheError, "expected small letters"),
        ({"name": ""}, CacheError, "expected small letters"),
    ],
)
def test_what_will_not_do_is_refused_and_changes_nothing(
    folder: Path, store: Database, changes, error, message: str
) -> None:
    prepared, _ = add_negatives(Prepared.open(folder), store, keep=4, engine=ALONE)
    before = contents(folder)
    with pytest.raises(error, match=message):
        add_matched(prepared, store, **HOW | changes)
    assert contents(folder) == before


def test_where_no_list_can_be_drawn_it_says_why(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.evidence.decoys.LEAST", 1000)
    before = contents(folder)
    with pytest.raises(CacheError, match=r"no list can be drawn, 44: fewer than 5 candidates"):
        add_matched(Prepared.open(folder), store, **HOW)
    assert contents(folder) == before


def test_a_failed_write_leaves_the_folder_as_it_was(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    before = contents(folder)
    monkeypatch.setattr("mzseek.datasets.prepare.measured", full)
    with pytest.raises(WriteError, match=r"prepared: cannot be written \(No space left"):
        add_matched(Prepared.open(folder), store, **HOW)
    assert contents(folder) == before


def test_a_folder_without_folds_learns_from_all(folder: Path, store: Database) -> None:
    folds = np.load(folder / "spectra.fold.npy")
    manifest = json.loads((folder / "manifest.json").read_text())
    _write_folds(folder, manifest, np.full_like(folds, -1))
    prepared, facts = add_matched(Prepared.open(folder), store, **HOW)
    assert facts["lists"] == len(listed(prepared, "matched")) > 0
    assert facts["matched"]["blind"] == {}


def _write_folds(folder: Path, manifest: dict, folds: np.ndarray) -> None:
    from mzseek.io.manifest import measured

    np.save(folder / "spectra.fold.npy", folds)
    manifest["files"]["spectra.fold.npy"] = measured(folder / "spectra.fold.npy")
    (folder / "manifest.json").write_text(json.dumps(manifest))
