"""The command line: parse, call, show."""

import os
import sys

from mzseek.cli.app import app
from mzseek.errors import MzseekError


def main() -> None:
    """Entry point of ``mzseek``: errors that the user can mend are one line and exit status 2."""
    try:
        app()
    except MzseekError as error:
        print(f"mzseek: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read the output has gone; Python would complain once more when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        print(f"mzseek: {error.filename or 'system'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("mzseek: interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["app", "main"]
