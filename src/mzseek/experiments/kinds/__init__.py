"""Kinds of experiments: what each trains, and how its cells are measured. One file each."""
