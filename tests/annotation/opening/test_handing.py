"""What is handed to other processes comes back as it was."""

import numpy as np
import pytest

from mzseek.annotation.shared_state import SharedState, extend_channels
from mzseek.annotation.sources import file_source
from mzseek.library import Library


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("feature,smiles,name\n1,CCO,ethanol\n2,CCC,\n2,CCO,ethanol\n")
    return file_source(path, [])


def test_states_and_candidates_come_back_bit_by_bit(bundle, make_library, source, tmp_path):
    row = ("CCOC(=O)c1ccc(N)cc1OCCCl", "[M+H]+", [60.05, 77.0386], [0.2, 1.0])
    fitted, added = extend_channels(bundle.fitted, [Library.open(make_library([row]))])
    handed = SharedState(tmp_path)
    handed.save(source, fitted, added)
    again, said = handed.extend(bundle.fitted)
    assert said == added
    for one, two in zip(fitted.states, again.states, strict=True):
        for name in one.arrays:
            assert np.array_equal(one.arrays[name], two.arrays[name])
            assert one.arrays[name].dtype == two.arrays[name].dtype
        assert np.array_equal(one.inchikey14, two.inchikey14)
    assert handed.source().of_feature("2") == source.of_feature("2")


def test_nothing_is_handed_where_there_is_nothing(bundle, tmp_path):
    handed = SharedState(tmp_path)
    handed.save(None, bundle.fitted, {})
    assert list(tmp_path.iterdir()) == []
    assert handed.extend(bundle.fitted) == (bundle.fitted, {})
