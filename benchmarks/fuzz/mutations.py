"""What befalls files: damage to bytes, lines, records and numbers, other encodings and packings.

Each mutation takes a random generator, the content and another content of the same kind, and gives
the new content. They are plain functions of these, so that a finding can be made again from its
number.
"""

import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable, Sequence

import zstandard

Mutation = Callable[[random.Random, bytes, bytes], bytes]

NUMBERS = [
    b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"-1e999", b"1e-999", b"0", b"-0", b"-1", b"1e39",
    b"9" * 5000, b"0." + b"1" * 5000, b"1,234", b"1,234.5", b"1.2.3", b"0x10", b"1_000", b"1e5",
    b"2147483648", b"18446744073709551616", "\N{ARABIC-INDIC DIGIT FIVE}".encode(), b"", b"+",
    b"1e",    b"99999999999.99", b"1/2",
]  # fmt: skip
TOKENS = [
    b"\0", b"\r", b"\n", b"\r\n", b"\t", b"\x0b", b"\x1b[2J", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff",
    b'"', b"'", b"[", b"]", b"{", b"}", b",", b";", b":", b"=", b">", b"<", b"&", b"//", b"\\",
    b"\\u",    b"$$$$\n", b"BEGIN IONS\n", b"END IONS\n", b"Name: x\n", b"Num Peaks: 3\n",
    b"ACCESSION: x\n",
    b"PK$PEAK: m/z\n", b">compound x\n", b">ms2\n", b"<spectrum>", b"</spectrum>", b"<scan>",
    b"</scan>",    b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&#0;", b"&lt;", b"null", b"true",
    b"NaN", b"M  END\n",
    b"InChI=1S/", b"1S/CH4/h1H4", b"[M+H]+", b"[M+?]-", b"n/a", b"=cmd|' /C calc'!A0",
    "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), "\N{LINE SEPARATOR}".encode(), "ä€😀".encode(),
]  # fmt: skip
_NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BORDERS = re.compile(
    rb"(?=^BEGIN IONS|^Name:|^NAME:|^ACCESSION:|^>compound|^>ms|^>coll|<spectrum |<scan |\{\"s)",
    re.MULTILINE,
)


def flip_bits(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Some bits turned over."""
    changed = bytearray(data)
    for _unused in range(rng.choice((1, 1, 2, 8, 50))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """A stretch of random bytes."""
    place, size = _place(rng, data), rng.choice((1, 2, 4, 16, 64))
    return data[:place] + rng.randbytes(size) + data[place + size :]


def insert_token(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Something that means something, where it does not belong."""
    for _unused in range(rng.choice((1, 1, 3))):
        place = _place(rng, data)
        data = data[:place] + rng.choice(TOKENS) + data[place:]
    return data


def truncate(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """The end cut off, or the beginning."""
    place = _place(rng, data)
    return data[:place] if rng.random() < 0.8 else data[place:]


def delete(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """A stretch left out."""
    place, size = _place(rng, data), rng.choice((1, 1, 2, 5, 20, 200))
    return data[:place] + data[place + size :]


def duplicate(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """A stretch twice, or many times."""
    place, size = _place(rng, data), rng.choice((1, 5, 20, 200))
    stretch = data[place : place + size]
    return data[:place] + stretch * rng.choice((2, 2, 3, 50)) + data[place + size :]


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return data[: _place(rng, data)] + other[_place(rng, other) :]


def change_lines(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Lines left out, repeated, exchanged, joined, or blank."""
    lines = data.split(b"\n")
    return b"\n".join(_change_list(rng, lines, b""))


def change_records(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Records left out, repeated or exchanged, some of another file."""
    records = _BORDERS.split(data)
    if rng.random() < 0.3:
        records += _BORDERS.split(other)
    return b"".join(_change_list(rng, records, b"\n"))


def change_numbers(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Numbers that no instrument gives."""
    found = list(_NUMBER.finditer(data[:100_000]))
    for match in sorted(
        rng.sample(found, min(len(found), rng.choice((1, 1, 2, 5)))), key=lambda m: -m.start()
    ):
        data = data[: match.start()] + rng.choice(NUMBERS) + data[match.end() :]
    return data


def change_columns(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """A column twice, left out, or under another's name, in the header or in all rows."""
    mark = max((b"\t", b",", b";", b" "), key=lambda mark: data.split(b"\n", 1)[0].count(mark))
    rows = [line.split(mark) for line in data.split(b"\n")]
    width = len(rows[0])
    source, target = rng.randrange(width), rng.randrange(width)
    chosen = rows[: rng.choice((1, len(rows), rng.randrange(len(rows)) + 1))]
    way = rng.randrange(3)
    for row in chosen:
        if way == 0 and source < len(row):
            row.insert(target, row[source])
        elif way == 1 and source < len(row):
            del row[source]
        elif source < len(row) and target < len(row):
            row[target] = row[source]
    return b"\n".join(mark.join(row) for row in rows)


def nest(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Brackets or elements inside one another, closed or not."""
    opening, closing = rng.choice(
        [
            (b"[", b"]"),
            (b'{"a":', b"}"),
            (b"<a>", b"</a>"),
            (b"(", b")"),
            (b"C(", b")"),
            (b'"', b'"'),
        ]
    )
    depth = rng.choice((3, 30, 300, 3_000))
    place = _place(rng, data)
    middle = opening * depth + (b"1" + closing * depth if rng.random() < 0.5 else b"")
    return data[:place] + middle + data[place:]


def recode(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Another encoding, other line ends."""
    way = rng.randrange(6)
    text = data.decode("utf-8", "replace")
    if way == 0:
        return text.encode("utf-16")
    if way == 1:
        return text.encode("utf-16-le")
    if way == 2:
        return text.replace("a", "ä").encode("latin-1", "replace")
    if way == 3:
        return b"\xef\xbb\xbf" + data
    if way == 4:
        return data.replace(b"\n", b"\r\n")
    return data.replace(b"\n", b"\r")


SMALL: list[Mutation] = [
    flip_bits, flip_bits, overwrite, insert_token, insert_token, truncate, delete, duplicate,
    splice,    change_lines, change_lines, change_records, change_records, change_numbers,
    change_numbers,
    change_numbers, change_columns, nest, recode,
]  # fmt: skip


def grow(rng: random.Random, data: bytes, most: int) -> bytes:
    """A stretch of the content over and over, up to tens of megabytes."""
    size = int(10 ** rng.uniform(6, 7.7))
    size = min(size, most)
    way = rng.randrange(4)
    place = _place(rng, data)
    if way == 0:
        stretch = data
    elif way == 1:
        stretch = data[place : place + rng.choice((1, 2, 10, 100, 1000))] or b"x"
    elif way == 2:
        lines = data.split(b"\n")
        stretch = rng.choice(lines) + b"\n"
    else:
        stretch = rng.choice(TOKENS)
    return data[:place] + stretch * (size // len(stretch)) + data[place:]


def pack(rng: random.Random, data: bytes, name: str) -> tuple[bytes, str, bool]:
    """The content packed, the name it then has, and whether it is whole."""
    way = rng.randrange(5)
    if way == 0:
        packed, name = gzip.compress(data, 1, mtime=0), f"{name}.gz"
    elif way == 1:
        packed, name = zstandard.ZstdCompressor(level=1).compress(data), f"{name}.zst"
    elif way == 2:
        packed = gzip.compress(data[: len(data) // 2], 1) + gzip.compress(data[len(data) // 2 :], 1)
    else:
        inner = gzip.compress(data, 1, mtime=0) if way == 3 else data
        odd = rng.choice((name, f"../{name}", f"/{name}", f"a\\{name}", f"x/./{name}", f"é{name}"))
        packed, name = _zipped(odd + (".gz" if way == 3 else ""), inner), "a.zip"
    if rng.random() < 0.3:
        mutation = rng.choice((flip_bits, truncate, overwrite, delete))
        return mutation(rng, packed, packed), name, False
    return packed, name, True


def _zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)
    return buffer.getvalue()


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _change_list(rng: random.Random, parts: Sequence[bytes], blank: bytes) -> list[bytes]:
    changed = list(parts)
    for _unused in range(rng.choice((1, 1, 2, 4))):
        one, other = rng.randrange(len(changed)), rng.randrange(len(changed))
        way = rng.randrange(5)
        if way == 0 and len(changed) > 1:
            del changed[one]
        elif way == 1:
            changed.insert(other, changed[one])
        elif way == 2:
            changed[one], changed[other] = changed[other], changed[one]
        elif way == 3:
            changed.insert(one, blank)
        elif one + 1 < len(changed):
            changed[one : one + 2] = [changed[one] + changed[one + 1]]
    return changed
