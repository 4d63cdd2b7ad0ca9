"""Similarity bands of a prepared data set, for any fingerprint."""

from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from mzseek.chem import fingerprints
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.core.errors import DatasetError
from mzseek.core.registry import FOLDS, check_name
from mzseek.datasets.layout import SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Bands, bands_of_lists
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches

_BATCH = 1000
REFERENCES = ("truth", "pairs")


def set_bands(
    prepared: Prepared,
    setting: str = "mass",
    *,
    fold: str | None = None,
    fingerprint: str | None = None,
    similarity: str = "tanimoto",
    against: str = "truth",
    most_lists: int | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Bands:
    """Bands of the candidate lists of all measured molecules, or a fold's; one for each molecule.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the candidate lists.
    fold : str or None
        Molecules that have spectra in it; by default those of all folds, as in the paper.
    fingerprint : str, optional
        Any kind there is; computed from the molecules unless it is the prepared one.
    similarity : str
        "bits", "tanimoto", "cosine" or "f1".
    against : "truth" or "pairs"
        The true molecule against its candidates, as in the paper's figures, or all pairs of a list,
        as its theorems need it.
    most_lists : int, optional
        So many lists at the most, evenly spaced; all by default.
    jobs : int, optional
        Processes for computing fingerprints; all cores by default.
    progress : callable of (stage, done, total)

    Returns
    -------
    Bands
    """
    check_name(REFERENCES, against, "against", DatasetError)
    if most_lists is not None and most_lists < 1:
        raise DatasetError(f"most_lists is {most_lists}, expected at least 1")
    kind = fingerprint or str(prepared.manifest["options"]["fingerprint"])
    fingerprint_kind(kind)
    measured = _measured(prepared, setting, fold)
    if most_lists is not None and most_lists < len(measured):
        measured = measured[np.linspace(0, len(measured) - 1, most_lists).astype(int)]
    truths = _truths(prepared, setting, measured)
    members, counts = _members(prepared, setting, measured, truths, with_truth=against == "pairs")
    used, place = np.unique(np.concatenate([truths, members]), return_inverse=True)
    rows = _rows(prepared, used, kind, jobs, progress)
    return bands_of_lists(
        rows,
        place[len(measured) :],
        counts,
        place[: len(measured)] if against == "truth" else None,
        similarity,
    )


def _measured(prepared: Prepared, setting: str, fold: str | None) -> npt.NDArray[np.int64]:
    """Molecules that have spectra in a fold, and a list."""
    lists = prepared.candidates(setting)
    if fold is None:
        molecules = np.unique(np.asarray(prepared.molecule)).astype(np.int64)
    else:
        check_name(FOLDS, fold, "fold", DatasetError)
        molecules = np.unique(prepared.molecule[prepared.in_fold(fold)]).astype(np.int64)
    measured = molecules[np.asarray(lists.list_of)[molecules] >= 0]
    if not len(measured):
        which = f"{fold} molecule" if fold else "molecule"
        raise DatasetError(f"{prepared.folder}: no {which} has {setting} candidates")
    return measured


def _truths(
    prepared: Prepared, setting: str, measured: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Measured molecules in the form that their lists have them in: drawn ones have it once."""
    if not prepared.drawn_by(setting):
        return measured
    lists = prepared.candidates(setting)
    truths = np.asarray(lists.molecules)[(np.asarray(lists.identity) & SAME_INCHIKEY) > 0]
    return truths[np.asarray(lists.list_of)[measured]].astype(np.int64)


def _members(
    prepared: Prepared,
    setting: str,
    measured: npt.NDArray[np.int64],
    truths: npt.NDArray[np.int64],
    *,
    with_truth: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Candidates of each molecule that are other molecules, and itself if wanted."""
    lists = prepared.candidates(setting)
    parts = []
    for molecule, truth in zip(measured, truths, strict=True):
        number = int(lists.list_of[molecule])
        here = slice(lists.indptr[number], lists.indptr[number + 1])
        others = lists.molecules[here][(lists.identity[here] & SAME_INCHIKEY) == 0]
        parts.append(np.append(others, truth) if with_truth else np.asarray(others))
    counts = np.array([len(part) for part in parts], np.int64)
    return np.concatenate(parts).astype(np.int64), counts


def _rows(
    prepared: Prepared,
    molecules: npt.NDArray[np.int64],
    kind: str,
    jobs: int | None,
    progress: Progress,
) -> csr_array:
    if kind == prepared.manifest["options"]["fingerprint"]:
        return prepared.fingerprint_rows(molecules)
    smiles = [prepared.smiles[int(molecule)] for molecule in molecules]
    parts, done = [], 0
    for batch, rows in in_batches(
        partial(fingerprints, kind=kind, threads=1), smiles, _BATCH, jobs
    ):
        parts.append(rows)
        done += len(batch)
        progress(f"{kind} fingerprints", done, len(smiles))
    return csr_array(vstack(parts, format="csr"))
