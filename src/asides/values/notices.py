"""`Notice`: something that was adjusted, dropped or not understood. It is not an error: the reply is complete.

Also `escape_controls`, for lines that are shown to a person and hold text of others.
"""

from __future__ import annotations

import re

import msgspec

from asides.values.json_form import JsonForm

# Characters that move the cursor, change the order of other characters, break a line, or cannot be seen.
# Text, since few programs need it: `re` compiles it when it is first used.
_CONTROLS = (
    "["
    "\\x00-\\x1f\\x7f-\\x9f"  # C0, DEL, C1
    "\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"  # format and separators
    "\\u115f\\u1160\\u3164\\uffa0"  # letters without a shape
    "\\ud800-\\udfff"  # half a character
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"  # shorthand, music, tags
    "]"
)


class Notice(msgspec.Struct, JsonForm, frozen=True):
    """One fact about a request or a reply. It never holds content, thinking, seals or keys."""

    code: str
    """A stable name to match on: "effort_mapped", "unknown_field" …"""
    detail: str = ""
    """One sentence for a reader."""
    setting: str | None = None
    asked: str | None = None
    sent: str | None = None

    def __post_init__(self) -> None:
        # A server may have chosen some of the words.
        if not self.detail.isprintable():
            msgspec.structs.force_setattr(self, "detail", escape_controls(self.detail))

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


def escape_controls(text: str) -> str:
    """Write control, format and invisible characters as \\xNN, \\uNNNN or \\UNNNNNNNN, so that no text of a model or a
    provider can forge a line or hide a part of it. Other characters stay; a second call changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_CONTROLS, _escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
