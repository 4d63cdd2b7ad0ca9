"""What library matches are worth, measured in a library of known odds."""

import numpy as np
import pytest

from mzseek.annotation.confidence import (
    MatchOdds,
    fit_match_odds,
    library_without_precursors,
    without_precursor,
)
from mzseek.core.errors import BundleError
from mzseek.library import Library
from mzseek.spectra import Spectrum


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """80 molecules, pairs of one mass; each measured by two contributors, nearly alike."""
    from mzseek.chem import exact_mass, precursor_mz

    folder = tmp_path_factory.mktemp("library")
    rng = np.random.default_rng(0)
    text = ""
    for number in range(40):
        chain = "C" * (number % 20 + 2)
        ring = "c1ccccc1" if number < 20 else "c1ccncc1"
        for smiles in (f"{chain}O{ring}", f"{chain[:-1]}OC{ring}"):
            mz = np.sort(rng.uniform(50, 150, 12)).round(3)
            heights = rng.uniform(0.1, 1, 12)
            for whose in ("Anna", "Berta"):
                peaks = heights * rng.uniform(0.9, 1.1, 12)
                text += (
                    f"BEGIN IONS\nSPECTRUM_ID={smiles}-{whose}\nSMILES={smiles}\n"
                    f"CONTRIBUTOR={whose}\nADDUCT=[M+H]+\n"
                    f"PEPMASS={precursor_mz(exact_mass(smiles), '[M+H]+'):.5f}\n"
                    + "".join(f"{m} {h:.4f}\n" for m, h in zip(mz, peaks, strict=True))
                    + "END IONS\n"
                )
    (folder / "a.mgf").write_text(text)
    return Library.build(folder / "a.mgf", folder / "library")


def test_the_same_molecule_is_told_by_its_spectrum(library):
    odds = fit_match_odds(library, 1)
    assert (odds.same, odds.other) == (160, 160)
    assert (np.diff(odds.nats) >= 0).all()
    assert odds.of([0.0])[0] < -2
    assert odds.of([0.98])[0] > 2


def test_too_few_pairs_say_nothing(library, bundle):
    assert fit_match_odds(library, -1) is None
    assert fit_match_odds(bundle.library, 1) is None  # one contributor


def test_peaks_of_the_precursor_are_left_out_of_both_sides(library):
    bare = library_without_precursors(library)
    assert (len(bare), bare.ions) == (len(library), library.ions)
    mz, heights = np.array([50.0, 100.0, 100.3]), np.array([1.0, 9.0, 2.0])
    one = Spectrum(mz, heights, 100.1, "[M+H]+", 1, "a")
    assert without_precursor(one).mz.tolist() == [50.0]
    only = Spectrum(mz[1:], heights[1:], 100.1, "[M+H]+", 1, "a")
    assert without_precursor(only) is only


def test_plain_data_and_back():
    odds = MatchOdds(np.array([-1.0, 0.5, 3.0]), 70, 80)
    again = MatchOdds.from_dict(odds.to_dict())
    assert again.of([0.1, 0.5, 0.99]).tolist() == [-1.0, 0.5, 3.0]
    assert again.of([0.6])[0] > 0.5
    assert (again.same, again.other) == (70, 80)
    with pytest.raises(BundleError, match="has no nats"):
        MatchOdds.from_dict({"nats": [], "same": 0, "other": 0})
    with pytest.raises(BundleError):
        MatchOdds.from_dict({"nats": [1.0]})
