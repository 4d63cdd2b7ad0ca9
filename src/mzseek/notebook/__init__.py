"""What ``import mzseek`` offers: the work of the commands, with results that a notebook shows."""
