"""One tandem mass spectrum."""

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import MissingExtra


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A tandem spectrum that has passed the reader's checks.

    Attributes
    ----------
    mz : float64 array, shape (peaks,)
        Finite, positive, rising.
    intensities : float64 array, shape (peaks,)
        Finite, positive, as the file has them (not normalised).
    precursor_mz : float
        m/z of the ion that was fragmented.
    adduct : str or None
        In its usual spelling; None where the file names none, or more than one.
    charge : int or None
        Signed; None where neither the file nor the adduct tells.
    identifier : str
        Unique within the file it was read from.
    metadata : dict of str to str
        Everything else the record says, under lower-case names (``smiles``, ``inchikey``,
        ``collision_energy``, ``ionmode`` …).
    """

    mz: npt.NDArray[np.float64]
    intensities: npt.NDArray[np.float64]
    precursor_mz: float
    adduct: str | None
    charge: int | None
    identifier: str
    metadata: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_matchms(cls, spectrum: Any) -> "Spectrum":
        """Convert a matchms spectrum by the rules that records of files go through.

        Raises `SpectrumError` for one that has no precursor m/z, no peaks, or contradicts itself.
        """
        from mzseek.spectra.convert import from_matchms

        return from_matchms(spectrum)

    def to_matchms(self) -> Any:
        """Convert to a `matchms.Spectrum`; raises `MissingExtra` where matchms is not installed."""
        try:
            matchms = importlib.import_module("matchms")
        except ImportError as error:
            raise MissingExtra("to_matchms needs matchms: pip install matchms") from error
        stated = {
            "spectrum_id": self.identifier,
            "precursor_mz": self.precursor_mz,
            "adduct": self.adduct,
            "charge": self.charge,
        }
        known = {name: value for name, value in stated.items() if value is not None}
        return matchms.Spectrum(self.mz, self.intensities, {**self.metadata, **known})

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        adduct = self.adduct or "adduct unknown"
        return (
            f"Spectrum({self.identifier!r}, {adduct}, precursor {self.precursor_mz:.4f}, "
            f"{len(self)} peaks)"
        )
