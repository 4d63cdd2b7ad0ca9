"""SIRIUS .ms files: ``>key value`` lines, and blocks of peaks under ``>collision`` or ``>ms2``."""

import re
from collections.abc import Iterator

from mzseek.files import LongLine, Source, text_lines
from mzseek.spectra.formats.peak_block import PeakBlock, long_line
from mzseek.spectra.record import Record

_COMPOUND = re.compile(r"^>compound\b", re.MULTILINE | re.IGNORECASE)
_MS1_BLOCKS = {"ms1", "ms1peaks", "ms1merged"}
_MS2_BLOCKS = {"ms2", "ms2peaks", "ms2merged", "collision", "ce"}
_NAMES = {
    "compound": "compound_name",
    "parentmass": "precursor_mz",  # SIRIUS calls the ion's m/z so
    "ionization": "adduct",
    "ion": "adduct",
    "instrumentation": "instrument_type",
}


def looks_like(head: str) -> bool:
    """Whether the beginning of a file is SIRIUS's."""
    return _COMPOUND.search(head) is not None


def read(source: Source) -> Iterator[Record]:
    """One record for each block of peaks; a compound's fields hold for all of its blocks."""
    compound = _Compound()
    block: Record | None = None
    peaks = PeakBlock()
    blocks = 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            text = line.strip()
            if not text or text[0] == "#":
                continue
            if text[0] != ">":
                if block is None:
                    blocks += 1
                    block, peaks = _begin(source, blocks, number, compound), PeakBlock()
                    block.fault = "has peaks that belong to no block (>ms2, >collision)"
                if isinstance(line, LongLine):
                    block.fault = block.fault or long_line(number)
                else:
                    peaks.add(number, text)
                continue
            key, _, value = text[1:].replace("\t", " ").partition(" ")
            key, value = key.lower(), value.strip()
            is_block = key in _MS1_BLOCKS or key in _MS2_BLOCKS
            if block is not None and (is_block or key == "compound"):
                yield _finish(block, peaks, compound)
                block = None
            if is_block:
                blocks += 1
                compound.blocks += 1
                block, peaks = _begin(source, blocks, number, compound), PeakBlock()
                block.fields["ms_level"] = "1" if key in _MS1_BLOCKS else "2"
                if key in _MS2_BLOCKS:
                    block.add("collision_energy", value)
            elif key == "compound":
                if compound.is_empty:
                    yield _without_peaks(source, compound)
                compound = _Compound(number)
            if isinstance(line, LongLine):
                compound.shared.fault = compound.shared.fault or long_line(number)
            elif not is_block:
                compound.add(key, value)
    if block is not None:
        yield _finish(block, peaks, compound)
    elif compound.is_empty:
        yield _without_peaks(source, compound)


class _Compound:
    """What was said of the compound whose blocks come next."""

    def __init__(self, line: int = 0) -> None:
        self.line = line
        self.blocks = 0
        self.shared = Record("compound")

    @property
    def is_empty(self) -> bool:
        """Whether it was begun and has no block of peaks."""
        return self.line > 0 and self.blocks == 0

    def add(self, key: str, value: str) -> None:
        self.shared.add(_NAMES.get(key, key), value)


def _begin(source: Source, blocks: int, number: int, compound: _Compound) -> Record:
    name = f"{compound.shared.fields.get('compound_name') or 'compound'} block {blocks}"
    return Record(f"{source.name}: block {blocks} (line {number})", fallback_name=name)


def _without_peaks(source: Source, compound: _Compound) -> Record:
    where = f"{source.name}: compound (line {compound.line})"
    return Record(where, fault=compound.shared.fault or "has no block of peaks")


def _finish(block: Record, peaks: PeakBlock, compound: _Compound) -> Record:
    shared = compound.shared
    for name in shared.fields:
        # All values of what must be one, lest another compound's be lost with its own line.
        for value in (shared.fields[name], *shared.others.get(name, [])):
            block.add(name, value)
    block.fault = block.fault or shared.fault
    peaks.fill(block)
    return block
