"""The optimiser: Adam with clipping, and the update that it repeats."""

from mzseek.training.optimizer.clipped import ClippedAdam

__all__ = ["ClippedAdam"]
