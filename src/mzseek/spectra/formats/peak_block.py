"""Peak lines of one record, kept to a bounded number whatever the file says."""

from mzseek.core.errors import SpectrumError
from mzseek.io.sources import MAX_LINE, MAX_PEAK_TEXT, MAX_PEAKS
from mzseek.spectra.parsing import parse_peak_lines
from mzseek.spectra.records import Record


def long_line(number: int) -> str:
    """Why a record with a `LongLine` is set aside."""
    return f"line {number} is longer than {MAX_LINE:,} bytes"


class PeakBlock:
    """Collects numbered peak lines and gives them to a record.

    Past `MAX_PEAKS` lines, or `MAX_PEAK_TEXT` characters, they are only counted: the record is
    refused anyway, and a file of ten million peaks must not fill the memory.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._numbers: list[int] = []
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int, line: str) -> None:
        """Take one line."""
        self._count += 1
        self._size += len(line)
        if self._count <= MAX_PEAKS and self._size <= MAX_PEAK_TEXT:
            self._lines.append(line if line.endswith("\n") else line + "\n")
            self._numbers.append(number)

    def fill(self, record: Record) -> None:
        """Parse the lines into the record, or note why that failed."""
        if self._count > MAX_PEAKS:
            record.fault = f"has {self._count:,} peaks, expected at most {MAX_PEAKS:,}"
            return
        if self._size > MAX_PEAK_TEXT:
            record.fault = f"has peak lines of more than {MAX_PEAK_TEXT:,} characters"
            return
        try:
            record.mz, record.intensities = parse_peak_lines(self._lines, self._numbers)
        except SpectrumError as error:
            record.fault = record.fault or str(error)
