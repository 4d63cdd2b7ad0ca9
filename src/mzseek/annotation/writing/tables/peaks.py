"""``peaks.tsv``: each peak of a feature's spectra, and the piece that explains it."""

from collections.abc import Iterator

from rdkit.Chem import Mol, MolFragmentToSmiles

from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.writing.spool import Settings, Writer, ranked
from mzseek.annotation.writing.tables.cells import decimal, row, words
from mzseek.chem import parse_molecule
from mzseek.errors import MzseekError
from mzseek.fragments import Explanation, explain
from mzseek.spectra import Spectrum

COLUMNS = (
    "feature", "spectrum", "rank", "smiles", "mz", "intensity", "relative", "formula", "errorPpm",
    "charge", "bonds", "hydrogens", "piece", "atoms",
)  # fmt: skip


class Peaks(Writer):
    """Writes ``peaks.tsv``."""

    def write(self, answer: Answer) -> None:
        """Add a row for each peak and candidate."""
        self._begin()
        self.spools[self.name].write("".join(map(row, peak_rows(answer, self.settings))))

    def finish(self) -> list[str]:
        """Complete the file: without answers it is a header."""
        self._begin()
        return super().finish()

    def _begin(self) -> None:
        if self.spools[self.name].is_empty:
            self.spools[self.name].write(row(COLUMNS))


def peak_rows(answer: Answer, settings: Settings) -> Iterator[list[str]]:
    """Rows of a feature: for each of its best candidates all peaks of all spectra.

    A feature without candidates has its peaks all the same, unexplained.
    """
    best: list[tuple[int, Candidate | None]] = [*enumerate(ranked(answer)[: settings.peaks_of], 1)]
    for rank, candidate in best or [(0, None)]:
        molecule = None if candidate is None else _molecule(candidate.smiles)
        for spectrum in answer.feature.spectra:
            most = float(spectrum.intensities.max(initial=0.0)) or 1.0
            for peak in _explained(spectrum, candidate, settings):
                yield [
                    words(answer.feature.name),
                    words(spectrum.identifier),
                    str(rank) if rank else "",
                    words(candidate.smiles) if candidate else "",
                    decimal(peak.mz, 5),
                    f"{peak.intensity:.6g}",
                    decimal(peak.intensity / most, 4),
                    *_explanation_cells(peak, molecule),
                ]


def _explained(
    spectrum: Spectrum, candidate: Candidate | None, settings: Settings
) -> Iterator[Explanation]:
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


def _explanation_cells(peak: Explanation, molecule: Mol | None) -> list[str]:
    if peak.formula is None or molecule is None:
        return [""] * 7
    return [
        words(peak.formula),
        decimal(peak.error_ppm, 2),
        f"{peak.charge:+d}" if peak.charge is not None else "",
        str(peak.bonds),
        f"{peak.hydrogens:+d}" if peak.hydrogens else "0",
        words(MolFragmentToSmiles(molecule, list(peak.atoms))) if peak.atoms else "",
        " ".join(map(str, peak.atoms)),
    ]


def _molecule(smiles: str) -> Mol | None:
    try:
        return parse_molecule(smiles)
    except MzseekError:
        return None
