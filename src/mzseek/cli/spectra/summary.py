"""What a file of spectra holds, as people read it."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.cli.output import (
    clean,
    counted,
    new_table,
    plain,
    print_json,
    say,
    say_next,
    show,
    show_rejects,
    watched,
)
from mzseek.cli.spectra.one_spectrum import draw, facts_table, show_peaks
from mzseek.files import atomic_file
from mzseek.rejects import Report
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.summary import Summary
from mzseek.spectra.tally import Extent, Tally

_SHOWN_VALUES = 6
_SHOWN_FILES = 20
_EVERY = 200  # records between two words about how far it has got


@dataclass
class FileFacts:
    """One argument of the command: a file, or a folder or zip of them."""

    path: Path
    formats: Tally = field(default_factory=Tally)
    read: int = 0
    set_aside: int = 0

    def opened(self, _name: str, label: str) -> None:
        """Note a file and its format."""
        self.formats.add(label)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": str(self.path),
            "formats": dict(self.formats.values),
            "read": self.read,
            "set_aside": self.set_aside,
        }


def show_all(files: Sequence[Path], svg: Path | None, listed: Path | None, as_json: bool) -> bool:
    """Read files and show what they hold; returns whether there was a spectrum."""
    summary = Summary()
    parts = [FileFacts(file) for file in files]
    first: Spectrum | None = None
    with watched() as progress, _listing(listed) as note:

        def report(where: str, reason: str) -> None:
            summary.rejects(where, reason)
            note(where, reason)
            if summary.records % _EVERY == 0:
                progress("reading", summary.records)

        # All are opened before the first is read, so that a wrong one is noticed at once.
        readings = [read_spectra(part.path, report, opened=part.opened) for part in parts]
        for part, reading in zip(parts, readings, strict=True):
            read_before, set_aside_before = summary.read, summary.rejects.total
            for spectrum in reading:
                first = first or spectrum
                summary.add(spectrum)
                if summary.records % _EVERY == 0:
                    progress("reading", summary.records)
            part.read = summary.read - read_before
            part.set_aside = summary.rejects.total - set_aside_before
    if first is not None and svg:
        draw(first, svg)
    if as_json:
        print_json({"files": [part.to_dict() for part in parts], **summary.to_dict()})
    else:
        show_summary(parts, summary, first, listed, svg)
    return first is not None


@contextlib.contextmanager
def _listing(path: Path | None) -> Iterator[Report]:
    """What writes rejects into a file as they come; the file is there when all has gone well."""
    if path is None:
        yield lambda _where, _reason: None
        return
    with (
        atomic_file(path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace") as stream,
    ):
        stream.write("where\treason\n")

        def note(where: str, reason: str) -> None:
            stream.write(
                "\t".join(clean(" ".join(text.split())) for text in (where, reason)) + "\n"
            )

        yield note


def show_summary(
    parts: Sequence[FileFacts],
    summary: Summary,
    first: Spectrum | None,
    listed: Path | None,
    svg: Path | None,
) -> None:
    """All of it, for a person who looks at the file for the first time."""
    _show_files(parts, summary)
    if summary.read:
        _show_facts(summary)
    if summary.rejects.total:
        say("")
        show_rejects(summary.rejects, None if listed is None else str(listed))
        if listed is None and summary.rejects.total > 1:
            say("  [dim]--rejects FILE.tsv lists them all[/dim]")
    if first is not None:
        say(f"\nFirst spectrum: [bold]{plain(first.identifier, 80)}[/bold] {_called(first)}")
        show_peaks(first, 6)
        if svg:
            say(f"Drawn in {plain(svg)}")
    say("")
    _say_next([part.path for part in parts], summary, first)


def _called(spectrum: Spectrum) -> str:
    name = spectrum.metadata.get("compound_name", "")
    peaks = counted(len(spectrum), "peak", "peaks")
    named = f"{plain(name, 60)}, " if name and name != spectrum.identifier else ""
    return f"[dim]({named}{peaks})[/dim]"


def _show_files(parts: Sequence[FileFacts], summary: Summary) -> None:
    if len(parts) == 1:
        say(f"[bold]{plain(parts[0].path)}[/bold]  {_formats(parts[0].formats)}")
    else:
        table = new_table(show_header=False, padding=(0, 2, 0, 0))
        table.add_column(overflow="fold")
        for part in parts[:_SHOWN_FILES]:
            aside = f"{part.set_aside:,} set aside" if part.set_aside else ""
            read = counted(part.read, "spectrum", "spectra")
            table.add_row(plain(part.path), _formats(part.formats), read, aside)
        show(table)
        if len(parts) > _SHOWN_FILES:
            say(f"and {len(parts) - _SHOWN_FILES:,} more")
    read = counted(summary.read, "spectrum", "spectra")
    if summary.rejects.total:
        records = counted(summary.records, "record", "records")
        say(f"{records}: [bold]{read}[/bold] read, {summary.rejects.total:,} set aside")
    else:
        say(f"[bold]{read}[/bold], nothing set aside")


def _formats(formats: Tally) -> str:
    """The format; with the number of files where there are several."""
    if formats.given <= 1:
        return "".join(formats.values)
    return ", ".join(
        f"{counted(count, 'file', 'files')} of {label}"
        for label, count in formats.values.most_common()
    )


def _show_facts(summary: Summary) -> None:
    median, fewest, most = summary.peak_counts() or (0.0, 0, 0)
    rows = {
        "MS level": _values(summary.levels),
        "ion mode": _values(summary.modes),
        "adducts": _values(summary.adducts),
        "precursor m/z": _extent(summary.precursors, ".4f"),
        "peaks a spectrum": f"median {median:,g}"
        + ("" if fewest == most else f", {fewest:,} to {most:,}"),
        "retention time": _times(summary),
        "collision energy": _values(summary.energies),
        "instrument": _values(summary.instruments),
        "centroided": _centroided(summary.centroided),
        "structures": _structures(summary),
    }
    if summary.folds.given:
        rows["fold"] = _values(summary.folds)
    if summary.conflicts.given:
        conflict, _ = summary.conflicts.values.most_common(1)[0]
        records = counted(summary.conflicts.given, "record", "records")
        rows["polarity"] = f"[yellow]contradictory in {records}[/yellow], e.g. {plain(conflict)}"
    if summary.renamed:
        rows["names"] = f"{summary.renamed:,} repeat the name of another, and are numbered (#2 …)"
    table = facts_table()
    for label, text in rows.items():
        table.add_row(label, text)
    show(table)


def _values(tally: Tally) -> str:
    """The most frequent values with their counts."""
    if not tally.given:
        return "[dim]not given[/dim]"
    if len(tally.values) == 1 and not tally.none_given:
        return f"{plain(next(iter(tally.values)))} [dim](all)[/dim]"
    shown = tally.values.most_common(_SHOWN_VALUES)
    counts = [(plain(value), count) for value, count in shown]
    rest = tally.given - sum(count for _, count in shown)
    if rest:
        others = counted(len(tally.values) - len(shown), "other", "others")
        counts.append((f"more than {others}" if tally.not_listed else others, rest))
    return _listed([*counts, ("not given", tally.none_given)])


def _listed(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{text} [dim]({count:,})[/dim]" for text, count in counts if count)


def _extent(extent: Extent, form: str) -> str:
    if extent.lowest == extent.highest:
        return f"{extent.lowest:{form}}"
    return f"{extent.lowest:{form}} to {extent.highest:{form}}"


def _times(summary: Summary) -> str:
    if not summary.times:
        return "[dim]not given[/dim]"
    extents = sorted(summary.times.items(), key=lambda pair: -pair[1].count)
    counts = [
        (f"{_extent(extent, '.4g')} {unit or 'without a unit (annotate: --rt-unit)'}", extent.count)
        for unit, extent in extents
    ]
    if len(counts) == 1 and counts[0][1] == summary.read:
        return counts[0][0]
    return _listed([*counts, ("not given", summary.read - sum(count for _, count in counts))])


def _centroided(tally: Tally) -> str:
    words = {"yes": "yes", "no": "[yellow]no: profile[/yellow]"}
    counts = [(words[value], count) for value, count in tally.values.items() if value in words]
    if len(counts) == 1 and not tally.none_given:
        return f"{counts[0][0]} [dim](all)[/dim]"
    return _listed([*counts, ("not given", tally.none_given)]) if counts else "[dim]not given[/dim]"


def _structures(summary: Summary) -> str:
    have, read = summary.with_structure, summary.read
    if not have:
        return "[yellow]none[/yellow] (no SMILES, no InChI)"
    which = [
        name
        for name, count in (("SMILES", summary.with_smiles), ("InChI", summary.with_inchi))
        if count
    ]
    about = "" if summary.molecules.is_exact else "about "
    molecules = counted(summary.molecules.count, "molecule", "molecules")
    share = "all" if have == read else f"{have:,} of {read:,}"
    return f"{share} ({' or '.join(which)}), {about}{molecules}"


def _say_next(paths: Sequence[Path], summary: Summary, first: Spectrum | None) -> None:
    if first is None:
        say("Nothing here can be used; the reasons are above.")
        return
    if summary.centroided.values.get("no"):
        say(
            "[yellow]Profile peaks are taken as they are: centroid them first[/yellow], for "
            "instance with msconvert's filter peakPicking."
        )
    files: Sequence[object] = paths if len(paths) <= _SHOWN_FILES else ["FILES"]
    one = shlex.quote(str(paths[0])) if len(paths) == 1 else "FILE"
    say(f"[dim]Another spectrum: mzseek show {plain(one)} --spectrum ID-OR-NUMBER[/dim]")
    if summary.with_structure:
        if summary.folds.given:
            training = f"mzseek prepare {one} --candidates-mass LISTS.json --out prepared"
        else:
            training = f"mzseek data build {one} --molecules MOLECULES.tsv --out myset"
        say(f"[dim]To train on them: {plain(training)}[/dim]")
    say_next("mzseek", "annotate", *files, "--out", "answers")
