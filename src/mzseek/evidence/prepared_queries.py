"""Queries and training sets from folders of prepared data."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import parse_adduct
from mzseek.core.ragged import Ragged, gather, pointers
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.queries import Ints, Molecules, Queries, TrainingSet
from mzseek.io import stable_hash
from mzseek.spectra import Spectrum


def spectra_from(prepared: Prepared, spectra: npt.NDArray[np.integer]) -> list[Spectrum]:
    """Spectra of a prepared folder, as a reader would return them."""
    loaded = []
    for number in map(int, spectra):
        mz, intensities = prepared.peaks(number)
        adduct, energy = prepared.adduct(number), float(prepared.collision_energy[number])
        metadata = {} if np.isnan(energy) else {"collision_energy": f"{energy:g}"}
        if instrument := prepared.instrument(number):
            metadata["instrument_type"] = instrument
        loaded.append(
            Spectrum(
                np.asarray(mz, np.float64),
                np.asarray(intensities, np.float64),
                float(prepared.precursor_mz[number]),
                adduct,
                parse_adduct(adduct).charge if adduct else None,
                prepared.identifiers[number],
                metadata,
            )
        )
    return loaded


def molecules_from(
    prepared: Prepared, molecules: npt.NDArray[np.integer], jobs: int | None = None
) -> Molecules:
    """Molecules of a prepared folder, with its fingerprints."""
    return Molecules(
        [prepared.smiles[int(number)] for number in molecules],
        str(prepared.manifest["options"]["fingerprint"]),
        lambda rows: prepared.fingerprint_rows(molecules[rows]),
        jobs,
    )


def queries_from(
    prepared: Prepared,
    spectra: npt.NDArray[np.integer],
    setting: str,
    *,
    max_candidates: int | None = None,
    jobs: int | None = None,
) -> tuple[Queries, npt.NDArray[np.uint8]]:
    """Spectra of a prepared folder with their candidates.

    Parameters
    ----------
    prepared : Prepared
    spectra : int array
        Which must all have a list.
    setting : str
        Name of the candidate lists.
    max_candidates : int, optional
        Of a list: the truth, and others drawn by a stable hash, whatever their order.
    jobs : int, optional
        Processes that enumerate fragments.

    Returns
    -------
    queries : Queries
        Without labels.
    identity : uint8 array, shape (rows,)
        In what sense each candidate is the truth, as in `mzseek.datasets.prepared.CandidateLists`.
    """
    stored = prepared.candidates(setting)
    molecules, list_of = np.unique(prepared.molecule[spectra], return_inverse=True)
    numbers = np.asarray(stored.list_of)[molecules]
    ends, (members, identity) = gather(stored.indptr, (stored.molecules, stored.identity), numbers)
    lists = Ragged(np.diff(ends).astype(np.int64))
    if max_candidates is not None:
        chosen = np.asarray(identity) > 0
        chosen[lists.repeat_per_list(lists.counts <= max_candidates)] = True
        for number in np.flatnonzero(lists.counts > max_candidates):
            inside = slice(int(ends[number]), int(ends[number + 1]))
            truth = bytes(prepared.inchikey14[molecules[number]])
            smiles = [prepared.smiles[int(member)].encode() for member in members[inside]]
            hashes = np.array([stable_hash(truth, text) for text in smiles], np.int64)
            chosen[inside][np.lexsort((hashes, ~chosen[inside]))[:max_candidates]] = True
        members, identity = members[chosen], identity[chosen]
        lists = Ragged(np.bincount(lists.list_index[chosen], minlength=len(lists)))
    queries, _ = _queries(prepared, spectra, list_of, lists, members, jobs)
    return queries, np.asarray(identity)[queries.member_of]


def merged_queries(
    prepared: Prepared, spectra: Ints, settings: Sequence[str], jobs: int | None = None
) -> tuple[Queries, Ints]:
    """Spectra with all candidates that any of their lists names, each once, rising.

    Features of a candidate depend on no other candidate, so that the rows of a setting's lists can
    be picked from those of all (`Queries.find_rows`). Also returns the number of each molecule of
    the queries' table in the prepared folder.
    """
    molecules, list_of = np.unique(prepared.molecule[spectra], return_inverse=True)
    lists = [prepared.candidates(setting) for setting in settings]
    merged = [
        np.unique(np.concatenate([stored.of_molecule(int(number)) for stored in lists]))
        for number in molecules
    ]
    counts = Ragged(np.array([len(members) for members in merged], np.int64))
    queries, table = _queries(prepared, spectra, list_of, counts, np.concatenate(merged), jobs)
    return replace(queries, inchikey14=prepared.inchikey14[prepared.molecule[spectra]]), table


def _queries(
    prepared: Prepared,
    spectra: npt.NDArray[np.integer],
    list_of: npt.NDArray[np.integer],
    lists: Ragged,
    members: npt.NDArray[np.integer],
    jobs: int | None,
) -> tuple[Queries, Ints]:
    """Queries whose candidates are molecules of the folder, and those molecules."""
    table, rows = np.unique(members, return_inverse=True)
    queries = Queries(
        spectra_from(prepared, spectra),
        np.asarray(list_of, np.int64),
        pointers(lists.counts),
        rows.astype(np.int64),
        molecules_from(prepared, table, jobs),
    )
    return queries, table


def queries_with_truth(prepared: Prepared, spectra: Ints, setting: str, identity: str) -> Ints:
    """Those of the spectra whose list holds the truth, in a sense of identity."""
    lists = prepared.candidates(setting)
    labelled = Ragged(lists.sizes).any((np.asarray(lists.identity) & IDENTITY_BITS[identity]) > 0)
    number = np.asarray(lists.list_of)[prepared.molecule[spectra]]
    usable = number >= 0
    usable[usable] = labelled[number[usable]]
    return spectra[usable]


def sample_spectra(prepared: Prepared, spectra: Ints, max_per_molecule: int) -> Ints:
    """Draw at most so many spectra of each molecule, by a stable hash of their identifiers."""
    hashes = np.array(
        [stable_hash(prepared.identifiers[int(number)].encode()) for number in spectra]
    )
    order = np.lexsort((hashes, prepared.molecule[spectra]))
    molecule = prepared.molecule[spectra][order]
    rank = np.arange(len(order)) - np.searchsorted(molecule, molecule)
    return np.sort(spectra[order[rank < max_per_molecule]])


def sample_molecules(prepared: Prepared, spectra: Ints, max_molecules: int) -> Ints:
    """All spectra of at most so many molecules, drawn by a stable hash."""
    molecules = np.unique(prepared.molecule[spectra])
    hashes = [stable_hash(bytes(prepared.inchikey14[number])) for number in molecules]
    drawn = molecules[np.argsort(hashes, kind="stable")[:max_molecules]]
    return spectra[np.isin(prepared.molecule[spectra], drawn)]


def labelled_queries(
    prepared: Prepared,
    spectra: Ints,
    setting: str,
    *,
    identity: str = "fingerprint",
    max_candidates: int | None = None,
    jobs: int | None = None,
) -> Queries:
    """Spectra with candidates and labels; those whose list lacks the truth are left out."""
    usable = queries_with_truth(prepared, spectra, setting, identity)
    queries, same = queries_from(
        prepared, usable, setting, max_candidates=max_candidates, jobs=jobs
    )
    labels = (same & IDENTITY_BITS[identity]) > 0
    keys = prepared.inchikey14[prepared.molecule[usable]]
    return replace(queries, labels=labels, inchikey14=keys)


def training_set_from(
    prepared: Prepared, spectra: npt.NDArray[np.int64], queries: Queries
) -> TrainingSet:
    """Spectra of a prepared folder with their molecules, and labelled queries of some of them."""
    table, molecule = np.unique(prepared.molecule[spectra], return_inverse=True)
    return TrainingSet(
        spectra_from(prepared, spectra),
        np.asarray(molecule, np.int64),
        molecules_from(prepared, table),
        prepared.inchikey14[table],
        queries,
    )
