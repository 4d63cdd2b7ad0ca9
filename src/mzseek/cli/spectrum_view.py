"""Spectra in the terminal: the summary of a file, and one spectrum with its peaks."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.cli.output import (
    new_table,
    plain,
    print_json,
    say,
    say_next,
    show,
    show_skipped,
    terminal,
    watched,
)
from mzseek.core.text import pluralize, visible
from mzseek.export.spectrum_plot import by_intensity, draw_spectrum
from mzseek.export.text_plot import glyphs_for, peak_plot
from mzseek.io import atomic_file
from mzseek.io.skipped import Report
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.find import find_spectrum
from mzseek.spectra.read import Columns
from mzseek.spectra.summary import Extent, Summary, Tally

if TYPE_CHECKING:
    from rich.table import Table

_MAX_WIDTH = 120
_NOT_GIVEN = "[dim]not given[/dim]"
_STRONGEST = 10  # peaks that are listed in numbers
_PROGRESS_EVERY = 200  # records
_SHOWN_VALUES, _SHOWN_FILES, _SHOWN_METADATA = 6, 20, 12
# Metadata that is listed first, and its label.
_FIRST = {
    "compound_name": "name",
    "formula": "formula",
    "smiles": "SMILES",
    "inchi": "InChI",
    "inchikey": "InChIKey",
    "ms_level": "MS level",
    "ionmode": "ion mode",
    "collision_energy": "collision energy",
    "instrument": "instrument",
    "instrument_type": "instrument type",
    "retention_time": "retention time",
}


def show_one(
    files: Sequence[Path], text: str, svg: Path | None, as_json: bool, columns: Columns
) -> None:
    """Show the spectrum that ``text`` names, see `find_spectrum`."""
    with watched() as progress:
        chosen = find_spectrum(files, text, columns=columns, progress=progress)
    if svg:
        _draw(chosen, svg)
    if as_json:
        stated = ("identifier", "precursor_mz", "adduct", "charge", "metadata")
        peaks = list(zip(chosen.mz.tolist(), chosen.intensities.tolist(), strict=True))
        print_json({name: getattr(chosen, name) for name in stated} | {"peaks": peaks})
    else:
        _show_spectrum(chosen, svg)


def _draw(spectrum: Spectrum, svg: Path) -> None:
    with atomic_file(svg) as partial:
        partial.write_text(draw_spectrum(spectrum), encoding="utf-8")


def _show_spectrum(spectrum: Spectrum, svg: Path | None) -> None:
    """Print metadata, the plot, and the strongest peaks in numbers."""
    rest = {key: value for key, value in spectrum.metadata.items() if value != spectrum.identifier}
    table = _two_columns()
    say(f"[bold]{plain(spectrum.identifier, 200)}[/bold]")
    table.add_row("precursor", plain(_ion(spectrum)))
    for key, label in _FIRST.items():
        if key in rest:
            table.add_row(label, plain(rest.pop(key), 300))
    for key in list(rest)[:_SHOWN_METADATA]:
        table.add_row(plain(key, 24), plain(rest.pop(key), 100))
    if rest:
        table.add_row(f"and {len(rest)} more", plain(", ".join(rest), 200) + " (all in --json)")
    show(table)
    say("")
    _show_peaks(spectrum, 12)
    strongest = by_intensity(spectrum)[:_STRONGEST]
    relative = 100 * spectrum.intensities / spectrum.intensities.max()
    peaks = "  ".join(f"{spectrum.mz[i]:.4f} [dim]{relative[i]:.0f} %[/dim]" for i in strongest)
    is_all = len(strongest) == len(spectrum)
    which = "All peaks" if is_all else f"Strongest {_STRONGEST} of {len(spectrum):,} peaks"
    say(f"\n{which}: {peaks}")
    if svg:
        say(f"Drawn in {plain(svg)}")


def _two_columns() -> "Table":
    table = new_table(show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _show_peaks(spectrum: Spectrum, height: int) -> None:
    width, encoding = terminal()
    glyphs = glyphs_for(encoding)
    # One column stays free: some terminals begin a new line when the last is written to.
    for line in peak_plot(spectrum, min(width - 1, _MAX_WIDTH), height, glyphs):
        show(line)
    mark = f"[bold yellow]{glyphs[1][-1]}[/bold yellow]"
    say(f"     {mark} [dim]precursor {plain(_ion(spectrum))}[/dim]")


def _ion(spectrum: Spectrum) -> str:
    text = f"m/z {spectrum.precursor_mz:.4f}"
    if spectrum.adduct:
        return f"{text}, {spectrum.adduct}"
    stated = spectrum.metadata.get("adduct_as_given")
    text += f", adduct given as {stated}" if stated else ", adduct not given"
    return text if spectrum.charge is None else f"{text}, charge {spectrum.charge:+d}"


@dataclass
class _File:
    """One argument of the command: a file, or a folder or zip of them."""

    path: Path
    formats: Tally = field(default_factory=Tally)
    read: int = 0
    skipped: int = 0

    def opened(self, _name: str, label: str) -> None:
        self.formats.add(label)

    def to_dict(self) -> dict[str, Any]:
        counts = {"read": self.read, "set_aside": self.skipped}
        return {"path": str(self.path), "formats": dict(self.formats.values), **counts}


def show_all(
    files: Sequence[Path], svg: Path | None, listed: Path | None, as_json: bool, columns: Columns
) -> bool:
    """Show what files hold; return whether there was a spectrum."""
    summary = Summary()
    parts = [_File(file) for file in files]
    first: Spectrum | None = None
    with watched() as progress, _listing(listed) as note:

        def skip(where: str, reason: str) -> None:
            summary.skipped(where, reason)
            note(where, reason)
            if summary.records % _PROGRESS_EVERY == 0:
                progress("reading", summary.records)

        # All are opened before the first is read, so that a wrong one is noticed at once.
        readings = [
            read_spectra(part.path, skip, opened=part.opened, columns=columns) for part in parts
        ]
        for part, reading in zip(parts, readings, strict=True):
            read_before, skipped_before = summary.read, summary.skipped.total
            for spectrum in reading:
                first = first or spectrum
                summary.add(spectrum)
                if summary.records % _PROGRESS_EVERY == 0:
                    progress("reading", summary.records)
            part.read = summary.read - read_before
            part.skipped = summary.skipped.total - skipped_before
    if first is not None and svg:
        _draw(first, svg)
    if as_json:
        print_json({"files": [part.to_dict() for part in parts], **summary.to_dict()})
        return first is not None
    _show_files(parts, summary)
    if summary.read:
        _show_summary(summary)
    if summary.skipped.total:
        say("")
        show_skipped(summary.skipped, None if listed is None else str(listed))
        if listed is None and summary.skipped.total > 1:
            say("  [dim]--rejects FILE.tsv lists them all[/dim]")
    if first is not None:
        name = first.metadata.get("compound_name", "")
        peaks = pluralize(len(first), "peak", "peaks")
        named = f"{plain(name, 60)}, " if name and name != first.identifier else ""
        say(
            f"\nFirst spectrum: [bold]{plain(first.identifier, 80)}[/bold] "
            f"[dim]({named}{peaks})[/dim]"
        )
        _show_peaks(first, 6)
        if svg:
            say(f"Drawn in {plain(svg)}")
    say("")
    _say_next(files, summary)
    return first is not None


@contextlib.contextmanager
def _listing(path: Path | None) -> Iterator[Report]:
    """Write skipped records into a file as they come; it appears when all has gone well."""
    if path is None:
        yield lambda _where, _reason: None
        return
    with (
        atomic_file(path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace") as stream,
    ):
        stream.write("where\treason\n")
        yield lambda *texts: print(
            *(visible(" ".join(text.split())) for text in texts), sep="\t", file=stream
        )


def _show_files(parts: Sequence[_File], summary: Summary) -> None:
    if len(parts) == 1:
        say(f"[bold]{plain(parts[0].path)}[/bold]  {_formats(parts[0].formats)}")
    else:
        table = new_table(show_header=False, padding=(0, 2, 0, 0))
        table.add_column(overflow="fold")
        for part in parts[:_SHOWN_FILES]:
            skipped = f"{part.skipped:,} skipped" if part.skipped else ""
            read = pluralize(part.read, "spectrum", "spectra")
            table.add_row(plain(part.path), _formats(part.formats), read, skipped)
        show(table)
        if len(parts) > _SHOWN_FILES:
            say(f"and {len(parts) - _SHOWN_FILES:,} more")
    read = pluralize(summary.read, "spectrum", "spectra")
    if summary.skipped.total:
        records = pluralize(summary.records, "record", "records")
        say(f"{records}: [bold]{read}[/bold] read, {summary.skipped.total:,} skipped")
    else:
        say(f"[bold]{read}[/bold], nothing skipped")


def _formats(formats: Tally) -> str:
    """Return the format, with the number of files where there are several."""
    if formats.total <= 1:
        return "".join(formats.values)
    return ", ".join(
        f"{pluralize(count, 'file', 'files')} of {label}"
        for label, count in formats.values.most_common()
    )


def _show_summary(summary: Summary) -> None:
    median, smallest, largest = summary.peak_counts() or (0.0, 0, 0)
    peaks = f"median {median:,g}" + (
        "" if smallest == largest else f", {smallest:,} to {largest:,}"
    )
    rows = {
        "MS level": _values(summary.levels),
        "ion mode": _values(summary.modes),
        "adducts": _values(summary.adducts),
        "precursor m/z": _extent(summary.precursors, ".4f"),
        "peaks a spectrum": peaks,
        "retention time": _times(summary),
        "collision energy": _values(summary.energies),
        "instrument": _values(summary.instruments),
        "centroided": _centroided(summary.centroided),
        "structures": _structures(summary),
    }
    if summary.folds.total:
        rows["fold"] = _values(summary.folds)
    if summary.conflicts.total:
        conflict, _ = summary.conflicts.values.most_common(1)[0]
        records = pluralize(summary.conflicts.total, "record", "records")
        rows["polarity"] = f"[yellow]contradictory in {records}[/yellow], e.g. {plain(conflict)}"
    if summary.renamed:
        rows["names"] = f"{summary.renamed:,} repeat the name of another, and are numbered (#2 …)"
    table = _two_columns()
    for label, text in rows.items():
        table.add_row(label, text)
    show(table)


def _values(tally: Tally) -> str:
    """Return the most frequent values with their counts."""
    if not tally.total:
        return _NOT_GIVEN
    if len(tally.values) == 1 and not tally.none_given:
        return f"{plain(next(iter(tally.values)))} [dim](all)[/dim]"
    shown = tally.values.most_common(_SHOWN_VALUES)
    counts = [(plain(value), count) for value, count in shown]
    rest = tally.total - sum(count for _, count in shown)
    if rest:
        others = pluralize(len(tally.values) - len(shown), "other", "others")
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
        return _NOT_GIVEN
    counts = [
        (f"{_extent(extent, '.4g')} {unit or 'without a unit (annotate: --rt-unit)'}", extent.count)
        for unit, extent in sorted(summary.times.items(), key=lambda pair: -pair[1].count)
    ]
    if len(counts) == 1 and counts[0][1] == summary.read:
        return counts[0][0]
    return _listed([*counts, ("not given", summary.read - sum(count for _, count in counts))])


def _centroided(tally: Tally) -> str:
    words = {"yes": "yes", "no": "[yellow]no: profile[/yellow]"}
    counts = [(words[value], count) for value, count in tally.values.items() if value in words]
    if len(counts) == 1 and not tally.none_given:
        return f"{counts[0][0]} [dim](all)[/dim]"
    return _listed([*counts, ("not given", tally.none_given)]) if counts else _NOT_GIVEN


def _structures(summary: Summary) -> str:
    have, read = summary.with_structure, summary.read
    if not have:
        return "[yellow]none[/yellow] (no SMILES, no InChI)"
    kinds = {"SMILES": summary.with_smiles, "InChI": summary.with_inchi}
    which = " or ".join(name for name, count in kinds.items() if count)
    about = "" if summary.molecules.is_exact else "about "
    molecules = pluralize(summary.molecules.count, "molecule", "molecules")
    share = "all" if have == read else f"{have:,} of {read:,}"
    return f"{share} ({which}), {about}{molecules}"


def _say_next(paths: Sequence[Path], summary: Summary) -> None:
    if not summary.read:
        say("Nothing here can be used; the reasons are above.")
        return
    if summary.centroided.values.get("no"):
        say(
            "[yellow]Profile peaks are taken as they are: centroid them first[/yellow], for "
            "instance with msconvert's filter peakPicking."
        )
    file = shlex.quote(str(paths[0])) if len(paths) == 1 else "FILE"
    say(f"[dim]Another spectrum: mzseek show {plain(file)} --spectrum ID-OR-NUMBER[/dim]")
    if summary.with_structure:
        if summary.folds.total:
            training = f"mzseek prepare {file} --candidates-mass LISTS.json --out prepared"
        else:
            training = f"mzseek data build {file} --molecules MOLECULES.tsv --out myset"
        say(f"[dim]To train on them: {plain(training)}[/dim]")
    files: Sequence[object] = paths if len(paths) <= _SHOWN_FILES else ["FILES"]
    say_next("mzseek", "annotate", *files, "--out", "answers")
