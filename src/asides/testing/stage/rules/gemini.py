"""Rules of Gemini: a reply carries a signature on its first call, or after its text if it has no call.

Written from the documented rules, not copied from a server. For models that demand it, the first call of each step of
the current turn must carry its signature. A signature that comes back must be one issued for this model and this call,
or the documented placeholder. That of a text covers only the model: clients join, cut and move texts. Neighbouring
contents of the model are one turn, since clients send a streamed turn back with a content for each chunk.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from itertools import groupby

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini.decode import SIGNATURE
from asides.dialects.gemini.import_contents import PLACEHOLDERS, unify_signature
from asides.dialects.gemini.server.read_request import read
from asides.providers.table import plain_row
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import RequestRules
from asides.values.events import Event, ReplyEnded, TextDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.messages import Message
from asides.values.parts import Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought

_MISSING = "Function call is missing a thought_signature in functionCall parts. The call of {name} has none."
_CORRUPTED = "Corrupted thought signature: that of a {kind} was not given for it by this model."


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del today  # No rule here depends on the date yet.
    return _GeminiRules(secret)


class _GeminiRules:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._scripted_seals: set[tuple[str, str, str]] = set()
        """Signatures from the script itself, with their model and part."""

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the signature of a reply, unless the script signed it."""
        model = _read_request(request).model
        if not any(isinstance(event, ThoughtSealed) for event in events):
            return self._add_signature(events, model)
        for part in fold(events).parts:
            values = {unify_signature(seal.value) for seal in _signatures(part)}
            self._scripted_seals |= {(value, model, _fingerprint(part)) for value in values}
        return events

    def _add_signature(self, events: list[Event], model: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            block = 1 + max((getattr(event, "block", -1) for event in events), default=-1)
            added: list[Event] = [TextDelta("", block)]
            part: Part = Text("")
        else:
            block, added = called, []
            part = next(iter(fold(events).tool_calls))
        added.append(ThoughtSealed(Seal(SIGNATURE, self._sign(model, part)), block, "hidden", "block"))
        closing = (UsageReported, Warned, ReplyEnded)
        end = 1 + max((place for place, event in enumerate(events) if not isinstance(event, closing)), default=-1)
        return [*events[:end], *added, *events[end:]]

    def _sign(self, model: str, part: Part) -> str:
        return b64encode(hmac.digest(self._secret, f"{model}\n{_fingerprint(part)}".encode(), "sha256")).decode()

    def refuse(self, request: Request) -> str | None:
        """Return why the real servers refuse this request; None if they accept it."""
        served = _read_request(request)
        messages = served.prompt.messages
        if (problem := next(_check_order(messages), None)) is not None:
            return problem
        needs_signatures = plain_row("gemini").rule(served.model).signed_calls
        turn = max((place for place, message in enumerate(messages) if _starts_turn(message)), default=-1)
        for place, message in enumerate(messages):
            for part in message.parts:
                if not all(self._is_ours(seal.value, served.model, part) for seal in _signatures(part)):
                    return _CORRUPTED.format(kind=type(part).__name__)
            first = next(iter(message.tool_calls), None)
            is_first = not (place and messages[place - 1].role == "assistant" and messages[place - 1].tool_calls)
            if needs_signatures and place > turn and first is not None and is_first and not _signatures(first):
                return _MISSING.format(name=first.name)
        return None

    def _is_ours(self, signature: str, model: str, part: Part) -> bool:
        if signature in PLACEHOLDERS:
            return True
        if (signature, model, _fingerprint(part)) in self._scripted_seals:
            return True
        return hmac.compare_digest(self._sign(model, part).encode(), signature.encode())


def _read_request(request: Request) -> ServedRequest:
    return read(request.body, request.path)


def _check_order(messages: tuple[Message, ...]) -> Iterator[str]:
    """Check that a turn with calls follows a user or results, and that as many results as calls follow it."""
    turns = [list(run) for _, run in groupby(enumerate(messages), key=_name_turn)]
    for number, turn in enumerate(turns):
        calls, results = _count_calls(turn), sum(_count_results(message) for _, message in turn)
        if calls and not number:
            yield (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if results and not (number and _count_calls(turns[number - 1])):
            yield "Please ensure that function response turn comes immediately after a function call turn."
        following = turns[number + 1] if number + 1 < len(turns) else []
        if calls and sum(_count_results(message) for _, message in following) != calls:
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                f"parts of the function call turn. ({calls} calls)"
            )


def _name_turn(numbered: tuple[int, Message]) -> str:
    """Return the same name for messages of one turn."""
    place, message = numbered
    return "model" if message.role == "assistant" else f"{message.role} {place}"


def _count_calls(turn: list[tuple[int, Message]]) -> int:
    return sum(len(message.tool_calls) for _, message in turn)


def _count_results(message: Message) -> int:
    return sum(isinstance(part, ToolResult) for part in message.parts)


def _starts_turn(message: Message) -> bool:
    return message.role == "user" and not all(isinstance(part, ToolResult) for part in message.parts)


def _signatures(part: Part) -> tuple[Seal, ...]:
    return () if isinstance(part, (ToolResult, Refusal)) else tuple(seal for seal in part.seals if seal.value)


def _fingerprint(part: Part) -> str:
    """Return what a signature covers besides the model: a call and its arguments, but of a text nothing."""
    match part:
        case ToolCall():
            return f"{part.name} {msgspec.json.encode(part.arguments, order='sorted').decode()}"
        case Text() | Thought():
            return ""
        case _:
            return type(part).__name__
