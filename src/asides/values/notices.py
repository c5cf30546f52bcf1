"""What was adjusted, dropped or not understood, as a value. Not an error: the reply is whole."""

from __future__ import annotations

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """One thing worth knowing about a request or a reply; never holds content, thinking, seals or keys."""

    code: str
    """Stable and short, made to be matched: "effort_mapped", "unknown_field" …"""
    detail: str = ""
    """One sentence for a person."""
    setting: str | None = None
    asked: str | None = None
    sent: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
