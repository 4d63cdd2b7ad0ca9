"""What is counted while features go by."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mzseek.annotation.answers import Answer
from mzseek.report.annotations.words import LEVELS, badges

_SURE, _FAIR = 0.9, 0.5


class Counts:
    """Numbers of the head of the page.

    Attributes
    ----------
    features, records : int
        Features answered, and spectra in them.
    levels, badges, licences : Counter
        Features by level and by badge; reference spectra that are shown, by licence.
    sure, fair : int
        Features whose answer has a probability of at least 90 %, and of 50 to 90 %.
    coverages, objectives : set
        That the answers were made for.
    """

    def __init__(self) -> None:
        self.features = self.records = self.sure = self.fair = 0
        self.levels: Counter[str] = Counter()
        self.badges: Counter[str] = Counter()
        self.licences: Counter[tuple[str, str]] = Counter()
        self.coverages: set[float] = set()
        self.objectives: set[str] = set()
        self.knows_absence = False
        self.has_prior = False

    def take(self, signs: Mapping[str, Any]) -> None:
        """Count one more, by what `signs_of` says of it and the reference spectra that are drawn.

        Parameters
        ----------
        signs : mapping
            With ``references``: licence and contributor of each.
        """
        self.features += 1
        self.records += signs["spectra"]
        self.levels[signs["level"]] += 1
        self.badges.update(signs["badges"])
        self.sure += signs["confidence"] >= _SURE
        self.fair += _FAIR <= signs["confidence"] < _SURE
        self.coverages.add(signs["coverage"])
        self.objectives.add(signs["objective"])
        self.knows_absence |= signs["knows_absence"]
        self.has_prior |= signs["has_prior"]
        self.licences.update((licence, whose) for licence, whose in signs["references"])

    def by_level(self) -> list[tuple[str, str, int, float]]:
        """Level, what it means, number of features, and its share in percent; surest first."""
        order = sorted(
            self.levels,
            key=lambda level: (
                list(LEVELS).index(level) if level in LEVELS else len(LEVELS),
                level,
            ),
        )
        total = max(self.features, 1)
        return [
            (level, LEVELS.get(level, ""), self.levels[level], 100 * self.levels[level] / total)
            for level in order
        ]


def signs_of(answer: Answer) -> dict[str, Any]:
    """What is counted of an answer, as plain data: all that is kept of one that has gone by."""
    return {
        "spectra": len(answer.feature.spectra),
        "level": answer.level.number,
        "badges": list(badges(answer)),
        "confidence": answer.confidence,
        "coverage": answer.coverage,
        "objective": answer.objective,
        # Without candidates the molecule is not among them, whatever a model can estimate.
        "knows_absence": answer.present is not None and answer.best is not None,
        "has_prior": "prior" in answer.kinds.values(),
    }
