"""Query a feature: adduct hypotheses and the candidates of each."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mzseek.annotation.candidates import Molecule, Source, distinct, formula_text, is_formula
from mzseek.annotation.features import Feature, Tolerance, time_notes
from mzseek.annotation.hypotheses import Hypothesis, Ions, as_known, hypotheses, is_mode_known
from mzseek.chem.adducts import ELECTRON_MASS, parse_adduct
from mzseek.chem.ions import RULES, IonRule, mass_of_atoms, obstacle, takes_charged
from mzseek.core.text import pluralize

_MAX_SHOWN = 5
_LONGEST = 40  # letters of a name that are shown


class Named:
    """Names of features by the table that has them; those that are met are struck off.

    Parameters
    ----------
    tables : mapping of str to collection of str
        For each table, as messages call it, the features that it names.

    Examples
    --------
    >>> named = Named({"the table of formulas": ["7", "8"]})
    >>> named.lines()
    ["the table of formulas: 2 of its 2 features are not among the spectra: '7', '8'"]

    Features of several files that have one id are called ``file:id`` (`Feature.name`), and are met
    by that name.
    """

    def __init__(self, tables: Mapping[str, Collection[str]]) -> None:
        self._sizes = {table: len(names) for table, names in tables.items()}
        # Dicts, which keep the order of the table.
        self._left = {table: dict.fromkeys(names) for table, names in tables.items()}
        self._named = {table: frozenset(names) for table, names in tables.items()}
        self._renamed_count, self._renamed = 0, list[dict[str, str]]()
        # By table: ids that it names and several features have, each with names of some of these.
        self._ambiguous: dict[str, dict[str, list[str]]] = {table: {} for table in tables}

    def __bool__(self) -> bool:
        """Whether any name has not been met."""
        return any(self._left.values())

    def meet(self, features: Iterable[Feature]) -> Iterator[Feature]:
        """The same features, each struck off as it goes by."""
        for feature in features:
            for left in self._left.values():
                for name in feature.table_names:
                    left.pop(name, None)
            if feature.id and feature.name != feature.id:
                self._note_renamed(feature)
            yield feature

    def _note_renamed(self, feature: Feature) -> None:
        self._renamed_count += 1
        if len(self._renamed) < _MAX_SHOWN:
            self._renamed.append(
                {"id": feature.id, "name": feature.name, "file": feature.where}
            )  # fmt: skip
        for table, names in self._named.items():
            if feature.id in names and names.isdisjoint(feature.table_names):
                self._left[table].pop(feature.id, None)  # told as ambiguous
                self._ambiguous[table].setdefault(feature.id, []).append(feature.name)

    def metadata(self) -> dict[str, Any]:
        """For each table how many it names, and what was not met, for a run folder."""
        return {
            table: {
                "named": self._sizes[table],
                "not_met": len(left),
                "first": list(left)[:_MAX_SHOWN],
                "ambiguous": len(self._ambiguous[table]),
                "first_ambiguous": list(self._ambiguous[table])[:_MAX_SHOWN],
            }
            for table, left in self._left.items()
        }

    def renamed(self) -> dict[str, Any]:
        """How many features were renamed since others have their id, and the first, as data."""
        return {"count": self._renamed_count, "first": self._renamed}

    def lines(self) -> list[str]:
        """Lines about features that were renamed, and about what tables name in vain."""
        lines = []
        if self._renamed_count:
            shown = ", ".join(
                f"{_short(entry['id'])} is {_short(entry['name'])}" for entry in self._renamed
            )
            several = self._renamed_count != 1
            lines.append(
                f"{self._renamed_count:,} feature{'s have ids' if several else ' has an id'} that "
                f"other features have, too, and {'were' if several else 'was'} renamed: {shown}"
                f"{', …' if self._renamed_count > _MAX_SHOWN else ''}"
            )
        lines += [self._line(table, list(left)) for table, left in self._left.items() if left]
        for table, ids in self._ambiguous.items():
            if ids:
                id_, names = next(iter(ids.items()))
                lines.append(
                    f"{table}: {len(ids):,} of its {self._sizes[table]:,} features "
                    f"{'is' if len(ids) == 1 else 'are'} in several files, and not used: instead "
                    f"of {_short(id_)} write {' or '.join(map(_short, names[:_MAX_SHOWN]))}"
                )
        return lines

    def _line(self, table: str, left: list[str]) -> str:
        shown = ", ".join(_short(name) for name in left[:_MAX_SHOWN])
        more = ", …" if len(left) > _MAX_SHOWN else ""
        are = "is" if len(left) == 1 else "are"
        return (
            f"{table}: {len(left):,} of its {self._sizes[table]:,} features {are} not among the "
            f"spectra: {shown}{more}"
        )


def _short(name: str) -> str:
    return repr(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")


ISOTOPES, MUCH_ABOVE = 4.5, 0.1  # m/z above the precursor, and share of the intensity
_ELECTRONS = 3 * ELECTRON_MASS  # by which masses of permanent ions differ from those of their atoms


@dataclass(frozen=True, eq=False)
class FeatureQuery:
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
    mass_mismatches : int
        Candidates listed for the feature whose mass contradicts the precursor under every ion.
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
    mass_mismatches: int = 0

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
    max_candidates: int,
    formulas: Mapping[str, str] | None = None,
    keep_mass_mismatches: bool = False,
) -> FeatureQuery:
    """Look up what may be behind a feature.

    Parameters
    ----------
    feature : Feature
    source : Source
    tolerance : Tolerance
        Of the precursor; wider where that is known less well, if it is not strict.
    ions : Ions
        By the user.
    max_candidates : int
        Molecules at the most: the nearest by mass, of all ions together.
    formulas : mapping of str to str, optional
        Formulas that are known, by the feature's name; a record's own formula is never used, since
        a reference record would give its annotation away.
    keep_mass_mismatches : bool
        Keep candidates listed for the feature whose mass contradicts the precursor under every ion
        that is tried. By default they are skipped and counted.

    Raises
    ------
    AnnotationError
        The feature contradicts itself, or what is asked for.
    """
    tolerance, coarse = as_known(feature, tolerance)
    readings = hypotheses(feature, tolerance, ions)
    notes = [*_notes(feature, readings), *([coarse] if coarse else [])]
    removed: Counter[tuple[str, str]] = Counter()
    known = formulas or {}
    formula = next((known[name] for name in feature.table_names if name in known), "")
    formula = formula_text(formula) if formula else ""
    mismatches = 0
    if source.by_feature:
        listed = _listed(feature, source, formula, notes)
        by_hypothesis, mismatches = _by_reading(listed, readings, removed, keep_mass_mismatches)
        notes += _mismatch_notes(mismatches, keep_mass_mismatches)
    else:
        by_hypothesis = _looked_up(readings, source, formula, notes, removed)
    notes += [
        f"{pluralize(number, 'candidate', 'candidates')} cannot form {adduct} ({reason})"
        for (adduct, reason), number in removed.items()
    ]
    total = sum(map(len, by_hypothesis))
    if total > max_candidates:
        by_hypothesis = _nearest(by_hypothesis, readings, max_candidates)
        notes.append(
            f"{total:,} candidates, of which the {max_candidates:,} nearest by mass were scored"
        )
    non_empty = [index for index, molecules in enumerate(by_hypothesis) if molecules]
    return FeatureQuery(
        feature,
        tuple(readings[index] for index in non_empty) or readings,
        tuple(by_hypothesis[index] for index in non_empty),
        tuple(reading.adduct for reading in readings),
        total,
        tuple(notes),
        {f"{adduct}: {reason}": number for (adduct, reason), number in removed.items()},
        readings,
        formula,
        mismatches,
    )


def _listed(feature: Feature, source: Source, formula: str, notes: list[str]) -> list[Molecule]:
    """Molecules listed for a feature, of its formula if that is known; adds to the notes."""
    lists = (source.of_feature(name) for name in feature.table_names)
    listed = distinct(next(filter(None, lists), []))
    if not listed:
        notes.append(f"{source.label} lists no candidate for it")
    elif formula:
        listed = [molecule for molecule in listed if is_formula(molecule.formula, formula)]
        notes.append(f"only molecules of {formula}")
        if not listed:
            notes.append(f"no candidate that {source.label} lists for it has the formula {formula}")
    return listed


def _mismatch_notes(number: int, are_kept: bool) -> list[str]:
    if not number:
        return []
    if are_kept:
        what = pluralize(number, "listed candidate contradicts", "listed candidates contradict")
        return [f"{what} the mass of the precursor"]
    what = pluralize(number, "listed candidate was", "listed candidates were")
    return [f"{what} skipped: the mass contradicts the precursor under every ion tried"]


def _looked_up(
    readings: tuple[Hypothesis, ...],
    source: Source,
    formula: str,
    notes: list[str],
    removed: Counter[tuple[str, str]],
) -> list[list[Molecule]]:
    """Molecules of each reading that can form its ion.

    Adds to the notes what was looked for in vain, and counts in `removed` what cannot be the ion.
    """
    by_hypothesis = []
    for reading in readings:
        charged = takes_charged(reading.adduct)
        reach = reading.reach + (_ELECTRONS if charged else 0.0)
        molecules = source.within(reading.mass, reach)
        if formula:
            molecules = [m for m in molecules if is_formula(m.formula, formula)]
        if charged:
            molecules = [m for m in molecules if _distance(m, reading) <= reading.reach]
        by_hypothesis.append(_possible(molecules, reading, removed))
    if formula:
        notes.append(f"only molecules of {formula}")
    if not any(by_hypothesis) and not removed:
        lacks = f"the formula {formula} and this mass" if formula else "this mass"
        notes.append(f"no molecule of the database has {lacks}")
    return by_hypothesis


def _possible(
    molecules: list[Molecule], reading: Hypothesis, removed: Counter[tuple[str, str]]
) -> list[Molecule]:
    """Distinct molecules that can form the ion of a reading; counts the others in `removed`."""
    possible, others = [], []
    for molecule in molecules:
        rule = _obstacle(molecule, reading)
        if rule is None:
            possible.append(molecule)
        elif rule is not RULES["neutral"]:  # which are tried as other ions
            others.append((rule, molecule))
    if others:
        keys = {molecule.key for molecule in possible}
        left = {m.key: rule for rule, m in others if m.key not in keys}
        removed.update((reading.adduct, rule.reason) for rule in left.values())
    return distinct(possible)


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


def _notes(feature: Feature, readings: tuple[Hypothesis, ...]) -> list[str]:
    notes = []
    if not is_mode_known(feature):
        notes.append("the file tells no ion mode: read as positive")
    if not any(spectrum.adduct for spectrum in feature.spectra):
        tried = [
            f"{reading.adduct} (of permanent ions)"
            if not reading.stated and takes_charged(reading.adduct)
            else reading.adduct
            for reading in readings
        ]
        notes.append(f"the file names no ion: tried {', '.join(tried)}")
    return [*notes, *feature.notes, *time_notes(feature), *_above_precursor(feature)]


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
    keep_mass_mismatches: bool,
) -> tuple[list[list[Molecule]], int]:
    """Listed molecules, each for the ion that it can form and that is nearest to the precursor.

    Also returns how many contradict the precursor under every ion, and counts in `removed` those
    that cannot form an ion of their mass.
    """
    by_hypothesis: list[list[Molecule]] = [[] for _ in readings]
    mismatches = 0
    for molecule in molecules:
        away = [_distance(molecule, reading) for reading in readings]
        order = sorted(range(len(readings)), key=away.__getitem__)
        within = [index for index in order if away[index] <= readings[index].reach]
        mismatches += not within
        if not within and not keep_mass_mismatches:
            continue
        rules = {index: _obstacle(molecule, readings[index]) for index in within or order}
        possible = next((index for index, rule in rules.items() if rule is None), None)
        if possible is not None:
            by_hypothesis[possible].append(molecule)
        elif (rule := next(iter(rules.values()))) is not None:
            removed[readings[next(iter(rules))].adduct, rule.reason] += 1
    return by_hypothesis, mismatches


def _nearest(
    by_hypothesis: list[list[Molecule]], readings: tuple[Hypothesis, ...], max_candidates: int
) -> list[list[Molecule]]:
    every = sorted(
        (_distance(molecule, reading) / reading.reach, molecule.key, index)
        for index, (reading, molecules) in enumerate(zip(readings, by_hypothesis, strict=True))
        for molecule in molecules
    )[:max_candidates]
    nearest = {(key, index) for _, key, index in every}
    return [
        [m for m in molecules if (m.key, index) in nearest]
        for index, molecules in enumerate(by_hypothesis)
    ]


def error_ppm(feature: Feature, reading: Hypothesis, molecule: Molecule) -> float:
    """Measured minus computed m/z of the precursor, of the feature's first spectrum."""
    adduct = parse_adduct(reading.adduct)
    mass = mass_of_atoms(molecule.smiles, molecule.mass)
    computed = adduct.slope * mass + adduct.offset
    return (feature.spectra[0].precursor_mz - computed) / computed * 1e6
