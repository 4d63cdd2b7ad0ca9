"""Simulated spectra of real molecules with candidates, and a fitted run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mzseek.chem import exact_mass, inchikey_block
from mzseek.chem.adducts import precursor_mz
from mzseek.datasets.prepared import Prepared
from mzseek.evidence import channels_from
from mzseek.evidence.fitting import fit
from mzseek.evidence.queries import Molecules, Queries, TrainingSet
from mzseek.fragments import pieces
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


def queries_of(smiles: list[str], candidates: list[list[str]], each: int = 2) -> Queries:
    """Labelled spectra of molecules, several of each, with candidates by SMILES."""
    list_of = np.repeat(np.arange(len(smiles)), each)
    spectra = [simulated(smiles[own], number) for number, own in enumerate(list_of)]
    once = Queries.of([spectra[0]] * len(candidates), candidates, jobs=1)
    found = replace(once, spectra=spectra, list_of=list_of)
    truth = found.ragged.repeat_per_list(np.array(smiles)[list_of])
    labels = np.array(found.molecules.smiles)[found.candidates] == truth
    keys = np.array([inchikey_block(text) for text in smiles], "S14")
    return replace(found, labels=labels, inchikey14=keys[list_of])


def training_set_of(queries: Queries) -> TrainingSet:
    """All spectra of the queries, with their molecules."""
    truth = queries.candidates[np.flatnonzero(queries.labels)]
    table, molecule = np.unique(truth, return_inverse=True)
    smiles = [queries.molecules.smiles[row] for row in table]
    keys = np.array([inchikey_block(text) for text in smiles], "S14")
    return TrainingSet(queries.spectra, molecule, Molecules(smiles), keys, queries)


@pytest.fixture(scope="session")
def queries() -> Queries:
    """40 molecules, two spectra each, lists of six of about equal mass."""
    pool = [smiles for smiles in MOLECULES[:300] if 10 <= len(smiles) <= 40]
    pool = sorted(pool, key=exact_mass)
    around = [pool[place - LENGTH // 2 : place + LENGTH // 2] for place in range(100, 140)]
    return queries_of(pool[100:140], around)


@pytest.fixture(scope="session")
def training_set(queries: Queries) -> TrainingSet:
    return training_set_of(queries)


def shuffled(queries: Queries) -> tuple[Queries, np.ndarray]:
    """The queries in another order of spectra, candidates and peaks; and where each row was."""
    rng = np.random.default_rng(3)
    order = rng.permutation(len(queries))
    inside = np.arange(len(queries.members))
    for start, end in zip(queries.pointers[:-1], queries.pointers[1:], strict=True):
        inside[start:end] = start + rng.permutation(end - start)
    spectra = []
    for number in order:
        spectrum = queries.spectra[number]
        peaks = rng.permutation(len(spectrum))
        spectra.append(
            replace(spectrum, mz=spectrum.mz[peaks], intensities=spectrum.intensities[peaks])
        )
    list_of = queries.list_of[order]
    other = replace(
        queries, spectra=spectra, list_of=list_of, members=queries.members[inside],
        inchikey14=queries.inchikey14[order],
    )  # fmt: skip
    within = inside[other.member_of] - np.repeat(queries.pointers[list_of], other.counts)
    rows = np.repeat(queries.ragged.starts[order], other.counts) + within
    return replace(other, labels=queries.labels[rows]), rows


@pytest.fixture(scope="session")
def fitted_run(small_set: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Fragments and analogs, fitted on the small folder; tests must leave it as it is."""
    out = tmp_path_factory.mktemp("fitted") / "evidence"
    prepared = Prepared.open(small_set.folder)
    return fit(prepared, channels_from("fragments,analogs"), out, jobs=1)
