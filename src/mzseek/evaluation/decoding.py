"""What a run is worth when its posterior is decoded for each metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    jobs = list(_jobs(posterior, tuple(utilities), tuple(within)))
    if processes is None and count < _WORTH_A_PROCESS:
        processes = 1
    engine = LocalEngine(1 if len(jobs) == 1 else processes)
    work = WithOpened(_decode_job, _opened, prepared.folder, str(prepared.manifest["key"]))
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


@dataclass(frozen=True)
class _Job:
    molecule: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    probabilities: Floats
    labels: npt.NDArray[np.bool_]
    utilities: tuple[str, ...]
    within: tuple[Within, ...]


def _jobs(
    posterior: Posterior, utilities: tuple[str, ...], within: tuple[Within, ...]
) -> Iterator[_Job]:
    """Lists of a posterior, some at a time."""
    count, ends = len(posterior.counts), pointers(posterior.counts)
    for start in range(0, count, _LISTS_AT_A_TIME):
        stop = min(start + _LISTS_AT_A_TIME, count)
        inside = slice(ends[start], ends[stop])
        yield _Job(
            posterior.molecule[start:stop],
            posterior.counts[start:stop],
            posterior.candidates[inside],
            posterior.probabilities[inside],
            posterior.labels[inside],
            utilities,
            within,
        )


def _opened(folder: Path, key: str) -> Prepared:
    """The folder; the key tells it from one made anew in its place."""
    return Prepared.open(folder)


def _decode_job(prepared: Prepared, job: _Job) -> Floats:
    found = np.empty((len(job.counts), len(job.utilities), len(job.within), len(UTILITIES)))
    starts = Ragged(job.counts).starts
    for row, (start, count) in enumerate(zip(starts, job.counts, strict=True)):
        here = slice(start, start + count)
        known = list_distribution(prepared, job.candidates[here], job.probabilities[here])
        rows = prepared.fingerprint_rows(job.molecule[[row]])
        for u, utility in enumerate(job.utilities):
            for w, within in enumerate(job.within):
                bits, index = _decide(utility, within, known)
                found[row, u, w] = _judge(bits, rows.indices)
                if index is not None:  # by the identity asked for, which bits may not tell
                    found[row, u, w, _HIT] = job.labels[here][index]
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
