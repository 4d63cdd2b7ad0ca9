"""What a search has found, as a table."""

import numpy as np

from mzseek.library import Library


def test_a_match_is_shown_with_all_that_is_known_of_it(library: Library, spectra) -> None:
    found = library.search(spectra[2:4], top=4)
    rows = list(found.to_table())
    assert len(rows) == len(found) == 8
    assert [row["query"] for row in rows] == ["s2"] * 4 + ["s3"] * 4
    assert [row["rank"] for row in rows] == [1, 2, 3, 4] * 2
    first = rows[4]
    assert (first["identifier"], first["license"], first["source"]) == (
        "s3",
        "CC BY",
        "reference.mgf",
    )
    assert first["formula"] == "C8H10N4O2"
    assert first["mass_difference"] == 0
    np.testing.assert_allclose(first["score"], 1)


def test_nothing_found_is_an_empty_table(library: Library, spectra) -> None:
    found = library.search(spectra[:1], among=np.zeros(len(library), bool))
    assert len(found) == 0
    assert list(found.to_table()) == []
