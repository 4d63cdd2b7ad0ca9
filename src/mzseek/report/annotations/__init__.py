"""The page about annotated features: a table, and the reasons for each answer."""

from mzseek.report.annotations.facts import Facts
from mzseek.report.annotations.write import report_writers, write_report

__all__ = ["Facts", "report_writers", "write_report"]
