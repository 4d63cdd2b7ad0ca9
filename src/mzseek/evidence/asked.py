"""Lists, questions and lessons from a prepared folder."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from mzseek.adducts import parse_adduct
from mzseek.evidence.known import Lessons, Questions
from mzseek.evidence.lists import Ints, Lists
from mzseek.evidence.molecules import Molecules
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import gather, pointers
from mzseek.spectra import Spectrum


def spectra_from(prepared: Prepared, queries: npt.NDArray[np.integer]) -> list[Spectrum]:
    """Spectra of a prepared folder, as a reader would give them."""
    return [_spectrum(prepared, int(query)) for query in queries]


def _spectrum(prepared: Prepared, query: int) -> Spectrum:
    mz, intensities = prepared.peaks(query)
    adduct = prepared.adduct(query)
    energy = float(prepared.collision_energy[query])
    return Spectrum(
        np.asarray(mz, np.float64),
        np.asarray(intensities, np.float64),
        float(prepared.precursor_mz[query]),
        adduct,
        parse_adduct(adduct).charge if adduct else None,
        prepared.identifiers[query],
        {} if np.isnan(energy) else {"collision_energy": f"{energy:g}"},
    )


def molecules_from(
    prepared: Prepared, table: npt.NDArray[np.integer], jobs: int | None = None
) -> Molecules:
    """Molecules of a prepared folder, which has their fingerprints."""
    return Molecules(
        [prepared.smiles[int(each)] for each in table],
        str(prepared.manifest["options"]["fingerprint"]),
        lambda wanted: prepared.fingerprint_rows(table[wanted]),
        jobs,
    )


def lists_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    setting: str,
    *,
    spectra: list[Spectrum] | None = None,
    most: int | None = None,
    jobs: int | None = None,
) -> tuple[Lists, npt.NDArray[np.uint8]]:
    """Spectra with their candidates, and in what sense each candidate is the truth.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
        Spectra, which must all have a list.
    setting : str
        Name of the candidate lists.
    spectra : list of Spectrum, optional
        To be read in their place.
    most : int, optional
        Candidates of a list at the most: whatever is the truth, and others drawn by chance, the
        same ones whatever their order.
    jobs : int, optional
        Processes that find pieces.

    Returns
    -------
    lists : Lists
    identity : uint8 array
        A value for each row, as in `mzseek.prepared.reader.CandidateLists`.
    """
    stored = prepared.candidates(setting)
    asked, list_of = np.unique(prepared.molecule[queries], return_inverse=True)
    numbers = np.asarray(stored.list_of)[asked]
    ends, (members, identity) = gather(stored.indptr, (stored.molecules, stored.identity), numbers)
    counts = np.diff(ends).astype(np.int64)
    if most is not None:
        kept = _drawn(prepared, asked, members, identity, counts, most)
        members, identity = members[kept], identity[kept]
        counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[kept], minlength=len(counts))
    table, places = np.unique(members, return_inverse=True)
    molecules = molecules_from(prepared, table, jobs)
    own = spectra if spectra is not None else spectra_from(prepared, queries)
    lists = Lists(
        own, np.asarray(list_of, np.int64), pointers(counts), places.astype(np.int64), molecules
    )
    return lists, np.asarray(identity)[lists.place]


def _drawn(
    prepared: Prepared,
    asked: npt.NDArray[np.integer],
    members: npt.NDArray[np.integer],
    identity: npt.NDArray[np.uint8],
    counts: Ints,
    most: int,
) -> npt.NDArray[np.bool_]:
    """Which candidates of each list are kept: the truth, and others by a number of their own."""
    kept = np.asarray(identity) > 0
    ends = pointers(counts)
    for each in np.flatnonzero(counts > most):
        here = slice(int(ends[each]), int(ends[each + 1]))
        truth = bytes(prepared.blocks[asked[each]])
        lots = np.array(
            [chance(truth, prepared.smiles[int(one)].encode()) for one in members[here]], np.int64
        )
        order = np.lexsort((lots, ~kept[here]))
        kept[here][order[:most]] = True
    kept[np.repeat(counts <= most, counts)] = True
    return kept


def chance(*what: bytes) -> int:
    """A number that depends on what is named and on nothing else: drawing without an order.

    Examples
    --------
    >>> chance(b"a", b"b") == chance(b"a", b"b"), chance(b"a", b"b") == chance(b"a", b"c")
    (True, False)
    """
    return int.from_bytes(blake2b(b"\0".join(what), digest_size=7).digest(), "big")


def with_lists(
    prepared: Prepared, queries: npt.NDArray[np.int64], setting: str, identity: str
) -> npt.NDArray[np.int64]:
    """Those of the spectra in whose list the truth is labelled in a sense."""
    lists = prepared.candidates(setting)
    hits = pointers((np.asarray(lists.identity) & IDENTITIES[identity]) > 0)
    labelled = hits[lists.indptr[1:]] > hits[lists.indptr[:-1]]
    number = np.asarray(lists.list_of)[prepared.molecule[queries]]
    usable = number >= 0
    usable[usable] = labelled[number[usable]]
    return queries[usable]


def few_of_each(
    prepared: Prepared, queries: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.int64]:
    """At most so many spectra of each molecule, drawn by chance, the same whatever their order."""
    lots = np.array([chance(prepared.identifiers[int(each)].encode()) for each in queries])
    order = np.lexsort((lots, prepared.molecule[queries]))
    molecule = prepared.molecule[queries][order]
    rank = np.arange(len(order)) - np.searchsorted(molecule, molecule)
    return np.sort(queries[order[rank < most]])


def some_molecules(
    prepared: Prepared, queries: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.int64]:
    """All spectra of at most so many of the molecules, drawn by chance, whatever their order."""
    molecules = np.unique(prepared.molecule[queries])
    lots = [chance(bytes(prepared.blocks[each])) for each in molecules]
    drawn = molecules[np.argsort(lots, kind="stable")[:most]]
    return queries[np.isin(prepared.molecule[queries], drawn)]


def questions_from(
    prepared: Prepared,
    queries: npt.NDArray[np.int64],
    setting: str,
    *,
    identity: str = "fingerprint",
    most: int | None = None,
    jobs: int | None = None,
) -> Questions:
    """Spectra with lists and answers; those whose list lacks the answer are left out."""
    usable = with_lists(prepared, queries, setting, identity)
    lists, same = lists_from(prepared, usable, setting, most=most, jobs=jobs)
    labels = (same & IDENTITIES[identity]) > 0
    return Questions(lists, labels, prepared.blocks[prepared.molecule[usable]])


def lessons_from(
    prepared: Prepared, queries: npt.NDArray[np.int64], questions: Questions
) -> Lessons:
    """Spectra with their molecules, and the questions that are asked of some of them."""
    table, molecule = np.unique(prepared.molecule[queries], return_inverse=True)
    return Lessons(
        spectra_from(prepared, queries),
        np.asarray(molecule, np.int64),
        molecules_from(prepared, table),
        prepared.blocks[table],
        questions,
    )
