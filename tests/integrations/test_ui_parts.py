"""Results of tools as values for a front end, which come back as the same text."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.events import (
    ToolCallDelta,
)
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.result import ToolFinished
from tests.integrations.front_ends import (
    make_run,
    read_vercel_message,
)

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ('{"sum":3}', {"sum": 3}),
        ("[1,2]", [1, 2]),
        ('{"sum": 3}', '{"sum": 3}'),  # its text could not be written again
        ('{"id":12345678901234567}', '{"id":12345678901234567}'),  # a browser would round it
        ("{broken", "{broken"),
        ("plain", "plain"),
        ("21", "21"),
        ([Text("see"), Image(data=PNG)], None),
    ],
)
def test_results_are_values_where_they_come_back_unchanged(content: Any, output: Any) -> None:
    call = ToolCall("c", "f")
    events = make_run(([ToolCallDelta(0, "c", "f", "{}")], [ToolFinished(call, ToolResult("c", content, "f"), 1)]))
    message = json.loads(json.dumps(read_vercel_message(asides.ui.vercel_chunks(events))))
    (part,) = [part for part in message["parts"] if "output" in part]
    if output is not None:
        assert part["output"] == output
    (result,) = asides.ui.read_vercel([message])[-1].parts
    assert isinstance(result, ToolResult)
    assert result == ToolResult("c", content, "f")
