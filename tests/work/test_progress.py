from mzseek.parallel import Progress, Say, silent, unheard


def test_nobody_has_to_watch() -> None:
    progress: Progress = silent
    say: Say = unheard
    assert progress("reading", 3) is None
    assert progress("reading", 3, 5) is None
    assert say("a line") is None
