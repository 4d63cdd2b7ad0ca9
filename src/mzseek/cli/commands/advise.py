"""``mzseek advise``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mzseek.chem.fingerprinting import PAPER_FINGERPRINTS
from mzseek.cli.commands.bands import expanded
from mzseek.cli.options import IS_RUN, AsJson, Jobs, Lists, PreparedFolder, refuse_fingerprint
from mzseek.cli.output import new_table, plain, print_json, say, say_next, show, watched
from mzseek.core.errors import DecisionError
from mzseek.core.registry import check_name
from mzseek.decision.utilities import GOALS, SIMILARITY_GOALS, UTILITIES

if TYPE_CHECKING:
    from mzseek.datasets.prepared import Prepared

# Mean probability of the first candidate on MassBank's test fold: 0.15 (bce) to 0.21 (emb-cos).
_USUAL = 0.2
_COMMAND = 10_000  # characters of a command that are shown: it must work as it stands


def advise(
    data: PreparedFolder,
    goal: Annotated[
        str, typer.Option(help=f"What counts in the end: {' '.join(GOALS)}; hit is HR@1.")
    ] = "hit",
    candidates: Lists = "mass",
    fingerprint: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare these, by default the paper's six, the data's for bits. Several times."
        ),
    ] = None,
    p_star: Annotated[
        float | None,
        typer.Option(
            help="How probable the best candidate usually is; 0.2 (as on MassBank) by default."
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Take that from this run's posterior on validation."), IS_RUN
    ] = None,
    lists: Annotated[
        int, typer.Option(min=1, help="So many lists of the val fold at the most, evenly spaced.")
    ] = 100,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Which fingerprint and which loss to train with, for these candidates and your goal.

    Reads the candidates alone, and says what the theory bounds from how alike they are.

    Example: mzseek advise prepared --goal tanimoto
    """
    check_name(GOALS, goal, "--goal", DecisionError)
    if p_star is not None and not 0 < p_star <= 1:
        raise DecisionError(f"--p-star is {p_star:g}, expected above 0 and at most 1")
    requested = expanded(fingerprint or [])
    for kind in requested:
        refuse_fingerprint(kind)
    from mzseek.datasets.bands import set_bands
    from mzseek.datasets.prepared import Prepared
    from mzseek.decision.advice import advise as ask
    from mzseek.decision.advice import compares

    prepared = Prepared.open(data, verify=True)
    source = "given"
    if run is not None:
        p_star, source = _from_run(run, candidates, data), f"measured on {run}, val"
    elif p_star is None:
        p_star, source = _USUAL, "assumed"
    similarity = goal if goal in SIMILARITY_GOALS else SIMILARITY_GOALS[0]
    data_kind = str(prepared.manifest["options"]["fingerprint"])
    # Where fingerprints are not compared, the data's own is kept, and its largest loss is reported.
    kinds = (requested or PAPER_FINGERPRINTS) if compares(goal) else (data_kind, *requested)
    fold = "val" if len(prepared.in_fold("val")) else None
    medians = {}
    with watched() as progress:
        for kind in dict.fromkeys(kinds):
            bands = set_bands(
                prepared,
                candidates,
                fold=fold,
                fingerprint=kind,
                similarity=similarity,
                max_lists=lists,
                jobs=jobs,
                progress=progress,
            )
            medians[kind] = bands.medians()
    advice = ask(goal, medians, p_star, data_kind, similarity)
    if as_json:
        record = vars(advice) | {"rows": [vars(row) for row in advice.rows]}
        print_json(record | {"p_star": p_star, "p_star_is": source, "lists": lists})
        return
    say(f"[bold]Fingerprint {advice.fingerprint}, loss {advice.loss}[/bold]")
    for reason in advice.reasons:
        say(f"· {reason}")
    label = UTILITIES[similarity].label
    lost_columns = f"most lost in {label}", "most lost in HR@1"
    table = new_table("fingerprint", "σ min", "σ max", *lost_columns)
    for row in advice.rows:
        lost = f"{100 * row.similarity_loss:.1f}", f"{100 * row.hit_loss:.1f}"
        table.add_row(row.fingerprint, f"{row.low:.3f}", f"{row.high:.3f}", *lost)
    show(table)
    words = ["mzseek", "bands", str(data), "--candidates", candidates, "--against", "pairs"]
    words += [] if similarity == "tanimoto" else ["--similarity", similarity]
    pairs = shlex.join(words)
    say(
        f"[dim]{label} of the truth with its candidates, medians of up to {lists} "
        f"{plain(candidates)} lists; points lost by the wrong decision where the best "
        f"candidate has probability {p_star:.2f} ({plain(source)}). The theorems need the band "
        f"of all pairs: for a guarantee see `{plain(pairs, _COMMAND)}`.[/dim]"
    )
    _show_commands(data, prepared, advice.fingerprint, advice.loss, candidates)


def _show_commands(
    data: Path, prepared: "Prepared", fingerprint: str, loss: str, candidates: str
) -> None:
    """Print the commands that follow the advice: another fingerprint is another preparation."""
    options = prepared.manifest["options"]
    if fingerprint != options["fingerprint"]:
        source = prepared.manifest["sources"]["spectra"]["file"]
        floor = options["intensity_floor"]
        others = ("--intensity-floor", floor) if floor else ()
        suggested = data.with_name(f"{data.name}-{fingerprint}") if data.name else Path(fingerprint)
        say(
            f"A fingerprint is chosen when data are prepared, here from DATASET, where "
            f"{plain(source)} is:"
        )
        how = ("--fingerprint", fingerprint, *others)
        say_next("mzseek", "prepare", "DATASET", *how, "--out", suggested)
        # Negatives are mined for one preparation; the lists of the data set come along.
        data, candidates = suggested, prepared.measured_on(candidates)
    how = ("--loss", loss, "--candidates", candidates)
    say_next("mzseek", "train", data, *how, "--out", f"runs/{loss}")


def _from_run(folder: Path, candidates: str, data: Path) -> float:
    """Return the mean probability of the best candidate, on validation."""
    from mzseek.decision import first_places
    from mzseek.evaluation.posteriors import calibrate
    from mzseek.evaluation.scored import Scoring
    from mzseek.runs.run import Run

    with watched() as progress:
        calibrated = calibrate(
            Run.open(folder), Scoring("val", candidates), data=data, progress=progress
        ).val
    return float(first_places(*calibrated.merged())[0].mean())
