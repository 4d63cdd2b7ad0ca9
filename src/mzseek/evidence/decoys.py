"""Match decoys so that a spectrum-blind scorer learns nothing from the lists."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.fingerprint_kinds import fingerprints
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import descriptors
from mzseek.core.errors import CacheError, DatabaseError, EvidenceError
from mzseek.core.ragged import Ragged, gather_indices, pointers
from mzseek.core.registry import EQUAL_IN, FOLDS, check_name
from mzseek.database import Database
from mzseek.database.negatives import mine
from mzseek.datasets.build import assign_folds, structure_clusters
from mzseek.datasets.extra_lists import (
    ExtraMolecules,
    StandardForm,
    check_same_fingerprints,
    set_bits,
    standard_forms,
    truths_of,
)
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY, base_count
from mzseek.datasets.prepare import append_segment, held_for_lists
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.evidence.prior import STRENGTHS, Blind, blind_rows, fit_blind, log_probability
from mzseek.metrics import hit_rate
from mzseek.parallel import Engine, LocalEngine, Progress, silent

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 5
# The likeliest molecules of a pool are no candidates where they stand in the way of a list of
# ENOUGH, as long as no more than LEFT_OUT of the probability goes with them.
ENOUGH, LEFT_OUT = 30, 0.2

TOO_FEW = f"fewer than {LEAST} candidates are as likely as it to be measured"
TOO_LIKELY = "likelier to be measured than all that could be drawn"


def probabilities(scores: npt.ArrayLike) -> Floats:
    """Softmax of the scores of one pool."""
    values = np.asarray(scores, np.float64)
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


def effective_size(p: Floats) -> float:
    """How many equally likely molecules would be as many: 1 / Σp².

    Examples
    --------
    >>> round(effective_size(np.array([0.25, 0.25, 0.25, 0.25])), 6)
    4.0
    """
    return float(1.0 / (p @ p))


def list_size(p: Floats, enough: int = ENOUGH, left_out: float = LEFT_OUT) -> tuple[int, int]:
    """How long a list can be, and how many of the likeliest molecules must be left out for it.

    Parameters
    ----------
    p : float64 array, falling
    enough : int
        Leave out no more than it takes to reach this length.
    left_out : float
        Leave out no more probability than this.

    Returns
    -------
    size : int
        At most the effective size of what is left.
    skipped : int

    Examples
    --------
    >>> list_size(np.array([0.25, 0.25, 0.25, 0.25]))
    (4, 0)
    >>> list_size(np.array([0.2] + [0.01] * 80))
    (80, 1)
    """
    before = np.cumsum(p) - p
    allowed = np.flatnonzero(before <= left_out + 1e-12)
    # In units of the likeliest that is left; a little more, lest 0.999… of one be none.
    sizes = np.floor((1.0 - before[allowed]) / p[allowed] * (1 + 1e-9)).astype(np.int64)
    sizes = np.minimum(sizes, len(p) - allowed)
    long_enough = np.flatnonzero(sizes >= enough)
    skipped = int(long_enough[0]) if len(long_enough) else int(sizes.argmax())
    return int(sizes[skipped]), skipped


def draw_list(
    p: Floats, truth: int, rng: np.random.Generator, most: int, enough: int = ENOUGH
) -> Ints | str:
    """Members of a list, the truth among them, in an order that tells nothing.

    Parameters
    ----------
    p : float64 array, shape (pool,)
        How likely each molecule is to be measured; they sum to 1.
    truth : int
        Place of the one that was.
    rng : Generator
    most : int
        Members at the most.
    enough : int
        See `list_size`.

    Returns
    -------
    int64 array of places, or str
        Why there is no list. Whether there is one, and how long it is, the truth decides only by
        being among the likeliest that are left out.
    """
    order = rng.permutation(len(p))  # equally likely ones must not stand in any order
    order = order[np.argsort(-p[order], kind="stable")]
    size, skipped = list_size(p[order], enough)
    if min(size, most) < LEAST:
        return TOO_FEW
    if truth in order[:skipped]:
        return TOO_LIKELY
    pool = rng.permutation(order[skipped:])
    return rng.permutation(_systematic(pool, p[pool], truth, min(size, most), rng))


def _systematic(pool: Ints, p: Floats, truth: int, size: int, rng: np.random.Generator) -> Ints:
    """So many of a pool, each with a probability in proportion to p, given that the truth is in.

    Molecules lie in a row, each as wide as its probability to be drawn, and points at distance 1
    fall on them: the first anywhere, here where one of the points falls on the truth.
    """
    width = p * (size / p.sum())
    ends = np.cumsum(width)
    place = int(np.flatnonzero(pool == truth)[0])
    on_truth = ends[place] - width[place] * rng.random()
    nth = min(int(on_truth), size - 1)
    points = on_truth - nth + np.arange(size)
    found = np.minimum(np.searchsorted(ends, points, side="left"), len(pool) - 1)
    found[nth] = place  # also where a sum was rounded the other way
    return np.asarray(pool[np.unique(found)], np.int64)


Flags = npt.NDArray[np.bool_]
GROUPS = 5


@dataclass(frozen=True, eq=False)
class BlindLists:
    """Candidates of lists, strung together.

    Attributes
    ----------
    rows : CSR, shape (molecules, features)
        See `mzseek.evidence.prior.blind_rows`.
    members : int64 array, shape (candidates of all lists,)
        The row of each candidate.
    counts : int64 array, shape (lists,)
        Candidates in each list.
    labels : bool array, shape (candidates of all lists,)
        The truth, in each list once.
    """

    rows: csr_array
    members: Ints
    counts: Ints
    labels: Flags

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def ragged(self) -> Ragged:
        """The lengths, to sum up with."""
        return Ragged(self.counts)

    def candidates(self, lists: Ints) -> Ints:
        """Places of the candidates of some lists among all."""
        starts = self.ragged.starts
        return gather_indices(np.append(starts, starts[-1:] + self.counts[-1:]), lists)[1]

    def only(self, lists: Ints, candidates: Ints | None = None) -> "BlindLists":
        """Some of the lists, or some candidates of them; no other molecules.

        Parameters
        ----------
        lists : int64 array
        candidates : int64 array, optional
            Places among all, list after list; by default all that the lists have.
        """
        taken = self.candidates(lists) if candidates is None else candidates
        counts = np.bincount(self.ragged.list_index[taken], minlength=len(self))[lists]
        used, members = np.unique(self.members[taken], return_inverse=True)
        return BlindLists(csr_array(self.rows[used]), members, counts, self.labels[taken])

    def at_most(self, size: int, seed: int) -> "BlindLists":
        """The lists, long ones cut to their truths and others drawn at random.

        A logit that is fitted on such a draw estimates the same weights.
        """
        order = np.random.default_rng(seed).random(len(self.members))
        order[self.labels] = -1.0
        sorted_ = np.lexsort((order, self.ragged.list_index))
        within = np.arange(len(sorted_)) - self.ragged.repeat_per_list(self.ragged.starts)
        return self.only(np.arange(len(self)), np.sort(sorted_[within < size]))

    def fit(self, l2: float) -> Blind:
        """The scorer of these lists."""
        return fit_blind(self.rows, self.counts, self.labels, members=self.members, l2=l2)

    def scores(self, blind: Blind) -> Floats:
        """A scorer's word on every candidate."""
        return blind.score(self.rows)[self.members]

    def log_p(self, blind: Blind) -> Floats:
        """Log p of the truth of each list under a scorer."""
        return log_probability(self.scores(blind), self.counts, self.labels)


def best_strength(
    taught: BlindLists,
    held_out: BlindLists,
    strengths: Sequence[float] = STRENGTHS,
    progress: Progress = silent,
) -> Blind:
    """The scorer of some lists, with the penalty under which others' truths are most probable.

    Parameters
    ----------
    taught, held_out : BlindLists
        The second with no molecules like the truths of the first.
    strengths : sequence of float
        Of the penalty; strong ones first, and no weaker ones once a weaker one did worse.
    progress : callable of (stage, done, total)
    """
    best, value = None, -np.inf
    for done, l2 in enumerate(strengths):
        progress("fitting", done, len(strengths))
        blind = taught.fit(l2)
        found = float(held_out.log_p(blind).mean())
        if found <= value:
            break
        best, value = blind, found
    if best is None:
        raise EvidenceError("no strength of the penalty to choose among")
    return best


def cross_fitted(
    lists: BlindLists, groups: Ints, taught: BlindLists, taught_groups: Ints, whole: Blind
) -> Floats:
    """Scores of all candidates, each by a scorer that learned nothing from its list, or its like.

    Parameters
    ----------
    lists : BlindLists
    groups : int64 array, shape (lists,)
        See `structure_groups`.
    taught : BlindLists
        Lists to learn from.
    taught_groups : int64 array, shape (lists to learn from,)
    whole : Blind
        The scorer of all that teaches, for what is like none of it; others get its penalty.

    Returns
    -------
    float64 array, shape (candidates of all lists,)
    """
    scores = np.empty(len(lists.members))
    for group in np.unique(groups).tolist():
        others = np.flatnonzero(taught_groups != group)
        blind = whole if group < 0 else taught.only(others).fit(whole.l2)
        here = lists.candidates(np.flatnonzero(groups == group))
        scores[here] = blind.score(lists.rows)[lists.members[here]]
    return scores


def structure_groups(
    rows: csr_array, teaches: Flags, number: int = GROUPS, alike: float = 0.6
) -> Ints:
    """Groups of molecules for cross-fitting, no two alike in different ones.

    Parameters
    ----------
    rows : CSR of 0/1, shape (molecules, bits)
    teaches : bool array, shape (molecules,)
        Those that scorers learn from.
    number : int
        Groups at the most.
    alike : float
        Tanimoto at which molecules are linked.

    Returns
    -------
    int64 array, shape (molecules,)
        The group; -1 for a molecule that is like none that teaches.

    Raises
    ------
    EvidenceError
        All that teach are alike.
    """
    clusters = structure_clusters(rows, alike)
    taught, own = np.unique(clusters[teaches], return_inverse=True)
    if len(taught) < 2:
        raise EvidenceError(
            f"{int(teaches.sum()):,} molecules to learn from, in {len(taught)} structure clusters; "
            "expected two at least"
        )
    names = [str(group) for group in range(min(number, len(taught)))]
    dealt = np.array(assign_folds(own, dict.fromkeys(names, 1 / len(names))), np.int64)
    of_cluster = np.full(int(clusters.max()) + 1, -1, np.int64)
    of_cluster[clusters[teaches]] = dealt
    return of_cluster[clusters]


_BATCH = 1000


@dataclass(frozen=True, eq=False)
class Pool:
    """Measured molecules, each with all that may stand in its list.

    Attributes
    ----------
    numbers : int64 array, shape (lists,)
        Measured molecules, by their places in the prepared folder.
    forms : list of StandardForm
        Their standard forms.
    own : int64 array, shape (lists,)
        Their places in the database, -1 where it does not have one.
    rows : int64 array
        Places in the database of the first rows of ``lists``; the others are ``forms`` that the
        database does not have.
    structures : CSR of 0/1, shape (lists, bits)
        Morgan fingerprints of the measured molecules, whatever the folder has: a likeness of 0.6 is
        another one by other fingerprints.
    lists : BlindLists
        The truth is the first of each list.
    """

    numbers: Ints
    forms: list[StandardForm]
    own: Ints
    rows: Ints
    structures: csr_array
    lists: BlindLists


def pool_of(
    prepared: Prepared,
    database: Database,
    *,
    by: str,
    most: int,
    ppm: float = 10.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Pool:
    """All that may stand in the lists of measured molecules.

    What is equal to a truth is not among its rivals: of its first InChIKey block, or of its
    fingerprint. Truths are there in the form of the database, as in
    `mzseek.datasets.extra_lists.add_negatives`.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind, and the index for nearest neighbours.
    by : "mass" or "formula"
    most : int
        Rivals of a molecule at the most; of more, so many are drawn at random.
    ppm, seed, engine
        As in `mzseek.database.negatives.mine`.
    progress : callable of (stage, done, total)
    """
    engine = engine or LocalEngine()
    forms = standard_forms(
        prepared, keep_stereo=database.keep_stereo, engine=engine, progress=progress
    )
    found = mine(
        database, truths_of(forms, database.fingerprint), by=by, keep=most, kind="random", ppm=ppm,
        seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(found, key=lambda of_molecule: of_molecule.number)
    own = np.array([of_molecule.own for of_molecule in mined], np.int64)
    ordered = [forms[of_molecule.number] for of_molecule in mined]
    rivals = [of_molecule.rows[of_molecule.similarities < 1] for of_molecule in mined]
    rows = np.unique(np.concatenate([own[own >= 0], *rivals]))
    added = [form for form, place in zip(ordered, own.tolist(), strict=True) if place < 0]
    bits = _bits(database, rows, added)
    table = _described(database, rows, added, engine, progress)
    truths = np.where(own >= 0, np.searchsorted(rows, own), 0)
    truths[own < 0] = len(rows) + np.arange(len(added))
    return Pool(
        numbers=np.array([of_molecule.number for of_molecule in mined], np.int64),
        forms=ordered, own=own, rows=rows,
        structures=fingerprints([form.described.smiles for form in ordered], "morgan2"),
        lists=_lists(blind_rows(bits, table), rows, truths, rivals),
    )  # fmt: skip


def _lists(rows: csr_array, known: Ints, truths: Ints, rivals: list[Ints]) -> BlindLists:
    """The truths, each followed by its rivals."""
    counts = np.array([1 + len(each) for each in rivals], np.int64)
    labels = np.zeros(int(counts.sum()), bool)
    labels[pointers(counts)[:-1]] = True
    members = np.empty(len(labels), np.int64)
    members[labels] = truths
    members[~labels] = np.searchsorted(known, np.concatenate(rivals))
    return BlindLists(rows, members, counts, labels)


def _bits(database: Database, rows: Ints, added: list[StandardForm]) -> csr_array:
    """Fingerprints of molecules of the store, and of others after them."""
    counts, bits = set_bits(database.rows(rows, ["fingerprint"])["fingerprint"])
    sizes = np.concatenate([counts, [len(form.bits) for form in added]]).astype(np.int64)
    columns = np.concatenate([bits, *(form.bits for form in added)]).astype(np.int32)
    shape = (len(sizes), fingerprint_kind(database.fingerprint).bits)
    return csr_array((np.ones(len(columns), np.int32), columns, pointers(sizes)), shape=shape)


def _described(
    database: Database,
    rows: Ints,
    added: list[StandardForm],
    engine: Engine,
    progress: Progress,
) -> npt.NDArray[np.float32]:
    """Descriptors of the same molecules."""
    smiles = database.rows(rows, ["smiles"])["smiles"].to_pylist()
    smiles += [form.described.smiles for form in added]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    tables, done = [], 0
    for table in engine.results(descriptors, batches):
        tables.append(table)
        done += len(table)
        progress("describing", done, len(smiles))
    return np.concatenate(tables)


MOST_ROUNDS = 3
# A list of more is cut for fitting: the weights that are estimated are the same.
_TAUGHT = 128
_SURE = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class Roles:
    """What lists are for.

    Attributes
    ----------
    groups : int64 array, shape (lists,)
        See `mzseek.evidence.decoys.structure_groups`.
    teaches : bool array, shape (lists,)
        Scorers learn from these.
    held_out : bool array, shape (lists,)
        Penalties are chosen on these, which are like none that scorers learn from then.
    """

    groups: Ints
    teaches: Flags
    held_out: Flags

    @classmethod
    def of(cls, groups: Ints, teaches: Flags, chosen_on: Flags) -> "Roles":
        """Roles of lists: penalties are chosen on some, or where there are none on a group."""
        held_out = chosen_on & (groups < 0)
        return cls(groups, teaches, held_out if held_out.any() else groups == 0)

    def tuned(self, lists: BlindLists, which: Ints, progress: Progress = silent) -> Blind:
        """A scorer of those that teach, by the penalty that suits those that were held out best.

        Parameters
        ----------
        lists : BlindLists
        which : int64 array, shape (lists,)
            Their places among all that have a role.
        progress : callable of (stage, done, total)
        """
        held_out = self.held_out[which]
        taught = lists.only(np.flatnonzero(self.teaches[which] & ~held_out))
        return best_strength(taught, lists.only(np.flatnonzero(held_out)), progress=progress)

    def can_test(self, which: Ints) -> bool:
        """Whether a scorer can be fitted on some lists, for every group, and tried on others."""
        held_out = self.held_out[which]
        groups = self.groups[which][self.teaches[which] & ~held_out]
        return bool(held_out.any()) and len(np.unique(groups)) > 1

    def scores(self, pool: BlindLists, lists: BlindLists, which: Ints, tuned: Blind) -> Floats:
        """Scores of what the pool has, cross-fitted on lists, with a tuned scorer's penalty."""
        taught = np.flatnonzero(self.teaches[which])
        own, groups = lists.only(taught), self.groups[which][taught]
        whole = own.fit(tuned.l2) if self.held_out[which][taught].any() else tuned
        return cross_fitted(pool, self.groups, own, groups, whole)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Lists that were drawn.

    Attributes
    ----------
    which : int64 array
        Those of the pool's lists that have one.
    candidates : int64 array
        Places of their members among the pool's candidates, list after list.
    reasons : dict of str to int
        How many have none, and why.
    """

    which: Ints
    candidates: Ints
    reasons: dict[str, int] = field(default_factory=dict)


def draw_all(lists: BlindLists, scores: Floats, numbers: Ints, seed: int, most: int) -> Drawn:
    """A list for each molecule that one can be drawn for.

    Parameters
    ----------
    lists : BlindLists
        What each list is drawn from.
    scores : float64 array, shape (candidates of all lists,)
    numbers : int array, shape (lists,)
        Seeds each list's draw, beside ``seed``: no list depends on the others.
    seed : int
    most : int
        Members of a list at the most.
    """
    which, candidates = [], [np.empty(0, np.int64)]
    reasons: dict[str, int] = {}
    starts = lists.ragged.starts.tolist()
    for place, (start, count) in enumerate(zip(starts, lists.counts.tolist(), strict=True)):
        here = slice(start, start + count)
        rng = np.random.default_rng([seed, int(numbers[place])])
        truth = int(np.flatnonzero(lists.labels[here])[0])
        found = draw_list(probabilities(scores[here]), truth, rng, most)
        if isinstance(found, str):
            reasons[found] = reasons.get(found, 0) + 1
            continue
        which.append(place)
        candidates.append(start + found)
    return Drawn(np.array(which, np.int64), np.concatenate(candidates), reasons)


@dataclass(frozen=True, eq=False)
class Matched:
    """Lists, and what a blind scorer makes of them.

    Attributes
    ----------
    drawn : Drawn
    lists : BlindLists
        The drawn ones.
    scores : float64 array
        What they were drawn by: of the pool's candidates.
    fresh : Blind or None
        A scorer fitted on them; None where there are too few lists to fit one and to test it.
    l2 : float
        Penalty of the first scorer.
    rounds : int
    """

    drawn: Drawn
    lists: BlindLists
    scores: Floats
    fresh: Blind | None
    l2: float
    rounds: int


def matched_lists(
    pool: BlindLists,
    roles: Roles,
    numbers: Ints,
    *,
    seed: int = 0,
    most: int = 256,
    progress: Progress = silent,
) -> Matched:
    """Lists drawn from pools, until a blind scorer fitted on them learns nothing that holds.

    Parameters
    ----------
    pool : BlindLists
        For each molecule all that its list is drawn from.
    roles : Roles
    numbers, seed, most
        As in `draw_all`.
    progress : callable of (stage, done, total)
    """
    everything = np.arange(len(pool))
    taught = pool.at_most(_TAUGHT, seed)
    tuned = roles.tuned(taught, everything, progress)
    scores = roles.scores(pool, taught, everything, tuned)
    for number in range(1, MOST_ROUNDS + 1):
        progress("drawing", number, MOST_ROUNDS)
        drawn = draw_all(pool, scores, numbers, seed, most)
        lists = pool.only(drawn.which, drawn.candidates)
        fresh = roles.tuned(lists, drawn.which) if roles.can_test(drawn.which) else None
        if fresh is None or number == MOST_ROUNDS or not _tells(fresh, lists, roles, drawn.which):
            break
        scores = scores + roles.scores(pool, lists, drawn.which, fresh)
    return Matched(drawn, lists, scores, fresh, tuned.l2, number)


def _tells(fresh: Blind, lists: BlindLists, roles: Roles, which: Ints) -> bool:
    """Whether a scorer makes truths that it has not seen likelier than chance, beyond doubt."""
    held_out = lists.only(np.flatnonzero(roles.held_out[which]))
    gain = held_out.log_p(fresh) + np.log(held_out.counts)
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


POOL = 512
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def matched_name(by: str) -> str:
    """What matched lists are called where nobody says.

    Examples
    --------
    >>> matched_name("mass"), matched_name("formula")
    ('matched', 'matched-formula')
    """
    return "matched" if by == EQUAL_IN[0] else f"matched-{by}"


def add_matched(
    prepared: Prepared,
    database: Database,
    *,
    by: str = "mass",
    name: str | None = None,
    keep: int = 256,
    ppm: float = 10.0,
    pool: int = POOL,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> tuple[Prepared, dict[str, Any]]:
    """Draw matched lists for every measured molecule, and add them to the prepared folder.

    They lie in a segment of their own, as negatives do. Models are trained on them and measured on
    them, on every fold.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind.
    by : "mass" or "formula"
        What decoys are equal in.
    name : str, optional
        Of the lists; see `matched_name`. Matched lists that had it are replaced.
    keep : int
        Members of a list at the most, the truth among them.
    pool : int
        Molecules at the most that a list is drawn from; of more, so many are taken at random.
    ppm, seed, engine, progress
        As in `mzseek.datasets.extra_lists.add_negatives`.

    Returns
    -------
    prepared : Prepared
        The folder, opened again.
    facts : dict
        Of the new lists: ``name``, ``lists``, their lengths, how many molecules have none and why
        (``set_aside``), ``truths_in_other_form``, and in ``matched`` how they were drawn, and what
        a blind scorer trained on them reaches (``blind``, by fold).

    Raises
    ------
    DatabaseError, CacheError, EvidenceError, BusyError, WriteError
        The two do not fit together, the folder has changed since it was written, has too few
        molecules to learn from, is being written, or cannot be written.
    """
    name = matched_name(by) if name is None else name
    _check(prepared, database, name, by, min(keep, pool))
    how = {"by": by, "ppm": ppm, "keep": keep, "pool": pool, "seed": seed, "form": "database",
           "database": database.manifest["files"]["molecules.parquet"]["sha256"]}  # fmt: skip
    with held_for_lists(prepared, "adding matched lists"):
        found = pool_of(
            prepared, database, by=by, most=pool, ppm=ppm, seed=seed, engine=engine,
            progress=progress,
        )  # fmt: skip
        return _matched(prepared, database, name, found, how, progress)


def _check(prepared: Prepared, database: Database, name: str, by: str, size: int) -> None:
    """Refuse what can be seen before any work."""
    check_name(EQUAL_IN, by, "matched lists by", DatabaseError)
    _check_name(prepared, name)
    if size < LEAST:
        raise DatabaseError(f"lists of {size} molecules, expected at least {LEAST}")
    check_same_fingerprints(prepared, database)


def _matched(
    prepared: Prepared,
    database: Database,
    name: str,
    pool: Pool,
    how: dict[str, Any],
    progress: Progress,
) -> tuple[Prepared, dict[str, Any]]:
    """The folder with lists drawn from a pool, and their facts."""
    folds = _folds(prepared, pool.numbers)
    matched = matched_lists(
        pool.lists, _roles(pool, folds), pool.numbers, seed=how["seed"], most=how["keep"],
        progress=progress,
    )  # fmt: skip
    if not len(matched.drawn.which):
        raise CacheError(f"{prepared.folder}: no list can be drawn, {_why(matched)}")
    progress("adding", 0)
    return _added(prepared, database, name, pool, matched, how | _told(pool, matched, folds))


def _check_name(prepared: Prepared, name: str) -> None:
    if not name or not _SAFE.issuperset(name):
        raise CacheError(
            f"--name is {name!r}, expected small letters, digits, - and _: files are named by it"
        )
    facts = prepared.manifest["candidates"].get(name)
    if facts is not None and "matched" not in facts:
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that are no matched ones; give another --name"
        )


def _folds(prepared: Prepared, numbers: Ints) -> dict[str, Flags]:
    """Which of the molecules each fold has spectra of."""
    return {
        fold: np.isin(numbers, np.asarray(prepared.molecule)[prepared.in_fold(fold)])
        for fold in FOLDS
    }


def _roles(pool: Pool, folds: dict[str, Flags]) -> Roles:
    """Who teaches: the train fold, or all where there is none."""
    teaches = folds["train"] if folds["train"].any() else np.ones(len(pool.numbers), bool)
    return Roles.of(structure_groups(pool.structures, teaches), teaches, folds["val"] & ~teaches)


def _why(matched: Matched) -> str:
    return "; ".join(f"{count:,}: {why}" for why, count in matched.drawn.reasons.items())


def _told(pool: Pool, matched: Matched, folds: dict[str, Flags]) -> dict[str, Any]:
    """What the manifest says of the drawing, and of what a blind scorer makes of it."""
    scores = np.split(matched.scores, pool.lists.ragged.starts[1:])
    sizes = [effective_size(probabilities(of_list)) for of_list in scores]
    blind = {}
    for fold in ("val", "test"):
        lists = matched.lists.only(np.flatnonzero(folds[fold][matched.drawn.which]))
        if matched.fresh is None or not len(lists):
            continue
        hits = hit_rate(lists.scores(matched.fresh), lists.counts, lists.labels, 1)
        blind[fold] = {
            "lists": len(lists), "mean": float(lists.counts.mean()),
            "hit_rate@1": float(hits.mean()), "random": float((1 / lists.counts).mean()),
        }  # fmt: skip
    return {
        "l2": matched.l2,
        "rounds": matched.rounds,
        "pool_mean": float(pool.lists.counts.mean()),
        "effective_mean": float(np.mean(sizes)),
        "blind": blind,
    }


def _added(
    prepared: Prepared,
    database: Database,
    name: str,
    pool: Pool,
    matched: Matched,
    how: dict[str, Any],
) -> tuple[Prepared, dict[str, Any]]:
    """The folder with the lists, and their facts."""
    table = ExtraMolecules(prepared, database)
    lists, truths = _in_folder(prepared, table, pool, matched)
    numbers = pool.numbers[matched.drawn.which]
    measured = int(prepared.manifest["counts"]["measured_molecules"])
    facts = {
        "lists": len(lists),
        "candidates": len(lists.molecules),
        "median": float(np.median(lists.sizes)),
        "mean": float(lists.sizes.mean()),
        "largest": int(lists.sizes.max()),
        "molecules_without": measured - len(lists),
        "set_aside": {
            **({"cannot be standardised": lost} if (lost := measured - len(pool.numbers)) else {}),
            **matched.drawn.reasons,
        },
        "truths_in_other_form": int((truths != numbers).sum()),
        "matched": how,
    }
    added = append_segment(prepared, name, lists, table.new_molecules(), facts)
    return added, {"name": name, **facts}


def _in_folder(
    prepared: Prepared, table: ExtraMolecules, pool: Pool, matched: Matched
) -> tuple[CandidateLists, Ints]:
    """The drawn lists by the folder's molecules, and their truths."""
    which, places = matched.drawn.which, matched.drawn.candidates
    labels = pool.lists.labels[places]
    rivals = table.places_of_rows(pool.rows[pool.lists.members[places[~labels]]])
    forms = [pool.forms[each] for each in which.tolist()]
    truths = table.places_of_truths(pool.own[which], forms).astype(np.int64)
    molecules = np.empty(len(places), np.int32)
    molecules[labels], molecules[~labels] = truths, rivals
    identity = np.where(labels, SAME_FINGERPRINT | SAME_INCHIKEY, 0).astype(np.uint8)
    list_of = np.full(base_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[pool.numbers[which]] = np.arange(len(which))
    indptr = pointers(matched.lists.counts)
    return CandidateLists(indptr, molecules, identity, list_of), truths
