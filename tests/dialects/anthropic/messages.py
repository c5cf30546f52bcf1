"""Messages as servers of this dialect write them: documents of a stream, and whole bodies."""

from __future__ import annotations

import json
from typing import Any

from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.reply import Reply
from tests.decoding import decoded, sse

MODEL = "claude-sonnet-4-5"


def claude(model: str = MODEL) -> Target:
    row = find_provider("anthropic")
    return Target(row, model, row.base_url, row.rule(model))


def start(**message: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    return {"type": "message_start", "message": {**fields, **message}}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def thinking(index: int, *texts: str, signature: str | None = "sig", ends: bool = True) -> list[dict[str, Any]]:
    deltas = [delta(index, type="thinking_delta", thinking=text) for text in texts]
    if signature is not None:
        deltas.append(delta(index, type="signature_delta", signature=signature))
    return [begin(index, type="thinking", thinking="", signature=""), *deltas, *([stop(index)] if ends else [])]


def text(index: int, *texts: str) -> list[dict[str, Any]]:
    deltas = [delta(index, type="text_delta", text=piece) for piece in texts]
    return [begin(index, type="text", text=""), *deltas, stop(index)]


def call(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    deltas = [delta(index, type="input_json_delta", partial_json=piece) for piece in ("", *pieces)]
    return [begin(index, type="tool_use", id=call_id, name=name, input={}), *deltas, stop(index)]


def end(reason: str | None = "end_turn", usage: dict[str, Any] | None = None, **more: Any) -> list[dict[str, Any]]:
    ended = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None, **more}}
    return [{**ended, "usage": usage or {"output_tokens": 20}}, {"type": "message_stop"}]


def stream(*blocks: list[dict[str, Any]], reason: str = "end_turn") -> bytes:
    return sse(start(), *[event for block in blocks for event in block], *end(reason), done=False)


def whole(*content: dict[str, Any], reason: str = "end_turn", **more: Any) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 20}
    body = {**start()["message"], "content": list(content), "stop_reason": reason, "usage": usage, **more}
    return json.dumps(body, ensure_ascii=False).encode()


def read(body: bytes, model: str = MODEL) -> Reply:
    """The reply that a body is, in any chunking."""
    return decoded(body, claude(model), "anthropic")
