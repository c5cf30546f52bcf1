"""Compaction that providers do themselves: what is asked, and that what they return goes back to them, verbatim."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects.compaction import build_compact_request, read_compacted
from asides.dialects.dialect import HttpRequest
from asides.history.document import from_document, to_document
from asides.providers.find import find_target
from tests.decoding import sse

CLAUDE, GPT = "anthropic:claude-opus-4-7", "openai-responses:gpt-5.4"
BLOCK = {"type": "compaction", "content": "They spoke of cats.", "encrypted_content": "b3BhcXVl=="}
ITEM = {"id": "cmp_1", "type": "compaction", "encrypted_content": "b3BhcXVl=="}


def explain(model: str, prompt: Any = "?", **options: Any) -> asides.Explanation:
    return asides.explain(model, prompt, api_key="k", **options)


@pytest.mark.parametrize(("asked", "trigger"), [("provider", None), (80_000, 80_000), (10, 50_000)])
def test_claude_is_asked_with_an_edit_and_its_beta(asked: Any, trigger: int | None) -> None:
    made = explain(CLAUDE, compaction=asked)
    edit: dict[str, Any] = {"type": "compact_20260112"}
    if trigger is not None:
        edit["trigger"] = {"type": "input_tokens", "value": trigger}
    assert made.body["context_management"] == {"edits": [edit]}
    assert made.headers["anthropic-beta"] == "compact-2026-01-12"
    assert [notice.code for notice in made.notices] == (["compaction_adjusted"] if asked == 10 else [])


@pytest.mark.parametrize(
    ("edit", "beta"),
    [
        ("clear_tool_uses_20250919", "context-management-2025-06-27"),
        ("clear_thinking_20251015", "context-management-2025-06-27"),
        ("compact_20260112", "compact-2026-01-12"),
        ("someday_20990101", None),
    ],
)
def test_edits_of_the_caller_get_their_beta(edit: str, beta: str | None) -> None:
    made = explain(CLAUDE, extra={"context_management": {"edits": [{"type": edit}]}})
    assert made.body["context_management"] == {"edits": [{"type": edit}]}
    assert made.headers.get("anthropic-beta") == beta


@pytest.mark.parametrize("odd", [None, [], "x", {"edits": None}, {"edits": ["x", {"type": 1}]}])
def test_other_forms_of_the_field_go_as_they_are(odd: Any) -> None:
    assert "anthropic-beta" not in explain(CLAUDE, extra={"context_management": odd}).headers


@pytest.mark.parametrize(("asked", "threshold"), [("provider", 200_000), (30_000, 30_000)])
def test_openai_is_asked_with_a_threshold(asked: Any, threshold: int) -> None:
    made = explain(GPT, compaction=asked)
    assert made.body["context_management"] == [{"type": "compaction", "compact_threshold": threshold}]


def test_others_refuse_it_before_a_byte_is_sent_or_leave_it_out() -> None:
    for model in ("groq:qwen/qwen3-32b", "openai-chat:gpt-4.1", "google:gemini-3-pro"):
        with pytest.raises(asides.Unsupported, match=r"conversation\.compact"):
            explain(model, compaction="provider")
        made = explain(model, compaction="provider", on_conflict="adjust")
        assert "compaction_not_sent" in [notice.code for notice in made.notices]
    for wrong in ("model", 0, -1, 1.5, True):
        with pytest.raises(asides.ConfigError, match="compaction"):
            explain(CLAUDE, compaction=wrong)


# --- what they return -------------------------------------------------------------------------------------------------

_START = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-7"}
_DELTA = {"type": "compaction_delta", "content": BLOCK["content"], "encrypted_content": BLOCK["encrypted_content"]}


def claude_reply(*, streamed: bool) -> asides.Reply[Any]:
    whole = {**_START, "content": [BLOCK, {"type": "text", "text": "Cats."}], "stop_reason": "end_turn", "usage": {}}
    body = json.dumps(whole).encode()
    if streamed:
        body = sse(
            {"type": "message_start", "message": {**_START, "content": [], "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
            {"type": "content_block_delta", "index": 0, "delta": _DELTA},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Cats."}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
            {"type": "message_stop"},
            done=False,
        )
    provider, _, model = CLAUDE.partition(":")
    return asides.decode("anthropic", body, streaming=streamed, provider=provider, model=model)


def gpt_reply() -> asides.Reply[Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    text = {**message, "content": [{"type": "output_text", "text": "Cats.", "annotations": []}]}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.4", "output": [ITEM, text]}
    return asides.decode("openai_responses", json.dumps(body).encode(), streaming=False, provider="openai")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_compaction_block_goes_back_verbatim_with_its_beta(streamed: bool) -> None:
    reply = claude_reply(streamed=streamed)
    assert (reply.text, reply.thinking.text) == ("Cats.", "")
    made = explain(CLAUDE, ["?", reply, "And?"])
    assert made.body["messages"][1]["content"][0] == BLOCK
    assert made.headers["anthropic-beta"] == "compact-2026-01-12"


def test_a_compaction_item_goes_back_verbatim() -> None:
    assert ITEM in explain(GPT, ["?", gpt_reply(), "And?"]).body["input"]


@pytest.mark.parametrize("made_by", [CLAUDE, GPT])
@pytest.mark.parametrize("target", [CLAUDE, GPT, "groq:qwen/qwen3-32b", "google:gemini-3-pro", "azure:gpt-5.4"])
def test_it_goes_to_its_origin_alone_also_from_a_saved_conversation(made_by: str, target: str) -> None:
    reply = claude_reply(streamed=False) if made_by == CLAUDE else gpt_reply()
    message = reply.to_message()
    assert message is not None
    saved = from_document(to_document((asides.user("?"), message, asides.user("And?")))).messages
    options = {"base_url": "https://example.openai.azure.com"} if target.startswith("azure") else {}
    body = json.dumps(explain(target, saved, **options).body)
    assert ("b3BhcXVl==" in body) == (target == made_by)


def test_an_unknown_kind_of_compaction_survives_too() -> None:
    later = {"type": "compaction_v9", "blob": ["x", {"y": 1}]}
    whole = {**_START, "content": [later, {"type": "text", "text": "Cats."}], "stop_reason": "end_turn", "usage": {}}
    reply = asides.decode("anthropic", json.dumps(whole).encode(), streaming=False, provider="anthropic")
    assert explain(CLAUDE, ["?", reply, "And?"]).body["messages"][1]["content"][0] == later


# --- a compaction on its own ------------------------------------------------------------------------------------------


def test_the_request_has_the_input_and_nothing_else() -> None:
    body = {"model": "m", "input": [{"role": "user", "content": "é"}], "instructions": "i", "store": False}
    request = HttpRequest("POST", "https://h/v1/responses?api-version=1", {"Accept": "x"}, json.dumps(body).encode())
    made = build_compact_request(request)
    assert made.url == "https://h/v1/responses/compact?api-version=1"
    assert msgspec.json.decode(made.body) == {name: body[name] for name in ("model", "input", "instructions")}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"output": []}', b'{"output": ["x"]}', b"\xff", b"<html>"])
def test_anything_else_is_no_compaction(body: bytes) -> None:
    with pytest.raises(asides.ProtocolError, match="not a compaction"):
        read_compacted(body, find_target(GPT))
