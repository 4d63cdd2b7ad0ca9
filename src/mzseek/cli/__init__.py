"""The command line: parse, call, show."""

import os


def main() -> None:
    """Entry point of ``mzseek``; docs/command-line.md lists the exit statuses."""
    # typer parses options with pydantic, which would look through all installed packages first.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from mzseek.cli.errors import run_and_exit

    run_and_exit()


__all__ = ["main"]
