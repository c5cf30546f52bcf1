"""Rows of a vendor's batch are encoded and decoded as live calls are, at the vendor's price."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest

from asides import Settings
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.options import Options
from asides.values.errors import AsidesError, BadRequest, ProviderError, Unsupported
from asides_batch.vendor.forms import RowKind, RowOutcome
from asides_batch.vendor.vendor_requests import can_retry, decode_row, find_target

HALF = Decimal("0.5")


def build(model: str, prompt: str = "a secret question", **options: Any) -> Call:
    builder = CallBuilder(settings=Settings())
    given: dict[str, Any] = {"api_key": "sk-made-up", **options}
    return builder.build(model, prompt, cast("Options", given), stream=False)


def answer(text: str = "fine", thinking: str = "mull") -> bytes:
    content = [{"type": "thinking", "thinking": thinking, "signature": "c2VhbA=="}, {"type": "text", "text": text}]
    usage = {"input_tokens": 1000, "output_tokens": 2000}
    return msgspec.json.encode(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": content,
            "stop_reason": "end_turn",
            "usage": usage,
        }
    )


def test_a_row_is_the_request_of_a_live_call() -> None:
    call = build("anthropic:claude-opus-5-5", thinking={"mode": "on", "effort": "low"}, max_tokens=500)
    target = find_target(call, "a")
    body = msgspec.json.decode(target.row.request.body)
    assert (body["max_tokens"], body["messages"][0]["content"]) == (500, "a secret question")
    assert "thinking" in body
    assert not body.get("stream")
    assert target.row.request.headers["anthropic-version"]


@pytest.mark.parametrize("model", ["groq:any", "mistral:any", "azure:any", "vertex:gemini-3-flash-preview"])
def test_other_providers_are_refused_with_what_to_do(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://some.openai.azure.com")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "some")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
    with pytest.raises(Unsupported, match=r"Run the batch with --via live"):
        find_target(build(model), "a")


def test_a_reply_has_its_thinking_apart_and_costs_half() -> None:
    pytest.importorskip("genai_prices")
    call = build("anthropic:claude-opus-5-5")
    reply = decode_row(call, RowOutcome("a", "answered", 200, answer()), HALF)
    assert reply.text == "fine"
    assert reply.thinking
    assert (reply.thinking.text, reply.seals[0].value) == ("mull", "c2VhbA==")
    assert reply.timing is None
    live = reply.with_call(price_share=None)
    assert live == reply
    assert reply.cost is not None
    assert live.cost is not None
    assert reply.cost.amount * 2 == live.cost.amount
    assert reply.to_message() == live.to_message()


def test_the_error_of_a_row_is_that_of_a_live_call_and_quotes_no_prompt() -> None:
    body = msgspec.json.encode(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "bad: a secret question"}}
    )
    with pytest.raises(BadRequest) as caught:
        decode_row(build("anthropic:claude-opus-5-5"), RowOutcome("a", "failed", 400, body), HALF)
    assert caught.value.status == 400
    assert "secret question" not in str(caught.value)


def test_rows_that_were_not_run_say_so() -> None:
    call = build("anthropic:claude-opus-5-5")
    kinds: list[tuple[RowKind, str]] = [("expired", "batch_expired"), ("cancelled", "batch_cancelled")]
    for kind, code in kinds:
        with pytest.raises(ProviderError) as caught:
            decode_row(call, RowOutcome("a", kind, 0, message="not run"), HALF)
        assert (caught.value.code, "not run" in str(caught.value)) == (code, True)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"\xff", b"<html>"])
def test_a_result_that_is_no_reply_is_an_error_of_its_row(body: bytes) -> None:
    with pytest.raises(AsidesError):
        decode_row(build("anthropic:claude-opus-5-5"), RowOutcome("a", "answered", 200, body), HALF)


def test_an_empty_reply_is_no_answer() -> None:
    body = b'{"type":"message","id":"m","role":"assistant","content":[]}'
    reply = decode_row(build("anthropic:claude-opus-5-5"), RowOutcome("a", "answered", 200, body), HALF)
    assert reply.outcome == "unterminated"


def test_what_may_pass_in_another_batch() -> None:
    passing = [RowOutcome("a", "expired", 0), *(RowOutcome("a", "failed", status) for status in (429, 500, 503, 529))]
    lasting = [RowOutcome("a", "cancelled", 0), *(RowOutcome("a", "failed", status) for status in (400, 401, 404, 413))]
    assert [can_retry(each) for each in (*passing, *lasting)] == [True] * 5 + [False] * 5
