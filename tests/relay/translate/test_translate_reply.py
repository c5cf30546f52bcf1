"""The writer of a reply for a relayed request, and the body of a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import DIALECTS
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import ReplyWriter
from asides.providers.find import find_target
from asides.relay.translate.translate_fields import UntranslatableField
from asides.relay.translate.translate_reply import open_writer, write_refusal
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThoughtSealed
from asides.values.messages import Prompt, user
from asides.values.thinking import Seal
from tests.relay.translated import BASES, read, target_of, translate


def test_the_error_says_what_clients_look_for() -> None:
    with pytest.raises(UntranslatableField) as refused:
        translate("anthropic", {**BASES["anthropic"], "thread": {"type": "create"}}, "openai_chat")
    error = json.loads(write_refusal("anthropic", refused.value))["error"]
    assert error["details"]["error_code"] == "thread_unsupported_request"
    assert error["type"] == "invalid_request_error"
    with pytest.raises(UntranslatableField) as refused:
        translate("openai_chat", {**BASES["openai_chat"], "n": 2}, "gemini")
    for caller in ("openai_chat", "openai_responses"):
        assert json.loads(write_refusal(caller, refused.value))["error"]["param"] == "n"
    for caller in sorted(set(DIALECTS) - {"openai_chat", "openai_responses"}):
        assert b"one reply" in write_refusal(caller, refused.value)


def test_the_writer_serves_the_client_of_the_request() -> None:
    served = read("openai_responses", {**BASES["openai_responses"], "instructions": "Be brief."})
    writer = open_writer(served, "openai_responses", target_of("gemini"))
    assert isinstance(writer, ReplyWriter)
    document = json.loads(writer.write([ReplyStarted("x", "upstream-id"), TextDelta("a"), ReplyEnded()]))
    assert document["instructions"] == "Be brief."
    assert document["id"] == writer.reply_id != "upstream-id"
    own = open_writer(served, "openai_responses", target_of("openai_responses"))
    assert json.loads(own.write([ReplyStarted("x", "upstream-id"), ReplyEnded()]))["id"] == "upstream-id"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", ["anthropic", "bedrock", "cohere"])
def test_citations_of_another_dialect_are_told_and_not_written(caller: str, stream: bool) -> None:
    upstream = "cohere:command-a-03-2025" if caller != "cohere" else "anthropic:claude-opus-4-5"
    served = ServedRequest(Prompt((user("Why?"),)), "m", stream)
    writer: Any = open_writer(served, caller, find_target(upstream))
    citation = '[{"start":0,"end":2,"text":"60","sources":[{"type":"foreign-source","id":"x:0"}]}]'
    sealed = ThoughtSealed(Seal("citations", "", None, citation), 0)
    written = writer.write([ReplyStarted("m"), TextDelta("60 years", 0), sealed, ReplyEnded(StopReason("stop"))])
    assert b"60 years" in written
    assert b"foreign-source" not in written
    assert [notice.code for notice in writer.notices] == ["part_not_written"]
