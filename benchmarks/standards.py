"""Hits of `mzseek annotate` on an instrument's own export of standards, ions not stated.

    python benchmarks/standards.py cbio_standards.msp molecules.tsv.gz --work DIR

Each MS2 spectrum with a structure is a feature. The database has the structures, and molecules of
their masses (10 ppm) drawn from the list of molecules, so many of each mass. Hits are by the first
block of the InChIKey, intervals over molecules, for each value of --compare (options of annotate).
Spectra whose precursor is no usual ion of their structure count as missed.
"""

import argparse
import csv
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem.Descriptors import ExactMolWt

from mass_drift import difference, hits, ranks_of, run
from mzseek.chem import inchikey_block
from mzseek.io import stable_hash
from mzseek.spectra import Spectrum, read_spectra, write_mgf

PPM = 10.0
KEPT = ("collision_energy", "instrument", "instrument_type", "ionmode")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("spectra", type=Path)
    asked.add_argument("molecules", type=Path, help="with columns mass and smiles, sorted by mass")
    asked.add_argument("--each", type=int, default=60, help="molecules of a mass, at most")
    asked.add_argument("--model", type=Path)
    asked.add_argument("--work", type=Path, required=True)
    asked.add_argument(
        "--compare", action="append", metavar="=OPTIONS",
        help="options of annotate, separated by commas; several times, the first is compared with",
    )  # fmt: skip
    given = asked.parse_args()
    given.compare = given.compare or ["--recalibrate=off", "--recalibrate=auto"]
    given.work.mkdir(parents=True, exist_ok=True)
    truth, smiles = write_spectra(given)
    if not (given.work / "molecules").is_dir():
        write_molecules(given, sorted(set(smiles)))
        table = str(given.work / "molecules.csv")
        run(["database", "build", table, "--out", str(given.work / "molecules")])
    names = sorted(truth)
    molecule = np.unique([truth[name] for name in names], return_inverse=True)[1]
    print(f"{len(names)} spectra of {molecule.max() + 1} molecules")
    base = None
    for number, options in enumerate(given.compare):
        out = given.work / f"answers-{number}"
        model = ["--model", str(given.model)] if given.model else []
        run(
            [
                "annotate", str(given.work / "standards.mgf"), "--out", str(out), "--force",
                "--strict", "--database", str(given.work / "molecules"), *model,
                *options.split(","),
            ]
        )  # fmt: skip
        ranks = ranks_of(truth, out / "candidates.tsv")
        print(f"  {options}: {hits(ranks, names, molecule)}", flush=True)
        if base is not None:
            print(f"    difference: {difference(ranks, base, names, molecule)}")
        base = base or ranks


def write_spectra(given: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    """Write the spectra that have a structure; return the key of each feature, and structures."""
    RDLogger.DisableLog("rdApp.*")
    truth, structures, spectra = {}, [], list[Spectrum]()
    for spectrum in read_spectra(given.spectra, lambda where, reason: None):
        inchi = spectrum.metadata.get("inchi", "")
        inchi = inchi if inchi.startswith("InChI=") else f"InChI={inchi}"
        molecule = Chem.MolFromInchi(inchi)
        if molecule is None:
            continue
        name = f"s{len(spectra)}"
        metadata = {key: spectrum.metadata[key] for key in KEPT if key in spectrum.metadata}
        spectra.append(replace(spectrum, identifier=name, metadata=metadata | {"feature_id": name}))
        structures.append(Chem.MolToSmiles(molecule, isomericSmiles=False))
        truth[name] = inchikey_block(structures[-1])
    write_mgf(given.work / "standards.mgf", spectra)
    return truth, structures


def write_molecules(given: argparse.Namespace, structures: list[str]) -> None:
    """Write the structures, and molecules of their masses drawn by a hash."""
    masses = np.unique([ExactMolWt(Chem.MolFromSmiles(text)) for text in structures])
    drawn: list[list[tuple[int, str]]] = [[] for _ in masses]
    with gzip.open(given.molecules, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            mass = float(row["mass"])
            for at in range(
                *np.searchsorted(masses, [mass / (1 + PPM * 1e-6), mass * (1 + PPM * 1e-6)])
            ):
                drawn[at].append((stable_hash(row["smiles"].encode()), row["smiles"]))
    chosen = {smiles for of_mass in drawn for _, smiles in sorted(of_mass)[: given.each]}
    with (given.work / "molecules.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles"])
        writer.writerows([smiles] for smiles in sorted(chosen.union(structures)))


if __name__ == "__main__":
    main()
