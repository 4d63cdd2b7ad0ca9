"""``peaks.tsv``: each peak of a feature's spectra, and the piece that explains it."""

import contextlib
from collections.abc import Iterator

from rdkit.Chem import Mol, MolFragmentToSmiles

from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.writing.spool import Rows, Settings, ranked
from mzseek.annotation.writing.tables.cells import decimal, row, words
from mzseek.chem import parse_molecule
from mzseek.errors import MzseekError
from mzseek.fragments import Explanation, explain
from mzseek.spectra import Spectrum

COLUMNS = (
    "feature", "spectrum", "rank", "smiles", "mz", "intensity", "relative", "formula", "errorPpm",
    "charge", "bonds", "hydrogens", "piece", "atoms", "note",
)  # fmt: skip


class Peaks(Rows):
    """Writes ``peaks.tsv``."""

    columns = COLUMNS

    @staticmethod
    def text(answer: Answer, settings: Settings) -> str:
        """A row for each peak and candidate."""
        return "".join(map(row, peak_rows(answer, settings)))


def peak_rows(answer: Answer, settings: Settings) -> Iterator[list[str]]:
    """Rows of a feature: for each of its best candidates all peaks of all spectra.

    A feature without candidates has its peaks all the same, unexplained.
    """
    best: list[tuple[int, Candidate | None]] = [*enumerate(ranked(answer)[: settings.peaks_of], 1)]
    name = words(answer.feature.name)
    for rank, candidate in best or [(0, None)]:
        smiles = words(candidate.smiles) if candidate else ""
        pieces = FragmentSmiles(candidate)
        for spectrum in answer.feature.spectra:
            whose = [name, words(spectrum.identifier), str(rank) if rank else "", smiles]
            most = float(spectrum.intensities.max(initial=0.0)) or 1.0
            for peak in explained_peaks(spectrum, candidate, settings):
                yield [
                    *whose,
                    decimal(peak.mz, 5),
                    f"{peak.intensity:.6g}",
                    decimal(peak.intensity / most, 4),
                    *_explanation_cells(peak, pieces),
                ]


def explained_peaks(
    spectrum: Spectrum, candidate: Candidate | None, settings: Settings
) -> Iterator[Explanation]:
    """Peaks of a spectrum, each with the fragment of a candidate that explains it best, if any."""
    if candidate is not None:
        try:
            yield from explain(
                spectrum,
                candidate.smiles,
                adduct=candidate.adduct or None,
                ppm=settings.ppm,
                least=settings.least,
            )
        except MzseekError:  # an ion whose pieces nobody can name explains nothing
            pass
        else:
            return
    for mz, intensity in zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True):
        nothing = (None, None, (), None, None, None, (), None, None)
        yield Explanation(mz, *nothing, intensity, 0.0, 0)


def _explanation_cells(peak: Explanation, pieces: "FragmentSmiles") -> list[str]:
    if peak.formula is None:
        return [""] * 8
    return [
        words(peak.formula),
        decimal(peak.error_ppm, 2),
        f"{peak.charge:+d}" if peak.charge is not None else "",
        str(peak.bonds),
        f"{peak.hydrogens:+d}" if peak.hydrogens else "0",
        pieces.smiles(peak.atoms),
        " ".join(map(str, peak.atoms)),
        peak.note,
    ]


class FragmentSmiles:
    """Fragments of a candidate as SMILES, each written once."""

    def __init__(self, candidate: Candidate | None) -> None:
        self._molecule: Mol | None = None
        self._written: dict[tuple[int, ...], str] = {}
        if candidate is not None:
            with contextlib.suppress(MzseekError):
                self._molecule = parse_molecule(candidate.smiles)

    def smiles(self, atoms: tuple[int, ...]) -> str:
        """SMILES of some atoms of the candidate; empty where it cannot be read."""
        if atoms not in self._written:
            known = self._molecule is not None and atoms
            text = MolFragmentToSmiles(self._molecule, list(atoms)) if known else ""
            self._written[atoms] = words(text)
        return self._written[atoms]
