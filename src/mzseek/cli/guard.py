"""Whatever happens in a command ends in one line and an exit status."""

import contextlib
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
    import typer

    from mzseek.cli.app import app

    try:
        status = app(prog_name="mzseek", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except MzseekError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return _reader_has_gone()
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # of typer's
            return _reader_has_gone()
        return stop.code if isinstance(stop.code, int) else _refuse(str(stop.code or "has ended"))
    except Exception as error:
        if hasattr(error, "format_message"):  # of click's, which typer may bring along itself
            return _misused(error)
        abandoned = isinstance(error, typer.Abort) and error.__cause__ is not None
        return _unforeseen(error.__cause__ or error if abandoned else error)


def _refuse(reason: str) -> int:
    print(f"mzseek: {one_line(reason)}", file=sys.stderr)
    return BAD_INPUT


def _misused(error: Exception) -> int:
    """Options that are missing, unknown or out of range."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help(), file=sys.stderr)
        return BAD_INPUT
    from mzseek.cli.app import COMMANDS

    reason = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    named = next((word for word in sys.argv[1:2] if word in COMMANDS), "")
    path = context.command_path if context is not None else f"mzseek {named}".rstrip()
    return _refuse(f"{reason}; see `{path} --help`")


def _reader_has_gone() -> int:
    """Python would complain once more when it flushes."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _unforeseen(error: BaseException) -> int:
    what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    kept = "with MZSEEK_TRACEBACK=1 the same command shows the full report"
    with contextlib.suppress(OSError, MemoryError):  # what went wrong may go wrong once more
        from mzseek.cli.unforeseen import keep_report, report_of

        report = report_of(error)
        if os.environ.get("MZSEEK_TRACEBACK"):
            print(report, file=sys.stderr)
        kept = f"the full report is kept in {clean(keep_report(report))}"
    print(f"mzseek: something unforeseen happened ({what}); {kept}", file=sys.stderr)
    return UNFORESEEN


def one_line(text: str) -> str:
    r"""Text on one line, of bounded length, that does nothing to the terminal.

    Examples
    --------
    >>> one_line("a name\n  with \x1b[31mcolours")
    'a name with �[31mcolours'
    """
    line = clean(" ".join(line.strip() for line in text.splitlines()))
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"
