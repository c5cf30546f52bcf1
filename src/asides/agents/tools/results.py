"""What the model is told of a call: a value in words, JSON or pictures, or what went wrong, in words it can use.

Not here: what goes wrong for the caller (errors), and when a call is run (flows).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

import msgspec

from asides.agents.tools.parameters import spell_custom
from asides.agents.tools.runnable import BadArguments, JobOutcome, Raised, Returned, TimedOut
from asides.values.errors import redact_keys
from asides.values.messages import File, Image, Message, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.result import Result

NOTHING = "Done; there is nothing to report."
"""What the model reads where a function gave None."""

_LONGEST = 1000
_MOST_NAMES = 40
_MOST_INNER = 3


def build_result(call: ToolCall, outcome: JobOutcome) -> ToolResult:
    """What the model is told of a call that was run. Never raises, and says nothing of where in the code it failed."""
    match outcome:
        case Returned(value=value):
            return _returned(call, value)
        case Raised(error=BadArguments() as error):
            return _failed(call, str(error))
        case Raised(error=error):
            return _failed(call, _words(error))
        case TimedOut(seconds=seconds):
            after = f" after {seconds:g} s" if seconds else ""
            return _failed(call, f"{call.name} was given up{after}: it took too long. To do: ask for less of it.")


def deny_call(call: ToolCall, reason: str = "") -> ToolResult:
    """What the model is told of a call that may not be run."""
    why = f": {redact_keys(reason.strip().rstrip('.'))}" if reason.strip() else ""
    return _failed(call, f"The call of {call.name} was not allowed{why}. To do: go on without it.")


def reject_unknown_tool(call: ToolCall, names: Iterable[str]) -> ToolResult:
    """What the model is told of a call for a tool that there is not, with the nearest of those that there are."""
    from difflib import get_close_matches

    known = sorted(names)
    told = f"There is no tool named {call.name[:80]!r}."
    if close := get_close_matches(call.name, known, n=3):
        told += f" Did you mean {' or '.join(close)}?"
    elif known:
        told += f" There are {', '.join(known[:_MOST_NAMES])}{' and more' if len(known) > _MOST_NAMES else ''}."
    else:
        told += " There are none. To do: answer without one."
    return _failed(call, told)


def _failed(call: ToolCall, words: str) -> ToolResult:
    return ToolResult(call.id, _plain(words), call.name, is_error=True)


def _plain(text: str) -> str:
    """The text as every request can carry it: no subclass, and no half characters, as names of files can have.

    A result that cannot be sent would end not only the run: no conversation with it in it could be sent any more.
    """
    plain = str.__str__(text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode(errors="replace").decode()
    return plain


def _words(error: BaseException) -> str:
    """The kind of an error and what it says; of a group, those of the first few in it."""
    if isinstance(error, BaseExceptionGroup):
        inner = [_words(each) for each in error.exceptions[:_MOST_INNER]]
        return "; ".join(inner)[:_LONGEST]
    try:
        said = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception's own words may be made by any code
        said = ""
    name = type(error).__name__
    # Redacted before it is cut: half a key does not look like one.
    text = redact_keys(f"{name}: {said}" if said else f"{name}, without a reason.")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _returned(call: ToolCall, value: Any) -> ToolResult:
    match value:
        case ToolResult(content=content):
            # Made as any other, since nobody has checked what is in it.
            told = _returned(call, "" if content == () else content)
            return msgspec.structs.replace(
                told, name=value.name or call.name, is_error=value.is_error or told.is_error, cache=value.cache
            )
        case Result():
            return _returned(call, value.output)
        case bytes() | bytearray() | memoryview():
            return _unspeakable(call, value, "return asides.Image(data=…) or asides.File(data=…)")
        case Awaitable():
            if callable(close := getattr(value, "close", None)):
                close()  # or Python complains, at some other time, that nobody awaited it
            return _unspeakable(call, value, "make the function async")
        case _:
            pass
    try:
        return ToolResult(call.id, _content(value), call.name)
    except Exception:  # noqa: BLE001 - a value may bring code of its own that says how it is written
        return _unspeakable(call, value, "return text, or what JSON can carry")


def _content(value: Any) -> str | tuple[Text | Image | File, ...]:
    match value:
        case str():
            return _plain(value)
        case None:
            return NOTHING
        case Text() | Image() | File():
            return _parts((value,)) or ()
        case Reply() | Message():
            return _plain(value.text)  # another model's answer, without its thinking and its seals
        case list() | tuple() if (parts := _parts(value)) is not None:
            return parts
        case _:
            return _json(value)


def _parts(values: list[Any] | tuple[Any, ...]) -> tuple[Text | Image | File, ...] | None:
    """A list with parts in it as parts, the rest of it in words; None for any other list."""
    if not any(isinstance(value, (Text, Image, File)) for value in values):
        return None
    return tuple(_part(value) for value in values)


def _part(value: Any) -> Text | Image | File:
    match value:
        case Text():
            return msgspec.structs.replace(value, text=_plain(value.text))
        case Image() | File():
            return value
        case str():
            return Text(_plain(value))
        case _:
            return Text(_json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=spell_custom).decode()


def _unspeakable(call: ToolCall, value: Any, advice: str) -> ToolResult:
    kind = type(value).__name__
    return _failed(call, f"{call.name} ran, and what it gave ({kind}) cannot be told. For its author: {advice}.")
