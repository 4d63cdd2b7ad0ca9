"""Small JSON files that mzseek writes itself, read again with whatever may have befallen them."""

import json
from pathlib import Path
from typing import Any

# Far more than any manifest; a file of gigabytes in its place must not fill the memory.
MOST_BYTES = 256 * 1024 * 1024


def read_object(path: Path, error: type[Exception], remedy: str = "") -> dict[str, Any]:
    """The JSON object in a file.

    Parameters
    ----------
    path : Path
    error : type of exception
        What is raised, in the words of the room that the file belongs to.
    remedy : str
        What to do about it, such as "build it again".

    Raises
    ------
    error
        It is missing, damaged, nested beyond reason, or holds something else than an object.
    """
    hint = f"; {remedy}" if remedy else ""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise error(f"{path}: has {size:,} bytes, expected at most {MOST_BYTES:,}{hint}")
        found = json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError as missing:
        raise error(f"{path}: is missing{hint}") from missing
    except OSError as unreadable:
        raise error(f"{path}: cannot be read ({unreadable.strerror}){hint}") from unreadable
    except (ValueError, RecursionError) as damage:  # also numbers of thousands of digits
        reason = "nested too deeply" if isinstance(damage, RecursionError) else str(damage)
        raise error(f"{path}: is damaged ({reason[:100]}){hint}") from damage
    if not isinstance(found, dict):
        raise error(f"{path}: holds a {type(found).__name__}, expected a JSON object{hint}")
    return found
