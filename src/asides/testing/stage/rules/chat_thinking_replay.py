"""The state that chat hosts put beside a reply, and know again: `reasoning_details` and the signatures of calls.

Not here: which hosts do so (chat_families_rules). What comes back of it is what was given, byte for byte, whole and in
order; another stage's is refused, since each has a secret of its own.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from itertools import count

import msgspec

from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.dialects.openai_chat.wire import read_signature
from asides.testing.stage.rules import Wire, call_ids, turn_under_way
from asides.testing.stage.rules.chat_model_families import Family
from asides.values.events import Event, ReplyEnded, ThinkingDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.thinking import Seal

_SIGNATURE = "thought_signature"
_FORMATS = {
    "signed_text": "anthropic-claude-v1",
    "summary_and_token": "openai-responses-v1",
    "token": "google-gemini-v1",
    "plain_text": "MiniMax-response-v1",
}
_ENDING = (UsageReported, Warned, ReplyEnded)


class _Place(msgspec.Struct, frozen=True):
    """Where an entry stood when it was given."""

    turn: int
    number: int
    model: str


class Issued:
    """What one stage has given out in chat completions."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._turns = count(1)
        self._entries: dict[bytes, _Place] = {}
        self._lengths: dict[int, int] = {}
        self._thoughts: dict[str, set[str]] = {}
        """What was thought before each call, by its id; a script may give one id out more than once."""

    # --- giving -------------------------------------------------------------------------------------------------------

    def sealed(self, events: list[Event], model: str, family: Family) -> list[Event]:
        """The events of a reply with the state that this family gives."""
        reply = fold(events)
        thought = reply.thinking.text if reply.thinking is not None else ""
        for call in reply.tool_calls:
            self._thoughts.setdefault(call.id, set()).add(thought)
        match family.hands_out:
            case "nothing":
                return events
            case "call_signature":
                return self._with_signature(events, model)
            case _:
                return self._with_details(events, model, family)

    def _with_details(self, events: list[Event], model: str, family: Family) -> list[Event]:
        turn, number = next(self._turns), 0
        told: list[Event] = []
        thought: int | None = None
        pieces: list[str] = []
        for event in events:
            if thought is not None and getattr(event, "block", None) != thought:
                for entry in self._entries_of("".join(pieces), turn, number, family):
                    told.append(self._given(entry, thought, _Place(turn, number, model)))
                    number += 1
                thought, pieces = None, []
            if isinstance(event, ThinkingDelta):
                thought = event.block
                pieces.append(event.text)
                # The text stands in the plain field too.
                event = msgspec.structs.replace(event, via="reasoning")
            told.append(event)
        self._lengths[turn] = number
        return told

    def _entries_of(self, text: str, turn: int, number: int, family: Family) -> list[Wire]:
        """The entries of one thought; no other turn has the same, though it may have had the same thought."""
        form = _FORMATS[family.hands_out]
        shown: Wire = {"type": "reasoning.text", "text": text, "format": form, "index": number}
        token: Wire = {"type": "reasoning.encrypted", "data": "", "id": f"rs_{turn}_{number}", "format": form}
        match family.hands_out:
            case "signed_text":
                return [shown | {"signature": self._sign([shown, turn])}]
            case "summary_and_token":
                summary = {
                    "type": "reasoning.summary",
                    "summary": text,
                    "id": token["id"],
                    "format": form,
                    "index": number,
                }
                token["index"] = number + 1
                return [summary, token | {"data": self._sign([token, text])}]
            case "token":
                token["index"] = number
                return [token | {"data": self._sign([token, text])}]
            case _:
                return [shown | {"id": f"reasoning-text-{turn}-{number}"}]

    def _given(self, entry: Wire, block: int, place: _Place) -> ThoughtSealed:
        self._entries[_plain(entry)] = place
        value = str(entry.get("signature") or entry.get("data") or "")
        return ThoughtSealed(Seal(DETAILS, value, entry=msgspec.json.encode(entry).decode()), block)

    def _with_signature(self, events: list[Event], model: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            return events
        call = fold(events).tool_calls[0]
        value = self._sign([model, call.name, call.arguments])
        entry = f'{{"google":{{"thought_signature":"{value}"}}}}'
        behind = 1 + max(place for place, event in enumerate(events) if not isinstance(event, _ENDING))
        return [*events[:behind], ThoughtSealed(Seal(_SIGNATURE, value, entry=entry), called), *events[behind:]]

    def _sign(self, told: object) -> str:
        made = hmac.digest(self._secret, msgspec.json.encode(told, order="sorted"), "sha256")
        return b64encode(made).decode()

    # --- knowing again ------------------------------------------------------------------------------------------------

    def problems(self, messages: list[Wire], model: str, family: Family) -> Iterator[str]:
        """What of the state that comes back was never given, or is not as it was."""
        begun = turn_under_way(messages)
        for place, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            if family.exact:
                yield from self._text_problems(message, place)
            if family.hands_out == "call_signature":
                yield from self._signature_problems(message, place, model, needed=place > begun)
            elif family.hands_out != "nothing":
                yield from self._detail_problems(message, place, model, family)

    def _text_problems(self, message: Wire, place: int) -> Iterator[str]:
        """A turn of ours comes back with what was thought in it; empty, where that was lost."""
        told = message.get("reasoning_content")
        given = {thought for name in call_ids(message) for thought in self._thoughts.get(name, ())}
        if told and given and told not in given:
            yield f"messages[{place}]: the reasoning_content is not the one of this turn."

    def _detail_problems(self, message: Wire, place: int, model: str, family: Family) -> Iterator[str]:
        told = message.get(DETAILS)
        if not told:
            if message.get("reasoning") and family.hands_out in ("signed_text", "token"):
                yield f"messages[{place}]: reasoning came back without its reasoning_details."
            return
        known = [self._entries.get(_plain(entry)) for entry in told]
        given = [at for at in known if at is not None]
        if len(given) != len(known) or any(at.model != model for at in given):
            yield f"messages[{place}]: Invalid `signature` in reasoning_details: an entry was not given by this model."
        elif [(at.turn, at.number) for at in given] != [
            (given[0].turn, number) for number in range(self._lengths[given[0].turn])
        ]:
            yield f"messages[{place}]: reasoning_details must come back whole, once, and in their order."

    def _signature_problems(self, message: Wire, place: int, model: str, *, needed: bool) -> Iterator[str]:
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


def _plain(entry: Wire) -> bytes:
    """An entry as what it says, whatever the order of its fields."""
    return msgspec.json.encode(entry, order="sorted")
