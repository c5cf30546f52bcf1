"""The answer of `/responses/compact`: what stays, then the item, and the usage."""

from __future__ import annotations

import msgspec

from asides.dialects.openai_responses.server.write_reply import CompactionWriter
from asides.values.events import PartArrived, ReplyEnded, ReplyStarted, StopReason, UsageReported
from asides.values.parts import UnknownPart
from asides.values.usage import Usage


def test_instructions_and_words_of_the_user_stay() -> None:
    writer = CompactionWriter(model="m")
    writer.keep(
        [
            {"role": "developer", "content": "Be kind.", "id": "item_1"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}], "id": "item_2"},
            {"type": "message", "role": "assistant", "content": "Hello"},
            {"type": "function_call", "name": "a", "call_id": "b", "arguments": "{}"},
        ]
    )
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    part = PartArrived(UnknownPart(msgspec.json.encode(item).decode()), 0)
    usage = UsageReported(Usage(5, 2))
    document = msgspec.json.decode(writer.write([ReplyStarted("m"), part, usage, ReplyEnded(StopReason("stop"))]))
    assert document["object"] == "response.compaction"
    assert document["id"].startswith("resp_")
    assert [each.get("role") for each in document["output"]] == ["developer", "user", None]
    assert document["output"][0]["content"] == [{"type": "input_text", "text": "Be kind."}]
    assert document["output"][-1] == item
    assert document["usage"]["total_tokens"] == 7
    assert writer.content_type == "application/json"
