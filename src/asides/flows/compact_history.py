"""Let a provider compact a history: one request, and the messages that replace the history."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.compaction import build_compact_request, read_compacted
from asides.flows.call import Call
from asides.flows.fetch_body import fetch_body
from asides.flows.retry import clean_error
from asides.flows.steps import Flow
from asides.history.plan import encode_plan, plan
from asides.intake.read import read
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.values.errors import AsidesError, Unsupported
from asides.values.messages import Message
from asides.values.parts import Part, ServerTool, UnknownPart
from asides.values.thinking import Thought
from asides.values.usage import Usage


class CompactedHistory(msgspec.Struct, frozen=True):
    """The messages that replace a history, and the tokens that compacting used."""

    messages: tuple[Message, ...]
    usage: Usage


def compact_history(call: Call, *, jitter: Callable[[], float] = random.random) -> Flow[CompactedHistory]:
    """Run the flow. Raises Unsupported, before a byte is sent, if the provider does not support it."""
    target = call.target
    if target.dialect != RESPONSES or not target.quirks.compacts:
        raise Unsupported(
            f"{target.provider.name} is not known to compact a history on its own ({target.dialect}). Let a "
            "model sum up, with by='model', or ask with compaction=, where the provider does it while it answers."
        )
    try:
        prompt = msgspec.structs.replace(call.prompt, tools=(), tool_choice=None, output=None, stream=False)
        dialect = find_dialect(target.dialect)
        planned = plan(prompt, target, on_conflict="adjust")
        request, _ = encode_plan(planned, target, dialect, on_conflict="adjust")
        body = yield from fetch_body(
            build_compact_request(request),
            dialect,
            target,
            lambda _, body: body,
            what="compaction",
            policy=call.policy,
            key=call.key,
            jitter=jitter,
        )
        items, usage = read_compacted(body, target)
        messages = read(items, format_name="responses")
        return CompactedHistory(tuple(_add_origin(message, target) for message in messages), usage)
    except AsidesError as error:
        clean_error(error, target, call.key, call.prompt)
        raise


def _add_origin(message: Message, target: Target) -> Message:
    """Only the provider that made these messages gets them back."""

    def add(part: Part) -> Part:
        changes: dict[str, Any] = {}
        if isinstance(part, (ServerTool, UnknownPart, Thought)):
            changes["origin"] = target.origin
        if isinstance(part, Thought):
            changes["seals"] = tuple(msgspec.structs.replace(seal, origin=target.origin) for seal in part.seals)
        return msgspec.structs.replace(part, **changes) if changes else part

    return msgspec.structs.replace(message, parts=tuple(map(add, message.parts)))
