"""Formats of conversations that trainers and chat templates read: each is written, and read back as it was.

The outer blanks of what a model thinks and says are not kept, and ids of calls are renumbered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import msgspec

from asides.datasets.formats.turns import FEATURES, Feature, FormatError, Span, Turn, list_turns
from asides.values.errors import ConfigError
from asides.values.messages import Message

__all__ = ["FORMATS", "Format", "FormatError", "Span", "find_format", "find_spans", "list_turns", "read_text_format"]


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

    start: str = ""
    """The token that begins a turn; for formats that are one text."""
    other_turn: str = ""
    """The pattern of what begins a turn of another speaker than the model; for formats that are one text."""

    keeps: frozenset[Feature] = frozenset()
    """Which of the features that only some formats have."""

    def keep(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """The turns as the format holds them: without signatures, if it has none.

        Raises FormatError for anything else that it does not have.
        """
        lost = {feature for turn in turns for feature in turn.features} - self.keeps
        if words := [about for name, about in FEATURES.items() if name in lost and name != "signatures"]:
            raise FormatError(f"it has {words[0]}")
        return tuple(turn.drop_signatures() for turn in turns) if lost else tuple(turns)

    def write(self, messages: Sequence[Message]) -> Any:
        """Write a conversation. Raises FormatError if reading it back would give another one."""
        turns = self.keep(list_turns(messages))
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

    def find_spans(self, text: str) -> Iterable[Span]:
        """The spans of model output in a conversation that is one text."""
        spans: Iterable[Span] = self._load("find_spans")(text)
        return spans

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
            keeps=frozenset({"names"}),
        ),
        Format(
            "reasoning_content",
            "chat messages with the thinking in the field reasoning_content",
            "chat",
            "write_reasoning_content",
            "read_reasoning_content",
            keeps=frozenset({"names"}),
        ),
        Format(
            "messages-anthropic",
            "Anthropic's messages, with blocks of the type thinking",
            "anthropic",
            "write_blocks",
            "read_blocks",
            keeps=frozenset({"signatures", "redacted", "errors"}),
        ),
        Format(
            "harmony",
            "the text of gpt-oss",
            "harmony",
            "write_harmony",
            "read_harmony",
            "<|message|>",
            "read_harmony",
            "<|start|>",
            r"<\|start\|>(?:system|developer|user|tool|functions\.)[^<]*(?:<\|channel\|>[^<]*)?<\|message\|>",
        ),
        Format(
            "chatml-qwen",
            "the text of Qwen's template",
            "chatml",
            "write_chatml",
            "read_chatml",
            "<|im_start|>",
            "read_chatml_texts",
            "<|im_start|>",
            r"<\|im_start\|>(?!assistant\b)\w+\n",
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


def find_spans(text: str, *, is_message: bool = False) -> list[Span] | None:
    """The places of what the model says in a conversation that is one text; None if the text is none.

    What comes before the first turn is the model's as well. `is_message`: the text is the content of a message of the
    model, so without a turn of another speaker it is not a conversation, but a message with its header.
    """
    for each in FORMATS.values():
        if not each.mark or each.mark not in text:
            continue
        begins = text.lstrip().startswith(each.start)
        other = re.search(each.other_turn, text)
        if other is not None or (begins and not is_message):
            start = 0 if begins or other is None else other.start()
            reply = [Span("text", 0, start)] if start else []
            return [*reply, *(span for span in each.find_spans(text) if span.start >= start)]
    return None
