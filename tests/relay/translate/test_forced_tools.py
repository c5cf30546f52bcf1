"""A demanded tool counts more than thinking that nobody asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.flows.build_call import CallBuilder
from asides.flows.call import encode_request
from asides.options import Options
from asides.settings import Settings
from asides.values.errors import ConfigError
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
from asides.values.tools import Tool

_LOOK = Tool("look", parameters={"type": "object", "properties": {}})


def _encode(model: str, choice: str, thinking: Thinking) -> tuple[dict[str, Any], list[str]]:

    prompt = Prompt((user("?"),), tools=(_LOOK,), tool_choice=choice, thinking=thinking)
    builder = CallBuilder(Options(api_key="sk-test"), settings=Settings())
    call = builder.build(model, prompt, Options(on_conflict="adjust"), stream=False)
    sent = encode_request(call.prompt, call.target, on_conflict="adjust")
    return msgspec.json.decode(sent.request.body), [notice.code for notice in sent.notices]


@pytest.mark.parametrize("choice", ["look", "required"])
@pytest.mark.parametrize("model", ["deepseek:deepseek-v4-pro", "zai:glm-4.6", "moonshot:kimi-k2.5"])
def test_thinking_that_nobody_asked_for_is_turned_off(model: str, choice: str) -> None:
    body, codes = _encode(model, choice, Thinking())
    assert body["tool_choice"] not in ("auto", None)
    assert body["thinking"] == {"type": "disabled"}
    assert "thinking_dropped" in codes
    assert "tool_choice_adjusted" not in codes


def test_thinking_that_was_asked_for_stays() -> None:
    body, codes = _encode("deepseek:deepseek-v4-pro", "look", Thinking(effort="high"))
    assert body.get("tool_choice") in ("auto", None)
    assert body["thinking"] == {"type": "enabled"}
    assert "tool_choice_adjusted" in codes


def test_a_model_that_always_thinks_keeps_thinking() -> None:
    _, codes = _encode("anthropic:claude-opus-5-5", "look", Thinking())
    assert "tool_choice_adjusted" in codes


def test_a_request_that_must_not_change_has_nothing_to_complain_of() -> None:
    prompt = Prompt((user("?"),), tools=(_LOOK,), tool_choice="look")
    call = CallBuilder(Options(api_key="sk-test"), settings=Settings()).build(
        "deepseek:deepseek-v4-pro", prompt, Options(), stream=False
    )
    sent = encode_request(call.prompt, call.target, on_conflict="raise")
    assert b"disabled" in sent.request.body
    with pytest.raises(ConfigError):
        encode_request(
            Prompt((user("?"),), tools=(_LOOK,), tool_choice="look", thinking=Thinking(effort="high")),
            call.target,
            on_conflict="raise",
        )
