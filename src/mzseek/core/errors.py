"""Exceptions that mzseek raises at its boundaries, and messages about missing extras."""

from importlib.util import find_spec


class MzseekError(Exception):
    """An error that the user can fix; the message says how."""


class InputError(MzseekError):
    """A file (``where``) that is missing, empty, broken or of another kind, and the ``reason``."""

    def __init__(self, where: object, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = str(where)
        self.reason = reason

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        """Pickle both parts, so that it can be raised again in another process."""
        return type(self), (self.where, self.reason)


class WriteError(InputError):
    """A file or folder that cannot be made or written: no room, no right, something in its way."""


class BusyError(MzseekError):
    """An output that another process is writing."""


class KilledError(MzseekError):
    """A worker process that was killed from outside, by a user or for lack of memory."""


class SpectrumError(MzseekError):
    """A record that is no usable tandem spectrum."""


class MoleculeError(MzseekError):
    """A molecule that cannot be parsed, or that lies outside what mzseek handles."""


class AdductError(MzseekError):
    """An adduct that is malformed, unknown, or impossible."""


class DatasetError(MzseekError):
    """A data set that lacks a column, a file, or a consistent content."""


class CacheError(MzseekError):
    """A prepared folder that is incomplete, changed, or of another version."""


class DatabaseError(MzseekError):
    """A molecule database that is missing, damaged, or asked for what it does not have."""


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
    """A description of an experiment that is damaged, or asks for what is not there."""


class AnnotationError(MzseekError):
    """A feature that cannot be annotated, or options of annotation that do not fit together."""


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
    "tensorboard": "tensorboard",
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
