"""Requests that real clients sent, as they were captured: the stage refuses only what a real server would.

The folder is not part of the project. Every long text in it is replaced by its length.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from asides_stage import OpenStage
from tests.testing.stage.http_client import Answer, connected

FOLDER = Path(os.environ.get("ASIDES_CLIENTS") or Path(__file__).parents[3] / "shared" / "reference" / "clients")
PATHS = re.compile(r"/(?:$|v1/(?:messages|models|chat/completions|responses))")
# Seals of another server; and what these clients send knowing, or not knowing, that it is refused.
RIGHTLY_REFUSED = re.compile(
    r"Invalid `signature` in `thinking` block"
    r"|The encrypted content for item \S+ could not be verified"
    r"|threads are not supported here"
    r"|thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    r"|/v1/responses takes POST, not GET"
    r"|unknown variant `developer`"  # captured before another server; DeepSeek takes no such role
)
NOT_SENT = ("content-length", "host", "connection", "accept-encoding", "transfer-encoding")


def list_captured() -> list[Any]:
    found = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*/*.json"))]
    return [
        pytest.param(captured, id=f"{path.parent.name}/{path.stem}")
        for path, captured in found
        if PATHS.match(captured["path"])
    ]


pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder of captured requests beside this checkout"),
]


@pytest.mark.parametrize("captured", list_captured())
def test_what_real_clients_send_is_accepted(stage: OpenStage, captured: dict[str, Any]) -> None:
    body = captured.get("body")
    headers = {name: value for name, value in captured["headers"].items() if name.lower() not in NOT_SENT}
    with connected(stage()) as connection:
        connection.request(captured["method"], captured["path"], None if body is None else json.dumps(body), headers)
        answer = Answer(connection.getresponse())
    if answer.status != 200:
        assert RIGHTLY_REFUSED.search(answer.json["error"]["message"]), answer.body
