"""The dialect at two clouds, over real sockets: their addresses, frames and keys."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

import asides
from asides.wire.aws_frames import write_frame
from tests.decoding import sse
from tests.dialects.anthropic.messages import end, start, text, thinking, whole
from tests.loopback import saying, serving, whole_response

DOCUMENTS = [start(), *thinking(0, "a ", "plan", signature="EqQB=="), *text(1, "42"), *end()]
BEDROCK = "bedrock-anthropic:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "vertex-anthropic:claude-sonnet-4-5@20250929"


def framed(documents: list[dict[str, Any]]) -> bytes:
    """Events as one cloud sends them: each in a frame, in base64, in an object."""
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    payloads = [json.dumps({"bytes": b64encode(json.dumps(document).encode()).decode()}) for document in documents]
    return b"".join(write_frame(headers, payload.encode()) for payload in payloads)


@pytest.mark.parametrize(
    ("model", "path", "body", "content_type"),
    [
        (
            BEDROCK,
            "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
            framed(DOCUMENTS),
            "application/vnd.amazon.eventstream",
        ),
        (
            VERTEX,
            "/models/claude-sonnet-4-5@20250929:streamRawPredict",
            sse(*DOCUMENTS, done=False),
            "text/event-stream",
        ),
    ],
)
def test_a_stream_over_a_cloud_is_the_same_reply(model: str, path: str, body: bytes, content_type: str) -> None:
    with serving(saying(whole_response(body, content_type))) as server:
        root = server.url.removesuffix("/v1")
        base_url = f"{root}/models" if model == VERTEX else root
        with asides.stream(model, "?", base_url=base_url, api_key="token-1", thinking=2000) as events:
            thinking = [event.text for event in events if isinstance(event, asides.ThinkingDelta)]
            reply = events.reply
        heard = server.heard[0]
    assert heard.line.split()[:2] == ["POST", path]
    assert heard.headers["authorization"] == "Bearer token-1"
    assert thinking == ["a ", "plan"]
    assert (reply.text, [seal.value for seal in reply.seals]) == ("42", ["EqQB=="])
    assert json.loads(heard.body)["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_a_whole_reply_over_a_cloud() -> None:
    body = whole({"type": "thinking", "thinking": "p", "signature": "s"}, {"type": "text", "text": "42"})
    with serving(saying(whole_response(body))) as server:
        reply = asides.ask(BEDROCK, "?", base_url=server.url.removesuffix("/v1"), api_key="token-1", stream=False)
        assert server.heard[0].line.split()[1].endswith("/invoke")
    assert (reply.text, len(reply.seals)) == ("42", 1)


def test_an_exception_in_a_frame_is_the_error_that_it_says() -> None:
    headers = {":message-type": "exception", ":exception-type": "throttlingException"}
    body = framed(DOCUMENTS[:3]) + write_frame(headers, b'{"message":"Too many requests"}')
    with (
        serving(saying(whole_response(body, "application/vnd.amazon.eventstream"))) as server,
        pytest.raises(asides.RateLimited, match="Too many requests") as caught,
    ):
        asides.ask(BEDROCK, "?", base_url=server.url.removesuffix("/v1"), api_key="token-1", retries=0, stream=True)
    assert caught.value.partial is not None
    assert caught.value.partial.thinking
    assert caught.value.partial.thinking.text == "a "
