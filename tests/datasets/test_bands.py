import numpy as np
import pytest

from mzseek.chem import fingerprints, inchikey_block
from mzseek.core.errors import CacheError, DatasetError, DecisionError, MoleculeError
from mzseek.datasets.bands import set_bands
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.metrics import bit_accuracy
from mzseek.similarity import cosine, f1, tanimoto

from .conftest import ISOMERS, MEASURED

OCTANOIC = "CCCCCCCC(=O)O"  # has a twin in its mass list
HYDROXYPYRIDINE = "Oc1ccccn1"  # its mass list has its tautomer alone
SINGLE = "CC(N)(C(=O)O)c1ccccc1"
BY_HAND = {"bits": bit_accuracy, "tanimoto": tanimoto, "cosine": cosine, "f1": f1}


def measured(small_set, setting: str, fold: str | None) -> list[str]:
    """Molecules with spectra in a fold that have a list, as they were written."""
    return [
        smiles
        for smiles in dict.fromkeys(small_set.smiles.values())
        if smiles in small_set.lists[setting]
        and fold
        in (None, *(small_set.folds[i] for i, s in small_set.smiles.items() if s == smiles))
    ]


def band_by_hand(small_set, smiles: str, setting: str, kind: str, against: str, of: str):
    """Band of one list from its SMILES, the truth known by its InChIKey block."""
    mine = inchikey_block(smiles)
    others = [s for s in small_set.lists[setting][smiles] if inchikey_block(s) != mine]
    rows = fingerprints([smiles, *others], kind).toarray()
    first = [0] if against == "truth" else range(len(rows))
    pairs = [(i, j) for i in first for j in range(i + 1, len(rows))]
    if not pairs:
        return np.nan, np.nan
    one, other = np.array(pairs).T
    values = BY_HAND[of](rows[one].astype(float), rows[other])
    return values.min(), values.max()


def as_by_hand(
    found, small_set, fold=None, setting="mass", kind="maccs", against="truth", of="tanimoto"
) -> bool:
    """Whether bands are those by hand, in whatever order the lists come."""
    wanted = [
        band_by_hand(small_set, smiles, setting, kind, against, of)
        for smiles in measured(small_set, setting, fold)
    ]
    got = sorted(zip(found.low.round(9), found.high.round(9), strict=True), key=str)
    wanted = sorted(np.round(wanted, 9).tolist(), key=str)
    return np.shape(got) == np.shape(wanted) and np.allclose(got, wanted, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("against", ["truth", "pairs"])
@pytest.mark.parametrize("setting", ["mass", "formula"])
@pytest.mark.parametrize("similarity", BY_HAND)
def test_bands_are_those_by_hand(small, small_set, similarity, setting, against) -> None:
    found = set_bands(small, setting, similarity=similarity, against=against)
    assert as_by_hand(found, small_set, setting=setting, against=against, of=similarity)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["morgan2", "rdkit"])
def test_other_fingerprints_than_the_prepared_one_are_computed(
    small, small_set, kind, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.datasets.bands._BATCH", 7)
    told: list[str] = []
    found = set_bands(
        small, fingerprint=kind, jobs=1, progress=lambda stage, done, total: told.append(stage)
    )
    assert as_by_hand(found, small_set, kind=kind)
    assert set(told) == {f"{kind} fingerprints"}
    told.clear()
    monkeypatch.setattr("mzseek.datasets.bands.fingerprints", None)  # the prepared one is not
    assert as_by_hand(set_bands(small, fingerprint="maccs"), small_set)


@pytest.mark.parametrize("fold", ["train", "val", "test", None])
def test_the_lists_are_those_of_the_fold(small, small_set, fold: str | None) -> None:
    found = set_bands(small, fold=fold)
    assert as_by_hand(found, small_set, fold=fold)
    assert len(found.low) == len(measured(small_set, "mass", fold))  # the unlisted have none


def test_some_lists_are_evenly_spaced(small) -> None:
    every = set_bands(small, fold="train")
    few = set_bands(small, fold="train", max_lists=3)
    middle = (len(every.low) - 1) // 2
    np.testing.assert_array_equal(few.low, every.low[[0, middle, -1]])
    np.testing.assert_array_equal(set_bands(small, fold="train", max_lists=999).low, every.low)


def band_of(small: Prepared, smiles: str, **how) -> tuple[float, float]:
    with_list = np.unique(small.molecule)
    with_list = with_list[small.candidates("mass").list_of[with_list] >= 0]
    place = [small.smiles[int(m)] for m in with_list].index(smiles)
    found = set_bands(small, **how)
    return float(found.low[place]), float(found.high[place])


@pytest.mark.parametrize("against", ["truth", "pairs"])
def test_a_twin_is_another_molecule(small, against: str) -> None:
    assert band_of(small, OCTANOIC, against=against)[1] == 1


def test_a_tautomer_of_the_truth_is_no_other_molecule(small) -> None:
    # In the mass list it stands for the truth, whose keys are not the same.
    low, high = band_of(small, HYDROXYPYRIDINE)
    lists = small.candidates("mass")
    molecules = [i for i in range(len(small.masses)) if small.smiles[i] == HYDROXYPYRIDINE]
    rows = small.fingerprint_rows(np.array(molecules)).toarray().astype(float)
    everyone = lists.of_molecule(molecules[0])
    values = tanimoto(np.repeat(rows, len(everyone), 0), small.fingerprint_rows(everyone).toarray())
    pyridone = [small.smiles[int(c)] for c in everyone].index("O=c1cccc[nH]1")
    others = np.delete(values, pyridone)
    assert (low, high) == pytest.approx((others.min(), others.max()))


@pytest.mark.parametrize("against", ["truth", "pairs"])
def test_a_list_of_the_truth_alone_has_no_band(small, against: str) -> None:
    assert np.isnan(band_of(small, SINGLE, against=against)).all()


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        (
            {"against": "all"},
            DatasetError,
            "against 'all' is unknown, expected one of: truth, pairs",
        ),
        ({"fold": "final"}, DatasetError, "fold 'final' is unknown, expected one of: train"),
        ({"setting": "hard"}, CacheError, "no candidates 'hard', it has: formula, mass"),
        ({"similarity": "dice"}, DecisionError, "similarity 'dice' is unknown"),
        ({"fingerprint": "ecfp"}, MoleculeError, "fingerprint 'ecfp' is unknown"),
        ({"max_lists": 0}, DatasetError, "max_lists is 0, expected at least 1"),
    ],
    ids=str,
)
def test_unknown_ways_are_refused_with_the_known_ones(small, how, error, message: str) -> None:
    with pytest.raises(error, match=message):
        set_bands(small, **how)


def test_a_fold_without_lists_is_refused(write_set, tmp_path) -> None:
    listed = next(smiles for smiles, fold in MEASURED.items() if fold == "train")
    files = write_set(lists={listed: [*ISOMERS[listed], listed]})
    prepared, _ = prepare(
        files.spectra, files.candidates, tmp_path / "made", PrepareOptions(), jobs=1
    )
    assert len(set_bands(prepared, fold="train").low) == 1
    with pytest.raises(DatasetError, match="no test molecule has mass candidates"):
        set_bands(prepared, fold="test")
