"""What is counted while features go by."""

from collections import Counter
from collections.abc import Iterable, Mapping
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

    def add(self, answer: Answer) -> None:
        """Count one more."""
        self.features += 1
        self.records += len(answer.feature.spectra)
        self.levels[answer.level.number] += 1
        self.badges.update(badges(answer))
        self.sure += answer.confidence >= _SURE
        self.fair += _FAIR <= answer.confidence < _SURE
        self.coverages.add(answer.coverage)
        self.objectives.add(answer.objective)
        self.knows_absence |= answer.present is not None
        self.has_prior |= "prior" in answer.kinds.values()

    def show(self, references: Iterable[Mapping[str, Any]]) -> None:
        """Count the reference spectra that are drawn for a feature, as the page gets them."""
        for reference in references:
            self.licences[reference["licence"], reference["contributor"]] += 1

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
