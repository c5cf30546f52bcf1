"""How many tokens a history costs when it is sent: `measure_for(prompt, target)`. An estimate, for who has no counter.

Counted is what is really sent: the request that plan and dialect make of it. Thinking that stays behind costs nothing,
seals that go along do. Not here: what to leave out when it is too much (trimming).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from asides import dialects
from asides.history.plan import plan
from asides.providers.provider import Target
from asides.values.messages import File, Image, Message, Part, Prompt, Text, ToolResult

Measure: TypeAlias = Callable[[Sequence[Message]], int]
"""Messages in, tokens out."""

CHARACTERS_A_TOKEN = 4
PICTURE_TOKENS = 1_600
"""What a picture of the largest size that is not scaled down costs at the makers that say so."""
FILE_TOKENS = 3_000
"""What a document of a few pages costs; its bytes say little about it."""


def estimator_for(prompt: Prompt, target: Target) -> Measure:
    """A measure for histories that go to this target with everything else that is in the prompt: system, tools …

    About four characters of the request are a token, and pictures and files have a price of their own. Raises what
    sending would raise.
    """

    def measure(messages: Sequence[Message]) -> int:
        kept = msgspec.structs.replace(prompt, messages=tuple(messages))
        planned = plan(kept, target, on_conflict="adjust").prompt
        emptied, media = _without_bytes(planned.messages)
        sendable = msgspec.structs.replace(planned, messages=emptied)
        request, _ = dialects.find_dialect(target.dialect).encode(sendable, target)
        characters = len(request.body.decode("utf-8", "replace"))
        return -(-characters // CHARACTERS_A_TOKEN) + media

    return measure


def _without_bytes(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """The messages with nothing in their pictures and files, and what those cost."""
    tokens = 0

    def emptied(part: Part) -> Part:
        nonlocal tokens
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            inside = tuple(shown for each in part.content if isinstance(shown := emptied(each), (Text, Image, File)))
            return msgspec.structs.replace(part, content=inside)
        if isinstance(part, Image):
            tokens += PICTURE_TOKENS
        elif isinstance(part, File) and not part.media_type.startswith("text/"):
            tokens += FILE_TOKENS
        else:
            return part
        return part if part.data is None else msgspec.structs.replace(part, data=b"")

    kept = tuple(
        msgspec.structs.replace(message, parts=tuple(emptied(part) for part in message.parts)) for message in messages
    )
    return kept, tokens
