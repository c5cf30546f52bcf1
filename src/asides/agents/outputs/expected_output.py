"""The output that a caller of `ask` expects: how it is asked for, read from a reply, and shown while it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from asides.agents.outputs.output_type import OutputMismatch, OutputType, read_output_type
from asides.agents.outputs.parse_output import parse_output
from asides.agents.outputs.schemas import WRAPPER_FIELD, build_schema, simplify_schema
from asides.agents.outputs.strategy import INSTRUCTED, Strategy, add_schema_instructions, choose_strategy
from asides.providers.provider import Target
from asides.values.errors import InvalidOutput
from asides.values.events import TextDelta, TextReclassified, ToolCallDelta
from asides.values.fold import simulate
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.result import StepStarted
from asides.wire.partial_json import PartialJson

_NATIVE = Strategy("native")


@dataclass(init=False, repr=False, eq=False)
class ExpectedOutput:
    """Expected output type of a reply. Parsed lazily.

    It has no fields for msgspec: a type cannot be written as JSON, and replies must stay encodable.
    """

    def __init__(self, source: Any, strategy: Strategy = _NATIVE) -> None:
        self.source = source
        """The option `output` as the caller gave it."""
        self.strategy = strategy
        """How the model was asked, which determines where its answer is."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpectedOutput) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def output_type(self) -> OutputType[Any]:
        """The type to read."""
        source = self.source
        if isinstance(source, (Mapping, OutputSchema)):
            is_bare = not isinstance(source, OutputSchema)
            return _read_schema(msgspec.json.encode(source), is_bare)
        return read_output_type(source)

    def read(self, reply: Reply) -> Any:
        """The value of a reply. Raises InvalidOutput or NoAnswer, with the reply as `.partial`."""
        try:
            return parse_output(reply, self.output_type, self.strategy).value
        except OutputMismatch as problem:
            if reply.tool_calls and not reply.text.strip():
                reply.require_answer()
            how = _describe_mismatch(problem.feedback)
            error = InvalidOutput(
                f"the answer of {reply.model or 'the model'} does not fit output={how}. "
                "Raise attempts=, use another model, or read the text of .partial.",
                feedback=problem.feedback,
            )
            error.partial = reply
            raise error from None

    def __repr__(self) -> str:
        return f"ExpectedOutput({getattr(self.source, '__name__', type(self.source).__name__)})"


# msgspec names types and fields of the schema; it does not quote the answer.
_MISMATCH = re.compile(
    r"\$[\w.\[\]]*: (?:Expected `[^`]*`(?:, got `\w*`)?|Object missing required field `\w*`)|it is not JSON"
)


def _describe_mismatch(feedback: str) -> str:
    """Where and how an answer differs, in parentheses; "" if that would quote the answer."""
    found = _MISMATCH.search(feedback)
    return "" if found is None else f" ({found[0]})"


# To check a schema, code is generated and compiled. That takes longer than all the rest of reading a reply.
@lru_cache(maxsize=64)
def _read_schema(document: bytes, is_bare: bool) -> OutputType[Any]:
    schema = msgspec.json.decode(document)
    return read_output_type(schema if is_bare else msgspec.convert(schema, OutputSchema))


def expect_output(
    source: Any, prompt: Prompt, target: Target
) -> tuple[Prompt, ExpectedOutput | None, tuple[Notice, ...]]:
    """Ask for an output: returns the prompt with its schema, the output to expect, and notices.

    A model that takes no schema gets it in its instructions. `source` is None for a prompt that has its own schema: it
    is sent as it is.
    """
    if source is None:
        return prompt, ExpectedOutput(prompt.output), ()
    if source is str:
        return prompt, None, ()
    built = build_schema(source)
    form = OutputType(built.schema, built.wrapped, _parse_later)
    prompt = msgspec.structs.replace(prompt, output=built.schema)
    strategy = choose_strategy(form, prompt, target)
    expected = ExpectedOutput(source)
    if strategy.kind != "native":
        return add_schema_instructions(prompt, form), expected, (INSTRUCTED,)
    if strategy.shapes_only and isinstance(built.schema, OutputSchema):
        simple = simplify_schema(built.schema.schema) or built.schema.schema
        prompt = msgspec.structs.replace(prompt, output=msgspec.structs.replace(built.schema, schema=simple))
    return prompt, expected, ()


def _parse_later(_: bytes) -> Any:
    raise AssertionError("the output is read with its own type")


# --- while it arrives -------------------------------------------------------------------------------------------------


class PartialOutput:
    """The output of a reply in progress. Events are collected as they arrive and parsed on demand, in linear time
    overall. Thinking is ignored.
    """

    def __init__(
        self, expected: ExpectedOutput, find_expected: Callable[[], ExpectedOutput | None] | None = None
    ) -> None:
        """`find_expected` returns how the current model answers: in a run, another model may have taken over."""
        self._expected = expected
        self._find_expected = find_expected
        self._is_wrapped = build_schema(expected.source).wrapped
        self._pieces: list[str] = []
        self._is_whole = False
        self._begin()

    def _begin(self) -> None:
        self._document: PartialJson | None = None
        self._call: int | None = None
        self._checked: list[Any] | None = None
        self._pieces.clear()

    def add(self, events: Iterable[Any]) -> None:
        """Add the next events of a reply or a run. Each step of a run starts over."""
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                if self._call is None:
                    self._pieces.append(event.text)
            elif kind is TextReclassified:
                if self._call is None:
                    self._begin()
            elif kind is ToolCallDelta:
                self._add_call(event)
            elif kind is StepStarted:
                self._begin()

    def _add_call(self, event: ToolCallDelta) -> None:
        strategy = ((self._find_expected and self._find_expected()) or self._expected).strategy
        if self._call is None and strategy.kind == "tool" and event.name == strategy.tool:
            self._begin()
            self._call = event.block
        if event.block == self._call:
            self._pieces.append(event.arguments)

    def show(self, whole: Reply | None = None) -> Any:
        """The value so far; None when there is none yet. It is JSON, not checked, until it is complete and fits: then
        it is a value of the type. A value that was shown does not change later.
        """
        if whole is not None:
            with suppress(Exception):  # it does not fit, or the caller's code failed
                return whole.output
            if not self._is_whole:
                self._begin()
                self.add(simulate(whole, max(len(whole.text), 1)))
                self._is_whole = True  # the caller may not have read all events
        self._feed()
        document = self._document
        if document is None:
            return None
        value = document.snapshot()
        if document.is_closed and self._checked is None:
            self._checked = [self._check(value)]
        return self._unwrap(value) if self._checked is None else self._checked[0]

    def _check(self, value: Any) -> Any:
        try:
            return self._expected.output_type.parse(msgspec.json.encode(value))
        except Exception:  # noqa: BLE001 - it does not fit; the type may run code of the caller
            return self._unwrap(value)

    def _unwrap(self, value: Any) -> Any:
        is_wrapper = self._is_wrapped and isinstance(value, dict) and value.keys() <= {WRAPPER_FIELD}
        return value.get(WRAPPER_FIELD) if is_wrapper else value

    def _feed(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._document is None:
            # A model that got the schema as instructions may write a fence, or some words, first.
            is_bare_list = self._is_wrapped and text.lstrip().startswith("[")
            start = text.find("[" if is_bare_list else "{")
            if start < 0:
                return
            self._document = PartialJson()
            text = text[start:]
        self._document.feed(text)
