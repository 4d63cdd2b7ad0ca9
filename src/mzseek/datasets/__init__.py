"""Data sets: get, build, split and check them; prepared arrays and batches."""
