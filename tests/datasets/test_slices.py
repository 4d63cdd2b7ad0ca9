import subprocess
import sys

import numpy as np
import pytest
import torch
from rdkit import Chem

from mzseek.chem import parse_molecule
from mzseek.core.errors import CacheError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.layout import IDENTITY_BITS, SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import MAX_PEAKS, LoadedLists, Slices
from mzseek.tensors import PeakLists, SparseRows

SETTINGS = ("mass", "formula")


def canonical(smiles: str) -> str:
    return Chem.MolToSmiles(parse_molecule(smiles))


def measured(prepared: Prepared, setting: str) -> np.ndarray:
    """Measured molecules that have a list."""
    molecules = np.unique(prepared.molecule)
    return molecules[prepared.candidates(setting).list_of[molecules] >= 0]


def without_list(prepared: Prepared) -> np.ndarray:
    molecules = np.unique(prepared.molecule)
    return molecules[prepared.candidates("mass").list_of[molecules] < 0]


@pytest.mark.parametrize("setting", SETTINGS)
def test_lists_are_those_that_were_written(small: Prepared, small_set, setting: str) -> None:
    store = LoadedLists(small, setting, np.unique(small.molecule))
    for smiles, written in small_set.lists[setting].items():
        identifier = next(name for name, each in small_set.smiles.items() if each == smiles)
        spectrum = [small.identifiers[i] for i in range(len(small))].index(identifier)
        molecule = small.molecule[[spectrum]]
        candidates, _ = store.members(molecule)
        assert {canonical(small.smiles[int(c)]) for c in candidates} == {
            canonical(s) for s in written
        }
        assert store.counts(molecule).tolist() == [len(written)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_bits_and_identities_are_those_of_the_candidates(small: Prepared, setting: str) -> None:
    lists = small.candidates(setting)
    wanted = measured(small, setting)
    store = LoadedLists(small, setting, wanted)
    asked = wanted[[5, 0, 5, 11]]  # in any order, and more than once
    counts, sizes, bits, identity = store.of(asked)
    candidates, same_identity = store.members(asked)
    expected = np.concatenate([lists.of_molecule(int(m)) for m in asked])
    rows = small.fingerprint_rows(expected)
    assert candidates.tolist() == expected.tolist()
    assert counts.tolist() == [len(lists.of_molecule(int(m))) for m in asked]
    assert counts.tolist() == store.counts(asked).tolist()
    assert sizes.tolist() == np.diff(rows.indptr).tolist()
    assert bits.tolist() == rows.indices.tolist()
    assert identity.tolist() == same_identity.tolist()
    truth = np.repeat(asked, counts)
    same_inchikey = small.inchikey14[expected] == small.inchikey14[truth]
    assert ((identity & SAME_INCHIKEY) > 0).tolist() == same_inchikey.tolist()


def test_a_store_of_few_molecules_gives_what_a_store_of_all_gives(small: Prepared) -> None:
    wanted = measured(small, "mass")
    few, every = LoadedLists(small, "mass", wanted[[3, 9]]), LoadedLists(small, "mass", wanted)
    for one, other in zip(few.of(wanted[[9, 3]]), every.of(wanted[[9, 3]]), strict=True):
        assert one.tolist() == other.tolist()


def test_bits_are_the_same_when_they_are_gathered_in_parts(small: Prepared, monkeypatch) -> None:
    wanted = measured(small, "mass")
    whole = LoadedLists(small, "mass", wanted).of(wanted)
    monkeypatch.setattr("mzseek.datasets.slices._GATHERED_AT_ONCE", 7)
    for one, other in zip(LoadedLists(small, "mass", wanted).of(wanted), whole, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    "label", [SAME_FINGERPRINT, SAME_INCHIKEY, SAME_FINGERPRINT | SAME_INCHIKEY]
)
def test_labelled_asks_whether_the_truth_is_in_the_list(small: Prepared, label: int) -> None:
    lists = small.candidates("mass")
    found = LoadedLists(small, "mass", np.unique(small.molecule)).labelled(label)
    for molecule in np.unique(small.molecule):
        place = lists.list_of[molecule]
        identity = lists.identity[lists.indptr[place] : lists.indptr[place + 1]]
        assert found[molecule] == (place >= 0 and bool((identity & label).any()))
    assert not found[np.setdiff1d(np.arange(len(found)), small.molecule)].any()


def test_a_tautomer_is_the_truth_in_one_sense_alone(small: Prepared) -> None:
    store = LoadedLists(small, "mass", np.unique(small.molecule))
    one_sense = store.labelled(SAME_INCHIKEY) & ~store.labelled(SAME_FINGERPRINT)
    assert [small.smiles[int(m)] for m in np.flatnonzero(one_sense)] == ["Oc1ccccn1"]


@pytest.mark.parametrize("ask", ["of", "counts", "members"])
def test_a_molecule_without_a_list_is_refused(small: Prepared, ask: str) -> None:
    store = LoadedLists(small, "mass", np.unique(small.molecule))
    absent = without_list(small)
    assert len(absent) == 2
    with pytest.raises(CacheError, match="has no mass candidates"):
        getattr(store, ask)(np.array([measured(small, "mass")[0], absent[0]]))


def test_no_molecules_have_no_lists(small: Prepared) -> None:
    nobody = np.empty(0, np.int64)
    store = LoadedLists(small, "mass", nobody)
    assert not store.labelled(SAME_FINGERPRINT).any()
    assert [len(part) for part in store.members(nobody)] == [0, 0]


def test_unknown_settings_are_refused_with_the_known_ones(small: Prepared) -> None:
    with pytest.raises(CacheError, match="no candidates 'hard', it has: formula, mass"):
        LoadedLists(small, "hard", np.unique(small.molecule))


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


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("identity", IDENTITY_BITS)
def test_lists_are_those_of_the_folder(small: Prepared, asked, setting: str, identity: str) -> None:
    found = Slices(small, SETTINGS, asked, identity=identity).lists(asked, setting)
    lists = small.candidates(setting)
    members = [lists.of_molecule(int(m)) for m in small.molecule[asked]]
    assert found.counts.tolist() == [len(each) for each in members]
    expected = small.fingerprint_rows(np.concatenate(members)).toarray()
    np.testing.assert_array_equal(dense(found.rows), expected)
    spans = [slice(lists.indptr[n], lists.indptr[n + 1]) for n in
             lists.list_of[small.molecule[asked]]]  # fmt: skip
    marks = np.concatenate([lists.identity[span] for span in spans])
    assert found.labels.tolist() == ((marks & IDENTITY_BITS[identity]) > 0).tolist()


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


def test_the_room_is_used_without_torch(small: Prepared) -> None:
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


@pytest.fixture
def listed(small: Prepared) -> np.ndarray:
    """Spectra of every fold, in no order, all with lists."""
    made = maker(small)
    every = made.with_lists(np.arange(len(small)), "mass")
    return np.random.default_rng(1).permutation(every)[:17]


def spectrum_named(prepared: Prepared, identifier: str) -> int:
    return [prepared.identifiers[i] for i in range(len(prepared))].index(identifier)


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
        if len(mz) <= MAX_PEAKS:
            assert real.tolist() == [True] * len(mz) + [False] * (len(real) - len(mz))
            np.testing.assert_allclose(peaks.mz[row, : len(mz)], mz, rtol=1e-6)
            scaled = np.array(intensities) / max(intensities)
            np.testing.assert_allclose(peaks.intensities[row, : len(mz)], scaled, rtol=1e-5)
        assert not peaks.mz[row][~real].any()
        assert not peaks.intensities[row][~real].any()
    np.testing.assert_allclose(peaks.precursor_mz, small.precursor_mz[listed], rtol=1e-6)
    assert peaks.mz.shape[1] == int(peaks.real.sum(1).max())


def test_of_many_peaks_the_largest_are_kept_in_the_order_of_mz(small: Prepared, small_set) -> None:
    name = next(n for n, (mz, _) in small_set.peaks.items() if len(mz) > MAX_PEAKS)
    mz, intensities = map(np.array, small_set.peaks[name])
    peaks = maker(small, "peaks").make(np.array([spectrum_named(small, name)]), ()).spectra
    largest = np.sort(np.argsort(-intensities, kind="stable")[:MAX_PEAKS])
    assert peaks.mz.shape == (1, MAX_PEAKS)
    np.testing.assert_allclose(peaks.mz[0], mz[largest], rtol=1e-6)
    assert peaks.intensities.max() == 1


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
