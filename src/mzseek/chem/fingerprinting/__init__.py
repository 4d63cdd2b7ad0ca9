"""Fingerprints: a registry of kinds, computed in batches to sparse or packed rows."""

from typing import TYPE_CHECKING

from mzseek.registry import lazy_room

if TYPE_CHECKING:
    from mzseek.chem.fingerprinting.public import *  # noqa: F403

__getattr__ = lazy_room("mzseek.chem.fingerprinting")
