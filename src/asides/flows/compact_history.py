"""Let a provider compact a history on its own: one request, and the messages that take the place of the history.

Not here: compaction that comes with an answer (`compaction=`), and summaries by a model (conversations/compact).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.compaction import build_compact_request, read_compacted
from asides.dialects.dialect import Dialect, HttpRequest
from asides.flows.call import Call
from asides.flows.retry import NO_HEAD, clean_error, fetch_key, receive_error, wait_before_next
from asides.flows.steps import Flow, Open, Read, Sleep
from asides.history.import_export import import_messages
from asides.history.plan import encode_plan, plan
from asides.providers.credentials import KeySource
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProtocolError, ProviderError, TransportError, Unsupported
from asides.values.messages import Message
from asides.values.parts import Part, ServerTool, UnknownPart
from asides.values.thinking import Thought
from asides.values.usage import Usage

_log = logging.getLogger("asides")

_MOST_BYTES = 64 * 1024 * 1024


class CompactedHistory(msgspec.Struct, frozen=True):
    """The messages that take the place of a history, and the tokens that compacting it took."""

    messages: tuple[Message, ...]
    usage: Usage


def compact_history(call: Call, *, jitter: Callable[[], float] = random.random) -> Flow[CompactedHistory]:
    """The flow. Raises Unsupported, before a byte is sent, for a provider that cannot do it."""
    target = call.target
    if target.dialect != RESPONSES or not target.quirks.compacts:
        raise Unsupported(
            f"{target.provider.name} is not known to compact a history on its own ({target.dialect}). To do: let a "
            "model sum up, with by='model', or ask with compaction=, where the provider does it while it answers."
        )
    try:
        prompt = msgspec.structs.replace(call.prompt, tools=(), tool_choice=None, output=None, stream=False)
        dialect = find_dialect(target.dialect)
        planned = plan(prompt, target, on_conflict="adjust")
        request, _ = encode_plan(planned, target, dialect, on_conflict="adjust")
        body = yield from _fetch(call, dialect, build_compact_request(request), jitter)
        items, usage = read_compacted(body, target)
        messages = import_messages(items, "openai_responses")
        return CompactedHistory(tuple(_add_origin(message, target) for message in messages), usage)
    except AsidesError as error:
        clean_error(error, target, call.key, call.prompt)
        raise


def _fetch(call: Call, dialect: Dialect, request: HttpRequest, jitter: Callable[[], float]) -> Flow[bytes]:
    target, attempt = call.target, 0
    while True:
        attempt += 1
        head = NO_HEAD
        try:
            if isinstance(call.key, KeySource):
                yield from fetch_key(call.key)
            _log.debug("%s: attempt %d, compaction of %d bytes", target.provider.name, attempt, len(request.body))
            head = yield Open(request)
            _log.debug("%s: status %d", target.provider.name, head.status)
            if not 200 <= head.status < 300:
                raise (yield from receive_error(dialect, head, target))
            return (yield from _read_body(target))
        except (TransportError, ProviderError) as error:
            seconds = wait_before_next(error, head, attempt, call.policy, jitter(), call.key)
        _log.debug("%s: trying again in %.2f s", target.provider.name, seconds)
        yield Sleep(seconds)


def _read_body(target: Target) -> Flow[bytes]:
    pieces: list[bytes] = []
    size = 0
    while data := (yield Read()):
        pieces.append(data)
        size += len(data)
        if size > _MOST_BYTES:
            raise ProtocolError(f"the compaction of {target.provider.name} is too long to be one.")
    return b"".join(pieces)


def _add_origin(message: Message, target: Target) -> Message:
    """What the provider made goes back to it alone."""

    def add(part: Part) -> Part:
        changes: dict[str, Any] = {}
        if isinstance(part, (ServerTool, UnknownPart, Thought)):
            changes["origin"] = target.origin
        if isinstance(part, Thought):
            changes["seals"] = tuple(msgspec.structs.replace(seal, origin=target.origin) for seal in part.seals)
        return msgspec.structs.replace(part, **changes) if changes else part

    return msgspec.structs.replace(message, parts=tuple(map(add, message.parts)))
