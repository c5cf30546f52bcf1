"""Parses the answer of a reply, never its thinking: `parse_output(reply, output_type, strategy)`. Pure.

Parsing is strict first; then a lone code fence, or text around exactly one JSON value, is accepted.

If the model calls the final tool together with other tools, the others run first and the answer is postponed: the model
did not have their results. See `find_pending_calls` and `postpone_answer`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from asides.agents.outputs.output_type import OutputMismatch, OutputType
from asides.agents.outputs.strategy import Strategy, encode_schema
from asides.values.errors import AnswerInThinking, NoAnswer
from asides.values.messages import Message
from asides.values.parts import ToolCall, ToolResult
from asides.values.reply import Reply

T = TypeVar("T")

_STRUCTURE = re.compile(r'["{}\[\]\\]')
# Only the last JSON values of a thought are tried, since an answer would be at its end.
_MAX_DRAFTS = 8
_MAX_STRAY = 8


class ParsedOutput(msgspec.Struct, Generic[T], frozen=True):
    """An answer that fits its type."""

    value: T
    results: tuple[ToolResult, ...] = ()
    """Results for the calls that carried the answer, so that the conversation can continue."""

    @property
    def message(self) -> Message | None:
        """The results as a message; None when there are none."""
        return Message("tool", self.results) if self.results else None


def find_pending_calls(reply: Reply, strategy: Strategy) -> tuple[ToolCall, ...]:
    """The calls that must run before an answer is accepted: all but those of the final tool."""
    return tuple(call for call in reply.tool_calls if not _is_final(call, strategy))


def postpone_answer(reply: Reply, strategy: Strategy) -> tuple[ToolResult, ...]:
    """Build error results for calls of the final tool that came together with other calls."""
    text = (
        f"Not taken: other tools were called with it. Call {strategy.tool} again, alone, when you have their results."
    )
    return tuple(
        ToolResult(call.id, text, call.name, is_error=True) for call in reply.tool_calls if _is_final(call, strategy)
    )


def parse_output(reply: Reply, output_type: OutputType[T], strategy: Strategy) -> ParsedOutput[T]:
    """Parse the answer of a reply without pending calls.

    Raises OutputMismatch when the model may be asked again. Raises NoAnswer, with the reply, when asking again would
    not help: the reply was refused, filtered or cut off, or only the thinking has the answer (AnswerInThinking).
    """
    if reply.outcome in ("refused", "filtered"):
        reply.require_answer()
    final = [call for call in reply.tool_calls if _is_final(call, strategy)]
    try:
        if final:
            return _parse_calls(final, output_type)
        if not reply.text.strip():
            _reject_blank(reply, output_type)
        return ParsedOutput(_parse_text(reply.text, output_type))
    except OutputMismatch:
        if reply.stop.reason == "length":
            model = reply.model or "the model"
            raise NoAnswer(
                f"{model} was cut off inside its answer, which is not complete. Raise max_tokens.", reply
            ) from None
        raise


def _is_final(call: ToolCall, strategy: Strategy) -> bool:
    return strategy.kind == "tool" and call.name == strategy.tool


def _parse_calls(calls: list[ToolCall], output_type: OutputType[T]) -> ParsedOutput[T]:
    """Parse the first call that fits. All of them get a result, since every call needs one."""
    problem: OutputMismatch | None = None
    for call in calls:
        raw = call.raw_arguments
        arguments: str | bytes = msgspec.json.encode(call.arguments) if raw is None or call.arguments else raw
        try:
            value = output_type.parse(arguments)
        except OutputMismatch as found:
            problem = problem or found
        else:
            return ParsedOutput(value, tuple(ToolResult(each.id, "ok", each.name) for each in calls))
    feedback = (
        f"The arguments do not fit.\n{problem.feedback if problem else ''}\nCall {calls[0].name} again, corrected."
    )
    results = tuple(ToolResult(call.id, feedback, call.name, is_error=True) for call in calls)
    raise OutputMismatch(feedback, results=results)


def _reject_blank(reply: Reply, output_type: OutputType[Any]) -> NoReturn:
    if _has_answer(reply.thinking.text, output_type):
        advice = "Raise max_tokens" if reply.outcome == "starved" else "Ask again, or ask for less thinking"
        raise AnswerInThinking(
            f"{reply.model or 'the model'} gave no answer. Its thinking has one, but answers are not taken "
            f"from there. {advice}.",
            reply,
        )
    if reply.outcome == "starved":
        reply.require_answer()
    raise OutputMismatch(_ask_again("You gave no answer.", output_type))


def _has_answer(thought: str, output_type: OutputType[Any]) -> bool:
    for draft in list(_find_values(thought))[-_MAX_DRAFTS:]:
        try:
            output_type.parse(draft)
        except OutputMismatch:
            continue
        return True
    return False


def _parse_text(text: str, output_type: OutputType[T]) -> T:
    bare = text.strip()
    try:
        return output_type.parse(bare)
    except OutputMismatch as found:
        problem = found
    if not _is_json(bare):
        fenced = [inner for inner in _find_fenced(bare) if _is_json(inner)]
        values = fenced if len(fenced) == 1 else [value for value in _find_values(bare) if _is_json(value)]
        if len(values) == 1:
            try:
                return output_type.parse(values[0])
            except OutputMismatch as found:
                problem = found
        elif values:
            feedback = f"Your answer has {len(values)} JSON values; it must be one."
            raise OutputMismatch(_ask_again(feedback, output_type))
    raise OutputMismatch(_ask_again(f"Your answer does not fit.\n{problem.feedback}", output_type))


def _ask_again(problem: str, output_type: OutputType[Any]) -> str:
    return (
        f"{problem}\nAnswer again, with one JSON value and nothing else. It must fit this JSON schema:\n"
        f"{encode_schema(output_type)}"
    )


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _find_fenced(text: str) -> Iterator[str]:
    """Yield the texts between two lines that begin with a fence, like code in Markdown."""
    inside: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("```"):
            if inside is not None:
                yield "".join(inside)
            inside = [] if inside is None else None
        elif inside is not None:
            inside.append(line)


def _find_values(text: str) -> Iterator[str]:
    """Yield the outermost bracketed texts in order; they may not be JSON. Takes linear time."""
    start = 0
    for _ in range(_MAX_STRAY):
        left_open = yield from _find_balanced(text, start)
        if left_open is None:
            return
        start = left_open + 1  # a bracket in prose that is never closed


def _find_balanced(text: str, start: int) -> Generator[str, None, int | None]:
    """Yield the bracketed texts from `start` on. Returns the place of a bracket that is never closed."""
    opened_at = depth = 0
    in_string = False
    escaped = -1
    for found in _STRUCTURE.finditer(text, start):
        mark, at = found[0], found.start()
        if at == escaped or (mark == "\\" and not in_string):
            continue
        if in_string:
            if mark == "\\":
                escaped = at + 1
            elif mark == '"':
                in_string = False
        elif mark == '"':
            in_string = depth > 0
        elif mark in "{[":
            if depth == 0:
                opened_at = at
            depth += 1
        elif depth and mark in "}]":
            depth -= 1
            if depth == 0:
                yield text[opened_at : at + 1]
    return opened_at if depth else None
