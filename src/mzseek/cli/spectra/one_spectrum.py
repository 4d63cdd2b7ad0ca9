"""One spectrum, found in a file and shown in the terminal."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.cli.output import (
    counted,
    new_table,
    plain,
    print_json,
    say,
    show,
    terminal,
    watched,
)
from mzseek.cli.spectra.peak_plot import glyphs_for, peak_plot
from mzseek.errors import InputError
from mzseek.files import atomic_file
from mzseek.report.axis import by_intensity
from mzseek.report.drawing import drawn_spectrum
from mzseek.spectra import Spectrum, read_spectra

if TYPE_CHECKING:
    from rich.table import Table

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
    given = {
        field: value for field, value in spectrum.metadata.items() if value != spectrum.identifier
    }
    table = facts_table()
    say(f"[bold]{plain(spectrum.identifier, 200)}[/bold]")
    table.add_row("precursor", plain(_ion(spectrum)))
    for field, label in _FIRST.items():
        if field in given:
            table.add_row(label, plain(given.pop(field), 300))
    for field in list(given)[:_MOST_FURTHER]:
        table.add_row(plain(field, 24), plain(given.pop(field), 100))
    if given:
        table.add_row(f"and {len(given)} more", plain(", ".join(given), 200) + " (all in --json)")
    show(table)
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
        show(line)
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
