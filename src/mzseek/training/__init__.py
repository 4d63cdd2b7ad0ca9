"""Training: the loop, its optimiser, the order of spectra, resuming."""
