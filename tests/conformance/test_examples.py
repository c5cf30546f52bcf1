"""Our own wire examples, written from the documented formats: each whole, streamed, byte by byte, and over sockets in
both shells.

An example is a folder `tests/examples/<provider>/<scenario>/` with `request.json` (what is asked, and the body that
must be sent), `whole.json` and `stream.sse` (the same reply in both forms) and `reply.json` (what it must become).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.reply import Reply
from asides_stage.stage import OpenStage, Raw
from tests.decoding import decoded

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[1] / "examples").glob("*/*/reply.json"))
# Asked for in a stream only, so that usage comes too.
_OF_STREAMS = {"stream": True, "stream_options": {"include_usage": True}}


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def view(reply: Reply) -> dict[str, Any]:
    """What reply.json says, of a reply."""
    usage = reply.usage
    return {
        "text": reply.text,
        "thinking": reply.metadata.get("thinking"),
        "kind": reply.metadata.get("thinking_type"),
        "source": reply.metadata["thinking_source"],
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls],
        "seals": [seal.value for seal in reply.seals],
        "usage": {name: getattr(usage, name) for name in ("input", "output", "thinking", "cached", "total")},
        "stop": reply.stop.reason,
        "outcome": reply.outcome,
    }


def load(folder: Path) -> tuple[dict[str, Any], bytes, bytes, dict[str, Any]]:
    request, expected = (json.loads((folder / name).read_text()) for name in ("request.json", "reply.json"))
    return request, (folder / "whole.json").read_bytes(), (folder / "stream.sse").read_bytes(), expected


@pytest.mark.requirement("S0-40", "S1-43")
@pytest.mark.parametrize("folder", EXAMPLES, ids=name_of)
def test_an_example_decodes_the_same_whole_and_streamed_in_any_chunking(folder: Path) -> None:
    request, whole, stream, expected = load(folder)
    row = find_provider(folder.parent.name)
    target = Target(row, request["model"], row.base_url, row.rule(request["model"]))
    assert view(decoded(whole, target, target.dialect)) == expected
    assert decoded(stream, target, target.dialect) == decoded(whole, target, target.dialect)


@pytest.mark.parametrize("folder", EXAMPLES, ids=name_of)
async def test_an_example_over_sockets_in_both_shells(folder: Path, stage: OpenStage) -> None:
    request, whole, stream, expected = load(folder)
    open_stage = stage(
        Raw(whole, content_type="application/json"),
        Raw(stream, content_type="text/event-stream", chunk=7),
        Raw(whole, content_type="application/json"),
        Raw(stream, content_type="text/event-stream"),
    )
    model = f"{folder.parent.name}:{request['model']}"
    options: dict[str, Any] = {"base_url": open_stage.url, "api_key": "sk-example", **request["options"]}
    replies: list[Reply] = [asides.ask(model, request["prompt"], **options)]
    with asides.stream(model, request["prompt"], **options) as events:
        replies.append(events.reply)
    async with asides.AsyncClient() as client:
        replies.append(await client.ask(model, request["prompt"], **options))
        async with client.stream(model, request["prompt"], **options) as later:
            await later.drain()
            replies.append(later.reply)
    assert [view(reply) for reply in replies] == [expected] * 4
    assert all(reply == replies[0] for reply in replies), "sync is async, streamed is whole"
    sent = [received.json for received in open_stage.requests]
    assert sent[0] == sent[2] == request["body"]
    assert sent[1] == sent[3]
    assert {name: value for name, value in sent[1].items() if name not in _OF_STREAMS} == request["body"]
