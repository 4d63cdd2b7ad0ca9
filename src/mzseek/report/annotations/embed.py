"""Data and code inside a page, such that no text of a file can become markup or script."""

import base64
import hashlib
import json
import math
import re
from typing import Any

from mzseek.names import visible

# Legal in JSON, and never read as the end of a script, as a comment, or as the end of a line.
_MARKUP = re.compile("[<>&\u2028\u2029]")
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(data: Any) -> str:
    r"""Compact JSON that can stand inside a script element.

    Texts are `visible`: control characters become marks. A number that is not finite becomes null.

    Examples
    --------
    >>> embedded({"name": "</script>", "p": float("nan")})
    '{"name":"\\u003c/script\\u003e","p":null}'
    """
    try:
        text = _json(data)
        is_plain = "\\" not in text and visible(text) == text
    except ValueError:  # a number that is not finite
        is_plain = False
    if not is_plain:
        text = _json(_plain(data))
    return text.translate(_ESCAPES) if _MARKUP.search(text) else text


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def source_hash(text: str) -> str:
    """The name by which a page's policy allows a script or a style, and no other.

    Examples
    --------
    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _plain(data: Any) -> Any:
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {visible(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return data
