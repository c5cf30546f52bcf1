"""Cache breakpoints for the option `cache=`: at the end of what stays the same from request to request.

Providers with breakpoints keep the prompt up to each of them, take at most four, and look for what they have at most 20
blocks before one (platform.claude.com prompt-caching, docs.aws.amazon.com bedrock prompt-caching, 2026-11-16). So there
is one after the tools, one after the system prompt, one at the end of the newest message, and one where the request
before ended: however long the turn in between is, the provider finds it. Caches do not compare the breakpoints
themselves.

Loaded only where `cache=` is set.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from asides.dialects.http_body import RETENTIONS
from asides.dialects.message_encoder import Wire
from asides.values.messages import Message, Prompt

_MOST = 4
_ROLE = re.compile(rb'\{"role":"(\w+)"')
_LONG = "1h"
_LIFETIMES = ("5m", _LONG)


class MarkFormat(NamedTuple):
    """How a dialect writes breakpoints, and where it has the blocks before them."""

    add: Callable[[list[Any], bool | str], list[Any]]
    """Returns the blocks with a breakpoint after the last one; the same list where none can be."""
    tools: tuple[str, ...] = ("tools",)
    system: str = "system"
    """The field of the system prompt; "": it is the first message."""


def mark_request(prompt: Prompt, body: Wire, form: MarkFormat, *, in_tools: bool = True) -> None:
    """Add breakpoints to a request, as many as there are left beside those of the caller."""
    own = list(_list_own(prompt))
    asked = _LONG if isinstance(prompt.cache, str) and prompt.cache not in _LIFETIMES else prompt.cache
    left = _MOST - len(own)
    lifetimes = {lifetime for _, lifetime in own}
    of_messages = {lifetime for is_front, lifetime in own if not is_front}
    # A longer lifetime must come before a shorter one.
    if len(of_messages) < 2:
        lifetime = next(iter(of_messages), asked)
        for place in _find_ends(body["messages"])[: max(left, 0)]:
            marked = _mark_turn(body["messages"][place], lifetime, form)
            left -= marked is not body["messages"][place]
            body["messages"][place] = marked
    if any(is_front for is_front, _ in own):
        return
    lifetime = _LONG if _LONG in (asked, *lifetimes) else asked
    if form.system and left > 0 and (blocks := body.get(form.system)):
        as_blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        body[form.system] = form.add(as_blocks, lifetime)
        left -= 1
    elif (
        not form.system and left > 0 and body["messages"] and _read_role(body["messages"][0]) in ("system", "developer")
    ):
        body["messages"][0] = _mark_turn(body["messages"][0], lifetime, form)
        left -= 1
    *parents, name = form.tools
    fields = body
    for parent in parents:
        fields = fields.get(parent) or {}
    if in_tools and left > 0 and fields.get(name):
        fields[name] = form.add(fields[name], lifetime)


def _list_own(prompt: Prompt) -> Iterator[tuple[bool, bool | str]]:
    """The breakpoints of the caller: whether each is before the messages, and its lifetime."""
    yield from ((True, tool.cache) for tool in prompt.tools if tool.cache)
    for message in prompt.messages:
        yield from ((message.role == "system", cache) for cache in _list_marks(message))


def _list_marks(message: Message) -> Iterator[bool | str]:
    for part in message.parts:
        if cache := getattr(part, "cache", False):  # a result has that of its content
            yield cache


def _find_ends(messages: list[Any]) -> list[int]:
    """The place of the newest message of the caller, and of the last one of the request before."""
    roles = list(map(_read_role, messages))
    last = len(roles) - 1
    while last >= 0 and roles[last] in ("assistant", "system"):
        last -= 1
    answered = last
    while answered >= 0 and roles[answered] != "assistant":
        answered -= 1
    before = answered - 1
    while before >= 0 and roles[before] in ("assistant", "system"):
        before -= 1
    return [place for place in (last, before) if place >= 0]


def _read_role(message: Any) -> str:
    if not isinstance(message, msgspec.Raw):
        return str(message.get("role"))
    # Our encoders write the role first.
    found = _ROLE.match(memoryview(message)[:64])
    return found[1].decode() if found is not None else ""


def _mark_turn(message: Any, lifetime: bool | str, form: MarkFormat) -> Any:
    """The message with a breakpoint after its last block; the message itself where none can be."""
    fields: dict[str, Any] = dict(message) if isinstance(message, dict) else _unpack(message)
    content = fields.get("content")
    if isinstance(content, msgspec.Raw):
        content = msgspec.json.decode(content, type=str | list[msgspec.Raw])
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list) or not content:
        return message
    marked = form.add(content, lifetime)
    return message if marked is content else {**fields, "content": marked}


def _unpack(message: msgspec.Raw) -> dict[str, Any]:
    # The content keeps the bytes that were sent before.
    return dict(msgspec.json.decode(message, type=dict[str, msgspec.Raw]))


# --- the forms --------------------------------------------------------------------------------------------------------


def _add_control(blocks: list[Any], lifetime: bool | str) -> list[Any]:
    last = blocks[-1]
    fields: dict[str, Any] = _unpack(last) if isinstance(last, msgspec.Raw) else last
    if "cache_control" in fields:
        return blocks
    control = {"type": "ephemeral", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "ephemeral"}
    return [*blocks[:-1], {**fields, "cache_control": control}]


def _add_point(blocks: list[Any], lifetime: bool | str) -> list[Any]:
    last: Any = msgspec.json.decode(blocks[-1]) if isinstance(blocks[-1], msgspec.Raw) else blocks[-1]
    if "cachePoint" in last:
        return blocks
    point = {"type": "default", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "default"}
    return [*blocks, {"cachePoint": point}]


CONTROLS = MarkFormat(_add_control)
"""A field of the last block."""

CHAT_CONTROLS = MarkFormat(_add_control, system="")
"""The same, where the system prompt is a message."""

POINTS = MarkFormat(_add_point, tools=("toolConfig", "tools"))
"""A block of its own."""


# --- caches without breakpoints -----------------------------------------------------------------------------------


def encode_cache_key(prompt: Prompt) -> dict[str, Any]:
    """Return the fields for hosts whose cache takes a key: requests of one conversation have the same. A lifetime is
    one field more.
    """
    first = next((message for message in prompt.messages if message.role == "user"), None)
    # Not the JSON that it was read from: the key stays when that is lost.
    said = first and {name: getattr(first, name) for name in first.__struct_fields__ if name != "source"}
    begin = [prompt.system, said]
    key = hashlib.blake2b(msgspec.json.encode(begin, enc_hook=repr), digest_size=12).hexdigest()
    kept = {"prompt_cache_retention": prompt.cache} if prompt.cache in RETENTIONS else {}
    return {"prompt_cache_key": f"asides-{key}", **kept}
