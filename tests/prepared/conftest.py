"""The small data set of real molecules and made-up peaks."""

from ..datasets.conftest import write_set

__all__ = ["write_set"]
