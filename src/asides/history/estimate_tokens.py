"""Estimate how many tokens a history costs when it is sent: `estimator_for(prompt, target)`.

The estimate counts the request that the plan and the dialect make of the history. Thinking that does not go back costs
nothing; seals that go back do. Not here: what to leave out when it is too much (trim).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from asides import dialects
from asides.history.plan import plan
from asides.providers.provider import Target
from asides.values.messages import File, Image, Message, Part, Prompt, Text, ToolResult

TokenCounter: TypeAlias = Callable[[Sequence[Message]], int]
"""Messages in, tokens out."""

CHARACTERS_PER_TOKEN = 4
PICTURE_TOKENS = 1_600
"""The price of a picture of the largest size that is not scaled down, at the providers that publish it."""
FILE_TOKENS = 3_000
"""The price of a document of a few pages. Its size in bytes says little about it."""


def estimator_for(prompt: Prompt, target: Target) -> TokenCounter:
    """A counter for histories that go to this target with the rest of this prompt: system prompt, tools and so on.

    Four characters of the request count as a token; pictures and files have a fixed price. The counter raises what
    sending would raise.
    """

    def count(messages: Sequence[Message]) -> int:
        planned = plan(msgspec.structs.replace(prompt, messages=tuple(messages)), target, on_conflict="adjust").prompt
        without_media, media_tokens = _remove_media(planned.messages)
        sendable = msgspec.structs.replace(planned, messages=without_media)
        request, _ = dialects.find_dialect(target.dialect).encode(sendable, target)
        characters = len(request.body.decode("utf-8", "replace"))
        return -(-characters // CHARACTERS_PER_TOKEN) + media_tokens

    return count


def _remove_media(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """The messages with empty pictures and files, and the tokens that the pictures and files cost."""
    tokens = 0

    def remove(part: Part) -> Part:
        nonlocal tokens
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            content = tuple(each for held in part.content if isinstance(each := remove(held), (Text, Image, File)))
            return msgspec.structs.replace(part, content=content)
        if isinstance(part, Image):
            tokens += PICTURE_TOKENS
        elif isinstance(part, File) and not part.media_type.startswith("text/"):
            tokens += FILE_TOKENS
        else:
            return part
        return part if part.data is None else msgspec.structs.replace(part, data=b"")

    emptied = tuple(
        msgspec.structs.replace(message, parts=tuple(remove(part) for part in message.parts)) for message in messages
    )
    return emptied, tokens
