"""What is asked about a feature: its readings, and the molecules of each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mzseek.adducts import ELECTRON_MASS, parse_adduct
from mzseek.annotation.asking.ions import Hypothesis, Ions, hypotheses, is_mode_known
from mzseek.annotation.asking.precision import as_known
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.candidates.source import Molecule, Source, distinct
from mzseek.annotation.features import Feature, time_notes
from mzseek.chem.ions import RULES, IonRule, mass_of_atoms, obstacle, takes_charged

ISOTOPES, MUCH_ABOVE = 4.5, 0.1  # m/z above the precursor, and share of the intensity
_ELECTRONS = 3 * ELECTRON_MASS  # by which masses of permanent ions differ from those of their atoms


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
    removed : mapping of str to int
        Candidates that cannot form the ion, by ion and reason (`mzseek.chem.ions.RULES`).
    hypotheses : tuple of Hypothesis
        All that were tried, with or without molecules.
    formula : str
        That the user knows; empty where none is known.
    """

    feature: Feature
    readings: tuple[Hypothesis, ...]
    molecules: tuple[list[Molecule], ...]
    tried: tuple[str, ...]
    found: int
    notes: tuple[str, ...] = field(default=())
    removed: Mapping[str, int] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = field(default=())
    formula: str = ""

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
    removed: Counter[tuple[str, str]] = Counter()
    formula = (formulas or {}).get(feature.name)
    found = _looked_up(feature, readings, source, formula, notes, removed)
    notes += _removed_notes(removed)
    total = sum(map(len, found))
    if total > most and not source.by_feature:
        found = _nearest(found, readings, most)
        notes.append(f"{total:,} candidates, of which the {most:,} nearest by mass were scored")
    kept = [place for place, own in enumerate(found) if own]
    return Asked(
        feature,
        tuple(readings[place] for place in kept) or readings,
        tuple(found[place] for place in kept),
        tuple(reading.adduct for reading in readings),
        total,
        tuple(notes),
        {f"{adduct}: {reason}": number for (adduct, reason), number in removed.items()},
        readings,
        formula or "",
    )


def _looked_up(
    feature: Feature,
    readings: tuple[Hypothesis, ...],
    source: Source,
    formula: str | None,
    notes: list[str],
    removed: Counter[tuple[str, str]],
) -> list[list[Molecule]]:
    """Molecules of each reading that can form its ion.

    Adds to the notes what was looked for in vain, and counts in `removed` what cannot be the ion.
    """
    if source.by_feature:
        listed = distinct(source.of_feature(feature.name))
        if not listed:
            notes.append(f"{source.label} lists no candidate for it")
        return _by_reading(listed, readings, removed)
    found = []
    for reading in readings:
        charged = takes_charged(reading.adduct)
        reach = reading.reach + (_ELECTRONS if charged else 0.0)
        if formula:
            molecules = source.of_formula(formula, reading.mass, reach)
        else:
            molecules = source.within(reading.mass, reach)
        if charged:
            molecules = [m for m in molecules if _distance(m, reading) <= reading.reach]
        found.append(_possible(molecules, reading, removed))
    if formula:
        notes.append(f"only molecules of {formula}")
    if not any(found) and not removed:
        lacks = f"the formula {formula} and this mass" if formula else "this mass"
        notes.append(f"no molecule of the database has {lacks}")
    return found


def _possible(
    molecules: list[Molecule], reading: Hypothesis, removed: Counter[tuple[str, str]]
) -> list[Molecule]:
    """Distinct molecules that can form the ion of a reading; counts the others in `removed`."""
    kept, others = [], []
    for molecule in molecules:
        rule = _obstacle(molecule, reading)
        if rule is None:
            kept.append(molecule)
        elif rule is not RULES["neutral"]:  # which are tried as other ions
            others.append((rule, molecule))
    if others:
        keys = {molecule.key for molecule in kept}
        left = {m.key: rule for rule, m in others if m.key not in keys}
        removed.update((reading.adduct, rule.reason) for rule in left.values())
    return distinct(kept)


def can_be(molecule: Molecule, reading: Hypothesis) -> bool:
    """Return whether a molecule has the mass of a reading and can form its ion."""
    return _distance(molecule, reading) <= reading.reach and can_form(molecule, reading)


def can_form(molecule: Molecule, reading: Hypothesis) -> bool:
    """Return whether a molecule can form the ion of a reading, whatever its mass."""
    return _obstacle(molecule, reading) is None


def _obstacle(molecule: Molecule, reading: Hypothesis) -> IonRule | None:
    for adduct in dict.fromkeys(reading.adducts):
        rule = obstacle(molecule.smiles, molecule.formula, adduct, stated=reading.stated)
        if rule is not None:
            return rule
    return None


def _distance(molecule: Molecule, reading: Hypothesis) -> float:
    """How far a molecule's mass, all electrons of its atoms included, is from a reading's."""
    return abs(mass_of_atoms(molecule.smiles, molecule.mass) - reading.mass)


def _removed_notes(removed: Mapping[tuple[str, str], int]) -> list[str]:
    return [
        f"{number:,} candidate{'' if number == 1 else 's'} cannot form {adduct} ({reason})"
        for (adduct, reason), number in removed.items()
    ]


def _notes(feature: Feature, readings: tuple[Hypothesis, ...]) -> list[str]:
    notes = []
    if not is_mode_known(feature):
        notes.append("the file tells no ion mode: read as positive")
    if not any(spectrum.adduct for spectrum in feature.spectra):
        notes.append(f"the file names no ion: tried {', '.join(map(_tried, readings))}")
    return [*notes, *time_notes(feature), *_above_precursor(feature)]


def _tried(reading: Hypothesis) -> str:
    limited = not reading.stated and takes_charged(reading.adduct)
    return f"{reading.adduct} (of permanent ions)" if limited else reading.adduct


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
    molecules: list[Molecule],
    readings: tuple[Hypothesis, ...],
    removed: Counter[tuple[str, str]],
) -> list[list[Molecule]]:
    """Listed molecules, each for the ion that it can form and that is nearest to the precursor."""
    found: list[list[Molecule]] = [[] for _ in readings]
    for molecule in molecules:
        away = [_distance(molecule, reading) for reading in readings]
        order = sorted(range(len(readings)), key=away.__getitem__)
        rules = {place: _obstacle(molecule, readings[place]) for place in order}
        possible = next((place for place in order if rules[place] is None), None)
        if possible is not None:
            found[possible].append(molecule)
        elif (rule := rules[order[0]]) is not None:
            removed[readings[order[0]].adduct, rule.reason] += 1
    return found


def _nearest(
    found: list[list[Molecule]], readings: tuple[Hypothesis, ...], most: int
) -> list[list[Molecule]]:
    every = sorted(
        (_distance(molecule, reading) / reading.reach, molecule.key, place)
        for place, (reading, own) in enumerate(zip(readings, found, strict=True))
        for molecule in own
    )[:most]
    kept = {(key, place) for _, key, place in every}
    return [[m for m in own if (m.key, place) in kept] for place, own in enumerate(found)]


def error_ppm(feature: Feature, reading: Hypothesis, molecule: Molecule) -> float:
    """Measured minus computed m/z of the precursor, of the feature's first spectrum."""
    adduct = parse_adduct(reading.adduct)
    mass = mass_of_atoms(molecule.smiles, molecule.mass)
    computed = adduct.slope * mass + adduct.offset
    return (feature.spectra[0].precursor_mz - computed) / computed * 1e6
