import numpy as np
import pytest
from rdkit import Chem

from mzseek.chem import parse_molecule
from mzseek.core.errors import CacheError
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import LoadedLists

SETTINGS = ["mass", "formula"]


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
    monkeypatch.setattr("mzseek.datasets.slices._CANDIDATES_AT_A_TIME", 7)
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
