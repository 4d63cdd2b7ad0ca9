"""Figures and HTML pages."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mzseek.report.dataset_page import write_dataset_page
    from mzseek.report.runs_page import write_runs_page
    from mzseek.report.shown import Shown

__all__ = ["Shown", "write_dataset_page", "write_runs_page"]


def __getattr__(name: str) -> Any:
    """Pages load RDKit and matplotlib, which the drawing of a spectrum can do without."""
    if name == "write_dataset_page":
        from mzseek.report.dataset_page import write_dataset_page

        return write_dataset_page
    if name == "write_runs_page":
        from mzseek.report.runs_page import write_runs_page

        return write_runs_page
    if name == "Shown":
        from mzseek.report.shown import Shown

        return Shown
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
