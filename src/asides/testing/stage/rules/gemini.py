"""Rules of Gemini: signatures of calls, order of turns, budgets and levels of thinking.

Written from the documented rules and from reported errors, not copied from a server. A reply carries a signature on its
first call, or after its text if it has no call. For Gemini 3 and later, the first call of each step of the current turn
must carry its signature. One that comes back must have been made for this model, this project (or key) and this call,
or be the documented placeholder. That of a text covers only model and project: clients join, cut and move texts.
Neighbouring contents of the model are one turn, since clients send a streamed turn back with a content for each chunk.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec

from asides.dialects.gemini.decode import SIGNATURE
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import DetailedRefusal, RequestRules, Wire, read_account
from asides.testing.stage.rules import gemini_texts as texts
from asides.values.events import Event, ReplyEnded, TextDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.parts import Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Seal
from asides.wire.lenient import read_base64, unify_base64

_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_PATH = re.compile(r"/models/([^/:]+):")
_PROJECT = re.compile(r"/projects/([^/]+)/")
_MAC_SIZE = 16
_MOST_SCRIPTED = 10_000
RULES = texts.RULES


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del today  # No rule here depends on the date yet.
    return _GeminiRules(secret)


class _GeminiRules:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._scripted_seals: dict[tuple[str, str, str, str], None] = {}
        """Signatures from the script itself, with their model, project and part. The oldest are forgotten."""

    # --- signing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the signature of a reply, unless the script signed it."""
        model, project = _read_model(request), _read_project(request)
        if not any(isinstance(event, ThoughtSealed) for event in events):
            return self._add_signature(events, model, project)
        for part in fold(events).parts:
            for value in [seal.value for seal in _list_seals(part)]:
                while len(self._scripted_seals) >= _MOST_SCRIPTED:
                    del self._scripted_seals[next(iter(self._scripted_seals))]
                self._scripted_seals[unify_base64(value), model, project, _describe(part)] = None
        return events

    def _add_signature(self, events: list[Event], model: str, project: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            block = 1 + max((getattr(event, "block", -1) for event in events), default=-1)
            added: list[Event] = [TextDelta("", block)]
            part: Part = Text("")
        else:
            block, added = called, []
            part = next(iter(fold(events).tool_calls))
        signature = self._sign(model, project, _describe(part))
        added.append(ThoughtSealed(Seal(SIGNATURE, signature), block, "hidden", "block"))
        closing = (UsageReported, Warned, ReplyEnded)
        end = 1 + max((place for place, event in enumerate(events) if not isinstance(event, closing)), default=-1)
        return [*events[:end], *added, *events[end:]]

    def _sign(self, model: str, project: str, part: str) -> str:
        digest = blake2b(part.encode(), key=self._secret, digest_size=9).hexdigest()
        return self._write(msgspec.json.encode([model, project, digest]))

    def _write(self, content: bytes) -> str:
        return b64encode(blake2b(content, key=self._secret, digest_size=_MAC_SIZE).digest() + content).decode()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(body, request), None)

    def _check(self, body: Wire, request: Request) -> Iterator[DetailedRefusal]:
        model = _read_model(request)
        generation = next((one for one in texts.GENERATIONS if re.match(one.models, model)), None)
        is_vertex = "/publishers/" in request.path
        contents: list[Wire] = body.get("contents") or []
        if generation is not None:
            yield from _check_thinking(body, generation, is_vertex=is_vertex)
        yield from _check_order(contents)
        yield from self._check_signatures(contents, model, _read_project(request), is_vertex=is_vertex)
        if generation is not None and generation.signed_calls:
            yield from _check_missing(contents, is_vertex=is_vertex)

    def _check_signatures(
        self, contents: list[Wire], model: str, project: str, *, is_vertex: bool
    ) -> Iterator[DetailedRefusal]:
        for place, content in enumerate(contents):
            for number, part in enumerate(content.get("parts") or []):
                signature = _read_signature(part)
                if signature is None or signature in _PLACEHOLDERS:
                    continue
                data = read_base64(signature)
                if data is None:
                    yield texts.NO_BASE64.refuse(content=place, part=number, value=f"{signature[:8]}…")
                elif data.decode("latin-1") in _PLACEHOLDERS:
                    continue
                elif (unify_base64(signature), model, project, _describe_wire(part)) not in self._scripted_seals:
                    yield from self._check_token(data, model, project, _describe_wire(part), is_vertex=is_vertex)

    def _check_token(
        self, data: bytes, model: str, project: str, part: str, *, is_vertex: bool
    ) -> Iterator[DetailedRefusal]:
        if not hmac.compare_digest(self._write(data[_MAC_SIZE:]).encode(), b64encode(data)):
            yield texts.CORRUPTED.refuse()
        elif unify_base64(self._sign(model, project, part)) != unify_base64(b64encode(data).decode()):
            yield (texts.INVALID_VERTEX if is_vertex else texts.INVALID).refuse()


def _read_model(request: Request) -> str:
    found = _PATH.search(request.path)
    return found[1] if found else ""


def _read_project(request: Request) -> str:
    """Return the project in the address; without one, the account of the key."""
    found = _PROJECT.search(request.path)
    return found[1] if found else read_account(request)


# --- parts ------------------------------------------------------------------------------------------------------------


def _get(part: Wire, name: str) -> Any:
    """Return a field under its name, or under the one with underscores, which the servers take too."""
    return part.get(name, part.get(re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)))


def _read_signature(part: Wire) -> str | None:
    found = _get(part, "thoughtSignature")
    return str(found) if found else None


def _list_seals(part: Part) -> tuple[Seal, ...]:
    return () if isinstance(part, (ToolResult, Refusal)) else tuple(seal for seal in part.seals if seal.value)


def _describe(part: Part) -> str:
    """Return what a signature covers besides model and project: a call and its arguments, of anything else nothing."""
    return _describe_call(part.name, part.arguments) if isinstance(part, ToolCall) else ""


def _describe_wire(part: Wire) -> str:
    call = _get(part, "functionCall")
    return "" if call is None else _describe_call(call.get("name"), call.get("args") or {})


def _describe_call(name: object, arguments: object) -> str:
    return f"{name} {msgspec.json.encode(arguments, order='sorted').decode()}"


# --- turns ------------------------------------------------------------------------------------------------------------


def _check_order(contents: list[Wire]) -> Iterator[DetailedRefusal]:
    """Check that a turn with calls follows a user or results, and that as many results as calls follow it."""
    for place, content in enumerate(contents):
        if not content.get("parts"):
            yield texts.EMPTY_PARTS.refuse(content=place)
    # Clients of the vendor repeat results, and the servers take it.
    once = [content for place, content in enumerate(contents) if not (place and content == contents[place - 1])]
    turns = [[content for _, content in run] for _, run in groupby(enumerate(once), key=_name_turn)]
    for number, turn in enumerate(turns):
        calls, results = len(_list_fields(turn, "functionCall")), len(_list_fields(turn, "functionResponse"))
        if calls and not number:
            yield texts.CALL_ORDER.refuse()
        if results and not (number and _list_fields(turns[number - 1], "functionCall")):
            yield texts.RESPONSE_ORDER.refuse()
        answers = _list_fields(turns[number + 1] if number + 1 < len(turns) else [], "functionResponse")
        extra = [answer for answer in answers[calls:] if answer not in answers[:calls]]
        if calls and (len(answers) < calls or extra):
            yield texts.RESPONSE_COUNT.refuse()


def _name_turn(numbered: tuple[int, Wire]) -> str:
    """Return the same name for contents of one turn."""
    place, content = numbered
    return "model" if content.get("role") == "model" else f"user {place}"


def _list_fields(turn: list[Wire], name: str) -> list[Any]:
    """Return the calls, or the results, of a turn."""
    found = [_get(part, name) for content in turn for part in content.get("parts") or []]
    return [one for one in found if one is not None]


def _check_missing(contents: list[Wire], *, is_vertex: bool) -> Iterator[DetailedRefusal]:
    """Check that the first call of each step since the user's last words carries a signature."""
    start = max((place for place, content in enumerate(contents) if _starts_turn(content)), default=-1)
    for is_model, run in groupby(enumerate(contents), key=lambda numbered: numbered[1].get("role") == "model"):
        calls = [
            (place, part)
            for place, content in run
            for part in content.get("parts") or []
            if _get(part, "functionCall") is not None
        ]
        if is_model and calls and calls[0][0] > start and _read_signature(calls[0][1]) is None:
            place, part = calls[0]
            name = _get(part, "functionCall").get("name")
            yield (texts.MISSING_VERTEX if is_vertex else texts.MISSING).refuse(name=name, position=place + 1)


def _starts_turn(content: Wire) -> bool:
    if content.get("role") == "model":
        return False
    return not all(_get(part, "functionResponse") is not None for part in content.get("parts") or [])


# --- settings ---------------------------------------------------------------------------------------------------------


def _check_thinking(body: Wire, generation: texts.GeminiGeneration, *, is_vertex: bool) -> Iterator[DetailedRefusal]:
    config = _get(_get(body, "generationConfig") or {}, "thinkingConfig") or {}
    budget, level = _get(config, "thinkingBudget"), _get(config, "thinkingLevel")
    if budget is not None and level is not None:
        yield texts.BOTH.refuse()
    if budget == 0 and not generation.can_turn_off:
        yield texts.ALWAYS_THINKS.refuse()
    if generation.budget is not None and isinstance(budget, int) and budget not in (-1, 0):
        least, most = generation.budget
        if not least <= budget <= most:
            yield texts.BUDGET_RANGE.refuse(budget=budget, least=least, most=most)
    if level is None:
        return
    if not generation.levels:
        yield texts.LEVEL_UNSUPPORTED.refuse()
    elif str(level).lower() not in generation.levels:
        yield (texts.LEVEL_VALUE_VERTEX if is_vertex else texts.LEVEL_VALUE).refuse(level=str(level).upper())
