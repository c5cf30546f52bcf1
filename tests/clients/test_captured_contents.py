"""Captured requests of real clients are read and accepted: Gemini CLI, opencode, pi, Google's SDK, Vercel's on Bedrock.

The captures are not part of this project. They are read where a folder of them lies beside the checkout, or where
ASIDES_CLIENTS names one.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.values.messages import OutputSchema
from asides.values.parts import ToolResult
from asides_stage import Say
from asides_stage.stage.http_requests import Request
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.request_router import Routes

FOLDER = Path(os.environ.get("ASIDES_CLIENTS") or Path(__file__).parents[3] / "shared" / "reference" / "clients")
DIALECTS = (
    (re.compile(r":(?:stream)?[gG]enerateContent$"), "gemini"),
    (re.compile(r"/converse(?:-stream)?$"), "bedrock"),
)
SIGNATURE = re.compile(r'("thoughtSignature": )"[^"]*"')

Wire = dict[str, Any]


def find_name(path: str) -> str | None:
    return next((name for pattern, name in DIALECTS if pattern.search(path)), None)


def load(file: Path) -> Wire:
    captured: Wire = json.loads(file.read_text())
    captured["path"], _, captured["query"] = captured["path"].partition("?")
    return captured


CAPTURES = [file for file in sorted(FOLDER.glob("*/*.json")) if find_name(load(file)["path"]) is not None]

pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not CAPTURES, reason="no folder of captured requests beside this checkout"),
]


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: f"{file.parent.name}/{file.name[:2]}")
def test_a_captured_request_is_read_whole(file: Path) -> None:
    captured = load(file)
    body: Wire = captured["body"]
    name = find_name(captured["path"])
    assert name is not None
    served = find_dialect(name).read(json.dumps(body).encode(), captured["path"])
    prompt = served.prompt
    assert served.stream == ("stream" in captured["path"].lower())
    declared = [function for tool in body.get("tools", ()) for function in tool["functionDeclarations"]]
    declared += [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", ())]
    assert [tool.name for tool in prompt.tools] == [function["name"] for function in declared]
    assert all(tool.parameters["type"] == "object" for tool in prompt.tools)
    calls = [call.id for message in prompt.messages for call in message.tool_calls]
    results = [part.call_id for message in prompt.messages for part in message.parts if isinstance(part, ToolResult)]
    assert results == calls
    assert len(set(calls)) == len(calls)
    if "includeThoughts" in json.dumps(body) or "budget_tokens" in json.dumps(body):
        assert prompt.thinking.show != "none"
        assert prompt.thinking.effort is not None or prompt.thinking.budget is not None
    if isinstance(prompt.output, OutputSchema):
        assert not re.search(r'"type": "[A-Z]', json.dumps(prompt.output.schema))


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: f"{file.parent.name}/{file.name[:2]}")
def test_a_captured_request_is_accepted(file: Path) -> None:
    """The signatures are those of another server: for Gemini the placeholder stands in, for Bedrock thoughts go, and
    with them the budget, which demands them."""
    captured = load(file)
    body: Wire = captured["body"]
    if find_name(captured["path"]) == "bedrock":
        for message in body["messages"]:
            message["content"] = [block for block in message["content"] if "reasoningContent" not in block]
        body.get("additionalModelRequestFields", {}).pop("thinking", None)
    text = SIGNATURE.sub(r'\1"skip_thought_signature_validator"', json.dumps(body))
    log = RequestLog()
    routes = Routes(lambda _: Say("fine"), log, key=None, models=("m",))
    headers = {name.lower(): value for name, value in captured["headers"].items()}
    plan = routes.answer(Request("POST", captured["path"], captured["query"], headers, text.encode()))
    assert (plan.status, log.requests[0].problem) == (200, None)
