"""Pools of simulated molecules, of which the truth was drawn by a prior that is known; a store."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.decoys import DecoyLists
from mzseek.evidence.prior import prior_features
from mzseek.parallel import LocalEngine

from ...conftest import SINGLE
from ...molecules import MOLECULES
from ..test_blind import random_bits

MISSING = frozenset(SINGLE.values())


@dataclass(frozen=True)
class Simulated:
    """Pools, and the score of every candidate by the prior that truths were drawn with."""

    lists: DecoyLists
    prior: np.ndarray


def with_other_truths(lists: DecoyLists, which: np.ndarray) -> DecoyLists:
    """The same lists, where in some of them the next candidate is the truth."""
    labels = lists.labels.copy()
    for start, count in zip(lists.ragged.starts[which], lists.counts[which], strict=True):
        labels[start : start + count] = np.roll(labels[start : start + count], 1)
    return DecoyLists(lists.rows, lists.members, lists.counts, labels)


@pytest.fixture
def simulate():
    def make(seed: int = 0, lists: int = 900, size: int = 60, strength: float = 0.5) -> Simulated:
        rng = np.random.default_rng(seed)
        molecules, bits = 5000, 40
        rows = prior_features(random_bits(rng, molecules, bits), rng.poisson(6, (molecules, 1)))
        prior = rows @ np.concatenate([rng.normal(0, strength, bits), [0.0], [0.1]])
        counts = rng.integers(size // 2, size, lists)
        members = np.concatenate([rng.choice(molecules, n, replace=False) for n in counts])
        labels = np.zeros(len(members), bool)
        for end, n in zip(np.cumsum(counts), counts, strict=True):
            here = prior[members[end - n : end]]
            labels[end - n + int((here + rng.gumbel(size=n)).argmax())] = True
        return Simulated(DecoyLists(rows, members, counts, labels), prior[members])

    return make


@pytest.fixture(scope="session")
def store(small_set, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The molecules of the small folder but for two that it measures, and others."""
    own = list(Prepared.open(small_set.folder).smiles)
    others = MOLECULES[:400]
    folder = tmp_path_factory.mktemp("database")
    path = folder / "molecules.smi"
    listed = [each for each in dict.fromkeys([*own, *others]) if each not in MISSING]
    path.write_text("".join(f"{each}\n" for each in listed))
    return build_database(
        file_sources([path]), folder / "store", fingerprint="maccs", engine=LocalEngine(1)
    )


@pytest.fixture
def folder(small_set, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_set.folder, tmp_path / "prepared"))
