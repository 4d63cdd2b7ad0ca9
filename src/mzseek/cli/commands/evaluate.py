"""``mzseek evaluate``."""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from mzseek.choices import FOLDS, IDENTITIES, TIES, TOGETHER
from mzseek.cli.early import early, look_for_prior, look_for_run
from mzseek.cli.findings.beliefs import show_beliefs
from mzseek.cli.findings.bits import show_bits, show_channels
from mzseek.cli.findings.found import Asked, Found, find, with_bits
from mzseek.cli.findings.scores import CHANCE, Column, show_scores
from mzseek.cli.findings.together import show_numbers, show_together
from mzseek.cli.options import AsJson, Fold, Identity, Similarity, TieRule, either
from mzseek.cli.output import plain, print_json, say, watched
from mzseek.errors import RunError
from mzseek.names import tell_apart
from mzseek.registry import check_name

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
    from mzseek.files import atomic_file, sole_writer
    from mzseek.runs.run import Run

    opened = Run.open(run)
    others = [Run.open(each) if each else None for each in (control, prior)]
    setting = candidates or opened.measured_on(data)
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
    label = dict(zip(folders, tell_apart(folders, taken=(_GAIN, CHANCE)), strict=True))
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
