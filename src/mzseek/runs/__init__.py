"""Runs: their folders, checkpoints and predictions; all that is needed to apply a model."""
