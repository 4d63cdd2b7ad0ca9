"""Write a bundle: the same bytes for the same contents."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.annotation.confidence import Confidence
from mzseek.bundle.arrays import write_arrays
from mzseek.bundle.bundle import (
    ARRAYS,
    CARD,
    CONFIDENCE,
    KIND,
    LIBRARY_ROWS,
    LICENCE,
    MANIFEST,
    MASSES,
    MODEL,
    MOLECULES,
    MOST_PEAKS,
    PRIOR,
    RECORDS,
    Bundle,
    BundledPrior,
    compact_ions,
    compact_peaks,
    library_arrays,
    pack_prior,
    pack_states,
)
from mzseek.bundle.molecules import BundledMolecules
from mzseek.core.errors import BundleError
from mzseek.evidence.model import EvidenceModel
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.manifest import ensure_replaceable
from mzseek.library.library import RECORD_SCHEMA
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.version import __version__

MAY_BE_SHIPPED = ("CC0", "CC BY", "CC BY-SA", "dl-de/by")
ANY = "any"
_WORDS = re.compile(r"[a-z]+0?")
_CONDITIONS = ("by", "nc", "nd", "sa")
_NAMES = {
    "CC0": "Creative Commons Zero (public domain)",
    "CC BY": "Creative Commons Attribution",
    "CC BY-SA": "Creative Commons Attribution-ShareAlike",
    "dl-de/by": "Data licence Germany, attribution, version 2.0",
}

# Lists that the bundle of mzseek itself is made of.
_LISTS = {
    "massbank": " (structures, names and identifiers that MassBank's records state)",
    "chemicals": " (structures of common chemicals in PubChem, which is in the public domain)",
}


def licence_family(text: str) -> str:
    """A licence without its version, written in one way.

    Examples
    --------
    >>> [licence_family(text) for text in ("CC BY-SA 4.0", "cc-by-nc-sa", "dl-de/by-2-0", "CC0")]
    ['CC BY-SA', 'CC BY-NC-SA', 'dl-de/by', 'CC0']
    >>> licence_family("https://creativecommons.org/licenses/by/4.0/"), licence_family(" mine ")
    ('CC BY', 'mine')
    """
    words = _WORDS.findall(text.lower())
    conditions = [word for word in words if word in _CONDITIONS]
    commons = "cc" in words or "creativecommons" in words
    if "cc0" in words or ("creativecommons" in words and "zero" in words):
        return "CC0"
    if words[:2] == ["dl", "de"] and len(words) > 2:
        return f"dl-de/{words[2]}"
    if commons and conditions:
        return f"CC {'-'.join(word.upper() for word in conditions)}"
    return " ".join(text.split())


def is_allowed(licence: str, allowed: Sequence[str] = MAY_BE_SHIPPED) -> bool:
    """Whether records of this licence may go into a bundle; ``any`` allows all.

    Examples
    --------
    >>> is_allowed("CC BY 4.0"), is_allowed("CC BY-NC"), is_allowed(""), is_allowed("", ["any"])
    (True, False, False, True)
    """
    return ANY in allowed or licence_family(licence) in {licence_family(each) for each in allowed}


def licence_text(
    records: Iterable[tuple[str, str, int]], lists: Iterable[tuple[str, int]], shipped: bool
) -> str:
    """What `LICENCE.md` says.

    Parameters
    ----------
    records : iterable of (contributor, licence, records)
    lists : iterable of (source, molecules)
        Of the molecule database, besides the molecules of the library.
    shipped : bool
        Whether all of its records may be passed on under CC BY-SA 4.0.
    """
    rows = sorted(records)
    families = sorted({licence_family(licence) for _, licence, _ in rows} - {""})
    head = [
        "# Licence of this bundle",
        "",
        "The spectra, molecules and fitted numbers in this folder are licensed under the Creative "
        "Commons Attribution-ShareAlike 4.0 International licence (CC BY-SA 4.0, "
        "https://creativecommons.org/licenses/by-sa/4.0/). The code of mzseek is under the MIT "
        "licence."
        if shipped
        else "Some records in this folder have a licence that does not let them be passed on, or "
        "none that is known. Keep it to yourself unless you have their owners' leave.",
        "",
        "Every record keeps the licence that its contributor gave it. `records.parquet` names the "
        "identifier, the contributor and the licence of each; `mzseek model info --records` shows "
        "them. Spectra were made compact: the highest peaks were kept, m/z and heights rounded.",
        "",
        *(f"- {family}: {_NAMES.get(family, 'as its owner says')}" for family in families),
        "",
        "| contributor | licence | records |",
        "|---|---|---|",
        *(f"| {who or '–'} | {licence or '–'} | {number:,} |" for who, licence, number in rows),
    ]
    more = sorted(lists)
    if more:
        head += ["", "Molecules of the bundled database that come from lists:", ""]
        head += [
            f"- {source}: {number:,} molecules{_LISTS.get(source, '')}" for source, number in more
        ]
    return "\n".join(head) + "\n"


MOST_BYTES = 30_000_000
_LEVEL = 19


@dataclass(frozen=True, eq=False)
class Contents:
    """What goes into a bundle.

    Attributes
    ----------
    fitted : EvidenceModel
    fingerprint : str
        Kind that candidates must have.
    confidence : Confidence
    peaks, ions : PeakLists, PrecursorIons
        Of the reference spectra; they are made compact when they are written.
    records : pyarrow.Table
        What is known of each of them, as a library has it.
    molecule_of : int array, shape (spectra,)
        Place of each one's molecule in ``keys``.
    keys : sequence of (str, float)
        First InChIKey block and mass of each molecule of the library; all are in ``molecules``.
    molecules : BundledMolecules
    card : mapping
    licence : str
    prior : BundledPrior or None
        What answers may be asked to count in.
    """

    fitted: EvidenceModel
    fingerprint: str
    confidence: Confidence
    peaks: PeakLists
    ions: PrecursorIons
    records: pa.Table
    molecule_of: npt.NDArray[np.integer]
    keys: list[tuple[str, float]]
    molecules: BundledMolecules
    card: Mapping[str, Any]
    licence: str
    prior: BundledPrior | None = None


def write_bundle(
    out: StrPath, contents: Contents, sources: Sequence[StrPath] = (), *, most: int = MOST_PEAKS
) -> Bundle:
    """Write a bundle, and open it.

    Parameters
    ----------
    out : path
        Folder to make; a bundle that is there is replaced, anything else is refused.
    contents : Contents
    sources : sequence of paths
        Files and folders that must not be overwritten.
    most : int
        Peaks of a reference spectrum that are kept.

    Raises
    ------
    BundleError, DatasetError
        It cannot be read again, or the folder is none that may be replaced.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    folder = Path(out)
    with sole_writer(folder, "writing a model bundle"):
        ensure_replaceable(folder, KIND, list(map(Path, sources)))
        with atomic_directory(folder) as partial:
            _fill(partial, contents, most)
            _check(partial, folder)
    return Bundle.open(folder)


def rewrite_molecules(
    bundle: Bundle,
    out: StrPath,
    molecules: BundledMolecules,
    card: Mapping[str, Any],
    licence: str,
    sources: Sequence[StrPath] = (),
) -> Bundle:
    """Write a bundle with other molecules; all else is copied.

    Parameters
    ----------
    bundle : Bundle
    out : path
        Folder to write, which may be that of ``bundle``.
    molecules : BundledMolecules
        All molecules of the library among them.
    card : mapping
    licence : str
    sources : sequence of paths
        Files that must not be overwritten.

    Raises
    ------
    BundleError, BusyError, WriteError
        As `write_bundle`.
    """
    known = bundle.library.molecules
    keys = list(zip(known["inchikey"].to_pylist(), known["mass"].to_pylist(), strict=True))
    arrays = bundle.arrays
    arrays |= {LIBRARY_ROWS: _rows(keys, molecules), MASSES: molecules.masses}
    facts = {name: bundle.manifest[name] for name in ("versions", "counts")}
    folder = Path(out)
    with sole_writer(folder, "writing a model bundle"):
        ensure_replaceable(folder, KIND, list(map(Path, sources)))
        with atomic_directory(folder) as partial:
            for name in bundle.manifest["files"]:
                copyfile(bundle.folder / name, partial / name)
            write_arrays(partial / ARRAYS, arrays)
            _write_json(partial / CARD, dict(card))
            _write_molecules(partial / MOLECULES, molecules)
            (partial / LICENCE).write_text(licence, encoding="utf-8")
            facts["counts"] = {**facts["counts"], "database": len(molecules)}
            MANIFEST.write(partial, facts)
            _check(partial, folder)
    return Bundle.open(folder)


def _check(partial: Path, out: Path) -> None:
    """Refuse a bundle that cannot be read, or is too large, before it gets its name."""
    opened = Bundle.open(partial)
    opened.verify()
    if opened.size > MOST_BYTES:
        raise BundleError(
            f"{out}: would have {opened.size:,} bytes, expected at most {MOST_BYTES:,}; "
            "give fewer spectra or molecules, or keep fewer peaks"
        )


def _fill(folder: Path, contents: Contents, most: int) -> None:
    model, arrays = pack_states(contents.fitted, most)
    peaks, ions = compact_peaks(contents.peaks, most), compact_ions(contents.ions)
    rows = _rows(contents.keys, contents.molecules)
    arrays |= library_arrays(peaks, ions, np.asarray(contents.molecule_of), rows)
    arrays[MASSES] = contents.molecules.masses
    if contents.prior is not None:
        facts, own = pack_prior(contents.prior)
        arrays |= own
        _write_json(folder / PRIOR, facts)
    write_arrays(folder / ARRAYS, arrays)
    _write_json(folder / MODEL, {**model, "fingerprint": contents.fingerprint})
    _write_json(folder / CONFIDENCE, contents.confidence.to_dict())
    _write_json(folder / CARD, dict(contents.card))
    _write_table(folder / RECORDS, contents.records.cast(RECORD_SCHEMA), ["identifier"])
    _write_molecules(folder / MOLECULES, contents.molecules)
    (folder / LICENCE).write_text(contents.licence, encoding="utf-8")
    MANIFEST.write(
        folder,
        {
            "versions": {"mzseek": __version__},
            "counts": {
                "spectra": len(contents.records),
                "molecules": len(contents.keys),
                "peaks": len(peaks.values),
                "database": len(contents.molecules),
            },
        },
    )


def _rows(keys: list[tuple[str, float]], molecules: BundledMolecules) -> npt.NDArray[np.int64]:
    """Where the library's molecules stand in the table of all."""
    found = []
    for key, mass in keys:
        places = molecules.places.get(key, [])
        same = [place for place in places if abs(molecules.masses[place] - mass) < 2e-6]
        if not same:
            raise BundleError(f"{key}: a molecule of the library is not among the molecules")
        found.append(same[0])
    return np.array(found, np.int64)


def _write_json(path: Path, facts: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_table(path: Path, table: pa.Table, various: list[str]) -> None:
    """A table; columns whose values hardly repeat are told from their neighbours."""
    few = [name for name in table.column_names if name not in various]
    leaves = [f"{name}.list.element" if _is_list(table, name) else name for name in few]
    pq.write_table(
        table, path, compression="zstd", compression_level=_LEVEL, use_dictionary=leaves,
        column_encoding=dict.fromkeys(various, "DELTA_BYTE_ARRAY"), write_statistics=False,
        store_schema=False, row_group_size=max(len(table), 1),
    )  # fmt: skip


def _write_molecules(path: Path, molecules: BundledMolecules) -> None:
    table = molecules.table.drop_columns(["mass"])  # in the arrays, shorter
    _write_table(path, table, ["key", "smiles"])


def _is_list(table: pa.Table, name: str) -> bool:
    return bool(pa.types.is_list(table.schema.field(name).type))
