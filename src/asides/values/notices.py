"""`Notice`: something that was adjusted, dropped or not understood. It is not an error: the reply is complete."""

from __future__ import annotations

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """One fact about a request or a reply. It never holds content, thinking, seals or keys."""

    code: str
    """A stable name to match on: "effort_mapped", "unknown_field" …"""
    detail: str = ""
    """One sentence for a reader."""
    setting: str | None = None
    asked: str | None = None
    sent: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
