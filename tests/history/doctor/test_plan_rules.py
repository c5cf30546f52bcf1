"""What the plan leaves out, told for the file."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt
from asides.values.thinking import Origin, Seal, Thought

ASK = {"role": "user", "content": "q"}
SIGNED = {"type": "thinking", "thinking": "t", "signature": "c2ln"}
TURN = {"role": "assistant", "content": [SIGNED, {"type": "text", "text": "x"}]}


@pytest.mark.parametrize(
    ("origin", "account", "refused"),
    [
        (None, False, []),
        ("anthropic:claude-opus-4-6", False, []),
        ("anthropic:claude-haiku-4-5", False, ["thinking_signature_invalid"]),
        ("bedrock:us.anthropic.claude-opus-4-6-v1", False, ["thinking_signature_invalid"]),
        (None, True, ["thinking_signature_invalid"]),
        ("anthropic:claude-opus-4-6", True, ["thinking_signature_invalid"]),
    ],
)
def test_foreign_thinking_is_refused_if_it_is_known_to_be(
    origin: str | None, account: bool, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    found = diagnose([ASK, TURN, ASK], "anthropic:claude-opus-4-6", origin=origin, other_account=account)
    assert [finding.kind for finding in found.refused] == refused
    assert found.repaired[1]["content"] == (TURN["content"][1:] if refused else TURN["content"])
    assert ["another account made it" in finding.detail for finding in found.refused] == [account] * len(refused)


def test_a_request_for_another_model_shows_who_made_its_thinking() -> None:
    request: Any = {"model": "claude-opus-4-6-20260101", "max_tokens": 99, "messages": [ASK, TURN, ASK]}
    assert diagnose(request, "anthropic:claude-opus-4-6").sound
    found = diagnose(request, "anthropic:claude-haiku-4-5")
    assert [finding.kind for finding in found.refused] == ["thinking_signature_invalid"]
    assert found.repaired["model"] == request["model"]


def test_another_language_sends_no_foreign_state() -> None:
    found = diagnose([ASK, TURN, ASK], "openai:gpt-5")
    assert found.sound
    assert [finding.effect for finding in found.findings] == ["ignored"]
    assert found.repaired == [ASK, TURN, ASK]


def test_the_reasons_of_the_plan_are_still_those_that_are_judged() -> None:
    target = find_target("anthropic:claude-opus-4-6")
    foreign = Origin("openai", "https://api.openai.com/v1", "gpt-5")
    thoughts = (
        Thought("a", withheld=True),
        Thought("b", complete=False),
        Thought("c", source="field"),
        Thought("d", source="block", via="thinking"),
        Thought("e", source="block", origin=foreign, seals=(Seal("signature", "x", foreign),)),
    )
    prompt = Prompt((Message("user", "q"), Message("assistant", (*thoughts, "x")), Message("user", "q")))
    reasons = [decision.why for decision in plan(prompt, target).decisions]
    starts = (
        "its text, or that of a thought next to it, was not saved",
        "the reply broke off",
        "it was made in another dialect",
        "replay rule",
        "another",
    )
    assert all(reason.startswith(start) for reason, start in zip(reasons, starts, strict=True)), reasons
