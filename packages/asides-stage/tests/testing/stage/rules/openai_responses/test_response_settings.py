"""The settings of a Responses request: efforts, summaries, sampling, earlier responses, lengths."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import Wire, send
from tests.testing.stage.rules.openai_responses.item_requests import (
    PATH,
    THINKS,
)


class Setting(NamedTuple):
    """Settings that break a rule, and what makes them legal."""

    kind: str
    model: str
    broken: Wire
    legal: Wire
    words: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.model}: {self.words[:40]}"


def effort(value: str) -> Wire:
    return {"reasoning": {"effort": value}}


ENCRYPTED = {"include": ["reasoning.encrypted_content"]}
SETTINGS = [
    Setting(
        "effort_unsupported_value",
        "gpt-5.1",
        effort("minimal"),
        effort("none"),
        "with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
    ),
    Setting("effort_unsupported_value", "gpt-6-astra", effort("none"), effort("max"), "'none' is not supported"),
    Setting("effort_unsupported_value", "o3", effort("xhigh"), effort("high"), "'low', 'medium', and 'high'"),
    Setting(
        "effort_unsupported_param",
        "gpt-4o",
        effort("low"),
        {},
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ),
    Setting(
        "encrypted_reasoning_unsupported",
        "gpt-4o",
        ENCRYPTED,
        {"include": []},
        "Encrypted content is not supported with this model.",
    ),
    Setting("sampling_unsupported", "gpt-5", {"temperature": 0.2}, {"temperature": 1}, "Unsupported parameter: 'temp"),
    Setting("sampling_unsupported", "gpt-5.2", {"top_p": 0.5, **effort("low")}, {"top_p": 0.5}, "'top_p'"),
    Setting("unknown_param", "gpt-5", {"thinking": {}}, {}, "Unknown parameter: 'thinking'."),
    Setting(
        "effort_unsupported_param",
        "gpt-5",
        {"reasoning_effort": "low"},
        effort("low"),
        "has moved to 'reasoning.effort'",
    ),
    Setting(
        "summary_not_allowed",
        "gpt-5",
        {"reasoning": {"summary": "auto"}},
        effort("low"),
        "must be verified to generate reasoning summaries",
        key="sk-unverified",
    ),
    Setting(
        "previous_response_missing",
        "gpt-5",
        {"previous_response_id": "resp_gone"},
        {},
        "Previous response with id 'resp_gone' not found.",
    ),
    Setting(
        "previous_response_forbidden",
        "gpt-5",
        {"previous_response_id": "resp_gone"},
        {},
        "due to Zero Data Retention.",
        key="sk-zdr",
    ),
    Setting(
        "context_length",
        "gpt-4o",
        {"input": "a " * 128_001},
        {"input": "a " * 127_000},
        "Your input exceeds the context window of this model.",
    ),
    Setting("effort_unsupported_param", "grok-4", effort("low"), {}, "does not support parameter reasoningEffort."),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_settings_that_break_a_rule_are_refused_and_the_nearest_legal_ones_are_not(
    stage: OpenStage, setting: Setting
) -> None:
    opened = stage(THINKS)
    asked: Wire = {"model": setting.model, "input": "?"}
    answer = send(opened, PATH, {**asked, **setting.broken}, setting.key)
    (refusal,) = opened.refusals
    assert (answer.status, refusal.kind) == (400, setting.kind)
    assert setting.words in refusal.text
    legal = send(opened, PATH, {**asked, **setting.legal}, setting.key)
    assert legal.status == 200, legal.body
