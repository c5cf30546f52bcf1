"""Messages of one text, which readers read on a shorter way: the same comes out as on the longer one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from asides.dialects.anthropic.import_messages import import_messages as import_turns
from asides.dialects.gemini.import_contents import import_contents
from asides.dialects.openai_chat.import_messages import import_messages
from asides.dialects.openai_responses.import_items import import_items
from asides.values.messages import Message

_TEXTS = ("Hello", " \n", "a < b", "_", "\ud800")


def _write_chat(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _write_block(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _write_content(role: str, text: str) -> dict[str, Any]:
    return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (import_messages, _write_chat),
        (import_turns, _write_chat),
        (import_turns, _write_block),
        (import_contents, _write_content),
        (import_items, _write_chat),
    ],
)
def test_a_field_that_says_nothing_changes_nothing(
    read: Callable[[list[Any]], tuple[Message, ...]], write: Callable[[str, str], dict[str, Any]]
) -> None:
    for roles in product(("user", "assistant"), repeat=3):
        for text in _TEXTS:
            short = [write(role, text) for role in roles]
            # A field more, and so the longer way.
            long = [{**message, "own": None} for message in short]
            assert read(short) == read(long)
