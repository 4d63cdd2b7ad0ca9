from mzseek.parallel import Log, Progress, no_log, silent


def test_nobody_has_to_watch() -> None:
    progress: Progress = silent
    say: Log = no_log
    assert progress("reading", 3) is None
    assert progress("reading", 3, 5) is None
    assert say("a line") is None
