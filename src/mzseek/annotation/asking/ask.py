"""What is asked about a feature: its readings, and the molecules of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mzseek.adducts import parse_adduct
from mzseek.annotation.asking.ions import Hypothesis, Ions, hypotheses, is_mode_known
from mzseek.annotation.asking.precision import as_known
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.candidates.source import Molecule, Source, distinct
from mzseek.annotation.features import Feature

FEW = 5  # candidates: fewer are a list unlike those that probabilities were fitted on
ISOTOPES, MUCH_ABOVE = 4.5, 0.1  # m/z above the precursor, and share of the intensity


@dataclass(frozen=True, eq=False)
class Asked:
    """A feature with all that may be behind it.

    Attributes
    ----------
    feature : Feature
    readings : tuple of Hypothesis
        Those that molecules were found for; if there are none, all that were tried.
    molecules : tuple of lists of Molecule
        Of each reading, each molecule once.
    tried : tuple of str
        Ions for which molecules were looked up.
    found : int
        Molecules before any were left out.
    notes : tuple of str
    hypotheses : tuple of Hypothesis
        All that were tried, with or without molecules.
    """

    feature: Feature
    readings: tuple[Hypothesis, ...]
    molecules: tuple[list[Molecule], ...]
    tried: tuple[str, ...]
    found: int
    notes: tuple[str, ...] = field(default=())
    hypotheses: tuple[Hypothesis, ...] = field(default=())

    @property
    def kept(self) -> int:
        """Molecules that are left."""
        return sum(map(len, self.molecules))


def ask(
    feature: Feature,
    source: Source,
    *,
    tolerance: Tolerance,
    ions: Ions,
    most: int,
    formulas: Mapping[str, str] | None = None,
) -> Asked:
    """Look up what may be behind a feature.

    Parameters
    ----------
    feature : Feature
    source : Source
    tolerance : Tolerance
        Of the precursor; wider where that is known less well, if it is not strict.
    ions : Ions
        By the user.
    most : int
        Molecules at the most: the nearest by mass, of all ions together.
    formulas : mapping of str to str, optional
        Formulas that are known, by the feature's name; a record's own formula is never used, since
        a reference record would give its answer away.

    Raises
    ------
    AnnotationError
        The feature contradicts itself, or what is asked for.
    """
    tolerance, coarse = as_known(feature, tolerance)
    readings = hypotheses(feature, tolerance, ions)
    notes = [*_notes(feature, readings), *([coarse] if coarse else [])]
    found = _looked_up(feature, readings, source, (formulas or {}).get(feature.name), notes)
    total = sum(map(len, found))
    if total > most and not source.by_feature:
        found = _nearest(found, readings, most)
        notes.append(f"{total:,} candidates, of which the {most:,} nearest by mass were scored")
    kept = [place for place, own in enumerate(found) if own]
    if kept:
        notes += _charged(found)
        notes += _few(sum(map(len, found)))
    return Asked(
        feature,
        tuple(readings[place] for place in kept) or readings,
        tuple(found[place] for place in kept),
        tuple(reading.adduct for reading in readings),
        total,
        tuple(notes),
        readings,
    )


def _looked_up(
    feature: Feature,
    readings: tuple[Hypothesis, ...],
    source: Source,
    formula: str | None,
    notes: list[str],
) -> list[list[Molecule]]:
    """Molecules of each reading; adds to the notes what was looked for in vain."""
    if source.by_feature:
        listed = distinct(source.of_feature(feature.name))
        if not listed:
            notes.append(f"{source.label} lists no candidate for it")
        return _by_reading(listed, readings)
    if formula:
        found = [distinct(source.of_formula(formula, r.mass, r.reach)) for r in readings]
        notes.append(f"only molecules of {formula}")
        lacks = f"the formula {formula} and this mass"
    else:
        found = [distinct(source.within(r.mass, r.reach)) for r in readings]
        lacks = "this mass"
    if not any(found):
        notes.append(f"no molecule of the database has {lacks}")
    return found


def _notes(feature: Feature, readings: tuple[Hypothesis, ...]) -> list[str]:
    notes = []
    if not is_mode_known(feature):
        notes.append("the file tells no ion mode: read as positive")
    if not any(spectrum.adduct for spectrum in feature.spectra):
        notes.append(f"the file names no ion: tried {', '.join(r.adduct for r in readings)}")
    return [*notes, *_above_precursor(feature)]


def _few(scored: int) -> list[str]:
    """A caution about short lists."""
    if scored >= FEW:
        return []
    many = "only 1 candidate was" if scored == 1 else f"only {scored} candidates were"
    return [f"{many} scored: probabilities were fitted on lists of a hundred, and are too high if "
            "the molecule is not among so few"]  # fmt: skip


def _above_precursor(feature: Feature) -> list[str]:
    """A caution about peaks where an ion of charge 1 can have none."""
    for spectrum in feature.spectra:
        if abs(spectrum.charge or 1) != 1 or not len(spectrum):
            continue
        above = spectrum.mz > spectrum.precursor_mz + ISOTOPES
        share = float(spectrum.intensities[above].sum() / max(spectrum.intensities.sum(), 1e-300))
        if share > MUCH_ABOVE:
            return [f"{share:.0%} of the intensity lies above the precursor: is its m/z right?"]
    return []


def _by_reading(
    molecules: list[Molecule], readings: tuple[Hypothesis, ...]
) -> list[list[Molecule]]:
    """Listed molecules, each for the ion that brings it nearest to the precursor."""
    found: list[list[Molecule]] = [[] for _ in readings]
    for molecule in molecules:
        away = [abs(molecule.mass - reading.mass) for reading in readings]
        found[away.index(min(away))].append(molecule)
    return found


def _nearest(
    found: list[list[Molecule]], readings: tuple[Hypothesis, ...], most: int
) -> list[list[Molecule]]:
    every = sorted(
        (abs(molecule.mass - reading.mass) / reading.reach, molecule.key, place)
        for place, (reading, own) in enumerate(zip(readings, found, strict=True))
        for molecule in own
    )[:most]
    kept = {(key, place) for _, key, place in every}
    return [[m for m in own if (m.key, place) in kept] for place, own in enumerate(found)]


def _charged(found: list[list[Molecule]]) -> list[str]:
    charged = sum("+]" in m.smiles and "-]" not in m.smiles for own in found for m in own)
    return [f"{charged:,} candidates carry a charge of their own"] if charged else []


def error_ppm(feature: Feature, reading: Hypothesis, molecule: Molecule) -> float:
    """Measured minus computed m/z of the precursor, of the feature's first spectrum."""
    adduct = parse_adduct(reading.adduct)
    computed = adduct.slope * molecule.mass + adduct.offset
    return (feature.spectra[0].precursor_mz - computed) / computed * 1e6
