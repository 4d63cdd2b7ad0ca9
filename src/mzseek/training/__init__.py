"""Training: the loop, checkpoints by metric, resuming, predictions, and evaluation of runs."""
