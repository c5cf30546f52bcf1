"""The names of the conversations that this user had last, in a file of the state folder: for a store that others share.

`--continue` continues the last of these, and a question without a name replaces the previous one only if it is one of
these: other users' conversations are not touched.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from asides.cli.private_files import hold_lock, write_private_file

OWN_FILE = "own-conversations.json"
_MOST_NAMES = 100
_WHAT = "the list of your conversations"


def list_own(folder: Path) -> list[str]:
    """The names, the last one first. A file that cannot be read is as good as none."""
    try:
        return msgspec.json.decode((folder / OWN_FILE).read_bytes(), type=list[str])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def add_own(folder: Path, name: str) -> None:
    """Note that this conversation is the last one now."""
    path = folder / OWN_FILE
    with hold_lock(path, _WHAT):
        names = [name, *(each for each in list_own(folder) if each != name)]
        write_private_file(path, msgspec.json.encode(names[:_MOST_NAMES]), _WHAT)
