"""The older call signature: positional arguments in, a dict with the answer apart from everything else out."""

from __future__ import annotations

import json

from asides.compat import create_chat_completion
from asides_stage.stage import OpenStage, Say
from tests.shells import KEY, MODEL

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}]


def test_positional_arguments_reach_the_provider_and_thinking_stays_out_of_the_content(stage: OpenStage) -> None:
    opened = stage(Say(thinking="plan", text="42"))
    answer = create_chat_completion(MODEL, MESSAGES, 0.5, 9, 0.9, base_url=opened.url, api_key=KEY)
    assert (answer["role"], answer["content"], answer["metadata"]["thinking"]) == ("assistant", "42", "plan")
    (request,) = opened.requests
    assert request.json["messages"] == MESSAGES
    assert [request.json[name] for name in ("temperature", "max_tokens", "top_p")] == [0.5, 9, 0.9]


def test_what_is_not_given_is_not_sent_and_no_answer_is_none(stage: OpenStage) -> None:
    opened = stage(Say(thinking="plan", stop="length"))
    assert create_chat_completion(MODEL, MESSAGES, base_url=opened.url, api_key=KEY)["content"] is None
    assert not {"temperature", "max_tokens", "top_p"} & opened.requests[0].json.keys()


def test_a_setting_that_the_model_refuses_is_left_out(stage: OpenStage) -> None:
    opened = stage(Say(thinking="plan", text="42"))
    answer = create_chat_completion("deepseek:deepseek-reasoner", MESSAGES, 0.5, base_url=opened.url, api_key=KEY)
    assert answer["content"] == "42"
    assert "temperature" not in opened.requests[0].json


def test_the_dict_is_plain_json(stage: OpenStage) -> None:
    opened = stage(Say(thinking="plan", text="42"))
    answer = create_chat_completion(MODEL, MESSAGES, base_url=opened.url, api_key=KEY, thinking_encrypted=True)
    assert json.loads(json.dumps(answer)) == answer
    assert answer["metadata"]["usage"]["origin"] == "reported"
    assert answer["metadata"]["raw"]["choices"][0]["message"]["content"] == "42"
