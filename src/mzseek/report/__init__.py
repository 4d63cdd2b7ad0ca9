"""Figures and pages for people."""

from mzseek.report.dataset_page import write_dataset_page

__all__ = ["write_dataset_page"]
