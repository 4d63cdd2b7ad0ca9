"""Adding to a prepared folder: a segment with new molecules and candidate lists.

Nothing that was there is written anew. The arrays of the segment get names that the manifest does
not know yet; then the manifest is replaced, in one step: until then the folder is what it was, and
from then on it has the lists. What a process leaves that is killed in between is in no manifest,
and goes when the next one adds to the folder.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import CacheError
from mzseek.files import sole_writer
from mzseek.files.arrays import save_array
from mzseek.files.fault import naming_output
from mzseek.files.manifest import measured
from mzseek.files.owned import ensure_replaceable
from mzseek.prepared.layout import (
    KIND,
    LIST_PARTS,
    MANIFEST,
    WITH_SEGMENTS,
    Array,
    Facts,
    in_segment,
    is_leftover,
    list_array,
    path_of,
    segments_of,
)
from mzseek.prepared.reader import CandidateLists, Prepared
from mzseek.prepared.text_column import TextColumn
from mzseek.ragged import pointers


@dataclass(frozen=True)
class NewMolecules:
    """Molecules that a folder does not have yet.

    Attributes
    ----------
    smiles, formulas : list of str
    masses : float64 array
    blocks : S14 array
        First InChIKey blocks; empty where InChI has no name.
    bit_counts : int array
        Bits set in each fingerprint.
    bits : uint16 array
        These bits, rising, one molecule after the other.
    """

    smiles: list[str]
    formulas: list[str]
    masses: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.bytes_]
    bit_counts: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint16]


@contextmanager
def held_for_lists(prepared: Prepared, doing: str) -> Iterator[None]:
    """Hold a folder while lists are made for it, and make sure that it is as it was opened.

    Parameters
    ----------
    prepared : Prepared
    doing : str
        What for, in the words for whoever else would write it.

    Raises
    ------
    CacheError
        It has changed since it was written, or another has taken its place since it was opened.
    BusyError, WriteError
        Another process is writing it, or it cannot be written.
    """
    with sole_writer(prepared.folder, doing):
        ensure_replaceable(prepared.folder, KIND, [], is_leftover)
        if Prepared.open(prepared.folder).manifest != prepared.manifest:
            raise CacheError(f"{prepared.folder}: was replaced since it was opened; open it again")
        prepared.verify()  # lists that are made for damaged molecules would be wrong
        yield


def append_segment(
    prepared: Prepared,
    setting: str,
    lists: CandidateLists,
    molecules: NewMolecules,
    facts: Mapping[str, Any],
) -> Prepared:
    """Add molecules and lists to a folder; lists of this name that were there are gone.

    The caller holds the folder by `held_for_lists`.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the lists.
    lists : CandidateLists
        ``list_of`` is as long as that of the folder's other lists.
    molecules : NewMolecules
        Numbered after all that the folder has.
    facts : mapping
        What the manifest is to say of the lists.

    Returns
    -------
    Prepared
        The folder as it is now.

    Raises
    ------
    WriteError
        It cannot be written; it is then as it was.
    """
    folder, old = prepared.folder, prepared.manifest
    number = len(segments_of(old)) + 1
    written: list[Path] = []
    is_listed = False
    try:
        with naming_output(folder):
            _remove(_leftovers(prepared))
            written = _write(folder, number, lists, molecules)
            manifest = _extended(old, setting, number, molecules, facts)
            manifest["files"] |= {path.name: measured(path) for path in sorted(written)}
            Prepared(folder, manifest).check_arrays()
            is_listed = True  # from here on another may have read it, and so may we
            MANIFEST.replace(folder, manifest)
    except BaseException:
        if not is_listed or MANIFEST.read(folder) == old:
            _remove(folder.glob(in_segment(number, "*")))
        raise
    _remove(folder / name for name in old["files"] if name not in manifest["files"])
    return Prepared.open(folder)


def _leftovers(prepared: Prepared) -> list[Path]:
    listed = prepared.manifest["files"]
    paths = list(prepared.folder.iterdir())
    return [path for path in paths if path.name not in listed and is_leftover(path.name)]


def _write(folder: Path, number: int, lists: CandidateLists, molecules: NewMolecules) -> list[Path]:
    for name, texts in ((Array.SMILES, molecules.smiles), (Array.FORMULA, molecules.formulas)):
        TextColumn.write(folder, in_segment(number, name), texts)
    arrays: dict[str, npt.NDArray[Any]] = {
        Array.BLOCK: molecules.blocks,
        Array.MASS: molecules.masses,
        Array.FINGERPRINT_POINTERS: pointers(molecules.bit_counts),
        Array.FINGERPRINT_BITS: molecules.bits,
        **{f"candidates.{part}": getattr(lists, part) for part in LIST_PARTS},
    }
    for part, array in arrays.items():
        save_array(path_of(folder, in_segment(number, part)), array)
    return list(folder.glob(in_segment(number, "*")))


def _extended(
    old: Facts, setting: str, number: int, molecules: NewMolecules, facts: Mapping[str, Any]
) -> Facts:
    """The manifest with a segment more, its files left out."""
    added = {"molecules": len(molecules.smiles), "fingerprint_bits_set": len(molecules.bits)}
    gone = set()
    if setting in old["candidates"]:
        names = [list_array(old, setting, part) for part in LIST_PARTS]
        gone = {path_of(Path(), name).name for name in names}
    return old | {
        "format_version": WITH_SEGMENTS,
        "counts": old["counts"] | {what: old["counts"][what] + n for what, n in added.items()},
        "candidates": old["candidates"] | {setting: {**facts, "segment": number}},
        "segments": [*segments_of(old), added],
        "files": {name: listed for name, listed in old["files"].items() if name not in gone},
    }


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
