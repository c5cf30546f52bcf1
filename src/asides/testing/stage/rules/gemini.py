"""What Gemini's servers check, and sign: a reply is signed on its first call, or behind its text if it has none.

Not a copy of any server: written from the documented rules. In the turn that is under way the first call of each step
must carry its signature, for the models that ask for it; whatever signature comes back must be one that was given for
this model and this very part, or the documented stand-in.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini.decode import SIGNATURE
from asides.dialects.gemini.server.read_request import read
from asides.dialects.message_encoder import STAND_IN
from asides.providers.table import plain_row
from asides.testing.stage.http_requests import Request
from asides.values.events import Event, ReplyEnded, TextDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.messages import Message, Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought

_MISSING = "Function call is missing a thought_signature in functionCall parts. The call of {name} has none."
_CORRUPTED = "Corrupted thought signature: that of a {kind} was not given for it by this model."


class Rules:
    """One stage's rules for requests for content, and the signatures it gives out."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._given: set[tuple[str, str, str]] = set()
        """Signatures that a script gave out itself, with their model and part."""

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """The reply with a signature where there is to be one, unless the script put any there."""
        model = _served(request).model
        if not any(isinstance(event, ThoughtSealed) for event in events):
            return self._signed(events, model)
        for part in fold(events).parts:
            self._given |= {(seal.value, model, _fingerprint(part)) for seal in _signatures(part)}
        return events

    def _signed(self, events: list[Event], model: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            block = 1 + max((getattr(event, "block", -1) for event in events), default=-1)
            added: list[Event] = [TextDelta("", block)]
            part: Part = Text("")
        else:
            block, added = called, []
            part = next(iter(fold(events).tool_calls))
        added.append(ThoughtSealed(Seal(SIGNATURE, self._sign(model, part)), block, "hidden", "block"))
        ending = (UsageReported, Warned, ReplyEnded)
        behind = 1 + max((place for place, event in enumerate(events) if not isinstance(event, ending)), default=-1)
        return [*events[:behind], *added, *events[behind:]]

    def _sign(self, model: str, part: Part) -> str:
        return b64encode(hmac.digest(self._secret, f"{model}\n{_fingerprint(part)}".encode(), "sha256")).decode()

    def refuse(self, request: Request) -> str | None:
        """Why the real servers would not take this request; None when they would."""
        served = _served(request)
        messages = served.prompt.messages
        if (problem := next(_order_problems(request), None)) is not None:
            return problem
        needs_signatures = plain_row("gemini").rule(served.model).signed_calls
        turn = max((place for place, message in enumerate(messages) if _begins_a_turn(message)), default=-1)
        for place, message in enumerate(messages):
            for part in message.parts:
                if not all(self._is_ours(seal.value, served.model, part) for seal in _signatures(part)):
                    return _CORRUPTED.format(kind=type(part).__name__)
            first = next(iter(message.tool_calls), None)
            if needs_signatures and place > turn and first is not None and not _signatures(first):
                return _MISSING.format(name=first.name)
        return None

    def _is_ours(self, signature: str, model: str, part: Part) -> bool:
        if signature == STAND_IN and isinstance(part, ToolCall):
            return True
        if (signature, model, _fingerprint(part)) in self._given:
            return True
        return hmac.compare_digest(self._sign(model, part).encode(), signature.encode())


def _served(request: Request) -> ServedRequest:
    return read(request.body, request.path)


def _order_problems(request: Request) -> Iterator[str]:
    """A turn with calls follows a person or results, and is followed by as many results as it has calls."""
    contents: list[dict[str, Any]] = msgspec.json.decode(request.body).get("contents") or []
    for place, content in enumerate(contents):
        before = contents[place - 1] if place else {}
        calls, results = _count(content, "functionCall"), _count(content, "functionResponse")
        if calls and (not before or before.get("role") == "model"):
            yield (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                f"response turn. (contents[{place}])"
            )
        if results and not _count(before, "functionCall"):
            yield f"Please ensure that function response turn comes immediately after a function call turn. ({place})"
        if calls and (place + 1 == len(contents) or _count(contents[place + 1], "functionResponse") != calls):
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                f"parts of the function call turn. (contents[{place}])"
            )


def _count(content: dict[str, Any], kind: str) -> int:
    return sum(kind in part for part in content.get("parts") or ())


def _begins_a_turn(message: Message) -> bool:
    return message.role == "user" and not all(isinstance(part, ToolResult) for part in message.parts)


def _signatures(part: Part) -> tuple[Seal, ...]:
    return () if isinstance(part, (ToolResult, Refusal)) else tuple(seal for seal in part.seals if seal.value)


def _fingerprint(part: Part) -> str:
    """What a signature is bound to besides the model."""
    match part:
        case ToolCall():
            return f"{part.name} {msgspec.json.encode(part.arguments, order='sorted').decode()}"
        case Text() | Thought():
            return part.text
        case _:
            return type(part).__name__
