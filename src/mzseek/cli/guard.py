"""Whatever happens in a command ends in one line and an exit status."""

import os
import sys
from typing import NoReturn

from mzseek.cli.interrupt import Interrupts, end_at_once, stop_children, tell_interrupted
from mzseek.cli.output import clean
from mzseek.errors import MzseekError

BAD_INPUT = 2
UNFORESEEN = 70  # as EX_SOFTWARE of sysexits.h
_MOST = 2000  # characters of a line


def run_and_exit() -> NoReturn:
    """Run the command that ``sys.argv`` names, and end this process."""
    status, was_interrupted = run_command()
    if was_interrupted:
        end_at_once(status)  # all is cleaned up; libraries such as torch take seconds to take leave
    sys.exit(status)


def run_command() -> tuple[int, bool]:
    """Run the command that ``sys.argv`` names.

    Returns
    -------
    status : int
    was_interrupted : bool
    """
    if hasattr(sys.stdout, "reconfigure"):  # a name that the terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")
    with Interrupts() as interrupts:
        try:
            status = _outcome()
            interrupts.stop()
        except KeyboardInterrupt:
            interrupts.stop()
            status = 130
        if interrupts.received is not None:
            status = 128 + interrupts.received
        was_interrupted = interrupts.received is not None or status == 130
        if was_interrupted:
            stop_children()
            tell_interrupted()
    return status, was_interrupted


def _outcome() -> int:
    """Exit status of the command; all that can be said has been said."""
    try:
        from mzseek.cli.app import app

        status = app(standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except MzseekError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return _reader_has_gone()
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")
    except SystemExit as stop:
        # Of typer's: the reader of the output has gone.
        return _reader_has_gone() if stop.code == 1 else int(stop.code or 0)
    except Exception as error:
        if hasattr(error, "format_message"):  # of click's, which typer may bring along itself
            return _misused(error)
        # An end of file inside the work is nobody's wish to abort.
        cause = error.__cause__ if type(error).__name__ == "Abort" else None
        return _unforeseen(cause or error)


def _refuse(reason: str) -> int:
    print(f"mzseek: {one_line(reason)}", file=sys.stderr)
    return BAD_INPUT


def _misused(error: "Exception") -> int:
    """Options that are missing, unknown or out of range."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help(), file=sys.stderr)
        return BAD_INPUT
    reason = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    hint = f"; see `{context.command_path} --help`" if context is not None else ""
    return _refuse(reason + hint)


def _reader_has_gone() -> int:
    """Python would complain once more when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _unforeseen(error: BaseException) -> int:
    from mzseek.cli.unforeseen import keep_report, report_of

    what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    report = report_of(error)
    if os.environ.get("MZSEEK_TRACEBACK"):
        print(report, file=sys.stderr)
    try:
        kept = f"the full report is kept in {keep_report(report)}"
    except OSError:
        kept = "with MZSEEK_TRACEBACK=1 the same command shows the full report"
    print(f"mzseek: something unforeseen happened ({what}); {kept}", file=sys.stderr)
    return UNFORESEEN


def one_line(text: str) -> str:
    r"""Text on one line, of bounded length, that does nothing to the terminal.

    Examples
    --------
    >>> one_line("a name\n  with \x1b[31mcolours")
    'a name with �[31mcolours'
    """
    line = clean(" ".join(text.split()))
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"
