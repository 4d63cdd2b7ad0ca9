"""The substructure channel."""

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.substructures import SubstructureOptions, Substructures


def bins_of(spectrum, losses: bool) -> dict[int, float]:
    """Share of the roots of heights in each bin of 0.01."""
    values = spectrum.precursor_mz - spectrum.mz if losses else spectrum.mz
    kept = values > (0.5 if losses else 0)
    roots = np.sqrt(spectrum.intensities / spectrum.intensities.max())[kept]
    found: dict[int, float] = {}
    for value, root in zip(values[kept], roots, strict=True):
        place = int(np.floor(value / 0.01))
        found[place] = found.get(place, 0.0) + root / roots.sum()
    return found


def test_features_are_those_of_a_plain_loop(queries: Queries, training_set: TrainingSet) -> None:
    doubt = 3.0
    channel = Substructures(SubstructureOptions(doubt=doubt))
    left = training_set.without(queries.inchikey14[:2])
    lists = queries.only(np.array([0]))
    features = channel.features(channel.fit(left), lists)
    used = np.unique(left.molecule)
    bits = fingerprints([left.molecules.smiles[each] for each in used]).toarray()
    usual = bits.mean(0)
    own = fingerprints([lists.molecules.smiles[each] for each in lists.candidates]).toarray() > 0
    for side, losses in enumerate((False, True)):
        known = [set(bins_of(spectrum, losses)) for spectrum in left.spectra]
        total = np.zeros(len(own))
        for place, share in bins_of(lists.spectra[0], losses).items():
            holders = {m for m, bins in zip(left.molecule, known, strict=True) if place in bins}
            if not holders:
                continue
            have = bits[np.isin(used, list(holders))].sum(0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = (have + doubt * usual) / (len(holders) + doubt) / usual
            # A bit that no known molecule has is drawn towards none as an absent one is.
            log = np.log(np.where(usual > 0, ratio, doubt / (len(holders) + doubt)))
            total += share * np.array([log[candidate].sum() for candidate in own])
        assert np.allclose(features[:, 2 * side], total / own.sum(1), atol=1e-5)
        assert np.allclose(features[:, 2 * side + 1], total / np.sqrt(own.sum(1)), atol=1e-4)
        assert np.abs(total).max() > 0.1


def test_modes_do_not_mix(queries: Queries, training_set: TrainingSet) -> None:
    from dataclasses import replace

    channel = Substructures()
    state, lists = channel.fit(training_set), queries.only(np.arange(2))
    other = [replace(each, adduct="[M-H]-", charge=-1) for each in lists.spectra]
    turned = Queries(other, lists.list_of, lists.pointers, lists.members, lists.molecules)
    assert np.abs(channel.features(state, lists)).max() > 0.1
    assert (channel.features(state, turned) == 0).all()


def test_other_fingerprints_are_refused(queries: Queries, training_set: TrainingSet) -> None:
    channel = Substructures()
    other = Queries.of([queries.spectra[0]], [["CCO"]], fingerprint="maccs")
    with pytest.raises(EvidenceError, match="substructures are morgan2 bits, and candidates maccs"):
        channel.features(channel.fit(training_set), other)
