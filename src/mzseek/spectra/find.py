"""Find one spectrum in files, by identifier, number or name."""

import re
from collections.abc import Sequence
from pathlib import Path

from mzseek.core.errors import InputError
from mzseek.core.text import pluralize
from mzseek.parallel.engine import Progress, silent
from mzseek.spectra.read import NO_COLUMNS, Columns, read_spectra
from mzseek.spectra.spectrum import Spectrum

_PROGRESS_EVERY = 200  # records


def find_spectrum(
    files: Sequence[Path],
    text: str,
    *,
    columns: Columns = NO_COLUMNS,
    progress: Progress = silent,
) -> Spectrum:
    """Return the spectrum that ``text`` names.

    An identifier is matched first; ``#3`` is the third spectrum, and so is ``3`` unless one is
    called that; the name of a compound stands for its first spectrum.

    Raises
    ------
    InputError
        No spectrum can be read, or none is called so.
    """
    match = re.fullmatch(r"#?([1-9]\d{0,11})", text)
    number = int(match[1]) if match else None
    seen, skipped = 0, ""
    chosen: Spectrum | None = None
    examples: list[str] = []

    def skip(where: str, reason: str) -> None:  # the record asked for may be among them
        nonlocal skipped
        if (text in where and number is None) or (not seen and not skipped):
            skipped = f"; skipped: {where}: {reason}"

    # All are opened before the first is read, so that a wrong one is noticed at once.
    readings = [read_spectra(file, skip, columns=columns) for file in files]
    for spectrum in (spectrum for reading in readings for spectrum in reading):
        seen += 1
        examples += [spectrum.identifier] if len(examples) < 3 else []
        if spectrum.identifier == text or (seen == number and text.startswith("#")):
            return spectrum
        name = spectrum.metadata.get("compound_name", "").casefold()
        if seen == number or (chosen is None and name == text.casefold()):
            chosen = spectrum
        if seen % _PROGRESS_EVERY == 0:
            progress("reading", seen)
    if chosen is not None:
        return chosen
    where, count = ", ".join(map(str, files)), pluralize(seen, "spectrum", "spectra")
    if not seen:
        raise InputError(where, f"no spectrum could be read{skipped}")
    if number is not None:
        raise InputError(where, f"has {count}, so there is no number {number}")
    such = ", ".join(repr(name[:60]) for name in examples)
    raise InputError(
        where, f"none of {count} has the identifier or name {text!r}; there are {such} …{skipped}"
    )
