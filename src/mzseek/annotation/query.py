"""Query a feature: adduct hypotheses, and the candidates of each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mzseek.annotation.candidates import Molecule, Source, distinct, formula_text, is_formula
from mzseek.annotation.config import AnnotateConfig, Ions, Tolerance
from mzseek.annotation.features import Feature, time_notes
from mzseek.chem.adducts import ELECTRON_MASS, Adduct, parse_adduct
from mzseek.chem.adducts import USUAL_ADDUCTS as USUAL
from mzseek.chem.ions import RULES, IonRule, mass_of_atoms, obstacle, takes_charged
from mzseek.core.errors import AdductError, AnnotationError
from mzseek.core.text import pluralize
from mzseek.spectra import Spectrum

# Electrons knock one out: such a molecule gains nothing.
_BY_ELECTRONS = ("[M]+",)
_IS_EI = re.compile(r"\bEI\b", re.IGNORECASE)
_MODES = {"positive": 1, "negative": -1}


@dataclass(frozen=True)
class Hypothesis:
    """An adduct hypothesis of a feature: the ion of each of its spectra, and the mass that follows.

    Attributes
    ----------
    adduct : str
        Of the feature: of its representative spectrum, where it has several ions.
    adducts : tuple of str
        Of each spectrum.
    mass, reach : float
        Of the neutral molecule, and how far it may be off.
    stated : bool
        Whether the file or the user names the ion; else it is tried because it is usual.
    """

    adduct: str
    adducts: tuple[str, ...]
    mass: float
    reach: float
    stated: bool = True

    @property
    def ions(self) -> dict[str, list[int]]:
        """Indices of the spectra of each ion, by its adduct."""
        ions: dict[str, list[int]] = {}
        for index, adduct in enumerate(self.adducts):
            ions.setdefault(adduct, []).append(index)
        return ions

    @property
    def shown(self) -> str:
        """Its ions, for messages."""
        return " with ".join(self.ions)


def adduct_hypotheses(
    feature: Feature, tolerance: Tolerance, requested: Ions
) -> tuple[Hypothesis, ...]:
    """Return the adduct hypotheses of a feature that are to be tried, at least one.

    A hypothesis of a feature of several ions (`ions_of`) gives each of them an adduct, so that all
    have one neutral mass within the tolerance.

    Parameters
    ----------
    feature : Feature
    tolerance : Tolerance
        Of the precursor.
    requested : Ions
        By the user.

    Raises
    ------
    AnnotationError
        Its spectra contradict each other, or what is requested.
    """
    modes = {sign for spectrum in feature.spectra if (sign := spectrum.polarity)}
    ions = ions_of(feature, tolerance)
    options = []
    for ion in ions:
        spectra = tuple(feature.spectra[index] for index in ion)
        options.append(_of_one_ion(replace(feature, spectra=spectra), tolerance, requested, modes))
    return options[0] if len(ions) == 1 else _of_one_mass(feature, ions, options, tolerance)


def ions_of(feature: Feature, tolerance: Tolerance) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the spectra of each ion of a feature.

    An ion is of one stated adduct. Spectra that state none are of the ion with their precursor m/z
    and polarity, within twice the tolerance.
    """
    spectra = feature.spectra
    named: dict[str, list[int]] = {}
    nameless: list[int] = []
    for index, spectrum in enumerate(spectra):
        if spectrum.adduct:
            named.setdefault(spectrum.adduct, []).append(index)
        else:
            nameless.append(index)
    modes = {sign for spectrum in spectra if (sign := spectrum.polarity)}
    usual = min(modes) if len(modes) == 1 else 1
    ions, last = list(named.values()), dict[int, tuple[float, list[int]]]()
    members = [(group, spectra[index]) for group in named.values() for index in group]
    for index in sorted(nameless, key=lambda index: spectra[index].precursor_mz):
        mz, polarity = spectra[index].precursor_mz, spectra[index].polarity
        reach = 2 * tolerance.of(mz)
        near = [
            (abs(other.precursor_mz - mz), group[0], group)
            for group, other in members
            if abs(other.precursor_mz - mz) <= reach and polarity in (0, other.polarity)
        ]
        mode = polarity or usual
        before, group = last.get(mode, (-np.inf, []))
        if near:
            min(near)[2].append(index)
            continue
        if mz - before > reach:
            group = []
            ions.append(group)
        group.append(index)
        last[mode] = mz, group
    return tuple(sorted(tuple(sorted(ion)) for ion in ions))


def _of_one_ion(
    feature: Feature, tolerance: Tolerance, requested: Ions, modes: set[int]
) -> tuple[Hypothesis, ...]:
    """Return the hypotheses of a feature that is one ion.

    `modes` are those of all spectra that it was taken from, for spectra that state none.
    """
    stated = tuple(dict.fromkeys(s.adduct for s in feature.spectra if s.adduct))
    charge = _charge(feature, requested, modes)
    # An ion of another charge, or of the other mode, is requested because of other features.
    only = tuple(a for a in requested.only if _fits(a, charge))
    also = tuple(a for a in requested.also if _fits(a, charge))
    if stated:
        if requested.only and not set(stated) <= set(only):
            raise AnnotationError(
                f"names {' and '.join(stated)}, but {' and '.join(requested.only)} was asked for"
            )
        read, tried = [_as_stated(feature, stated[0], tolerance)], []
    else:
        if requested.only and not only:
            raise AnnotationError(
                f"is {_described(charge)}, but {' and '.join(requested.only)} was asked for"
            )
        read, tried = [], [] if only else list(_usual(feature, charge))
    named = {*only, *also, *(_BY_ELECTRONS if _is_by_electrons(feature) else ())}
    for name in dict.fromkeys([*tried, *only, *also]):
        if name in stated:
            continue
        try:
            read.append(_as_one(feature, parse_adduct(name), tolerance, name in named))
        except AdductError:  # an ion that takes more away than there is: none of this m/z
            continue
    if not read:
        raise AnnotationError(f"m/z {feature.precursor_mz:.4f} is too small for every ion tried")
    return tuple(read)


def _of_one_mass(
    feature: Feature,
    ions: Sequence[tuple[int, ...]],
    options: Sequence[tuple[Hypothesis, ...]],
    tolerance: Tolerance,
) -> tuple[Hypothesis, ...]:
    """Return the assignments of an adduct to each ion that give all of them one neutral mass."""
    first = min(range(len(ions)), key=lambda at: len(options[at]))
    found = []
    for anchor in options[first]:
        chosen = [min(of_ion, key=lambda other: abs(other.mass - anchor.mass))
                  for of_ion in options]  # fmt: skip
        adducts = [""] * len(feature.spectra)
        for ion, hypothesis in zip(ions, chosen, strict=True):
            for index, adduct in zip(ion, hypothesis.adducts, strict=True):
                adducts[index] = adduct
        if len({_sign(h.adduct) for h in chosen}) > 1 and any(
            takes_charged(h.adduct) and not h.stated for h in chosen
        ):
            continue  # a permanent ion has no ion of the other polarity
        assigned = _assigned(feature, adducts, tolerance, all(h.stated for h in chosen))
        if isinstance(assigned, Hypothesis):
            found.append(assigned)
        elif all(len(of_ion) == 1 for of_ion in options):
            raise AnnotationError(assigned)
    if found:
        return tuple(found)
    shown = ", ".join(
        f"m/z {feature.spectra[ion[0]].precursor_mz:.4f} "
        f"({feature.spectra[ion[0]].adduct or 'no ion named'})"
        for ion in ions
    )
    raise AnnotationError(
        f"its spectra are of {len(ions)} ions, {shown}, which no adducts that are tried make one "
        "mass; with --group none each is answered by itself"
    )


def with_ion(spectrum: Spectrum, adduct: str) -> Spectrum:
    """A spectrum read as an ion."""
    if spectrum.adduct == adduct:
        return spectrum
    return replace(spectrum, adduct=adduct, charge=parse_adduct(adduct).charge)


def _as_stated(feature: Feature, adduct: str, tolerance: Tolerance) -> Hypothesis:
    """Every spectrum as the one ion that is named."""
    assigned = _assigned(feature, (adduct,) * len(feature.spectra), tolerance, True)
    if isinstance(assigned, str):
        raise AnnotationError(assigned)
    return assigned


def _assigned(
    feature: Feature, names: Sequence[str], tolerance: Tolerance, stated: bool
) -> Hypothesis | str:
    """Each spectrum as an ion; why that cannot be, if they are then of different masses."""
    adducts = [parse_adduct(name) for name in names]
    try:
        masses = [adduct.neutral_mass(spectrum.precursor_mz)
                  for adduct, spectrum in zip(adducts, feature.spectra, strict=True)]  # fmt: skip
    except AdductError as error:
        raise AnnotationError(str(error)) from error
    reach = max(tolerance.of(spectrum.precursor_mz) / adduct.slope
                for adduct, spectrum in zip(adducts, feature.spectra, strict=True))  # fmt: skip
    used = tuple(adduct.name for adduct in adducts)
    if max(masses) - min(masses) > 2 * reach:
        low, high = int(np.argmin(masses)), int(np.argmax(masses))
        return (
            f"its spectra are of two masses, {masses[low]:.4f} ({used[low]}) and "
            f"{masses[high]:.4f} ({used[high]}); with --group none each is answered by itself"
        )
    return Hypothesis(used[feature.representative], used, float(np.median(masses)), reach, stated)


def _as_one(feature: Feature, adduct: Adduct, tolerance: Tolerance, stated: bool) -> Hypothesis:
    """All spectra as one ion."""
    mz = [spectrum.precursor_mz for spectrum in feature.spectra]
    width = tolerance.of(feature.precursor_mz)
    if max(mz) - min(mz) > 2 * width:
        raise AnnotationError(
            f"its spectra have precursors from m/z {min(mz):.4f} to {max(mz):.4f}, and name "
            "no ions; with --group none each is answered by itself"
        )
    mass = adduct.neutral_mass(feature.precursor_mz)
    return Hypothesis(adduct.name, (adduct.name,) * len(mz), mass, width / adduct.slope, stated)


def _usual(feature: Feature, charge: int | str) -> tuple[str, ...]:
    """Ions of a charge, or of any charge of a mode where it is not known: singly charged ones."""
    size = _MODES[charge] if isinstance(charge, str) else charge
    if size == 1 and _is_by_electrons(feature):
        return _BY_ELECTRONS
    if size not in USUAL:
        raise AnnotationError(f"is {_described(charge)} and names no ion; name it with --adduct")
    return USUAL[size]


def _is_by_electrons(feature: Feature) -> bool:
    return all(_IS_EI.search(s.metadata.get("instrument_type", "")) for s in feature.spectra)


def _charge(feature: Feature, requested: Ions, modes: set[int]) -> int | str:
    """Signed charge of a feature of one ion; its ion mode where the file gives no charge.

    A mode that is not known is that of the only ions requested. Otherwise it is
    taken as positive, which a note says.
    """
    modes = {sign for spectrum in feature.spectra if (sign := spectrum.polarity)} or modes
    signs = {_sign(adduct) for adduct in requested.only}
    mode = next(iter(modes or signs)) if len(modes or signs) == 1 else 1
    named = {abs(parse_adduct(s.adduct).charge) for s in feature.spectra if s.adduct}
    sizes = named or {abs(s.charge) for s in feature.spectra if s.charge}
    if len(sizes) > 1 and not named:
        raise AnnotationError(f"its spectra have charges of {' and '.join(map(str, sizes))}")
    if len(sizes) == 1:
        return mode * sizes.pop()
    return "positive" if mode > 0 else "negative"


def _fits(adduct: str, charge: int | str) -> bool:
    if isinstance(charge, str):
        return _sign(adduct) == _MODES[charge]
    return parse_adduct(adduct).charge == charge


def _described(charge: int | str) -> str:
    if isinstance(charge, str):
        return f"of {charge} mode"
    return f"of charge {abs(charge)}{'+' if charge > 0 else '-'}"


def _sign(adduct: str) -> int:
    return 1 if parse_adduct(adduct).charge > 0 else -1


# Quadrupoles, ion traps and sectors, as MassBank names them: LC-ESI-QQ, GC-EI-Q, LC-ESI-IT, EI-B.
_COARSE = re.compile(r"(?:.*[-\s])?(?:Q{1,3}|Q?IT|QQ?LIT|B)", re.IGNORECASE)
_COARSE_WORDS = re.compile(r"(?:triple |single )quad|\bquadrupole$|^(?:linear )?ion trap$", re.I)
_COARSE_WIDTH = 0.5  # m/z: such instruments tell nominal masses
_FINE = 3  # decimals from which on what is written tells more than 10 ppm


def as_known(feature: Feature, tolerance: Tolerance) -> tuple[Tolerance, str]:
    """Return the tolerance of a feature's precursor, and a note if it is wider than requested.

    A tolerance that the user has given stays as it is.

    Parameters
    ----------
    feature : Feature
    tolerance : Tolerance

    Examples
    --------
    >>> import numpy as np
    >>> one = Spectrum(np.array([50.0]), np.ones(1), 181.0, "[M-H]-", -1, "a", {})
    >>> as_known(Feature("1", "index", (one,)), Tolerance())
    (Tolerance(ppm=10.0, least=0.5, strict=False), 'its precursor is written as 181: searched within 0.5 Da')
    """  # noqa: E501
    if tolerance.strict:
        return tolerance, ""
    width, why = max(map(_width, feature.spectra))
    if width <= tolerance.of(feature.precursor_mz):
        return tolerance, ""
    return replace(tolerance, least=width), f"{why}: searched within {width:g} Da"


def _width(spectrum: Spectrum) -> tuple[float, str]:
    instrument = spectrum.metadata.get("instrument_type", "").strip()
    if _COARSE.fullmatch(instrument) or _COARSE_WORDS.search(instrument):
        return _COARSE_WIDTH, f"its instrument ({instrument[:40]}) tells nominal masses"
    decimals = _decimals(spectrum.precursor_mz)
    if decimals >= _FINE:
        return 0.0, ""
    return (
        0.5 * 10.0**-decimals,
        f"its precursor is written as {spectrum.precursor_mz:.{decimals}f}",
    )


def _decimals(mz: float) -> int:
    """Count the decimals of the shortest text that is this number.

    A 32-bit float in many digits (287.05499267578125 for 287.055) stands for the rounded number:
    precise to some 3e-8 of itself, unless it is a short number.

    Examples
    --------
    >>> _decimals(287.05499267578125), _decimals(183.1000061035156), _decimals(287.0550123)
    (3, 1, 6)
    """
    single = np.float32(mz)
    if abs(float(single) - mz) <= 1e-13 * mz:
        return len(str(single).partition(".")[2].rstrip("0"))
    return len(repr(round(mz, 6)).partition(".")[2].rstrip("0"))


ISOTOPES, MUCH_ABOVE = 4.5, 0.1  # m/z above the precursor, and share of the intensity
_ELECTRONS = 3 * ELECTRON_MASS  # by which masses of permanent ions differ from those of their atoms


@dataclass(frozen=True, eq=False)
class FeatureQuery:
    """A feature with all that may be behind it.

    Attributes
    ----------
    feature : Feature
    hypotheses : tuple of Hypothesis
        Those that molecules were found for; if there are none, all that were tried.
    molecules : tuple of lists of Molecule
        Of each hypothesis, each molecule once.
    tried : tuple of Hypothesis
        All for which molecules were looked up.
    found : int
        Number of candidates before the list was shortened to `max_candidates`.
    notes : tuple of str
    removed : mapping of str to int
        Candidates that cannot form the ion, by ion and reason (`mzseek.chem.ions.RULES`).
    formula : str
        That the user knows; empty where none is known.
    mass_mismatches : int
        Candidates listed for the feature whose mass contradicts the precursor under every ion.
    """

    feature: Feature
    hypotheses: tuple[Hypothesis, ...]
    molecules: tuple[list[Molecule], ...]
    tried: tuple[Hypothesis, ...]
    found: int
    notes: tuple[str, ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)
    formula: str = ""
    mass_mismatches: int = 0

    @property
    def n_candidates(self) -> int:
        """Number of candidates, over all hypotheses."""
        return sum(map(len, self.molecules))


def ask(feature: Feature, source: Source, config: AnnotateConfig) -> FeatureQuery:
    """Look up what may be behind a feature.

    Parameters
    ----------
    feature : Feature
    source : Source
    config : AnnotateConfig
        The tolerance of the precursor is wider where that is known less well, if it is not strict.
        A record's own formula is never used, since a reference record would give its annotation
        away.

    Raises
    ------
    AnnotationError
        The feature contradicts itself, or what is asked for.
    """
    tolerance, coarse = as_known(feature, config.precursor_tolerance)
    hypotheses = adduct_hypotheses(feature, tolerance, config.ions)
    notes = [*_notes(feature, hypotheses), *([coarse] if coarse else [])]
    removed: Counter[tuple[str, str]] = Counter()
    known = config.formula_of
    formula = next((known[name] for name in feature.table_names if name in known), "")
    formula = formula_text(formula) if formula else ""
    mismatches = 0
    if source.by_feature:
        listed = _listed(feature, source, formula, notes)
        by_hypothesis, mismatches = _by_nearest_ion(
            listed, hypotheses, removed, config.keep_mass_mismatches
        )
        notes += _mismatch_notes(mismatches, config.keep_mass_mismatches)
    else:
        by_hypothesis = _looked_up(hypotheses, source, formula, notes, removed)
    notes += [
        f"{pluralize(number, 'candidate', 'candidates')} cannot form {adduct} ({reason})"
        for (adduct, reason), number in removed.items()
    ]
    total = sum(map(len, by_hypothesis))
    if total > config.max_candidates:
        by_hypothesis = _nearest(by_hypothesis, hypotheses, config.max_candidates)
        notes.append(
            f"{total:,} candidates, of which the {config.max_candidates:,} nearest by mass were "
            "scored"
        )
    non_empty = [index for index, molecules in enumerate(by_hypothesis) if molecules]
    return FeatureQuery(
        feature,
        tuple(hypotheses[index] for index in non_empty) or hypotheses,
        tuple(by_hypothesis[index] for index in non_empty),
        hypotheses,
        total,
        tuple(notes),
        {f"{adduct}: {reason}": number for (adduct, reason), number in removed.items()},
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
    hypotheses: tuple[Hypothesis, ...],
    source: Source,
    formula: str,
    notes: list[str],
    removed: Counter[tuple[str, str]],
) -> list[list[Molecule]]:
    """Molecules of each hypothesis that can form its ion.

    Adds to the notes what was looked for in vain, and counts in `removed` what cannot be the ion.
    """
    by_hypothesis = []
    for hypothesis in hypotheses:
        charged = takes_charged(hypothesis.adduct)
        reach = hypothesis.reach + (_ELECTRONS if charged else 0.0)
        molecules = source.within(hypothesis.mass, reach)
        if formula:
            molecules = [m for m in molecules if is_formula(m.formula, formula)]
        if charged:
            molecules = [m for m in molecules if _distance(m, hypothesis) <= hypothesis.reach]
        by_hypothesis.append(_possible(molecules, hypothesis, removed))
    if formula:
        notes.append(f"only molecules of {formula}")
    if not any(by_hypothesis) and not removed:
        lacks = f"the formula {formula} and this mass" if formula else "this mass"
        notes.append(f"no molecule of the database has {lacks}")
    return by_hypothesis


def _possible(
    molecules: list[Molecule], hypothesis: Hypothesis, removed: Counter[tuple[str, str]]
) -> list[Molecule]:
    """Distinct molecules that can form the ion of a hypothesis; counts the others in `removed`."""
    possible, others = [], []
    for molecule in molecules:
        rule = _obstacle(molecule, hypothesis)
        if rule is None:
            possible.append(molecule)
        elif rule is not RULES["neutral"]:  # which are tried as other ions
            others.append((rule, molecule))
    if others:
        keys = {molecule.key for molecule in possible}
        left = {m.key: rule for rule, m in others if m.key not in keys}
        removed.update((hypothesis.adduct, rule.reason) for rule in left.values())
    return distinct(possible)


def can_be(molecule: Molecule, hypothesis: Hypothesis) -> bool:
    """Return whether a molecule has the mass of a hypothesis and can form its ion."""
    return _distance(molecule, hypothesis) <= hypothesis.reach and can_form(molecule, hypothesis)


def can_form(molecule: Molecule, hypothesis: Hypothesis) -> bool:
    """Return whether a molecule can form the ion of a hypothesis, whatever its mass."""
    return _obstacle(molecule, hypothesis) is None


def _obstacle(molecule: Molecule, hypothesis: Hypothesis) -> IonRule | None:
    for adduct in dict.fromkeys(hypothesis.adducts):
        rule = obstacle(molecule.smiles, molecule.formula, adduct, stated=hypothesis.stated)
        if rule is not None:
            return rule
    return None


def _distance(molecule: Molecule, hypothesis: Hypothesis) -> float:
    """How far a molecule's mass, all electrons of its atoms included, is from a hypothesis's."""
    return abs(mass_of_atoms(molecule.smiles, molecule.mass) - hypothesis.mass)


def _notes(feature: Feature, hypotheses: tuple[Hypothesis, ...]) -> list[str]:
    notes = []
    if not any(spectrum.polarity for spectrum in feature.spectra):
        notes.append("the file tells no ion mode: read as positive")
    named = any(spectrum.adduct for spectrum in feature.spectra)
    is_certain = all(hypothesis.stated for hypothesis in hypotheses)
    if not (is_certain and (named or len(hypotheses) == 1)):
        tried = [
            f"{hypothesis.shown} (of permanent ions)"
            if not hypothesis.stated and takes_charged(hypothesis.adduct)
            else hypothesis.shown
            for hypothesis in hypotheses
        ]
        what = "does not name every ion" if named else "names no ion"
        notes.append(f"the file {what}: tried {', '.join(tried)}")
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


def _by_nearest_ion(
    molecules: list[Molecule],
    hypotheses: tuple[Hypothesis, ...],
    removed: Counter[tuple[str, str]],
    keep_mass_mismatches: bool,
) -> tuple[list[list[Molecule]], int]:
    """Listed molecules, each for the ion that it can form and that is nearest to the precursor.

    Also returns how many contradict the precursor under every ion, and counts in `removed` those
    that cannot form an ion of their mass.
    """
    by_hypothesis: list[list[Molecule]] = [[] for _ in hypotheses]
    mismatches = 0
    for molecule in molecules:
        away = [_distance(molecule, hypothesis) for hypothesis in hypotheses]
        order = sorted(range(len(hypotheses)), key=away.__getitem__)
        within = [index for index in order if away[index] <= hypotheses[index].reach]
        mismatches += not within
        if not within and not keep_mass_mismatches:
            continue
        rules = {index: _obstacle(molecule, hypotheses[index]) for index in within or order}
        possible = next((index for index, rule in rules.items() if rule is None), None)
        if possible is not None:
            by_hypothesis[possible].append(molecule)
        elif (rule := next(iter(rules.values()))) is not None:
            removed[hypotheses[next(iter(rules))].adduct, rule.reason] += 1
    return by_hypothesis, mismatches


def _nearest(
    by_hypothesis: list[list[Molecule]], hypotheses: tuple[Hypothesis, ...], max_candidates: int
) -> list[list[Molecule]]:
    every = sorted(
        (_distance(molecule, hypothesis) / hypothesis.reach, molecule.key, index)
        for index, (hypothesis, molecules) in enumerate(zip(hypotheses, by_hypothesis, strict=True))
        for molecule in molecules
    )[:max_candidates]
    nearest = {(key, index) for _, key, index in every}
    return [
        [m for m in molecules if (m.key, index) in nearest]
        for index, molecules in enumerate(by_hypothesis)
    ]


def error_ppm(feature: Feature, hypothesis: Hypothesis, molecule: Molecule) -> float:
    """Measured minus computed m/z of the precursor: of the first spectrum of the main ion."""
    adduct = parse_adduct(hypothesis.adduct)
    measured = feature.spectra[hypothesis.ions[hypothesis.adduct][0]].precursor_mz
    mass = mass_of_atoms(molecule.smiles, molecule.mass)
    computed = adduct.slope * mass + adduct.offset
    return (measured - computed) / computed * 1e6
