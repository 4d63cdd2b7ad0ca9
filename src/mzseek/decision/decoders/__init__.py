"""Utilities, one file each: what a decision is worth, and the Bayes decision over all fingerprints.

A decoder takes a checked `mzseek.decision.distributions.Distribution` and returns the set bits of
the decision as a 0/1 array, its expected utility, and an upper bound of what any decision can
reach, which is the same number where the decoder is exact.
"""
