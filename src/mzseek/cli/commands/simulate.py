"""``mzseek simulate``: predicted spectra of molecules."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mzseek.cli.options import EXISTS, AsJson
from mzseek.cli.output import plain, print_json, say, show_skipped
from mzseek.core.errors import InputError, MoleculeError, Reason
from mzseek.core.registry import check_name
from mzseek.core.text import pluralize

if TYPE_CHECKING:
    from mzseek.chem.molecules import DescribedMolecule
    from mzseek.evidence.model import EvidenceModel
    from mzseek.io.skipped import Report

_FORMATS = (".msp", ".mgf")


def simulate(
    molecules: Annotated[
        list[Path], typer.Argument(help="Lists of molecules: SMILES, tables, SDF."), EXISTS
    ],
    out: Annotated[Path, typer.Option(help="File to write, .msp (with formulas) or .mgf.")],
    energy: Annotated[str, typer.Option(help="Collision energies, separated by commas.")] = "20,40",
    adduct: Annotated[str, typer.Option(help="Adducts, separated by commas.")] = "[M+H]+",
    instrument: Annotated[
        str | None, typer.Option(help="orbitrap or qtof; neither by default.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A bundle, or a run of `mzseek fit`, with the channel intensities; the bundle "
            "that comes with mzseek by default."
        ),
        EXISTS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the fragment spectra of molecules, as a library in silico.

    The precursor itself is not predicted. Exits with status 1 if not one spectrum was predicted.

    Example: mzseek simulate molecules.csv --energy 20,40 --out library.msp
    """
    if out.suffix.lower() not in _FORMATS:
        raise InputError(out, f"expected a name that ends in {' or '.join(_FORMATS)}")
    energies = [_energy(text) for text in energy.split(",")]
    from mzseek.spectra.records import INSTRUMENTS

    if instrument is not None:
        check_name(INSTRUMENTS, instrument, "--instrument", MoleculeError)
    from mzseek.chem.adducts import parse_adduct
    from mzseek.evidence import simulation
    from mzseek.spectra.formats.mgf import write_mgf
    from mzseek.spectra.formats.msp import write_msp

    adducts = [parse_adduct(text.strip()).name for text in adduct.split(",")]
    state = simulation.forward_model(_opened(model))
    skipped: list[tuple[str, str]] = []

    def skip(where: str, reason: str) -> None:
        skipped.append((where, reason))

    simulated = simulation.simulate(
        state, _read(molecules, skip), adducts, energies, instrument, skip
    )
    if out.suffix.lower() == ".mgf":
        number = write_mgf(out, (predicted.spectrum for predicted in simulated))
    else:
        number = write_msp(out, ((s.spectrum, s.formulas) for s in simulated))
    if as_json:
        print_json({"out": str(out), "spectra": number, "skipped": len(skipped)})
    else:
        say(f"{plain(out)}: {pluralize(number, 'spectrum', 'spectra')} predicted")
        show_skipped(skipped)
    if not number:
        raise typer.Exit(1)


def _energy(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1000:
        raise InputError("--energy", f"{text.strip()!r} is no collision energy above 0")
    return value


def _opened(path: Path | None) -> "EvidenceModel":
    from mzseek.bundle import Bundle
    from mzseek.evidence.model import EvidenceModel

    if path is not None and (path / "run.json").is_file():
        return EvidenceModel.open(path)
    return Bundle.open(path).fitted


def _read(paths: list[Path], skip: "Report") -> "Iterator[tuple[str, DescribedMolecule]]":
    """Molecules with their names; without one, their identifier or SMILES."""
    from mzseek.chem.molecules import (
        describe_molecule,
        describe_structure,
        parse_mol_block,
        standardise,
    )
    from mzseek.database.sources import read_molecules

    for record in read_molecules(paths, skip):
        try:
            if record.is_block:
                molecule = describe_molecule(standardise(parse_mol_block(record.text)))
            else:
                molecule = describe_structure(record.text)
        except MoleculeError as error:
            skip(record.where, Reason(str(error), "bad-molecule"))
            continue
        yield record.name or record.identifier or molecule.smiles, molecule
