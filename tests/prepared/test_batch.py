import numpy as np
import pytest
import torch

from mzseek.core.errors import CacheError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.layout import IDENTITY_BITS, SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import MOST_PEAKS
from mzseek.tensors import PeakLists, SparseRows


def maker(prepared: Prepared, reads: str = "bins", settings=("mass", "formula"), **options):
    return BatchMaker(prepared, reads, settings, np.arange(len(prepared)), **options)


@pytest.fixture
def listed(small: Prepared) -> np.ndarray:
    """Spectra of every fold, in no order, all with lists."""
    made = maker(small)
    every = made.with_lists(np.arange(len(small)), "mass")
    return np.random.default_rng(1).permutation(every)[:17]


def spectrum_named(prepared: Prepared, identifier: str) -> int:
    return [prepared.identifiers[i] for i in range(len(prepared))].index(identifier)


def test_spectra_are_the_rows_asked_for_in_that_order(small: Prepared, listed) -> None:
    batch = maker(small).make(listed, ())
    assert batch.queries.tolist() == listed.tolist()
    assert isinstance(batch.spectra, SparseRows)
    np.testing.assert_array_equal(batch.spectra.dense().numpy(), small.bins[listed].toarray())
    assert batch.lists == {}


def test_targets_are_the_fingerprints_of_the_molecules(small: Prepared, listed) -> None:
    batch = maker(small).make(listed, ())
    expected = small.fingerprint_rows(small.molecule[listed]).toarray()
    assert batch.target.values is None
    np.testing.assert_array_equal(batch.target.dense().numpy(), expected)


@pytest.mark.parametrize("setting", ["mass", "formula"])
@pytest.mark.parametrize("identity", IDENTITY_BITS)
def test_lists_and_labels_are_those_of_the_folder(
    small: Prepared, listed, setting: str, identity: str
) -> None:
    found = maker(small, identity=identity).make(listed).lists[setting]
    lists = small.candidates(setting)
    molecules = [lists.of_molecule(int(m)) for m in small.molecule[listed]]
    assert found.counts.tolist() == [len(part) for part in molecules]
    rows = small.fingerprint_rows(np.concatenate(molecules))
    np.testing.assert_array_equal(found.rows.dense().numpy(), rows.toarray())
    places = lists.list_of[small.molecule[listed]]
    label = SAME_FINGERPRINT if identity == "fingerprint" else SAME_INCHIKEY
    expected = [lists.identity[lists.indptr[p] : lists.indptr[p + 1]] & label for p in places]
    assert found.labels.dtype == torch.bool
    assert found.labels.tolist() == (np.concatenate(expected) > 0).tolist()


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


def test_settings_default_to_all_that_the_maker_has(small: Prepared, listed) -> None:
    assert set(maker(small).make(listed).lists) == {"mass", "formula"}
    assert set(maker(small, settings=("formula",)).make(listed).lists) == {"formula"}
    assert set(maker(small).make(listed, ("mass",)).lists) == {"mass"}


def test_lists_of_a_setting_are_those_of_a_batch(small: Prepared, listed) -> None:
    made = maker(small)
    alone, within = made.lists(listed, "mass"), made.make(listed).lists["mass"]
    assert torch.equal(alone.rows.indices, within.rows.indices)
    assert torch.equal(alone.labels, within.labels)


def test_spectra_without_a_list_are_told_apart(small: Prepared, small_set) -> None:
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


def test_a_batch_of_spectra_without_a_list_is_refused_unless_it_needs_none(
    small: Prepared,
) -> None:
    made = maker(small)
    everyone = np.arange(len(small))
    absent = np.setdiff1d(everyone, made.with_lists(everyone, "mass"))
    assert made.make(absent, ()).spectra.shape[0] == len(absent)
    with pytest.raises(CacheError, match="has no mass candidates"):
        made.make(absent[:1], ("mass",))


@pytest.mark.parametrize(("backward", "lists"), [(True, True), (True, False), (False, False)])
def test_transposes_are_there_when_asked_for(
    small: Prepared, listed, backward: bool, lists: bool
) -> None:
    batch = maker(small, backward=backward, backward_lists=lists).make(listed)
    assert (batch.spectra.transposed is not None) == backward
    assert (batch.lists["mass"].rows.transposed is not None) == lists
    if backward:
        made = batch.spectra.transposed
        expected = small.bins[listed].tocsc()
        filled = np.flatnonzero(np.diff(expected.indptr))
        assert made.columns.tolist() == filled.tolist()
        assert made.starts.tolist() == expected.indptr[filled].tolist()
        assert made.indices.tolist() == expected.indices.tolist()
        np.testing.assert_array_equal(made.values.numpy(), expected.data)


def test_peaks_are_scaled_and_padded(small: Prepared, small_set, listed) -> None:
    batch = maker(small, "peaks").make(listed, ())
    peaks = batch.spectra
    assert isinstance(peaks, PeakLists)
    for row, query in enumerate(listed):
        mz, intensities = small_set.peaks[small.identifiers[int(query)]]
        real = peaks.real[row].numpy()
        if len(mz) <= MOST_PEAKS:
            assert real.tolist() == [True] * len(mz) + [False] * (len(real) - len(mz))
            np.testing.assert_allclose(peaks.mz[row, : len(mz)], mz, rtol=1e-6)
            scaled = np.array(intensities) / max(intensities)
            np.testing.assert_allclose(peaks.intensities[row, : len(mz)], scaled, rtol=1e-5)
        assert not peaks.mz[row][~real].any()
        assert not peaks.intensities[row][~real].any()
    np.testing.assert_allclose(peaks.precursor_mz, small.precursor_mz[listed], rtol=1e-6)
    assert peaks.mz.shape[1] == int(peaks.real.sum(1).max())


def test_of_many_peaks_the_largest_are_kept_in_the_order_of_mz(small: Prepared, small_set) -> None:
    name = next(n for n, (mz, _) in small_set.peaks.items() if len(mz) > MOST_PEAKS)
    mz, intensities = map(np.array, small_set.peaks[name])
    peaks = maker(small, "peaks").make(np.array([spectrum_named(small, name)]), ()).spectra
    largest = np.sort(np.argsort(-intensities, kind="stable")[:MOST_PEAKS])
    assert peaks.mz.shape == (1, MOST_PEAKS)
    np.testing.assert_allclose(peaks.mz[0], mz[largest], rtol=1e-6)
    assert peaks.intensities.max() == 1


def test_identities_are_refused_with_the_known_ones(small: Prepared) -> None:
    with pytest.raises(CacheError, match="identity 'name' is unknown, expected one of: fingerpr"):
        maker(small, identity="name")


def test_moving_keeps_everything(small: Prepared, listed) -> None:
    for reads in ("bins", "peaks"):
        batch = maker(small, reads).make(listed)
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
