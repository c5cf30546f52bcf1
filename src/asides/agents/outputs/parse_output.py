"""The answer, read from a reply: `read(reply, wanted, way) → Taken`. Never from the thinking. Pure.

Strictly first; then a lone code fence, or words around exactly one JSON value, are forgiven. Not here: whether the
model is asked again (flows).

A call of the final tool beside calls of others: the others are run first. The model made its answer without their
results, so it is told to call again when it has seen them. See `pending` and `postponed`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from asides.agents.outputs.apply_strategy import schema_text
from asides.agents.outputs.misfit import Misfit
from asides.agents.outputs.output_type import Wanted
from asides.agents.outputs.strategy import Way
from asides.values.errors import AnswerInThinking, NoAnswer
from asides.values.messages import Message, ToolCall, ToolResult
from asides.values.reply import Reply

T = TypeVar("T")

_STRUCTURE = re.compile(r'["{}\[\]\\]')
# How many drafts of a thought are looked at: the last ones, where an answer would stand.
_MOST_DRAFTS = 8
_MOST_STRAY = 8


class Taken(msgspec.Struct, Generic[T], frozen=True):
    """An answer that fits."""

    value: T
    results: tuple[ToolResult, ...] = ()
    """What the call is answered with that brought it, so that the conversation can go on."""

    @property
    def message(self) -> Message | None:
        """The results as a message; None where there are none."""
        return Message("tool", self.results) if self.results else None


def pending(reply: Reply, way: Way) -> tuple[ToolCall, ...]:
    """The calls that have to be run before the answer counts: all but those of the final tool."""
    return tuple(call for call in reply.tool_calls if not _is_final(call, way))


def postponed(reply: Reply, way: Way) -> tuple[ToolResult, ...]:
    """Results for calls of the final tool that came beside others: not taken yet."""
    words = f"Not taken: other tools were called beside it. Call {way.tool} again, alone, when you have their results."
    return tuple(
        ToolResult(call.id, words, call.name, is_error=True) for call in reply.tool_calls if _is_final(call, way)
    )


def read(reply: Reply, wanted: Wanted[T], way: Way) -> Taken[T]:
    """The answer of a reply that leaves no calls to be run (`pending`).

    Raises Misfit where the model may be asked again; NoAnswer, with the reply, where that would not help: it was
    refused, filtered or cut off, or what was wanted stands in the thinking only (AnswerInThinking), from where it is
    not taken.
    """
    if reply.outcome in ("refused", "filtered"):
        reply.require_answer()
    final = [call for call in reply.tool_calls if _is_final(call, way)]
    try:
        if final:
            return _from_calls(final, wanted)
        if not reply.text.strip():
            _blank(reply, wanted)
        return Taken(_from_text(reply.text, wanted))
    except Misfit:
        if reply.stop.reason == "length":
            who = reply.model or "the model"
            raise NoAnswer(
                f"{who} was cut off inside its answer, which does not have its form so. To do: raise max_tokens.", reply
            ) from None
        raise


def _is_final(call: ToolCall, way: Way) -> bool:
    return way.kind == "tool" and call.name == way.tool


def _from_calls(calls: list[ToolCall], wanted: Wanted[T]) -> Taken[T]:
    """The first call that fits. All of them get a result, since every call needs one."""
    problem: Misfit | None = None
    for call in calls:
        raw = call.raw_arguments
        arguments: str | bytes = msgspec.json.encode(call.arguments) if raw is None or call.arguments else raw
        try:
            value = wanted.parse(arguments)
        except Misfit as found:
            problem = problem or found
        else:
            return Taken(value, tuple(ToolResult(each.id, "ok", each.name) for each in calls))
    words = f"The arguments do not fit.\n{problem.words if problem else ''}\nCall {calls[0].name} again, corrected."
    raise Misfit(words, results=tuple(ToolResult(call.id, words, call.name, is_error=True) for call in calls))


def _blank(reply: Reply, wanted: Wanted[Any]) -> NoReturn:
    thought = reply.thinking
    if thought is not None and _holds(thought.text, wanted):
        advice = "raise max_tokens" if reply.outcome == "starved" else "ask again, or ask for less thinking"
        raise AnswerInThinking(
            f"{reply.model or 'the model'} gave no answer; what was asked for stands in its thinking, and is not taken "
            f"from there. To do: {advice}.",
            reply,
        )
    if reply.outcome == "starved":
        reply.require_answer()
    raise Misfit(_again("You gave no answer.", wanted))


def _holds(thought: str, wanted: Wanted[Any]) -> bool:
    for draft in list(_values(thought))[-_MOST_DRAFTS:]:
        try:
            wanted.parse(draft)
        except Misfit:
            continue
        return True
    return False


def _from_text(text: str, wanted: Wanted[T]) -> T:
    bare = text.strip()
    try:
        return wanted.parse(bare)
    except Misfit as found:
        problem = found
    if not _is_json(bare):
        fenced = [inner for inner in _fenced(bare) if _is_json(inner)]
        values = fenced if len(fenced) == 1 else [value for value in _values(bare) if _is_json(value)]
        if len(values) == 1:
            try:
                return wanted.parse(values[0])
            except Misfit as found:
                problem = found
        elif values:
            raise Misfit(_again(f"Your answer has {len(values)} JSON values; it must be one.", wanted))
    raise Misfit(_again(f"Your answer does not fit.\n{problem.words}", wanted))


def _again(problem: str, wanted: Wanted[Any]) -> str:
    return (
        f"{problem}\nAnswer again, with one JSON value and nothing else. It must fit this JSON schema:\n"
        f"{schema_text(wanted)}"
    )


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _fenced(text: str) -> Iterator[str]:
    """What stands between two lines that begin with a fence, as code does in Markdown."""
    inside: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("```"):
            if inside is not None:
                yield "".join(inside)
            inside = [] if inside is None else None
        elif inside is not None:
            inside.append(line)


def _values(text: str) -> Iterator[str]:
    """The objects and lists in a text, outermost ones, in order; whether they are JSON is not said. Linear."""
    start = 0
    for _ in range(_MOST_STRAY):
        left_open = yield from _balanced(text, start)
        if left_open is None:
            return
        start = left_open + 1  # a bracket of the prose, that nobody closes


def _balanced(text: str, start: int) -> Generator[str, None, int | None]:
    """What stands between brackets, from `start` on; returns where one was opened that is never closed."""
    begun = depth = 0
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
                begun = at
            depth += 1
        elif depth and mark in "}]":
            depth -= 1
            if depth == 0:
                yield text[begun : at + 1]
    return begun if depth else None
