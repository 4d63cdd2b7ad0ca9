"""Chemistry: molecules parsed with a reason for each failure, masses, adducts, fingerprints."""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_package

if TYPE_CHECKING:
    from mzseek.chem.public import *  # noqa: F403

__getattr__ = lazy_package("mzseek.chem")
