"""OpenAI Responses as servers send them: items, and whole and streamed responses made of them."""

from __future__ import annotations

import json
from typing import Any

from asides.providers.provider import ModelRule, Provider, Quirks, Target
from asides.values.reply import Reply
from tests.decoding import decoded, sse

DIALECT = "openai_responses"
Item = dict[str, Any]


def target(quirks: Quirks | None = None, rule: ModelRule | None = None, *, shows_raw: bool = False) -> Target:
    """A host that speaks Responses."""
    row = Provider(
        name="example",
        dialect=DIALECT,
        base_url="http://127.0.0.1:9/v1",
        quirks=quirks or Quirks(path="/responses", encrypted_reasoning=True),
    )
    return Target(
        row, "made-up", row.base_url, rule or ModelRule(thinking="optional", kind="summary"), shows_raw=shows_raw
    )


def reasoning(*summary: str, encrypted: str | None = None, raw: tuple[str, ...] = (), id: str = "rs_1") -> Item:  # noqa: A002
    """A reasoning item."""
    item: Item = {
        "type": "reasoning",
        "id": id,
        "summary": [{"type": "summary_text", "text": text} for text in summary],
    }
    if raw:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in raw]
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    return item


def message(*texts: str, id: str = "msg_1", kind: str = "output_text", **fields: Any) -> Item:  # noqa: A002
    """A message of the model."""
    content = [{"type": kind, "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content, **fields}


def call(name: str = "get_weather", arguments: str = '{"location":"SF"}', call_id: str | None = "call_abc") -> Item:
    """A call of a function."""
    item: Item = {"type": "function_call", "id": "fc_1", "name": name, "arguments": arguments, "status": "completed"}
    return item if call_id is None else {**item, "call_id": call_id}


def response(*output: Item, status: str = "completed", **fields: Any) -> dict[str, Any]:
    """The response object."""
    usage = {"input_tokens": 62, "output_tokens": 23, "total_tokens": 85}
    return {
        "id": "resp_1",
        "object": "response",
        "model": "made-up",
        "status": status,
        "output": list(output),
        "usage": usage,
        **fields,
    }


def whole(*output: Item, **fields: Any) -> bytes:
    """A whole body."""
    return json.dumps(response(*output, **fields), ensure_ascii=False).encode()


def events(*output: Item, size: int = 3, status: str = "completed", **fields: Any) -> list[dict[str, Any]]:
    """The events of a stream as the real endpoint sends them: deltas of `size` characters, then the complete items."""
    made: list[dict[str, Any]] = [{"type": "response.created", "response": response(status="in_progress")}]
    for index, item in enumerate(output):
        made += _item_events(index, item, size)
    made.append({"type": f"response.{status}", "response": response(*output, status=status, **fields)})
    return [{**event, "sequence_number": number} for number, event in enumerate(made)]


def _item_events(index: int, item: Item, size: int) -> list[dict[str, Any]]:
    at = {"output_index": index, "item_id": item.get("id")}
    empty = {**item, "status": "in_progress"}
    empty |= {name: [] for name in ("summary", "content") if name in item}
    empty |= {"arguments": ""} if "arguments" in item else {}
    empty |= {"input": ""} if "input" in item else {}
    empty |= {"encrypted_content": "incomplete"} if "encrypted_content" in item else {}
    made: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": index, "item": empty}]
    for number, part in enumerate(item.get("summary") or ()):
        place = {**at, "summary_index": number}
        made.append({"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}})
        made += _deltas("response.reasoning_summary_text", part["text"], place, size)
        made.append({"type": "response.reasoning_summary_part.done", **place, "part": part})
    for number, part in enumerate(item.get("content") or ()):
        place = {**at, "content_index": number}
        kind, field = part["type"], "refusal" if part["type"] == "refusal" else "text"
        made.append({"type": "response.content_part.added", **place, "part": {**part, field: ""}})
        made += _deltas(f"response.{kind}", part[field], place, size, field)
        made.append({"type": "response.content_part.done", **place, "part": part})
    if "arguments" in item:
        made += _deltas("response.function_call_arguments", item["arguments"], at, size, "arguments")
    if "input" in item:
        made += _deltas("response.custom_tool_call_input", item["input"], at, size, "input")
    return [*made, {"type": "response.output_item.done", "output_index": index, "item": item}]


def _deltas(kind: str, text: str, place: dict[str, Any], size: int, field: str = "text") -> list[dict[str, Any]]:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    made = [{"type": f"{kind}.delta", **place, "delta": piece, "obfuscation": "x7"} for piece in pieces]
    return [*made, {"type": f"{kind}.done", **place, field: text}]


def stream(*output: Item, size: int = 3, **fields: Any) -> bytes:
    """A stream."""
    return sse(*events(*output, size=size, **fields), done=False)


def read(body: bytes, to: Target | None = None) -> Reply:
    """The reply of a body, in any chunking."""
    return decoded(body, to or target(), DIALECT)


def both_ways(*output: Item, to: Target | None = None, **fields: Any) -> Reply:
    """The reply of these items, whole and streamed, which must be equal."""
    reply = read(whole(*output, **fields), to)
    for size in (1, 3, 1000):
        assert read(stream(*output, size=size, **fields), to) == reply
    return reply
