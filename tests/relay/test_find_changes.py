"""Forward or translate, with the reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.relay.find_changes import Asked, Changes, find_changes
from asides.settings import Settings
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Text
from asides.values.thinking import Thought
from asides.values.visibility import Visibility
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import FROM_CLAUDE, Door, load, post_claude


@pytest.mark.parametrize(
    ("config", "asides", "reason"),
    [
        ({"forwards": False}, {}, "forwarding is switched off"),
        ({}, {"forward": False}, "forwarding is switched off"),
        ({}, {"thinking": 2048}, "options change the request"),
        ({"options": Options(temperature=0.5)}, {}, "options change the request"),
        ({}, {"visibility": ["raw"]}, "the caller may not see this thinking"),
    ],
)
def test_reasons_to_translate(config: dict[str, Any], asides: dict[str, Any], reason: str) -> None:
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "?"}],
        "asides": asides,
    }
    with Stage(Say(text="Hi")) as stage:
        stage.expect_no_refusals()
        response = post_claude(Door(stage, **config), msgspec.json.encode(body))
    assert response.status == 200, response.body
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.reason) == ("translate", reason)


def test_a_policy_that_hides_thinking_holds_for_forwarded_requests_too() -> None:
    with Stage(Say(text="Hi", thinking="CANARY"), rules="lenient") as stage:
        door = Door(stage, sink="gateway")
        door.relay._builder.visibility = Visibility(gateway=())  # pyright: ignore[reportPrivateUsage]
        response = post_claude(door, FROM_CLAUDE % b"true")
    assert b"CANARY" not in response.body
    assert b"Hi" in response.body


_ROUTES = {
    "claude-*": {"targets": ["anthropic:claude-haiku-4-5"]},
}


@pytest.mark.parametrize(
    ("model", "more", "mode"),
    [
        # Claude Code asks models that it does not know for adaptive thinking.
        ("claude-opus-5-5", {"thinking": {"type": "adaptive"}}, "translate"),
        ("claude-opus-5-5", {}, "forward"),
        ("claude-haiku-4-5-20251001", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "forward"),
        ("anthropic:claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "forward"),
    ],
)
def test_a_request_for_another_model_is_forwarded_only_if_it_suits_this_one(
    model: str, more: dict[str, Any], mode: str
) -> None:
    body = {"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": "?"}], **more}
    with Stage(Say(text="Hi")) as stage:
        stage.expect_no_refusals()
        response = Door(stage, settings=load(routes=_ROUTES)).post("/v1/messages", body)
        assert stage.requests[0].json["model"] == "claude-haiku-4-5"
    assert response.status == 200, response.body
    assert response.outcome is not None
    assert response.outcome.mode == mode


def test_thinking_that_a_model_takes_no_more_is_not_forwarded() -> None:
    """Chat clients echo `reasoning_content` that was written for another model; OpenAI's chat takes none."""
    thought = Message("assistant", (Thought("so"), Text("Hi")))
    builder = CallBuilder(Options(api_key="sk-test"), settings=Settings())
    found: list[Changes] = []
    for said in (Message("assistant", (Text("Hi"),)), thought):
        call = builder.build("openai-chat:gpt-4.1", Prompt((user("?"), said, user("?"))), Options(), stream=False)
        found.append(find_changes(call, Asked("openai_chat", Visibility(), "app")))
    assert found == [Changes(), Changes("this model takes no thinking back")]
