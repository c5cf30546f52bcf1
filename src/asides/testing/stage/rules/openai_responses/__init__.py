"""Rules of Responses: fields, efforts, items in order, stored ids, and encrypted reasoning bound to its account.

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

from asides.dialects.openai_responses.server.output_items import make_item_id
from asides.dialects.openai_responses.server.write_reply import ResponsesWriter
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import (
    DetailedRefusal,
    RequestRules,
    Rule,
    Wire,
    read_account,
    read_credential,
)
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule
from asides.testing.stage.rules.openai_chat.host_settings import check_grok_effort
from asides.testing.stage.rules.openai_chat.issued_details import UNDECRYPTED
from asides.testing.stage.rules.openai_generations import NAMES, find_generation
from asides.testing.stage.rules.openai_responses import item_rules, response_hosts, response_settings
from asides.testing.stage.rules.openai_responses.response_hosts import ResponsesHost, find_host, find_rules_host
from asides.testing.stage.rules.openai_responses.sealed_reasoning import (
    Opened,
    SealedReasoning,
    find_family,
    shorten,
)
from asides.values.events import (
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

# --- encrypted reasoning ----------------------------------------------------------------------------------------------

_NOT_VERIFIED = HostRule(
    kind="encrypted_reasoning_invalid",
    text="The encrypted content {shown} could not be verified.",
    code="invalid_encrypted_content",
    in_stream=True,
    since="2025-12-16",
    source="openai/codex#8100, #9045; Azure without a code: openai/openai-agents-python#2063, 2025-11-10",
)
_NOT_DECRYPTED = HostRule(
    kind="encrypted_reasoning_invalid",
    text="The encrypted content {shown} could not be verified. Reason: Encrypted content could not be decrypted or "
    "parsed.",
    code="invalid_encrypted_content",
    in_stream=True,
    since="2026-05-08",
    source="smallmain/vscode-unify-chat-provider#178: inside of a stream that was opened with 200",
)
_WRONG_ACCOUNT = HostRule(
    kind="encrypted_reasoning_wrong_account",
    text="The encrypted content {shown} could not be verified. Reason: Encrypted content organization_id did not match "
    "the target organization.",
    code="invalid_encrypted_content",
    in_stream=True,
    since="2026-03-06",
    source="openai/codex#13724",
)
_REASONS_SINCE, _ITEMS_SINCE = date(2026, 3, 6), date(2026, 5, 8)


def _list_rules() -> Iterator[Rule]:
    yield from (_NOT_VERIFIED, _NOT_DECRYPTED, _WRONG_ACCOUNT, UNDECRYPTED)
    for module in (item_rules, response_hosts, response_settings):
        yield from (value for value in vars(module).values() if isinstance(value, Rule))


RULES = tuple(dict.fromkeys(_list_rules()))
"""Every rule, with its words, its date and its source."""


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
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(body, request), None)

    def _check(self, body: Wire, request: Request) -> Iterator[DetailedRefusal]:
        model = str(body.get("model"))
        host = find_host(request, model)
        streams = body.get("stream") is True
        for fault in self._find_faults(body, request, find_rules_host(host, model)):
            yield host.refuse(fault, model, streams=streams)

    def _find_faults(self, body: Wire, request: Request, host: ResponsesHost) -> Iterator[Fault]:
        credential = read_credential(request)
        retains = "zdr" not in credential
        model = str(body.get("model"))
        generation = find_generation(model)
        yield from response_settings.check_fields(body)
        may_summarise = "unverified" not in credential
        yield from response_settings.check_reasoning(body, generation, may_summarise=may_summarise)
        if host.items == "unpaired":
            yield from check_grok_effort(model, (body.get("reasoning") or {}).get("effort"))
        yield from response_settings.check_sampling(body, generation)
        parent = body.get("previous_response_id")
        is_known = self.find_stored(str(parent)) is not None
        yield from response_settings.check_previous(body, is_known=is_known, retains=retains)
        items = body.get("input")
        if isinstance(items, list):
            yield from self._check_items(items, body, request, host, retains=retains)
        yield from response_settings.check_length(body, generation)

    def _check_items(
        self, items: list[Wire], body: Wire, request: Request, host: ResponsesHost, *, retains: bool
    ) -> Iterator[Fault]:
        model = str(body.get("model"))
        resolved = [self._resolve(item) for item in items]
        if host.items == "unpaired":
            yield from response_hosts.check_xai_items(resolved)
        else:
            is_closed = NAMES.match(model.lower().rpartition("/")[2]) is not None
            yield from item_rules.check_ids(items, self._repeated)
            yield from item_rules.check_form(resolved, holds_text=not is_closed)
        if host.items == "text":
            yield from item_rules.check_reasoning_text(resolved)
        else:
            for item in resolved:
                yield from self._check_token(item, model, read_account(request), host)
            stored = self._stored_items if retains else {}
            for fault in item_rules.check_stored(resolved, stored, retains=retains):
                yield response_hosts.describe_expired(fault, _find_unstored(resolved)) if "meta" in model else fault
        if host.items == "paired":
            yield from item_rules.check_neighbours(resolved, self._follower, self._leader)
        parent = str(body.get("previous_response_id"))
        waiting = set(self._issued[parent].calls) if parent in self._issued else set[str]()
        yield from item_rules.check_calls(resolved, waiting)

    def _resolve(self, item: Wire) -> Wire:
        """Return the stored item that this one refers to; itself if it is no reference, or one to something else."""
        is_reference = item.get("type") == "item_reference" or item.keys() == {"id"}
        return self._stored_items.get(str(item["id"]), item) if is_reference else item

    def _check_token(self, item: Wire, model: str, account: str, host: ResponsesHost) -> Iterator[Fault]:
        """Check that encrypted reasoning was made here, for this account and this family of models."""
        token = item.get("encrypted_content")
        if item.get("type") != "reasoning" or not token:
            return
        opened = self._sealed.open(token)
        if opened is not None and opened.account == account and opened.model == find_family(model):
            return
        if host.items == "unpaired":
            yield UNDECRYPTED.fault()
            return
        is_named = item.get("id") is not None and self._today >= _ITEMS_SINCE
        shown = f"for item {item['id']}" if is_named else shorten(token)
        if not host.reasons:
            yield msgspec.structs.replace(_NOT_VERIFIED.fault(shown=shown), code=None)
        elif self._today < _REASONS_SINCE:
            yield _NOT_VERIFIED.fault(shown=shown)
        elif opened is not None and opened.account != account:
            yield _WRONG_ACCOUNT.fault(shown=shown)
        else:
            yield _NOT_DECRYPTED.fault(shown=shown)

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
        holds_text = find_rules_host(find_host(request, model), model).items == "text"
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
            # An item that is stored needs no encrypted state, also when another model goes on.
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
        case TextDelta():
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


def _find_unstored(items: list[Wire]) -> object:
    return next((item.get("id") for item in items if item.get("type") in ("reasoning", "item_reference")), None)
