"""Figures and HTML pages."""

from mzseek.report.dataset_page import write_dataset_page
from mzseek.report.runs_page import write_runs_page

__all__ = ["write_dataset_page", "write_runs_page"]
