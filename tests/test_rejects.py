from mzseek.rejects import grouped, reporter


def test_lists_and_callables() -> None:
    kept: list[tuple[str, str]] = []
    reporter(kept)("a", "b")
    reporter(lambda where, reason: kept.append((reason, where)))("a", "b")
    assert kept == [("a", "b"), ("b", "a")]


def test_groups_do_not_mix_what_varies_with_what_is_wrong() -> None:
    rejects = [(f"file: record {n}", f"is a duplicate (of MSBNK-{n})") for n in range(5)]
    rejects += [("x", "precursor disagrees with structure and adduct (857.3, expected 708.2)")]
    rejects += [("y", "precursor disagrees with structure and adduct (1.0, expected 2.0)")]
    rejects += [("z", "'odd' is not a number")]
    groups = grouped(rejects)
    assert [(g.kind, g.count) for g in groups] == [
        ("is a duplicate", 5),
        ("precursor disagrees with structure and adduct", 2),
        ("'odd' is not a number", 1),
    ]
    assert groups[0].where == "file: record 0"
