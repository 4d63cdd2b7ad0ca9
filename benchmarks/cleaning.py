"""What cleaning removes, how much of it are fragments, and what library matches gain.

    python benchmarks/cleaning.py set.tsv.gz [--fold val] [--corrupt] [--matches]
    python benchmarks/cleaning.py cbio_standards.msp

A removed peak counts as a fragment if the molecule explains it within 10 ppm (25 ppm for the
standards), by up to three cleavages; beside it the same share of the peaks that stay. With
``--corrupt`` all parts of `mzseek.spectra.augmentation` but the drift are added before.

With ``--matches`` the spectra are searched among those that other contributors have measured at the
same precursor m/z (10 ppm), as library matches are, as measured and cleaned: how often the best one
is of the right molecule, how similar the best one of the right molecule is, and how often it is as
similar as level 2a asks for.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from corrupted import corruption, drawn, molecule_of
from mzseek.annotation.references import LEAST_SIMILARITY, without_precursor
from mzseek.core.errors import MzseekError
from mzseek.datasets.files import read_table
from mzseek.fragments import explain
from mzseek.library.library import TOLERANCE, Index
from mzseek.library.similarity import peak_lists
from mzseek.metrics import bootstrap
from mzseek.spectra import Spectrum
from mzseek.spectra.augmentation import PARTS
from mzseek.spectra.cleaning import artefacts, count_reasons, without
from uncurated import records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spectra", type=Path)
    parser.add_argument("--fold", default="val")
    parser.add_argument("--molecules", type=int, default=300)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--corrupt", action="store_true")
    parser.add_argument("--matches", action="store_true")
    given = parser.parse_args()
    if given.matches:
        matches(given)
        return
    peaks, explained, intensity = Counter[str](), Counter[str](), Counter[str]()
    spectra = touched = 0
    ppm = 25.0 if given.spectra.suffix == ".msp" else 10.0
    for spectrum, smiles in measured(given):
        try:
            rows = explain(spectrum, smiles, ppm=ppm, refine=False)
        except MzseekError:
            continue
        reasons = artefacts(spectrum)
        spectra, touched = spectra + 1, touched + any(reasons)
        total = spectrum.intensities.sum()
        for reason, row, height in zip(reasons, rows, spectrum.intensities, strict=True):
            kind = next(iter(count_reasons([reason])), "stays")
            peaks[kind] += 1
            explained[kind] += row.formula is not None
            intensity[kind] += height / total
    print(f"{spectra} spectra, {touched} of which lose peaks")
    for kind, number in peaks.most_common():
        print(
            f"{kind}: {number} peaks ({number / peaks.total():.1%}), "
            f"{intensity[kind] / spectra:.2%} of the intensity; "
            f"fragments of the molecule: {explained[kind] / number:.1%}"
        )


def measured(given: argparse.Namespace) -> Iterator[tuple[Spectrum, str]]:
    """Spectra and the SMILES of their molecules."""
    if given.spectra.suffix == ".msp":
        yield from records(given.spectra)
        return
    pool = [
        spectrum
        for spectrum in read_table(given.spectra, lambda where, reason: None)
        if spectrum.metadata["fold"] == given.fold
    ]
    corrupt = corruption(pool, tuple(part for part in PARTS if part != "drift"), 0)
    for spectrum in drawn(pool, given.molecules, given.each):
        smiles = molecule_of(spectrum)
        yield (corrupt(spectrum, smiles) if given.corrupt else spectrum), smiles


def matches(given: argparse.Namespace) -> None:
    """Print what library matches gain."""
    everything = [
        spectrum
        for spectrum in read_table(given.spectra, lambda where, reason: None)
        if spectrum.metadata["fold"] in ("train", given.fold)
    ]
    makers: dict[str, set[str]] = {}
    for spectrum in everything:
        maker = spectrum.metadata["contributor"]
        makers.setdefault(molecule_of(spectrum), set()).add(maker)
    shared = [
        spectrum
        for spectrum in everything
        if spectrum.metadata["fold"] == given.fold and len(makers[molecule_of(spectrum)]) > 1
    ]
    pool = [spectrum for spectrum in everything if spectrum.metadata["fold"] == given.fold]
    corrupt = corruption(pool, tuple(part for part in PARTS if part != "drift"), 0)
    masses = np.array([spectrum.precursor_mz for spectrum in everything])
    found: dict[str, list[tuple[float, float, float]]] = {"as measured": [], "cleaned": []}
    of = []
    for spectrum in drawn(shared, given.molecules, given.each):
        near = np.flatnonzero(np.abs(masses / spectrum.precursor_mz - 1) < 1e-5).tolist()
        maker = spectrum.metadata["contributor"]
        library = [
            everything[index]
            for index in near
            if everything[index].metadata["contributor"] != maker
            and everything[index].polarity == spectrum.polarity
        ]
        if not any(molecule_of(other) == molecule_of(spectrum) for other in library):
            continue
        query = corrupt(spectrum, molecule_of(spectrum)) if given.corrupt else spectrum
        of.append(molecule_of(spectrum))
        for name, own in (
            ("as measured", query), ("cleaned", without(query, artefacts(query)))
        ):  # fmt: skip
            found[name].append(best_match(own, library, molecule_of(spectrum)))
    molecule = np.unique(of, return_inverse=True)[1]
    columns = {name: np.array(rows).T for name, rows in found.items()}
    print(f"{len(of)} spectra of {molecule.max() + 1} molecules")
    for at, what in enumerate(("best match is right", "similarity", "similar enough for 2a")):
        before, after = columns["as measured"][at], columns["cleaned"][at]
        change = bootstrap(after - before, molecule, bounds=(-1.0, 1.0))
        print(
            f"{what}: {before.mean():.3f} as measured, {after.mean():.3f} cleaned, difference "
            f"{change.mean:+.3f} ({change.low:+.3f}…{change.high:+.3f})"
        )


def best_match(
    query: Spectrum, library: Sequence[Spectrum], molecule: str
) -> tuple[float, float, float]:
    """Whether the best match is right, the similarity of the right one, and if 2a accepts it."""
    lists, ions = peak_lists(map(without_precursor, library))
    search = Index("cosine", lists, ions, TOLERANCE).search(
        *peak_lists([without_precursor(query)]), len(library), np.arange(len(library)),
        np.ones(len(library), np.bool_), threads=1,
    )  # fmt: skip
    order = search.records[0][search.records[0] >= 0]
    is_right = np.array([molecule_of(library[index]) == molecule for index in order], np.bool_)
    if not is_right.any():
        return 0.0, 0.0, 0.0
    similarity = float(search.scores[0][: len(order)][is_right].max())
    return float(is_right[0]), similarity, float(similarity >= LEAST_SIMILARITY)


if __name__ == "__main__":
    main()
