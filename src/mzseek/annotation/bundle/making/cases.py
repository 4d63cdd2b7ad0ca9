"""Validation lists with and without their truth: what absence is fitted on."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.annotation.absence import RAW, absence_features, raw_values
from mzseek.decision import Calibration, Pooling
from mzseek.evidence.asked import chance, few_of_each, lists_from, spectra_from
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.crossfit import Groups
from mzseek.evidence.lists import Ints
from mzseek.library import Library
from mzseek.prepared.reader import Prepared
from mzseek.ragged import spans
from mzseek.runs.predictions import ListScores
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
EACH = 3  # spectra of a molecule
_CANDIDATES = 40_000  # whose pieces are held at a time


@dataclass(frozen=True, eq=False)
class Signs:
    """What the bundle says of some validation spectra.

    Attributes
    ----------
    lists : ListScores
        Their candidates with cross-fitted scores, in the order of ``queries``.
    raw : float64 array, shape (candidates, len(RAW))
    nearest : float64 array, shape (spectra,)
        Similarity of the nearest reference spectrum.
    modes : int8 array, shape (spectra,)
    """

    lists: ListScores
    raw: Floats
    nearest: Floats
    modes: npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Cases:
    """Lists with and without their truth.

    Attributes
    ----------
    features : float64 array, shape (cases, signs)
    present : bool array, shape (cases,)
    molecule : int array, shape (cases,)
    """

    features: Floats
    present: npt.NDArray[np.bool_]
    molecule: npt.NDArray[np.integer]


def signs_of(
    lists: ListScores,
    prepared: Prepared,
    fitted: Fitted,
    library: Library,
    groups: Groups,
    setting: str,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Signs:
    """Signs of a few spectra of each molecule that no channel has learned from, or from its like.

    Parameters
    ----------
    lists : ListScores
        Cross-fitted, of a fold that channels did not learn from.
    prepared : Prepared
    fitted : Fitted
    library : Library
        Reference spectra that ``nearest`` is looked up in.
    groups : Groups
        Of all molecules that channels learned from, and of those asked about.
    setting : str
        Name of the lists.
    """
    blocks = prepared.blocks[lists.molecule]
    seen = np.zeros(len(blocks), np.bool_)
    for each in fitted.learned:
        seen |= groups.seen(each, blocks)
    drawn = few_of_each(prepared, lists.queries[~seen], EACH)
    kept = np.flatnonzero(np.isin(lists.queries, drawn))
    own = only(lists, kept)
    raw = np.zeros((len(own.scores), len(RAW)))
    ends = np.concatenate([[0], np.cumsum(own.counts)])
    done = 0
    for part in _by_molecule(own):
        found, _ = lists_from(prepared, own.queries[part], setting, jobs=jobs)
        features = [
            channel.features(learned, found)
            for channel, learned in zip(fitted.channels, fitted.learned, strict=True)
        ]
        raw[spans(ends[part], ends[part + 1])[1]] = raw_values(fitted.channels, features)
        done += len(part)
        progress("signs of absence", done, len(own.queries))
    spectra = spectra_from(prepared, own.queries)
    nearest = np.zeros(len(spectra))
    if spectra:
        best = library.search(spectra, "analog", top=1)
        nearest[best.queries] = best.scores
    return Signs(own, raw, nearest, modes_of(prepared, own.queries))


def cases_of(
    signs: Signs, wanted: npt.NDArray[np.bool_], calibration: Calibration, pooling: Pooling
) -> Cases:
    """Cases of some spectra: each alone, and those of a molecule together.

    Lists that keep their truth lose another candidate, drawn by chance: the length of a list must
    not tell.

    Parameters
    ----------
    signs : Signs
    wanted : bool array, shape (spectra,)
    calibration, pooling
        By which scores become probabilities.
    """
    found: list[tuple[Floats, bool, int]] = []
    lists = signs.lists
    ends = np.concatenate([[0], np.cumsum(lists.counts)])
    for molecule in np.unique(lists.molecule[wanted]):
        own = np.flatnonzero(wanted & (lists.molecule == molecule))
        together = [own] if len(own) > 1 else []
        for group in [*own[:, None], *together]:
            rows = [slice(ends[each], ends[each + 1]) for each in group]
            scores = np.sum([lists.scores[row] for row in rows], axis=0, dtype=np.float64)
            scores = scores * pooling.factor(len(rows))
            raw = np.mean([signs.raw[row] for row in rows], axis=0)
            truth = np.asarray(lists.identity[rows[0]]) > 0
            if truth.all():
                continue  # nothing is left without it, which tells no chemist anything
            decoy = _drawn(lists.candidates[rows[0]], truth, int(molecule))
            for present, out in ((True, decoy), (False, truth)):
                inside = ~out
                p = calibration.posterior(scores[inside], [int(inside.sum())])
                one = absence_features(
                    p, [len(p)], raw[inside], [signs.nearest[group].max()], [len(group)]
                )
                found.append((one[0], present, int(molecule)))
    features = np.array([each[0] for each in found]).reshape(len(found), -1)
    return Cases(
        features,
        np.array([each[1] for each in found], np.bool_),
        np.array([each[2] for each in found], np.int64),
    )


def _drawn(
    candidates: npt.NDArray[np.integer], truth: npt.NDArray[np.bool_], molecule: int
) -> npt.NDArray[np.bool_]:
    """Marks as many candidates that are not the truth as are it, by a number of their own."""
    lots = np.array([chance(b"%d" % molecule, b"%d" % each) for each in candidates], np.int64)
    order = np.lexsort((lots, truth))
    found = np.zeros(len(truth), np.bool_)
    found[order[: min(int(truth.sum()), int((~truth).sum()))]] = True
    return found


def modes_of(prepared: Prepared, queries: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
    """−1 for spectra of negative mode, else 1: what is not known counts as positive."""
    signs = {
        adduct: -1 if adduct and adduct.rstrip().endswith("-") else 1
        for adduct in {prepared.adduct(int(each)) for each in queries}
    }
    return np.array([signs[prepared.adduct(int(each))] for each in queries], np.int8)


def only(lists: ListScores, kept: npt.NDArray[np.integer]) -> ListScores:
    """Some of the lists."""
    ends = np.concatenate([[0], np.cumsum(lists.counts)])
    rows = spans(ends[kept], ends[kept + 1])[1]
    return ListScores(
        queries=lists.queries[kept],
        molecule=np.asarray(lists.molecule[kept]),
        counts=lists.counts[kept],
        candidates=lists.candidates[rows],
        identity=lists.identity[rows],
        scores=np.asarray(lists.scores)[rows],
    )


def _by_molecule(lists: ListScores) -> Iterator[Ints]:
    """Spectra in parts, all of a molecule together."""
    order = np.argsort(lists.molecule, kind="stable")
    first = (
        np.flatnonzero(np.r_[True, np.diff(lists.molecule[order]) != 0]) if len(order) else order
    )
    load = np.cumsum(lists.counts[order][first]) // _CANDIDATES
    borders = first[1:][np.diff(load) > 0]
    for part in np.split(order, borders):
        if len(part):
            yield np.asarray(part, np.int64)
