"""Calls and results in tags, as Hermes and Qwen write them: `<tool_call>` with JSON, and `<tool_response>`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from asides.datasets.formats.turns import CallNumbers, FormatError, make_call
from asides.values.parts import Part, Text, ToolResult

CALL = re.compile(r"\n?<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>\n?", re.DOTALL)
TOOL_TAGS = ("<tool_call>", "<tool_response>")


def write_call(name: str, arguments: object) -> str:
    """Write a call."""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def write_result(text: str) -> str:
    """Write a result."""
    return f"<tool_response>\n{text}\n</tool_response>"


def read_said(content: str, numbers: CallNumbers, split: Callable[[str], list[Part]]) -> Iterator[Part]:
    """What a model says, with its calls; `split` reads the text before them. Raises FormatError."""
    place = 0
    for found in CALL.finditer(content):
        yield from _read_text(content, place, found.start(), split)
        place = found.end()
        try:
            call = json.loads(found[1])
        except ValueError:
            raise FormatError("a call is not JSON") from None
        name = call.get("name")
        yield make_call(name, call.get("arguments", {}), numbers.add(str(name)))
    yield from _read_text(content, place, len(content), split)


def _read_text(content: str, start: int, end: int, split: Callable[[str], list[Part]]) -> list[Part]:
    text = content[start:end]
    if not start:
        return split(text)
    return [Text(text)] if text.strip() else []


def leave_tags(said: str) -> list[Part]:
    """The text as one part, with its tags."""
    return [Text(said)] if said else []


def read_results(content: str, numbers: CallNumbers) -> tuple[ToolResult, ...]:
    """The results in a text that has nothing else; () for other texts. Raises FormatError."""
    results = _RESULT.findall(content)
    if not results or _RESULT.sub("", content).strip():
        return ()
    return tuple(ToolResult(numbers.take(), each) for each in results)
