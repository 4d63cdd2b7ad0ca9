"""Compound classes: ChemOnt superclass, class and subclass of the molecule of a feature."""

from mzseek.classes.posterior import ClassProbability, CompoundClass
from mzseek.classes.taxonomy import LEVELS, Taxonomy

__all__ = ["LEVELS", "ClassProbability", "CompoundClass", "Taxonomy"]
