"""Validation lists with and without their molecule, which `InDatabase` is fitted on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mzseek.adducts import parse_adduct
from mzseek.annotation.asking.ask import Asked, can_be
from mzseek.annotation.asking.ions import Hypothesis
from mzseek.annotation.bundle.molecules import BoxedMolecules
from mzseek.annotation.candidates.extra import BACKGROUND, background_of, score_backgrounds
from mzseek.annotation.candidates.source import Molecule, distinct
from mzseek.annotation.candidates.store import molecules_of_table
from mzseek.annotation.confidence import Confidence
from mzseek.annotation.features import GIVEN, Feature
from mzseek.annotation.in_database import NAMES, ListEvidence
from mzseek.annotation.scoring import list_evidence, score
from mzseek.decision import Calibration
from mzseek.evidence.asked import chance, few_of_each, spectra_from, with_lists
from mzseek.evidence.fitted import Fitted
from mzseek.library import Library
from mzseek.prepared.reader import Prepared
from mzseek.ragged import spans
from mzseek.runs.predictions import ListScores
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
SIZES = (1, 2, 3, 5, 10, 30, 100)  # candidates that prepared lists are thinned to
WHOLE, BUNDLED = 0, -1  # in the place of a size: the whole list, the bundled molecules of the mass
LISTED, BUNDLED_SOURCE = "listed", "bundled"  # sources of candidates
SPECTRA = 3  # of a molecule, judged one alone and all together
_AT_ONCE = 32  # features of neighbouring masses, which share molecules


@dataclass(frozen=True, eq=False)
class ScoredQuery:
    """A validation feature with the scores of its whole list and of a background.

    Attributes
    ----------
    molecule : int
        Place of the true molecule in the prepared folder.
    mode : int
        1 or −1.
    spectra : int
    is_true, is_listed, is_bundled : bool arrays, shape (candidates,)
        Whether a candidate is the true molecule, of the prepared list, and a bundled molecule.
    keys, background_keys : arrays of str
        InChIKeys (first block) of the candidates and of the background.
    is_same_mass : bool array, shape (background molecules,)
        Whether a background molecule could be a candidate by its mass.
    evidence : ListEvidence
        Of the whole list; its background does not hold the true molecule.
    """

    molecule: int
    mode: int
    spectra: int
    is_true: npt.NDArray[np.bool_]
    is_listed: npt.NDArray[np.bool_]
    is_bundled: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.str_]
    background_keys: npt.NDArray[np.str_]
    is_same_mass: npt.NDArray[np.bool_]
    evidence: ListEvidence

    def thinned(
        self, kept: npt.NDArray[np.integer], left_out: npt.NDArray[np.integer]
    ) -> ListEvidence:
        """Return the evidence of some candidates, with the background `annotate` would take.

        Candidates that are `left_out` are in neither, so that they tell nothing.
        """
        free = ~np.isin(self.background_keys, self.keys[np.append(kept, left_out)])
        place = np.cumsum(free) - 1
        limit = np.where(self.is_same_mass, BACKGROUND, max(BACKGROUND - len(kept), 0))
        background = np.flatnonzero(free & (place < limit))
        return self.evidence.only(kept, background, int(self.is_same_mass[background].sum()))


@dataclass(frozen=True, eq=False)
class Cases:
    """Lists with and without their molecule.

    Attributes
    ----------
    features : float64 array, shape (cases, len(in_database.NAMES))
    present, is_right : bool arrays, shape (cases,)
        Whether the list holds the molecule, and whether its best candidate is the molecule.
    size : int array, shape (cases,)
        Length that the list was thinned to, `WHOLE` or `BUNDLED`.
    molecule : int array, shape (cases,)
    explained, margin : float64 arrays, shape (cases,)
        Of the best candidate.
    """

    features: Floats
    present: npt.NDArray[np.bool_]
    is_right: npt.NDArray[np.bool_]
    size: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int64]
    explained: Floats
    margin: Floats


def scored_queries(
    prepared: Prepared,
    fold: str,
    setting: str,
    fitted: Fitted,
    confidence: Confidence,
    library: Library,
    molecules: BoxedMolecules,
    *,
    progress: Progress = silent,
) -> list[ScoredQuery]:
    """Score the lists of a fold, and a background for each, as `annotate` does.

    Parameters
    ----------
    prepared : Prepared
    fold : str
        That channels did not learn from.
    setting : str
        Name of the candidate lists.
    fitted : Fitted
    confidence : Confidence
        For how far spectra of a feature are dependent.
    library : Library
        Reference spectra that the nearest is looked up in.
    molecules : BoxedMolecules
        That the background is drawn from.
    """
    queries = with_lists(prepared, np.sort(prepared.in_fold(fold)), setting, "inchikey")
    drawn = few_of_each(prepared, queries, SPECTRA)
    groups = list(_features(prepared, drawn))
    groups.sort(key=lambda each: float(prepared.masses[each[0]]))
    fingerprint = str(prepared.manifest["options"]["fingerprint"])
    labels = [channel.label for channel in fitted.channels]
    found: list[ScoredQuery] = []
    for start in range(0, len(groups), _AT_ONCE):
        part = groups[start : start + _AT_ONCE]
        asked = [
            _asked(prepared, molecule, feature, setting, molecules) for molecule, feature in part
        ]
        # Molecules of the list, too: a thinned list may lack them.
        backgrounds = [
            background_of(
                replace(query, molecules=([],)), molecules, without=_key(prepared, molecule),
                most=2 * BACKGROUND,
            )
            for query, (molecule, _) in zip(asked, part, strict=True)
        ]  # fmt: skip
        scored, _ = score(asked, fitted, confidence, fingerprint)
        compared = score_backgrounds(backgrounds, fitted, confidence, fingerprint)
        nearest = _nearest(library, [feature for _, feature in part])
        for (molecule, feature), query, own, background, other, near in zip(
            part, asked, scored, backgrounds, compared, nearest, strict=True
        ):
            reading, keys = query.readings[0], _keys(query.molecules[0])
            listed = np.array([LISTED in each.sources for each in query.molecules[0]])
            bundled = np.array([BUNDLED_SOURCE in each.sources for each in query.molecules[0]])
            compared_with = [] if background is None else background.molecules[0]
            masses = np.array([each.mass for each in compared_with])
            found.append(
                ScoredQuery(
                    molecule,
                    -1 if reading.adduct.endswith("-") else 1,
                    len(feature.spectra),
                    keys == _key(prepared, molecule),
                    listed,
                    bundled,
                    keys,
                    _keys(compared_with),
                    np.abs(masses - reading.mass) <= reading.reach,
                    list_evidence(feature, own, np.arange(len(keys)), other, labels, near, 0),
                )
            )
        progress("lists with and without their molecule", start + len(part), len(groups))
    return found


def cases_of(queries: Sequence[ScoredQuery], calibration: Calibration) -> Cases:
    """Thin the lists of queries to each length, with and without their molecule.

    Which candidates are drawn depends on the molecule alone.
    """
    rows = [case for query in queries for case in _cases_of(query, calibration)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    return Cases(
        np.array(columns[0], np.float64).reshape(len(rows), len(NAMES)),
        np.array(columns[1], np.bool_),
        np.array(columns[2], np.bool_),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.int64),
        np.array(columns[5], np.float64),
        np.array(columns[6], np.float64),
    )


_Case = tuple[Floats, bool, bool, int, int, float, float]


def _cases_of(query: ScoredQuery, calibration: Calibration) -> Iterator[_Case]:
    truth = np.flatnonzero(query.is_true)[:1]
    wrong = np.flatnonzero(query.is_listed & ~query.is_true)
    lots = [chance(b"%d" % query.molecule, query.keys[each].encode()) for each in wrong.tolist()]
    wrong = wrong[np.argsort(lots, kind="stable")]
    # Lists with and without the molecule have one length, so that it tells nothing.
    lists = [(size, wrong[:size]) for size in SIZES if size <= len(wrong)]
    lists.append((WHOLE, wrong))
    lists.append((BUNDLED, np.flatnonzero(query.is_bundled & ~query.is_true)))
    for size, without in lists:
        if not len(without):
            continue
        for present in (True, False):
            kept = np.append(truth, without[:-1]) if present else without
            evidence = query.thinned(kept, without)
            yield (
                evidence.features(calibration),
                present,
                bool(query.is_true[kept[evidence.best]]),
                size,
                query.molecule,
                float(evidence.explained[evidence.best]),
                evidence.margin(calibration),
            )


def _features(prepared: Prepared, queries: npt.NDArray[np.int64]) -> Iterator[tuple[int, Feature]]:
    """Features of each molecule and ion: its first spectrum alone, and all of them together."""
    groups: dict[tuple[int, str], list[int]] = {}
    for query in queries.tolist():
        adduct = prepared.adduct(query)
        if adduct:
            groups.setdefault((int(prepared.molecule[query]), adduct), []).append(query)
    for (molecule, adduct), members in groups.items():
        spectra = spectra_from(prepared, np.array(members))
        name = f"{molecule} {adduct}"
        yield molecule, Feature(name, GIVEN, tuple(spectra[:1]))
        if len(spectra) > 1:
            yield molecule, Feature(name, GIVEN, tuple(spectra))


def _asked(
    prepared: Prepared, molecule: int, feature: Feature, setting: str, bundled: BoxedMolecules
) -> Asked:
    """A query whose candidates are the prepared list of its molecule and the bundled molecules."""
    adduct = parse_adduct(str(feature.spectra[0].adduct))
    mass = adduct.neutral_mass(feature.spectra[0].precursor_mz)
    reading = Hypothesis(adduct.name, (adduct.name,) * len(feature.spectra), mass, mass * 1e-5)
    stored = prepared.candidates(setting)
    number = int(stored.list_of[molecule])
    members = stored.molecules[int(stored.indptr[number]) : int(stored.indptr[number + 1])]
    listed = [
        Molecule(prepared.smiles[each], _key(prepared, each), "", float(prepared.masses[each]),
                 sources=(LISTED,))
        for each in map(int, members)
    ]  # fmt: skip
    others = [
        replace(each, sources=(BUNDLED_SOURCE,), row=-1)
        for each in molecules_of_table(bundled.by_mass(mass, 10.0).table)
        if can_be(each, reading)
    ]
    candidates = distinct([*listed, *others])
    return Asked(feature, (reading,), (candidates,), (adduct.name,), len(candidates))


def _keys(molecules: Sequence[Molecule]) -> npt.NDArray[np.str_]:
    return np.array([molecule.key for molecule in molecules], np.str_)


def _key(prepared: Prepared, molecule: int) -> str:
    return str(prepared.blocks[molecule].decode())


def _nearest(library: Library, features: Sequence[Feature]) -> list[float]:
    """Similarity of the nearest reference spectrum, the highest of each feature's spectra."""
    spectra = [spectrum for feature in features for spectrum in feature.spectra]
    best = library.search(spectra, "analog", top=1)
    similarity = np.zeros(len(spectra))
    similarity[best.queries] = best.scores
    ends = np.cumsum([len(feature.spectra) for feature in features])[:-1]
    return [float(part.max()) for part in np.split(similarity, ends)]


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
