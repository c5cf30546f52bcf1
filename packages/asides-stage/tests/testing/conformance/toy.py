"""A made-up provider with its own wire language: JSON documents, one per line in a stream. Both halves.

It is a small dialect that does everything: thinking with a mark that must come back, answers, calls, counts, errors, a
list of models. The tests prove the suite on it and on its broken variants (broken_toys). docs/adding-a-dialect.md has a
smaller one.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest, ServedRequest, StagedDialect
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.http_body import build_post, join_url, merge_fields, report_unsupported, write_sampling
from asides.dialects.message_encoder import Wire, encode_flat, put_system_first
from asides.dialects.model_lists import build_list_request, read_list, strip_reply_path
from asides.dialects.server_half import ReplyWriter, RequestFields
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ProviderError
from asides.values.events import (
    Event,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.messages import Message, Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought, read_thinking
from asides.values.tools import Tool
from asides.values.usage import Usage, normalise_usage
from asides.wire.framing import Framing
from asides_stage.stage.http_requests import Request

MARK = "mark"
STOPS: dict[str, StopKind] = {"done": "stop", "full": "length", "wants": "tool_calls"}


# --- client half: a request -------------------------------------------------------------------------------------------


def _encode_user(_: Message, parts: list[Part]) -> Wire:
    return {"role": "user", "says": "".join(part.text for part in parts if isinstance(part, Text))}


def _encode_tool_result(result: ToolResult) -> Wire:
    return {"role": "tool", "for": result.call_id, "says": result.text}


def _encode_assistant(message: Message) -> list[Wire]:
    turn: Wire = {"role": "model", "says": message.text}
    for thought in message.parts:
        if isinstance(thought, Thought):
            turn["ponder"] = thought.text
            turn |= {seal.kind: seal.value for seal in thought.seals}
    if message.tool_calls:
        turn["wants"] = [{"id": one.id, "do": one.name, "with": one.arguments} for one in message.tool_calls]
    return [turn]


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target."""
    notices: list[Notice] = report_unsupported(prompt, "metadata", "user", "tool_choice", "output")
    turns = encode_flat(
        put_system_first(prompt),
        notices,
        user=_encode_user,
        assistant=_encode_assistant,
        tool_result=_encode_tool_result,
    )
    body: Wire = {"model": target.model, "turns": turns, "live": prompt.stream}
    body |= write_sampling(prompt, {"temperature": "temperature"}, notices)
    if prompt.tools:
        body["can"] = [{"do": tool.name, "how": tool.description, "with": tool.parameters} for tool in prompt.tools]
    if prompt.max_tokens is not None:
        body["most"] = prompt.max_tokens
    thinking = prompt.thinking
    if thinking.budget is not None:
        notices.append(Notice("budget_not_sent", "the toy takes no budget", "thinking", str(thinking.budget), "on"))
    if thinking.asked:
        body["ponder"] = False if thinking.mode == "off" else thinking.effort or True
    return build_post(
        target, join_url(target, f"{strip_reply_path(target)}/talk"), "*/*", merge_fields(body, prompt.extra)
    ), (*notices,)


# --- client half: a reply ---------------------------------------------------------------------------------------------


class Want(msgspec.Struct):
    """A call, complete."""

    id: str | None = None
    do: str | None = None
    arguments: dict[str, Any] | None = msgspec.field(default=None, name="with")


class Cost(msgspec.Struct):
    """The counts; `answered` includes `pondered`."""

    asked: int | None = None
    answered: int | None = None
    pondered: int | None = None


class Line(msgspec.Struct):
    """One line of a stream, or a whole reply: they are the same."""

    by: str | None = None
    ponder: str | None = None
    mark: str | None = None
    says: str | None = None
    wants: list[Want] | None = None
    cost: Cost | None = None
    over: str | None = None
    trouble: str | None = None


LINES = msgspec.json.Decoder(Line)


class ToyDecoder(DocumentDecoder):
    """Lines in, events out. The thought is block 0, the answer block 1, calls follow."""

    dialect = "toy"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True))
        self._calls = 0

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Read one line."""
        line = self.read(payload, LINES, events)
        if line.trouble is not None:
            self.failure = from_status(200, provider=self.target.provider.name, message=line.trouble, body=payload)
            return
        self.start(events, line.by)
        if line == Line():
            self.warn("unknown_event", "a line without anything that is known is only in metadata['raw']", events)
        if line.ponder:
            events.append(ThinkingDelta(line.ponder, 0, "raw", "field", "ponder"))
        if line.mark:
            events.append(ThoughtSealed(Seal(MARK, line.mark, self.origin), 0))
        if line.says:
            events.append(TextDelta(line.says, 1))
        for want in line.wants or ():
            arguments = msgspec.json.encode(want.arguments or {}).decode()
            events.append(ToolCallDelta(2 + self._calls, want.id, want.do, arguments))
            self._calls += 1
        if line.cost is not None:
            cost = line.cost
            usage = normalise_usage(input=cost.asked, output=cost.answered, thinking=cost.pondered)
            events.append(UsageReported(usage))
        if line.over is not None:
            self.ended = True
            self.stop = StopReason(STOPS.get(line.over, "unknown"), line.over)


def error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for this response."""
    try:
        message = LINES.decode(body).trouble or ""
    except msgspec.DecodeError:
        message = ""
    request_id = headers.get("x-request-id")
    return from_status(status, provider=target.provider.name, message=message, request_id=request_id, body=body)


# --- server half ------------------------------------------------------------------------------------------------------


class ToyWriter(ReplyWriter):
    """Events in, lines out, or one document."""

    def __init__(self, model: str, *, stream: bool, shows_usage: bool) -> None:
        super().__init__(model, "application/x-ndjson" if stream else "application/json", shows_usage=shows_usage)
        self._stream = stream
        self._held: list[Event] = []

    def _write_event(self, event: Event) -> bytes:
        if self._stream and not isinstance(event, ToolCallDelta):
            return self._line(**self._encode([event]))
        self._held.append(event)
        return b""

    def _encode(self, events: list[Event]) -> Wire:
        reply = fold([self._started, *events])
        thought = reply.thinking
        wants = [{"id": call.id, "do": call.name, "with": call.arguments} for call in reply.tool_calls]
        fields = {
            "ponder": thought.text if thought else "".join(_thoughts(events)),
            "says": reply.text,
            "wants": wants,
        }
        fields[MARK] = "".join(seal.value for seal in reply.seals)
        return fields

    def _write_end(self, stop: StopReason) -> bytes:
        over = next((word for word, reason in STOPS.items() if reason == stop.reason), "done")
        return self._line(**self._encode(self._held), cost=_cost(self._shown_usage), over=over)

    def _line(self, **fields: Any) -> bytes:
        document = {"by": self._started.model, **{name: value for name, value in fields.items() if value}}
        return msgspec.json.encode(document) + (b"\n" if self._stream else b"")


def _thoughts(events: list[Event]) -> list[str]:
    """Return the pieces of thinking. A blank piece alone is no thinking of a reply, but part of a longer one."""
    return [event.text for event in events if isinstance(event, ThinkingDelta)]


def _cost(usage: Usage | None) -> Wire:
    counts = {} if usage is None else {"asked": usage.input, "answered": usage.output, "pondered": usage.thinking}
    return {name: count for name, count in counts.items() if count is not None}


def read(body: bytes) -> ServedRequest:
    """Read a client's request."""
    fields = RequestFields.parse_body(body)
    model, live = fields.take_model(), fields.take("live", bool)
    turns = [_turn(turn) for turn in fields.take("turns", list[dict[str, Any]]) or []]
    system = turns.pop(0).text if turns and turns[0].role == "system" else None
    tools = fields.take("can", list[dict[str, Any]]) or []
    ponder: Any = fields.remaining.pop("ponder", None)
    prompt = Prompt(
        tuple(turns),
        system,
        Thinking() if ponder is None else read_thinking(ponder)[0],
        tuple(Tool(tool["do"], tool.get("how", ""), tool.get("with", {})) for tool in tools),
        max_tokens=fields.take("most", int),
        stream=bool(live),
    )
    prompt = msgspec.structs.replace(prompt, extra=fields.remaining)
    return ServedRequest(prompt, model, bool(live), include_usage=True)


def _turn(turn: Wire) -> Message:
    says = str(turn.get("says", turn.get("content", "")))
    match turn.get("role"):
        case "tool":
            return Message("tool", (ToolResult(turn["for"], says),))
        case "model":
            seals = (Seal(MARK, turn[MARK]),) if MARK in turn else ()
            thoughts = [Thought(turn["ponder"], seals=seals)] if "ponder" in turn else []
            calls = [ToolCall(one["id"], one["do"], one["with"]) for one in turn.get("wants", ())]
            return Message("assistant", (*thoughts, *([Text(says)] if says else []), *calls))
        case "system":
            return Message("system", (Text(says),))
        case _:
            return Message("user", (Text(says),))


class ToyRules:
    """The toy's server demands each thought back with its mark."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _mark(self, thought: str) -> str:
        return hmac.digest(self._secret, thought.encode(), "sha256").hex()

    def refuse(self, request: Request) -> str | None:
        """Return why the server refuses this request; None if it accepts it."""
        for turn in msgspec.json.decode(request.body)["turns"]:
            if "ponder" in turn and turn.get(MARK) != self._mark(turn["ponder"]):
                return "ponder came back without its mark, or changed"
            if turn.get("wants") and "ponder" not in turn:
                return "a turn that wants something has to come back with its ponder"
        return None

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the mark to the thought of a reply."""
        del request
        thought = "".join(_thoughts(events))
        last = max((place for place, event in enumerate(events) if isinstance(event, ThinkingDelta)), default=None)
        if last is None:
            return events
        return [*events[: last + 1], ThoughtSealed(Seal(MARK, self._mark(thought)), 0), *events[last + 1 :]]


class ToyDialect:
    """The toy's dialect, both halves."""

    name = "toy"
    reply_paths: tuple[str, ...] = ("/talk",)
    list_paths: tuple[str, ...] = ("/minds",)

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Encode a planned prompt for its target."""
        return encode(prompt, target)

    def decoder(self, target: Target) -> DocumentDecoder:
        """Build a decoder for one response."""
        return ToyDecoder(target)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """Build the error for this response."""
        return error(status, headers, body, target)

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Build the request for the list of models, which has one page."""
        del after
        return build_list_request(target, f"{strip_reply_path(target)}/minds")

    def read_models(self, body: bytes) -> ModelPage:
        """Read the list."""
        return ModelPage(
            tuple(ModelInfo(name) for one in read_list(body, "minds")[0] if (name := one.get_text("name")))
        )

    def read(self, body: bytes, path: str = "") -> ServedRequest:
        """Server half: read a client's request."""
        del path
        return read(body)

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ToyWriter:
        """Server half: build a writer for one response."""
        return ToyWriter(model, stream=stream, shows_usage=include_usage)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: write an error body."""
        del status, kind
        return msgspec.json.encode({"trouble": message})

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: write the list."""
        del query
        return msgspec.json.encode({"minds": [{"name": model.id} for model in models]})

    def request_rules(self, secret: bytes) -> ToyRules:
        """Build what the stage checks and signs in this dialect."""
        return ToyRules(secret)


dialect: StagedDialect = ToyDialect()
TOY = Provider(
    name="toy",
    dialect="toy",
    base_url="https://toy.example/v1",
    key_env=("TOY_API_KEY",),
    quirks=Quirks(path="/talk"),
    models=(ModelRule(models="pondering-*", thinking="optional", default="on", since="2026-11", source="made up"),),
    replay=(ReplayRule(when="tool_turns", since="2026-11", source="made up"),),
)
