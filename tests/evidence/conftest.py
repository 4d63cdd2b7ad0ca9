"""Simulated spectra of real molecules, with candidates: what channels can be asked about."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mzseek.chem import exact_mass, inchikey_block
from mzseek.chem.adducts import precursor_mz
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.channel import Channel, ChannelState, Features
from mzseek.evidence.fitting import fit
from mzseek.evidence.fragments import PairInputs, pair_inputs
from mzseek.evidence.queries import Molecules, Queries, TrainingSet
from mzseek.evidence.registry import channels_from
from mzseek.fragments import ion_forms, pieces, plausible
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum

from ..molecules import MOLECULES

LENGTH = 6


def simulated(smiles: str, number: int, adduct: str = "[M+H]+") -> Spectrum:
    """A spectrum of a molecule: protonated fragments of few broken bonds, some left out, noise."""
    rng = np.random.default_rng([7, number])
    masses, bonds = pieces(smiles)
    usual = (bonds > 0) & (bonds < 3) & (masses > 40)
    drawn = np.flatnonzero(usual & (rng.random(len(masses)) < 0.9))
    ions = (masses[drawn] + 1.007276) * (1 + 3e-6 * rng.standard_normal(len(drawn)))
    heights = rng.uniform(0.7, 1.0, len(drawn)) * np.exp(-bonds[drawn].astype(float))
    mass = precursor_mz(exact_mass(smiles), adduct)
    mz, heights = np.append(ions, mass), np.append(heights, 0.3)
    order = np.argsort(mz)
    return Spectrum(mz[order], heights[order], mass, adduct, 1, f"{smiles}-{number}")


def questions_of(smiles: list[str], candidates: list[list[str]], each: int = 2) -> Queries:
    """Spectra of molecules, several of each, with candidates by SMILES."""
    owners = np.repeat(np.arange(len(smiles)), each)
    spectra = [simulated(smiles[own], number) for number, own in enumerate(owners)]
    once = Queries.of([spectra[0]] * len(candidates), candidates, jobs=1)
    lists = Queries(spectra, owners, once.pointers, once.members, once.molecules)
    truth = np.array(smiles)[owners]
    named = np.array(lists.molecules.smiles)[lists.candidates]
    blocks = np.array([inchikey_block(each) for each in smiles], "S14")
    return Queries(lists, named == lists.ragged.repeat_per_list(truth), blocks[owners])


@pytest.fixture(scope="session")
def asked() -> Queries:
    """40 molecules, two spectra each, lists of six of about equal mass."""
    pool = [smiles for smiles in MOLECULES[:300] if 10 <= len(smiles) <= 40]
    pool = sorted(pool, key=exact_mass)
    smiles = pool[100:140]
    lists = []
    for truth in smiles:
        place = pool.index(truth)
        lists.append(pool[place - LENGTH // 2 : place + LENGTH // 2])
    return questions_of(smiles, lists)


@pytest.fixture(scope="session")
def lessons(asked: Queries) -> TrainingSet:
    return lessons_of(asked)


def lessons_of(asked: Queries) -> TrainingSet:
    """All spectra of the questions, with their molecules."""
    starts = np.flatnonzero(asked.labels)
    truth = asked.candidates[starts]
    table, molecule = np.unique(truth, return_inverse=True)
    smiles = [asked.molecules.smiles[each] for each in table]
    blocks = np.array([inchikey_block(each) for each in smiles], "S14")
    return TrainingSet(asked.spectra, molecule, Molecules(smiles), blocks, asked)


@pytest.fixture
def in_two_orders(
    asked: Queries, lessons: TrainingSet
) -> Callable[[Channel], tuple[ChannelState, Features, Features]]:
    """What a channel learns and says, and what it says of all in another order, row by row."""

    def hold(channel: Channel) -> tuple[ChannelState, Features, Features]:
        learned = channel.fit(lessons)
        said = channel.features(learned, asked)
        assert said.shape == (asked.ragged.total, len(channel.feature_names))
        assert said.dtype == np.float32
        assert np.isfinite(said).all()
        other, rows = _shuffled(asked)
        again = channel.fit(lessons_of(other))
        assert np.array_equal(again.inchikey14, learned.inchikey14)
        return learned, said[rows], channel.features(again, other)

    return hold


@pytest.fixture
def shuffled(asked: Queries) -> Queries:
    """The same questions in another order of spectra, candidates and peaks."""
    return _shuffled(asked)[0]


def inputs_from(lists: Queries) -> PairInputs:
    """Explained peaks, as a plausible order of explanations chooses them."""
    forms = [ion_forms(spectrum.adduct or "[M+H]+") for spectrum in lists.spectra]
    return pair_inputs(lists, forms, plausible(), 10.0, 0.001)


@pytest.fixture(scope="session")
def inputs_of() -> Callable[[Queries], PairInputs]:
    return inputs_from


@pytest.fixture(scope="session")
def inputs(asked: Queries) -> PairInputs:
    return inputs_from(asked)


def _shuffled(asked: Queries) -> tuple[Queries, np.ndarray]:
    """The same questions in another order of spectra, candidates and peaks; where each row was."""
    rng, lists = np.random.default_rng(3), asked
    order = rng.permutation(len(asked))
    members, inside = lists.members.copy(), np.arange(len(lists.members))
    for start, end in zip(lists.pointers[:-1], lists.pointers[1:], strict=True):
        inside[start:end] = start + rng.permutation(end - start)
    spectra = []
    for each in order:
        spectrum = lists.spectra[each]
        peaks = rng.permutation(len(spectrum))
        spectra.append(
            Spectrum(
                spectrum.mz[peaks], spectrum.intensities[peaks], spectrum.precursor_mz,
                spectrum.adduct, spectrum.charge, spectrum.identifier,
            )
        )  # fmt: skip
    other = Queries(spectra, lists.list_of[order], lists.pointers, members[inside], lists.molecules)
    first = lists.ragged.starts[order]
    within = inside[other.place] - np.repeat(lists.pointers[lists.list_of[order]], other.counts)
    rows = np.repeat(first, other.counts) + within
    return Queries(other, asked.labels[rows], asked.inchikey14[order]), rows


@pytest.fixture(scope="session")
def fitted_run(small_set: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Fragments and analogs, fitted on the small folder; tests must leave it as it is."""
    out = tmp_path_factory.mktemp("fitted") / "evidence"
    prepared = Prepared.open(small_set.folder)
    return fit(prepared, channels_from("fragments,analogs"), out, jobs=1)
