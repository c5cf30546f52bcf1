"""`Notice`: something that was adjusted, dropped or not understood. It is not an error: the reply is complete."""

from __future__ import annotations

import re

import msgspec

# C0, DEL and C1; the marks, embeddings, overrides and isolates of bidirectional text; the separators of lines and
# paragraphs; halves of characters.
_CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


class Notice(msgspec.Struct, frozen=True):
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
    r"""Replace every character that controls a terminal or the direction of text by its escape: \xNN or \uNNNN.

    A line break is one of them, so the result is a single line.
    """
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
