"""Drawing candidates for measured molecules from a pool."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from mzseek.datasets.forms import Form, standard_forms
from mzseek.datasets.pool import MoleculePool
from mzseek.rejects import Report
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress


@dataclass(frozen=True)
class DrawOptions:
    """How candidate lists are drawn."""

    seed: int = 0
    ppm: float = 10.0
    most: int = 256
    keep_stereo: bool = False


class _List:
    """A candidate list in the making: molecules are taken from a shuffled draw until it is full."""

    def __init__(
        self, truth: Form, setting: str, found: npt.NDArray[np.int64], options: DrawOptions
    ) -> None:
        self.truth = truth
        self._setting = setting
        self._options = options
        self._rng = np.random.default_rng(
            [options.seed, zlib.crc32(f"{truth.identity}{setting}".encode())]
        )
        self._left = self._rng.permutation(found)
        self._blocks = {truth.block}
        self._chosen: list[str] = []

    def next_draw(self) -> npt.NDArray[np.int64]:
        """Pool molecules to look at next; none once the list is full or the pool exhausted."""
        missing = self._options.most - 1 - len(self._chosen)
        size = missing * 5 // 4 + 8 if missing > 0 else 0
        draw, self._left = self._left[:size], self._left[size:]
        return draw

    def take(self, forms: Iterable[Form | None]) -> None:
        """Keep those that fit and are new."""
        for form in forms:
            if form is None or form.block in self._blocks:
                continue
            if len(self._chosen) < self._options.most - 1 and self._fits(form):
                self._blocks.add(form.block)
                self._chosen.append(form.smiles)

    def _fits(self, form: Form) -> bool:
        if self._setting == "formula":
            return form.formula == self.truth.formula
        return abs(form.mass - self.truth.mass) <= self.truth.mass * (self._options.ppm * 1e-6)

    def finished(self) -> list[str]:
        """The candidates, with the truth somewhere among them."""
        place = int(self._rng.integers(len(self._chosen) + 1))
        return [*self._chosen[:place], self.truth.smiles, *self._chosen[place:]]


def draw_candidates(
    forms: list[Form],
    pool: MoleculePool,
    options: DrawOptions,
    report: Report,
    jobs: int | None,
    progress: Progress,
) -> dict[str, dict[str, list[str]]]:
    """Candidate lists by mass and by formula, in standard form, by the truth's SMILES."""
    lists: dict[str, list[_List]] = {
        "mass": [
            _List(form, "mass", pool.by_mass(form.mass, options.ppm), options) for form in forms
        ],
        "formula": [
            _List(form, "formula", pool.by_formula(form.formula), options) for form in forms
        ],
    }
    standard: dict[int, Form | None] = {}
    # Some turn out to be the truth, or each other, once standardised: then more are drawn.
    while True:
        draws = [(each, each.next_draw()) for group in lists.values() for each in group]
        needed = np.unique(np.concatenate([np.empty(0, np.int64), *(draw for _, draw in draws)]))
        new = [int(place) for place in needed if int(place) not in standard]
        _standardise_pool(standard, pool, new, options, report, jobs, progress)
        for each, draw in draws:
            each.take(standard[int(place)] for place in draw)
        if not needed.size:
            break
    return {
        setting: {each.truth.smiles: each.finished() for each in group}
        for setting, group in lists.items()
    }


def _standardise_pool(
    standard: dict[int, Form | None],
    pool: MoleculePool,
    places: list[int],
    options: DrawOptions,
    report: Report,
    jobs: int | None,
    progress: Progress,
) -> None:
    work = partial(standard_forms, keep_stereo=options.keep_stereo)
    done = 0
    smiles = [pool.smiles[place] for place in places]
    for batch, forms in in_batches(work, smiles, 1000, jobs):
        for place, form in zip(places[done : done + len(batch)], forms, strict=True):
            if isinstance(form, str):
                report(f"molecule pool: {pool.smiles[place][:60]}", form)
            standard[place] = None if isinstance(form, str) else form
        done += len(batch)
        progress("candidates", done, len(places))
