"""Formats of conversations that trainers and chat templates read: each is written, and read back as it was.

The outer blanks of what a model thinks and says are not kept, and ids of calls are renumbered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import msgspec

from asides.datasets.formats.turns import FormatError, list_turns
from asides.values.errors import ConfigError
from asides.values.messages import Message

__all__ = ["FORMATS", "Format", "FormatError", "find_format", "list_turns", "read_text_format"]


class Format(msgspec.Struct, frozen=True):
    """One format. Its functions are named by their module and are loaded when used."""

    name: str
    about: str
    module: str
    writer: str
    reader: str
    mark: str = ""
    """A token with which a text in this format is recognized; "" for lists of messages."""
    text_reader: str = ""
    """The reader that leaves tags in the texts of the model; for formats that are one text."""

    def write(self, messages: Sequence[Message]) -> Any:
        """Write a conversation. Raises FormatError if reading it back would give another one."""
        turns = list_turns(messages)
        written = self._load(self.writer)(turns)
        if list_turns(self.read(written)) != turns:
            raise FormatError("a text looks like the marks of the format")
        return written

    def read(self, value: Any) -> tuple[Message, ...]:
        """Read a conversation. Raises FormatError."""
        messages: tuple[Message, ...] = self._load(self.reader)(value)
        return messages

    def read_texts(self, text: str) -> tuple[Message, ...]:
        """Read a conversation, with tags in the texts of the model as they are. Raises FormatError."""
        messages: tuple[Message, ...] = self._load(self.text_reader)(text)
        return messages

    def _load(self, name: str) -> Callable[[Any], Any]:
        function: Callable[[Any], Any] = getattr(import_module(f"asides.datasets.formats.{self.module}"), name)
        return function


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format(
            "think-tags",
            "chat messages with <think>…</think> in the content",
            "chat",
            "write_think_tags",
            "read_think_tags",
        ),
        Format(
            "reasoning_content",
            "chat messages with the thinking in the field reasoning_content",
            "chat",
            "write_reasoning_content",
            "read_reasoning_content",
        ),
        Format(
            "messages-anthropic",
            "Anthropic's messages, with blocks of the type thinking",
            "anthropic",
            "write_blocks",
            "read_blocks",
        ),
        Format(
            "harmony",
            "the text of gpt-oss",
            "harmony",
            "write_harmony",
            "read_harmony",
            "<|message|>",
            "read_harmony",
        ),
        Format(
            "chatml-qwen",
            "the text of Qwen's template",
            "chatml",
            "write_chatml",
            "read_chatml",
            "<|im_start|>",
            "read_chatml_texts",
        ),
        Format(
            "sharegpt",
            "ShareGPT's list of from and value, with <think>…</think> in the value",
            "sharegpt",
            "write_sharegpt",
            "read_separated",
        ),
    )
}


def find_format(name: str) -> Format:
    """The format with this name. Raises ConfigError for an unknown one."""
    found = FORMATS.get(name)
    if found is None:
        raise ConfigError(f"unknown format {name[:40]!r}. Use one of {', '.join(FORMATS)}.")
    return found


def read_text_format(text: str) -> tuple[Message, ...]:
    """Read a conversation that is one text; the texts of the model still have their tags.

    Raises FormatError if it has the marks of no format.
    """
    for each in FORMATS.values():
        if each.mark and each.mark in text:
            return each.read_texts(text)
    raise FormatError("the text has the marks of no known conversation format")
