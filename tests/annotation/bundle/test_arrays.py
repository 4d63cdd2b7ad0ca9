"""Arrays in one file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mzseek.annotation.bundle.arrays import Arrays, write_arrays
from mzseek.errors import BundleError

TYPES = st.sampled_from(["i1", "u1", "i4", "u2", "i8", "f4", "f8", "?", "S5"])


@given(array=hnp.arrays(TYPES, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0)))
def test_every_array_comes_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray
) -> None:
    path = tmp_path_factory.mktemp("arrays") / "a.bin"
    write_arrays(path, {"a": array})
    again = Arrays(path)["a"]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    mz = np.rint(np.sort(rng.uniform(50, 500, 2000)) * 1e5) / 1e5
    path = tmp_path / "arrays.bin"
    write_arrays(path, {"a/mz": mz, "b/mz": mz.copy(), "a/weights": rng.normal(size=(3, 4))})
    return path


def test_an_array_that_is_there_already_is_stored_and_held_once(written: Path) -> None:
    arrays = Arrays(written)
    assert arrays["a/mz"] is arrays["b/mz"]
    assert written.stat().st_size < 2000 * 4
    assert sorted(arrays) == ["a/mz", "a/weights", "b/mz"]
    assert len(arrays) == 3


def test_arrays_below_a_prefix(written: Path) -> None:
    own = Arrays(written).under("a/")
    assert sorted(own) == ["mz", "weights"]
    assert len(own) == 2
    assert own["weights"].shape == (3, 4)
    with pytest.raises(KeyError):
        own["nothing"]


def test_the_same_arrays_give_the_same_bytes(tmp_path: Path) -> None:
    arrays = {"a": np.arange(100), "b": np.linspace(0, 1, 7)}
    for name in ("one", "two"):
        write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="a: holds object, which is not written"):
        write_arrays(tmp_path / "x", {"a": np.array([None])})


def test_damage_is_told(written: Path) -> None:
    whole = written.read_bytes()
    place = len(whole) - 40
    written.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    with pytest.raises(BundleError, match="weights is damaged"):
        dict(Arrays(written).items())
    written.write_bytes(whole[:-10])
    with pytest.raises(BundleError, match=r"weights is damaged \(lengths that do not fit\)"):
        dict(Arrays(written).items())
    written.write_bytes(b"something else entirely")
    with pytest.raises(BundleError, match="is no file of arrays, or of a newer version"):
        Arrays(written)
    with pytest.raises(BundleError, match="cannot be read"):
        Arrays(written.parent / "gone.bin")


def test_a_header_that_promises_too_much_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole.replace(b'"shape":[2000]', b'"shape":[9000]'))
    with pytest.raises(BundleError, match="mz is damaged"):
        Arrays(written)["a/mz"]
