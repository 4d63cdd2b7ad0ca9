"""The model of compound classes in a bundle: two files of its own, which a bundle may lack."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mzseek.bundle.arrays import Array
from mzseek.classes.formula import ELEMENTS
from mzseek.classes.model import SOURCES, ClassModel, check_weights
from mzseek.classes.structure import KINDS, StructureModel
from mzseek.classes.taxonomy import LEVELS, Taxonomy, padded
from mzseek.core.errors import BundleError
from mzseek.io.manifest import check_fields

CLASSES, CLASS_ARRAYS = "classes.json", "classes.bin"
_STRUCTURE = "structure/"  # prefix of arrays
_FIELDS = {
    "levels": [str],
    "sources": [str],
    "fingerprints": [str],
    "elements": [str],
    "lineages": [[str]],
    "metadata": dict,
}
_EXPECTED = {
    "levels": list(LEVELS),
    "sources": list(SOURCES),
    "fingerprints": list(KINDS),
    "elements": list(ELEMENTS),
}


def pack_classes(model: ClassModel) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a model as plain data, and arrays by name."""
    fields = {
        **_EXPECTED,
        "lineages": [list(lineage) for lineage in model.tree.lineages],
        "metadata": dict(model.metadata),
    }
    arrays: dict[str, Array] = {
        "keys": model.keys,
        "lineage": model.lineage,
        "compositions": model.compositions,
        "weights": model.weights,
    }
    arrays |= {f"{_STRUCTURE}{name}": array for name, array in model.structure.arrays().items()}
    return fields, arrays


def open_classes(
    fields: Mapping[str, Any], arrays: Mapping[str, Array], where: object
) -> ClassModel:
    """Open what `pack_classes` has packed.

    Raises
    ------
    BundleError
        Something is missing, does not fit together, or was written by another version of mzseek.
    """
    check_fields(fields, _FIELDS, where, BundleError)
    for name, expected in _EXPECTED.items():
        if fields[name] != expected:
            raise BundleError(
                f"{where}: {name} are {str(fields[name])[:60]}, expected {expected}; make it again "
                "with `mzseek model classes`"
            )
    lineages = [tuple(lineage) for lineage in fields["lineages"]]
    if padded(()) not in lineages or {len(names) for names in lineages} != {len(LEVELS)}:
        raise BundleError(f"{where}: lineages are not of {len(LEVELS)} names each")
    if sorted(set(lineages)) != lineages:
        raise BundleError(f"{where}: lineages are not sorted, each once")
    tree = Taxonomy(lineages)
    try:
        keys, lineage = arrays["keys"], np.asarray(arrays["lineage"], np.int64)
        compositions = np.asarray(arrays["compositions"], np.int64)
        weights = check_weights(arrays["weights"], where)
    except KeyError as error:
        raise BundleError(f"{where}: {error.args[0]} is missing") from None
    shapes = lineage.shape == keys.shape and compositions.shape == (len(keys), len(ELEMENTS))
    if not shapes or (len(lineage) and not 0 <= lineage.min() <= lineage.max() < len(tree)):
        raise BundleError(f"{where}: labelled molecules do not fit the tree of classes")
    of_structure = {
        name.removeprefix(_STRUCTURE): array
        for name, array in arrays.items()
        if name.startswith(_STRUCTURE)
    }
    structure = StructureModel.from_arrays(of_structure, tree, where)
    return ClassModel(tree, keys, lineage, compositions, structure, weights, fields["metadata"])
