"""Matched lists: decoys that a scorer which never sees the spectrum cannot tell from the truth."""
