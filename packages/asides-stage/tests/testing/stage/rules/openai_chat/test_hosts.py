"""Which host the stage is for a request, and what a host without rules of its own takes."""

from __future__ import annotations

import pytest

from asides.dialects.openai_chat.rules import RULES
from asides_stage import OpenStage, Say
from tests.testing.stage.rules.chat_requests import SO, USER, result, send
from tests.testing.stage.rules.openai_chat.host_cases import LOOP, ON, PLAIN, asking, messages


@pytest.mark.parametrize(
    ("path", "model", "status"),
    [
        ("/v1/chat/completions", "deepseek-v4-pro", 400),
        ("/as-xai/v1/chat/completions", "deepseek-v4-pro", 200),
        ("/as-deepseek/v1/chat/completions", "grok-4.5", 200),
        ("/as-deepseek/v1/chat/completions", "deepseek-v4-pro", 400),
        ("/api/v1/chat/completions", "deepseek-v4-pro", 200),
        ("/api/v1/chat/completions", "deepseek/deepseek-v4-pro", 400),
        ("/openai/deployments/mine/chat/completions", "deepseek-v4-pro", 200),
    ],
)
def test_the_path_comes_before_the_name(stage: OpenStage, path: str, model: str, status: int) -> None:
    assert send(stage(Say(text="42")), path, {"model": model, **messages(*LOOP)}).status == status


@pytest.mark.parametrize(
    ("at", "field"), [("", "reasoning_content"), ("as-groq", "reasoning"), ("as-vllm", "reasoning")]
)
def test_thinking_comes_in_the_field_of_the_host_and_goes_back_in_it(stage: OpenStage, at: str, field: str) -> None:
    opened = stage(Say(thinking="mull", text="42"))
    path = f"/{at}/v1/chat/completions" if at else "/v1/chat/completions"
    asked = {"model": "openai/gpt-oss-120b" if at else "any", "messages": PLAIN}
    turn = send(opened, path, asked).json["choices"][0]["message"]
    assert turn[field] == "mull"
    assert send(opened, path, {**asked, "messages": [USER, turn, SO]}).status == 200


def test_an_unknown_name_has_only_the_rules_of_all(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    odd = asking(thinking=ON, reasoning_effort="max", reasoning={"effort": "low"}, temperature=0.1, top_k=3)
    assert send(opened, "/v1/chat/completions", {"model": "any", **odd}).status == 200
    assert send(opened, "/v1/chat/completions", {"model": "any", **messages(USER, result("a"))}).status == 400


def test_a_lenient_stage_tells_and_answers(stage: OpenStage) -> None:
    opened = stage(Say(text="42"), rules="lenient")
    assert send(opened, "/v1/chat/completions", {"model": "gpt-5", **asking(temperature=0)}).status == 200
    assert [refusal.kind for refusal in opened.refusals] == ["sampling_unsupported"]


def test_every_rule_has_a_date_and_a_source() -> None:
    assert len(RULES) > 60
    assert [rule.text for rule in RULES if not rule.since.startswith("20") or len(rule.source) < 8] == []
