"""Features that tables name: those that no file has are counted and named."""

from mzseek.annotation.query import Named


def test_what_is_met_is_struck_off(make_feature):
    named = Named({"a": ["1", "2"], "b": ["2", "3"]})
    features = [make_feature("2"), make_feature("9")]
    assert list(named.meet(features)) == features
    assert named.facts() == {
        "a": {"named": 2, "not_met": 1, "first": ["1"], "ambiguous": 0, "first_ambiguous": []},
        "b": {"named": 2, "not_met": 1, "first": ["3"], "ambiguous": 0, "first_ambiguous": []},
    }
    assert named.lines() == [
        "a: 1 of its 2 features is not among the spectra: '1'",
        "b: 1 of its 2 features is not among the spectra: '3'",
    ]
    assert named
    list(named.meet([make_feature("1"), make_feature("3")]))
    assert not named
    assert named.lines() == []


def test_only_the_first_are_shown_in_the_order_of_the_table():
    named = Named({"a": [str(at) for at in range(9, 0, -1)] + ["x" * 100]})
    (line,) = named.lines()
    assert line.endswith("'9', '8', '7', '6', '5', …")
    assert "10 of its 10 features are" in line
    assert len(Named({"a": ["x" * 100]}).lines()[0]) < 100


def test_no_tables():
    assert not Named({})
    assert (Named({}).facts(), Named({}).lines()) == ({}, [])


def test_ids_of_several_files_are_named_with_their_file(make_feature):
    one, two = (
        make_feature(f"{file}:1", id="1", names=(f"{file}:1",), where=f"d/{file}")
        for file in ("a.mgf", "b.mgf")
    )
    named = Named({"mine.csv": ["1", "2"], "the table of formulas": ["b.mgf:1"]})
    list(named.meet([one, two]))
    assert named.facts() == {
        "mine.csv": {
            "named": 2, "not_met": 1, "first": ["2"], "ambiguous": 1, "first_ambiguous": ["1"],
        },
        "the table of formulas": {
            "named": 1, "not_met": 0, "first": [], "ambiguous": 0, "first_ambiguous": [],
        },
    }  # fmt: skip
    assert named.renamed() == {
        "count": 2,
        "first": [{"id": "1", "name": "a.mgf:1", "file": "d/a.mgf"},
                  {"id": "1", "name": "b.mgf:1", "file": "d/b.mgf"}],
    }  # fmt: skip
    assert named.lines() == [
        "2 features have ids that other features have, too, and were renamed: '1' is 'a.mgf:1', "
        "'1' is 'b.mgf:1'",
        "mine.csv: 1 of its 2 features is not among the spectra: '2'",
        "mine.csv: 1 of its 2 features is in several files, and not used: instead of '1' write "
        "'a.mgf:1' or 'b.mgf:1'",
    ]
