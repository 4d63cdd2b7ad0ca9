"""``mzseek evaluate``: metrics, posteriors and information gain of runs."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.cli.early import early, look_for_prior, look_for_run
from mzseek.cli.options import AsJson, Fold, Identity, Similarity, TieRule, either
from mzseek.cli.output import counted, new_table, plain, print_json, say, show, watched
from mzseek.core.errors import RunError
from mzseek.core.registry import FOLDS, IDENTITIES, TIES, TOGETHER, check_name
from mzseek.core.text import distinct_labels


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
    beliefs : PosteriorReport or None
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
            from mzseek.evaluation.pooled import by_number

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
    from mzseek.evaluation.evaluate import evaluate
    from mzseek.evaluation.pooled import calibrate_together, evaluate_together
    from mzseek.evaluation.posterior_report import beliefs_in, beliefs_of

    how, told = asked.how, {"data": asked.data, "progress": progress}
    alone = Part(evaluate(run, how, **told), beliefs_of(run, how, **told) if asked.decode else None)
    if asked.decode and run.made.fitted is not None:
        from mzseek.evaluation.information_gain import contributions_of

        alone = replace(alone, channels=contributions_of(run, how, **told))
    if not asked.together:
        return Found(alone)
    beliefs = None
    if asked.decode:
        beliefs = beliefs_in(calibrate_together(run, how, **told), run, **told)
    return Found(alone, Part(evaluate_together(run, how, **told), beliefs))


def with_bits(found: Found, run: Any, prior: Any, asked: Asked, progress: Any) -> Found:
    """The same with the bits that the run tells over a prior; None is a uniform one."""
    from mzseek.evaluation.information_gain import bits_of

    told = {"data": asked.data, "progress": progress}
    alone = replace(found.alone, bits=bits_of(run, prior, asked.how, **told))
    if found.together is None:
        return Found(alone)
    bits = bits_of(run, prior, asked.how, together=True, **told)
    return Found(alone, replace(found.together, bits=bits))


@dataclass(frozen=True)
class Column:
    """A run, or the gain of one over another.

    Attributes
    ----------
    head : str
    intervals : mapping of str to Interval
        By metric; a dash stands where one has none.
    signed : bool
        Whether values have their sign, as differences do.
    """

    head: str
    intervals: Mapping[str, Any]
    signed: bool = False


CHANCE = "random"


def show_scores(
    metrics: Sequence[str], columns: Sequence[Column], chance: Mapping[str, float]
) -> None:
    """A row for each metric: the columns, and what an order at random reaches."""
    from mzseek.metrics import METRICS

    table = new_table()
    table.add_column("%", no_wrap=True)
    for column in columns:
        table.add_column(plain(column.head), justify="right", overflow="fold")
    table.add_column(CHANCE, justify="right")
    for metric in metrics:
        cells = [_cell(column.intervals.get(metric), column.signed) for column in columns]
        table.add_row(METRICS[metric].label, *cells, _percent(chance.get(metric)))
    show(table)


def _cell(interval: Any, signed: bool) -> str:
    if interval is None:
        return "–"
    sign = "+" if signed else ""
    return (
        f"{100 * interval.mean:{sign}.1f} "
        f"[dim]({100 * interval.low:{sign}.1f}…{100 * interval.high:{sign}.1f})[/dim]"
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


_WHERE = {"candidates": "among candidates", "all": "any fingerprint"}


def show_beliefs(
    beliefs: Any, others: Sequence[str] = (), other: Any = None, unit: str = "spectra"
) -> None:
    """Decoded values beside the controls', calibration, prediction sets and abstention.

    ``other`` is what a control's posterior is worth, and ``others`` has its label; ``unit`` is what
    is judged: spectra, or molecules where their spectra were scored together.
    """
    from mzseek.decision import UTILITIES
    from mzseek.decision.advice import SIMILARITY_GOALS

    say("\n[bold]Decoded: one model, a decision for each metric[/bold]")
    table = new_table()
    table.add_column("%, decided for")
    table.add_column("where")
    for judged in UTILITIES.values():
        table.add_column(judged.label, justify="right")
    for utility, places in beliefs.decoded.to_dict().items():
        for where, values in places.items():
            cells = [_best(values[judged], judged == utility) for judged in UTILITIES]
            table.add_row(UTILITIES[utility].label, _WHERE[where], *cells)
    show(table)
    for utility in SIMILARITY_GOALS:
        _say_gain(beliefs, utility, others, other)
    errors = beliefs.errors
    if beliefs.calibrated.asked.how.fold == "val":
        say("[yellow]Fitted on this very fold, and the better for it:[/yellow]")
    say(
        f"\nProbabilities: expected calibration error {100 * errors['before']:.1f} points before "
        f"calibration on val, {100 * errors['after']:.1f} after"
    )
    _say_worst_bin(beliefs.worst_bin, unit)
    _say_sets(beliefs.sets)
    for stop in beliefs.abstentions:
        _say_abstention(stop, unit)


def _say_worst_bin(worst: dict[str, float] | None, unit: str) -> None:
    """How far off the probabilities are where that can be judged."""
    from mzseek.decision import FULL_BIN

    if worst is None:
        say(f"[dim]No bin of confidence has {FULL_BIN} {unit}, to judge it by itself.[/dim]")
        return
    say(
        f"No bin of {FULL_BIN} or more {unit} is off by more than {100 * worst['off']:.1f} points "
        f"[dim](the worst: {100 * worst['confidence']:.1f} % sure, {100 * worst['accuracy']:.1f} % "
        f"right, {worst['lists']:,} {unit})[/dim]"
    )


def _say_sets(sets: Any) -> None:
    """What prediction sets cover, beside what they promise and what the promise rests on."""
    from mzseek.decision import molecules_needed

    if not sets:
        return
    on = counted(sets[0].fitted_on, "val molecule", "val molecules")
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


def _say_abstention(stop: Any, unit: str) -> None:
    wanted = f"At most {100 * stop.wanted:.0f} % wrong answers: "
    if not math.isfinite(stop.threshold):
        say(f"{wanted}cannot be promised at any confidence")
    elif stop.answered == 0:
        say(f"{wanted}answer from {100 * stop.threshold:.0f} % confidence, which none has")
    else:
        short = ", [yellow]which is more[/yellow]" if stop.falls_short else ""
        say(
            f"{wanted}answer from {100 * stop.threshold:.0f} % confidence, which is "
            f"{100 * stop.answered:.1f} % of the {unit}; {100 * stop.wrong:.1f} % "
            f"[dim]({100 * stop.low:.1f}…{100 * stop.high:.1f})[/dim] of them are wrong{short}"
        )


def _best(value: float, own: bool) -> str:
    return f"[bold]{100 * value:.1f}[/bold]" if own else f"{100 * value:.1f}"


def _say_gain(beliefs: Any, utility: str, others: Sequence[str], other: Any) -> None:
    from mzseek.decision import UTILITIES

    own = beliefs.decoded.interval(utility, utility)
    even = beliefs.uniform.interval(utility, utility)
    gain = beliefs.decoded.gain_over(beliefs.uniform, utility, utility)
    line = (
        f"Decoded {UTILITIES[utility].label}: {100 * own.mean:.1f}; without the spectrum (uniform "
        f"posterior) {100 * even.mean:.1f}, {_signed(gain)}"
    )
    if other is not None:
        blind = other.decoded.interval(utility, utility)
        over = beliefs.decoded.gain_over(other.decoded, utility, utility)
        line += f"; {plain(others[0])} {100 * blind.mean:.1f}, {_signed(over)}"
    say(line)


def _signed(gain: Any) -> str:
    low, high = 100 * gain.low, 100 * gain.high
    return f"gain {100 * gain.mean:+.1f} [dim]({low:+.1f}…{high:+.1f})[/dim]"


def show_bits(bits: Any, name: str, prior: str, unit: str) -> None:
    """How many bits there are, and who tells how many of them."""
    found = bits.intervals()
    where = "cross-fitted over molecules" if bits.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits[/bold]: a list holds {found['to_be_had'].mean:.2f} on average over "
        f"{unit} [dim]({where})[/dim]"
    )
    if bits.over is None:
        say(f"{plain(name)} tells {_bits(found['run'])} of them")
        return
    run, other = bits.weights
    say(
        f"{plain(prior)} tells {_bits(found['prior'])}; {plain(name)} in its place "
        f"{_bits(found['run'], '+')} more"
    )
    say(
        f"{plain(name)} added to {plain(prior)}: {_bits(found['given_prior'], '+')} "
        f"[dim](weights {run:.2f} and {other:.2f})[/dim]"
    )


def show_channels(found: Any) -> None:
    """How many bits each channel of a fitted run tells, alone and beside the others."""
    where = "fitted on this very fold" if found.how.fold == "val" else "calibrated on val"
    say(
        f"\n[bold]Bits of channels[/bold]: together {_bits(found.mean(found.all_of_it))} "
        f"[dim]({where})[/dim]"
    )
    for name, alone in found.alone.items():
        added = found.mean(found.added[name])
        say(f"{plain(name)}: {_bits(found.mean(alone))} alone, {_bits(added, '+')} to the others")


def _bits(interval: Any, sign: str = "") -> str:
    return (
        f"{interval.mean:{sign}.2f} [dim]({interval.low:{sign}.2f}…{interval.high:{sign}.2f})[/dim]"
    )


def show_together(
    together: Any, heads: Sequence[str], against: Any, gains: Mapping[str, Any]
) -> None:
    """Hit rates over molecules; ``heads`` are the labels of the run, the control and the gain."""
    say("\n[bold]All spectra of a molecule together[/bold]")
    say(
        f"{len(together.molecule):,} lists of molecules, {together.spectra.sum():,} spectra, "
        f"{together.spectra.mean():.1f} a molecule on average"
    )
    columns = [Column(heads[0], together.intervals())]
    if against is not None:
        columns += [Column(heads[1], against.intervals()), Column(heads[2], gains, signed=True)]
    show_scores(list(together.values), columns, together.chance)


def show_numbers(found: Any) -> None:
    """How spectra were added up, and whether that fits one spectrum and many."""
    from mzseek.evaluation.pooled import by_number

    b = found.pooling.dependence
    say(
        f"\nn spectra of a molecule say n^{1 - b:.2f} times what one says: a dependence of "
        f"{b:.2f}, fitted on val [dim](0: each is news; 1: copies of one)[/dim]"
    )
    table = new_table()
    for head in ("spectra", "molecules", "sure, %", "right, %"):
        table.add_column(head, justify="right")
    for row in by_number(found):
        few = str(row.least) if row.most == row.least else f"{row.least}–{row.most or ''}"
        sure, right = 100 * row.confidence, 100 * row.accuracy
        table.add_row(few, f"{row.lists:,}", f"{sure:.1f}", f"{right:.1f}")
    show(table)


_GAIN, _UNIFORM = "gain over it", "uniform"


@early(run=look_for_run, control=look_for_run, bits_over=look_for_prior)
def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder that `mzseek train` has made.")],
    fold: Fold = FOLDS[-1],
    candidates: Annotated[
        str | None, typer.Option(help="Candidate lists; those it was trained with by default.")
    ] = None,
    similarity: Similarity = None,
    ties: TieRule = TIES[0],
    identity: Identity = IDENTITIES[0],
    control: Annotated[
        Path | None, typer.Option(help="Another run, to state the gain over it.")
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
            help=f"Also score all spectra of one {either(TOGETHER)} together, over molecules."
        ),
    ] = None,
    bits_over: Annotated[
        str | None,
        typer.Option(
            help="Also say how many bits the run tells about the truth over another run, such as "
            "one that never sees the spectrum, or over `uniform`: all candidates alike."
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Also write a table (TSV) with a line for each spectrum, or each molecule with "
            "--together: rank of the truth, its probability, bits."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The prepared folder, if it has been moved.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a run, from its saved predictions where there are any.

    Each metric comes from the checkpoint that was best by it on validation.
    Intervals are over molecules; the row "random" is what an order by chance reaches. Decisions
    decoded for a metric stand beside those of a posterior that has not seen the spectrum.

    Example: mzseek evaluate runs/emb-cos --candidates formula --control runs/blind
    """
    prior = None if bits_over in (None, _UNIFORM) else Path(str(bits_over))
    for name, other in (("--control", control), ("--bits-over", prior)):
        if other is not None and other.samefile(run):
            raise RunError(f"{name} {other}: is the run itself; name another to compare with")
    if together is not None:
        check_name(TOGETHER, together, "together", RunError)
    from mzseek.evaluation.scored import Scoring
    from mzseek.io import atomic_file, sole_writer
    from mzseek.io.manifest import overlap
    from mzseek.runs.run import Run

    if table and (reason := overlap(table, [run])):
        raise RunError(f"{table}: {reason}; name another --table")
    opened = Run.open(run)
    others = [Run.open(each) if each else None for each in (control, prior)]
    setting = candidates or opened.measured_on
    how = Scoring(fold, setting, similarity, ties, identity)  # type: ignore[arg-type]
    if decode and not len(opened.open_data(data).in_fold("val")):
        decode = False
        say("[yellow]no val spectra to calibrate on: nothing is decoded[/yellow]")
    asked = Asked(how, decode, together is not None, data)
    with contextlib.ExitStack() as held:
        if table:  # a place that cannot be written is told before the work
            held.enter_context(sole_writer(table, "writing a table"))
            partial = held.enter_context(atomic_file(table))
        progress = held.enter_context(watched())
        found = find(opened, asked, progress)
        against = find(others[0], asked.of(others[0]), progress) if others[0] else None
        if bits_over or table:
            found = with_bits(found, opened, others[1], asked, progress)
        if table:
            rows = (found.together or found.alone).bits
            partial.write_text(rows.to_tsv(opened.open_data(data)), encoding="utf-8")
    distance = _distance(opened, how, mces, data) if mces else None
    if leaderboard is not None:
        _write_leaderboard(opened, leaderboard, mces, data)
    if as_json:
        print_json(_facts(found, against, distance))
        return
    for warning in opened.facts["warnings"]:
        say(f"[yellow]warning:[/yellow] {plain(warning)}")
    folders = list(dict.fromkeys(each for each in (run, control, prior) if each))
    label = dict(zip(folders, distinct_labels(folders, taken=(_GAIN, CHANCE)), strict=True))
    _show(found, [label[each] for each in folders], against, label[prior] if prior else _UNIFORM)
    if distance:
        _say_distance(distance)
    if table:
        say(f"Table: {plain(table)}")


def _write_leaderboard(run: Any, path: Path, mces: int, data: Path | None) -> None:
    from mzseek.evaluation.leaderboard import write_leaderboard

    with watched() as progress:
        tables = write_leaderboard(run, path, mces=mces, data=data, progress=progress)
    say(
        f"Leaderboard: {', '.join(plain(table) for table in tables)} [dim](test fold, hits by "
        "inchikey, 95 % intervals over spectra as the leaderboard's own)[/dim]"
    )


def _distance(run: Any, how: Any, molecules: int, data: Path | None) -> Any:
    from mzseek.evaluation.evaluate import mces_of_best
    from mzseek.metrics import bootstrap

    return bootstrap(mces_of_best(run, how, molecules=molecules, data=data)[0], bounds=None)


def _facts(found: Found, against: Found | None, distance: Any) -> dict[str, Any]:
    facts = found.facts()
    if distance:
        has_interval = distance.low < distance.high
        facts["mces@1"] = distance.mean
        facts["intervals"]["mces@1"] = [distance.low, distance.high] if has_interval else None
    if against:
        facts["control"] = against.facts()
        gains, *of_molecules = (
            {name: [g.mean, g.low, g.high] for name, g in each.items()}
            for each in found.gains_over(against)
        )
        facts["gain"] = gains
        for each in of_molecules:
            facts["together"]["gain"] = each
    return facts


def _show(found: Found, named: list[str], against: Found | None, prior: str) -> None:
    """All that was found, as people read it; ``named`` are the labels of the run and others."""
    gains = found.gains_over(against) if against else [{}, {}]
    heads = [*named[:2], _GAIN] if against else named[:1]
    alone, together = found.alone, found.together
    columns = [Column(heads[0], alone.scores.intervals())]
    if against:
        columns.append(Column(heads[1], against.alone.scores.intervals()))
        columns.append(Column(heads[2], gains[0], signed=True))
    _show_scores(alone.scores, columns)
    if alone.beliefs:
        show_beliefs(alone.beliefs, heads[1:2], against and against.alone.beliefs)
    if alone.channels:
        show_channels(alone.channels)
    if alone.bits:
        show_bits(alone.bits, named[0], prior, "spectra")
    if together is None:
        return
    other = against.together if against else None
    show_together(together.scores, heads, other and other.scores, gains[1])
    if together.beliefs:
        show_numbers(together.beliefs.calibrated)
        show_beliefs(together.beliefs, heads[1:2], other and other.beliefs, "molecules")
    if together.bits:
        show_bits(together.bits, named[0], prior, "molecules")


def _show_scores(evaluation: Any, columns: list[Column]) -> None:
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
    show_scores(list(evaluation.values), columns, evaluation.chance)
    say("[dim]In brackets: 95 % intervals over molecules.[/dim]")
    if evaluation.no_fingerprint:
        reason = plain(evaluation.no_fingerprint)
        say(f"[dim]No Tanimoto of a predicted fingerprint: {reason}.[/dim]")


def _say_distance(distance: Any) -> None:
    interval = f"({distance.low:.2f}…{distance.high:.2f})"
    if distance.low == distance.high:  # a distance has no upper limit to reckon with
        interval = "(all equal, which gives no interval)"
    say(
        f"MCES@1: {distance.mean:.2f} {interval}, {distance.values:,} molecules, "
        "distances above 15 as lower bounds"
    )
