"""Arrays in one file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mzseek.bundle.arrays import Arrays, write_arrays
from mzseek.core.errors import BundleError

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


def with_entry(path: Path, name: str, **changes: Any) -> Path:
    """The file with other facts about an array in its header."""
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    length = int.from_bytes(data[first : first + 8], "little")
    header = json.loads(data[first + 8 : first + 8 + length])
    header[name] |= changes
    text = json.dumps(header).encode()
    path.write_bytes(
        data[:first] + len(text).to_bytes(8, "little") + text + data[first + 8 + length :]
    )
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"units": 0}, "units of 0, expected one of"),
        ({"units": 7}, "units of 7, expected one of"),
        ({"shape": [2**40]}, "it is too large"),
        ({"shape": [2**62, 4]}, "it is too large"),
        ({"shape": [2]}, "lengths that do not fit"),
        ({"width": 9}, "it is too large"),
        ({"dtype": "O"}, "type object"),
        ({"bytes": 0}, "is damaged"),
    ],
)
def test_headers_of_impossible_arrays_are_refused(tmp_path: Path, changes, reason: str) -> None:
    write_arrays(tmp_path / "a.bin", {"mz": np.array([50.25, 60.5, 70.75])})
    opened = Arrays(with_entry(tmp_path / "a.bin", "mz", **changes))
    with pytest.raises(BundleError, match=reason):
        _ = opened["mz"]


def test_one_frame_that_is_said_to_be_two_arrays_is_read_as_both(tmp_path: Path) -> None:
    same = np.array([1.0, 2.0, 3.0, 4.0])
    write_arrays(tmp_path / "a.bin", {"one": same, "two": same})
    opened = Arrays(with_entry(tmp_path / "a.bin", "two", shape=[2, 2]))
    assert (opened["one"].shape, opened["two"].shape) == ((4,), (2, 2))
