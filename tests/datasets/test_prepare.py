import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import CacheError, DatasetError, InputError
from mzseek.datasets.files import DatasetFiles
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.spectra import bin_spectra, read_spectra

from .conftest import ISOMERS, MEASURED, row, write_dataset

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> DatasetFiles:
    return write_dataset(tmp_path_factory.mktemp("prepare") / "set")


@pytest.fixture(scope="module")
def prepared(files: DatasetFiles) -> Prepared:
    out = files.spectra.parent.with_name("out")
    found, made = prepare(files.spectra, files.candidates, out, jobs=1)
    assert made
    return found


@pytest.fixture
def out(prepared: Prepared, tmp_path: Path) -> Path:
    """A copy of the folder."""
    return Path(shutil.copytree(prepared.folder, tmp_path / "out"))


def test_what_is_prepared_is_what_was_read(prepared: Prepared, files: DatasetFiles) -> None:
    spectra = list(read_spectra(files.spectra, []))
    assert len(prepared) == len(spectra) == 8
    assert list(prepared.identifiers) == [s.identifier for s in spectra]
    assert (prepared.bins != bin_spectra(spectra)).nnz == 0
    for index, spectrum in enumerate(spectra):
        mz, intensities = prepared.peaks(index)
        assert mz.tolist() == spectrum.mz.tolist()
        np.testing.assert_allclose(intensities, spectrum.intensities, rtol=1e-6)
        assert prepared.smiles[prepared.molecule[index]] == spectrum.metadata["smiles"]
        assert prepared.adduct(index) == "[M+H]+"
        assert prepared.collision_energy[index] == 30
        assert prepared.instrument(index) == "orbitrap"
    assert prepared.in_fold("train").tolist() == [0, 1, 2, 3]
    assert prepared.in_fold("test").tolist() == [6, 7]
    assert prepared.manifest["counts"]["set_aside"] == 0
    assert "8 spectra" in repr(prepared)
    wanted = np.array([3, 0, 3])
    rows = prepared.fingerprint_rows(wanted)
    assert (rows != fingerprints([prepared.smiles[i] for i in wanted])).nnz == 0
    assert prepared.fingerprint_rows(wanted[:0]).shape == (0, 4096)
    for array in (prepared.molecule, prepared.base_fingerprints()[1].base, prepared.masses):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_the_manifest_says_what_made_it(prepared: Prepared) -> None:
    manifest = json.loads((prepared.folder / "manifest.json").read_text())
    assert set(manifest["sources"]) == {"spectra", "candidates.mass", "candidates.formula"}
    assert len(manifest["sources"]["spectra"]["sha256"]) == 64
    assert {"mzseek", "rdkit", "numpy", "python"} <= set(manifest["versions"])
    assert manifest["options"]["fingerprint"] == "morgan2"
    assert str(prepared.folder.parent) not in json.dumps(manifest)


def list_of(prepared: Prepared, smiles: str) -> dict[str, int]:
    """Identity of each candidate of a molecule."""
    lists, molecule = prepared.candidates("mass"), list(prepared.smiles).index(smiles)
    row = int(lists.list_of[molecule])
    identity = lists.identity[lists.indptr[row] : lists.indptr[row + 1]].tolist()
    candidates = [prepared.smiles[int(candidate)] for candidate in lists.of_molecule(molecule)]
    assert len(set(candidates)) == len(candidates)
    return dict(zip(candidates, identity, strict=True))


def test_candidate_lists_and_the_truth_in_them(prepared: Prepared) -> None:
    assert len(prepared.candidates("mass")) == len(MEASURED)
    for smiles in MEASURED:
        expected = {smiles: SAME_FINGERPRINT | SAME_INCHIKEY, **dict.fromkeys(ISOMERS[smiles], 0)}
        assert list_of(prepared, smiles) == expected
    with pytest.raises(CacheError, match="has no candidates 'other', it has: formula, mass"):
        prepared.candidates("other")


def test_keys_repeated_candidates_and_twins(prepare_set) -> None:
    stereo = "N[C@@H](Cc1ccccc1)C(=O)O"
    lists = {s: [s, *ISOMERS[s]] for s in MEASURED}
    lists["NC(Cc1ccccc1)C(=O)O"].append(stereo)
    del lists[ASPIRIN]
    lists["O=C(C)Oc1c(cccc1)C(O)=O"] = ["C(C)(=O)Oc1ccccc1C(=O)O", ASPIRIN, "CCO", "OCC"]
    # Of two keys for a molecule the one with the truth counts.
    lists = {"C(OC(=O)c1ccccc1O)C": ["CCN"]} | lists
    prepared = prepare_set(lists=lists)
    assert list_of(prepared, ASPIRIN) == {ASPIRIN: 3, "CCO": 0}
    assert list(list_of(prepared, "NC(Cc1ccccc1)C(=O)O").values()) == [3, 0, 0, 3]
    assert stereo in list_of(prepared, "NC(Cc1ccccc1)C(=O)O")
    assert len(list_of(prepared, "CCOC(=O)c1ccccc1O")) == 3
    assert len(prepared.candidates("mass")) == len(MEASURED)


def test_what_cannot_be_used_is_skipped_and_listed(prepare_set, tmp_path: Path) -> None:
    rows = [row(f"good{n}", s, f) for n, (s, f) in enumerate(MEASURED.items())]
    bad = [
        row("no peaks", ASPIRIN, "train", mzs="", intensities=""),
        row("out of range", ASPIRIN, "train", mzs="5.0", intensities="1"),
        row("bad molecule", ASPIRIN, "train", smiles="C1CC"),
        row("no molecule", ASPIRIN, "train", smiles=""),
        row("bad fold", ASPIRIN, "holdout"),
        row("bad adduct", ASPIRIN, "train", adduct="[M+Xx]+"),
        row("good0", ASPIRIN, "train"),
    ]
    lists = {s: [s, *ISOMERS[s]] for s in MEASURED}
    lists["NC(Cc1ccccc1)C(=O)O"] = ["CCO"]  # the truth is missing
    lists["CCOC(=O)c1ccccc1O"] = []
    lists["Cn1c(=O)c2c(ncn2C)n(C)c1=O"].append("caffeine")
    prepared = prepare_set(rows=rows + bad, lists=lists)
    assert list(prepared.identifiers) == [f"good{n}" for n in range(4)]
    listed = (tmp_path / "out" / "rejects.tsv").read_text()
    for reason in (
        "has no peaks", "has no peak between m/z 10 and 1005", "'C1CC': not valid SMILES",
        "has no SMILES", "fold 'holdout' is unknown", "unknown part 'Xx'", "used by an earlier",
        "the molecule is not among its candidates", "its candidate list is empty",
        "'caffeine': not valid SMILES",
    ):  # fmt: skip
        assert reason in listed
    assert listed.count("C1CC") == 1  # one record, one line
    mass = prepared.candidates("mass")
    with_list = {prepared.smiles[m] for m in np.flatnonzero(mass.list_of >= 0)}
    assert with_list == {ASPIRIN, "Cn1c(=O)c2c(ncn2C)n(C)c1=O"}


def test_a_second_run_does_nothing_and_a_change_does(write_set, tmp_path: Path) -> None:
    files = write_set()
    out = tmp_path / "out"
    first, made = prepare(files.spectra, files.candidates, out)
    stamp = (out / "manifest.json").stat().st_mtime_ns
    again, made_again = prepare(files.spectra, files.candidates, out)
    assert (made, made_again) == (True, False)
    assert (out / "manifest.json").stat().st_mtime_ns == stamp
    assert again.manifest["key"] == first.manifest["key"]
    other, made_other = prepare(
        files.spectra, files.candidates, out, PrepareOptions(fingerprint="maccs")
    )
    assert made_other
    assert other.manifest["fingerprint_bits"] == 167
    files.spectra.write_text(files.spectra.read_text().replace("0.5,1.0", "0.4,1.0"))
    changed, made_changed = prepare(files.spectra, files.candidates, out)
    assert made_changed
    assert changed.manifest["key"] not in (first.manifest["key"], other.manifest["key"])


def test_processes_batches_and_order_of_lists_do_not_show_in_the_bytes(
    prepared: Prepared, files: DatasetFiles, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.datasets.molecules._BATCH", 3)
    backwards = dict(reversed(files.candidates.items()))
    prepare(files.spectra, backwards, tmp_path / "two", jobs=2)
    for path in sorted(prepared.folder.iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


KIND = '{"kind": "prepared folder", "format_version": %d}'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bins.data.npy", None, "bins.data.npy is missing"),
        ("bins.data.npy", "x", "has 1 bytes, expected"),
        ("manifest.json", None, "is no prepared folder"),
        ("manifest.json", "{", "is damaged"),
        ("manifest.json", "[]", "holds a list"),
        ("manifest.json", '{"format_version": 1}', "does not say what"),
        ("manifest.json", KIND % 0, "in format 0"),
        ("manifest.json", KIND % 3, "lacks 'key'"),
        ("manifest.json", '{"kind": "data set"}',
         "is a data set, expected a prepared folder; .* `mzseek prepare` makes a prepared"),
    ],
)  # fmt: skip
def test_damage_is_noticed(out: Path, name: str, text: str | None, message: str) -> None:
    (out / name).unlink() if text is None else (out / name).write_text(text)
    with pytest.raises(CacheError, match=message):
        Prepared.open(out)


def test_a_changed_byte_is_found_by_its_checksum(files: DatasetFiles, out: Path) -> None:
    whole = (out / "bins.indices.npy").read_bytes()
    (out / "bins.indices.npy").write_bytes(whole[:-1] + bytes([whole[-1] ^ 255]))
    Prepared.open(out)  # sizes are right
    with pytest.raises(CacheError, match=r"bins\.indices\.npy has changed"):
        Prepared.open(out, verify=True)
    _, made = prepare(files.spectra, files.candidates, out, jobs=1)
    assert made
    assert (out / "bins.indices.npy").read_bytes() == whole
    (out / "bins.data.npy").write_bytes(b"\0" * (out / "bins.data.npy").stat().st_size)
    with pytest.raises(CacheError, match="cannot be read"):
        _ = Prepared.open(out).bins


def test_a_folder_of_someone_elses_is_not_touched(write_set, tmp_path: Path) -> None:
    files = write_set()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("precious")
    with pytest.raises(DatasetError, match="is no prepared folder; name another"):
        prepare(files.spectra, files.candidates, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "precious"
    with pytest.raises(DatasetError, match=r"holds the source spectra\.tsv"):
        prepare(files.spectra, files.candidates, files.spectra.parent)
    assert files.spectra.exists()


def test_the_key_is_of_the_content_not_of_names(write_set, tmp_path: Path) -> None:
    files = write_set()
    first, _ = prepare(files.spectra, {}, tmp_path / "out")
    renamed = files.spectra.with_name("renamed.tsv")
    files.spectra.rename(renamed)
    second, made = prepare(renamed, {}, tmp_path / "out")
    assert not made
    assert second.manifest["key"] == first.manifest["key"]


def test_a_link_to_the_folder_stays_a_link(write_set, tmp_path: Path) -> None:
    files = write_set()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    prepare(files.spectra, {}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "manifest.json").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real", "set"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"smiles": "C1CC"}, "no spectrum's molecule could be parsed"),
        ({"mzs": "", "intensities": ""}, "no spectrum could be used"),
    ],
)
def test_nothing_usable_is_an_error(prepare_set, tmp_path: Path, changes, reason: str) -> None:
    with pytest.raises(DatasetError, match=reason):
        prepare_set(rows=[row("a", "CCO", "train", **changes)], lists={})
    assert not (tmp_path / "out").exists()


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        prepare(tmp_path / "absent.tsv", {}, tmp_path / "out")
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DatasetError, match="lacks the column 'mzs'; it has 'a', 'b'"):
        prepare(tmp_path / "other.tsv", {}, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.1, 0.4])
def test_kill_leaves_nothing_half_made(write_set, tmp_path: Path, after: float) -> None:
    rows = [row(f"S{n}", list(MEASURED)[n % 4], "train") for n in range(1200)]
    files = write_set(rows=rows)
    out = tmp_path / "out"
    code = (
        "from pathlib import Path\nfrom mzseek.datasets.prepare import prepare\n"
        "print('go', flush=True)\n"
        f"prepare(Path({str(files.spectra)!r}), {{}}, Path({str(out)!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    if out.exists():  # it was faster than the signal: then it must be whole
        assert len(Prepared.open(out)) == 1200
        shutil.rmtree(out)
    prepared, made = prepare(files.spectra, {}, out)
    assert made
    assert len(prepared) == 1200
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "set"]


@pytest.mark.parametrize("stage", ["spectra", "mass candidates", "writing"])
def test_a_source_that_changes_while_it_is_read_is_refused(
    stage: str, write_set, tmp_path: Path
) -> None:
    files = write_set()
    path = files.spectra if stage != "mass candidates" else files.candidates["mass"]

    def change(at: str, done: int, total: int | None = None) -> None:
        if at == stage:
            path.write_text(path.read_text() + "\n")

    with pytest.raises(InputError, match=f"{path.name}: has changed while it was read"):
        prepare(files.spectra, files.candidates, tmp_path / "out", jobs=1, progress=change)
    assert [each.name for each in tmp_path.iterdir()] == ["set"]
    prepare(files.spectra, files.candidates, tmp_path / "out", jobs=1)
