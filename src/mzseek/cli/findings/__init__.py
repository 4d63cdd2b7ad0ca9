"""What `mzseek evaluate` finds of a run, and how people read it."""
