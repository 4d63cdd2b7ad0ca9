import json

import numpy as np
import pytest

from mzseek.core.errors import CacheError
from mzseek.datasets.layout import FIELDS, form_of, is_for_training, names_of
from mzseek.datasets.prepared import Prepared
from mzseek.io.manifest import check_fields


def test_every_array_of_a_folder_has_its_form(small: Prepared) -> None:
    on_disk = {path.name.removesuffix(".npy") for path in small.folder.glob("*.npy")}
    assert set(names_of(small.manifest)) == on_disk
    for name in on_disk:
        form, array = form_of(name), np.load(small.folder / f"{name}.npy")
        assert array.dtype == np.dtype(form.dtype)
        assert form.length(small.manifest) in (None, len(array))
        if form.within and len(array):
            low, end = form.within(small.manifest)
            assert low <= array.min() <= array.max() < end
        if form.points_into:
            assert array[-1] == form.points_into(small.manifest)


def test_names_of_lists_may_hold_dots(small: Prepared) -> None:
    manifest = json.loads(json.dumps(small.manifest))
    manifest["candidates"]["a.b"] = manifest["candidates"]["mass"]
    assert "candidates.a.b.list_of" in names_of(manifest)
    assert form_of("candidates.a.b.indptr").length(manifest) == (
        manifest["candidates"]["mass"]["lists"] + 1
    )


@pytest.mark.parametrize("negatives", [None, {}, {"by": 3}, "mass"])
def test_what_says_that_lists_are_negatives_is_checked(small: Prepared, negatives) -> None:
    manifest = json.loads(json.dumps(small.manifest))
    manifest["candidates"]["mass"]["negatives"] = negatives
    with pytest.raises(CacheError, match=r"candidates\.mass\.negatives"):
        check_fields(manifest, FIELDS, "manifest.json", CacheError)


def test_lists_are_for_training_by_how_they_were_made_alone() -> None:
    assert is_for_training({"negatives": {"by": "formula"}})
    assert not is_for_training({"lists": 3})
