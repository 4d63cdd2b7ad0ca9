"""Inputs by number: the same number and seed always make the same file."""

import random
from dataclasses import dataclass

from mutations import SMALL, grow, pack
from seeds import Seeds
from targets import NAMES, PACKABLE, SEEDS_OF, WEIGHTS

_TARGETS = [*WEIGHTS]
_SHARES = [*WEIGHTS.values()]


@dataclass(frozen=True)
class Sizes:
    """How large inputs get.

    Attributes
    ----------
    most : int
        Bytes, unpacked.
    one_large_in : int
        One input in so many has a megabyte or more.
    """

    most: int = 50_000_000
    one_large_in: int = 5_000


@dataclass(frozen=True)
class Input:
    """A file that a reader is given.

    Attributes
    ----------
    target : str
        The reader.
    name : str
        The file's.
    plain : bytes
        Its content, unpacked.
    stored : bytes
        Its content.
    is_whole : bool
        Packing did no damage, so that all of the content can be counted.
    """

    target: str
    name: str
    plain: bytes
    stored: bytes
    is_whole: bool


def make_input(seed: int, number: int, seeds: Seeds, sizes: Sizes) -> Input:
    """The input of a number."""
    rng = random.Random(seed << 40 | number)
    (target,) = rng.choices(_TARGETS, _SHARES)
    samples = seeds[SEEDS_OF.get(target, target)]
    data, other = rng.choice(samples), rng.choice(samples)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        data = rng.choice(SMALL)(rng, data, other)
    if rng.randrange(sizes.one_large_in) == 0 and target != "parquet":
        data = grow(rng, data, sizes.most)
    data = data[: sizes.most]
    name = NAMES[target]
    if rng.random() < 0.05:
        name = rng.choice([*NAMES.values(), "a", "a.xyz"])
    if target in PACKABLE and rng.random() < 0.1:
        stored, name, is_whole = pack(rng, data, name)
        return Input(target, name, data, stored, is_whole)
    return Input(target, name, data, data, True)
