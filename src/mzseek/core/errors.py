"""Exceptions that mzseek raises at its boundaries, reason codes, and messages about extras."""

from importlib.util import find_spec

# Codes of the reasons for which files, records and molecules are skipped.
REASON_CODES = {
    "unreadable": "a file that is missing, damaged or of another kind",
    "no-records": "a file without a record of its format",
    "given-up": "a file in which no record can be read",
    "truncated": "a file or record that was cut short",
    "too-large": "a record, field or line past its bounds",
    "malformed": "text that the format does not have",
    "bad-number": "a field that is no finite number, or is out of its range",
    "contradiction": "two values of a field that must have one",
    "duplicate": "an identifier, spectrum or list that was there before",
    "ms1": "a survey scan",
    "ei": "an electron-ionisation spectrum",
    "ms3": "a spectrum of a fragment",
    "deprecated": "a record that its authors have withdrawn",
    "no-peaks": "no peak, or none in range",
    "bad-peak": "a peak that is no pair of numbers, or that no instrument can have measured",
    "peak-count": "another number of peaks than stated",
    "bad-packing": "peaks that cannot be decoded",
    "no-precursor": "no precursor m/z",
    "bad-charge": "a text that is no charge",
    "bad-adduct": "an adduct that is malformed, unknown or impossible",
    "no-adduct": "no single adduct",
    "precursor-mismatch": "a precursor m/z that is not that of the molecule and adduct",
    "no-molecule": "no structure",
    "bad-molecule": "a structure that cannot be read or is not handled",
    "no-feature": "a candidate that names no feature",
    "not-annotated": "a feature that cannot be annotated",
    "unknown-name": "a name that is none of those expected",
    "empty-list": "a candidate list without candidates",
    "no-truth": "a candidate list without its molecule",
}


class Reason(str):
    """Why something is skipped, in words, with its ``code`` (one of `REASON_CODES`).

    Examples
    --------
    >>> reason = Reason("has no peaks", "no-peaks")
    >>> reason, reason.code
    ('has no peaks', 'no-peaks')
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, code: str) -> "Reason":
        """Make a text with a code."""
        if code not in REASON_CODES:
            raise ValueError(f"reason code {code!r} is not declared in REASON_CODES")
        reason = super().__new__(cls, text)
        reason.code = code
        return reason

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.code


class MzseekError(Exception):
    """An error that the user can fix; the message says how."""


class RecordError(MzseekError):
    """A record or molecule that cannot be used, and the ``reason`` with its code."""

    default_code = "malformed"

    def __init__(self, reason: str, code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = _reason(reason, code or self.default_code)


class InputError(MzseekError):
    """A file (``where``) that is missing, empty, broken or of another kind, and the ``reason``."""

    def __init__(self, where: object, reason: str, code: str = "unreadable") -> None:
        super().__init__(f"{where}: {reason}")
        self.where = str(where)
        self.reason = _reason(reason, code)

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        """Pickle both parts, so that it can be raised again in another process."""
        return type(self), (self.where, self.reason)


class WriteError(InputError):
    """A file or folder that cannot be made or written: no room, no right, something in its way."""


def _reason(text: str, code: str) -> Reason:
    return text if isinstance(text, Reason) else Reason(text, code)


class BusyError(MzseekError):
    """An output that another process is writing."""


class KilledError(MzseekError):
    """A worker process that was killed from outside, by a user or for lack of memory."""


class ClusterError(MzseekError):
    """A cluster that cannot be reached."""


class SpectrumError(RecordError):
    """A record that is no usable tandem spectrum."""


class MoleculeError(RecordError):
    """A molecule that cannot be parsed, or that lies outside what mzseek handles."""

    default_code = "bad-molecule"


class AdductError(RecordError):
    """An adduct that is malformed, unknown, or impossible."""

    default_code = "bad-adduct"


class DatasetError(MzseekError):
    """A data set that lacks a column, a file, or a consistent content."""


class CacheError(MzseekError):
    """A prepared folder that is incomplete, changed, or of another version."""


class DatabaseError(MzseekError):
    """A molecule database that is missing or damaged, or a query that it cannot answer."""


class LibraryError(MzseekError):
    """A spectral library that is missing or damaged, or a search in it that cannot be made."""


class SimilarityError(MzseekError, ValueError):
    """Rows that cannot be compared, or a similarity that is unknown."""


class MetricError(MzseekError, ValueError):
    """Scores, labels, bits or options from which no metric can be computed."""


class DecisionError(MzseekError, ValueError):
    """Candidates, probabilities or options from which no decision can be made."""


class LossError(MzseekError):
    """Arguments of a loss that do not fit together, or a loss that is unknown."""


class ModelError(MzseekError):
    """A model file or part that is unknown, damaged, or does not fit its data."""


class RunError(MzseekError):
    """A run folder that is missing, incomplete, or made with other options or data."""


class EvidenceError(MzseekError):
    """A channel that is unknown, damaged or has no score, or a fit that would leak the truth."""


class BundleError(MzseekError):
    """A model bundle that is missing, damaged or of another version, or cannot be made."""


class ExperimentError(MzseekError):
    """A description of an experiment that is damaged, or names something that does not exist."""


class AnnotationError(MzseekError):
    """A feature that cannot be annotated, or options of annotation that do not fit together."""


class ServerError(MzseekError):
    """Settings with which the web server cannot or must not run, or a server that has refused."""


# The package that is imported, and the extra that installs it.
EXTRAS = {
    "torch": "train",
    "matplotlib": "report",
    "yaml": "report",
    "duckdb": "sql",
    "ray": "cluster",
    "pyopenms": "hmdb",
    "myopic_mces": "mces",
    "pulp": "mces",
    "fastapi": "web",
    "uvicorn": "web",
    "python_multipart": "web",
}


class MissingExtra(MzseekError, ImportError):
    """An optional dependency that is not installed; the message says how to install it."""


def is_installed(package: str) -> bool:
    """Whether a package is installed; it is not imported."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it has been put among the loaded modules by hand
        return True


def require(package: str, what: str) -> None:
    """Raise `MissingExtra` if a package of `EXTRAS`, needed for ``what``, is not installed."""
    if not is_installed(package):
        raise MissingExtra(f"{what} needs {package}: pip install 'mzseek[{EXTRAS[package]}]'")
