"""Rules of chat completions: calls paired with results, content, and the thinking that hosts of a family demand back.

Written from the documented rules and from reported errors, not copied from a server. The model's name decides which
hosts the stage imitates; for an unknown name, only the rules of all hosts apply. The families are stated here a second
time, independent of the providers' rows, so that tests compare the two.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from itertools import count, pairwise
from typing import Literal

import msgspec

from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.dialects.openai_chat.wire import read_signature
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import RequestRules, Wire, find_pairing_faults, find_turn_start, list_call_ids
from asides.values.events import Event, ReplyEnded, ThinkingDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.thinking import Seal

# OpenAI's own endpoint refuses tools together with an effort (since GPT-5.4).
_NEWER = re.compile(r"gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])")
_NINE_ALPHANUMERICS = re.compile(r"[A-Za-z0-9]{9}")
_ASSISTANT_FIELDS = frozenset({"role", "content", "tool_calls", "prefix"})
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
_SIGNATURE = "thought_signature"
_FORMATS = {
    "signed_text": "anthropic-claude-v1",
    "summary_and_token": "openai-responses-v1",
    "token": "google-gemini-v1",
    "plain_text": "MiniMax-response-v1",
}
_ENDING = (UsageReported, Warned, ReplyEnded)


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del today  # No rule here depends on the date yet.
    return _ChatRules(secret)


class _ChatRules:
    def __init__(self, secret: bytes) -> None:
        self._issued = IssuedState(secret)

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(body), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the state that the hosts of this model put on thoughts and calls; most add none."""
        body: Wire = msgspec.json.decode(request.body)
        model = str(body.get("model"))
        return self._issued.seal(events, model, find_family(model))

    def _check(self, body: Wire) -> Iterator[str]:
        model = str(body.get("model"))
        messages: list[Wire] = body.get("messages") or []
        family = find_family(model)
        if _NEWER.match(model) and body.get("tools") and body.get("reasoning_effort") not in (None, "none"):
            yield (
                f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
                "Please use /v1/responses instead."
            )
        yield from _check_pairs(messages)
        yield from _check_content(messages, family)
        if family.closed:
            yield from _check_order(messages)
            yield from _check_form(messages)
        yield from _check_thinking(messages, family, thinks=family.thinks_on(body))
        yield from self._issued.check(messages, model, family)


def _check_pairs(messages: list[Wire]) -> Iterator[str]:
    for fault in find_pairing_faults(messages):
        ids = ", ".join(fault.ids)
        match fault.kind:
            case "unanswered":
                yield (
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    f"'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
                )
            case "unasked":
                yield (
                    f"Invalid parameter: messages[{fault.place}]: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls'; tool_call_id {ids} is not found."
                )
            case "twice":
                yield f"Duplicate value for 'tool_call_id' of '{ids}' in messages[{fault.place}]."


def _check_content(messages: list[Wire], family: Family) -> Iterator[str]:
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        calls = bool(message.get("tool_calls"))
        may_be_null = role == "assistant" and any(message.get(name) for name in _INSTEAD_OF_CONTENT)
        if content is None and not may_be_null:
            yield f"Invalid value for 'messages[{place}].content': expected a string, got null."
        # A tool result may be empty; whether hosts refuse that is unknown.
        needs_content = role in ("user", "assistant") and not (calls and "content" not in message)
        if not family.takes_blanks and needs_content and _is_blank(content):
            yield f"Invalid request: message at position {place} with role '{role}' must not be empty"
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "text" and not isinstance(part.get("text"), str):
                yield f"Invalid value for 'messages[{place}].content': a text part has no text."


def _is_blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and not content.strip())


def _check_order(messages: list[Wire]) -> Iterator[str]:
    """Check the order of strict templates: only the model follows tool results, never a user."""
    roles = [str(message.get("role")) for message in messages]
    for before, role in pairwise(roles):
        if role == "user" and before == "tool":
            yield f"Unexpected role '{role}' after role '{before}'"
    if roles and roles[-1] not in ("user", "tool") and not messages[-1].get("prefix"):
        yield (f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}")


def _check_form(messages: list[Wire]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        extra = (name for name in message if name not in _ASSISTANT_FIELDS)
        yield from (f"messages[{place}].{name}: Extra inputs are not permitted" for name in extra)
        for name in list_call_ids(message):
            if not _NINE_ALPHANUMERICS.fullmatch(name):
                yield f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9."
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "thinking" and not _is_thinking_part(part):
                yield f"messages[{place}].content: a thinking chunk holds a list of text chunks."


def _is_thinking_part(part: Wire) -> bool:
    inside = part.get("thinking")
    return isinstance(inside, list) and all(
        isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk.get("text"), str)
        for chunk in inside
    )


def _check_thinking(messages: list[Wire], family: Family, *, thinks: bool) -> Iterator[str]:
    """Check that earlier thinking comes back where the host demands it, and not where it refuses it."""
    turn_start = find_turn_start(messages)
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        if family.replay == "never" and any(name in message for name in _THINKING_FIELDS):
            yield f"messages[{place}]: reasoning_content is not supported in the input of this model."
        if not thinks or not message.get("tool_calls"):
            continue
        required = family.replay == "tool_turns" or (family.replay == "loop" and place > turn_start)
        if required and not isinstance(message.get("reasoning_content"), str):
            yield family.demand.format(place=place)


# --- the demands of the hosts of a model ------------------------------------------------------------------------------


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of the hosts of one family of models."""

    replay: Literal["anything", "never", "tool_turns", "loop"] = "anything"
    """Rule for `reasoning_content`. anything: optional · never: refused · tool_turns: required on every turn with tool
    calls, even if empty · loop: required on such turns of the current loop."""
    demand: str = ""
    """The host's error message if it is missing."""
    exact: bool = False
    """Whether a turn with tool calls that the host made must come back with exactly its thinking."""
    thinks: Literal["always", "unless_switched_off", "when_asked"] = "always"
    takes_blanks: bool = True
    """Whether a message may be empty."""
    closed: bool = False
    """Unknown fields are refused, ids are nine letters or digits, and only the model follows tool results."""
    issues: Literal["nothing", "signed_text", "summary_and_token", "token", "plain_text", "call_signature"] = "nothing"
    """State in `reasoning_details`: text with a signature · a summary and an encrypted token · only the token · plain
    text; or a signature on the first call of a reply, which must come back on that call."""

    def thinks_on(self, body: Wire) -> bool:
        """Return whether the model thinks on this request."""
        toggle = body.get("thinking")
        kind = toggle.get("type") if isinstance(toggle, dict) else None
        effort = body.get("reasoning_effort")
        match self.thinks:
            case "always":
                return True
            case "unless_switched_off":
                return kind != "disabled" and effort != "none"
            case "when_asked":
                return kind in ("enabled", "adaptive") or effort not in (None, "none")


_NOT_RETURNED = "The `reasoning_content` in the thinking mode must be passed back to the API."
_MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"

_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        # api-docs.deepseek.com/zh-cn/guides/reasoning_model, 2025-01.
        (r"deepseek-r1", Family(replay="never")),
        # Guide to thinking with tools, 2025-12: inside the loop.
        (r"deepseek-v3\.[2-9]", Family(replay="loop", demand=_NOT_RETURNED, exact=True, thinks="when_asked")),
        # Guide to the thinking mode, 2026-04: on turns with tool calls, in all later requests; plain turns need none.
        (
            r"deepseek-(?:v[4-9]|flash|reasoner)",
            Family(replay="tool_turns", demand=_NOT_RETURNED, exact=True, thinks="unless_switched_off"),
        ),
        (r"deepseek-chat", Family(replay="tool_turns", demand=_NOT_RETURNED, exact=True, thinks="when_asked")),
        # kimi-cli's client, 2026-07: even if empty; a turn with tool calls omits empty content.
        (
            r"kimi-(?:k2\.[5-9]|k2-thinking|k[3-9]|thinking)",
            Family(replay="tool_turns", demand=_MISSING, exact=True, thinks="unless_switched_off", takes_blanks=False),
        ),
        (r"kimi-|moonshot-", Family(takes_blanks=False)),
        # docs.z.ai thinking-mode, 2026-08: inside the loop, exact and in order; sending none is accepted.
        (r"glm-(?:4\.[5-9]|[5-9])", Family(exact=True, thinks="unless_switched_off")),
        # The whole turn must come back, its details verbatim; nothing in them is signed.
        (r"minimax-m", Family(issues="plain_text")),
        # invalid_request_message_order, code 3230 (avante.nvim#2695, litellm#17761, hermes-agent#20154; 2026-05).
        (r"(?:magi|mi|mini|code|dev|pix)stral|pixtral|open-mi[sx]tral", Family(closed=True)),
        # A gateway that passes on its upstream's state: names with the maker in front.
        (r"anthropic/claude", Family(issues="signed_text")),
        (r"(?:openai/(?:gpt-[5-9]|o\d)|x-ai/grok)", Family(issues="summary_and_token")),
        (r"google/gemini", Family(issues="token")),
        # thought-signatures over the chat endpoint, 2026-08: on the first call of each step of the current turn.
        (r"(?:models/)?gemini-[3-9]", Family(issues="call_signature")),
    )
)
_ANY = Family()


def find_family(model: str) -> Family:
    """Return the demands of the hosts of this model."""
    name = model.lower()
    return next((family for pattern, family in _FAMILIES if pattern.match(name)), _ANY)


# --- the state that hosts put into a reply and check when it comes back -----------------------------------------------


class _Place(msgspec.Struct, frozen=True):
    """The position of an entry in the reply that it was issued in."""

    turn: int
    number: int
    model: str


class IssuedState:
    """The state that one stage has issued. It must come back byte for byte, whole and in order."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._turns = count(1)
        self._entries: dict[bytes, _Place] = {}
        self._lengths: dict[int, int] = {}
        self._thoughts: dict[str, set[str]] = {}
        """The thinking before each call, by call id; a script may use one id several times."""

    # --- issuing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], model: str, family: Family) -> list[Event]:
        """Add the state that this family issues to the events of a reply."""
        reply = fold(events)
        thought = reply.thinking.text if reply.thinking is not None else ""
        for call in reply.tool_calls:
            self._thoughts.setdefault(call.id, set()).add(thought)
        if family.issues == "nothing":
            return events
        if family.issues == "call_signature":
            return self._add_signature(events, model)
        return self._add_details(events, model, family)

    def _add_details(self, events: list[Event], model: str, family: Family) -> list[Event]:
        turn, number = next(self._turns), 0
        sealed: list[Event] = []
        thought: int | None = None
        pieces: list[str] = []
        for event in events:
            if thought is not None and getattr(event, "block", None) != thought:
                for entry in self._build_entries("".join(pieces), turn, number, family):
                    sealed.append(self._issue(entry, thought, _Place(turn, number, model)))
                    number += 1
                thought, pieces = None, []
            if isinstance(event, ThinkingDelta):
                thought = event.block
                pieces.append(event.text)
                # The plain field holds the text too.
                event = msgspec.structs.replace(event, via="reasoning")
            sealed.append(event)
        self._lengths[turn] = number
        return sealed

    def _build_entries(self, text: str, turn: int, number: int, family: Family) -> list[Wire]:
        """Build the entries of one thought. They differ from turn to turn, even for the same thought."""
        form = _FORMATS[family.issues]
        place: Wire = {"format": form, "index": number}
        shown: Wire = {"type": "reasoning.text", "text": text, **place}
        token: Wire = {"type": "reasoning.encrypted", "data": "", "id": f"rs_{turn}_{number}", "format": form}
        match family.issues:
            case "signed_text":
                return [shown | {"signature": self._sign([shown, turn])}]
            case "summary_and_token":
                summary = {"type": "reasoning.summary", "summary": text, "id": token["id"], **place}
                token["index"] = number + 1
                return [summary, token | {"data": self._sign([token, text])}]
            case "token":
                token["index"] = number
                return [token | {"data": self._sign([token, text])}]
            case _:
                return [shown | {"id": f"reasoning-text-{turn}-{number}"}]

    def _issue(self, entry: Wire, block: int, place: _Place) -> ThoughtSealed:
        self._entries[_encode_sorted(entry)] = place
        value = str(entry.get("signature") or entry.get("data") or "")
        return ThoughtSealed(Seal(DETAILS, value, entry=msgspec.json.encode(entry).decode()), block)

    def _add_signature(self, events: list[Event], model: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            return events
        call = fold(events).tool_calls[0]
        value = self._sign([model, call.name, call.arguments])
        entry = f'{{"google":{{"thought_signature":"{value}"}}}}'
        end = 1 + max(place for place, event in enumerate(events) if not isinstance(event, _ENDING))
        return [*events[:end], ThoughtSealed(Seal(_SIGNATURE, value, entry=entry), called), *events[end:]]

    def _sign(self, content: object) -> str:
        return b64encode(hmac.digest(self._secret, msgspec.json.encode(content, order="sorted"), "sha256")).decode()

    # --- checking -----------------------------------------------------------------------------------------------------

    def check(self, messages: list[Wire], model: str, family: Family) -> Iterator[str]:
        """Yield what is wrong with the state that came back: not issued here, changed, or incomplete."""
        turn_start = find_turn_start(messages)
        for place, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            if family.exact:
                yield from self._check_text(message, place)
            if family.issues == "call_signature":
                yield from self._check_signatures(message, place, model, needed=place > turn_start)
            elif family.issues != "nothing":
                yield from self._check_details(message, place, model, family)

    def _check_text(self, message: Wire, place: int) -> Iterator[str]:
        """Check that an issued turn comes back with its own thinking, or with none."""
        returned = message.get("reasoning_content")
        issued = {thought for name in list_call_ids(message) for thought in self._thoughts.get(name, ())}
        if returned and issued and returned not in issued:
            yield f"messages[{place}]: the reasoning_content is not the one of this turn."

    def _check_details(self, message: Wire, place: int, model: str, family: Family) -> Iterator[str]:
        details = message.get(DETAILS)
        if not details:
            if message.get("reasoning") and family.issues in ("signed_text", "token"):
                yield f"messages[{place}]: reasoning came back without its reasoning_details."
            return
        found = [self._entries.get(_encode_sorted(entry)) for entry in details]
        issued = [at for at in found if at is not None]
        if len(issued) != len(found) or any(at.model != model for at in issued):
            yield f"messages[{place}]: Invalid `signature` in reasoning_details: an entry was not given by this model."
        elif [(at.turn, at.number) for at in issued] != [
            (issued[0].turn, number) for number in range(self._lengths[issued[0].turn])
        ]:
            yield f"messages[{place}]: reasoning_details must come back whole, once, and in their order."

    def _check_signatures(self, message: Wire, place: int, model: str, *, needed: bool) -> Iterator[str]:
        for number, call in enumerate(message.get("tool_calls") or ()):
            carrier = call.get("extra_content")
            value = None if carrier is None else read_signature(msgspec.json.encode(carrier))
            function = call.get("function") or {}
            if value is None:
                if needed and number == 0:
                    yield (
                        "Function call is missing a thought_signature in functionCall parts. "
                        f"The call of {function.get('name')} in messages[{place}] has none."
                    )
                continue
            arguments = msgspec.json.decode(function.get("arguments") or "{}")
            if value != STAND_IN and value != self._sign([model, function.get("name"), arguments]):
                yield f"Corrupted thought signature: that of messages[{place}] was not given for it by this model."


def _encode_sorted(entry: Wire) -> bytes:
    """Encode an entry so that the order of its fields does not matter."""
    return msgspec.json.encode(entry, order="sorted")
