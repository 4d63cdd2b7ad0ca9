"""Spectra of libraries with the molecules they belong to, and what keeps others out."""

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mzseek.adducts import fitting_adducts, parse_adduct
from mzseek.chem.describe import NO_STRUCTURE, DescribedMolecule, describe_first
from mzseek.chem.ions import mass_of_atoms
from mzseek.errors import AdductError
from mzseek.rejects import Report, grouped
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.record import Names
from mzseek.work.progress import Progress, silent

# What `metadata["adduct_from"]` says of an adduct that no file has stated.
INFERRED = "precursor and mass"


@dataclass
class Entry:
    """A usable spectrum and the molecule it belongs to."""

    spectrum: Spectrum
    molecule: int

    @property
    def is_inferred(self) -> bool:
        """Whether its adduct follows from precursor and mass, and was not stated."""
        return self.spectrum.metadata.get("adduct_from") == INFERRED


@dataclass
class Annotated:
    """Usable spectra of some libraries.

    Attributes
    ----------
    entries : list of Entry
        In the order of the files.
    molecules : list of DescribedMolecule
        Their molecules, each once, in standard form.
    read, without_structure : int
        Spectra in the libraries, and those of them that state none.
    """

    entries: list[Entry] = field(default_factory=list)
    molecules: list[DescribedMolecule] = field(default_factory=list)
    read: int = 0
    without_structure: int = 0


def read_annotated(
    libraries: Sequence[Path],
    report: Report,
    *,
    precursor_ppm: float = 20.0,
    keep_stereo: bool = False,
    progress: Progress = silent,
) -> Annotated:
    """Spectra whose structure and adduct agree with their precursor; duplicates are left out.

    A structure is taken from the fields for SMILES and for InChI, whichever of the two stands in
    which; an InChI may lack its prefix. Where no adduct is stated, it is inferred if exactly one of
    the usual ones fits the precursor and the molecule's mass.
    """
    annotated = Annotated()
    place_of: dict[tuple[str, float], int] = {}
    names = Names()
    seen: dict[tuple[object, ...], str] = {}
    described: dict[tuple[str, str], DescribedMolecule | str] = {}
    for library in libraries:
        for spectrum in read_spectra(library, report):
            annotated.read += 1
            where = f"{library}: {spectrum.identifier}"
            fields = (spectrum.metadata.get("smiles", ""), spectrum.metadata.get("inchi", ""))
            if fields not in described:
                described[fields] = describe_first(fields, keep_stereo)
            molecule = described[fields]
            if isinstance(molecule, str):
                annotated.without_structure += molecule == NO_STRUCTURE
                report(where, molecule)
                continue
            agreed = _agreed(spectrum, molecule, precursor_ppm)
            if isinstance(agreed, str):
                report(where, agreed)
                continue
            key = _duplicate_key(agreed, molecule)
            if key in seen:
                report(where, f"is a duplicate (of {seen[key]})")
                continue
            # Scan numbers and titles are unique in a file only.
            name = spectrum.identifier
            name = names.take(f"{library.stem} {name}" if name in names else name)
            seen[key] = name
            if molecule.identity not in place_of:
                place_of[molecule.identity] = len(annotated.molecules)
                annotated.molecules.append(molecule)
            named = dataclasses.replace(agreed, identifier=name)
            annotated.entries.append(Entry(named, place_of[molecule.identity]))
            if len(annotated.entries) % 500 == 0:
                progress("spectra", len(annotated.entries))
    progress("spectra", len(annotated.entries))
    return annotated


def why_nothing(
    libraries: Sequence[Path], annotated: Annotated, rejects: Sequence[tuple[str, str]]
) -> str:
    """One line for libraries without a usable spectrum; what to do if they have no structures."""
    if annotated.without_structure and annotated.without_structure == annotated.read:
        look = shlex.join(["mzseek", "show", str(libraries[0])])
        return (
            f"{', '.join(map(str, libraries))}: {annotated.read:,} spectra, none with a structure, "
            "and a data set is made of those: give a library with SMILES or InChI. "
            f"`{look}` shows what is in a file; naming unknown molecules is not built yet"
        )
    reasons = "; ".join(f"{g.count} × {g.kind}" for g in grouped(rejects)[:3])
    return f"no usable annotated spectrum in the libraries ({reasons})"


def _agreed(spectrum: Spectrum, molecule: DescribedMolecule, ppm: float) -> Spectrum | str:
    """The spectrum with an adduct that structure and precursor agree with, or why there is none."""
    if spectrum.adduct is None:
        return _with_inferred_adduct(spectrum, molecule, ppm)
    try:
        mass = mass_of_atoms(molecule.smiles, molecule.mass)
        expected = parse_adduct(spectrum.adduct).precursor_mz(mass)
    except AdductError as error:
        return str(error)
    off = abs(spectrum.precursor_mz - expected) / expected * 1e6
    if off > ppm:
        return (
            f"precursor disagrees with structure and adduct ({spectrum.precursor_mz:.4f}, expected "
            f"{expected:.4f} as {spectrum.adduct}: {off:.0f} ppm off)"
        )
    return spectrum


def _with_inferred_adduct(
    spectrum: Spectrum, molecule: DescribedMolecule, ppm: float
) -> Spectrum | str:
    given = spectrum.metadata.get("adduct_as_given", "")
    if given and "?" not in given:
        return f"has no single adduct ({given})"
    mode = spectrum.metadata.get("ionmode")
    mode = mode if mode in {"positive", "negative"} else None
    fitting = fitting_adducts(spectrum.precursor_mz, molecule.mass, ppm, spectrum.charge, mode)
    if len(fitting) == 1:
        metadata = spectrum.metadata | {"adduct_from": INFERRED}
        adduct = fitting[0]
        return dataclasses.replace(
            spectrum, adduct=adduct.name, charge=adduct.charge, metadata=metadata
        )
    if fitting:
        names = " and ".join(adduct.name for adduct in fitting)
        return f"has no adduct, and more than one of the usual ones fits ({names})"
    return (
        "has no adduct, and none of the usual ones fits "
        f"(precursor {spectrum.precursor_mz:.4f}, molecule {molecule.mass:.4f})"
    )


def _duplicate_key(spectrum: Spectrum, molecule: DescribedMolecule) -> tuple[object, ...]:
    """Equal for spectra of one measurement, entered twice or rescaled."""
    relative = np.round(spectrum.intensities / spectrum.intensities.max(), 2)
    strong = relative > 0
    return (
        molecule.identity,
        spectrum.adduct,
        spectrum.metadata.get("collision_energy"),
        np.round(spectrum.mz[strong], 2).tobytes(),
        relative[strong].tobytes(),
    )
