"""Servers in costumes: each thinks, streams, refuses and counts in its own way, with wire code of its own. Not a test.

Nothing here uses the dialects of asides: what a costume sends is written out as such servers send it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.loopback import ReceivedRequest, Server, serving

THOUGHT = "The user wants a sum. 47 and 85 make 132."
ANSWER = "47 + 85 = 132"
Body = dict[str, Any]


class Refusal(Exception):
    """An error that a costume answers with."""

    def __init__(self, status: int, document: Any) -> None:
        super().__init__(status)
        self.status, self.document = status, document


class Costume(NamedTuple):
    """How a server behaves. `check` raises Refusal; `thinks` says whether this request makes it think."""

    name: str
    answer: Callable[[Costume, str, Body], tuple[str, bytes]]
    """The content type and the body of a reply to a request at this path."""
    path: str = "/v1/chat/completions"
    models: Any = None
    """The list of models; None: there is none."""
    list_path: str = "/v1/models"
    thinks: Callable[[Body], bool] = lambda _: True
    check: Callable[[Body], None] = lambda _: None
    key_header: str | None = None


def refuse(status: int, message: str, **more: Any) -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": "invalid_request_error", **more}})


# --- chat completions -------------------------------------------------------------------------------------------------


def make_chat(
    place: Callable[[str, str], Body],
    *,
    pieces: Callable[[Body], list[Body]] | None = None,
    usage: Body | None = None,
    calls_tools: bool = True,
) -> Callable[[Costume, str, Body], tuple[str, bytes]]:
    """Replies of chat completions. `place` puts the thinking and the answer into a message; `pieces` cuts one."""

    def answer(costume: Costume, _path: str, body: Body) -> tuple[str, bytes]:
        thought = THOUGHT if costume.thinks(body) else ""
        last = body["messages"][-1]
        wants_tool = calls_tools and bool(body.get("tools")) and last["role"] == "user"
        message = place(thought, "" if wants_tool else ANSWER)
        reason = "stop"
        if wants_tool:
            call = {"name": "get_weather", "arguments": '{"location": "Paris"}'}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
            reason = "tool_calls"
        counts = usage or {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": reason}
            document = {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": counts}
            return "application/json", json.dumps(document).encode()
        deltas = [{"role": "assistant"}, *(pieces or cut)(message)]
        choices: list[list[Body]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        choices.append([{"index": 0, "delta": {}, "finish_reason": reason}])
        chunks: list[Body] = [
            {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choice} for choice in choices
        ]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": counts})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return "text/event-stream", ("".join(lines) + "data: [DONE]\n\n").encode()

    return answer


def cut(message: Body) -> list[Body]:
    """The message in pieces of seven characters, field by field, thinking first."""
    deltas: list[Body] = []
    for name in sorted(message, key=lambda field: field == "content"):
        value = message[name]
        if name == "tool_calls":
            deltas.append({name: [{"index": place, **call} for place, call in enumerate(value)]})
        elif isinstance(value, str):
            deltas += [{name: value[start : start + 7]} for start in range(0, len(value), 7)]
        elif value:
            deltas.append({name: value})
    return deltas


def repeat(message: Body) -> list[Body]:
    """Every piece repeats all before it."""
    deltas: list[Body] = []
    for name in sorted(message, key=lambda field: field == "content"):
        value = message[name]
        if isinstance(value, str):
            deltas += [{name: value[: start + 7]} for start in range(0, len(value), 7)]
        elif value:
            deltas.append({name: [{"index": place, **call} for place, call in enumerate(value)]})
    return deltas


def in_field(name: str) -> Callable[[str, str], Body]:
    return lambda thought, text: {**({name: thought} if thought else {}), "content": text}


def in_tags(opening: str, closing: str) -> Callable[[str, str], Body]:
    return lambda thought, text: {"content": f"{opening}{thought}{closing}{text}" if thought else text}


def read_template(key: str, default: bool) -> Callable[[Body], bool]:
    return lambda body: bool((body.get("chat_template_kwargs") or {}).get(key, default))


def forbid_unknown(*known: str) -> Callable[[Body], None]:
    """Refuse fields as servers built with pydantic do: all of them, by their place."""
    allowed = {"model", "messages", "max_tokens", "stream", "stream_options", "tools", *known}

    def check(body: Body) -> None:
        extra = [name for name in body if name not in allowed]
        if extra:
            detail = [
                {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
                for name in extra
            ]
            raise Refusal(422, {"detail": detail})

    return check


# --- the server -------------------------------------------------------------------------------------------------------


def serve(costume: Costume, request: ReceivedRequest) -> tuple[str, str, bytes]:
    """The status line, the content type and the body of the answer to a request."""
    method, path, _ = request.line.split(" ")
    path = path.partition("?")[0]
    try:
        if costume.key_header is not None and request.headers.get(costume.key_header) != "sesame-key":
            raise refuse(401, "no such key")
        if method == "GET" and path == costume.list_path and costume.models is not None:
            return "200 OK", "application/json", json.dumps(costume.models).encode()
        if method != "POST" or not _fits(costume.path, path):
            raise Refusal(404, {"detail": "Not Found"})
        body = json.loads(request.body)
        if not body:
            raise refuse(400, "you must provide a body")
        costume.check(body)
        content_type, content = costume.answer(costume, path, body)
    except Refusal as problem:
        return f"{problem.status} Refused", "application/json", json.dumps(problem.document).encode()
    return "200 OK", content_type, content


def _fits(pattern: str, path: str) -> bool:
    head, star, tail = pattern.partition("*")
    return path.startswith(head) and path.endswith(tail) if star else path == pattern


@contextmanager
def wearing(costume: Costume) -> Generator[Server]:
    """A server on this machine that behaves so."""

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        status, content_type, body = serve(costume, request)
        head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        return True

    with serving(answer) as server:
        yield server
