"""Conversations as JSON documents and as files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from asides.conversations.message_history import MessageHistory
from asides.history.document import from_document, to_document
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Text
from asides.values.usage import Usage


class SavedConversation(msgspec.Struct, frozen=True):
    """The content of a saved conversation."""

    messages: tuple[Message, ...]
    system: str | None
    model: str | None
    usage: Usage | None


class _Metadata(msgspec.Struct):
    model: str | None = None
    usage: Usage | None = None


def write_json(history: MessageHistory, *, keep_thinking: bool | None) -> str:
    """Encode the history as a document. `keep_thinking` overrides the setting of the history."""
    history.visibility.check_keep_thinking(keep_thinking)
    metadata: dict[str, Any] = {}
    if history.model is not None:
        metadata["model"] = history.model
    if history.usage != Usage():
        usage = msgspec.structs.asdict(history.usage)
        metadata["usage"] = {name: value for name, value in usage.items() if value is not None}
    return to_document(
        history.messages,
        system=history.system,
        keep_thinking=history.keeps_thinking if keep_thinking is None else keep_thinking,
        metadata=metadata,
        rows=history.rows,
        visibility=history.visibility,
    ).decode()


def read_json(document: str | bytes) -> SavedConversation:
    """Decode a document that `write_json` wrote. Raises ConfigError when it cannot be read."""
    read = from_document(document)
    try:
        metadata = msgspec.convert(read.metadata, _Metadata)
    except msgspec.ValidationError:
        raise ConfigError(
            "the head of the saved conversation cannot be read. Check whether the file was edited."
        ) from None
    return SavedConversation(read.messages, read.system, metadata.model, metadata.usage)


def split_system(messages: tuple[Message, ...]) -> tuple[str | None, tuple[Message, ...]]:
    """Split off a system message at the start. Returns its text and the other messages."""
    if not messages or messages[0].role != "system" or not all(isinstance(part, Text) for part in messages[0].parts):
        return None, messages
    return messages[0].text, messages[1:]


# --- files --------------------------------------------------------------------------------------------------------


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically: a reader finds the old content or the new, also after a crash. Only the owner may read
    it. A link stays a link; the file that it points to is replaced.
    """
    place = _expand_home(path)
    try:
        target = Path(os.path.realpath(place))
        if _is_device(target):
            raise ConfigError(
                f"the conversation cannot be saved to {place}, which is a device or a pipe: a file would replace it. "
                "Name a file."
            )
        replace_file(target, content)
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"the conversation cannot be saved to {place}: {_describe(problem)}. Name a file in a "
            "folder that can be written to."
        ) from None


def _is_device(target: Path) -> bool:
    try:
        return stat.S_IFMT(target.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    except (OSError, ValueError):
        return False


def replace_file(target: Path, content: bytes, prepare: Callable[[Path], None] | None = None) -> None:
    """Replace a file in one step, or make it for its owner alone. `prepare` may change the new file before that."""
    # mkstemp makes files that only their owner may read.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if prepare is not None:
            prepare(Path(name))
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(target.parent)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read the file. Raises ConfigError when it cannot be read."""
    place = _expand_home(path)
    try:
        return place.read_bytes()
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"the conversation {place} cannot be read: {_describe(problem)}. Name a file that save() wrote."
        ) from None


def _expand_home(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # "~name" of an unknown user.
        raise ConfigError(
            f"the conversation {os.fspath(path)} is in a home folder that does not exist. Name another file."
        ) from None


def _describe(problem: OSError | ValueError) -> str:
    """Describe the reason. A ValueError is about the name itself: a NUL in it, or half a character."""
    return str(problem) if isinstance(problem, ValueError) else problem.strerror or str(problem)


def _sync_folder(folder: Path) -> None:
    """Write the folder to the disk, and with it the new name of the file. Some systems cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
