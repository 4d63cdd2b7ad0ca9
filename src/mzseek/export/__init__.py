"""Write annotations and results: tables, JSON, mzTab-M, GraphML, feature tables, HTML.

Each output format is one module with a `Writer`, and one line in `FILES` or `SUFFIXES`.
"""

from typing import TYPE_CHECKING

from mzseek.core.registry import LazyRegistry

if TYPE_CHECKING:
    from mzseek.export.writer import Writer

# Files of an output folder.
FILES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        "summary.tsv": "mzseek.export.tables:Summary",
        "candidates.tsv": "mzseek.export.tables:Candidates",
        "peaks.tsv": "mzseek.export.tables:Peaks",
        "report.html": "mzseek.export.report:ReportWriter",
        "proposals.tsv": "mzseek.export.proposals:Proposals",  # where structures are proposed
    }
)
# Single files, by suffix.
SUFFIXES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        ".tsv": "mzseek.export.tables:Candidates",
        ".json": "mzseek.export.json_array:JsonArray",
        ".html": "mzseek.export.report:ReportWriter",
        ".mztab": "mzseek.export.mztab:MzTab",
        ".graphml": "mzseek.export.graphml:GraphMl",
        ".csv": "mzseek.export.ranking:Ranking",  # with --features as .txt
        ".txt": "mzseek.export.feature_tables:JoinedTable",
    }
)
