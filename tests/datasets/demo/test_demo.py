import zlib
from pathlib import Path

import numpy as np
import pytest

from mzseek.datasets.check import check_dataset
from mzseek.datasets.demo import QUERIES, write_demo
from mzseek.datasets.files import find_dataset, read_table
from mzseek.datasets.prepare import prepare
from mzseek.spectra import bin_spectra, read_spectra


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder, seed=0)
    return folder


@pytest.mark.slow
def test_the_set_is_whole_and_without_faults(demo: Path) -> None:
    files = find_dataset(demo / "set")
    report = check_dataset(files)
    assert report.faults == 0
    assert report.counts["spectra"] == 3000
    prepared, _ = prepare(files.spectra, files.candidates, demo / "prepared")
    sizes = prepared.candidates("formula").sizes
    assert np.median(sizes) >= 10  # hard: many share a formula


@pytest.mark.slow
def test_everything_is_labelled_simulated(demo: Path) -> None:
    spectra = list(read_table(find_dataset(demo / "set").spectra, lambda *_: None))
    assert all(s.identifier.startswith("simulated") for s in spectra)
    assert {s.metadata["instrument_type"] for s in spectra} == {"simulated"}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_files(demo: Path, tmp_path: Path) -> None:
    write_demo(tmp_path, seed=0)
    for name in (
        "library.mgf",
        "molecules.tsv",
        "set/spectra.tsv.gz",
        "set/candidates_mass.json.gz",
    ):
        one, other = (demo / name).read_bytes(), (tmp_path / name).read_bytes()
        assert zlib.crc32(one) == zlib.crc32(other), name


def test_textbook_queries_are_read_without_a_complaint() -> None:
    rejects: list[tuple[str, str]] = []
    spectra = list(read_spectra(QUERIES, rejects))
    assert rejects == []
    assert 5 <= len(spectra) <= 10
    assert {"caffeine", "quercetin"} <= {s.identifier for s in spectra}
    assert all(s.adduct == "[M+H]+" and s.metadata["smiles"] for s in spectra)


@pytest.mark.shared
def test_textbook_queries_look_like_measured_spectra(shared: Path) -> None:
    queries = {s.metadata["inchikey"]: s for s in read_spectra(QUERIES, [])}
    best = dict.fromkeys(queries, 0.0)
    for spectrum in read_spectra(shared / "data" / "massbank.tsv.gz", []):
        key = spectrum.metadata["inchikey"]
        if key in queries and spectrum.adduct == "[M+H]+":
            one, other = bin_spectra(queries[key]), bin_spectra(spectrum)
            cosine = (one @ other.T).toarray()[0, 0] / np.sqrt(
                (one.data**2).sum() * (other.data**2).sum()
            )
            best[key] = max(best[key], float(cosine))
    assert min(best.values()) > 0.9, best
