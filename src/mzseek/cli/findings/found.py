"""All that ``mzseek evaluate`` finds of a run: per spectrum, and of a molecule's spectra together.

Nothing is loaded before it is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """What of a run is to be found.

    Attributes
    ----------
    how : Scoring
    decode : bool
        Also probabilities and what is decoded of them.
    together : bool
        Also all spectra of a molecule together.
    data : Path or None
        The prepared folder, if it has been moved.
    """

    how: Any
    decode: bool
    together: bool
    data: Path | None

    def of(self, run: Any) -> "Asked":
        """The same of another run; one without a fingerprint is scored as it was trained."""
        from mzseek.evaluation.scored import predicts_fingerprint

        if predicts_fingerprint(run):
            return self
        return replace(self, how=replace(self.how, similarity=None))


@dataclass(frozen=True)
class Part:
    """What was found of spectra, each alone or those of a molecule together.

    Attributes
    ----------
    scores : Evaluation or Together
    beliefs : Beliefs or None
    bits : Bits or None
    channels : Contributions or None
        Of a fitted run: what each of its channels brings.
    """

    scores: Any
    beliefs: Any = None
    bits: Any = None
    channels: Any = None

    def facts(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Plain data, ``more`` among them."""
        facts: dict[str, Any] = self.scores.to_dict()
        facts |= self.beliefs.to_dict() if self.beliefs else {}
        facts |= {"channels": self.channels.to_dict()} if self.channels else {}
        return facts | ({"bits": self.bits.to_dict()} if self.bits else {}) | dict(more)


@dataclass(frozen=True)
class Found:
    """What was found of a run: of spectra alone, and of those of a molecule together if asked."""

    alone: Part
    together: Part | None = None

    def facts(self) -> dict[str, Any]:
        """Plain data."""
        more: dict[str, Any] = {}
        if self.together is not None:
            from mzseek.evaluation.together import by_number

            beliefs = self.together.beliefs
            numbers = by_number(beliefs.calibrated) if beliefs else []
            more["together"] = self.together.facts({"by_number": [vars(each) for each in numbers]})
        return self.alone.facts(more)

    def gains_over(self, control: "Found") -> list[dict[str, Any]]:
        """Gains over a control: per spectrum, and per molecule if that was asked for."""
        pairs = [(self.alone, control.alone)]
        if self.together and control.together:
            pairs.append((self.together, control.together))
        return [own.scores.gain_over(other.scores) for own, other in pairs]


def find(run: Any, asked: Asked, progress: Any) -> Found:
    """Score a run as asked."""
    from mzseek.evaluation.beliefs import beliefs_in, beliefs_of
    from mzseek.evaluation.evaluate import evaluate
    from mzseek.evaluation.together import calibrate_together, evaluate_together

    how, told = asked.how, {"data": asked.data, "progress": progress}
    alone = Part(evaluate(run, how, **told), beliefs_of(run, how, **told) if asked.decode else None)
    if asked.decode and run.made.fitted is not None:
        from mzseek.evaluation.contributions import contributions_of

        alone = replace(alone, channels=contributions_of(run, how, **told))
    if not asked.together:
        return Found(alone)
    beliefs = None
    if asked.decode:
        beliefs = beliefs_in(calibrate_together(run, how, **told), run, **told)
    return Found(alone, Part(evaluate_together(run, how, **told), beliefs))


def with_bits(found: Found, run: Any, prior: Any, asked: Asked, progress: Any) -> Found:
    """The same with the bits that the run tells over a prior; None is a uniform one."""
    from mzseek.evaluation.bits import bits_of

    told = {"data": asked.data, "progress": progress}
    alone = replace(found.alone, bits=bits_of(run, prior, asked.how, **told))
    if found.together is None:
        return Found(alone)
    bits = bits_of(run, prior, asked.how, together=True, **told)
    return Found(alone, replace(found.together, bits=bits))
