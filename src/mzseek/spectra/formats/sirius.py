"""SIRIUS .ms files: ``>key value`` lines, and blocks of peaks under ``>collision`` or ``>ms2``."""

import re
from collections.abc import Iterator

from mzseek.files import Source, text_lines
from mzseek.spectra.formats.peak_block import PeakBlock
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
    shared: dict[str, str] = {}
    block: Record | None = None
    peaks = PeakBlock()
    blocks = blocks_of_compound = 0
    begun = 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            text = line.strip()
            if not text or text[0] == "#":
                continue
            if text[0] != ">":
                if block is None:
                    blocks += 1
                    block, peaks = _begin(source, blocks, number, shared), PeakBlock()
                    block.fault = "has peaks that belong to no block (>ms2, >collision)"
                peaks.add(number, text)
                continue
            key, _, value = text[1:].replace("\t", " ").partition(" ")
            key, value = key.lower(), value.strip()
            is_block = key in _MS1_BLOCKS or key in _MS2_BLOCKS
            if block is not None and (is_block or key == "compound"):
                yield _finish(block, peaks, shared)
                block = None
            if is_block:
                blocks += 1
                blocks_of_compound += 1
                block, peaks = _begin(source, blocks, number, shared), PeakBlock()
                block.fields["ms_level"] = "1" if key in _MS1_BLOCKS else "2"
                if key in _MS2_BLOCKS:
                    block.add("collision_energy", value)
            elif key == "compound":
                if begun and not blocks_of_compound:
                    yield _without_peaks(source, begun)
                shared, begun, blocks_of_compound = {"compound_name": value}, number, 0
            elif value:
                shared.setdefault(_NAMES.get(key, key), value)
    if block is not None:
        yield _finish(block, peaks, shared)
    elif begun and not blocks_of_compound:
        yield _without_peaks(source, begun)


def _begin(source: Source, blocks: int, number: int, shared: dict[str, str]) -> Record:
    name = f"{shared.get('compound_name') or 'compound'} block {blocks}"
    return Record(f"{source.name}: block {blocks} (line {number})", fallback_name=name)


def _without_peaks(source: Source, number: int) -> Record:
    return Record(f"{source.name}: compound (line {number})", fault="has no block of peaks")


def _finish(block: Record, peaks: PeakBlock, shared: dict[str, str]) -> Record:
    for key, value in shared.items():
        block.add(key, value)
    peaks.fill(block)
    return block
