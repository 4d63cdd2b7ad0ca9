"""Answers as people see them in a terminal: one line a feature, or one feature with its reasons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mzseek.cli.output import counted, new_table, plain, say, show

if TYPE_CHECKING:
    from mzseek.annotation.answers import Answer, Candidate

_CANDIDATES = 5
_WIDE = 44


def show_answers(answers: "Sequence[Answer]") -> None:
    """A line for each feature."""
    if not answers:
        say("No feature was answered.")
        return
    table = new_table()
    for name in (
        "feature",
        "m/z",
        "ion",
        "formula",
        "best candidate",
        "confidence",
        "set",
        "level",
    ):
        right = name in ("m/z", "confidence", "set")
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    for answer in answers:
        best = answer.best
        table.add_row(
            plain(answer.feature.name, 30),
            f"{answer.feature.precursor_mz:.4f}",
            plain(best.adduct) if best else "",
            plain(best.formula) if best else "",
            plain(_named(best), _WIDE) if best else "no candidate of this mass",
            f"{answer.confidence:.0%}" if best else "",
            f"{answer.set_size:,}" if best else "",
            answer.level.number,
        )
    show(table)
    say("[dim]confidence: probability that the best candidate is the molecule, and in the database "
        "at all; set: candidates that hold it with the stated coverage[/dim]")  # fmt: skip


def show_answer(answer: "Answer") -> None:
    """One feature: its candidates, and why the first is the first."""
    feature = answer.feature
    spectra = counted(len(feature.spectra), "spectrum", "spectra")
    say(f"[bold]{plain(feature.name)}[/bold]  m/z {feature.precursor_mz:.4f}, {spectra}, "
        f"{counted(answer.found, 'candidate', 'candidates')} in the database")  # fmt: skip
    if answer.candidates:
        _show_candidates(answer)
        _show_reasons(answer)
    say(f"Level {answer.level.number}: {plain(answer.level.reason)}")
    for note in answer.notes:
        say(f"[dim]Note: {plain(note)}[/dim]")


def _show_candidates(answer: "Answer") -> None:
    table = new_table()
    for name in ("rank", "probability", "candidate", "formula", "ion", "explained", "set"):
        table.add_column(name, justify="right" if name in ("probability", "explained") else "left")
    for rank, each in enumerate(answer.candidates[:_CANDIDATES], 1):
        table.add_row(
            str(rank),
            f"{each.probability:.1%}",
            plain(_named(each), _WIDE),
            plain(each.formula),
            plain(each.adduct),
            f"{each.explained:.0%}",
            "in" if each.in_set else "",
        )
    show(table)
    left = answer.scored - min(len(answer.candidates), _CANDIDATES)
    if left > 0:
        say(f"[dim]and {left:,} more[/dim]")


def _show_reasons(answer: "Answer") -> None:
    best = answer.best
    if best is None:
        return
    if best.match is not None:
        say(f"Library match: {plain(best.match.record)}, similarity {best.match.similarity:.2f}, "
            f"{best.match.peaks} peaks")  # fmt: skip
    parts = [
        f"{kind} {answer.nats(best, kind):+.1f}" for kind in dict.fromkeys(answer.kinds.values())
    ]
    say(f"Reasons, in nats against the average candidate: {', '.join(parts)}")
    if best.analog is not None:
        say(f"Nearest analog: {plain(best.analog.record)} (spectral similarity "
            f"{best.analog.similarity:.2f}, Tanimoto {best.analog.likeness:.2f})")  # fmt: skip
    if answer.present is not None:
        say(f"The molecule is in the database at all with a probability of {answer.present:.0%}.")
    others = {o: answer.candidates[at] for o, at in answer.choices.items() if at}
    for objective, other in others.items():
        say(f"[dim]Decided for {objective}: {plain(_named(other), _WIDE)}[/dim]")


def _named(candidate: "Candidate") -> str:
    return candidate.name or candidate.smiles
