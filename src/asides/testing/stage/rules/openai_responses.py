"""Rules of OpenAI's Responses: unknown fields, items in order, stored ids, encrypted reasoning.

A key that contains "unverified" plays an organisation that gets no summaries.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from datetime import date
from hashlib import blake2b
from itertools import count
from time import time
from typing import Any
from uuid import uuid4

import msgspec

from asides.dialects.openai_chat.server.write_reply import write_error
from asides.dialects.openai_responses.server.write_reply import ResponsesWriter, make_item_id
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import DetailedRefusal, RequestRules, Wire
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

# The fields that the endpoint accepts (openai-python 3.49, types/responses/response_create_params.py, 2026-11), and
# client_metadata, which the vendor's own agent sends (Codex 0.166, 2026-11).
_FIELDS = frozenset({
    "access_programs", "background", "client_metadata", "conversation", "context_management", "image", "include",
    "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
    "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
_REASONING_FIELDS = frozenset({"effort", "summary", "generate_summary", "context", "mode"})
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_UNVERIFIED = (
    "Your organization must be verified to generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization."
)


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
    del today  # No rule here depends on the date yet.
    return ResponsesRules(secret)


class ResponsesRules:
    """Also remembers the responses that the stage sent."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._numbers = count(1)
        self._issued: dict[str, IssuedResponse] = {}
        self._stored_items: dict[str, Wire] = {}
        self._follower: dict[str, str] = {}
        self._leader: dict[str, str] = {}

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
        """Return why the provider refuses this request, in its words; None if it accepts it."""
        body = msgspec.json.decode(request.body)
        return next(self._check(body, request.headers), None)

    def _check(self, body: Wire, headers: Mapping[str, str]) -> Iterator[str]:
        yield from (_refuse_field(name) for name in body if name not in _FIELDS)
        reasoning = body.get("reasoning") or {}
        yield from (_refuse_field(f"reasoning.{name}") for name in reasoning if name not in _REASONING_FIELDS)
        if reasoning.get("summary") and "unverified" in headers.get("authorization", ""):
            yield _refuse(_UNVERIFIED, "reasoning.summary", "unsupported_value")
        parent = body.get("previous_response_id")
        if parent is not None and body.get("conversation") is not None:
            yield "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."
        if parent is not None and (parent not in self._issued or not self._issued[parent].stored):
            message = f"Previous response with id '{parent}' not found."
            yield _refuse(message, "previous_response_id", "previous_response_not_found")
        items = body.get("input")
        if isinstance(items, list):
            items = [self._resolve(item) for item in items]
            yield from self._check_items(items, body)
            yield from self._check_calls(items, parent)

    def _resolve(self, item: Wire) -> Wire:
        """Return the stored item that this one refers to; itself if it is no reference, or one to something else."""
        is_reference = item.get("type") == "item_reference" or item.keys() == {"id"}
        return self._stored_items.get(str(item["id"]), item) if is_reference else item

    def _check_items(self, items: list[Wire], body: Wire) -> Iterator[str]:
        for place, item in enumerate(items):
            following = items[place + 1] if place + 1 < len(items) else None
            before = items[place - 1] if place else None
            if item.get("type") == "reasoning":
                yield from self._check_reasoning(place, item, following, str(body.get("model")))
            elif (leader := self._leader.get(str(item.get("id")))) is not None:
                led = before is not None and before.get("type") == "reasoning" and before.get("id") in (None, leader)
                if not led:
                    name = f"Item '{item['id']}' of type '{item.get('type')}'"
                    yield f"{name} was provided without its required 'reasoning' item: '{leader}'."

    def _check_reasoning(self, place: int, item: Wire, following: Wire | None, model: str) -> Iterator[str]:
        name = item.get("id")
        if not isinstance(item.get("summary"), list):
            param = f"input[{place}].summary"
            yield _refuse(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
        token = item.get("encrypted_content")
        if token and not self._is_ours(token, model):
            message = f"The encrypted content for item {name} could not be verified."
            yield _refuse(message, None, "invalid_encrypted_content")
        if not token and name not in self._stored_items:
            yield (
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try again "
                "with `store` set to true, or remove this item from your input."
            )
        follows = following is not None and _is_by_model(following)
        expected = self._follower.get(str(name))
        if follows and following is not None and expected is not None and following.get("id") not in (None, expected):
            follows = False
        if not follows:
            yield f"Item '{name}' of type 'reasoning' was provided without its required following item."

    def _check_calls(self, items: list[Wire], parent: str | None) -> Iterator[str]:
        waiting = set(self._issued[parent].calls) if parent in self._issued else set()
        for item in items:
            if item.get("type") in _CALLS:
                waiting.add(str(item.get("call_id")))
            elif item.get("type") in _OUTPUTS:
                call = str(item.get("call_id"))
                if call not in waiting:
                    yield f"No tool call found for function call output with call_id {call}."
                waiting.discard(call)
        yield from (f"No tool output found for function call {call}." for call in sorted(waiting))

    # --- sealing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events as the endpoint sends them: its ids, summaries if asked for, encrypted reasoning."""
        body = msgspec.json.decode(request.body)
        stored = body.get("store") is not False
        response = f"resp_{uuid4().hex[:12]}"
        if isinstance(events[0], ReplyStarted):
            response = events[0].id or response
            events = [msgspec.structs.replace(events[0], id=response, stored=stored), *events[1:]]
        reasoning, model = body.get("reasoning") or {}, str(body.get("model"))
        thought = any(isinstance(event, (ThinkingDelta, ThoughtSealed)) for event in events)
        if not thought and reasoning.get("effort") not in (None, "none"):
            events = self._add_hidden_thought(events, model)
        sealed = list(self._add_state(events, bool(reasoning.get("summary")), model))
        received = [self._resolve(item) for item in _list_input(body.get("input"), response)]
        self._remember(sealed, response, stored, received)
        return sealed

    def _add_hidden_thought(self, events: list[Event], model: str) -> list[Event]:
        """Put a thought without text before the events of a reply."""
        later = [
            event
            if (block := getattr(event, "block", None)) is None
            else msgspec.structs.replace(event, block=block + 1)
            for event in events
        ]
        return [later[0], self._issue_token(0, model), *later[1:]]

    def _add_state(self, events: list[Event], summarises: bool, model: str) -> Iterator[Event]:
        already = {event.block for event in events if isinstance(event, ThoughtSealed)}
        thought: int | None = None
        for event in events:
            block = getattr(event, "block", None)
            if thought is not None and block != thought:
                if thought not in already:
                    yield self._issue_token(thought, model)
                thought = None
            if isinstance(event, ThinkingDelta):
                thought = event.block
                if event.via == "reasoning_text":
                    yield event
                elif summarises:
                    yield msgspec.structs.replace(event, kind="summary", source="responses_summary", via="summary")
            else:
                yield event

    def _issue_token(self, block: int, model: str) -> ThoughtSealed:
        nonce = f"{next(self._numbers):06d}"
        return ThoughtSealed(Seal("encrypted", f"{nonce}.{self._sign(nonce, model)}"), block, "hidden")

    def _sign(self, nonce: str, model: str) -> str:
        return blake2b(f"{nonce}|{model}".encode(), key=self._secret, digest_size=24).hexdigest()

    def _is_ours(self, token: object, model: str) -> bool:
        nonce, _, signature = str(token).partition(".")
        return hmac.compare_digest(signature, self._sign(nonce, model))

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


def _refuse(message: str, param: str | None, code: str) -> DetailedRefusal:
    return DetailedRefusal(message, write_error(400, message, code, param=param))


def _refuse_field(name: str) -> DetailedRefusal:
    return _refuse(f"Unknown parameter: '{name}'.", name, "unknown_parameter")


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


def _is_by_model(item: Wire) -> bool:
    """Return whether the model produced this item."""
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return item.get("type") not in _OUTPUTS
