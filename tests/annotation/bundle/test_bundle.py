"""A bundle, opened."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle import bundle as module
from mzseek.bundle.arrays import write_arrays
from mzseek.bundle.bundle import MANIFEST, shipped
from mzseek.core.errors import BundleError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.queries import Queries
from mzseek.library import Library
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum


@pytest.fixture
def copied(bundle_folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(bundle_folder, tmp_path / "copy"))


@pytest.fixture
def asked(small: Prepared) -> Queries:
    mz, heights = small.peaks(3)
    spectrum = Spectrum(
        np.array(mz), np.array(heights, np.float64), float(small.precursor_mz[3]), "[M+H]+", 1, "x"
    )
    candidates = [str(small.smiles[place]) for place in range(12)]
    return Queries.of([spectrum], [candidates], fingerprint="maccs", jobs=1)


def test_it_scores_as_the_run_does(bundle: Bundle, fitted_run: Run, asked: Queries) -> None:
    """Its data have few decimals; the run has one spectrum of more peaks than are kept."""
    own = EvidenceModel.open(fitted_run)
    assert np.allclose(
        bundle.fitted.contributions(asked), own.contributions(asked), rtol=0.02, atol=0.02
    )
    assert bundle.fingerprint == "maccs"
    assert bundle.fitted.describe() == own.describe()


def test_its_library_can_be_searched(bundle: Bundle, small: Prepared, asked: Queries) -> None:
    library = bundle.library
    assert isinstance(library, Library)
    assert len(library) == len(small.in_fold("train")) == len(library.records)
    first = int(small.in_fold("train")[3])
    mz, heights = small.peaks(first)
    query = Spectrum(
        np.array(mz),
        np.array(heights, np.float64),
        float(small.precursor_mz[first]),
        "[M+H]+",
        1,
        "q",
    )
    for kind in ("cosine", "analog"):
        found = library.search(query, kind, top=1)
        assert found.scores[0] == pytest.approx(1, abs=1e-4)
        assert found.to_table().columns["identifier"] == [small.identifiers[first]]
    assert library.records["license"].to_pylist()[:2] == ["CC BY", ""]
    assert library.check() is None


def test_the_analogs_read_the_very_arrays_of_the_library(bundle: Bundle) -> None:
    place = [channel.name for channel in bundle.fitted.channels].index("analogs")
    arrays = bundle.fitted.states[place].arrays
    assert arrays["mz"] is bundle.library.peaks.values
    assert arrays["heights"] is bundle.library.peaks.weights


def test_molecules_of_the_library_are_in_the_box(bundle: Bundle, small: Prepared) -> None:
    train = np.unique(small.molecule[small.in_fold("train")])
    assert {small.inchikey14[each].decode() for each in train} == set(bundle.molecules.places)
    assert bundle.library.molecules["inchikey"].to_pylist()[0] in bundle.molecules.places
    assert np.allclose(bundle.molecules.masses, np.sort(small.masses[train]), atol=1e-6)
    assert bundle.names == {}
    assert bundle.licence.startswith("# Licence")
    assert bundle.size == sum(p.stat().st_size for p in bundle.folder.iterdir()) - (
        (bundle.folder / "manifest.json").stat().st_size
    )
    assert repr(bundle).endswith(f"{len(bundle.molecules)} molecules)")


def test_verify_reads_all(bundle: Bundle) -> None:
    assert not {"fitted", "library", "molecules"} & set(vars(bundle))
    bundle.verify()
    assert {"card", "confidence", "fitted", "library", "molecules"} <= set(vars(bundle))


@pytest.mark.parametrize("name", ["arrays.bin", "model.json", "records.parquet", "LICENCE.md"])
def test_a_damaged_byte_is_found(copied: Path, name: str) -> None:
    data = bytearray((copied / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / name).write_bytes(data)
    with pytest.raises(BundleError, match=f"{name} has changed; make it again with"):
        Bundle.open(copied)


def test_a_file_that_was_cut_short_or_is_gone_is_found(copied: Path) -> None:
    path = copied / "molecules.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BundleError, match=r"molecules.parquet has [\d,]+ bytes, expected"):
        Bundle.open(copied)
    path.unlink()
    with pytest.raises(BundleError, match=r"molecules.parquet is missing"):
        Bundle.open(copied)


def test_another_kind_of_folder_is_refused(small_set, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is a prepared folder, expected a model bundle"):
        Bundle.open(small_set.folder)
    with pytest.raises(BundleError, match=r"is no model bundle \(manifest.json is missing\)"):
        Bundle.open(tmp_path)
    with pytest.raises(BundleError, match="there is no such folder"):
        Bundle.open(tmp_path / "gone")


def test_a_newer_version_is_refused(copied: Path) -> None:
    facts = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps(facts | {"format_version": 99}))
    with pytest.raises(BundleError, match="written in format 99, expected 1"):
        Bundle.open(copied)


def test_a_manifest_that_does_not_list_a_part_is_refused(copied: Path) -> None:
    facts = json.loads((copied / "manifest.json").read_text())
    del facts["files"]["arrays.bin"]
    (copied / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(BundleError, match=r"its manifest does not list arrays.bin"):
        Bundle.open(copied)


def sign(folder: Path) -> None:
    """Let what a test has changed pass for what was written."""
    facts = json.loads((folder / "manifest.json").read_text())
    del facts["files"], facts["kind"]
    MANIFEST.write(folder, facts)


def test_parts_that_do_not_fit_together_are_refused(copied: Path) -> None:
    table = pq.read_table(copied / "records.parquet")
    pq.write_table(table.slice(1), copied / "records.parquet")
    sign(copied)
    with pytest.raises(BundleError, match="has other columns or rows than expected"):
        Bundle.open(copied).verify()
    pq.write_table(table.drop_columns(["license"]), copied / "records.parquet")
    sign(copied)
    with pytest.raises(BundleError, match=r"records.parquet: cannot be read"):
        Bundle.open(copied).verify()
    molecules = pq.read_table(copied / "molecules.parquet")
    pq.write_table(molecules.slice(1), copied / "molecules.parquet")
    sign(copied)
    with pytest.raises(BundleError, match=r"molecules.parquet is damaged"):
        Bundle.open(copied).verify()


def test_without_a_shipped_one_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle_folder: Path
) -> None:
    monkeypatch.setattr(module, "files", lambda name: tmp_path)
    with pytest.raises(BundleError, match="this copy of mzseek comes without a model bundle"):
        Bundle.open()
    shutil.copytree(bundle_folder, tmp_path / "bundle")
    assert Bundle.open().folder == tmp_path / "bundle"


def rewritten(copied: Path, name: str, change) -> Path:
    """The bundle with another JSON file in it, signed as if it had been written so."""
    facts = json.loads((copied / name).read_text())
    change(facts)
    (copied / name).write_text(json.dumps(facts))
    sign(copied)
    return copied


@pytest.mark.parametrize("name", ["arrays.bin", "manifest.json"])
def test_a_link_in_the_place_of_a_file_is_refused(copied: Path, tmp_path: Path, name: str) -> None:
    (copied / name).rename(tmp_path / "elsewhere")
    (copied / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match=f"{name} is a link, expected a file; copy what it"):
        Bundle.open(copied)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_refused(copied: Path, value: float) -> None:
    rewritten(copied, "confidence.json", lambda facts: facts["positive"].update(dependence=value))
    with pytest.raises(BundleError, match=r"confidence\.json: holds .*, expected finite numbers"):
        _ = Bundle.open(copied).confidence


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_whole_numbers_without_end_are_refused(copied: Path, value: int) -> None:
    rewritten(copied, "confidence.json", lambda facts: facts["positive"].update(floor=value))
    with pytest.raises(BundleError, match=r"positive mode: floor is .*, expected a number"):
        _ = Bundle.open(copied).confidence


@pytest.mark.parametrize("value", [0, -1.0])
def test_spreads_that_are_not_above_0_are_refused(copied: Path, value: float) -> None:
    def change(facts) -> None:
        channel = next(iter(facts["ranker"]["spread"].values()))
        channel[next(iter(channel))] = value

    rewritten(copied, "model.json", change)
    with pytest.raises(BundleError, match=r"model\.json: has a spread that is not above 0"):
        _ = Bundle.open(copied).fitted


@pytest.mark.parametrize("kind", ["unheard of", 3])
def test_an_unknown_fingerprint_is_refused(copied: Path, kind: object) -> None:
    rewritten(copied, "model.json", lambda facts: facts.update(fingerprint=kind))
    with pytest.raises(BundleError, match=r"model\.json: fingerprint is .*, expected one of"):
        _ = Bundle.open(copied).fingerprint


@pytest.mark.parametrize("most", [0, -5, "many", None])
def test_a_wrong_number_of_peaks_is_refused(copied: Path, most: object) -> None:
    rewritten(copied, "card.json", lambda facts: facts["library"].update(most_peaks=most))
    with pytest.raises(BundleError, match=r"library\.most_peaks is .*, expected 1 or more"):
        _ = Bundle.open(copied).most_peaks


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("channels/0/positive.first", None, "positive.first is missing"),
        ("channels/0/positive.worth", lambda own: own[:-1], r"shape \(5, 2, 9\), expected \(6,"),
        ("channels/0/negative.totals", lambda own: own[:-1], r"shape \(2,\), expected \(3,\)"),
        ("channels/1/mz", None, "mz is missing"),
        ("channels/1/heights", lambda own: own[:-1], "has an array of shape"),
        ("channels/1/pointers", lambda own: own[::-1], "row pointers that do not rise"),
        ("channels/1/molecule_of", lambda own: own + 2**20, "is damaged"),
        ("channels/1/bits.morgan2", lambda own: own + 2**20, "is damaged"),
        ("channels/1/bits.morgan2", None, "bits.morgan2 is missing"),
        ("channels/0/positive.last", lambda own: own * np.nan, "holds what is no number"),
    ],
)
def test_learned_arrays_that_do_not_fit_are_refused(
    copied: Path, name: str, change, reason: str
) -> None:
    arrays = {key: np.array(own) for key, own in Bundle.open(copied).arrays.items()}
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    write_arrays(copied / "arrays.bin", arrays)
    sign(copied)
    with pytest.raises(BundleError, match=reason):
        _ = Bundle.open(copied).fitted


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["library/mz", "molecules/masses"])
def test_numbers_without_end_in_arrays_are_refused(copied: Path, name: str, value: float) -> None:
    arrays = {key: np.array(own) for key, own in Bundle.open(copied).arrays.items()}
    arrays[name][-1] = value
    write_arrays(copied / "arrays.bin", arrays)
    sign(copied)
    with pytest.raises(BundleError, match=r"is damaged|numbers without end"):
        Bundle.open(copied).verify()


def test_only_the_shipped_bundle_is_called_so(bundle_folder: Path) -> None:
    assert not Bundle.open(bundle_folder).is_shipped
    assert Bundle.open().is_shipped
    assert Bundle.open(shipped()).is_shipped
