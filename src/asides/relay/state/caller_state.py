"""The reasoning state of one request: put back before it is sent, carried and recorded with its reply."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from asides.dialects import find_facts
from asides.dialects.dialect import ServedRequest
from asides.flows.steps import Flow, Now
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.relay.endpoints import PLAIN_DIALECT
from asides.relay.relay_config import Caller
from asides.relay.state.account_ids import check_account_ids, find_account_ids, list_reply_ids, make_ids_record
from asides.relay.state.carry_state import StateCarrier
from asides.relay.state.envelope import may_hold_envelope
from asides.relay.state.inlined_thinking import separate_inlined
from asides.relay.state.relay_keys import RelayKeys, TenantKeys
from asides.relay.state.restore_state import (
    STORE_FAILED,
    RestoredPrompt,
    has_nothing_to_restore,
    restore,
    takes_nothing_back,
)
from asides.relay.state.sealed_summary import open_summaries
from asides.relay.state.thinking_origins import holds_unknown
from asides.relay.state.turn_state import HAS_STORE
from asides.relay.state.vault_records import HistoryChain
from asides.relay.steps import StoredRecord, UnconfirmedRecord, WriteRecord
from asides.relay.translate.hosted_tools import may_hold_report, strip_reports
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.traits import HAS_THOUGHTS, IS_BOUND, find_traits
from asides.values.visibility import Visibility

SESSION_HEADERS = (
    *("session-id", "session_id", "x-session-id", "x-session-affinity", "thread-id", "x-claude-code-session-id"),
    *("x-codex-window-id", "x-grok-conv-id"),
)
"""Headers that a client repeats with a request, and that differ between its conversations (2026-11)."""
_CLIENT_HEADERS = ("user-agent", "originator", "x-app")


_UNKNOWN = Notice(
    "relay_thinking_unknown",
    "the client sent thinking of unknown origin; it is not sent to any provider",
    "messages",
)


class CallerState:
    """The state of one request."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.is_changed = False
        """Whether the request as it came lacks state, or holds envelopes: it cannot be forwarded."""
        self.is_labelled = False
        """Whether it holds thinking that one of the targets did not make."""
        self.history: tuple[Message, ...] = ()
        """What the caller sent, as its records are found by it."""
        self._chain: tuple[tuple[Message, ...], HistoryChain] | None = None
        """A history and its digests; None: not computed."""
        self.traits: int | None = None
        """The traits of the restored messages, if they are known."""
        self.stored_count = 0
        """How many of these messages come from stored responses."""
        self.has_unknown_previous = False
        """Whether the relay did not store the response that the request continues: its provider may have."""
        self.ancestors: tuple[str, ...] = ()
        """The ids of those responses."""
        self.wants_storing = True
        """Whether the caller lets its response be stored."""

    @property
    def has_store(self) -> bool:
        """Whether there is a store of records."""
        return self._caller.config.state_mode in HAS_STORE

    @property
    def carries_all(self) -> bool:
        """Whether the state of a reply has to travel with the client, since nothing else keeps it."""
        config = self._caller.config
        has_place = find_facts(self._caller.dialect).thinks_in_blocks or self._caller.dialect == PLAIN_DIALECT
        return has_place and config.state_mode == "carry-only" and not config.trusts_callers

    @property
    def keys(self) -> TenantKeys:
        """The keys of the caller's tenant."""
        return (self._caller.config.keys or RelayKeys.generate()).find_tenant(self._caller.request.tenant)

    def restore(self, served: ServedRequest, targets: Sequence[Target]) -> Flow[ServedRequest]:
        """Put the state of earlier turns back. Reads the store at most once."""
        if self._caller.dialect == RESPONSES:
            opened = yield from open_summaries(served.prompt.messages, self.keys, has_store=self.has_store)
            if opened.is_changed:
                self._caller.notices += opened.notices
                self.is_changed = True
                prompt = msgspec.structs.replace(served.prompt, messages=opened.messages)
                served = msgspec.structs.replace(served, prompt=prompt)
        has_reports = bool(self.stored_count) or may_hold_report(self._caller.request.body)
        if has_reports and (messages := strip_reports(served.prompt.messages)) is not served.prompt.messages:
            self.is_changed = True
            served = msgspec.structs.replace(served, prompt=msgspec.structs.replace(served.prompt, messages=messages))
        self.history = served.prompt.messages
        if not any(message.role == "assistant" for message in served.prompt.messages):
            return served
        self.history = separate_inlined(self.history, self._caller.notices)
        served = msgspec.structs.replace(served, prompt=msgspec.structs.replace(served.prompt, messages=self.history))
        mode = self._caller.config.state_mode
        origins, tenant = self._caller.origins, self._caller.request.tenant
        knows = None if origins is None else partial(origins.knows, tenant)
        self.traits = traits = find_traits(self.history)
        is_bare = not traits & HAS_THOUGHTS and self._has_no_envelopes()
        if is_bare and has_nothing_to_restore(mode, targets):
            restored = RestoredPrompt(served.prompt)
        else:
            chain = HistoryChain()
            self._chain = (self.history, chain)
            restored = yield from restore(
                served.prompt, self.keys, mode, targets=targets, knows=knows, traits=traits, chain=chain
            )
        if restored.prompt.messages is not self.history:
            self.traits = None
        if origins is not None:
            if restored.origins:
                origins.learn(tenant, restored.origins)
            labelled = restored.prompt.messages
            if self.traits is None or self.traits & IS_BOUND:
                labelled = origins.label(
                    tenant,
                    labelled,
                    targets,
                    trusts=self._caller.config.trusts_callers,
                    sealed_in="" if mode == "off" else self._caller.dialect,
                )
            if labelled is not restored.prompt.messages:
                self.is_labelled, self.traits = True, None
                if holds_unknown(labelled) and not all(map(takes_nothing_back, targets)):
                    self._caller.notices.append(_UNKNOWN)
                prompt = msgspec.structs.replace(restored.prompt, messages=labelled)
                restored = msgspec.structs.replace(restored, prompt=prompt)
        self._caller.notices += restored.notices
        self._caller.count_turns(restored.turns)
        self._caller.unconfirmed += restored.unconfirmed
        self.is_changed = self.is_changed or restored.is_changed
        return msgspec.structs.replace(served, prompt=restored.prompt)

    def _has_no_envelopes(self) -> bool:
        """Whether neither the request nor what was stored before it holds an envelope for certain."""
        body = self._caller.request.body
        # An escape may hide the beginning of one.
        return not self.stored_count and not may_hold_envelope(body) and b"\\u00" not in body

    def make_carrier(self, *, hides: bool = False) -> StateCarrier:
        """Make the carrier of one reply. `hides`: the caller gets no thoughts."""
        config = self._caller.config
        details = config.thinking_field == "reasoning_details" or self.carries_all
        rows = self._caller.builder.rows
        return StateCarrier(self._caller.dialect, self.keys, config.state_mode, rows=rows, details=details, hides=hides)

    def record(self, carrier: StateCarrier, reply: Reply, originals: Mapping[str, str] | None = None) -> Flow[None]:
        """Keep a complete turn: who made its thinking, and its record, where there is a store. `originals`: by the id
        of a call that the caller got, the provider's.
        """
        if self._caller.origins is not None:
            self._caller.origins.remember(self._caller.request.tenant, reply)
        if not self.has_store:
            return
        yield from self._record_ids(reply)
        ids = {own: given for given, own in (originals or {}).items() if own}
        now: float = yield Now()
        began = now if self._caller.now is None else self._caller.now
        # Without a session, a repeated request may be that of another conversation.
        ago = now - began if any(self._caller.request.headers.get(name) for name in SESSION_HEADERS) else None
        digest = self._digest_request
        known, self._chain = self._chain, None
        chain = known[1] if known is not None and known[0] is self.history else None
        record = carrier.finish(reply, self.history, caller_ids=ids, asked_ago=ago, digest_request=digest, chain=chain)
        if record is None:
            return
        is_stored = yield from self.write(record)
        if is_stored and record.pending:
            self._caller.unconfirmed.append(UnconfirmedRecord(self.keys.tenant, record.id, record.pending))

    def check_account_ids(self, *, with_items: bool) -> Flow[None]:
        """Raise RelayRefusal for an id of the provider's account that is not the tenant's own. `with_items`: also for
        items of stored responses.
        """
        given = [each for each in find_account_ids(self._caller.request.body) if with_items or not each.is_item]
        yield from check_account_ids(self.keys, given, has_store=self.has_store)

    def _digest_request(self) -> bytes:
        """A digest of the request and of what names its session."""
        request = self._caller.request
        names = (*_CLIENT_HEADERS, *SESSION_HEADERS)
        named = [f"{name}: {request.headers[name]}" for name in names if name in request.headers]
        digest = hashlib.blake2b("\n".join((request.path, *named)).encode(errors="surrogatepass"), digest_size=16)
        digest.update(b"\n\n" + request.body)
        return digest.digest()

    def _record_ids(self, reply: Reply) -> Flow[None]:
        if not self._caller.request.tenant:
            return
        is_stored = self._caller.dialect == RESPONSES and self.wants_storing
        if ids := list_reply_ids(reply, with_items=is_stored):
            yield from self.write(make_ids_record(self.keys, ids))

    def write(self, record: StoredRecord) -> Flow[bool]:
        """Store a record. If the store fails, the reply gets a notice, and no error."""
        is_stored: bool = yield WriteRecord(self.keys.tenant, record)
        if not is_stored:
            detail = "the store of the relay failed; the state of this turn is not kept"
            self._caller.notices.append(Notice(STORE_FAILED, detail))
        return is_stored

    def find_visibility(self, asked: Iterable[str] | None) -> Visibility:
        """What the caller may see of thinking. `asked`: what it wants to see at most."""
        visibility = self._caller.builder.visibility
        return visibility if asked is None else visibility.limit(self._caller.config.sink, asked)
