import subprocess
import sys

import numpy as np
import pytest
import torch
from rdkit import Chem

from mzseek.core.errors import CacheError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.layout import IDENTITY_BITS, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import MAX_PEAKS, Slices
from mzseek.tensors import PeakLists, SparseRows

SETTINGS = ("mass", "formula")


def spectrum_named(prepared: Prepared, identifier: str) -> int:
    return list(prepared.identifiers).index(identifier)


@pytest.mark.parametrize("setting", SETTINGS)
def test_lists_are_those_that_were_written(
    small: Prepared, slices: Slices, small_set, setting: str
) -> None:
    for smiles, written in small_set.lists[setting].items():
        identifier = next(name for name, each in small_set.smiles.items() if each == smiles)
        counts, candidates, _ = slices.members(
            np.array([spectrum_named(small, identifier)]), setting
        )
        assert {small.smiles[int(c)] for c in candidates} == set(map(Chem.CanonSmiles, written))
        assert counts.tolist() == [len(written)]


def test_selected_lists_are_those_of_all(small: Prepared) -> None:
    lists, measured = small.candidates("mass"), np.unique(small.molecule)
    some = measured[[9, 3, 0]]
    selected = lists.select(some)
    assert len(selected) == int((lists.list_of[some] >= 0).sum())
    for molecule in measured.tolist():
        expected = lists.of_molecule(molecule).tolist() if molecule in some else []
        assert selected.of_molecule(molecule).tolist() == expected
    assert len(lists.select(measured[:0])) == 0


@pytest.mark.parametrize(("kind", "at_once"), [("fingerprint", 200_000), ("inchikey", 7)])
@pytest.mark.parametrize("setting", SETTINGS)
def test_members_bits_and_labels_are_those_of_the_lists(
    small: Prepared, asked, setting: str, kind: str, at_once: int, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.datasets.slices._GATHERED_AT_ONCE", at_once)
    slices, lists = Slices(small, SETTINGS, asked, identity=kind), small.candidates(setting)
    counts, candidates, identity = slices.members(asked, setting)
    truths = small.molecule[asked]
    expected = np.concatenate([lists.of_molecule(int(m)) for m in truths])
    assert candidates.tolist() == expected.tolist()
    assert counts.tolist() == [len(lists.of_molecule(int(m))) for m in truths]
    same_inchikey = small.inchikey14[expected] == small.inchikey14[np.repeat(truths, counts)]
    assert ((identity & SAME_INCHIKEY) > 0).tolist() == same_inchikey.tolist()
    found = slices.lists(asked, setting)
    np.testing.assert_array_equal(dense(found.rows), small.fingerprint_rows(expected).toarray())
    assert found.counts.tolist() == counts.tolist()
    assert found.labels.tolist() == ((identity & IDENTITY_BITS[kind]) > 0).tolist()


@pytest.mark.parametrize("ask", ["lists", "members"])
def test_a_molecule_without_a_list_is_refused(small: Prepared, slices: Slices, ask: str) -> None:
    absent = np.setdiff1d(np.arange(len(small)), slices.with_lists(np.arange(len(small)), "mass"))
    assert len(np.unique(small.molecule[absent])) == 2
    with pytest.raises(CacheError, match="has no mass candidates"):
        getattr(slices, ask)(absent[:1], "mass")


def test_no_spectra_have_no_lists(small: Prepared) -> None:
    nobody = np.empty(0, np.int64)
    slices = Slices(small, ("mass",), nobody)
    assert len(slices.with_lists(np.arange(len(small)), "mass")) == 0
    assert [len(part) for part in slices.members(nobody, "mass")] == [0, 0, 0]


def test_unknown_settings_are_refused_with_the_known_ones(small: Prepared) -> None:
    with pytest.raises(CacheError, match="no candidates 'hard', it has: formula, mass"):
        Slices(small, ("hard",), np.arange(1))


@pytest.fixture
def slices(small: Prepared) -> Slices:
    return Slices(small, SETTINGS, np.arange(len(small)))


@pytest.fixture
def asked(small: Prepared, slices: Slices) -> np.ndarray:
    """Spectra in no order, one of them twice, all with lists."""
    some = np.random.default_rng(2).permutation(slices.with_lists(np.arange(len(small)), "mass"))
    return np.append(some[:9], some[3])


def dense(rows) -> np.ndarray:
    out = np.zeros((len(rows.indptr) - 1, rows.width), np.float32)
    for row, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        out[row, rows.columns[start:end]] = 1 if rows.values is None else rows.values[start:end]
    return out


def test_rows_are_those_of_the_folder(small: Prepared, slices: Slices, asked) -> None:
    np.testing.assert_array_equal(dense(slices.bins(asked)), small.bins[asked].toarray())
    expected = small.fingerprint_rows(small.molecule[asked]).toarray()
    np.testing.assert_array_equal(dense(slices.targets(asked)), expected)


def test_batches_are_the_same_as_tensors(small: Prepared, slices: Slices, asked) -> None:
    batch = BatchMaker(small, "peaks", SETTINGS, asked).make(asked)
    peaks = batch.spectra
    tensors = (peaks.mz, peaks.intensities, peaks.real, peaks.precursor_mz)
    for array, tensor in zip(slices.peaks(asked), tensors, strict=True):
        np.testing.assert_array_equal(array, tensor.numpy())
    for setting in SETTINGS:
        rows, counts, labels = slices.lists(asked, setting)
        np.testing.assert_array_equal(dense(rows), batch.lists[setting].rows.dense().numpy())
        assert batch.lists[setting].counts.tolist() == counts.tolist()
        assert batch.lists[setting].labels.dtype == torch.bool
        assert batch.lists[setting].labels.tolist() == labels.tolist()
    batch = BatchMaker(small, "bins", SETTINGS, asked).make(asked, ())
    assert batch.queries.tolist() == asked.tolist()
    assert isinstance(batch.spectra, SparseRows)
    np.testing.assert_array_equal(batch.spectra.dense().numpy(), small.bins[asked].toarray())
    assert batch.target.values is None
    np.testing.assert_array_equal(dense(slices.targets(asked)), batch.target.dense().numpy())
    assert batch.lists == {}


def test_identities_are_refused_with_the_known_ones(small: Prepared) -> None:
    with pytest.raises(CacheError, match="identity 'name' is unknown, expected one of: fingerpr"):
        Slices(small, (), np.arange(1), identity="name")


@pytest.mark.slow
def test_the_package_is_used_without_torch(small: Prepared) -> None:
    """All of it but `batch`, which is tensors."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, mzseek.datasets.bands, mzseek.datasets.extra_lists\n"
        "from mzseek.datasets.prepared import Prepared\nfrom mzseek.datasets.slices import Slices\n"
        f"prepared = Prepared.open({str(small.folder)!r})\n"
        "queries = prepared.in_fold('train')\n"
        "slices = Slices(prepared, ('mass',), queries)\n"
        "print(len(slices.lists(slices.with_lists(queries, 'mass'), 'mass').labels))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def maker(prepared: Prepared, reads: str = "bins", settings=("mass", "formula"), **options):
    return BatchMaker(prepared, reads, settings, np.arange(len(prepared)), **options)


def test_a_twin_is_labelled_by_its_fingerprint_alone(small: Prepared, small_set) -> None:
    name = next(n for n, smiles in small_set.smiles.items() if smiles == "CCCCCCCC(=O)O")
    query = np.array([spectrum_named(small, name)])
    labels = {i: maker(small, identity=i).make(query).lists["mass"].labels for i in IDENTITY_BITS}
    assert labels["fingerprint"].sum() == 2
    assert labels["inchikey"].sum() == 1
    assert (labels["fingerprint"] | labels["inchikey"]).tolist() == labels["fingerprint"].tolist()


def test_a_list_of_one_is_a_list(small: Prepared, small_set) -> None:
    name = next(n for n, smiles in small_set.smiles.items() if smiles == "COc1ccc(CC(=O)O)cc1")
    found = maker(small).make(np.array([spectrum_named(small, name)])).lists["mass"]
    assert found.counts.tolist() == [1]
    assert found.labels.tolist() == [True]


def test_settings_default_to_all_that_the_maker_has(small: Prepared, asked) -> None:
    assert set(maker(small).make(asked).lists) == {"mass", "formula"}
    assert set(maker(small, settings=("formula",)).make(asked).lists) == {"formula"}
    assert set(maker(small).make(asked, ("mass",)).lists) == {"mass"}


def test_spectra_without_a_list_are_left_out(small: Prepared, small_set) -> None:
    everyone = np.arange(len(small))[::-1]
    kept = maker(small).with_lists(everyone, "mass")
    has = [small_set.smiles[small.identifiers[int(i)]] in small_set.lists["mass"] for i in everyone]
    assert kept.tolist() == everyone[np.array(has)].tolist()  # and their order is kept
    assert len(everyone) - len(kept) == 4


@pytest.mark.parametrize(("identity", "lost"), [("fingerprint", 2), ("inchikey", 0), (None, 0)])
def test_an_identity_leaves_out_lists_whose_truth_has_none(
    small: Prepared, identity: str | None, lost: int
) -> None:
    made = maker(small)
    with_any = made.with_lists(np.arange(len(small)), "mass")
    assert len(with_any) - len(made.with_lists(with_any, "mass", identity)) == lost


@pytest.mark.parametrize(("backward", "lists"), [(True, True), (True, False), (False, False)])
def test_transposes_are_there_when_asked_for(
    small: Prepared, asked, backward: bool, lists: bool
) -> None:
    batch = maker(small, backward=backward, backward_lists=lists).make(asked)
    assert (batch.spectra.transposed is not None) == backward
    assert (batch.lists["mass"].rows.transposed is not None) == lists
    if backward:
        made = batch.spectra.transposed
        expected = small.bins[asked].tocsc()
        filled = np.flatnonzero(np.diff(expected.indptr))
        assert made.columns.tolist() == filled.tolist()
        assert made.starts.tolist() == expected.indptr[filled].tolist()
        assert made.indices.tolist() == expected.indices.tolist()
        np.testing.assert_array_equal(made.values.numpy(), expected.data)


def test_peaks_are_scaled_and_padded(small: Prepared, small_set, asked) -> None:
    batch = maker(small, "peaks").make(asked, ())
    peaks = batch.spectra
    assert isinstance(peaks, PeakLists)
    for row, query in enumerate(asked):
        mz, intensities = small_set.peaks[small.identifiers[int(query)]]
        real = peaks.real[row].numpy()
        if len(mz) <= MAX_PEAKS:
            assert real.tolist() == [True] * len(mz) + [False] * (len(real) - len(mz))
            np.testing.assert_allclose(peaks.mz[row, : len(mz)], mz, rtol=1e-6)
            scaled = np.array(intensities) / max(intensities)
            np.testing.assert_allclose(peaks.intensities[row, : len(mz)], scaled, rtol=1e-5)
        assert not peaks.mz[row][~real].any()
        assert not peaks.intensities[row][~real].any()
    np.testing.assert_allclose(peaks.precursor_mz, small.precursor_mz[asked], rtol=1e-6)
    assert peaks.mz.shape[1] == int(peaks.real.sum(1).max())


def test_of_many_peaks_the_largest_are_kept_in_the_order_of_mz(small: Prepared, small_set) -> None:
    name = next(n for n, (mz, _) in small_set.peaks.items() if len(mz) > MAX_PEAKS)
    mz, intensities = map(np.array, small_set.peaks[name])
    peaks = maker(small, "peaks").make(np.array([spectrum_named(small, name)]), ()).spectra
    largest = np.sort(np.argsort(-intensities, kind="stable")[:MAX_PEAKS])
    assert peaks.mz.shape == (1, MAX_PEAKS)
    np.testing.assert_allclose(peaks.mz[0], mz[largest], rtol=1e-6)
    assert peaks.intensities.max() == 1


def test_moving_keeps_everything(small: Prepared, asked) -> None:
    for reads in ("bins", "peaks"):
        batch = maker(small, reads).make(asked)
        moved = batch.to("cpu")
        assert torch.equal(moved.target.indices, batch.target.indices)
        assert torch.equal(moved.lists["mass"].labels, batch.lists["mass"].labels)
        field = "values" if reads == "bins" else "intensities"
        assert torch.equal(getattr(moved.spectra, field), getattr(batch.spectra, field))


def test_molecules_of_the_small_set_are_what_they_are_meant_to_be(small: Prepared) -> None:
    """The fixture holds what the tests above rely on."""
    counts = small.manifest["counts"]["spectra_by_fold"]
    assert counts == {"train": 52, "val": 16, "test": 20}
    assert small.settings == ["formula", "mass"]
    assert small.manifest["candidates"]["mass"]["molecules_without"] == 2
