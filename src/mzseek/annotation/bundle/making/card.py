"""The card of a bundle: made of what, which ions and instruments, what it reaches, its limits."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mzseek.annotation.bundle.making.priors import MadePrior
from mzseek.annotation.bundle.making.references import References
from mzseek.annotation.bundle.molecules import BoxedMolecules
from mzseek.annotation.confidence import MODES, Confidence
from mzseek.annotation.writing.links import link
from mzseek.evidence.fitted import Fitted

_SMALL = "The bundled database is small: {:,} molecules."
_SIZE = re.compile(r"The .* is small: [\d,]+ molecules\.")
_MODE = {1: "positive", -1: "negative", 0: "unknown"}


def card_of(
    fitted: Fitted,
    confidence: Confidence,
    references: References,
    molecules: BoxedMolecules,
    measured: Mapping[str, Any],
    made_of: Mapping[str, Any],
    folds: Sequence[str],
    most_peaks: int,
    prior: MadePrior | None = None,
) -> dict[str, Any]:
    """What a bundle says of itself, as plain data.

    Parameters
    ----------
    measured : mapping
        From `mzseek.annotation.bundle.making.measure.measured`.
    made_of : mapping
        Of the sources: names and SHA-256, spectra kept and left out by licence, options.
    folds : sequence of str
        That the channels in the bundle have learned from.
    prior : MadePrior, optional
        That answers may be asked to count in.
    """
    return {
        "made_of": dict(made_of),
        "channels": [channel.label for channel in fitted.channels],
        "learned_from": list(folds),
        "library": _library(references, most_peaks),
        "database": _database(molecules),
        "measured": dict(measured),
        "in_database": {
            mode: None
            if own.in_database is None
            else {"auc": dict(own.in_database.auc), "error": own.in_database.error}
            for mode, own in confidence.modes.items()
        },
        "fitted_on": {
            mode: {"molecules": own.molecules, "own": own.own}
            for mode, own in confidence.modes.items()
        },
        "prior": None if prior is None else _prior(prior, measured),
        "limits": _limits(confidence, folds, len(molecules)),
        "licence": "CC BY-SA 4.0; every record has its own, see LICENCE.md",
    }


def with_molecules(
    card: Mapping[str, Any], molecules: BoxedMolecules, lists: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Return a card of the same bundle with other molecules.

    Parameters
    ----------
    card : mapping
    molecules : BoxedMolecules
    lists : sequence of mappings
        Name and SHA-256 of each file that they come from.
    """
    size = _SMALL.format(len(molecules))
    limits = [size if _SIZE.fullmatch(line) else line for line in card["limits"]]
    return {
        **card,
        "made_of": {**card["made_of"], "molecule_lists": list(lists)},
        "database": _database(molecules),
        "limits": limits,
    }


def _library(references: References, most_peaks: int) -> dict[str, Any]:
    records = references.records.to_pydict()
    modes = [_MODE[int(mode)] for mode in references.ions.modes]
    by_mode: dict[str, dict[str, Any]] = {}
    for mode in dict.fromkeys([*MODES, *modes]):
        inside = [place for place, own in enumerate(modes) if own == mode]
        if inside:
            by_mode[mode] = {
                "spectra": len(inside),
                "molecules": len({int(references.molecule_of[place]) for place in inside}),
                "ions": _counted(records["adduct"][place] for place in inside),
                "instruments": _counted(records["instrument_type"][place] for place in inside),
            }
    return {
        "spectra": len(modes),
        "molecules": len(references.molecules),
        "peaks": len(references.peaks.values),
        "most_peaks": most_peaks,
        "modes": by_mode,
        "contributors": _counted(records["contributor"]),
        "licences": _counted(records["license"]),
    }


def _database(molecules: BoxedMolecules) -> dict[str, Any]:
    sources = Counter(name for each in molecules.table["sources"].to_pylist() for name in each)
    named = sum(1 for each in molecules.table["names"].to_pylist() if each)
    identifiers = [each for each in molecules.table["identifiers"].to_pylist() if each]
    return {
        "molecules": len(molecules),
        "sources": dict(sorted(sources.items())),
        "named": named,
        "identified": len(identifiers),
        "linked": sum(1 for each in identifiers if any(map(link, each))),
    }


def _prior(made: MadePrior, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of the prior, and what is reached without it and with it, on the same lists."""
    return {
        "weights": dict(made.prior.weights),
        "without": {
            mode: {name: measured[mode][name] for name in own}
            for mode, own in made.measured.items()
        },
        "with": dict(made.measured),
    }


def _limits(confidence: Confidence, folds: Sequence[str], molecules: int) -> list[str]:
    lines = [
        "Ions and instruments that are not listed above were not tried.",
        "Probabilities were fitted on molecules of other structures than the channels learned "
        "from, with lists of equal mass; they hold for molecules and lists like those, and they "
        "assume that the molecule is among the candidates.",
        "Whether the molecule is among the candidates was fitted on lists with and without their "
        "truth, in equal numbers: say how often yours lack it.",
        _SMALL.format(molecules),
    ]
    if "test" in folds:
        lines.insert(
            0,
            "The numbers on this card were measured with channels that had learned from the train "
            "fold alone. The channels in this bundle then learned once more, from all folds; the "
            "ranker and confidence stayed as they were, cross-fitted.",
        )
    lines += [
        f"{mode} mode has too few molecules to fit on: its numbers are those of both modes."
        for mode, own in confidence.modes.items()
        if not own.own
    ]
    return lines


def _counted(values: Any) -> dict[str, int]:
    """How often each value occurs, the most frequent first; what is empty is not stated."""
    counts = Counter(value or "not stated" for value in values)
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
