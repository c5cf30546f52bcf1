"""The stage as a host of Responses: refuses by the rulebook, stores responses, and encrypts reasoning for its account.

A key that contains "unverified" plays an organisation that gets no summaries; one that contains "zdr" plays one whose
responses are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from time import time
from typing import Any
from uuid import uuid4

import msgspec

from asides.dialects.openai_chat.rules.state import UNDECRYPTED
from asides.dialects.openai_responses.rules import check, state
from asides.dialects.openai_responses.rules.items import DUPLICATE, ORPHANED, check_calls
from asides.dialects.openai_responses.server.write_reply import ResponsesWriter, make_item_id
from asides.dialects.rulebook import BrokenRule, Wire, WireRequest
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.parts import ServerTool
from asides.values.thinking import Seal
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import DetailedRefusal, RequestRules, read_account, read_credential, read_wire
from asides_stage.stage.rules.hosts import make_target
from asides_stage.stage.rules.openai_responses.response_hosts import ResponsesHost, find_host, find_rules_host
from asides_stage.stage.rules.openai_responses.sealed_reasoning import (
    Opened,
    SealedReasoning,
    find_family,
    shorten,
)

_DIALECT = "openai_responses"
_REASONS_SINCE, _ITEMS_SINCE = date(2026, 3, 6), date(2026, 5, 8)


class IssuedResponse(msgspec.Struct):
    """A response that this stage has sent."""

    stored: bool
    calls: list[str]
    document: bytes
    """The whole response, as it was sent or would have been."""
    input: list[Wire]
    """The items of its request, each with an id."""


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return ResponsesRules(secret, today)


class ResponsesRules:
    """Also remembers the responses that the stage sent."""

    def __init__(self, secret: bytes, today: date) -> None:
        self._sealed = SealedReasoning(secret)
        self._today = today
        self._issued: dict[str, IssuedResponse] = {}
        self._stored_items: dict[str, Wire] = {}
        self._follower: dict[str, str] = {}
        self._leader: dict[str, str] = {}
        self._given: set[str] = set()
        self._repeated: set[str] = set()
        """Ids that a script gave to the items of several replies."""

    # --- stored responses ---------------------------------------------------------------------------------------------

    def find_stored(self, response: str) -> IssuedResponse | None:
        """Return the stored response with this id; None if there is none."""
        found = self._issued.get(response)
        return found if found is not None and found.stored else None

    def delete_stored(self, response: str) -> None:
        """Forget a stored response: a later request cannot continue it."""
        del self._issued[response]

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return why the provider refuses this request, in its words and form; None if it accepts it."""
        return next(self._check(read_wire(request, self._today), request), None)

    def _check(self, wire: WireRequest, request: Request) -> Iterator[DetailedRefusal]:
        body, model = wire.body, str(wire.body.get("model"))
        host = find_host(wire.path, model)
        streams = body.get("stream") is True
        for broken in self._find_broken(wire, request, find_rules_host(host, model)):
            yield host.refuse(broken, model, streams=streams)

    def _find_broken(self, wire: WireRequest, request: Request, host: ResponsesHost) -> Iterator[BrokenRule]:
        body, model = wire.body, str(wire.body.get("model"))
        credential = read_credential(request)
        retains = "zdr" not in credential
        if (body.get("reasoning") or {}).get("summary") and "unverified" in credential:
            yield state.UNVERIFIED.broken("reasoning.summary")
        items = body.get("input")
        resolved = [self._resolve(item) for item in items] if isinstance(items, list) else items
        target = make_target(host, _DIALECT, model)
        for broken in check(msgspec.structs.replace(wire, body={**body, "input": resolved}), target):
            if broken.rule is not DUPLICATE or str(broken.quoted) not in self._repeated:
                yield broken
        yield from self._check_previous(body, retains=retains)
        if isinstance(resolved, list):
            yield from self._check_state(resolved, body, read_account(request), host, retains=retains)

    def _check_previous(self, body: Wire, *, retains: bool) -> Iterator[BrokenRule]:
        """Check that an earlier response is there, and that the organisation keeps responses at all."""
        parent = body.get("previous_response_id")
        if parent is None:
            return
        if not retains:
            yield state.PREVIOUS_FORBIDDEN.broken("previous_response_id")
        elif self.find_stored(str(parent)) is None:
            yield state.PREVIOUS_MISSING.broken("previous_response_id", name=parent)

    def _check_state(
        self, items: list[Wire], body: Wire, account: str, host: ResponsesHost, *, retains: bool
    ) -> Iterator[BrokenRule]:
        model = str(body.get("model"))
        if host.items != "text":
            for place, item in enumerate(items):
                yield from self._check_token(item, place, model, account, host)
            yield from self._check_stored(items, model, retains=retains)
        if host.items == "paired":
            yield from self._check_partners(items)
        parent = str(body.get("previous_response_id"))
        if parent in self._issued:
            yield from check_calls(items, set(self._issued[parent].calls))

    def _check_stored(self, items: list[Wire], model: str, *, retains: bool) -> Iterator[BrokenRule]:
        """Check that an item that brings nothing of its own is stored."""
        rule = state.NOT_PERSISTED if retains else state.NOT_RETAINED
        # Another maker has other words.
        rule = state.EXPIRED if "meta" in model else rule
        for place, item in enumerate(items):
            is_reference = item.get("type") == "item_reference"
            is_empty = item.get("type") == "reasoning" and not item.get("encrypted_content")
            if (is_reference or is_empty) and not (retains and item.get("id") in self._stored_items):
                yield rule.broken(f"input[{place}]", name=item.get("id"))

    def _check_partners(self, items: list[Wire]) -> Iterator[BrokenRule]:
        """Check that reasoning comes back with the item that followed it, and that item with its reasoning."""
        for place, item in enumerate(items):
            following = items[place + 1] if place + 1 < len(items) else None
            before = items[place - 1] if place else None
            name = item.get("id")
            if item.get("type") == "reasoning":
                expected = self._follower.get(str(name))
                if following is not None and expected is not None and following.get("id") not in (None, expected):
                    yield ORPHANED.broken(f"input[{place}]", name=name)
                continue
            leader = self._leader.get(str(name))
            led = before is not None and before.get("type") == "reasoning" and before.get("id") in (None, leader)
            if leader is not None and not led:
                yield state.MISSING.broken(f"input[{place}]", name=name, type=item.get("type"), leader=leader)

    def _resolve(self, item: Wire) -> Wire:
        """Return the stored item that this one refers to; itself if it is no such reference."""
        is_reference = item.get("type") == "item_reference" or item.keys() == {"id"}
        return self._stored_items.get(str(item["id"]), item) if is_reference else item

    def _check_token(
        self, item: Wire, place: int, model: str, account: str, host: ResponsesHost
    ) -> Iterator[BrokenRule]:
        """Check that encrypted reasoning was made here, for this account and this family of models."""
        token = item.get("encrypted_content")
        if item.get("type") != "reasoning" or not token:
            return
        opened = self._sealed.open(token)
        if opened is not None and opened.account == account and opened.model == find_family(model):
            return
        if host.items == "unpaired":
            yield UNDECRYPTED.broken(f"input[{place}]")
            return
        is_named = item.get("id") is not None and self._today >= _ITEMS_SINCE
        shown = f"for item {item['id']}" if is_named else shorten(token)
        if not host.reasons:
            yield state.NOT_VERIFIED_UNCODED.broken(f"input[{place}]", shown=shown)
        elif self._today < _REASONS_SINCE:
            yield state.NOT_VERIFIED.broken(f"input[{place}]", shown=shown)
        elif opened is not None and opened.account != account:
            yield state.WRONG_ACCOUNT.broken(f"input[{place}]", shown=shown)
        else:
            yield state.NOT_DECRYPTED.broken(f"input[{place}]", shown=shown)

    # --- sealing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events as the endpoint sends them: its ids, summaries if asked for, encrypted reasoning."""
        body: Wire = msgspec.json.decode(request.body)
        stored = body.get("store") is not False and "zdr" not in read_credential(request)
        response = f"resp_{uuid4().hex[:12]}"
        if isinstance(events[0], ReplyStarted):
            response = events[0].id or response
            events = [msgspec.structs.replace(events[0], id=response, stored=stored), *events[1:]]
        reasoning, model = body.get("reasoning") or {}, str(body.get("model"))
        opened = Opened(find_family(model), read_account(request), "")
        holds_text = find_rules_host(find_host(request.path, model), model).items == "text"
        thought = any(isinstance(event, (ThinkingDelta, ThoughtSealed)) for event in events)
        if not thought and not holds_text and reasoning.get("effort") not in (None, "none"):
            events = self._add_hidden_thought(events, opened)
        if holds_text:
            sealed = [_to_reasoning_text(event) for event in events]
        else:
            sealed = list(self._add_state(events, bool(reasoning.get("summary")), opened))
        received = [self._resolve(item) for item in _list_input(body.get("input"), response)]
        self._remember(sealed, response, stored, received)
        return sealed

    def _add_hidden_thought(self, events: list[Event], opened: Opened) -> list[Event]:
        """Put a thought without text before the events of a reply."""
        later = [
            event
            if (block := getattr(event, "block", None)) is None
            else msgspec.structs.replace(event, block=block + 1)
            for event in events
        ]
        return [later[0], self._issue_token(0, opened, ""), *later[1:]]

    def _add_state(self, events: list[Event], summarises: bool, opened: Opened) -> Iterator[Event]:
        already = {event.block for event in events if isinstance(event, ThoughtSealed)}
        thought: int | None = None
        pieces: list[str] = []
        for event in events:
            block = getattr(event, "block", None)
            if thought is not None and block != thought:
                if thought not in already:
                    yield self._issue_token(thought, opened, "".join(pieces))
                thought, pieces = None, []
            if isinstance(event, ThinkingDelta):
                thought = event.block
                pieces.append(event.text)
                if event.via == "reasoning_text":
                    yield event
                elif summarises:
                    yield msgspec.structs.replace(event, kind="summary", source="responses_summary", via="summary")
            else:
                yield event

    def _issue_token(self, block: int, opened: Opened, text: str) -> ThoughtSealed:
        token = self._sealed.seal(msgspec.structs.replace(opened, text=text))
        return ThoughtSealed(Seal("encrypted", token), block, "hidden")

    def _remember(self, events: list[Event], response: str, stored: bool, received: list[Wire]) -> None:
        """Remember the items of a reply: which follows which, and which calls await a result."""
        kinds: dict[int, str] = {}
        calls: list[str] = []
        for event in events:
            block = getattr(event, "block", None)
            if block is None:
                continue
            if block not in kinds and (kind := _find_item_kind(event)) is not None:
                kinds[block] = kind
            if isinstance(event, ToolCallDelta) and event.id is not None:
                calls.append(event.id)
        ids = [make_item_id(kind, response, number) for number, kind in enumerate(kinds.values())]
        self._repeated |= self._given.intersection(ids)
        self._given.update(ids)
        for (name, kind), follower in zip(zip(ids, kinds.values(), strict=True), ids[1:], strict=False):
            if kind == "reasoning":
                self._follower[name], self._leader[follower] = follower, name
        document = b""
        if stored:
            writer = ResponsesWriter(model="", stream=False)
            writer.created = int(time())
            document = writer.write(events)
            # A stored item needs no encrypted state, even if another model continues.
            items: list[Wire] = [*received, *msgspec.json.decode(document)["output"]]
            self._stored_items |= {str(item["id"]): item | {"encrypted_content": None} for item in items}
        self._issued[response] = IssuedResponse(stored, calls, document, received)


def _list_input(items: Any, response: str) -> list[Wire]:
    """Return the items of a request, each with an id, as the endpoint lists them."""
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": items}]}]
    numbered = enumerate(items if isinstance(items, list) else [])
    name = response.removeprefix("resp_")
    return [{"id": f"msg_{name}_in_{number}", **_drop_nulls(item)} for number, item in numbered]


def _drop_nulls(item: Wire) -> Wire:
    return {name: value for name, value in item.items() if value is not None}


def _find_item_kind(event: Event) -> str | None:
    match event:
        case ThinkingDelta() | ThoughtSealed():
            return "reasoning"
        case ToolCallDelta():
            return "function_call"
        case TextDelta() | CommentaryDelta():
            return "message"
        case PartArrived(part=ServerTool()):
            return "item"
        case _:
            return None


def _to_reasoning_text(event: Event) -> Event:
    """Return a thought as raw text, which a model without encrypted reasoning sends."""
    if not isinstance(event, ThinkingDelta):
        return event
    return msgspec.structs.replace(event, kind="raw", source="responses_raw", via="reasoning_text")
