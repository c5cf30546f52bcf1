"""Reasoning state that a front end holds: `StateKeys` encrypts it, `TurnTokens` makes the tokens of a reply, and
`PostedState` puts back what a front end posts. Tokens are the envelopes of the relay, with its keys and its rules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import msgspec

from asides.relay.state.envelope import FAILURES, is_envelope, make_envelope
from asides.relay.state.relay_keys import RelayKeys, TenantKeys, can_encrypt
from asides.relay.state.restore_state import RestoredPrompt, restore
from asides.relay.state.turn_state import (
    PartState,
    TurnState,
    find_thoughts_with_text,
    make_call_state,
    make_text_state,
    make_thought_state,
    make_whole_state,
)
from asides.values.errors import ConfigError
from asides.values.events import ReplyStarted
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought

_log = logging.getLogger("asides")
TOKEN = "envelope"  # noqa: S105 - the name of a kind
"""The kind of the seal that a token is until its state is put back."""
SealedPart: TypeAlias = Thought | Text | ToolCall | ServerTool | UnknownPart
FindReply: TypeAlias = Callable[[], "Reply | None"]
OnNotice: TypeAlias = Callable[[Notice], object]
"""Receives each notice about returned state that was not used."""


@cache
def _get_shared_keys() -> RelayKeys:
    """The keys of the variable ASIDES_RELAY_KEY, else random ones of this process: programs make `StateKeys` for each
    request.
    """
    from asides.relay.vault.open_vault import find_keys

    return find_keys()


class StateKeys:
    """What encrypts reasoning state for a front end, and opens it again: `StateKeys(key, tenant=user_id)`.

    `key` is the master key of a relay: 32 bytes as base64 or hexadecimal digits, the same in every process that serves
    the front end. With several in one text, the first one encrypts, and all of them open. None: that of the variable
    `ASIDES_RELAY_KEY`; without it a random one, whose tokens are lost with the process. A token of one `tenant` is
    nothing to another. Needs the package `cryptography`.
    """

    __slots__ = ("tenant_keys",)

    tenant_keys: TenantKeys

    def __init__(self, key: str | bytes | RelayKeys | None = None, *, tenant: str = "") -> None:
        if not can_encrypt():
            raise ConfigError("StateKeys needs the package cryptography. Run pip install 'asides[relay]'.")
        if key is None:
            keys = _get_shared_keys()
        else:
            from asides.relay.vault.open_vault import find_keys

            keys = find_keys(key)
        self.tenant_keys = keys.find_tenant(tenant)

    def __repr__(self) -> str:
        return "StateKeys(***)"


# --- out --------------------------------------------------------------------------------------------------------------


class TurnTokens:
    """Makes the tokens of replies, one after the other: `begin` each of them, then a token for each of its parts."""

    def __init__(self, keys: StateKeys, find_reply: FindReply) -> None:
        """`find_reply` returns the reply so far, which has facts about its request that events lack."""
        self._keys = keys.tenant_keys
        self._find_reply = find_reply
        self._facts = TurnState()
        self._owes_facts = False
        """Whether there are facts about the turn that no token holds yet."""
        self._parts: dict[int, tuple[SealedPart, bool]] = {}

    def begin(self, started: ReplyStarted) -> None:
        """Begin a reply."""
        self._parts.clear()
        self._facts, self._owes_facts = TurnState(), False
        self.add_facts(started)

    def add_facts(self, started: ReplyStarted) -> None:
        """Add what is known about the reply now."""
        facts = TurnState(origin=started.origin, stored=(started.id or "") if started.stored else "")
        if (reply := self._find_reply()) is not None:
            facts = TurnState((), facts.origin, reply.prefix, reply.learned, reply.effort, facts.stored)
        if facts != self._facts:
            self._facts, self._owes_facts = facts, bool(facts.prefix or facts.learned or facts.stored)

    def make_thought_token(self, thought: Thought, block: int, *, is_shown: bool) -> str | None:
        """The token of a thought. Visible text is beside it; other text that its provider needs back
        is inside.
        """
        whole = msgspec.structs.replace(thought, origin=self._facts.origin)
        if not whole.seals and (not whole.text.strip() or whole.origin is None):
            return None
        return self._make(whole, block, is_shown=is_shown)

    def make_token(self, part: Text | ToolCall | ServerTool | UnknownPart, block: int) -> str | None:
        """The token of another part; None if there is nothing to keep."""
        if isinstance(part, (Text, ToolCall)) and not part.seals and not self._owes_facts:
            self._parts[block] = part, True
            return None
        return self._make(part, block, is_shown=True)

    def make_late_token(self, block: int, seals: Sequence[Seal]) -> str:
        """The token of seals that came after the end of their part: it replaces the part's own."""
        part, is_shown = self._parts.get(block) or (Thought("", "hidden", "field", self._facts.origin), True)
        whole = msgspec.structs.replace(part, seals=(*part.seals, *seals))
        return self._make(whole, block, is_shown=is_shown)

    def _make(self, part: SealedPart, block: int, *, is_shown: bool) -> str:
        self._parts[block] = part, is_shown
        self._owes_facts = False
        state = msgspec.structs.replace(self._facts, parts=(self._describe(part, block, is_shown),))
        return make_envelope(state, self._keys, has_vault=False, reference="")[0]

    def _describe(self, part: SealedPart, block: int, is_shown: bool) -> PartState:
        match part:
            case Thought():
                needs_text = bool(find_thoughts_with_text((part,)))
                return make_thought_state(part, block, needs_text=needs_text, keeps_text=not is_shown)
            case Text():
                return make_text_state(part, block, self._facts.origin)
            case ToolCall():
                return make_call_state(part, block, self._facts.origin)
            case _:
                return make_whole_state(part, block)


# --- back -------------------------------------------------------------------------------------------------------------


class PostedState:
    """Puts the state of posted turns back. What cannot be used is left out, with a notice."""

    def __init__(self, keys: StateKeys | None, on_notice: OnNotice | None = None) -> None:
        self._keys = keys
        self._on_notice = on_notice
        self._notices: dict[Notice, None] = {}

    def read_token(self, token: object) -> tuple[Seal, ...]:
        """The token as a seal, which `restore` replaces; none for other values."""
        if is_envelope(token):
            return (Seal(TOKEN, str(token)),)
        if isinstance(token, str):
            self._notices[Notice("relay_state_unreadable", FAILURES["malformed"], "messages")] = None
        return ()

    def restore(self, turn: Message) -> tuple[Message, ...]:
        """The turn with its state, and without tokens."""
        if not any(seal.kind == TOKEN for part in turn.parts for seal in part.seals):
            return (turn,)
        restored = _restore(turn, self._keys)
        self._notices |= dict.fromkeys(restored.notices)
        return restored.prompt.messages

    def report(self) -> None:
        """Report what was not used: to the program, or else in the log."""
        for notice in self._notices:
            if self._on_notice is not None:
                self._on_notice(notice)
            else:
                _log.warning("a front end posted a history: %s: %s", notice.code, notice.detail)


def _restore(turn: Message, keys: StateKeys | None) -> RestoredPrompt:
    tenant_keys = RelayKeys.generate().find_tenant("") if keys is None else keys.tenant_keys
    flow = restore(Prompt((turn,)), tenant_keys, "off" if keys is None else "carry-only")
    try:
        next(flow)
    except StopIteration as end:
        restored: RestoredPrompt = end.value
        return restored
    raise AssertionError("without a vault there is nothing to wait for")  # pragma: no cover
