"""Drawing candidates for measured molecules from a database."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.chem.describe import DescribedMolecule
from mzseek.database import Database
from mzseek.database.found import source_ranks
from mzseek.errors import DatasetError
from mzseek.work.progress import Progress, silent


@dataclass(frozen=True)
class DrawOptions:
    """How candidate lists are drawn.

    Attributes
    ----------
    seed : int
    ppm : float
        Window of the lists by mass.
    most : int
        Candidates in a list, the truth included.
    keep_stereo : bool
        Whether the truths have stereo: the database must have it, or lack it, as they do.
    priorities : tuple of str
        Sources that lists are filled from first.
    """

    seed: int = 0
    ppm: float = 10.0
    most: int = 256
    keep_stereo: bool = False
    priorities: tuple[str, ...] = ()


def draw_candidates(
    truths: Sequence[DescribedMolecule],
    database: Database,
    setting: str,
    options: DrawOptions,
    progress: Progress = silent,
) -> Iterator[tuple[str, list[str]]]:
    """Candidate lists of one setting, one at a time, each with its truth's SMILES.

    A list is a random draw from all molecules of the database that have the truth's mass or
    formula, those of wanted sources first, none with the truth's key, no key twice. It depends on
    the seed, the truth and what the database has of that mass or formula, and on nothing else.

    Parameters
    ----------
    truths : sequence of DescribedMolecule
        In the standard form in which the database has its own.
    database : Database
    setting : "mass" or "formula"
    options : DrawOptions
    progress : callable of (stage, done, total)
    """
    for done, truth in enumerate(truths, 1):
        yield truth.smiles, _draw(truth, database, setting, options)
        progress(f"{setting} candidates", done, len(truths))


def check_drawable(database: Database, options: DrawOptions) -> None:
    """Refuse a database whose molecules would tell the truth by their form, or lack a source.

    Raises
    ------
    DatasetError
        It has stereo in its SMILES and the data set has not, or the other way round.
    DatabaseError
        No molecule comes from one of the sources to be preferred.
    """
    if database.keep_stereo and not options.keep_stereo:
        raise DatasetError(
            f"{database.folder}: has stereo in its SMILES, which truths without it would be known "
            "by; give --keep-stereo, too, or a database built without it"
        )
    if options.keep_stereo and not database.keep_stereo:
        raise DatasetError(
            f"{database.folder}: has no stereo in its SMILES, and truths with it would be known by "
            "it; build the database with --keep-stereo, too"
        )
    database.require_sources(options.priorities)


def _draw(
    truth: DescribedMolecule, database: Database, setting: str, options: DrawOptions
) -> list[str]:
    """The candidates of one truth, the truth somewhere among them."""
    rng = np.random.default_rng([options.seed, _number_of(truth, setting)])
    rows = (
        database.rows_by_formula(truth.formula)
        if setting == "formula"
        else database.rows_by_mass(truth.mass, options.ppm)
    )
    keys, smiles, order = _shuffled(rows, database, options.priorities, rng)
    seen = {truth.key}
    chosen: list[str] = []
    for place in order:
        if len(chosen) == options.most - 1:
            break
        if keys[place] not in seen:
            seen.add(keys[place])
            chosen.append(smiles[place])
    position = int(rng.integers(len(chosen) + 1))
    return [*chosen[:position], truth.smiles, *chosen[position:]]


def _number_of(truth: DescribedMolecule, setting: str) -> int:
    """A number that tells lists apart: molecules of one set must not share their draws."""
    return zlib.crc32(f"{(truth.block, round(truth.mass, 3))}{setting}".encode())


def _shuffled(
    rows: npt.NDArray[np.int64],
    database: Database,
    priorities: Sequence[str],
    rng: np.random.Generator,
) -> tuple[list[str], list[str], npt.NDArray[np.int64]]:
    """Keys and SMILES of rows, and the order to take them in: at random, wanted sources first."""
    columns = ["key", "smiles", "sources"] if priorities else ["key", "smiles"]
    table = database.rows(rows, columns)
    order = rng.permutation(len(rows))
    if priorities:
        order = order[np.argsort(source_ranks(table, priorities)[order], kind="stable")]
    return table["key"].to_pylist(), table["smiles"].to_pylist(), order
