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
    compound, blocks = "", 0
    with source.open() as stream:
        for number, line in text_lines(stream):
            text = line.strip()
            if not text:
                continue
            if text[0] not in ">#":
                if block is not None:
                    peaks.add(number, text)
                continue
            key, _, value = text.lstrip(">#").partition(" ")
            key = key.lower()
            begins_block = text[0] == ">" and key in _MS1_BLOCKS | _MS2_BLOCKS
            if block is not None and (begins_block or key == "compound"):
                yield _finish(block, peaks, shared)
                block = None
            if begins_block:
                blocks += 1
                block, peaks = Record(f"{source.name}: block {blocks} (line {number})"), PeakBlock()
                block.fields["ms_level"] = "1" if key in _MS1_BLOCKS else "2"
                block.fallback_name = f"{compound or 'compound'} block {blocks}"
                if key in _MS2_BLOCKS and value.strip():
                    block.add("collision_energy", value)
            elif key == "compound":
                shared, compound, blocks = {"compound_name": value.strip()}, value.strip(), blocks
            elif value.strip():
                shared.setdefault(_NAMES.get(key, key), value.strip())
    if block is not None:
        yield _finish(block, peaks, shared)


def _finish(block: Record, peaks: PeakBlock, shared: dict[str, str]) -> Record:
    for key, value in shared.items():
        block.add(key, value)
    peaks.fill(block)
    return block
