import pickle
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client

import pytest

from mzseek.parallel import engine as module
from mzseek.parallel.engine import LocalChannel, MessageServer, Sender, dispatch


class Kept(Sender):
    """Keeps what it would send."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def send(self, message: str) -> None:
        self.sent.append(message)

    def close(self) -> None:
        pass


def heard(post: MessageServer) -> tuple[list[tuple], list[str]]:
    told: list[tuple] = []
    lines: list[str] = []
    post.deliver(lambda *facts: told.append(facts), lines.append)
    return told, lines


def test_here_whoever_watches_is_called_at_once() -> None:
    told: list[object] = []
    channel = LocalChannel(lambda *facts: told.append(facts), told.append)
    channel.progress("training", 3, 10)
    channel.say("warning: slow")
    assert told == [("training", 3, 10), "warning: slow"]
    assert not channel.is_elsewhere


def test_messages_come_out_as_they_went_in() -> None:
    channel, told, lines = Kept(), [], []
    channel.progress('über, "run"\n', 3, None)
    channel.say("line")
    for message in channel.sent:
        dispatch(message, lambda *facts: told.append(facts), lines.append)
    assert (told, lines) == ([('über, "run"\n', 3, None)], ["line"])
    assert channel.is_elsewhere


def test_a_stage_is_told_of_now_and_then_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    channel, told = Kept(), []
    for done in range(1, 101):
        channel.progress("a", done, 100)
        channel.progress("b", done)
        clock[0] += 0.001
    channel.progress("a", 100, 100)
    for message in channel.sent:
        dispatch(message, lambda *facts: told.append(facts), print)
    assert told == [("a", 1, 100), ("b", 1, None), ("a", 100, 100), ("a", 100, 100)]


def test_all_that_was_told_is_there_when_the_worker_has_closed() -> None:
    with MessageServer() as post:
        channel = pickle.loads(pickle.dumps(post.channel()))
        for number in range(500):
            channel.say(str(number))
        channel.close()
        assert heard(post) == ([], [str(number) for number in range(500)])
        channel.progress("again", 1, 1)  # a worker is used again
        channel.close()
        assert heard(post) == ([("again", 1, 1)], [])
        assert heard(post) == ([], [])


def test_several_tell_at_once() -> None:
    def tell(name: str) -> None:
        channel = post.channel()
        for number in range(100):
            channel.say(f"{name}{number}")
        channel.close()

    with MessageServer() as post:
        threads = [threading.Thread(target=tell, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = heard(post)[1]
    assert len(lines) == 400
    for name in "abcd":
        assert [line for line in lines if line[0] == name] == [f"{name}{n}" for n in range(100)]


def test_where_nobody_listens_the_work_goes_on() -> None:
    with MessageServer() as post:
        channel, late = post.channel(), post.channel()
        channel.say("heard")
    began = time.monotonic()
    for each in (channel, late):
        for _ in range(3):
            each.say("nobody waits for it")  # and nothing is raised
        each.close()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("key", [b"", b"guess", bytes(32), bytes(1000)])
def test_strangers_are_not_heard_and_keep_nobody_from_telling(key: bytes) -> None:
    with MessageServer() as post:
        silent = Client(post.channel()._address)
        with Client(post.channel()._address) as stranger:
            stranger.send_bytes(key)
            with suppress(OSError):
                stranger.send_bytes(b'["say", "mine"]')
            channel = post.channel()
            channel.say("own")
            channel.close()
            time.sleep(0.1)
            assert heard(post) == ([], ["own"])
        silent.close()


def test_no_thread_stays_behind() -> None:
    before = threading.active_count()
    with MessageServer() as post:
        channel = post.channel()
        channel.say("a")
        channel.close()
    until = time.monotonic() + 5
    while threading.active_count() > before:
        assert time.monotonic() < until
        time.sleep(0.01)
