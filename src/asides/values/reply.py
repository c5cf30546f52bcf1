"""`Reply`: the answer of a model as one value, and `CallContext`: how it was asked for and received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, cast

import msgspec

from asides.values.errors import NoAnswer
from asides.values.events import StopReason
from asides.values.json_form import to_json_value, write_json
from asides.values.learned import Learned
from asides.values.messages import Message, StoredResponse
from asides.values.notices import Notice
from asides.values.parts import Commentary, File, Image, Part, Refusal, Text, ToolCall, join_commentary
from asides.values.thinking import NO_THOUGHT, Effort, Origin, Seal, Thought, ThoughtKind, join_thoughts
from asides.values.usage import Cost, Timing, Usage, find_cost

if TYPE_CHECKING:
    # The default is for type checkers: a bare `Reply` needs no type argument.
    from typing_extensions import TypeVar

    Output_co = TypeVar("Output_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    Output_co = TypeVar("Output_co", covariant=True)
Output = TypeVar("Output")

Revealed: TypeAlias = Literal["thinking_raw", "thinking_encrypted"]
Outcome: TypeAlias = Literal["answered", "tool_calls", "starved", "unterminated", "unanswered", "refused", "filtered"]

_ADVICE: dict[Outcome, str] = {
    "answered": "the answer is blank.",
    "tool_calls": "it asked for tools instead; run them and send their results.",
    "unanswered": "it said what it was doing and ended without an answer; ask again, or send its turn back.",
    "starved": "it ran out of tokens while thinking; raise max_tokens or ask for less thinking.",
    "unterminated": "it stopped after thinking, without an answer; ask again, or ask for less thinking.",
    "refused": "it refused; reply.refusal has its text.",
    "filtered": "the provider's filter stopped it; change the request.",
}


_MAX_QUOTED = 300
"""How many characters of the commentary the advice quotes."""


@dataclass(init=False, repr=False, eq=False)
class OutputCache:
    """The parsed output of a reply. Mutable, and never copied, encoded or pickled with its value."""

    def __init__(self) -> None:
        self._read: tuple[tuple[Part, ...], Any] | None = None

    def read(self, reply: Reply, expected: Any) -> Any:
        """The output of a reply, parsed once. A copy of the reply with other parts is parsed again."""
        if self._read is None or self._read[0] is not reply.parts:
            self._read = reply.parts, expected.read(reply)
        return self._read[1]

    def __reduce__(self) -> tuple[type[OutputCache], tuple[()]]:
        return OutputCache, ()


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """How a reply was asked for and received. It does not count for the equality of replies."""

    payloads: Sequence[bytes] = ()
    """The JSON documents as received."""
    streamed: bool = False
    timing: Timing | None = None
    """Durations in seconds; None for a reply that was not received just now."""
    revealed: tuple[Revealed, ...] = ()
    """More fields that the caller asked to have in `metadata`."""
    expected: Any = None
    """The expected output (`output=`), and how to read it from a reply."""
    priced_by: str | None = None
    """The provider's name in genai-prices, for an estimate of the cost."""
    price_share: Decimal | None = None
    """The share of the list price that is paid, such as half of it in a vendor's batch; None: all of it."""
    learned: tuple[Learned, ...] = ()
    """What refusals of earlier forms of the request taught."""
    prefix: str = ""
    """The digest of the request, where the model's seals are bound to it."""
    effort: Effort | None = None
    """The effort that the request asked for, if any."""
    visibility: Any = None
    """The `Visibility` of the client, where that is not the default."""
    output: OutputCache = msgspec.field(default_factory=OutputCache)

    def __repr__(self) -> str:
        return f"CallContext(<{len(self.payloads)} payloads>, streamed={self.streamed})"


class Reply(msgspec.Struct, Generic[Output_co], frozen=True, eq=False):
    """The reply of a model: the answer in `text`, the thinking in `thinking`, what it said on the way in `commentary`,
    other content in fields of its own.
    """

    parts: tuple[Part, ...] = ()
    """Thoughts, text and tool calls in order, each with its seals."""
    usage: Usage = Usage()
    stop: StopReason = StopReason()
    warnings: tuple[Notice, ...] = ()
    model: str | None = None
    id: str | None = None
    origin: Origin | None = None
    complete: bool = True
    """False for the `.partial` of an error or of a cancelled stream."""
    stored: bool = False
    """True: the provider has stored it, and the next turn may continue from its id."""
    call: CallContext = CallContext()
    """How it was asked for and received. It does not count for equality."""

    @property
    def payloads(self) -> Sequence[bytes]:
        """The JSON documents as received."""
        return self.call.payloads

    @property
    def streamed(self) -> bool:
        """True if it arrived as a stream."""
        return self.call.streamed

    @property
    def timing(self) -> Timing | None:
        """Durations in seconds; None for a reply that was not received just now."""
        return self.call.timing

    @property
    def learned(self) -> tuple[Learned, ...]:
        """What refusals of earlier forms of the request taught."""
        return self.call.learned

    @property
    def prefix(self) -> str:
        """The digest of the request, where the model's seals are bound to it."""
        return self.call.prefix

    @property
    def effort(self) -> Effort | None:
        """The effort that the request asked for, if any."""
        return self.call.effort

    @property
    def expected(self) -> Any:
        """The expected output (`output=`), and how to read it from a reply."""
        return self.call.expected

    def with_call(self, **changes: Any) -> Self:
        """A copy with these fields of its `call` changed."""
        return msgspec.structs.replace(self, call=msgspec.structs.replace(self.call, output=OutputCache(), **changes))

    @property
    def output(self) -> Output_co:
        """The answer as a value of the type that `output=` asked for; without `output=`, its text.

        Read from the answer when it is first used, never from thinking. Raises `InvalidOutput` for an answer that does
        not fit, and `NoAnswer` when there is none; `.partial` of the error is this reply.
        """
        expected = self.call.expected
        if not expected:  # an encoded and decoded reply has none either
            return cast("Output_co", self.text)
        return cast("Output_co", self.call.output.read(self, expected))

    @property
    def cost(self) -> Cost | None:
        """The price: what the provider reported, or an estimate if genai-prices is installed; None if it is not known.

        An estimate multiplies the tokens with the list prices that came with genai-prices. Nothing is fetched.
        """
        models = (self.model, None if self.origin is None else self.origin.model)
        cost = find_cost(self.usage, [model for model in models if model], self.call.priced_by)
        return cost if cost is None or self.call.price_share is None else cost.discount(self.call.price_share)

    @property
    def text(self) -> str:
        """The answer, never thinking or commentary; "" when there is none."""
        return "".join([part.text for part in self.parts if type(part) is Text])

    @property
    def content(self) -> str:
        """The answer, by the name that other libraries use."""
        return self.text

    @property
    def commentary(self) -> str:
        """What the model said on the way to its answer, blocks joined by a blank line; "" when there is none."""
        return join_commentary(part.text for part in self.parts if type(part) is Commentary)

    @property
    def thinking(self) -> Thought:
        """The thinking of the whole reply, blocks joined by a blank line; false and without text when there is none."""
        return merge_thoughts([part for part in self.parts if type(part) is Thought], self.origin)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(part for part in self.parts if type(part) is ToolCall)

    @property
    def refusal(self) -> str | None:
        """The text with which the model refused; None when it did not."""
        return "".join(part.text for part in self.parts if type(part) is Refusal) or None

    @property
    def seals(self) -> tuple[Seal, ...]:
        """Every opaque token of the reply, in order."""
        return tuple(seal for part in self.parts for seal in part.seals if seal.value)

    @property
    def outcome(self) -> Outcome:
        """How the reply ended, in one word."""
        if self.stop.reason == "content_filter":
            return "filtered"
        if self.stop.reason == "refusal" or self.refusal:
            return "refused"
        if self.tool_calls:
            return "tool_calls"
        if self.text.strip() or any(isinstance(part, (Image, File)) for part in self.parts):
            return "answered"
        if self.stop.reason == "length":
            return "starved"
        return "unanswered" if self.commentary else "unterminated"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """A flat, read-only view: model, usage, raw, commentary, thinking, thinking_type, thinking_source. `to_dict`
        has it as plain JSON.
        """
        return MappingProxyType(self._build_metadata(self.thinking, thinking=True, seals=True, raw=True))

    def _build_metadata(self, thought: Thought, *, thinking: bool, seals: bool, raw: bool) -> dict[str, Any]:
        view: dict[str, Any] = {"model": self.model, "usage": self.usage}
        thinking, seals, raw = self._limit(thought, thinking, seals, raw)
        if raw:
            view["raw"] = self.raw
        if commentary := self.commentary:
            view["commentary"] = commentary
        view["thinking_source"] = thought.source if thought else "none"
        if thought.text:
            view["thinking_type"] = thought.kind
            if thinking:
                view["thinking"] = thought.text
            if thinking and "thinking_raw" in self.call.revealed and thought.kind == "raw":
                view["thinking_raw"] = thought.text
        if seals and "thinking_encrypted" in self.call.revealed:
            view["thinking_encrypted"] = tuple(seal.value for seal in self.seals if seal.kind == "encrypted")
        return view

    def _limit(self, thought: Thought, *asked: bool) -> Any:
        return asked if self.call.visibility is None else self.call.visibility.limit_written(thought, *asked)

    @property
    def raw(self) -> Any:
        """The decoded response as received, or the list of decoded events. What cannot be decoded stays text."""
        documents = [_decode(payload) for payload in self.payloads]
        if self.streamed:
            return documents
        return documents[0] if documents else None

    def to_dict(self, *, thinking: bool = False, seals: bool = False, raw: bool = False) -> dict[str, Any]:
        """Return the reply as plain JSON: `json.dumps` takes it.

        `thinking` is None unless `thinking=True`; `thinking_type` shows whether there is some. `seals=True` adds the
        seals, and `raw=True` the response as received, in `metadata`; it may hold both. With `output=`, `output` is its
        value, or None if the answer does not fit.
        """
        thought = self.thinking
        thinking, seals, raw = self._limit(thought, thinking, seals, raw)
        fields: dict[str, Any] = {
            "text": self.text,
            "commentary": self.commentary,
            "thinking": (thought.text or None) if thinking else None,
            "thinking_type": thought.kind if thought else None,
            "thinking_source": thought.source if thought else "none",
            "tool_calls": [_encode_call(call) for call in self.tool_calls],
            "refusal": self.refusal,
            "usage": self.usage,
            "outcome": self.outcome,
            "stop": self.stop,
            "model": self.model,
            "id": self.id,
            "complete": self.complete,
            "warnings": self.warnings,
            "timing": self.timing,
            "cost": self.cost,
            "metadata": self._build_metadata(thought, thinking=thinking, seals=seals, raw=raw),
        }
        if self.expected:
            fields["output"] = self._read_output()
        if seals:
            fields["seals"] = self.seals
        written: dict[str, Any] = to_json_value(fields, thinking=thinking, seals=seals)
        return written

    def to_json(
        self, *, thinking: bool = False, seals: bool = False, raw: bool = False, indent: int | None = None
    ) -> str:
        """Return the reply as JSON text: `to_dict`, written."""
        return write_json(self.to_dict(thinking=thinking, seals=seals, raw=raw), indent=indent)

    def _read_output(self) -> Any:
        try:
            return self.output
        except Exception:  # noqa: BLE001 - the type may run code of the caller
            return None

    def with_tags(self) -> str:
        """Return the thinking in tags, then the answer; the answer alone when there is no thinking."""
        thought = self.thinking
        if not thought.text or not self._limit(thought, True, False, False)[0]:
            return self.text
        return f"<thinking>{thought.text}</thinking>\n\n{self.text}"

    def to_message(self) -> Message | None:
        """Return the message for the history; None when the server sent no choice at all."""
        if not self.parts and any(notice.code == "no_choices" for notice in self.warnings):
            return None
        stored = StoredResponse(self.id, self.origin) if self.stored and self.id else None
        return Message("assistant", self.parts, None, stored, self.prefix, self.learned, self.effort)

    def require_answer(self) -> Self:
        """Return this reply. Raises `NoAnswer` with advice when it has no answer."""
        outcome = self.outcome
        if outcome == "answered" or (self.text.strip() and outcome == "tool_calls"):
            return self
        said = f" It said: {self.commentary[:_MAX_QUOTED]!r}" if self.commentary else ""
        raise NoAnswer(f"{self.model or 'the model'} gave no answer ({outcome}): {_ADVICE[outcome]}{said}", self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"Reply(<{len(self.text)} characters>, outcome={self.outcome!r}, thinking={self.thinking!r}, "
            f"tool_calls={[call.name for call in self.tool_calls]!r}, stop={self.stop!r}, usage={self.usage!r})"
        )

    def _repr_markdown_(self) -> str:
        """The reply in a notebook: its answer, with the thinking that people may see folded above it."""
        return format_markdown(self.text, self.thinking, self.timing, self.call.visibility)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reply):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED_FIELDS)

    def __ne__(self, other: object) -> bool:
        # Without this, the != of Struct would not call __eq__.
        return not self == other

    __hash__ = None  # type: ignore[assignment]


# A streamed reply equals the same reply received whole, so framing and time do not count (contract §4.2).
_COMPARED_FIELDS = tuple(name for name in Reply.__struct_fields__ if name != "call")


def format_markdown(answer: str, thought: Thought, timing: Timing | None, policy: Any) -> str:
    """An answer for a notebook, with its thinking, if people may see it, folded above."""
    from html import escape

    if not thought.text or not (policy is None or policy.allows("user", thought.kind)):
        return answer
    seconds = None if timing is None else timing.thinking
    title = "Thinking" if seconds is None else f"Thinking ({seconds:.0f} s)"
    # Escaped and without a blank line, so that it cannot end the fold.
    text = escape(thought.text).replace("\n", "<br>")
    return f"<details><summary>{title}</summary>{text}</details>\n\n{answer}"


def merge_thoughts(thoughts: Sequence[Thought], origin: Origin | None) -> Thought:
    """One thought for all of them, in order; a false one when they have neither text nor seals."""
    text = join_thoughts([thought.text for thought in thoughts])
    seals = tuple(seal for thought in thoughts for seal in thought.seals if seal.value)
    if text is None and not seals:
        return NO_THOUGHT
    shown = [thought for thought in thoughts if thought.text] or thoughts
    kind: ThoughtKind = "hidden"
    if text is not None:
        kind = "summary" if all(thought.kind == "summary" for thought in shown) else "raw"
    first, whole = shown[0], all(thought.complete for thought in thoughts)
    seconds = [thought.seconds for thought in thoughts if thought.seconds is not None]
    time = sum(seconds) if seconds else None
    return Thought(text or "", kind, first.source, origin, seals, first.via, whole, seconds=time)


def _encode_call(call: ToolCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ("id", "name", "arguments", "raw_arguments")}


def _decode(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return payload.decode("utf-8", "replace")
