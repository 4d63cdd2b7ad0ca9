"""Pairs of a peak and its explanation: what is read of them, and a small network over them."""
