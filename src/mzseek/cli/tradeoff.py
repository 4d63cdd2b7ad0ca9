"""The trade-off of several runs on a terminal."""

from typing import Any

from mzseek.cli.output import new_table, plain, say, show


def show_tradeoff(shown: list[Any]) -> None:
    """One row for each run, the controls last and in grey, and chance."""
    from mzseek.report.shown import missing_fingerprints
    from mzseek.report.tradeoff import LABELS, tradeoff_rows

    how, rows = shown[0].evaluation.how, tradeoff_rows(shown)
    metrics = [metric for metric in LABELS if metric in rows[0].values]
    table = new_table()
    table.add_column(f"%, {how.fold} fold, {plain(how.candidates)} candidates")
    for metric in metrics:
        table.add_column(LABELS[metric], justify="right")
    for row in rows:
        cells = [row.values[metric] for metric in metrics]
        texts = ["–" if value is None else f"{100 * value:.1f}" for value in cells]
        table.add_row(plain(row.name), *texts, style="dim" if row.control else None)
    show(table)
    decoded = (
        "Decoded: each model's probabilities for the candidates, and the fingerprint of highest "
        "expected Tanimoto. "
    )
    said = decoded if any(each.beliefs is not None for each in shown) else ""
    say(f"[dim]{said}Grey rows have not seen the spectrum.[/dim]")
    for reason in missing_fingerprints(shown):
        say(f"[dim]No Tanimoto of a predicted fingerprint: {plain(reason)}.[/dim]")
