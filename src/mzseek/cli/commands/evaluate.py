"""``mzseek evaluate``: metrics, posteriors and information gain of runs."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.options import (
    IS_RUN,
    AsJson,
    Check,
    Fold,
    Identity,
    MovedData,
    Similarity,
    TieRule,
    either,
)
from mzseek.cli.output import new_table, plain, print_json, say, show, watched
from mzseek.core.errors import RunError
from mzseek.core.registry import FOLDS, IDENTITIES, POOLED_BY, TIES, check_name
from mzseek.core.text import distinct_labels, pluralize

if TYPE_CHECKING:
    from mzseek.evaluation.posterior_report import PosteriorReport
    from mzseek.evaluation.run_scores import RunScores

_GAIN, _UNIFORM, _RANDOM = "gain over it", "uniform", "random"
_WITHIN = {"candidates": "among candidates", "all": "any fingerprint"}


def _refuse_prior(text: str) -> None:
    if text != _UNIFORM:
        IS_RUN.refuse(text)


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder that `mzseek train` has made."), IS_RUN],
    fold: Fold = FOLDS[-1],
    candidates: Annotated[
        str | None, typer.Option(help="Candidate lists; those it was trained with by default.")
    ] = None,
    similarity: Similarity = None,
    ties: TieRule = TIES[0],
    identity: Identity = IDENTITIES[0],
    control: Annotated[
        Path | None, typer.Option(help="Another run, to state the gain over it."), IS_RUN
    ] = None,
    decode: Annotated[
        bool,
        typer.Option(
            help="Also turn scores into probabilities and decode them for each metric; some 40 s "
            "for 5,000 spectra."
        ),
    ] = True,
    mces: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also MCES@1, for one spectrum of so many molecules; slow, needs mzseek[mces].",
        ),
    ] = 0,
    leaderboard: Annotated[
        Path | None,
        typer.Option(
            help="Also put the run into a table in the columns of MassSpecGym's leaderboard: test "
            "fold, hits by inchikey, mass candidates; formula candidates in NAME_bonus.csv."
        ),
    ] = None,
    together: Annotated[
        str | None,
        typer.Option(
            help=f"Also score all spectra of one {either(POOLED_BY)} together, over molecules."
        ),
    ] = None,
    bits_over: Annotated[
        str | None,
        typer.Option(
            help="Also state the information gain in bits over another run, such as one that never "
            "sees the spectrum, or over `uniform`: all candidates equally probable."
        ),
        Check(_refuse_prior),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Also write a table (TSV) with a line for each spectrum, or each molecule with "
            "--together: rank of the truth, its probability, bits."
        ),
    ] = None,
    data: MovedData = None,
    as_json: AsJson = False,
) -> None:
    """Score a run, from its saved predictions where there are any.

    Each metric comes from the checkpoint that was best by it on validation.
    Intervals are over molecules; the row "random" is what an order by chance reaches. Decisions
    decoded for a metric stand beside those of a posterior that has not seen the spectrum.

    Example: mzseek evaluate runs/emb-cos --candidates formula --control runs/blind
    """
    prior = None if bits_over in (None, _UNIFORM) else Path(str(bits_over))
    for name, path in (("--control", control), ("--bits-over", prior)):
        if path is not None and path.samefile(run):
            raise RunError(f"{name} {path}: is the run itself; name another to compare with")
    if together is not None:
        check_name(POOLED_BY, together, "together", RunError)
    from mzseek.evaluation.evaluate import mces_of_best
    from mzseek.evaluation.leaderboard import write_leaderboard
    from mzseek.evaluation.run_scores import score_run
    from mzseek.evaluation.scored import Scoring
    from mzseek.io import atomic_file, sole_writer
    from mzseek.io.manifest import overlap
    from mzseek.metrics import bootstrap
    from mzseek.runs.run import Run

    if table and (reason := overlap(table, [run])):
        raise RunError(f"{table}: {reason}; name another --table")
    opened = Run.open(run)
    control_run, prior_run = (Run.open(path) if path else None for path in (control, prior))
    setting = candidates or opened.measured_on
    how = Scoring(fold, setting, similarity, ties, identity)  # type: ignore[arg-type]
    if decode and not len(opened.open_data(data).in_fold("val")):
        decode = False
        say("[yellow]no val spectra to calibrate on: nothing is decoded[/yellow]")
    with contextlib.ExitStack() as stack:
        if table:  # a path that cannot be written to is refused before the work
            stack.enter_context(sole_writer(table, "writing a table"))
            partial = stack.enter_context(atomic_file(table))
        source: dict[str, Any] = {"data": data, "progress": stack.enter_context(watched())}
        scope = {"decode": decode, "pool": together is not None}
        scores = score_run(opened, how, **scope, **source)
        other: RunScores | None = None
        if control_run:  # a run without a fingerprint is scored as it was trained
            predicts = control_run.description.reports_fingerprint
            same = how if predicts else replace(how, similarity=None)
            other = score_run(control_run, same, **scope, **source)
        if bits_over or table:
            scores = scores.with_bits(opened, prior_run, how, **source)
        bits = (scores.pooled or scores).bits
        if table and bits:
            partial.write_text(bits.to_tsv(opened.open_data(data)), encoding="utf-8")
    distance = None
    if mces:
        distances, *_ = mces_of_best(opened, how, molecules=mces, data=data)
        distance = bootstrap(distances, bounds=None)
    if leaderboard is not None:
        with watched() as progress:
            tables = write_leaderboard(opened, leaderboard, mces=mces, data=data, progress=progress)
        say(
            f"Leaderboard: {', '.join(map(plain, tables))} [dim](test fold, hits by inchikey, 95 % "
            "intervals over spectra as the leaderboard's own)[/dim]"
        )
    if as_json:
        record = scores.to_dict(other)
        if distance:
            has_interval = distance.low < distance.high
            record["mces@1"] = distance.mean
            record["intervals"]["mces@1"] = [distance.low, distance.high] if has_interval else None
        print_json(record | ({"control": other.to_dict()} if other else {}))
        return
    for warning in opened.metadata["warnings"]:
        say(f"[yellow]warning:[/yellow] {plain(warning)}")
    folders = list(dict.fromkeys(path for path in (run, control, prior) if path))
    label = dict(zip(folders, distinct_labels(folders, taken=(_GAIN, _RANDOM)), strict=True))
    heads = [label[path] for path in (run, control) if path]
    prior_label = label[prior] if prior else _UNIFORM
    _show_scores(scores, other, heads, prior_label, "spectra")
    if scores.pooled:
        _show_scores(scores.pooled, other and other.pooled, heads, prior_label, "molecules")
    if distance:
        interval = f"({distance.low:.2f}…{distance.high:.2f})"
        if distance.low == distance.high:  # a distance has no upper limit to reckon with
            interval = "(all equal, which gives no interval)"
        say(
            f"MCES@1: {distance.mean:.2f} {interval}, {distance.values:,} molecules, "
            "distances above 15 as lower bounds"
        )
    if table:
        say(f"Table: {plain(table)}")


def _show_scores(
    scores: "RunScores", other: "RunScores | None", heads: list[str], prior: str, unit: str
) -> None:
    """Print all that was computed; ``heads`` are the labels of the run and of the control."""
    columns = [(heads[0], scores.values.intervals(), "")]
    if other:
        gains = scores.values.gain_over(other.values)
        columns += [(heads[1], other.values.intervals(), ""), (_GAIN, gains, "+")]
    spectra = scores.values.spectra
    if spectra is None:
        _show_single(scores.values, columns)
    else:
        say("\n[bold]All spectra of a molecule together[/bold]")
        say(
            f"{len(spectra):,} lists of molecules, {spectra.sum():,} spectra, "
            f"{spectra.mean():.1f} a molecule on average"
        )
        _show_metrics(scores.values, columns)
        if scores.posteriors:
            _show_pooling(scores.posteriors.calibrated)
    if scores.posteriors:
        report = other.posteriors if other else None
        show_posteriors(scores.posteriors, heads[-1], report, unit)
    if scores.channels:
        _show_channels(scores.channels)
    if scores.bits:
        _show_bits(scores.bits, heads[0], prior, unit)


def _show_single(evaluation: Any, columns: Sequence[tuple[str, Mapping[str, Any], str]]) -> None:
    how = evaluation.how
    count = len(evaluation.values["hit_rate@1"])
    groups = evaluation.intervals()["hit_rate@1"].groups
    say(
        f"{count:,} {how.fold} spectra of {groups:,} molecules, {plain(how.candidates)} "
        f"candidates, identity by {how.identity}, ties {how.ties}"
    )
    if evaluation.without_list:
        say(
            f"[yellow]{evaluation.without_list:,} spectra have no {plain(how.candidates)} list "
            "with their molecule in it: left out of the hit rates[/yellow]"
        )
    if not evaluation.own_checkpoints:
        say(
            f"[yellow]this run has kept no weights for rankings by {plain(how.similarity)}: these "
            "hit rates are from those that were best by the model's own score. Train it anew to "
            "keep them[/yellow]"
        )
    _show_metrics(evaluation, columns)
    say("[dim]In brackets: 95 % intervals over molecules.[/dim]")
    if evaluation.no_fingerprint:
        reason = plain(evaluation.no_fingerprint)
        say(f"[dim]No Tanimoto of a predicted fingerprint: {reason}.[/dim]")


def _show_metrics(scores: Any, columns: Sequence[tuple[str, Mapping[str, Any], str]]) -> None:
    """Print a row for each metric; columns are (head, intervals, sign), and chance comes last."""
    from mzseek.metrics import METRICS

    table = new_table()
    table.add_column("%", no_wrap=True)
    for head, _, _ in columns:
        table.add_column(plain(head), justify="right", overflow="fold")
    table.add_column(_RANDOM, justify="right")
    for metric in scores.values:
        cells = [
            _interval(intervals[metric], sign, 1, 100) if metric in intervals else "–"
            for _, intervals, sign in columns
        ]
        by_chance = scores.random_order.get(metric)
        cells.append("–" if by_chance is None else f"{100 * by_chance:.1f}")
        table.add_row(METRICS[metric].label, *cells)
    show(table)


def _interval(value: Any, sign: str = "", digits: int = 2, scale: float = 1) -> str:
    mean, low, high = (
        f"{scale * bound:{sign}.{digits}f}" for bound in (value.mean, value.low, value.high)
    )
    return f"{mean} [dim]({low}…{high})[/dim]"


def show_posteriors(
    posteriors: "PosteriorReport",
    control: str = "",
    other: "PosteriorReport | None" = None,
    unit: str = "spectra",
) -> None:
    """Print decoded values beside those of a control, calibration, prediction sets and abstention.

    ``other`` is the control's report and ``control`` its label; ``unit`` is what is counted:
    spectra, or molecules where their spectra were pooled.
    """
    from mzseek.decision import FULL_BIN, UTILITIES
    from mzseek.decision.utilities import SIMILARITY_GOALS

    say("\n[bold]Decoded: one model, a decision for each metric[/bold]")
    labels = [judged.label for judged in UTILITIES.values()]
    table = new_table("%, decided for", "where", *labels, left=2)
    for utility, regions in posteriors.decoded.to_dict().items():
        for within, values in regions.items():
            texts = {judged: f"{100 * values[judged]:.1f}" for judged in UTILITIES}
            texts[utility] = f"[bold]{texts[utility]}[/bold]"
            table.add_row(UTILITIES[utility].label, _WITHIN[within], *texts.values())
    show(table)
    for utility in SIMILARITY_GOALS:
        decoded, uniform = posteriors.decoded.interval(utility, utility), posteriors.uniform
        gain = posteriors.decoded.gain_over(uniform, utility, utility)
        line = (
            f"Decoded {UTILITIES[utility].label}: {100 * decoded.mean:.1f}; without the spectrum "
            f"(uniform posterior) {100 * uniform.interval(utility, utility).mean:.1f}, "
            f"gain {_interval(gain, '+', 1, 100)}"
        )
        if other is not None:
            blind = other.decoded.interval(utility, utility)
            gain = posteriors.decoded.gain_over(other.decoded, utility, utility)
            line += f"; {plain(control)} {100 * blind.mean:.1f}, "
            line += f"gain {_interval(gain, '+', 1, 100)}"
        say(line)
    errors, worst = posteriors.errors, posteriors.worst_bin
    if posteriors.calibrated.evaluated.how.fold == "val":
        say("[yellow]Fitted on this very fold, and the better for it:[/yellow]")
    say(
        f"\nProbabilities: expected calibration error {100 * errors['before']:.1f} points before "
        f"calibration on val, {100 * errors['after']:.1f} after"
    )
    if worst is None:
        say(f"[dim]No bin of confidence has {FULL_BIN} {unit}, to judge it by itself.[/dim]")
    else:
        say(
            f"No bin of {FULL_BIN} or more {unit} is off by more than {100 * worst['off']:.1f} "
            f"points [dim](the worst: {100 * worst['confidence']:.1f} % sure, "
            f"{100 * worst['accuracy']:.1f} % right, {worst['lists']:,} {unit})[/dim]"
        )
    _show_sets(posteriors.sets)
    for stop in posteriors.abstentions:
        limit = f"At most {100 * stop.wanted:.0f} % wrong answers: "
        threshold = f"{100 * stop.threshold:.0f}" if math.isfinite(stop.threshold) else ""
        if not threshold:
            say(f"{limit}cannot be promised at any confidence")
        elif stop.answered == 0:
            say(f"{limit}answer from {threshold} % confidence, which none has")
        else:
            short = ", [yellow]which is more[/yellow]" if stop.falls_short else ""
            say(
                f"{limit}answer from {threshold} % confidence, which is "
                f"{100 * stop.answered:.1f} % of the {unit}; {100 * stop.wrong:.1f} % "
                f"[dim]({100 * stop.low:.1f}…{100 * stop.high:.1f})[/dim] of them are wrong{short}"
            )


def _show_sets(sets: Any) -> None:
    """Print what prediction sets cover, and what they promise."""
    from mzseek.decision import molecules_needed

    if not sets:
        return
    on = pluralize(sets[0].fitted_on, "val molecule", "val molecules")
    say(
        f"\nPrediction sets, fitted on {on}. [dim]The promise is an average over fits, for "
        "molecules exchangeable with those; structures split apart from them are not.[/dim]"
    )
    for fitted in sets:
        line = (
            f"Sets that are to contain the truth in {100 * fitted.stated:.0f} %: they do in "
            f"{100 * fitted.covered.mean:.1f} % [dim]({100 * fitted.covered.low:.1f}…"
            f"{100 * fitted.covered.high:.1f})[/dim]"
        )
        if fitted.falls_short:
            line += ", [yellow]which falls short of it[/yellow]"
        if fitted.everything:
            need = molecules_needed(fitted.stated)
            line += (
                f"; [yellow]so much needs {need} molecules, and so all candidates are in[/yellow]"
            )
        else:
            low, high = fitted.by_chance
            line += f"; by chance of the fit alone, {100 * low:.0f} to {100 * high:.0f}"
        say(
            f"{line}; the median set has {fitted.median_size:.0f}, sets have "
            f"{fitted.mean_size:.0f} and lists {fitted.mean_list:.0f} candidates on average"
        )


def _show_bits(bits: Any, name: str, prior: str, unit: str) -> None:
    """Print the information gain in bits of a run, alone or over a prior."""
    intervals = bits.intervals()
    where = "cross-fitted over molecules" if bits.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits[/bold]: a list holds {intervals['to_be_had'].mean:.2f} on average over "
        f"{unit} [dim]({where})[/dim]"
    )
    if bits.over is None:
        say(f"{plain(name)} tells {_interval(intervals['run'])} of them")
        return
    run, other = bits.weights
    say(
        f"{plain(prior)} tells {_interval(intervals['prior'])}; {plain(name)} in its place "
        f"{_interval(intervals['run'], '+')} more"
    )
    say(
        f"{plain(name)} added to {plain(prior)}: {_interval(intervals['given_prior'], '+')} "
        f"[dim](weights {run:.2f} and {other:.2f})[/dim]"
    )


def _show_channels(channels: Any) -> None:
    """Print the information gain of each channel of a fitted run, alone and beside the others."""
    where = "fitted on this very fold" if channels.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits of channels[/bold]: together {_interval(channels.mean(channels.all_of_it))} "
        f"[dim]({where})[/dim]"
    )
    for name, alone in channels.alone.items():
        added = _interval(channels.mean(channels.added[name]), "+")
        say(f"{plain(name)}: {_interval(channels.mean(alone))} alone, {added} to the others")


def _show_pooling(calibrated: Any) -> None:
    """Print how spectra were pooled, and how that fits molecules of one spectrum and of many."""
    from mzseek.evaluation.posteriors import by_spectrum_count

    b = calibrated.pooling.dependence
    say(
        f"\nn spectra of a molecule weigh n^{1 - b:.2f} times as much as one: a dependence of "
        f"{b:.2f}, fitted on val [dim](0: each is news; 1: copies of one)[/dim]"
    )
    table = new_table("spectra", "molecules", "sure, %", "right, %", left=0)
    for row in by_spectrum_count(calibrated):
        spectra = str(row.least) if row.most == row.least else f"{row.least}–{row.most or ''}"
        sure, right = 100 * row.confidence, 100 * row.accuracy
        table.add_row(spectra, f"{row.lists:,}", f"{sure:.1f}", f"{right:.1f}")
    show(table)
