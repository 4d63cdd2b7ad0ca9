"""Write annotations and results: tables, JSON, mzTab-M, GraphML, feature tables, HTML."""
