"""Seals that are bound to all that was sent before them: `bind_prefix(prompt)` drops those whose past has changed.

Each answer of such a model carries the digest of what it followed (`Message.prefix`). A thought goes back only after
exactly the same system prompt, tools and messages. Without a digest, as in an imported history, it goes back: the
provider decides. Not here: which models bind their seals (`ModelRule.prefix_bound`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from asides.values.messages import Message, Prompt, read_facts
from asides.values.parts import Part, Text, ToolCall
from asides.values.thinking import Thought

_SIZE = 12
WHY_DROPPED = "the messages, the tools or the system prompt before it have changed, and its seal is bound to them"


def bind_prefix(prompt: Prompt) -> tuple[Prompt, str, frozenset[str]]:
    """Drop the thoughts whose prefix has changed. Returns the prompt, the digest of all that is sent, and the prefixes
    of the messages that lost their thoughts.

    A message that loses its thoughts changes the prefix of all later ones. So those made after it lose theirs too, but
    not those that were made after the loss.
    """
    front = [prompt.system, [msgspec.structs.replace(tool, cache=False) for tool in prompt.tools]]
    digest = hashlib.blake2b(msgspec.json.encode(front, enc_hook=repr), digest_size=_SIZE).digest()
    bound = list(prompt.messages)
    broken: set[str] = set()
    for place, facts in enumerate(read_facts(bound)):
        message = bound[place]
        if message.prefix and message.prefix != digest.hex() and _has_seals(message):
            broken.add(message.prefix)
            bound[place] = message = _drop_thoughts(message)
            (facts,) = read_facts((message,))
        before, after = facts.chained
        if before != digest:
            after = _extend(digest, message)
            facts.chained = (digest, after)
        digest = after
    if broken:
        kept = tuple(message for message in bound if message.parts or message.role != "assistant")
        prompt = msgspec.structs.replace(prompt, messages=kept)
    return prompt, digest.hex(), frozenset(broken)


def _extend(digest: bytes, message: Message) -> bytes:
    """The digest of what was before and this message: what it says, without marks of a cache."""
    said: tuple[object, ...] = (message.role, [_strip_mark(part) for part in message.parts])
    if message.role == "system" and message.effort is not None:
        said = (*said, message.effort)  # a message that changes the effort
    return hashlib.blake2b(digest + msgspec.json.encode(said, enc_hook=repr), digest_size=_SIZE).digest()


def _strip_mark(part: Part) -> Part:
    return msgspec.structs.replace(part, cache=False) if getattr(part, "cache", False) else part


def _has_seals(message: Message) -> bool:
    return any(part.seals for part in message.parts if isinstance(part, (Thought, Text, ToolCall)))


def _drop_thoughts(message: Message) -> Message:
    """The message without its thoughts. The seals of other parts belong to them."""
    parts: Sequence[Part] = [
        msgspec.structs.replace(part, seals=()) if isinstance(part, ToolCall) and part.seals else part
        for part in message.parts
        if not isinstance(part, Thought)
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))
