"""The case under examination (a row, one of its models, its dialect) and the replies that the checks use.

`Sample`s are generated, the same each time. `Example`s are real replies, given by the author of a provider. Pure.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect, HttpRequest, ServedRequest
from asides.dialects.rulebook import BrokenRule, WireRequest, find_rulebook
from asides.history.check import OnConflict
from asides.history.plan import Plan, encode_plan, plan
from asides.providers.provider import THINKING_FIELDS, ModelRule, Provider, Target
from asides.testing.conformance.response_bodies import (
    Decoded,
    decode_pieces,
    read_documents,
    rename_field,
    replace_documents,
)
from asides.testing.stage.http_requests import Request
from asides.values.errors import Unsupported
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.parts import ToolCall
from asides.values.reply import Outcome, Reply
from asides.values.thinking import ThoughtKind
from asides.values.usage import Usage

_UNUSED_ADDRESS = "http://127.0.0.1:9/v1"
_GENERATED_SAMPLES = 12

CANARY = "canary-7f3a"
"""Every thought of the suite contains it, and nothing else does."""
THOUGHT = f'Let me see: {CANARY}, it says "so", \u00e9\u65e5\U0001f44b.\nA second line of it.'
ANSWER = 'Forty-two \u2014 "as said": {"a": [1]} and a < b,\n\u65e5\u672c \U0001f44b.'
USAGE = Usage(input=11, output=31, thinking=20, cached=3, total=42)
CALLS = (
    ToolCall("call_a1", "look_up", {"what": 'the "sky" \u65e5', "times": 2}),
    ToolCall("call_b2", "look_up", {"what": "the sea", "deep": {"very": True}}),
)
_LETTERS = 'ab\u00e9\u65e5\U0001f44b{}"\\`:,. \n\tthink'


# --- replies ----------------------------------------------------------------------------------------------------------


class Sample(msgspec.Struct, frozen=True):
    """One generated reply."""

    name: str
    thought: str = THOUGHT
    text: str = ANSWER
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = USAGE
    pieces: tuple[int, ...] = (7, 4)
    """The lengths of its deltas in characters, repeated."""

    @property
    def stop(self) -> StopReason:
        """The reason why the reply ends."""
        return StopReason("tool_calls" if self.calls else "stop")

    def events(self, target: Target) -> list[Event]:
        """Build the events of the reply, with the kind and the field of thinking that the row names."""
        kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        via = target.facts.thinking_in[0]
        events: list[Event] = [ReplyStarted(target.model, "reply-1")]
        events += [ThinkingDelta(piece, 0, kind, "field", via) for piece in _cut(self.thought, self.pieces)]
        events += [TextDelta(piece, 1) for piece in _cut(self.text, self.pieces)]
        for block, call in enumerate(self.calls, 2):
            raw = msgspec.json.encode(call.arguments).decode()
            events.append(ToolCallDelta(block, call.id, call.name))
            events += [ToolCallDelta(block, arguments=piece) for piece in _cut(raw, self.pieces)]
        if self.usage is not None:
            events.append(UsageReported(self.usage))
        return [*events, ReplyEnded(self.stop)]


PLAIN = Sample("a thought and an answer")
CALLING = Sample("a thought and two calls", text="", calls=CALLS)
UNCOUNTED = Sample("a reply without counts", usage=None)
_FIXED = (PLAIN, CALLING, Sample("a thought, an answer and a call", calls=CALLS[:1]), UNCOUNTED)


def _generate_sample(seed: int) -> Sample:
    """Generate a reply of odd characters in odd pieces; the same seed gives the same reply."""
    chance = random.Random(seed)
    thought, text = _generate_text(chance), _generate_text(chance)
    calls: tuple[ToolCall, ...] = ()
    if chance.random() < 0.4:
        arguments: dict[str, Any] = {_generate_text(chance): chance.choice([1, True, None, _generate_text(chance)])}
        calls = (ToolCall(f"call_{seed}", "look_up", arguments),)
    pieces = tuple(chance.randint(1, 5) for _ in range(chance.randint(1, 4)))
    return Sample(f"made-up reply {seed}", f"{CANARY} {thought}", text, calls, pieces=pieces)


def _generate_text(chance: random.Random) -> str:
    # No white space at either end: servers may strip it, and no check is about that.
    return "x" + "".join(chance.choice(_LETTERS) for _ in range(chance.randint(0, 24))) + "x"


def _cut(text: str, sizes: tuple[int, ...]) -> list[str]:
    pieces: list[str] = []
    start = turn = 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[start : start + size])
        start, turn = start + size, turn + 1
    return pieces


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a real reply, whole, streamed or both, and what they must become. Omitted fields are not compared.

    The whole and the streamed form must become the same reply.
    """

    name: str = "an example"
    whole: bytes | None = None
    stream: bytes | None = None
    reply: Reply | None = None
    """The complete reply, to compare every detail."""
    text: str | None = None
    thinking: str | None = None
    """"" if there must be none."""
    tool_calls: tuple[tuple[str, dict[str, Any]], ...] | None = None
    """The names and the arguments of its calls."""
    seals: tuple[str, ...] | None = None
    """The values of its seals."""
    stop: StopKind | None = None
    outcome: Outcome | None = None
    model: str | None = None
    """The model of the reply, if it is not the examined one."""

    def __repr__(self) -> str:
        sizes = [f"{form}=<{len(body)} bytes>" for form, body in self.bodies().items()]
        return f"Example({self.name!r}, {', '.join(sizes)})"

    def bodies(self) -> dict[str, bytes]:
        """Return the bytes by form, "whole" and "stream"."""
        return {form: body for form, body in (("whole", self.whole), ("stream", self.stream)) if body is not None}

    def differences(self, reply: Reply) -> list[str]:
        """Return the names of the fields in which a reply differs from the example."""
        actual: dict[str, Any] = {
            "text": reply.text,
            "thinking": reply.thinking.text,
            "tool_calls": tuple((call.name, call.arguments) for call in reply.tool_calls),
            "seals": tuple(seal.value for seal in reply.seals),
            "stop": reply.stop.reason,
            "outcome": reply.outcome,
            "reply": reply,
        }
        return [field for field, value in actual.items() if getattr(self, field) not in (None, value)]


# --- the case ---------------------------------------------------------------------------------------------------------


class Sent(msgspec.Struct, frozen=True):
    """A request as it would be sent."""

    plan: Plan
    request: HttpRequest
    notices: tuple[Notice, ...]
    """The adjustments of the plan and of the dialect."""

    @property
    def body(self) -> Any:
        """The decoded body."""
        return msgspec.json.decode(self.request.body)

    def has_notice(self, setting: str) -> bool:
        """Return whether a notice says how this setting was adjusted."""
        # A notice about an unknown model says nothing about the request.
        return any(notice.setting == setting and notice.code != "unknown_model" for notice in self.notices)


class Case(msgspec.Struct, frozen=True):
    """One provider under examination."""

    target: Target
    dialect: Dialect
    examples: tuple[Example, ...] = ()
    quick: bool = False
    """Fewer samples, for tables of many rows."""

    @property
    def row(self) -> Provider:
        """The row."""
        return self.target.provider

    @property
    def model(self) -> str:
        """The requested model."""
        return self.target.model

    @property
    def rule(self) -> ModelRule:
        """The row's rule for the model."""
        return self.target.rule

    @property
    def has_own_thinking_field(self) -> bool:
        """Whether the host sends thinking in a field that no server half writes."""
        return self.target.facts.thinking_in[0] not in THINKING_FIELDS

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The replies that the checks use."""
        return _FIXED if self.quick else (*_FIXED, *map(_generate_sample, range(_GENERATED_SAMPLES)))

    def write(self, events: Iterable[Event], *, stream: bool) -> bytes:
        """Write these events one by one with the dialect's server half, thinking in the field that the row names."""
        writer = self.dialect.writer(model=self.model, stream=stream)
        body = b"".join(writer.write([event]) for event in events)
        documents = read_documents(body) if self.has_own_thinking_field else None
        if documents is None:
            return body
        field = self.target.facts.thinking_in[0]
        return replace_documents(body, [rename_field(document, THINKING_FIELDS[0], field) for document in documents])

    def write_sample(self, sample: Sample, *, stream: bool) -> bytes:
        """Write a sample with the dialect's server half."""
        return self.write(sample.events(self.target), stream=stream)

    def decode(self, *pieces: bytes) -> Decoded:
        """Decode a body in these pieces with the dialect's client half."""
        return decode_pieces(pieces, self.target, self.dialect)

    def encode(self, prompt: Prompt, on_conflict: OnConflict = "adjust") -> Sent:
        """Plan and encode a prompt, as a call does."""
        planned = plan(prompt, self.target, on_conflict=on_conflict)
        request, notices = encode_plan(planned, self.target, self.dialect, on_conflict=on_conflict)
        return Sent(planned, request, (*planned.notices, *notices))

    def read(self, sent: Sent) -> ServedRequest:
        """Read a request with the dialect's server half."""
        return self.dialect.read(self._read_body(sent.request), urlsplit(sent.request.url).path)

    def find_broken_rules(self, sent: Sent) -> list[BrokenRule]:
        """Return the rules of the host that a request breaks."""
        rules = find_rulebook(self.dialect.name)
        received = self.receive(sent)
        request = WireRequest(msgspec.json.decode(received.body), received.headers, received.path)
        return [] if rules is None else list(rules.check(request, self.target))

    def receive(self, sent: Sent) -> Request:
        """Return a request as a server receives it."""
        address = urlsplit(sent.request.url)
        headers = {name.lower(): value for name, value in sent.request.headers.items()}
        return Request(sent.request.method, address.path, address.query, headers, self._read_body(sent.request))

    def _read_body(self, request: HttpRequest) -> bytes:
        if self.target.quirks.transport == "direct":
            return request.body
        # A cloud has the model in its address and passes it to the server in the body.
        return msgspec.json.encode({"model": self.model, **msgspec.json.decode(request.body)})


def build_case(
    provider: Provider,
    *,
    model: str | None = None,
    dialect: str | None = None,
    examples: Iterable[Example] = (),
    quick: bool = False,
) -> Case:
    """Build the case of a row, by default with its first dialect and with a model that thinks.

    Raises Unsupported if the row does not speak the dialect.
    """
    row = provider if dialect is None else provider.with_dialect(dialect)
    if row is None:
        raise Unsupported(f"{provider.name} is not known to speak {dialect!r}; it needs a ModelVariant for that.")
    # One dialect at a time: how a call chooses among several is not examined.
    row = msgspec.structs.replace(row, also=(), chooses=False, base_url=row.base_url or _UNUSED_ADDRESS)
    name = find_thinking_model(row) if model is None else model
    target = Target(row, name, _UNUSED_ADDRESS, row.rule(name))
    return Case(target, dialects.find_dialect(row.dialect), tuple(examples), quick)


def find_thinking_model(row: Provider) -> str:
    """Return a model that thinks according to the row's rules; "made-up" if they name none."""
    ranked = sorted(row.models, key=lambda rule: ("optional", "always", "unknown", "never").index(rule.thinking))
    for rule in ranked:
        name = _invent_name(rule.models)
        if name and row.rule(name) is rule:
            return name
    return "made-up"


def _invent_name(glob: str) -> str:
    """Return a name that the glob matches."""
    name = re.sub(r"\[(.)[^\]]*\]", r"\1", glob).replace("?", "1")
    name = "made-up" if name == "*" else name.strip("*").replace("*", "-")
    return f"{name}1" if name.endswith("-") else name
