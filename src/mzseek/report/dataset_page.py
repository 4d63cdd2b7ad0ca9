"""A page about a prepared data set: what its spectra, molecules and candidate lists look like."""

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mzseek.files import StrPath
from mzseek.prepared import Prepared
from mzseek.report.figures import histogram_svg, molecule_svg, spectrum_svg
from mzseek.report.page import write_page
from mzseek.spectra import read_spectra

_SHOWN = 4
_CANDIDATES_SHOWN = 6


def write_dataset_page(
    prepared: Prepared, path: StrPath, *, queries: StrPath | None = None, simulated: bool = False
) -> Path:
    """Write one self-contained HTML file.

    Parameters
    ----------
    prepared : Prepared
    path : Path
        Where the page goes.
    queries : Path, optional
        Real spectra to show beside those of the set.
    simulated : bool
        Whether the page must say that the set is simulated.
    """
    path = Path(path)
    counts = prepared.manifest["counts"]
    return write_page(
        "dataset.html",
        path,
        {
            "simulated": simulated,
            "counts": counts,
            "fingerprint": prepared.manifest["options"]["fingerprint"],
            "bits_per_molecule": counts["fingerprint_bits_set"] / max(1, counts["molecules"]),
            "bins_per_spectrum": counts["bins_filled"] / max(1, counts["spectra"]),
            "examples": [_example(prepared, i) for i in _examples(prepared)],
            "settings": prepared.manifest["candidates"],
            "histogram": Markup(_candidate_histogram(prepared)),
            "queries": _queries(queries) if queries else [],
            "key": prepared.manifest["key"][:12],
        },
    )


def _examples(prepared: Prepared) -> list[int]:
    """Spectra of a few molecules from all over the set: of each, the one richest in peaks."""
    measured = np.unique(prepared.molecule)
    places = np.linspace(0, len(measured), _SHOWN + 2)[1:-1].astype(int)
    chosen = []
    for molecule in np.unique(measured[places]):
        spectra = np.flatnonzero(prepared.molecule == molecule)
        chosen.append(max(spectra.tolist(), key=lambda i: len(prepared.peaks(i)[0])))
    return chosen


def _example(prepared: Prepared, spectrum: int) -> dict[str, Any]:
    molecule = int(prepared.molecule[spectrum])
    mz, intensities = prepared.peaks(spectrum)
    setting = "formula" if "formula" in prepared.settings else next(iter(prepared.settings), None)
    candidates = prepared.candidates(setting).of_molecule(molecule).tolist() if setting else []
    rivals = [candidate for candidate in candidates if candidate != molecule]
    shown = rivals[:_CANDIDATES_SHOWN]
    energy = float(prepared.collision_energy[spectrum])
    return {
        "identifier": prepared.identifiers[spectrum],
        "adduct": prepared.adduct(spectrum),
        "precursor_mz": float(prepared.precursor_mz[spectrum]),
        "energy": None if np.isnan(energy) else energy,
        "peaks": len(mz),
        "formula": prepared.formulas[molecule],
        "smiles": prepared.smiles[molecule],
        "spectrum": Markup(spectrum_svg(mz, intensities, float(prepared.precursor_mz[spectrum]))),
        "molecule": Markup(molecule_svg(prepared.smiles[molecule])),
        "setting": setting,
        "others": len(rivals),
        "candidates": [Markup(molecule_svg(prepared.smiles[c], 130, 100)) for c in shown],
    }


def _candidate_histogram(prepared: Prepared) -> str:
    sizes = {f"equal {name}": prepared.candidates(name).sizes for name in prepared.settings}
    return histogram_svg(sizes, "candidates in a list", "molecules") if sizes else ""


def _queries(path: StrPath) -> list[dict[str, Any]]:
    rejects: list[tuple[str, str]] = []
    return [
        {
            "name": spectrum.identifier,
            "formula": spectrum.metadata.get("formula", ""),
            "precursor_mz": spectrum.precursor_mz,
            "spectrum": Markup(
                spectrum_svg(spectrum.mz, spectrum.intensities, spectrum.precursor_mz)
            ),
            "molecule": Markup(molecule_svg(spectrum.metadata["smiles"])),
        }
        for spectrum in read_spectra(path, rejects)
    ][:3]
