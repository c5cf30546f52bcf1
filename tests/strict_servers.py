"""Servers on loopback that refuse what a function says, in a provider's own words, and answer everything else."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from asides.values.messages import Message
from asides.values.reply import Reply
from tests.loopback import ReceivedRequest, Server, serving, whole_response

Body: TypeAlias = dict[str, Any]
Refuse: TypeAlias = "Callable[[Body], Any]"
"""Returns the error to answer with: a body, or a status and a body; None accepts."""


def anthropic_error(message: str, **more: Any) -> Body:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message, **more}}


def openai_error(message: str, param: str | None = None, code: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def google_error(message: str) -> Body:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def openrouter_error(inner: Any, provider: str = "Anthropic") -> Body:
    raw = inner if isinstance(inner, str) else json.dumps(inner)
    return {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": raw, "provider_name": provider},
        }
    }


def message_of(reply: Reply) -> Message:
    """The message of a reply that has one."""
    message = reply.to_message()
    assert message is not None
    return message


class Strict:
    """A server with the requests that it got, as JSON."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url
        self.base = server.url.removesuffix("/v1")

    @property
    def bodies(self) -> list[Body]:
        return [json.loads(heard.body) for heard in self._server.heard]

    @property
    def paths(self) -> list[str]:
        return [heard.line.split(" ")[1] for heard in self._server.heard]

    def count(self) -> int:
        return len(self._server.heard)


@contextmanager
def refusing(refuse: Refuse) -> Generator[Strict, None, None]:
    """Serve every dialect by its path."""
    numbers = iter(range(1, 10_000))

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        body = json.loads(request.body)
        refusal = refuse(body)
        if refusal is None:
            connection.sendall(_answer(request.line.split(" ")[1], body, next(numbers)))
            return True
        status, said = refusal if isinstance(refusal, tuple) else (400, refusal)
        data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        connection.sendall(whole_response(data, status=f"{status} Refused", retry_after="0"))
        return True

    with serving(answer) as server:
        yield Strict(server)


def _answer(path: str, body: Body, number: int) -> bytes:
    if "/messages" in path:
        said: Any = _anthropic(number)
    elif "/responses" in path:
        said = _responses(number)
    elif ":generateContent" in path:
        said = _gemini(number)
    elif "/converse" in path:
        said = _bedrock(number)
    elif "/api/chat" in path:
        said = {
            "model": "m",
            "message": {"role": "assistant", "content": "42", "thinking": f"hm {number}"},
            "done": True,
            "done_reason": "stop",
        }
    else:
        said = _chat(number)
        if body.get("stream"):
            return _chat_stream(number)
    return whole_response(json.dumps(said).encode())


def _anthropic(number: int) -> Body:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": f"hm {number}", "signature": f"sig-{number}"},
            {"type": "text", "text": "42"},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _responses(number: int) -> Body:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gAAA{number}secret"},
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "42", "annotations": []}],
            },
        ],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }


def _gemini(number: int) -> Body:
    part = {"text": "42", "thoughtSignature": f"c2ln{number}"}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


def _bedrock(number: int) -> Body:
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": f"sig-{number}"}}}
    return {
        "output": {"message": {"role": "assistant", "content": [thought, {"text": "42"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    }


def _chat(number: int) -> Body:
    message = {"role": "assistant", "content": "42", "reasoning_content": f"hm {number}"}
    return {"id": f"c{number}", "object": "chat.completion", "choices": [_choice(message=message)]}


def _choice(**fields: Any) -> Body:
    return {"index": 0, "finish_reason": "stop", **fields}


def _chat_stream(number: int) -> bytes:
    delta = {"role": "assistant", "reasoning_content": f"hm {number}", "content": "42"}
    chunk = {"id": f"c{number}", "object": "chat.completion.chunk", "choices": [_choice(delta=delta)]}
    return whole_response(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
