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
    max_lists: int | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Bands:
    """Compute the band of the candidate list of each measured molecule, of all folds or one.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the candidate lists.
    fold : str or None
        Molecules that have spectra in it; by default those of all folds, as in the paper.
    fingerprint : str, optional
        Any kind; computed from the molecules unless it is the prepared one.
    similarity : str
        "bits", "tanimoto", "cosine" or "f1".
    against : "truth" or "pairs"
        The true molecule against its candidates, as in the paper's figures, or all pairs of a list,
        as its theorems need it.
    max_lists : int, optional
        Evenly spaced; all by default.
    jobs : int, optional
        Processes for computing fingerprints; all cores by default.
    progress : callable of (stage, done, total)
    """
    check_name(REFERENCES, against, "against", DatasetError)
    if max_lists is not None and max_lists < 1:
        raise DatasetError(f"max_lists is {max_lists}, expected at least 1")
    kind = fingerprint or str(prepared.manifest["options"]["fingerprint"])
    fingerprint_kind(kind)
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
    if max_lists is not None and max_lists < len(measured):
        measured = measured[np.linspace(0, len(measured) - 1, max_lists).astype(int)]
    list_rows = np.asarray(lists.list_of)[measured]
    truths = measured
    if prepared.drawn_by(setting):  # drawn lists have the truth once, in the form of the database
        of_lists = np.asarray(lists.molecules)[(np.asarray(lists.identity) & SAME_INCHIKEY) > 0]
        truths = of_lists[list_rows].astype(np.int64)
    parts = []
    for row, truth in zip(list_rows, truths, strict=True):
        span = slice(lists.indptr[row], lists.indptr[row + 1])
        others = lists.molecules[span][(lists.identity[span] & SAME_INCHIKEY) == 0]
        parts.append(np.append(others, truth) if against == "pairs" else np.asarray(others))
    counts = np.array([len(part) for part in parts], np.int64)
    members = np.concatenate(parts).astype(np.int64)
    used, row_of = np.unique(np.concatenate([truths, members]), return_inverse=True)
    references = row_of[: len(measured)] if against == "truth" else None
    rows = _fingerprint_rows(prepared, used, kind, jobs, progress)
    return bands_of_lists(rows, row_of[len(measured) :], counts, references, similarity)


def _fingerprint_rows(
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
    work = partial(fingerprints, kind=kind, threads=1)
    for batch, rows in in_batches(work, smiles, _BATCH, jobs):
        parts.append(rows)
        done += len(batch)
        progress(f"{kind} fingerprints", done, len(smiles))
    return csr_array(vstack(parts, format="csr"))
