"""Chat requests by hand for the tests of the rules: written as other programs write them, without asides' encoders."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from asides_stage import Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

USER: Wire = {"role": "user", "content": "look"}
SO: Wire = {"role": "user", "content": "so?"}
SAID: Wire = {"role": "assistant", "content": "so"}
TOOL: Wire = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
NAMED: Wire = {"type": "function", "function": {"name": "look"}}


def called(*ids: str, **fields: Any) -> Wire:
    """A turn with calls."""
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}} for name in ids]
    return {"role": "assistant", "tool_calls": calls, **fields}


def result(name: str) -> Wire:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": name, "content": "fine"}


def send(stage: Stage, path: str, body: Wire, key: str | None = None) -> Answer:
    """Send this body to a path of the stage."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    assert urlsplit(path).path == path
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body).encode(), headers)
        return Answer(connection.getresponse())
