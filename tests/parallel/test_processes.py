import os
import signal
import time

import pytest

from mzseek.chem import standardise
from mzseek.parallel import LocalEngine
from mzseek.parallel.processes import stop_workers


def test_processes_leave_ctrl_c_to_the_one_that_they_work_for() -> None:
    def blocked(_: int) -> set[int]:
        from mzseek.chem import standardise

        standardise("CC(=O)[O-].[Na+]")  # RDKit puts a handler of its own in place
        os.kill(os.getpid(), signal.SIGINT)
        return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}

    assert list(LocalEngine(2).results(blocked, range(4))) == [{signal.SIGINT}] * 4


def test_signals_that_are_blocked_stay_so_while_processes_are_started() -> None:
    stop_workers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        list(LocalEngine(2).results(abs, [-1, 2, -3]))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def large(size: int) -> bytes:
    return b"x" * size


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_workers_end_in_the_middle_of_a_result(after: float) -> None:
    """Half of it is in the pipe then, and nothing waits for the rest."""
    results = LocalEngine(2).results(large, [100_000_000] * 8)
    assert len(next(results)) == 100_000_000
    time.sleep(after)
    begun = time.monotonic()
    stop_workers()
    assert time.monotonic() - begun < 2
    assert list(LocalEngine(2).results(abs, [-1, 2, -3])) == [1, 2, 3]


@pytest.mark.parametrize("after", [0.0, 0.1])
def test_workers_end_in_the_middle_of_what_they_are_given(after: float) -> None:
    results = LocalEngine(2).results(len, [b"x" * 30_000_000] * 40)
    assert next(results) == 30_000_000
    time.sleep(after)
    begun = time.monotonic()
    stop_workers()
    assert time.monotonic() - begun < 2
    assert list(LocalEngine(2).results(abs, [-1, 2, -3])) == [1, 2, 3]


def test_work_leaves_no_handler_of_signals_behind() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    list(LocalEngine(1).results(standardise, ["CC(=O)[O-].[Na+]", "C[NH3+].[Cl-]"]))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(KeyboardInterrupt):  # not lost to the handler that RDKit has put in place
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
