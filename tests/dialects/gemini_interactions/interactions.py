"""Interactions and their streams for the tests of this dialect, and the recordings of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asides.dialects import find_dialect
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.messages import Prompt, user
from asides.values.notices import Notice
from asides.values.reply import Reply
from tests.decoding import sse

Wire = dict[str, Any]

DIALECT = find_dialect("gemini_interactions")
ROW = find_provider("google-interactions")
FLASH = "gemini-3-flash-preview"
RECORDED = Path(__file__).parents[4] / "shared" / "recordings" / "interactions"
THOUGHT: Wire = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]}
ANSWER: Wire = {"type": "model_output", "content": [{"type": "text", "text": "42"}]}
CALL: Wire = {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "sea"}}
RESULT: Wire = {"type": "function_result", "call_id": "c1", "result": "blue"}
GO: Wire = {"type": "user_input", "content": [{"type": "text", "text": "go"}]}


def target(model: str = FLASH) -> Target:
    return Target(ROW, model, ROW.base_url, ROW.rule(model))


def whole(*steps: Wire, status: str = "completed", **beside: Any) -> bytes:
    fields = {"id": "v1_1", "object": "interaction", "model": FLASH, "status": status, "steps": list(steps), **beside}
    return json.dumps(fields).encode()


def stream(*events: Wire, status: str | None = "completed", **beside: Any) -> bytes:
    named: Wire = {"id": "v1_1", "object": "interaction", "model": FLASH}
    created = {"event_type": "interaction.created", "interaction": {**named, "status": "in_progress"}}
    ended = {"event_type": "interaction.completed", "interaction": {**named, "status": status, **beside}}
    return sse(created, *events, *([ended] if status else []), done=status is not None)


def start(index: int, step: Wire) -> Wire:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, **fields: Any) -> Wire:
    return {"event_type": "step.delta", "index": index, "delta": fields}


def end(index: int) -> Wire:
    return {"event_type": "step.stop", "index": index}


def send_back(reply: Reply) -> list[Any]:
    """The steps of a reply in the next request."""
    message = reply.to_message()
    assert message is not None
    return list(encode(Prompt((user("?"), message, user("so?"))))[0]["input"][1:-1])


def encode(prompt: Prompt, model: str = FLASH) -> tuple[Wire, list[Notice]]:
    request, notices = DIALECT.encode(prompt, target(model))
    return json.loads(request.body), list(notices)
