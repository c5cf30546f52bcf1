"""The state that hosts of chat completions put into a reply and check when it comes back, as real MACs.

`reasoning_details` of gateways, and signatures on calls. It must come back byte for byte, whole and in order.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from typing import Literal, TypeAlias

import msgspec

from asides.dialects.flat_messages import list_call_ids
from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.dialects.openai_chat.rules.gateways import SIGNATURE_CORRUPTED
from asides.dialects.openai_chat.rules.state import (
    INVALID_SIGNATURE,
    MODIFIED,
    NOT_WHOLE,
    OTHER_THINKING,
    UNDECRYPTED,
    UNVERIFIED,
    WITHOUT_DETAILS,
)
from asides.dialects.openai_chat.wire import read_signature
from asides.dialects.rulebook import BrokenRule, Wire
from asides.values.events import Event, ReplyEnded, ThinkingDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.thinking import Seal

StateForm: TypeAlias = Literal["signed_text", "summary_and_token", "token", "plain_text", "call_signature"]
"""State in `reasoning_details`: text with a signature · a summary and an encrypted token · only the token · plain text;
or a signature on the first call of a reply, which must come back on that call."""
_SIGNATURE = "thought_signature"
# openrouter.ai docs reasoning-tokens; OpenRouterTeam/ai-sdk-provider src/schemas/format.ts, 2026-06-25.
_FORMATS = {
    "signed_text": "anthropic-claude-v1",
    "summary_and_token": "openai-responses-v1",
    "token": "google-gemini-v1",
    "plain_text": "MiniMax-response-v1",
}
_ENDING = (UsageReported, Warned, ReplyEnded)
# What clients put in the place of thinking that is gone.
_PLACEHOLDERS = ("", " ", ".")


class _Place(msgspec.Struct, frozen=True):
    """The position of an entry in the reply that it was issued in."""

    turn: int
    number: int
    model: str


class IssuedDetails:
    """The state that one stage has issued."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._turns = count(1)
        self._entries: dict[bytes, _Place] = {}
        self._values: set[str] = set()
        """The signatures and tokens of all entries."""
        self._lengths: dict[int, int] = {}
        self._thoughts: dict[str, set[str]] = {}
        """The thinking before each call, by call id; a script may use one id several times."""

    # --- issuing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], model: str, form: StateForm | None) -> list[Event]:
        """Add state of this form to the events of a reply."""
        reply = fold(events)
        thought = reply.thinking.text
        for call in reply.tool_calls:
            self._thoughts.setdefault(call.id, set()).add(thought)
        if form is None:
            return events
        if form == "call_signature":
            return self._add_signature(events, model)
        return self._add_details(events, model, form)

    def _add_details(self, events: list[Event], model: str, form: StateForm) -> list[Event]:
        turn, number = next(self._turns), 0
        sealed: list[Event] = []
        thought: int | None = None
        pieces: list[str] = []
        for event in events:
            if thought is not None and getattr(event, "block", None) != thought:
                for entry in self._build_entries("".join(pieces), turn, number, model, form):
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

    def _build_entries(self, text: str, turn: int, number: int, model: str, form: StateForm) -> list[Wire]:
        """Build the entries of one thought. They differ from turn to turn, even for the same thought."""
        written = "xai-responses-v1" if model.lower().startswith("x-ai/") else _FORMATS[form]
        place: Wire = {"format": written, "index": number}
        shown: Wire = {"type": "reasoning.text", "text": text, **place}
        token: Wire = {"type": "reasoning.encrypted", "data": "", "id": f"rs_{turn}_{number}", "format": written}
        match form:
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
        self._values.add(value)
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

    def check(self, body: Wire, form: StateForm | None, *, exact: bool) -> Iterator[BrokenRule]:
        """Yield what is wrong with the state that came back: not issued here, changed, or incomplete.

        `exact`: thinking in a plain field is that of its own turn.
        """
        model, messages = str(body.get("model")), body.get("messages") or []
        turns = [(place, message) for place, message in enumerate(messages) if message.get("role") == "assistant"]
        latest = turns[-1][0] if turns else -1
        for place, message in turns:
            if exact:
                yield from self._check_text(message, place)
            if form == "call_signature":
                yield from self._check_signatures(message, place, model)
            elif form is not None:
                yield from self._check_details(message, place, model, form, is_latest=place == latest)

    def _check_text(self, message: Wire, place: int) -> Iterator[BrokenRule]:
        """Check that an issued turn comes back with its own thinking, or with none."""
        returned = message.get("reasoning_content")
        issued = {thought for name in list_call_ids(message) for thought in self._thoughts.get(name, ())}
        if isinstance(returned, str) and returned not in _PLACEHOLDERS and issued and returned not in issued:
            yield OTHER_THINKING.broken(f"messages[{place}]", place=place)

    def _check_details(
        self, message: Wire, place: int, model: str, form: StateForm, *, is_latest: bool
    ) -> Iterator[BrokenRule]:
        details = message.get(DETAILS)
        if not details:
            if message.get("reasoning") and form in ("signed_text", "token"):
                yield WITHOUT_DETAILS.broken(f"messages[{place}]", place=place)
            return
        found = [self._entries.get(_encode_sorted(entry)) for entry in details]
        for number, (entry, at) in enumerate(zip(details, found, strict=True)):
            if at is None or at.model != model:
                yield self._describe(entry, at, place, number, model, form, is_latest=is_latest)
                return
        issued = [at for at in found if at is not None]
        if [(at.turn, at.number) for at in issued] != [
            (issued[0].turn, number) for number in range(self._lengths[issued[0].turn])
        ]:
            yield NOT_WHOLE.broken(f"messages[{place}]", place=place)

    def _describe(
        self, entry: Wire, at: _Place | None, place: int, number: int, model: str, form: StateForm, *, is_latest: bool
    ) -> BrokenRule:
        """Return the words of the upstream for an entry that this model did not make, or not so."""
        match form:
            case "signed_text":
                is_ours = at is None and entry.get("signature") in self._values
                rule = MODIFIED if is_ours and is_latest else INVALID_SIGNATURE
                return rule.broken(f"messages[{place}]", place=place, number=number)
            case "summary_and_token":
                rule = UNDECRYPTED if re.match(r"(?:x-ai/)?grok", model.lower()) else UNVERIFIED
                return rule.broken(f"messages[{place}]", name=entry.get("id"))
            case "token":
                return SIGNATURE_CORRUPTED.broken(f"messages[{place}]")
            case _:
                return NOT_WHOLE.broken(f"messages[{place}]", place=place)

    def _check_signatures(self, message: Wire, place: int, model: str) -> Iterator[BrokenRule]:
        for number, call in enumerate(message.get("tool_calls") or ()):
            carrier = call.get("extra_content")
            value = None if carrier is None else read_signature(msgspec.json.encode(carrier))
            function = call.get("function") or {}
            if value is None:
                continue
            arguments = msgspec.json.decode(function.get("arguments") or "{}")
            if value != STAND_IN and value != self._sign([model, function.get("name"), arguments]):
                yield SIGNATURE_CORRUPTED.broken(f"messages[{place}].tool_calls[{number}]")


def _encode_sorted(entry: Wire) -> bytes:
    """Encode an entry so that the order of its fields does not matter."""
    return msgspec.json.encode(entry, order="sorted")
