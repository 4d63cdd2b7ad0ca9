"""Binary arrays of mzML and mzXML: base64 text, often packed, to numbers."""

import base64
import binascii
import importlib
import zlib

import numpy as np
import numpy.typing as npt

from mzseek.errors import SpectrumError
from mzseek.files.limits import MAX_PEAKS

# Decoders of the pynumpress package, for those who have it installed.
_NUMPRESS = {
    "MS-Numpress linear prediction compression": "decode_linear",
    "MS-Numpress positive integer compression": "decode_pic",
    "MS-Numpress short logged float compression": "decode_slof",
}
_THEN_ZLIB = " followed by zlib compression"


def decode_array(
    text: str, kind: str, compression: str = "no compression", values_a_peak: int = 1
) -> npt.NDArray[np.generic]:
    """Numbers of an array, at most `MAX_PEAKS` peaks of them whatever it would unfold to.

    Parameters
    ----------
    text : str
        Base64, white space allowed.
    kind : str
        The numbers' type, in numpy's words (``<f8``).
    compression : str
        As mzML names it.
    values_a_peak : int
        2 where m/z and intensity take turns.

    Raises
    ------
    SpectrumError
        Damaged, past the bound, or packed in a way that is not known.

    Examples
    --------
    >>> decode_array("AAAAAAAA8D8=", "<f8").tolist()
    [1.0]
    """
    width = np.dtype(kind).itemsize
    most = MAX_PEAKS * values_a_peak
    data = _from_base64(text)
    if compression == "zlib compression":
        data = _inflate(data, most * width)
    elif compression != "no compression":
        return _from_numpress(data, compression, most)
    if len(data) > most * width:
        raise _too_many()
    if len(data) % width:
        raise SpectrumError(f"its peaks cannot be decoded ({len(data)} bytes of {kind} numbers)")
    return np.frombuffer(data, dtype=kind)


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SpectrumError(f"its peaks cannot be decoded ({error})") from error


def _inflate(data: bytes, most: int) -> bytes:
    """Unpacked bytes; never more than the most is unpacked."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(data, most + 1)
    except zlib.error as error:
        raise SpectrumError(f"its peaks cannot be decoded ({error})") from error
    if len(unpacked) > most:
        raise _too_many()
    if not unpacker.eof:
        raise SpectrumError("its peaks cannot be decoded (packed data that was cut short)")
    return unpacked


def _from_numpress(data: bytes, compression: str, most: int) -> npt.NDArray[np.generic]:
    inner = compression.removesuffix(_THEN_ZLIB)
    if inner not in _NUMPRESS:
        raise SpectrumError(f"its peaks are packed in a way that is not known ({compression})")
    try:
        decoder = getattr(importlib.import_module("pynumpress"), _NUMPRESS[inner])
    except ImportError as error:
        raise SpectrumError(
            f"its peaks are packed by {inner}: pip install pynumpress, or convert with zlib"
        ) from error
    if inner != compression:
        data = _inflate(data, most * 8)
    # A number takes half a byte at least.
    if len(data) > most * 8:
        raise _too_many()
    try:
        return np.asarray(decoder(np.frombuffer(data, dtype=np.uint8)))
    except (ValueError, RuntimeError) as error:
        raise SpectrumError(f"its peaks cannot be decoded ({error})") from error


def _too_many() -> SpectrumError:
    return SpectrumError(f"has more than {MAX_PEAKS:,} peaks")
