"""SIRIUS .ms files: ``>key value`` lines, and blocks of peaks under ``>collision`` or ``>ms2``."""

from collections.abc import Iterator

import numpy as np

from mzseek.core.errors import Reason
from mzseek.io import LongLine, Source, text_lines
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra.records import (
    IS_PAIRED,
    MS1_PEAKS,
    PeakBlock,
    Record,
    UniqueNames,
    with_time_unit,
)

_MS1_BLOCKS = {"ms1", "ms1peaks", "ms1merged"}
_MS2_BLOCKS = {"ms2", "ms2peaks", "ms2merged", "collision", "ce"}
_NAMES = {
    "compound": "compound_name",
    "parentmass": "precursor_mz",  # SIRIUS calls the ion's m/z so
    "ionization": "adduct",
    "ion": "adduct",
    "instrumentation": "instrument_type",
}
_MAX_HELD_BLOCKS = 1_000
_MAX_MS1_PEAKS = 10_000


def read(source: Source) -> Iterator[Record]:
    """Read one record for each block of peaks; a compound's fields hold for all of its blocks.

    The blocks of a compound have one ``feature_id``, and its MS1 peaks as ``ms1_peaks``
    (``mz:intensity`` pairs, with blanks between). MS1 blocks may come last, so blocks are held back
    until the compound ends, up to a bound.
    """
    compound = _Compound()
    block: Record | None = None
    peaks = PeakBlock()
    blocks = 0
    names = UniqueNames()
    with source.open() as stream:
        for number, line in text_lines(stream):
            text = line.strip()
            if not text or text[0] == "#":
                continue
            if text[0] != ">":
                if block is None:
                    blocks += 1
                    block, peaks = _begin(source, blocks, number, compound), PeakBlock()
                    reason = "has peaks that belong to no block (>ms2, >collision)"
                    block.refuse(reason, "malformed")
                if isinstance(line, LongLine):
                    block.refuse_line(number)
                else:
                    peaks.add(number, text)
                continue
            key, _, value = text[1:].replace("\t", " ").partition(" ")
            key, value = key.lower(), value.strip()
            is_block = key in _MS1_BLOCKS or key in _MS2_BLOCKS
            if block is not None and (is_block or key == "compound"):
                compound.hold(_finish(block, peaks, compound))
                block = None
                if compound.is_full:
                    yield from compound.release(names)
            if is_block:
                blocks += 1
                compound.blocks += 1
                block, peaks = _begin(source, blocks, number, compound), PeakBlock()
                block.fields["ms_level"] = "1" if key in _MS1_BLOCKS else "2"
                if key in _MS2_BLOCKS:
                    block.add("collision_energy", value)
                elif key == "ms1merged":
                    compound.ms1 = None  # takes the place of single scans
            elif key == "compound":
                if compound.is_empty:
                    yield _without_peaks(source, compound)
                yield from compound.release(names)
                compound = _Compound(number)
            if isinstance(line, LongLine):
                compound.shared.refuse_line(number)
            elif not is_block:
                compound.add(key, value)
    if block is not None:
        compound.hold(_finish(block, peaks, compound))
    elif compound.is_empty:
        yield _without_peaks(source, compound)
    yield from compound.release(names)


class _Compound:
    """Fields and finished blocks of the compound that is being read."""

    def __init__(self, line: int = 0) -> None:
        self.line = line
        self.blocks = 0
        self.shared = Record("compound")
        self.ms1: str | None = None  # peaks of >ms1merged, or else of the first MS1 block
        self._held: list[Record] = []
        self._held_size = 0
        self._feature = ""

    @property
    def is_empty(self) -> bool:
        """Whether it was begun and has no block of peaks."""
        return self.line > 0 and self.blocks == 0

    @property
    def is_full(self) -> bool:
        """Whether no more blocks may be held."""
        return len(self._held) >= _MAX_HELD_BLOCKS or self._held_size > MAX_PEAKS

    def add(self, key: str, value: str) -> None:
        if key == "rt":
            value = with_time_unit(value, "s")  # as SIRIUS defines it
        self.shared.add(_NAMES.get(key, key), value)

    def hold(self, block: Record) -> None:
        """Keep a finished block until the compound ends."""
        self._held.append(block)
        energy = block.fields.get("collision_energy", "")
        self._held_size += np.size(block.mz) + len(block.fields) + len(energy)
        if block.fields.get("ms_level") == "1" and block.problem is None and self.ms1 is None:
            mz, intensities = np.asarray(block.mz), np.asarray(block.intensities)
            if 0 < mz.size <= _MAX_MS1_PEAKS:
                pairs = zip(mz.tolist(), intensities.tolist(), strict=True)
                self.ms1 = " ".join(f"{m!r}:{i!r}" for m, i in pairs)

    def release(self, names: UniqueNames) -> Iterator[Record]:
        """Give out the blocks that are held, with what they share.

        ``names`` are the features of the file: two compounds of one name are two of them.
        """
        if self._held and not self._feature:
            self._feature = names.take(self.shared.fields.get("compound_name") or "compound")
        for block in self._held:
            if block.fields.get("ms_level") == "2":
                block.fields.setdefault("feature_id", self._feature)
                block.fields.setdefault("title", block.fallback_name)
                if self.ms1:
                    block.fields[MS1_PEAKS] = self.ms1
            elif self.ms1:
                block.fields[IS_PAIRED] = "yes"
            yield block
        self._held, self._held_size = [], 0


def _begin(source: Source, blocks: int, number: int, compound: _Compound) -> Record:
    name = f"{compound.shared.fields.get('compound_name') or 'compound'} block {blocks}"
    return Record(f"{source.name}: block {blocks} (line {number})", fallback_name=name)


def _without_peaks(source: Source, compound: _Compound) -> Record:
    where = f"{source.name}: compound (line {compound.line})"
    reason = Reason("has no block of peaks", "no-peaks")
    return Record(where, problem=compound.shared.problem or reason)


def _finish(block: Record, peaks: PeakBlock, compound: _Compound) -> Record:
    shared = compound.shared
    for name in shared.fields:
        # All values of what must be one, lest another compound's be lost with its own line.
        for value in (shared.fields[name], *shared.others.get(name, [])):
            block.add(name, value)
    block.problem = block.problem or shared.problem
    peaks.fill(block)
    return block
