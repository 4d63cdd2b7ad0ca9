import json
import shutil
from pathlib import Path

import pytest

from mzseek.core.errors import CacheError
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.runs.run import Run
from mzseek.training.train import train

OWN = "hard-mass-8"  # a name that mined lists have, and lists of one's own may have


@pytest.fixture(autouse=True)
def _threads():
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def own_lists(small: Prepared, tmp_path: Path) -> Prepared:
    """The small folder with its mass lists under the user's own name."""
    folder = Path(shutil.copytree(small.folder, tmp_path / "prepared"))
    for path in folder.glob("candidates.mass.*"):
        path.rename(path.with_name(path.name.replace(".mass.", f".{OWN}.")))
    manifest = folder / "manifest.json"
    written = manifest.read_text().replace('"mass": {', f'"{OWN}": {{')
    manifest.write_text(written.replace("candidates.mass.", f"candidates.{OWN}."))
    return Prepared.open(folder, verify=True)


def test_a_folder_is_opened_by_text_or_path(small: Prepared) -> None:
    for folder in (small.folder, str(small.folder)):
        assert len(Prepared.open(folder, verify=True)) == len(small)


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


def test_fingerprints_whose_bits_never_changed_need_no_version(small: Prepared) -> None:
    assert set(small.manifest["versions"]) == {"mzseek", "rdkit", "numpy", "python"}


def test_lists_that_came_with_the_data_are_measured_on_whatever_their_name(
    own_lists: Prepared,
) -> None:
    assert own_lists.measured_settings == own_lists.settings == ["formula", OWN]
    assert own_lists.measured_on(OWN) == OWN


def test_lists_of_ones_own_stay_in_evaluation(
    own_lists: Prepared, small_options, tmp_path: Path
) -> None:
    run = train(own_lists, small_options("emb-cos", candidates=OWN, epochs=1), tmp_path / "run")
    assert f"hit_rate@1/{OWN}" in run.best
    assert evaluate(run).how.candidates == OWN


def test_a_name_is_prepared_and_measured(write_set, tmp_path: Path) -> None:
    files = write_set()
    lists = {OWN: files.candidates["mass"]}
    prepared, _ = prepare(files.spectra, lists, tmp_path / "out", jobs=1)
    assert prepared.measured_settings == [OWN]


def test_mined_lists_are_known_by_what_the_manifest_says(small: Prepared, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small.folder, tmp_path / "prepared"))
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for part in ("indptr", "molecules", "identity", "list_of"):
        name = f"candidates.{{}}.{part}.npy"
        shutil.copy(folder / name.format("mass"), folder / name.format("mine"))
        manifest["files"][name.format("mine")] = manifest["files"][name.format("mass")]
    manifest["candidates"]["mine"] = manifest["candidates"]["mass"] | {
        "mean": 4.0, "alone": 0,
        "negatives": {"by": "mass", "kind": "hardest", "keep": 8, "ppm": 10.0, "seed": 0},
    }  # fmt: skip
    path.write_text(json.dumps(manifest))
    prepared = Prepared.open(folder, verify=True)
    assert prepared.settings == ["formula", "mass", "mine"]
    assert prepared.measured_settings == ["formula", "mass"]
    assert prepared.measured_on("mine") == "mass"
    assert prepared.measured_on("formula") == "formula"


def test_a_run_notes_what_it_is_measured_on(
    own_lists: Prepared, small_options, tmp_path: Path
) -> None:
    made = small_options("emb-cos", candidates=OWN).described(own_lists)
    Run.create(tmp_path / "run", made, own_lists)
    assert Run.open(tmp_path / "run").measured_on == OWN
