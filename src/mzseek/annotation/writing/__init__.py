"""Writing answers: tables, JSON, mzTab-M, networks, tables of features; one answer at a time."""

from mzseek.annotation.writing.output import Output, is_folder
from mzseek.annotation.writing.registry import FILES, SUFFIXES
from mzseek.annotation.writing.spool import Settings, Writer, ranked

__all__ = ["FILES", "SUFFIXES", "Output", "Settings", "Writer", "is_folder", "ranked"]
