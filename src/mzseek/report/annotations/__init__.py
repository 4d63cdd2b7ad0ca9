"""The page about annotated features: a table, and the reasons for each answer."""

from mzseek.report.annotations.facts import Facts
from mzseek.report.annotations.write import write_report

__all__ = ["Facts", "write_report"]
