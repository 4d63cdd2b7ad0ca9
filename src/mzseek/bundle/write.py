"""Write a bundle: the same bytes for the same contents."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    LIBRARY,
    LIBRARY_ROWS,
    LICENCE,
    MANIFEST,
    MASSES,
    MAX_PEAKS,
    MODEL,
    MOLECULES,
    PRIOR,
    RECORDS,
    Bundle,
    BundledPrior,
    compact_ions,
    compact_peaks,
    pack_prior,
    pack_states,
)
from mzseek.bundle.classes import CLASS_ARRAYS, CLASSES, pack_classes
from mzseek.bundle.fitting import References
from mzseek.bundle.molecules import BundledMolecules
from mzseek.classes.model import ClassModel
from mzseek.core.errors import BundleError
from mzseek.evidence.model import EvidenceModel
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.manifest import ensure_replaceable
from mzseek.library.library import RECORD_SCHEMA
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
    """Normalise the name of a licence, without its version.

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
    return ANY in allowed or licence_family(licence) in {
        licence_family(family) for family in allowed
    }


def licence_text(
    records: Iterable[tuple[str, str, int]], lists: Iterable[tuple[str, int]], shipped: bool
) -> str:
    """Text of `LICENCE.md`.

    Parameters
    ----------
    records : iterable of (contributor, licence, records)
    lists : iterable of (source, molecules)
        Of the molecule database, besides the molecules of the library.
    shipped : bool
        Whether all records may be passed on under CC BY-SA 4.0.
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


MAX_BYTES = 30_000_000
_LEVEL = 19


def write_bundle(
    out: StrPath,
    model: EvidenceModel,
    confidence: Confidence,
    references: References,
    molecules: BundledMolecules,
    *,
    fingerprint: str,
    card: Mapping[str, Any],
    licence: str,
    prior: BundledPrior | None = None,
    sources: Sequence[StrPath] = (),
    max_peaks: int = MAX_PEAKS,
) -> Bundle:
    """Write a bundle, and open it.

    Parameters
    ----------
    out : path
        Folder to make; a bundle that is there is replaced, anything else is refused.
    model, confidence, references, molecules
        All molecules of the references are in ``molecules``.
    fingerprint : str
        Kind that candidates must have.
    card : mapping
    licence : str
    prior : BundledPrior, optional
    sources : sequence of paths
        Files and folders that must not be overwritten.
    max_peaks : int
        Of a reference spectrum.

    Raises
    ------
    BundleError, DatasetError
        It cannot be read again, or the folder is none that may be replaced.
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    described, arrays = pack_states(model, max_peaks)
    peaks, ions = compact_peaks(references.peaks, max_peaks), compact_ions(references.ions)
    library: dict[str, npt.NDArray[Any]] = {
        "pointers": np.asarray(peaks.pointers, np.int64),
        "mz": np.asarray(peaks.values, np.float64),
        "heights": np.asarray(peaks.weights, np.float64),
        "precursors": np.asarray(ions.precursors, np.float64),
        "modes": np.asarray(ions.modes, np.int8),
        "molecule_of": np.asarray(references.molecule_of, np.int64),
    }
    arrays |= {f"{LIBRARY}{name}": array for name, array in library.items()}
    arrays |= {LIBRARY_ROWS: library_rows(references.keys, molecules), MASSES: molecules.masses}
    counts = {
        "spectra": len(references.records),
        "molecules": len(references.molecules),
        "peaks": len(peaks.values),
        "database": len(molecules),
    }
    with _replaced(out, sources) as folder:
        if prior is not None:
            fields, prior_arrays = pack_prior(prior)
            arrays |= prior_arrays
            _write_json(folder / PRIOR, fields)
        write_arrays(folder / ARRAYS, arrays)
        _write_json(folder / MODEL, {**described, "fingerprint": fingerprint})
        _write_json(folder / CONFIDENCE, confidence.to_dict())
        _write_json(folder / CARD, card)
        _write_table(folder / RECORDS, references.records.cast(RECORD_SCHEMA), ["identifier"])
        _write_molecules(folder / MOLECULES, molecules)
        (folder / LICENCE).write_text(licence, encoding="utf-8")
        MANIFEST.write(folder, {"versions": {"mzseek": __version__}, "counts": counts})
    return Bundle.open(out)


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
    arrays |= {LIBRARY_ROWS: library_rows(keys, molecules), MASSES: molecules.masses}
    counts = {**bundle.manifest["counts"], "database": len(molecules)}
    with _replaced(out, sources) as folder:
        for name in bundle.manifest["files"]:
            copyfile(bundle.folder / name, folder / name)
        write_arrays(folder / ARRAYS, arrays)
        _write_json(folder / CARD, card)
        _write_molecules(folder / MOLECULES, molecules)
        (folder / LICENCE).write_text(licence, encoding="utf-8")
        MANIFEST.write(folder, {"versions": bundle.manifest["versions"], "counts": counts})
    return Bundle.open(out)


def rewrite_classes(
    bundle: Bundle, out: StrPath, classes: ClassModel, sources: Sequence[StrPath] = ()
) -> Bundle:
    """Write a bundle with a model of compound classes; all else is copied.

    Parameters
    ----------
    bundle : Bundle
    out : path
        Folder to write, which may be that of ``bundle``.
    classes : ClassModel
    sources : sequence of paths
        Files that must not be overwritten.

    Raises
    ------
    BundleError, BusyError, WriteError
        As `write_bundle`.
    """
    fields, arrays = pack_classes(classes)
    with _replaced(out, sources) as folder:
        for name in bundle.manifest["files"]:
            copyfile(bundle.folder / name, folder / name)
        write_arrays(folder / CLASS_ARRAYS, arrays)
        _write_json(folder / CLASSES, fields)
        metadata = {name: bundle.manifest[name] for name in ("versions", "counts")}
        MANIFEST.write(folder, metadata)
    return Bundle.open(out)


@contextmanager
def _replaced(out: StrPath, sources: Sequence[StrPath]) -> Iterator[Path]:
    """Open a folder that gets its name once the bundle in it can be read and is not too large."""
    with sole_writer(Path(out), "writing a model bundle"):
        ensure_replaceable(Path(out), KIND, list(map(Path, sources)))
        with atomic_directory(Path(out)) as partial:
            yield partial
            opened = Bundle.open(partial)
            opened.verify()
            if opened.size > MAX_BYTES:
                raise BundleError(
                    f"{out}: would have {opened.size:,} bytes, expected at most {MAX_BYTES:,}; "
                    "give fewer spectra or molecules, or keep fewer peaks"
                )


def library_rows(
    keys: Sequence[tuple[str, float]], molecules: BundledMolecules
) -> npt.NDArray[np.int64]:
    """Return rows of the library's molecules (key and mass) in the table of all."""
    indices = []
    for key, mass in keys:
        rows = molecules.rows_by_key.get(key, [])
        same = [row for row in rows if abs(molecules.masses[row] - mass) < 2e-6]
        if not same:
            raise BundleError(f"{key}: a molecule of the library is not among the molecules")
        indices.append(same[0])
    return np.array(indices, np.int64)


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_table(path: Path, table: pa.Table, distinct: list[str]) -> None:
    """Write Parquet; columns whose values hardly repeat are stored as differences."""
    repeating = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in table.schema
        if field.name not in distinct
    ]
    pq.write_table(
        table, path, compression="zstd", compression_level=_LEVEL, use_dictionary=repeating,
        column_encoding=dict.fromkeys(distinct, "DELTA_BYTE_ARRAY"), write_statistics=False,
        store_schema=False, row_group_size=max(len(table), 1),
    )  # fmt: skip


def _write_molecules(path: Path, molecules: BundledMolecules) -> None:
    table = molecules.table.drop_columns(["mass"])  # masses are smaller among the arrays
    _write_table(path, table, ["key", "smiles"])
