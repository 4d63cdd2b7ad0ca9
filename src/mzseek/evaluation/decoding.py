"""What a run is worth when its posterior is decoded for each metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distributions import Distribution, merged
from mzseek.decision.registry import UTILITIES
from mzseek.decision.utilities import expected_of_candidates
from mzseek.decision.utility import WITHIN, Within
from mzseek.errors import RunError
from mzseek.evaluation.posteriors import Posterior
from mzseek.metrics import Interval, bootstrap, bootstrap_difference
from mzseek.prepared.reader import Prepared
from mzseek.ragged import Ragged, pointers
from mzseek.work import LocalEngine, Progress, WithOpened, silent

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint8]
_LISTS_AT_A_TIME = 100
_WORTH_A_PROCESS = 300


@dataclass(frozen=True)
class DecodedFold:
    """Values of decisions on the spectra of a fold, each decoded for a utility.

    Attributes
    ----------
    values : dict of str to dict of str to dict of str to float64 array
        By the utility decoded for, where it was decided (``candidates`` or ``all``), and the
        utility that the decision is judged by: one value for each spectrum, against the truth.
    molecule : int array
        The true molecule of each spectrum.
    """

    values: dict[str, dict[str, dict[str, Floats]]]
    molecule: npt.NDArray[np.int32]

    def interval(
        self, decoded_for: str, judged_by: str, within: str = "all", level: float = 0.95
    ) -> Interval:
        """Mean with its interval over molecules."""
        return bootstrap(self.values[decoded_for][within][judged_by], self.molecule, level=level)

    def gain_over(
        self,
        control: "DecodedFold",
        decoded_for: str,
        judged_by: str,
        within: str = "all",
        level: float = 0.95,
    ) -> Interval:
        """Difference to another posterior decoded alike, paired by spectrum."""
        if not np.array_equal(self.molecule, control.molecule):
            raise RunError("the control was decoded on other spectra")
        return bootstrap_difference(
            self.values[decoded_for][within][judged_by],
            control.values[decoded_for][within][judged_by],
            self.molecule,
            level=level,
        )

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Means, as plain data."""
        return {
            utility: {
                within: {name: float(v.mean()) for name, v in judged.items()}
                for within, judged in places.items()
            }
            for utility, places in self.values.items()
        }


def decode(
    posterior: Posterior,
    prepared: Prepared,
    utilities: Sequence[str] = tuple(UTILITIES),
    within: Sequence[Within] = WITHIN,
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> DecodedFold:
    """Decide for every spectrum of a fold, and judge the decisions by the truth.

    Parameters
    ----------
    posterior : Posterior
    prepared : Prepared
        The data that it is of.
    utilities, within : sequences of str
        What to decode for, and where to decide.
    processes : int, optional
        By default as many as there are cores, where there are enough lists.
    progress : callable of (stage, done, total)

    Returns
    -------
    DecodedFold
    """
    count = len(posterior.counts)
    jobs = [_Job(part, tuple(utilities), tuple(within)) for part in in_parts(posterior)]
    engine = engine_for(count, len(jobs), processes)
    work = WithOpened(_decode_job, opened, prepared.folder, str(prepared.manifest["key"]))
    parts = []
    for part in engine.results(work, jobs):
        parts.append(part)
        progress("decoding", sum(map(len, parts)), count)
    joined = np.concatenate(parts)  # (lists, utilities, within, judged by)
    return DecodedFold(
        {
            utility: {
                place: {name: joined[:, u, w, j] for j, name in enumerate(UTILITIES)}
                for w, place in enumerate(within)
            }
            for u, utility in enumerate(utilities)
        },
        posterior.molecule,
    )


def in_parts(posterior: Posterior) -> Iterator[Posterior]:
    """A posterior in parts of some lists each, for processes to share."""
    count, ends = len(posterior.counts), pointers(posterior.counts)
    for start in range(0, count, _LISTS_AT_A_TIME):
        here = slice(start, min(start + _LISTS_AT_A_TIME, count))
        inside = slice(ends[start], ends[here.stop])
        yield replace(
            posterior,
            queries=posterior.queries[here],
            molecule=posterior.molecule[here],
            counts=posterior.counts[here],
            candidates=posterior.candidates[inside],
            labels=posterior.labels[inside],
            probabilities=posterior.probabilities[inside],
            answer=posterior.answer[inside],
        )


def distributions(prepared: Prepared, posterior: Posterior) -> Iterator[Distribution]:
    """The distribution over fingerprints of each list of a posterior."""
    for start, count in zip(Ragged(posterior.counts).starts, posterior.counts, strict=True):
        here = slice(start, start + count)
        yield list_distribution(prepared, posterior.candidates[here], posterior.probabilities[here])


def engine_for(lists: int, jobs: int, processes: int | None) -> LocalEngine:
    """Processes as many as asked for, or as there are cores; one where lists are few."""
    if jobs == 1 or (processes is None and lists < _WORTH_A_PROCESS):
        processes = 1
    return LocalEngine(processes)


def opened(folder: Path, key: str) -> Prepared:
    """The folder; the key tells it from one made anew in its place."""
    return Prepared.open(folder)


@dataclass(frozen=True)
class _Job:
    part: Posterior
    utilities: tuple[str, ...]
    within: tuple[Within, ...]


def _decode_job(prepared: Prepared, job: _Job) -> Floats:
    part = job.part
    found = np.empty((len(part.counts), len(job.utilities), len(job.within), len(UTILITIES)))
    starts = Ragged(part.counts).starts
    for row, known in enumerate(distributions(prepared, part)):
        rows = prepared.fingerprint_rows(part.molecule[[row]])
        for u, utility in enumerate(job.utilities):
            for w, within in enumerate(job.within):
                bits, index = _decide(utility, within, known)
                found[row, u, w] = _judge(bits, rows.indices)
                if index is not None:  # by the identity asked for, which bits may not tell
                    found[row, u, w, _HIT] = part.labels[starts[row] + index]
    return found


_HIT = list(UTILITIES).index("hit")


def _decide(utility: str, within: Within, known: Distribution) -> tuple[Bits, int | None]:
    """`mzseek.decision.decide.decide`, without the bound that costs time and is not read here."""
    if within == "candidates":
        best = int(np.argmax(expected_of_candidates(utility, known)))
        return known.bits_of(best), int(known.rows[best])
    bits = UTILITIES[utility].decode(known, bound=False).bits
    place = known.place_of(bits)
    return bits, None if place is None else int(known.rows[place])


def _judge(bits: Bits, truth: npt.NDArray[Any]) -> list[float]:
    """Every utility of a decision against the truth."""
    common, size = np.float64(bits[truth].sum()), np.float64(bits.sum())
    return [
        float(each.of(common, size, np.float64(len(truth)), len(bits)))
        for each in UTILITIES.values()
    ]


def list_distribution(
    prepared: Prepared, candidates: npt.NDArray[np.integer], probabilities: Floats
) -> Distribution:
    """The distribution over fingerprints that a list's posterior is."""
    rows = prepared.fingerprint_rows(candidates)
    return merged(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1], probabilities
    )
