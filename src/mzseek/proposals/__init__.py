"""Proposed structures: molecules that no database holds, by small edits of known ones."""
