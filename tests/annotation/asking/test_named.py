"""Features that tables name: those that no file has are counted and named."""

from mzseek.annotation.asking.named import Named


def test_what_is_met_is_struck_off(make_feature):
    named = Named({"a": ["1", "2"], "b": ["2", "3"]})
    features = [make_feature("2"), make_feature("9")]
    assert list(named.meet(features)) == features
    assert named.facts() == {
        "a": {"named": 2, "not_met": 1, "first": ["1"]},
        "b": {"named": 2, "not_met": 1, "first": ["3"]},
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
