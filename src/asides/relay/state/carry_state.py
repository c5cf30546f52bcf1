"""Outbound: `StateCarrier` replaces provider seals by encrypted envelopes that the client will send back.

The seals of the provider never reach the caller. Every thought that the caller can give back gets an envelope, as a
seal of the caller's dialect. Other state is in the record of the turn (`StateCarrier.finish`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from asides.dialects import find_facts
from asides.providers.provider import Provider
from asides.relay.state.envelope import make_envelope, make_reference, wrap_in_base64
from asides.relay.state.relay_keys import TenantKeys, can_encrypt
from asides.relay.state.turn_state import (
    DETAILS,
    HAS_STORE,
    PartState,
    StateMode,
    TurnState,
    find_thoughts_with_text,
    is_opaque,
    make_call_state,
    make_thought_state,
    make_whole_state,
)
from asides.relay.state.vault_records import HistoryChain, make_turn_record
from asides.relay.steps import StoredRecord
from asides.values.events import (
    CommentaryDelta,
    Event,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.learned import Learned
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import Commentary, ToolCall, read_arguments
from asides.values.reply import Reply
from asides.values.thinking import Effort, Seal, Thought, ThoughtKind, ThoughtSource

# Seals that are the last of their thought.
_CLOSING = frozenset({"signature", "redacted", "encrypted", "item"})
_MORE_OF_A_BLOCK = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})


class CarryRules(msgspec.Struct, frozen=True):
    """How clients of a dialect carry state."""

    signed: str = ""
    """The kind of seal of a thought with text; "" if clients of the dialect carry none."""
    hidden: str = ""
    """The kind of seal that is a thought of its own."""
    is_bytes: bool = False
    """Whether both fields hold bytes."""
    hidden_is_bytes: bool = False
    """Whether that field holds bytes."""
    on_parts: bool = False
    """Seals sit on calls and texts too, and clients give those back sooner than thoughts."""
    keeps_text: bool = False
    """The envelope holds the text of a thought, where its provider wants it back: clients leave it out."""
    keeps_commentary: bool = False
    """An envelope holds the commentary: clients of the dialect never see it."""


_RULES = {
    "anthropic": CarryRules("signature", "redacted", keeps_commentary=True),
    "bedrock": CarryRules("signature", "redacted", hidden_is_bytes=True, keeps_commentary=True),
    # Its own agent gives a reasoning item back without the raw text (seen 2026-11-15, version 0.166).
    "openai_responses": CarryRules("encrypted", "encrypted", keeps_text=True),
    "gemini": CarryRules(
        "thought_signature", "thought_signature", on_parts=True, keeps_text=True, keeps_commentary=True
    ),
}
_NO_RULES = CarryRules()


def _find_rules(dialect: str) -> CarryRules:
    """Return the rules of a dialect. Where thoughts are blocks, their usual seal carries the state."""
    facts = find_facts(dialect)
    if dialect in _RULES or not facts.thinks_in_blocks or not facts.seal_kinds:
        return _RULES.get(dialect, _NO_RULES)
    kind = facts.seal_kinds[0]
    return CarryRules(kind, kind, is_bytes=facts.seals_are_bytes, keeps_text=True, keeps_commentary=True)


_DETAILS_RULES = CarryRules(DETAILS, DETAILS, keeps_text=True)


class _OpenThought:
    """A thought while it arrives."""

    def __init__(self, kind: ThoughtKind, source: ThoughtSource, via: str | None, before: int) -> None:
        self.before = before
        """How many characters of the answer were before it."""
        self.facts = kind, source, via
        self.pieces: list[str] = []
        self.seals: list[Seal] = []
        self.signed_size = 0
        """How many seals and pieces its envelope covers."""
        self.carried_size = 0
        """The same for an envelope on a call or a text."""

    @property
    def size(self) -> int:
        return len(self.seals) + len(self.pieces)


_BlockKind = Literal["thought", "call", "other"]


class StateCarrier:
    """Carries the state of one reply. `carry` takes every batch of events, with the ids of calls that the caller gets;
    `finish` gives the record for the vault.
    """

    def __init__(
        self,
        caller_dialect: str,
        keys: TenantKeys,
        mode: StateMode,
        *,
        rows: Sequence[Provider] = (),
        details: bool = False,
        hides: bool = False,
    ) -> None:
        """`rows` are providers of the user. `details`: callers of chat completions get `reasoning_details`. `hides`:
        the caller gets no thoughts, so that their state rides on other parts, or before a call where nothing stores it.
        """
        self._keys = keys
        self._mode: StateMode = mode
        self._rows = rows
        self._returns_ids = find_facts(caller_dialect).returns_call_ids
        rules = _find_rules(caller_dialect)
        self._rules = _DETAILS_RULES if caller_dialect == "openai_chat" and details else rules
        self._hides = hides
        if hides:
            # The caller cannot give a text back that it never had.
            self._rules = msgspec.structs.replace(self._rules, keeps_text=True)
        self._started = ReplyStarted()
        self._facts = TurnState()
        self._block: int | None = None
        self._kinds: dict[int, _BlockKind] = {}
        self._thoughts: dict[int, _OpenThought] = {}
        self._calls: dict[int, list[ToolCallDelta]] = {}
        self._call_seals: dict[int, list[Seal]] = {}
        self._said: dict[int, Commentary] = {}
        """The commentary that no envelope holds yet."""
        self._led: set[int] = set()
        """Calls whose seals are in a thought before them."""
        self._texts = 0
        """The characters of the answer so far."""
        self._text_block: int | None = None
        self._text_seals: list[Seal] = []
        """The seals of that text."""
        self._done: set[int] = set()
        """Seals of the batch that are in an envelope already, by their place."""
        self._extras = 0
        self._reference = ""

    def set_turn_facts(
        self, *, prefix: str = "", learned: tuple[Learned, ...] = (), effort: Effort | None = None
    ) -> None:
        """Set what is known about the turn before it begins."""
        self._facts = TurnState(prefix=prefix, learned=learned, effort=effort)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the caller should know."""
        if self._mode == "carry-only" and self._rules.signed and not can_encrypt():
            detail = "reasoning state cannot be carried without cryptography. Run pip install 'asides[relay]'"
            return (Notice("relay_state_not_carried", detail),)
        return ()

    # --- events -----------------------------------------------------------------------------------------------------

    def carry(self, events: list[Event]) -> list[Event]:
        """Return the events for the caller. A batch that only continues a block is returned unchanged."""
        if self._mode == "off":
            return events
        block = self._block
        for event in events:
            if type(event) not in _MORE_OF_A_BLOCK or event.block != block:  # type: ignore[union-attr]
                return self._carry_each(events)
        if block in self._thoughts:
            self._thoughts[block].pieces += [event.text for event in events]  # type: ignore[union-attr]
        elif block in self._calls:
            self._calls[block] += events  # type: ignore[arg-type]
        else:
            self._texts += sum(len(event.text) for event in events if isinstance(event, TextDelta))
        return events

    def _carry_each(self, events: list[Event]) -> list[Event]:
        carried: list[Event] = []
        self._done.clear()
        for place, event in enumerate(events):
            match event:
                case ThoughtSealed():
                    if place not in self._done:
                        carried += self._take_seal(event)
                    continue
                case ThinkingDelta():
                    carried += self._enter(event.block, "thought")
                    thought = self._thoughts.get(event.block)
                    if thought is None:
                        thought = _OpenThought(event.kind, event.source, event.via, self._texts)
                        self._thoughts[event.block] = thought
                    thought.pieces.append(event.text)
                case ToolCallDelta():
                    is_new = event.block not in self._calls
                    carried += self._enter(event.block, "call")
                    self._calls.setdefault(event.block, []).append(event)
                    if is_new:
                        carried += self._lead_call(event, events, place)
                case ReplyStarted():
                    self._started = event
                case ReplyEnded():
                    carried += self._leave()
                    carried += self._close()
                case TextReclassified() | UsageReported() | Warned():
                    pass
                case _:
                    carried += self._enter(event.block, "other")
                    if isinstance(event, CommentaryDelta) and self._rules.keeps_commentary:
                        before = self._said.get(event.block, Commentary(""))
                        self._said[event.block] = msgspec.structs.replace(before, text=before.text + event.text)
                    if isinstance(event, TextDelta) and event.block != self._text_block:
                        self._text_block, self._text_seals = event.block, []
                    if isinstance(event, TextDelta):
                        self._texts += len(event.text)
            carried.append(event)
        return carried

    def _enter(self, block: int, kind: _BlockKind) -> list[Event]:
        if block == self._block:
            return []
        left = self._leave()
        self._block = block
        self._kinds.setdefault(block, kind)
        return left

    def _leave(self) -> list[Event]:
        """Leave the current block: a thought gets its envelope, and so does a call that carries what is pending."""
        block, self._block = self._block, None
        if block in self._thoughts:
            return self._sign(block)
        if block in self._calls and self._rules.on_parts:
            return self._sign_call(block)
        if block in self._said and not self._rules.on_parts:
            return [self._make_seal(block, (make_whole_state(self._said.pop(block), block),), is_hidden=True)]
        return []

    # --- thoughts -----------------------------------------------------------------------------------------------------

    def _take_seal(self, event: ThoughtSealed) -> list[Event]:
        block, seal = event.block, event.seal
        kind = self._kinds.get(block)
        if kind is None or kind == "thought":
            entered: list[Event] = []
            is_new = kind is None
            if is_new:
                entered = self._enter(block, "thought")
                self._thoughts[block] = _OpenThought(event.kind, event.source, None, self._texts)
            self._thoughts[block].seals.append(seal)
            is_over = seal.kind in _CLOSING and block == self._block
            return [*entered, *self._sign(block)] if is_over else entered
        if block in self._said:
            said = self._said[block]
            self._said[block] = msgspec.structs.replace(said, seals=(*said.seals, seal))
            return []
        if kind == "call":
            self._call_seals.setdefault(block, []).append(seal)
        elif block == self._text_block and seal.value:
            self._text_seals.append(seal)
        # A seal without a value is not opaque: citations, the id of an item. Its writer knows whether it is its own.
        return [] if is_opaque(seal) else [event]

    def _sign(self, block: int) -> list[Event]:
        """Give a thought its envelope. One that went on after its envelope gets another, which replaces it."""
        thought = self._thoughts[block]
        if thought.signed_size == thought.size or not self._rules.signed or self._hides:
            return []
        text = "".join(thought.pieces)
        is_hidden = not text or text.isspace()
        if is_hidden and not any(seal.value for seal in thought.seals):
            return []
        thought.signed_size = thought.size
        state = self._make_thought_state(block)
        return [self._make_seal(block, (state,), is_hidden=is_hidden, source=thought.facts[1])]

    def _make_thought_state(self, block: int) -> PartState:
        thought = self._thoughts[block]
        text = "".join(thought.pieces)
        kind, source, via = thought.facts
        kind = kind if text.strip() else "hidden"
        whole = Thought(text, kind, source, self._started.origin, tuple(thought.seals), via)
        needs_text = bool(find_thoughts_with_text((whole,), self._rows))
        return make_thought_state(
            whole, block, needs_text=needs_text, keeps_text=self._rules.keeps_text, before=thought.before
        )

    # --- calls --------------------------------------------------------------------------------------------------------

    def _lead_call(self, event: ToolCallDelta, events: list[Event], place: int) -> list[Event]:
        """Put the seals of a call into a thought of its own before it, if they have come with it; with them the late
        seals of thoughts.
        """
        if not self._rules.hidden or self._rules.on_parts:
            return []
        states: list[PartState] = []
        own: list[Seal] = []
        late: set[int] = set()
        for number in range(place + 1, len(events)):
            found = events[number]
            if number in self._done or not isinstance(found, ThoughtSealed) or not is_opaque(found.seal):
                continue  # a call before this one has taken it
            if found.block == event.block:
                own.append(found.seal)
            elif found.block in self._thoughts and found.block != self._block:
                self._thoughts[found.block].seals.append(found.seal)
                late.add(found.block)
            else:
                continue
            self._done.add(number)
        if self._hides and self._mode in HAS_STORE:
            return []
        for block, thought in self._thoughts.items():
            is_new = thought.size != thought.signed_size
            if block in late or (is_new and (thought.seals or (self._hides and "".join(thought.pieces).strip()))):
                thought.signed_size = thought.size
                states.append(self._make_thought_state(block))
        if own:
            self._call_seals.setdefault(event.block, []).extend(own)
            self._led.add(event.block)
            states.append(self._make_call_state(event.block, events[place + 1 :]))
        return [self._make_extra(states)] if states else []

    def _make_call_state(self, block: int, coming: Sequence[Event] = ()) -> PartState:
        pieces = [*self._calls[block]]
        pieces += [piece for piece in coming if isinstance(piece, ToolCallDelta) and piece.block == block]
        call_id = next((piece.id for piece in pieces if piece.id), "")
        name = next((piece.name for piece in pieces if piece.name), "")
        raw = "".join(piece.arguments for piece in pieces)
        custom = any(piece.custom for piece in pieces)
        arguments = None if custom else read_arguments(raw)
        seals = tuple(self._call_seals.get(block, ()))
        call = ToolCall(call_id, name, arguments or {}, raw if arguments is None else None, seals, custom)
        return make_call_state(call, block, self._started.origin)

    def _sign_call(self, block: int) -> list[Event]:
        """Give a call an envelope with everything that is pending, and its own seals."""
        states = self._take_pending()
        if any(seal.value for seal in self._call_seals.get(block, ())):
            states.append(self._make_call_state(block))
        return [self._make_seal(block, tuple(states), is_hidden=True)] if states else []

    def _close(self) -> list[Event]:
        """Give the last text what is pending, where texts carry state. Elsewhere late seals get a thought of their
        own, but only without a vault: clients do not expect a thought at the end.
        """
        if self._rules.on_parts and self._text_block is not None:
            states = self._take_pending()
            if self._text_seals:
                states.append(PartState(self._text_block, "text", tuple(self._text_seals)))
            return [self._make_seal(self._text_block, tuple(states), is_hidden=True)] if states else []
        if self._mode != "carry-only" or not self._rules.hidden or self._hides:
            return []
        late = [block for block, thought in self._thoughts.items() if thought.size != thought.signed_size]
        states = [self._make_thought_state(block) for block in late if self._thoughts[block].seals]
        states += [self._make_call_state(block) for block in self._call_seals if block not in self._led]
        return [self._make_extra(states)] if states else []

    def _make_extra(self, states: Sequence[PartState]) -> ThoughtSealed:
        self._extras += 1
        # A number that no part of the reply has, and that comes first where parts are sorted.
        return self._make_seal(-1 - self._extras, tuple(states), is_hidden=True)

    def _take_pending(self) -> list[PartState]:
        """The states of thoughts that no call or text carries yet."""
        states: list[PartState] = []
        for block, thought in self._thoughts.items():
            is_empty = not thought.seals and not "".join(thought.pieces).strip()
            if thought.carried_size != thought.size and not is_empty:
                thought.carried_size = thought.size
                states.append(self._make_thought_state(block))
        states += [make_whole_state(said, block) for block, said in self._said.items()]
        self._said.clear()
        return states

    # --- envelopes ----------------------------------------------------------------------------------------------------

    def _make_seal(
        self, block: int, parts: tuple[PartState, ...], *, is_hidden: bool, source: ThoughtSource = "block"
    ) -> ThoughtSealed:
        origin = self._started.origin
        # Where thoughts have no closing seal, others may follow, on texts and calls too.
        more = any(part.what == "thought" and not _CLOSING.intersection(_list_kinds(part)) for part in parts)
        state = msgspec.structs.replace(self._facts, parts=parts, origin=origin, more=more)
        reference = self._reference or make_reference()
        envelope, is_referenced = make_envelope(
            state, self._keys, has_vault=self._mode in HAS_STORE, reference=reference
        )
        if is_referenced:
            self._reference = reference
        rules = self._rules
        kind = rules.hidden if is_hidden else rules.signed
        if rules.on_parts or rules.is_bytes or (is_hidden and rules.hidden_is_bytes):
            envelope = wrap_in_base64(envelope)
        entry = None
        if kind == DETAILS:
            entry = msgspec.json.encode({"type": "reasoning.encrypted", "data": envelope, "format": "asides"}).decode()
        return ThoughtSealed(Seal(kind, envelope, origin, entry), block, "hidden", source)

    # --- the record -------------------------------------------------------------------------------------------------

    def finish(
        self,
        reply: Reply,
        history: Sequence[Message],
        *,
        caller_ids: Mapping[str, str] | None = None,
        asked_ago: float | None = None,
        digest_request: Callable[[], bytes] = bytes,
        chain: HistoryChain | None = None,
    ) -> StoredRecord | None:
        """The record of the turn, to be stored before the reply ends for the caller; None if there is nothing to store.
        What it is given: `make_turn_record`.
        """
        if self._mode not in HAS_STORE:
            return None
        return make_turn_record(
            reply,
            history,
            self._keys,
            rows=self._rows,
            caller_ids=caller_ids,
            reference=self._reference,
            returns_ids=self._returns_ids,
            asked_ago=asked_ago,
            digest_request=digest_request,
            chain=chain,
        )


def _list_kinds(part: PartState) -> list[str]:
    return [seal.kind for seal in part.seals]
