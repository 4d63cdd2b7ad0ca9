from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import DatabaseError
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.extra_lists import (
    ExtraMolecules,
    check_same_fingerprints,
    set_bits,
    standard_forms,
)
from mzseek.datasets.prepared import Prepared
from mzseek.parallel import LocalEngine

NEW = ["CCCCC(=O)OCC", "c1ccc2[nH]ccc2c1", "CC(C)Cc1ccc(C)cc1"]


@pytest.fixture
def store(small: Prepared, tmp_path: Path) -> Database:
    """Some molecules of the folder, and three that it does not have."""
    path = tmp_path / "molecules.smi"
    path.write_text("".join(f"{smiles}\n" for smiles in [*list(small.smiles)[:5], *NEW]))
    return build_database(
        file_sources([path]), tmp_path / "store", fingerprint="maccs", engine=LocalEngine(1)
    )


def test_what_is_there_keeps_its_place_and_others_come_after(
    small: Prepared, store: Database
) -> None:
    table = ExtraMolecules(small, store)
    smiles = store.rows(np.arange(len(store)), ["smiles"])["smiles"].to_pylist()
    rows = np.concatenate([np.arange(len(store)), [0, 3, 3]])
    places = table.places_of_rows(rows)
    old = {text: place for place, text in enumerate(small.smiles)}
    new = table.new_molecules()
    every = [*small.smiles, *new.smiles]
    assert [every[place] for place in places.tolist()] == [smiles[row] for row in rows.tolist()]
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        assert place == old.get(smiles[row], place)
    assert sorted(new.smiles) == sorted(set(smiles) - set(old))
    bits = np.split(new.bits, np.cumsum(new.bit_counts)[:-1])
    for own, expected in zip(bits, fingerprints(new.smiles, "maccs").toarray(), strict=True):
        assert own.tolist() == np.flatnonzero(expected).tolist()


def test_truths_are_there_as_the_store_has_them_or_as_they_are_standardised(
    small: Prepared, store: Database
) -> None:
    forms = standard_forms(small, engine=LocalEngine(1))
    known = {text: row for row, text in enumerate(store.rows(
        np.arange(len(store)), ["smiles"])["smiles"].to_pylist())}  # fmt: skip
    own = np.array([known.get(form.described.smiles, -1) for form in forms.values()])
    assert (own >= 0).any()
    assert (own < 0).any()
    table = ExtraMolecules(small, store)
    places = table.places_of_truths(own, list(forms.values()))
    every = [*small.smiles, *table.new_molecules().smiles]
    expected = [form.described.smiles for form in forms.values()]
    assert [every[place] for place in places.tolist()] == expected


def test_set_bits_are_those_of_the_store(store: Database) -> None:
    table = store.rows(np.arange(len(store)), ["smiles", "fingerprint"])
    counts, bits = set_bits(table["fingerprint"])
    expected = fingerprints(table["smiles"].to_pylist(), "maccs")
    assert counts.tolist() == np.diff(expected.indptr).tolist()
    rows = [np.sort(expected[[n]].indices).tolist() for n in range(len(store))]
    assert [part.tolist() for part in np.split(bits, np.cumsum(counts)[:-1])] == rows


def test_other_fingerprints_are_refused(small: Prepared, store: Database, tmp_path: Path) -> None:
    check_same_fingerprints(small, store)
    other = build_database(
        file_sources([tmp_path / "molecules.smi"]), tmp_path / "other", engine=LocalEngine(1)
    )
    with pytest.raises(DatabaseError, match=r"has morgan2 .* build one with --fingerprint maccs"):
        check_same_fingerprints(small, other)
