"""Data sets in a notebook."""

from collections.abc import Mapping
from pathlib import Path

from mzseek.datasets import DatasetFiles, find_dataset
from mzseek.files import StrPath
from mzseek.notebook.shown import told
from mzseek.prepared import Prepared, PrepareOptions
from mzseek.prepared import prepare as write_prepared


def prepare(
    data: StrPath,
    out: StrPath,
    candidates: Mapping[str, StrPath] | None = None,
    *,
    fingerprint: str = "morgan2",
    jobs: int | None = None,
    watch: bool = True,
) -> Prepared:
    """Turn a data set into the sparse arrays that training reads; done once.

    Parameters
    ----------
    data : path
        Folder of a data set, or its table of spectra.
    out : path
        Folder to make. One that was made from the same data with the same options is taken as it
        is.
    candidates : mapping of str to path, optional
        Candidate file of each retrieval setting, beside a table; a folder has its own.
    fingerprint : str
        One of `mzseek.chem.FINGERPRINTS`.
    jobs : int, optional
        Processes; all cores by default.
    watch : bool
        Show how far it is.

    Returns
    -------
    Prepared

    Examples
    --------
    >>> prepare("set", "prepared")  # doctest: +SKIP
    """
    data = Path(data)
    files = find_dataset(data) if data.is_dir() or not data.exists() else DatasetFiles(data, {})
    lists = {**files.candidates, **(candidates or {})}
    options = PrepareOptions(fingerprint=fingerprint)
    with told(watch) as progress:
        return write_prepared(files.spectra, lists, out, options, jobs=jobs, progress=progress)[0]
