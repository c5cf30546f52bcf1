"""Pictures for models that see none: said before a byte is sent, and never the end of a conversation (FT-53)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

import asides
from asides.values.messages import user
from asides.values.parts import Image, ToolCall
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, Ran, every_way

BLIND = "deepseek:deepseek-v4-pro"
SEEING = "openai-chat:gpt-4o"
PICTURE = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")


@pytest.mark.parametrize("model", [BLIND, "openai-chat:o3-mini", "openai-responses:o3-mini"])
def test_FT_53_a_picture_in_the_question_is_a_typed_error(model: str, stage: OpenStage) -> None:
    open_stage = stage(Say(text="?"))
    with pytest.raises(asides.Unsupported, match="takes no pictures"):
        asides.ask(model, [user("What is this?", PICTURE)], base_url=open_stage.url, api_key=KEY)
    assert open_stage.requests == []


def test_FT_53_adjusted_it_is_told_in_words_and_reported(stage: OpenStage) -> None:
    open_stage = stage(Say(text="I cannot see it."))
    question = [user("What is this?", PICTURE)]
    reply = asides.ask(BLIND, question, base_url=open_stage.url, api_key=KEY, on_conflict="adjust")
    assert "pictures_dropped" in [notice.code for notice in reply.warnings]
    sent = open_stage.requests[0].body.decode()
    assert "image_url" not in sent
    assert "a picture was here" in sent


def test_FT_53_a_model_that_sees_gets_it(stage: OpenStage) -> None:
    open_stage = stage(Say(text="A dot."))
    reply = asides.ask(SEEING, [user("What is this?", PICTURE)], base_url=open_stage.url, api_key=KEY)
    assert "image_url" in open_stage.requests[0].body.decode()
    assert "pictures_dropped" not in [notice.code for notice in reply.warnings]


def test_FT_53_a_conversation_with_a_picture_goes_on_with_a_model_that_does_not_see(stage: OpenStage) -> None:
    open_stage = stage(Say(text="A dot."), Say(text="Grey."), Say(text="A dot."))
    chat = asides.Conversation(client=asides.Client(base_url=open_stage.url, api_key=KEY))
    chat.ask(user("What is this?", PICTURE), model=SEEING)
    chat.ask("Which colour?", model=BLIND)
    chat.ask("And again?", model=SEEING)
    first, second, third = (received.body.decode() for received in open_stage.requests)
    assert ["image_url" in body for body in (first, second, third)] == [True, False, True]
    assert any(isinstance(part, Image) for message in chat.messages for part in message.parts)


@every_way
def test_FT_53_a_picture_of_a_tool_does_not_end_a_run(send: Callable[..., Ran], stage: OpenStage) -> None:
    @asides.tool
    def draw() -> Image:
        """Draws."""
        return PICTURE

    open_stage = stage(Say(tool_calls=(ToolCall("call_1", "draw"),)), Say(text="Drawn."))
    ran = send(BLIND, open_stage.url, "Draw!", tools=[draw])
    assert ran.result is not None
    assert ran.result.output == "Drawn."
    told = msgspec.json.decode(open_stage.requests[1].body)["messages"][-1]
    assert "a picture was here" in str(told)
    assert "image_url" not in str(told)
