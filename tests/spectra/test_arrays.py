import base64
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import SpectrumError
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra.formats.xml import decode_array


def encoded(values: object, kind: str, packed: bool = False) -> str:
    data = np.asarray(values, dtype=kind).tobytes()
    return base64.b64encode(zlib.compress(data) if packed else data).decode()


@given(
    st.lists(st.integers(-1000, 1000), max_size=20),
    st.sampled_from(["<f4", "<f8", ">f4", ">f8", "<i4", "<i8"]),
    st.booleans(),
)
def test_numbers_are_those_encoded(values: list[int], kind: str, packed: bool) -> None:
    compression = "zlib compression" if packed else "no compression"
    assert decode_array(encoded(values, kind, packed), kind, compression).tolist() == values


def test_white_space_is_allowed() -> None:
    text = encoded([1.0, 2.0], "<f8")
    assert decode_array(f"\n {text[:5]}\n{text[5:]} ", "<f8").tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "compression", "message"),
    [
        ("AAAA!AAA", "no compression", "cannot be decoded"),
        ("AAAA\xe9", "no compression", "cannot be decoded"),
        ("AAA", "no compression", "cannot be decoded"),
        ("AAAA", "no compression", "3 bytes"),
        ("AAAA", "zlib compression", "cannot be decoded"),
        (encoded([1.0, 2.0], "<f8", True)[:12], "zlib compression", "cut short"),
        ("AAAA", "truncation, delta prediction and zlib compression", "not known"),
        ("AAAA", "MS-Numpress linear prediction compression", "pip install pynumpress"),
    ],
)
def test_damage_is_said(text: str, compression: str, message: str) -> None:
    with pytest.raises(SpectrumError, match=message):
        decode_array(text, "<f8", compression)


@pytest.mark.parametrize("values_a_peak", [1, 2])
def test_the_most_peaks_are_read_and_one_more_is_refused(values_a_peak: int) -> None:
    values = np.ones(MAX_PEAKS * values_a_peak)
    for packed, compression in ((True, "zlib compression"), (False, "no compression")):
        text = encoded(values, "<f8", packed)
        assert len(decode_array(text, "<f8", compression, values_a_peak)) == len(values)
        text = encoded([*values, 1.0], "<f8", packed)
        with pytest.raises(SpectrumError, match="more than 100,000 peaks"):
            decode_array(text, "<f8", compression, values_a_peak)


def test_a_packed_gigabyte_is_never_unpacked() -> None:
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(10_000_000)) for _ in range(100)) + packer.flush()
    text = base64.b64encode(data).decode()
    tracemalloc.start()
    with pytest.raises(SpectrumError, match="more than 100,000 peaks"):
        decode_array(text, "<f8", "zlib compression")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
