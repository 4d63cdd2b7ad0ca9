"""``mzseek show``: what spectrum files hold."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.text import Text

from mzseek.cli.early import early, look_for_file
from mzseek.cli.options import AsJson
from mzseek.cli.output import (
    clean,
    counted,
    new_table,
    plain,
    print_json,
    say,
    say_next,
    show_rejects,
    terminal,
    watched,
)
from mzseek.cli.output import (
    show as show_table,
)
from mzseek.core.errors import DatasetError, InputError
from mzseek.export.spectrum_plot import NEAR_PRECURSOR, by_intensity, drawn_spectrum, limits, ticks
from mzseek.io import atomic_file, read_object
from mzseek.io.skipped import Report
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.summary import Extent, Summary, Tally

if TYPE_CHECKING:
    from rich.table import Table


# From an empty cell to a full one in eighths; then the axes and the mark below the precursor.
UNICODE = " ▁▂▃▄▅▆▇█", "│└─┴▲"
ASCII = " ..::||||", "|+-+^"
Glyphs = tuple[str, str]

_GUTTER = 5
_LEAST_WIDTH = 40
_HEADROOM = 2  # rows above the highest peak, for labels
_LABEL_FLOOR = 0.03
_BAR, _PRECURSOR, _QUIET = "cyan", "bold yellow", "dim"


def glyphs_for(encoding: str) -> Glyphs:
    """Block characters, or plain ones where the output cannot hold those."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def peak_plot(
    spectrum: Spectrum, width: int, height: int = 12, glyphs: Glyphs = UNICODE
) -> list[Text]:
    """Lines that show the peaks as columns, the strongest labelled, the precursor marked.

    Parameters
    ----------
    spectrum : Spectrum
    width : int
        Columns at most, but no fewer than 40.
    height : int
        Rows of the highest peak.
    glyphs : (str, str)
        `UNICODE` or `ASCII`.
    """
    columns = max(width, _LEAST_WIDTH) - _GUTTER - 1
    low, high = limits(spectrum)
    places = _columns_of(spectrum.mz, low, high, columns)
    bars = _bar_heights(spectrum, places, columns, 8 * height)
    sheet = _Sheet(height + _HEADROOM, columns)
    near = np.abs(spectrum.mz - spectrum.precursor_mz) <= NEAR_PRECURSOR
    # A column belongs to its strongest peak.
    owned = {int(places[place]): place for place in reversed(by_intensity(spectrum))}
    for column, place in owned.items():
        sheet.bar(column, int(bars[column]), glyphs[0], _PRECURSOR if near[place] else _BAR)
    for place in by_intensity(spectrum, _LABEL_FLOOR):
        column = int(places[place])
        if owned[column] == place:
            sheet.label(f"{spectrum.mz[place]:.4f}", column, int(bars[column]))
    precursor = int(_columns_of(np.array([spectrum.precursor_mz]), low, high, columns)[0])
    return [
        *_with_scale(sheet, height, glyphs[1]),
        *_axis(low, high, columns, precursor, glyphs[1]),
    ]


class _Sheet:
    """Cells with a character and a style each."""

    def __init__(self, rows: int, columns: int) -> None:
        self.cells = [[" "] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]

    def bar(self, column: int, eighths: int, steps: str, style: str) -> None:
        for row in range(len(self.cells) - 1, -1, -1):
            if eighths <= 0:
                return
            self.cells[row][column] = steps[min(eighths, 8)]
            self._styles[row][column] = style
            eighths -= 8

    def label(self, text: str, column: int, eighths: int) -> None:
        """Write above a bar, or one row higher; nothing where there is no room."""
        columns = len(self.cells[0])
        start = min(max(column - len(text) // 2, 0), columns - len(text))
        top = len(self.cells) - 1 - -(-eighths // 8)
        for row in range(top, max(top - _HEADROOM, -1), -1):
            around = self.cells[row][max(start - 1, 0) : start + len(text) + 1]
            if set(around) == {" "}:
                self.cells[row][start : start + len(text)] = text
                return

    def line(self, row: int) -> Text:
        text = Text()
        for cell, style in zip(self.cells[row], self._styles[row], strict=True):
            text.append(cell, style or None)
        return text


def _columns_of(
    mz: npt.NDArray[np.float64], low: float, high: float, columns: int
) -> npt.NDArray[np.intp]:
    return np.rint((mz - low) / (high - low) * (columns - 1)).astype(np.intp)


def _bar_heights(
    spectrum: Spectrum, places: npt.NDArray[np.intp], columns: int, full: int
) -> npt.NDArray[np.intp]:
    """Height of each column in eighths of a cell; the smallest peak is still to be seen."""
    relative = spectrum.intensities / spectrum.intensities.max()
    heights = np.zeros(columns, np.intp)
    np.maximum.at(heights, places, np.maximum(np.rint(relative * full), 1).astype(np.intp))
    return heights


def _with_scale(sheet: _Sheet, height: int, axes: str) -> list[Text]:
    """The rows with percentages before them."""
    marks = {_HEADROOM: "100", _HEADROOM + height // 2: "50"}
    lines = []
    top = next(row for row, cells in enumerate(sheet.cells) if set(cells) != {" "})
    for row in range(top, len(sheet.cells)):
        line = Text(f"{marks.get(row, ''):>{_GUTTER - 1}}{axes[0]}", _QUIET)
        lines.append(Text.assemble(line, sheet.line(row)))
    return lines


def _axis(low: float, high: float, columns: int, precursor: int, axes: str) -> list[Text]:
    """The line below the peaks with its ticks, and their numbers."""
    corner, level, tick, arrow = axes[1], axes[2], axes[3], axes[4]
    line, numbers = [level] * columns, [" "] * (columns + _GUTTER + 1)
    for value in ticks(low, high, most=columns // 9):
        place = int(_columns_of(np.array([value]), low, high, columns)[0])
        line[place] = tick
        text = f"{value:g}"
        start = min(place + _GUTTER - len(text) // 2, len(numbers) - len(text))
        numbers[start : start + len(text)] = text
    before, after = "".join(line[:precursor]), "".join(line[precursor + 1 :])
    return [
        Text.assemble(
            (f"{'0':>{_GUTTER - 1}}{corner}{before}", _QUIET), (arrow, _PRECURSOR), (after, _QUIET)
        ),
        Text("".join(numbers).rstrip(), _QUIET),
    ]


_MOST_WIDTH = 120
_NUMBER = re.compile(r"#?([1-9]\d{0,11})")
_STRONGEST = 10
# What stands first in the table, under the name that a chemist gives it.
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
_MOST_FURTHER = 12
_EVERY = 200  # spectra between two words about how far it has got


def show_one(files: Sequence[Path], text: str, svg: Path | None, as_json: bool) -> None:
    """Find a spectrum in files and show it."""
    wanted = Wanted(text)
    with watched() as progress:
        # All are opened before the first is read, so that a wrong one is noticed at once.
        readings = [read_spectra(file, wanted.set_aside) for file in files]
        for other in (spectrum for reading in readings for spectrum in reading):
            if wanted.is_it(other):
                break
            if wanted.seen % _EVERY == 0:
                progress("reading", wanted.seen)
    chosen = wanted.choice(", ".join(map(str, files)))
    if svg:
        draw(chosen, svg)
    if as_json:
        print_json(facts_of(chosen))
    else:
        show_spectrum(chosen, svg)


def draw(spectrum: Spectrum, svg: Path) -> None:
    """Write a spectrum as SVG."""
    with atomic_file(svg) as partial:
        partial.write_text(drawn_spectrum(spectrum), encoding="utf-8")


class Wanted:
    """The spectrum that was asked for, among those that come by.

    An identifier is the surest; ``#3`` is the third spectrum, and so is ``3`` unless one is called
    that; the name of a compound stands for the first spectrum of it.
    """

    def __init__(self, text: str) -> None:
        self.seen = 0
        self._text = text
        number = _NUMBER.fullmatch(self._text)
        self._number = int(number[1]) if number else None
        self._fallback: Spectrum | None = None
        self._found: Spectrum | None = None
        self._examples: list[str] = []
        self._refused = ""

    def set_aside(self, where: str, reason: str) -> None:
        """Note a record that was set aside, if it may be the one."""
        is_first = not self.seen and not self._refused
        if (self._text in where and self._number is None) or is_first:
            self._refused = f"{where}: {reason}"

    def is_it(self, spectrum: Spectrum) -> bool:
        """Whether this is the one, without a doubt."""
        self.seen += 1
        if len(self._examples) < 3:
            self._examples.append(spectrum.identifier)
        is_number = self.seen == self._number
        if spectrum.identifier == self._text or (is_number and self._text.startswith("#")):
            self._found = spectrum
            return True
        name = spectrum.metadata.get("compound_name", "").casefold()
        if is_number or (self._fallback is None and name == self._text.casefold()):
            self._fallback = spectrum
        return False

    def choice(self, files: str) -> Spectrum:
        """The spectrum, or an error that says what there is."""
        chosen = self._found or self._fallback
        if chosen is not None:
            return chosen
        aside = f"; set aside: {self._refused}" if self._refused else ""
        if not self.seen:
            raise InputError(files, f"no spectrum could be read{aside}")
        read = counted(self.seen, "spectrum", "spectra")
        if self._number is not None:
            raise InputError(files, f"has {read}, so there is no number {self._number}")
        such = ", ".join(repr(name[:60]) for name in self._examples)
        raise InputError(
            files,
            f"none of {read} has the identifier or name {self._text!r}; there are {such} …{aside}",
        )


def show_spectrum(spectrum: Spectrum, svg: Path | None) -> None:
    """Metadata, peaks, and the strongest of them in numbers."""
    given = {key: value for key, value in spectrum.metadata.items() if value != spectrum.identifier}
    table = facts_table()
    say(f"[bold]{plain(spectrum.identifier, 200)}[/bold]")
    table.add_row("precursor", plain(_ion(spectrum)))
    for key, label in _FIRST.items():
        if key in given:
            table.add_row(label, plain(given.pop(key), 300))
    for key in list(given)[:_MOST_FURTHER]:
        table.add_row(plain(key, 24), plain(given.pop(key), 100))
    if given:
        table.add_row(f"and {len(given)} more", plain(", ".join(given), 200) + " (all in --json)")
    show_table(table)
    say("")
    show_peaks(spectrum, 12)
    strongest = by_intensity(spectrum)[:_STRONGEST]
    relative = spectrum.intensities / spectrum.intensities.max()
    peaks = "  ".join(
        f"{spectrum.mz[i]:.4f} [dim]{100 * relative[i]:.0f} %[/dim]" for i in strongest
    )
    is_all = len(strongest) == len(spectrum)
    which = "All peaks" if is_all else f"Strongest {_STRONGEST} of {len(spectrum):,} peaks"
    say(f"\n{which}: {peaks}")
    if svg:
        say(f"Drawn in {plain(svg)}")


def facts_table() -> "Table":
    """A table of two columns: what, and what about it."""
    table = new_table(show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def show_peaks(spectrum: Spectrum, height: int) -> None:
    """The peaks, as wide as the terminal, and what the mark below them means."""
    width, encoding = terminal()
    glyphs = glyphs_for(encoding)
    # One column stays free: some terminals begin a new line when the last is written to.
    for line in peak_plot(spectrum, min(width - 1, _MOST_WIDTH), height, glyphs):
        show_table(line)
    mark = f"[bold yellow]{glyphs[1][-1]}[/bold yellow]"
    say(f"     {mark} [dim]precursor {plain(_ion(spectrum))}[/dim]")


def facts_of(spectrum: Spectrum) -> dict[str, Any]:
    """All of it, for JSON."""
    return {
        "identifier": spectrum.identifier,
        "precursor_mz": spectrum.precursor_mz,
        "adduct": spectrum.adduct,
        "charge": spectrum.charge,
        "metadata": spectrum.metadata,
        "peaks": [
            [mz, intensity]
            for mz, intensity in zip(
                spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True
            )
        ],
    }


def _ion(spectrum: Spectrum) -> str:
    text = f"m/z {spectrum.precursor_mz:.4f}"
    if spectrum.adduct:
        return f"{text}, {spectrum.adduct}"
    given = spectrum.metadata.get("adduct_as_given")
    text += f", adduct given as {given}" if given else ", adduct not given"
    return text if spectrum.charge is None else f"{text}, charge {spectrum.charge:+d}"


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
        show_table(table)
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
    show_table(table)


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


# Folders that mzseek makes: where their kind stands, and which command shows them. Written out,
# since asking the rooms would load RDKit and torch; a test compares them.
OWN_FOLDERS = {
    "prepared folder": ("manifest.json", "`mzseek bands {}` looks at its candidates"),
    "molecule database": ("manifest.json", "`mzseek database info {}` shows what it holds"),
    "data set": ("manifest.json", "`mzseek show {}/spectra.tsv.gz` shows its spectra"),
    "run folder": ("run.json", "`mzseek evaluate {}` shows what it has learned"),
}


@early(files=look_for_file)
def show(
    files: Annotated[
        list[Path], typer.Argument(help="Spectrum files, folders or zips, in any known format.")
    ],
    spectrum: Annotated[
        str | None,
        typer.Option(help="Draw this one: its identifier, its name, or its number, from 1."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Also draw it (or the first one) into this SVG file.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="List all that is set aside in this TSV file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is in a file of spectra: counts, ions, masses, structures, what is set aside.

    Exits with status 1 if not one spectrum could be read.

    Example: mzseek show library.mgf --spectrum caffeine --svg caffeine.svg
    """
    for file in files:
        _refuse_own_folder(file)
    _check_outputs(files, svg, rejects)
    if spectrum is not None:
        if rejects is not None:
            raise InputError(rejects, "--rejects is about whole files: leave out --spectrum")
        if not spectrum.strip():
            raise InputError("--spectrum", "is empty, expected an identifier, a name or a number")

        show_one(files, spectrum.strip(), svg, as_json)
        return

    if not show_all(files, svg, rejects, as_json):
        raise typer.Exit(1)


def _check_outputs(files: Sequence[Path], svg: Path | None, rejects: Path | None) -> None:
    if svg is not None and svg.suffix.lower() != ".svg":
        raise InputError(svg, "expected a name that ends in .svg")
    for out in filter(None, (svg, rejects)):
        if out.is_dir():
            raise InputError(out, "is a folder, expected the name of a file to write")
        if out.resolve() in {file.resolve() for file in files}:
            raise InputError(out, "is the file to be shown; name another one to write")
        above = next(folder for folder in out.resolve().parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InputError(out, f"cannot be made: {above} is no folder that can be written to")


def _refuse_own_folder(path: Path) -> None:
    """Log what it is and which command shows it, where it is a folder that mzseek made."""
    for kind, (name, hint) in OWN_FOLDERS.items():
        file = path / name
        if path.is_dir() and file.is_file() and _kind_in(file) == kind:
            raise InputError(path, f"is a {kind}, expected spectra; {hint.format(path)}")


def _kind_in(file: Path) -> object:
    try:
        return read_object(file, DatasetError).get("kind")
    except DatasetError:  # somebody else's file of that name, or a damaged one
        return None
