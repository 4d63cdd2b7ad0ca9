import subprocess
import sys

import numpy as np
import pytest

from mzseek.core.errors import CacheError
from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices

SETTINGS = ("mass", "formula")


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
    for mine, theirs in zip(
        slices.peaks(asked),
        (batch.spectra.mz, batch.spectra.intensities, batch.spectra.real,
         batch.spectra.precursor_mz),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(mine, theirs.numpy())
    np.testing.assert_array_equal(dense(slices.targets(asked)), batch.target.dense().numpy())


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
