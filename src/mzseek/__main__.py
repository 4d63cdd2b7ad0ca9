"""``python -m mzseek``: the command line."""

from mzseek.cli import main

if __name__ == "__main__":
    main()
