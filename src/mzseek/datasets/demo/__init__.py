"""The embedded demo set: simulated spectra of enumerated and well-known molecules.

Everything is made at run time from tables in this folder and a seed. The spectra are simulated and
are labelled so wherever they go; only ``queries.mgf`` shows what instruments really measure.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.molecules import exact_mass
from mzseek.datasets.build import BuildOptions, build_dataset
from mzseek.datasets.demo.fragmenter import Fragmenter
from mzseek.datasets.demo.molecules import DemoMolecule, demo_molecules
from mzseek.io import StrPath, atomic_file, sole_writer
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import restoring_sigint
from mzseek.spectra import Spectrum, write_mgf

QUERIES = Path(str(files("mzseek").joinpath("data", "demo", "queries.mgf")))
# Real spectra of one contributor of MassBank, which the shipped bundle has not learned from.
MEASURED = QUERIES.with_name("measured.mgf")

ENERGIES = (10.0, 20.0, 40.0)
_POOL = 3_000
_MEASURED = 1_000
_SODIUM_SHARE = 0.15


def write_demo(out: StrPath, seed: int = 0, progress: Progress = silent) -> dict[str, Any]:
    """Simulate a library, and build a data set from it as from any other.

    Writes ``library.mgf`` and ``molecules.tsv`` into ``out``, and the data set itself, as
    `mzseek data build` makes it, into ``out/set``.

    Returns
    -------
    dict
        Counts: ``spectra``, ``molecules`` (with spectra), ``pool`` (molecules to draw from).

    Raises
    ------
    BusyError, WriteError
        Another process is writing the folder, or it cannot be written.
    """
    out = Path(out)
    with sole_writer(out, "simulating a data set"), restoring_sigint():
        return _written(out, seed, progress)


def _written(out: Path, seed: int, progress: Progress) -> dict[str, Any]:
    pool = demo_molecules(seed, _POOL)
    library, molecules = out / "library.mgf", out / "molecules.tsv"
    with atomic_file(molecules) as partial:
        rows = [f"{m.smiles}\t{m.name or ''}\t{m.source}\n" for m in pool]
        partial.write_text("smiles\tname\tsource\n" + "".join(rows), encoding="utf-8")
    write_mgf(library, _simulate(_choose_measured(pool, seed), seed, progress))
    # A third of all demo molecules is measured. Were a formula split between folds, a held-out
    # molecule's rivals would be training molecules, which are never the answer there.
    options = BuildOptions(seed=seed, keep_formulas_together=True)
    manifest = build_dataset([library], [molecules], out / "set", options, progress=progress)
    return {
        "spectra": manifest["counts"]["spectra"],
        "molecules": manifest["counts"]["molecules"],
        "pool": len(pool),
    }


def _choose_measured(pool: list[DemoMolecule], seed: int) -> list[DemoMolecule]:
    """The known molecules, and a draw of the enumerated ones: most chemistry is never measured."""
    known = [m for m in pool if m.source == "known"]
    rest = [m for m in pool if m.source != "known"]
    drawn = np.random.default_rng([seed, 1]).permutation(len(rest))[: _MEASURED - len(known)]
    return known + [rest[i] for i in sorted(drawn)]


def _simulate(molecules: list[DemoMolecule], seed: int, progress: Progress) -> Iterator[Spectrum]:
    for place, molecule in enumerate(molecules):
        rng = np.random.default_rng([seed, 2, place])
        fragmenter = Fragmenter(Chem.MolFromSmiles(molecule.smiles))
        name = "[M+Na]+" if rng.random() < _SODIUM_SHARE else "[M+H]+"
        adduct = parse_adduct(name)
        precursor = adduct.precursor_mz(exact_mass(molecule.smiles))
        for energy in ENERGIES:
            mz, intensities = fragmenter.spectrum(name, energy, rng)
            yield Spectrum(
                mz=np.round(mz, 5),
                intensities=np.round(intensities, 5),
                precursor_mz=round(precursor, 5),
                adduct=name,
                charge=adduct.charge,
                identifier=f"simulated-{place:04d}-{energy:g}eV",
                metadata={
                    "smiles": molecule.smiles,
                    "compound_name": molecule.name or "",
                    "collision_energy": f"{energy:g}",
                    "instrument_type": "simulated",
                    "ionmode": "positive",
                    "ms_level": "2",
                },
            )
        progress("simulated molecules", place + 1, len(molecules))


__all__ = ["MEASURED", "QUERIES", "write_demo"]
