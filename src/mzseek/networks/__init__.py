"""Trained networks applied by numpy and scipy: from their weights and their description."""

from mzseek.networks.network import Network

__all__ = ["Network"]
