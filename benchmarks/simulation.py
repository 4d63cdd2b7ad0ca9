r"""Compare predicted spectra with measured ones of val.

    python benchmarks/simulation.py massbank.tsv.gz [--molecules 250]

The forward model is fitted on the train fold. Of each val molecule one spectrum that shows a
fragment is predicted at its energy and on its instrument. The nearest neighbour is the train
molecule of the highest Tanimoto similarity (morgan2), and of its spectra that of the same adduct
and instrument with the nearest energy. Fragments alone are compared, peaks within 0.5 of the
precursor left out, since the model does not predict it; the precursor alone is compared with whole
spectra. Peaks match within 0.02.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from forward_model import spectrum_of, training_set
from mzseek.chem import fingerprints
from mzseek.chem.molecules import describe_structure
from mzseek.evidence.fragments import collision_energy
from mzseek.evidence.intensities import Intensities
from mzseek.evidence.simulation import simulate
from mzseek.library.similarity import (
    entropy_lists,
    entropy_similarity,
    greedy_cosine,
    peak_lists,
)
from mzseek.metrics import bootstrap
from mzseek.similarity.packed import pack_words, packed_tanimoto
from mzseek.spectra import Spectrum
from mzseek.spectra.records import instrument_kind

TOLERANCE = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("spectra", type=Path)
    parser.add_argument("--molecules", type=int, default=250, help="of val")
    given = parser.parse_args()
    table = pd.read_csv(given.spectra, sep="\t")
    train = table[table.fold == "train"].reset_index(drop=True)
    state = Intensities().fit(training_set(train))
    shown = one_each(table[table.fold == "val"], given.molecules)
    known = train.smiles.drop_duplicates().tolist()
    words = [pack_words(fingerprints(smiles, "morgan2")) for smiles in (known, shown.smiles)]
    nearest = packed_tanimoto(words[1], words[0]).argmax(1)
    found: dict[str, list[tuple[float, float]]] = {}
    similarity = packed_tanimoto(words[1], words[0]).max(1)
    for row, neighbour in zip(shown.itertuples(), nearest, strict=True):
        spectrum = spectrum_of(row)
        fragments = without_precursor(spectrum)
        instrument = instrument_kind(spectrum.metadata)
        energy = collision_energy(spectrum)
        molecule = ("it", describe_structure(row.smiles))
        predicted = next(
            simulate(state, [molecule], [row.adduct], [energy], instrument, refuse), None
        )
        own = train[(train.smiles == known[neighbour]) & (train.adduct == row.adduct)]
        own = own if not len(own) else own.iloc[np.lexsort((
            (own.collision_energy - energy).abs(), own.instrument_type != row.instrument_type
        ))]  # fmt: skip
        other = spectrum_of(own.iloc[0]) if len(own) else None
        top = np.array([spectrum.precursor_mz]), np.ones(1)
        alone = Spectrum(*top, spectrum.precursor_mz, row.adduct, spectrum.charge, "x")
        pairs = {
            "predicted": (fragments, predicted and predicted.spectrum),
            "nearest neighbour": (fragments, other and without_precursor(other)),
            "nearest neighbour, whole": (spectrum, other),
            "precursor alone, whole": (spectrum, alone),
        }
        for name, pair in pairs.items():
            found.setdefault(name, []).append(similarities(*pair))
    print(f"{len(shown)} molecules; Tanimoto of the nearest: median {np.median(similarity):.2f}")
    for name, values in found.items():
        told = []
        for column in np.array(values).T:
            interval = bootstrap(column, np.arange(len(column)))
            told.append(f"{interval.mean:.3f} ({interval.low:.3f}…{interval.high:.3f})")
        print(f"{name:26} cosine {told[0]}  entropy {told[1]}")


def refuse(where: str, reason: str) -> None:
    print(f"{where}: {reason}")


def one_each(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """One spectrum with a fragment of each of some molecules."""
    table = table.sample(frac=1, random_state=0)
    table = table[[bool(len(without_precursor(spectrum_of(row)))) for row in table.itertuples()]]
    return table.drop_duplicates("smiles").head(count)


def without_precursor(spectrum: Spectrum) -> Spectrum:
    far = np.abs(spectrum.mz - spectrum.precursor_mz) > 0.5
    return Spectrum(
        spectrum.mz[far], spectrum.intensities[far], spectrum.precursor_mz, spectrum.adduct,
        spectrum.charge, spectrum.identifier, spectrum.metadata,
    )  # fmt: skip


def similarities(one: Spectrum, other: Spectrum | None) -> tuple[float, float]:
    """Cosine and entropy similarity; 0 where there is no other spectrum."""
    if other is None or not len(other):
        return 0.0, 0.0
    cosine, _ = greedy_cosine(one.mz, one.intensities, other.mz, other.intensities, TOLERANCE, 0.0)
    weighted = entropy_lists(peak_lists([one, other])[0], TOLERANCE)
    first, second = (slice(*weighted.pointers[n : n + 2]) for n in range(2))
    entropy, _ = entropy_similarity(
        weighted.values[first], weighted.weights[first],
        weighted.values[second], weighted.weights[second], TOLERANCE,
    )  # fmt: skip
    return float(cosine), float(entropy)


if __name__ == "__main__":
    main()
