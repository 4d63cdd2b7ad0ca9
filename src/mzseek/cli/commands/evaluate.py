"""``mzseek evaluate``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.choices import FOLDS, IDENTITIES, TIES
from mzseek.cli.beliefs import show_beliefs
from mzseek.cli.early import early, look_for_run
from mzseek.cli.options import AsJson, Fold, Identity, Similarity, TieRule
from mzseek.cli.output import new_table, plain, print_json, say, show, watched
from mzseek.errors import RunError
from mzseek.names import tell_apart

_GAIN, _CHANCE = "gain over it", "random"


@early(run=look_for_run, control=look_for_run)
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
    if control is not None and control.samefile(run):
        raise RunError(f"--control {control}: is the run itself; name another to compare with")
    from mzseek.evaluation.beliefs import beliefs_of
    from mzseek.evaluation.evaluate import evaluate as score
    from mzseek.evaluation.evaluate import mces_of_best
    from mzseek.evaluation.scored import Scoring, predicts_fingerprint
    from mzseek.metrics import bootstrap
    from mzseek.runs.run import Run

    opened = Run.open(run)
    other = Run.open(control) if control else None
    setting = candidates or opened.measured_on(data)
    how = Scoring(fold, setting, similarity, ties, identity)  # type: ignore[arg-type]
    with watched() as progress:
        evaluation = score(opened, how, data=data, progress=progress)
        against = None
        if other:
            # A control without a fingerprint is scored as it was trained.
            fair = how if predicts_fingerprint(other) else replace(how, similarity=None)
            against = score(other, fair, data=data, progress=progress)
        beliefs = None
        if decode and not len(opened.open_data(data).in_fold("val")):
            decode = False
            say("[yellow]no val spectra to calibrate on: nothing is decoded[/yellow]")
        if decode:
            beliefs = beliefs_of(opened, how, data=data, progress=progress)
        other_beliefs = None
        if decode and other:
            other_beliefs = beliefs_of(other, fair, data=data, progress=progress)
    distance = None
    if mces:
        distances = mces_of_best(opened, how, molecules=mces, data=data)[0]
        distance = bootstrap(distances, bounds=None)
    if leaderboard is not None:
        _write_leaderboard(opened, leaderboard, mces, data)
    gains = evaluation.gain_over(against) if against else {}
    if as_json:
        facts = _facts(evaluation, beliefs, distance)
        if against:
            facts["control"] = _facts(against, other_beliefs, None)
            facts["gain"] = {name: [g.mean, g.low, g.high] for name, g in gains.items()}
        print_json(facts)
        return
    for warning in opened.facts["warnings"]:
        say(f"[yellow]warning:[/yellow] {plain(warning)}")
    own, *others = tell_apart([run, *([control] if control else [])], taken=(_GAIN, _CHANCE))
    _show(own, evaluation, others, against, gains)
    if beliefs:
        show_beliefs(beliefs, others, other_beliefs)
    if distance:
        _say_distance(distance)


def _write_leaderboard(run: Any, path: Path, mces: int, data: Path | None) -> None:
    from mzseek.evaluation.leaderboard import write_leaderboard

    with watched() as progress:
        tables = write_leaderboard(run, path, mces=mces, data=data, progress=progress)
    say(
        f"Leaderboard: {', '.join(plain(table) for table in tables)} [dim](test fold, hits by "
        "inchikey, 95 % intervals over spectra as the leaderboard's own)[/dim]"
    )


def _facts(found: Any, beliefs: Any, distance: Any) -> dict[str, Any]:
    facts: dict[str, Any] = found.to_dict()
    if distance:
        has_interval = distance.low < distance.high
        facts["mces@1"] = distance.mean
        facts["intervals"]["mces@1"] = [distance.low, distance.high] if has_interval else None
    return facts | (beliefs.to_dict() if beliefs else {})


def _show(
    name: str, evaluation: Any, others: list[str], against: Any, gains: dict[str, Any]
) -> None:
    from mzseek.metrics import METRICS

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
    table = new_table()
    table.add_column("%", no_wrap=True)
    columns = [(name, evaluation.intervals(), False)]
    if against:
        columns += [(others[0], against.intervals(), False), (_GAIN, gains, True)]
    for head, _, _ in columns:
        table.add_column(plain(head), justify="right", overflow="fold")
    table.add_column(_CHANCE, justify="right")
    for metric in evaluation.values:
        cells = [_cell(values.get(metric), signed) for _, values, signed in columns]
        table.add_row(METRICS[metric].label, *cells, _percent(evaluation.chance.get(metric)))
    show(table)
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


def _cell(interval: Any, signed: bool = False) -> str:
    if interval is None:
        return "–"
    sign = "+" if signed else ""
    return (
        f"{100 * interval.mean:{sign}.1f} "
        f"[dim]({100 * interval.low:{sign}.1f}…{100 * interval.high:{sign}.1f})[/dim]"
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
