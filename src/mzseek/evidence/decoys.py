"""Match decoys so that a spectrum-blind model learns nothing from the lists."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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
    check_same_fingerprints,
    set_bits,
    standard_forms,
    truths_of,
)
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY, base_count
from mzseek.datasets.molecules import FingerprintedMolecule
from mzseek.datasets.prepare import append_segment, held_for_lists
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.evidence.prior import (
    PENALTIES,
    PriorModel,
    fit_prior_model,
    log_probability,
    prior_features,
)
from mzseek.evidence.queries import Flags, Ints
from mzseek.metrics import hit_rate
from mzseek.parallel import Engine, LocalEngine, Progress, silent

Floats = npt.NDArray[np.float64]
MIN_SIZE = 5
# The likeliest molecules of a pool are left out where a list of ENOUGH needs it, as long as no more
# than LEFT_OUT of the probability goes with them.
ENOUGH, LEFT_OUT = 30, 0.2
TOO_FEW = f"fewer than {MIN_SIZE} candidates are as likely as it to be measured"
TOO_LIKELY = "likelier to be measured than all that could be drawn"
GROUPS = 5
POOL = 512
MAX_ROUNDS = 3
_MAX_FITTED = 128  # longer lists are cut for fitting: the weights that are estimated are the same
_STANDARD_ERRORS = 2.0  # by which a model must beat chance
_BATCH = 1000
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def probabilities(scores: npt.ArrayLike) -> Floats:
    """Softmax of the scores of one pool."""
    values = np.asarray(scores, np.float64)
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


def list_size(p: Floats, enough: int = ENOUGH) -> tuple[int, int]:
    """Length that a list can have, and how many of the likeliest molecules are left out for it.

    Parameters
    ----------
    p : float64 array, falling
    enough : int
        Leave out no more than it takes to reach this length, and no more than `LEFT_OUT` of p.

    Returns
    -------
    size : int
        At most the effective number, 1 / Σp², of what is left.
    skipped : int

    Examples
    --------
    >>> list_size(np.array([0.25, 0.25, 0.25, 0.25]))
    (4, 0)
    >>> list_size(np.array([0.2] + [0.01] * 80))
    (80, 1)
    """
    before = np.cumsum(p) - p
    allowed = np.flatnonzero(before <= LEFT_OUT + 1e-12)
    # In units of the likeliest that is left; a little more, lest 0.999… of one be none.
    sizes = np.floor((1.0 - before[allowed]) / p[allowed] * (1 + 1e-9)).astype(np.int64)
    sizes = np.minimum(sizes, len(p) - allowed)
    long_enough = np.flatnonzero(sizes >= enough)
    skipped = int(long_enough[0]) if len(long_enough) else int(sizes.argmax())
    return int(sizes[skipped]), skipped


def draw_list(
    p: Floats, truth: int, rng: np.random.Generator, max_size: int, enough: int = ENOUGH
) -> Ints | str:
    """Draw the members of a list, the truth among them, in random order.

    Parameters
    ----------
    p : float64 array, shape (pool,)
        How likely each molecule is to be measured; they sum to 1.
    truth : int
        Index of the one that was.
    rng : Generator
    max_size : int
    enough : int
        See `list_size`.

    Returns
    -------
    int64 array of indices, or str
        Why there is no list. Whether there is one, and how long it is, depends on the truth only
        in that it may be among the likeliest that are left out.
    """
    order = rng.permutation(len(p))  # ties in random order
    order = order[np.argsort(-p[order], kind="stable")]
    size, skipped = list_size(p[order], enough)
    if min(size, max_size) < MIN_SIZE:
        return TOO_FEW
    if truth in order[:skipped]:
        return TOO_LIKELY
    pool = rng.permutation(order[skipped:])
    return rng.permutation(_systematic(pool, p[pool], truth, min(size, max_size), rng))


def _systematic(pool: Ints, p: Floats, truth: int, size: int, rng: np.random.Generator) -> Ints:
    """Systematic sampling: each drawn with a probability in proportion to p, given the truth is.

    Molecules lie in a row, each as wide as its probability to be drawn, and points at distance 1
    fall on them: the first anywhere, here where one of the points falls on the truth.
    """
    width = p * (size / p.sum())
    ends = np.cumsum(width)
    index = int(np.flatnonzero(pool == truth)[0])
    on_truth = ends[index] - width[index] * rng.random()
    nth = min(int(on_truth), size - 1)
    points = on_truth - nth + np.arange(size)
    drawn = np.minimum(np.searchsorted(ends, points, side="left"), len(pool) - 1)
    drawn[nth] = index  # also where a sum was rounded the other way
    return np.asarray(pool[np.unique(drawn)], np.int64)


@dataclass(frozen=True, eq=False)
class DecoyLists(Ragged):
    """Candidate lists without spectra; ``counts`` are the candidates in each.

    Attributes
    ----------
    rows : CSR, shape (molecules, features)
        See `mzseek.evidence.prior.prior_features`.
    members : int64 array, shape (candidates of all lists,)
        The row of each candidate.
    labels : bool array, shape (candidates of all lists,)
        The truth, in each list once.
    """

    rows: csr_array
    members: Ints
    labels: Flags

    def candidates(self, lists: Ints) -> Ints:
        """Indices of the candidates of some lists."""
        return gather_indices(pointers(self.counts), lists)[1]

    def only(self, lists: Ints, candidates: Ints | None = None) -> "DecoyLists":
        """Some of the lists, with all their candidates or those at some indices, list by list."""
        taken = self.candidates(lists) if candidates is None else candidates
        counts = np.bincount(self.list_index[taken], minlength=len(self))[lists]
        used, members = np.unique(self.members[taken], return_inverse=True)
        return DecoyLists(counts, csr_array(self.rows[used]), members, self.labels[taken])

    def at_most(self, size: int, seed: int) -> "DecoyLists":
        """The lists, long ones cut to their truths and others drawn at random.

        A logit that is fitted on such a draw estimates the same weights.
        """
        order = np.random.default_rng(seed).random(len(self.members))
        order[self.labels] = -1.0
        by_list = np.lexsort((order, self.list_index))
        rank = np.arange(len(by_list)) - self.repeat_per_list(self.starts)
        return self.only(np.arange(len(self)), np.sort(by_list[rank < size]))

    def fit(self, l2: float) -> PriorModel:
        """Fit the prior of these lists."""
        return fit_prior_model(self.rows, self.counts, self.labels, members=self.members, l2=l2)

    def scores(self, prior: PriorModel) -> Floats:
        """A prior's score of every candidate."""
        return prior.score(self.rows)[self.members]

    def log_p(self, prior: PriorModel) -> Floats:
        """Log p of the truth of each list under a prior."""
        return log_probability(self.scores(prior), self.counts, self.labels)


def tune_penalty(
    training: DecoyLists,
    held_out: DecoyLists,
    penalties: Sequence[float] = PENALTIES,
    progress: Progress = silent,
) -> PriorModel:
    """Fit a prior with the penalty under which held-out truths are most probable.

    No molecule of the held-out lists is like a truth of the training lists. Penalties fall, and
    none is tried after one that did worse.
    """
    best, value = None, -np.inf
    for done, l2 in enumerate(penalties):
        progress("fitting", done, len(penalties))
        prior = training.fit(l2)
        log_p = float(held_out.log_p(prior).mean())
        if log_p <= value:
            break
        best, value = prior, log_p
    if best is None:
        raise EvidenceError("no penalty to choose among")
    return best


def cross_fit_scores(
    lists: DecoyLists, groups: Ints, training: DecoyLists, training_groups: Ints, whole: PriorModel
) -> Floats:
    """Score all candidates, each by a prior fitted on no training list of its group.

    ``whole``, fitted on all training lists, scores group −1; the other priors get its penalty.
    """
    scores = np.empty(len(lists.members))
    for group in np.unique(groups).tolist():
        others = np.flatnonzero(training_groups != group)
        prior = whole if group < 0 else training.only(others).fit(whole.l2)
        inside = lists.candidates(np.flatnonzero(groups == group))
        scores[inside] = prior.score(lists.rows)[lists.members[inside]]
    return scores


def structure_groups(rows: csr_array, in_training: Flags) -> Ints:
    """Group molecules (CSR rows of 0/1) for cross-fitting; similar ones are in one group.

    Returns the group of each, one of at most `GROUPS`; −1 where it is similar to none of the
    training set. Raises `EvidenceError` where the training set is a single cluster.
    """
    clusters = structure_clusters(rows)
    training, cluster_index = np.unique(clusters[in_training], return_inverse=True)
    if len(training) < 2:
        raise EvidenceError(
            f"{int(in_training.sum()):,} molecules to learn from, in {len(training)} structure "
            "clusters; expected two at least"
        )
    names = [str(group) for group in range(min(GROUPS, len(training)))]
    dealt = np.array(assign_folds(cluster_index, dict.fromkeys(names, 1 / len(names))), np.int64)
    of_cluster = np.full(int(clusters.max()) + 1, -1, np.int64)
    of_cluster[clusters[in_training]] = dealt
    return of_cluster[clusters]


@dataclass(frozen=True, eq=False)
class Pool:
    """Measured molecules, each with all that may be in its list.

    ``structures`` are Morgan fingerprints whatever kind the folder has: a Tanimoto similarity of
    0.6 means something else for other kinds.
    """

    molecules: Ints  # measured ones, as indices in the prepared folder
    forms: list[FingerprintedMolecule]  # their standard forms
    database_rows: Ints  # their rows in the database, −1 where it lacks one
    rows: Ints  # database rows of the first rows of `lists`; the others are forms that it lacks
    structures: csr_array  # 0/1, shape (measured molecules, bits)
    lists: DecoyLists  # the truth is the first of each


def pool_of(
    prepared: Prepared,
    database: Database,
    *,
    by: str,
    max_decoys: int,
    ppm: float = 10.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Pool:
    """Collect all that may be in the lists of measured molecules, at most so many decoys of each.

    Decoys have neither the truth's first InChIKey block nor its fingerprint. Truths are in the form
    of the database, as in `mzseek.datasets.extra_lists.add_negatives`; the other arguments are
    those of `mzseek.database.negatives.mine`.
    """
    engine = engine or LocalEngine()
    all_forms = standard_forms(
        prepared, keep_stereo=database.keep_stereo, engine=engine, progress=progress
    )
    mined_molecules = mine(
        database, truths_of(all_forms, database.fingerprint), by=by, keep=max_decoys,
        kind="random", ppm=ppm, seed=seed, engine=engine, progress=progress,
    )  # fmt: skip
    mined = sorted(mined_molecules, key=lambda molecule: molecule.number)
    database_rows = np.array([molecule.row for molecule in mined], np.int64)
    forms = [all_forms[molecule.number] for molecule in mined]
    decoys = [molecule.rows[molecule.similarities < 1] for molecule in mined]
    rows = np.unique(np.concatenate([database_rows[database_rows >= 0], *decoys]))
    added = [form for form, row in zip(forms, database_rows.tolist(), strict=True) if row < 0]
    truths = np.where(database_rows >= 0, np.searchsorted(rows, database_rows), 0)
    truths[database_rows < 0] = len(rows) + np.arange(len(added))
    counts = np.array([1 + len(rows_of) for rows_of in decoys], np.int64)
    labels = np.zeros(int(counts.sum()), bool)
    labels[pointers(counts)[:-1]] = True
    members = np.empty(len(labels), np.int64)
    members[labels], members[~labels] = truths, np.searchsorted(rows, np.concatenate(decoys))
    features = _features(database, rows, added, engine, progress)
    return Pool(
        molecules=np.array([molecule.number for molecule in mined], np.int64),
        forms=forms, database_rows=database_rows, rows=rows,
        structures=fingerprints([form.described.smiles for form in forms], "morgan2"),
        lists=DecoyLists(counts, features, members, labels),
    )  # fmt: skip


def _features(
    database: Database,
    rows: Ints,
    added: list[FingerprintedMolecule],
    engine: Engine,
    progress: Progress,
) -> csr_array:
    """Prior features of molecules of the database, and of others after them."""
    table = database.rows(rows, ["fingerprint", "smiles"])
    counts, bits = set_bits(table["fingerprint"])
    sizes = np.concatenate([counts, [len(form.bits) for form in added]]).astype(np.int64)
    columns = np.concatenate([bits, *(form.bits for form in added)]).astype(np.int32)
    shape = (len(sizes), fingerprint_kind(database.fingerprint).bits)
    ones = np.ones(len(columns), np.int32)
    smiles = table["smiles"].to_pylist() + [form.described.smiles for form in added]
    batches = [smiles[start : start + _BATCH] for start in range(0, len(smiles), _BATCH)]
    tables: list[npt.NDArray[np.float32]] = []
    for described in engine.results(descriptors, batches):
        tables.append(described)
        progress("describing", sum(map(len, tables)), len(smiles))
    fingerprint_rows = csr_array((ones, columns, pointers(sizes)), shape=shape)
    return prior_features(fingerprint_rows, np.concatenate(tables))


@dataclass(frozen=True, eq=False)
class ListRoles:
    """Which lists priors are fitted on, and which penalties are chosen on."""

    groups: Ints  # of each list, see `structure_groups`
    in_training: Flags
    held_out: Flags  # to choose penalties on: unlike all lists that are fitted on then

    @classmethod
    def of(cls, groups: Ints, in_training: Flags, validation: Flags) -> "ListRoles":
        """Hold out validation lists that are unlike the training set, or else the first group."""
        held_out = validation & (groups < 0)
        return cls(groups, in_training, held_out if held_out.any() else groups == 0)

    def tune(self, lists: DecoyLists, which: Ints, progress: Progress = silent) -> PriorModel:
        """Fit a prior on training lists by the penalty that suits held-out ones best.

        ``which`` are the indices of ``lists`` among all that have a role.
        """
        held_out = self.held_out[which]
        training = lists.only(np.flatnonzero(self.in_training[which] & ~held_out))
        return tune_penalty(training, lists.only(np.flatnonzero(held_out)), progress=progress)

    def can_test(self, which: Ints) -> bool:
        """Whether a prior can be fitted on some lists, for every group, and tested on others."""
        held_out = self.held_out[which]
        groups = self.groups[which][self.in_training[which] & ~held_out]
        return bool(held_out.any()) and len(np.unique(groups)) > 1

    def scores(self, pool: DecoyLists, lists: DecoyLists, which: Ints, tuned: PriorModel) -> Floats:
        """Scores of the pool's candidates, cross-fitted on lists with a tuned prior's penalty."""
        inside = np.flatnonzero(self.in_training[which])
        training, groups = lists.only(inside), self.groups[which][inside]
        whole = training.fit(tuned.l2) if self.held_out[which][inside].any() else tuned
        return cross_fit_scores(pool, self.groups, training, groups, whole)


def draw_all(
    lists: DecoyLists, scores: Floats, numbers: Ints, seed: int, max_size: int
) -> tuple[Ints, Ints, dict[str, int]]:
    """Draw a list from each pool among ``lists`` that one can be drawn from.

    ``numbers`` are seeds of each draw, beside ``seed``: no list depends on the others. Returns
    which pools have a drawn list, the indices of its members, and how many have none, and why.
    """
    which, candidates = [], [np.empty(0, np.int64)]
    reasons: Counter[str] = Counter()
    starts = lists.starts.tolist()
    for number, (start, count) in enumerate(zip(starts, lists.counts.tolist(), strict=True)):
        inside = slice(start, start + count)
        rng = np.random.default_rng([seed, int(numbers[number])])
        truth = int(np.flatnonzero(lists.labels[inside])[0])
        drawn = draw_list(probabilities(scores[inside]), truth, rng, max_size)
        if isinstance(drawn, str):
            reasons[drawn] += 1
        else:
            which.append(number)
            candidates.append(start + drawn)
    return np.array(which, np.int64), np.concatenate(candidates), dict(reasons)


@dataclass(frozen=True, eq=False)
class MatchedLists:
    """Matched lists, and what a blind model learns from them."""

    which: Ints  # with `candidates` and `reasons` as `draw_all` returns them
    candidates: Ints
    reasons: dict[str, int]
    lists: DecoyLists  # the drawn ones
    scores: Floats  # of the pool's candidates: that lists were drawn by
    blind: PriorModel | None  # fitted on the lists; None where they are too few to test it
    l2: float  # penalty of the first prior
    rounds: int


def matched_lists(
    pool: DecoyLists,
    roles: ListRoles,
    numbers: Ints,
    *,
    seed: int = 0,
    max_size: int = 256,
    progress: Progress = silent,
) -> MatchedLists:
    """Draw lists from pools, until a blind model fitted on them does not beat chance.

    Parameters
    ----------
    pool : DecoyLists
        For each molecule all that its list is drawn from.
    roles : ListRoles
    numbers, seed, max_size
        As in `draw_all`.
    progress : callable of (stage, done, total)
    """
    everything = np.arange(len(pool))
    short = pool.at_most(_MAX_FITTED, seed)
    tuned = roles.tune(short, everything, progress)
    scores = roles.scores(pool, short, everything, tuned)
    for number in range(1, MAX_ROUNDS + 1):
        progress("drawing", number, MAX_ROUNDS)
        which, candidates, reasons = draw_all(pool, scores, numbers, seed, max_size)
        lists = pool.only(which, candidates)
        blind = roles.tune(lists, which) if roles.can_test(which) else None
        if blind is None or number == MAX_ROUNDS:
            break
        held_out = lists.only(np.flatnonzero(roles.held_out[which]))
        gain = held_out.log_p(blind) + np.log(held_out.counts)
        if gain.mean() <= _STANDARD_ERRORS * gain.std() / np.sqrt(len(gain)):
            break
        scores = scores + roles.scores(pool, lists, which, blind)
    return MatchedLists(which, candidates, reasons, lists, scores, blind, tuned.l2, number)


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

    They are a segment of their own, as negatives are. Models are trained and measured on them, on
    every fold.

    Parameters
    ----------
    prepared : Prepared
    database : Database
        With fingerprints of the same kind.
    by : "mass" or "formula"
        In which decoys are equal.
    name : str, optional
        Of the lists: ``matched`` by mass, ``matched-formula`` by formula, if left out. Matched
        lists that had it are replaced.
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
    metadata : dict
        Of the new lists: ``name``, ``lists``, their lengths, how many molecules have none and why
        (``set_aside``), ``truths_in_other_form``, and in ``matched`` how they were drawn, and what
        a blind model trained on them reaches (``blind``, by fold).

    Raises
    ------
    DatabaseError, CacheError, EvidenceError, BusyError, WriteError
        The two do not fit together, the folder has changed since it was written, has too few
        molecules to learn from, is being written, or cannot be written.
    """
    if name is None:
        name = "matched" if by == EQUAL_IN[0] else f"matched-{by}"
    check_name(EQUAL_IN, by, "matched lists by", DatabaseError)
    if not name or not _NAME_LETTERS.issuperset(name):
        raise CacheError(
            f"--name is {name!r}, expected small letters, digits, - and _: files are named by it"
        )
    if "matched" not in prepared.manifest["candidates"].get(name, {"matched": {}}):
        raise CacheError(
            f"{prepared.folder}: has lists {name!r} that are no matched ones; give another --name"
        )
    if min(keep, pool) < MIN_SIZE:
        raise DatabaseError(f"lists of {min(keep, pool)} molecules, expected at least {MIN_SIZE}")
    check_same_fingerprints(prepared, database)
    how = {"by": by, "ppm": ppm, "keep": keep, "pool": pool, "seed": seed, "form": "database",
           "database": database.manifest["files"]["molecules.parquet"]["sha256"]}  # fmt: skip
    with held_for_lists(prepared, "adding matched lists"):
        source = pool_of(
            prepared, database, by=by, max_decoys=pool, ppm=ppm, seed=seed, engine=engine,
            progress=progress,
        )  # fmt: skip
        folds = {
            fold: np.isin(source.molecules, np.asarray(prepared.molecule)[prepared.in_fold(fold)])
            for fold in FOLDS
        }
        # The train fold, or all molecules where there is none.
        training = (
            folds["train"] if folds["train"].any() else np.ones(len(source.database_rows), bool)
        )
        groups = structure_groups(source.structures, training)
        roles = ListRoles.of(groups, training, folds["val"] & ~training)
        matched = matched_lists(
            source.lists, roles, source.molecules, seed=seed, max_size=keep, progress=progress
        )
        if not len(matched.which):
            why = "; ".join(f"{count:,}: {reason}" for reason, count in matched.reasons.items())
            raise CacheError(f"{prepared.folder}: no list can be drawn, {why}")
        progress("adding", 0)
        how |= _measure(source, matched, folds)
        return _add(prepared, database, name, source, matched, how)


def _measure(pool: Pool, matched: MatchedLists, folds: dict[str, Flags]) -> dict[str, Any]:
    """How lists were drawn, and what a blind model reaches on them, for the manifest."""
    scores = np.split(matched.scores, pool.lists.starts[1:])
    blind = {}
    for fold in ("val", "test"):
        lists = matched.lists.only(np.flatnonzero(folds[fold][matched.which]))
        if matched.blind is None or not len(lists):
            continue
        hits = hit_rate(lists.scores(matched.blind), lists.counts, lists.labels, 1)
        blind[fold] = {
            "lists": len(lists), "mean": float(lists.counts.mean()),
            "hit_rate@1": float(hits.mean()), "random": float((1 / lists.counts).mean()),
        }  # fmt: skip
    return {
        "l2": matched.l2,
        "rounds": matched.rounds,
        "pool_mean": float(pool.lists.counts.mean()),
        # Effective number of molecules of a pool: 1 / Σp².
        "effective_mean": float(np.mean([1.0 / (p @ p) for p in map(probabilities, scores)])),
        "blind": blind,
    }


def _add(
    prepared: Prepared,
    database: Database,
    name: str,
    pool: Pool,
    matched: MatchedLists,
    how: dict[str, Any],
) -> tuple[Prepared, dict[str, Any]]:
    """Append the lists, by the folder's molecules; return the folder and their metadata."""
    table = ExtraMolecules(prepared, database)
    which, candidates = matched.which, matched.candidates
    labels = pool.lists.labels[candidates]
    decoys = table.numbers_of_rows(pool.rows[pool.lists.members[candidates[~labels]]])
    forms = [pool.forms[number] for number in which.tolist()]
    truths = table.numbers_of_truths(pool.database_rows[which], forms).astype(np.int64)
    molecules = np.empty(len(candidates), np.int32)
    molecules[labels], molecules[~labels] = truths, decoys
    identity = np.where(labels, SAME_FINGERPRINT | SAME_INCHIKEY, 0).astype(np.uint8)
    list_of = np.full(base_count(prepared.manifest, "molecules"), -1, np.int32)
    list_of[pool.molecules[which]] = np.arange(len(which))
    lists = CandidateLists(pointers(matched.lists.counts), molecules, identity, list_of)
    measured = int(prepared.manifest["counts"]["measured_molecules"])
    lost = measured - len(pool.molecules)
    metadata = {
        "lists": len(lists),
        "candidates": len(lists.molecules),
        "median": float(np.median(lists.sizes)),
        "mean": float(lists.sizes.mean()),
        "largest": int(lists.sizes.max()),
        "molecules_without": measured - len(lists),
        "set_aside": {**({"cannot be standardised": lost} if lost else {}), **matched.reasons},
        "truths_in_other_form": int((truths != pool.molecules[which]).sum()),
        "matched": how,
    }
    added = append_segment(prepared, name, lists, table.new_molecules(), metadata)
    return added, {"name": name, **metadata}
