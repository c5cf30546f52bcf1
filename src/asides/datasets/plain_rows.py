"""Separates the most common row, `<think>…</think>…` without any other mark, in its JSON: no text is decoded.

The result is that of the ordinary way, byte for byte; every row in doubt goes that way.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from asides.datasets.separation import Separation

_OPEN, _CLOSE = b'"<think>', b"</think>"
# Blanks, and the first character behind them: not a blank of Unicode, and not the end of the text.
_START = re.compile(rb'(?: |\\n|\\t|\\r)*(?=[!#-\[\]-~]|\\["\\])')
# Beginnings of other tags, and escapes that JSON has two forms of.
_MARKS = (b"[T", b"[t", b"[/", b"|>", b"\\u", b"\\/", "◁".encode())
_CODE = (b"`", b"~")


def separate_plain(value: msgspec.Raw) -> Separation | None:
    """The result, with the answer and the thinking in raw JSON; None if the row is not plain."""
    raw = bytes(value)
    if not raw.startswith(_OPEN):
        return None
    end = raw.find(b"<", len(_OPEN))
    answer = end + len(_CLOSE)
    if end < 0 or not raw.startswith(_CLOSE, end) or raw.find(b"<", answer) >= 0:
        return None
    for mark in _MARKS:
        if mark in raw:
            return None
    for mark in _CODE:
        if raw.find(mark, 0, end) >= 0:
            return None
    thought, begin = _START.match(raw, len(_OPEN), end), _START.match(raw, answer)
    if thought is None or begin is None:
        return None
    said: Any = msgspec.Raw(b'"' + raw[begin.end() :])
    thinking: Any = msgspec.Raw(b'"%b"' % raw[len(_OPEN) : end])
    return Separation("closed", "think", said, thinking)
