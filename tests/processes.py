"""Real processes that begin at once: forked from one that has imported what commands need."""

import multiprocessing
import os
import signal
from contextlib import suppress
from multiprocessing.connection import Connection

_CONTEXT = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
if hasattr(os, "fork"):
    _CONTEXT.set_forkserver_preload(
        [
            "mzseek.cli.app", "mzseek.cli.options", "mzseek.database.build",
            "mzseek.datasets.build", "mzseek.datasets.prepare", "mzseek.evaluation.evaluate",
            "mzseek.evidence.fitting", "mzseek.export.job", "mzseek.export.run_pages",
            "mzseek.models.encoders", "mzseek.training.train",
            "torch._dynamo",  # imported by the first optimizer
        ]
    )  # fmt: skip
_BEGIN = """
import os, sys
os.setsid()
for number, end in enumerate(ends, 1):
    os.dup2(end.fileno(), number)
    end.close()
sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))
sys.argv[1:] = arguments
try:
    exec(compile(code, "code", "exec"), {"__name__": "__main__"})
finally:
    sys.modules["mzseek.parallel.processes"].stop_workers()  # as the end of an interpreter does
"""
MZSEEK = "from mzseek.cli import main; main()"


class Forked:
    """A process, detached by `setsid`, that runs Python code; used as `subprocess.Popen` is.

    It saves the seconds that a new interpreter takes to import. What is tested of the start itself
    (signals before the imports are done, libraries that must not be loaded) needs a new one.
    """

    def __init__(self, code: str, *arguments: str) -> None:
        pipes = [_CONTEXT.Pipe(duplex=False) for _ in range(2)]
        names = {"code": code, "arguments": arguments, "ends": [end for _, end in pipes]}
        self.process = _CONTEXT.Process(target=exec, args=(_BEGIN, names))
        self.process.start()
        for _, end in pipes:
            end.close()
        self.stdout, self.stderr = (self._stream(end) for end, _ in pipes)

    @staticmethod
    def _stream(end: Connection):
        stream = os.fdopen(os.dup(end.fileno()))
        end.close()
        return stream

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        """Status, or None where it has not ended."""
        return self.process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it and all that it has started; nothing where it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Output and errors, when it has ended."""
        self.process.join(timeout)
        assert self.process.exitcode is not None, "has not ended"
        said = self.stdout.read(), self.stderr.read()
        self.stdout.close()
        self.stderr.close()
        return said
