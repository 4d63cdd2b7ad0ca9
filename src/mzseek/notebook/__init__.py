"""What ``import mzseek as mz`` offers: the same work as the commands, with results that show.

Nothing is computed here. Each name calls the room that does the work, takes paths as text or as
`Path`, and gives back what a notebook can show.
"""
