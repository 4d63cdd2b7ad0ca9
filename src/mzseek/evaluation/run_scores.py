"""All that `mzseek evaluate` computes for a run: metrics, posteriors, information gain."""

from dataclasses import dataclass, replace
from typing import Any

from mzseek.evaluation.evaluate import Evaluation, evaluate
from mzseek.evaluation.information_gain import (
    Contributions,
    InformationGain,
    contributions_of,
    information_gain,
)
from mzseek.evaluation.posterior_report import PosteriorReport, posterior_report
from mzseek.evaluation.posteriors import by_spectrum_count
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run


@dataclass(frozen=True)
class RunScores:
    """Scores of a run over single spectra, or over molecules where spectra are pooled.

    Attributes
    ----------
    values : Evaluation
    posteriors : PosteriorReport or None
    channels : Contributions or None
        Of a fitted run: the information gain of each of its channels.
    bits : InformationGain or None
    pooled : RunScores or None
        The same with all spectra of a molecule pooled.
    """

    values: Evaluation
    posteriors: PosteriorReport | None = None
    channels: Contributions | None = None
    bits: InformationGain | None = None
    pooled: "RunScores | None" = None

    def with_bits(self, run: Run, prior: Run | None, how: Scoring, **source: Any) -> "RunScores":
        """Add the information gain over ``prior``, or over equally probable candidates."""
        pooled = self.pooled
        if pooled:
            bits = information_gain(run, prior, how, pooled=True, **source)
            pooled = replace(pooled, bits=bits)
        return replace(self, bits=information_gain(run, prior, how, **source), pooled=pooled)

    def to_dict(self, control: "RunScores | None" = None) -> dict[str, Any]:
        """Return plain data, with the gain over a control."""
        record: dict[str, Any] = self.values.to_dict()
        if self.posteriors:
            record |= self.posteriors.to_dict()
        if self.channels:
            record["channels"] = self.channels.to_dict()
        if self.bits:
            record["bits"] = self.bits.to_dict()
        if self.pooled:
            report = self.pooled.posteriors
            rows = by_spectrum_count(report.calibrated) if report else []
            pooled = self.pooled.to_dict(control.pooled if control else None)
            record["together"] = pooled | {"by_number": [vars(row) for row in rows]}
        if control:
            gains = self.values.gain_over(control.values)
            record["gain"] = {name: [g.mean, g.low, g.high] for name, g in gains.items()}
        return record


def score_run(run: Run, how: Scoring, *, decode: bool, pool: bool, **source: Any) -> RunScores:
    """Score a run; also decode its posterior and pool the spectra of each molecule, as asked.

    Parameters
    ----------
    run : Run
    how : Scoring
    decode, pool : bool
    **source
        ``data``, where the prepared folder has been moved, and ``progress``.
    """
    pooled = None
    if pool:
        report = posterior_report(run, how, pooled=True, **source) if decode else None
        pooled = RunScores(evaluate(run, how, pooled=True, **source), report)
    is_fitted = run.description.fitted is not None
    return RunScores(
        evaluate(run, how, **source),
        posterior_report(run, how, **source) if decode else None,
        contributions_of(run, how, **source) if decode and is_fitted else None,
        pooled=pooled,
    )
