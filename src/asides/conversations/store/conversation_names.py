"""Where conversations are stored, and the names of those that the user gave none: `make_name(kind)`.

The command line and the gateway's page share them, so that each sees the conversations of the other.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

STORE_FILE = "conversations.db"
"""The file of the store, in the user's state folder."""
_KINDS = ("last", "ask", "chat")
_UNNAMED = re.compile(rf"({'|'.join(_KINDS)})-\d{{8}}-\d{{6}}-[0-9a-f]{{6}}")


def make_name(kind: str) -> str:
    """Make a unique name, which begins with the kind and the time."""
    import secrets

    return f"{kind}-{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_unnamed(name: str, kind: str | None = None) -> bool:
    """Whether `make_name` gave this name, since the user gave none; with a `kind`, whether it is of that one."""
    found = _UNNAMED.fullmatch(name)
    return found is not None and kind in (None, found[1])
