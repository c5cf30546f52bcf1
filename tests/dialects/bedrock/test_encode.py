"""Encode prompts as Converse requests: turns, tools, and thinking in the fields of each family of models."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

ENVIRONMENT = {"AWS_REGION": "us-east-1"}
SONNET_4_5 = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SONNET_5 = "bedrock:us.anthropic.claude-sonnet-5"
NOVA_2 = "bedrock:us.amazon.nova-2-lite-v1:0"
NOVA = "bedrock:amazon.nova-micro-v1:0"
GPT_OSS = "bedrock:openai.gpt-oss-120b-1:0"
DEEPSEEK = "bedrock:deepseek.v3-v1:0"
RESULTS_ALONE = "bedrock:mistral.mistral-large-2407-v1:0"
TOOL = Tool("look", "Look.", {"type": "object"})


def sent(prompt: Prompt, model: str = SONNET_4_5, *, planned: bool = False) -> tuple[dict[str, Any], list[str]]:
    target = find_target(model, environ=ENVIRONMENT)
    notices: tuple[Notice, ...] = ()
    if planned:
        settled = plan(prompt, target)
        prompt, notices = settled.prompt, settled.notices
    request, encoded = find_dialect("bedrock").encode(prompt, target)
    return json.loads(request.body), [notice.code for notice in (*notices, *encoded)]


def test_a_plain_question_names_the_model_in_the_address() -> None:
    target = find_target("bedrock:amazon.nova-micro-v1:0", environ=ENVIRONMENT)
    dialect = find_dialect("bedrock")
    request, notices = dialect.encode(Prompt((user("hi"),), system="Be brief."), target)
    home = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-micro-v1%3A0"
    assert request.url == f"{home}/converse-stream"
    assert request.headers["Accept"] == "application/vnd.amazon.eventstream"
    assert json.loads(request.body) == {
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
    }
    assert notices == ()
    assert dialect.encode(Prompt((user("hi"),), stream=False), target)[0].url == f"{home}/converse"
    profile = find_target("bedrock:arn:aws:bedrock:us-east-1:1:inference-profile/a.b", environ=ENVIRONMENT)
    assert (
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fa.b/"
        in dialect.encode(Prompt((user("hi"),)), profile)[0].url
    )


@pytest.mark.requirement("FT-26", "S3-19", "S3-36")
@pytest.mark.parametrize(
    ("model", "thinking", "fields"),
    [
        (SONNET_4_5, Thinking(budget=2000), {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (SONNET_4_5, Thinking(effort="low"), {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (SONNET_4_5, Thinking(mode="off"), None),
        (
            SONNET_5,
            Thinking(effort="high"),
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        ),
        (SONNET_5, Thinking(mode="off"), {"thinking": {"type": "disabled"}}),
        (GPT_OSS, Thinking(effort="low"), {"reasoning_effort": "low"}),
        (GPT_OSS, Thinking(mode="on"), {"reasoning_effort": "medium"}),
        ("bedrock:us.openai.gpt-5.6-luna", Thinking(effort="low"), {"reasoning": {"effort": "low"}}),
        (NOVA_2, Thinking(effort="low"), {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        (NOVA_2, Thinking(mode="off"), None),
        ("bedrock:us.openai.gpt-5.6-luna", Thinking(mode="off"), {"reasoning": {"effort": "none"}}),
        ("bedrock:qwen.qwen3-235b-a22b-2507-v1:0", Thinking(effort="medium"), {"reasoning_config": "medium"}),
        ("bedrock:qwen.qwen3-235b-a22b-2507-v1:0", Thinking(mode="off"), None),
        ("bedrock:us.xai.grok-4.6", Thinking(effort="xhigh"), {"reasoning": {"effort": "xhigh"}}),
        ("bedrock:global.moonshotai.kimi-k3", Thinking(effort="max"), {"reasoning_effort": "max"}),
        ("bedrock:us.zai.glm-5.3", Thinking(effort="low"), {"reasoning_effort": "low"}),
        ("bedrock:moonshot.kimi-k2-thinking", Thinking(effort="low"), None),
        ("bedrock:us.deepseek.r1-v1:0", Thinking(mode="on"), None),
        ("bedrock:meta.llama4", Thinking(effort="high"), None),
        (SONNET_4_5, Thinking(), None),
    ],
)
def test_every_family_of_models_has_its_thinking_fields(model: str, thinking: Thinking, fields: Any) -> None:
    body, _ = sent(Prompt((user("?"),), thinking=thinking), model, planned=True)
    assert body.get("additionalModelRequestFields") == fields


@pytest.mark.requirement("S3-55")
def test_F9_F10_F11_F12_contradictions_are_found_before_a_byte_is_sent() -> None:
    for prompt in (
        Prompt((user("?"),), thinking=Thinking(budget=100)),
        Prompt((user("?"),), thinking=Thinking(budget=2000), max_tokens=2000),
        Prompt((user("?"),), thinking=Thinking(budget=2000), sampling=Sampling(temperature=0.5)),
        Prompt((user("?"),), thinking=Thinking(budget=2000), tools=(TOOL,), tool_choice="look"),
    ):
        with pytest.raises(InvalidThinking):
            sent(prompt, planned=True)
    with pytest.raises(InvalidThinking, match="does not think"):
        sent(Prompt((user("?"),), thinking=Thinking(effort="high")), NOVA, planned=True)


def test_thinking_between_calls_is_asked_for_by_its_beta() -> None:
    body, _ = sent(Prompt((user("?"),), thinking=Thinking(budget=2000), tools=(TOOL,)), planned=True)
    assert body["additionalModelRequestFields"]["anthropic_beta"] == ["interleaved-thinking-2025-05-14"]


def test_the_highest_effort_takes_no_limits_beside_it() -> None:
    prompt = Prompt((user("?"),), thinking=Thinking(effort="high"), max_tokens=10, sampling=Sampling(temperature=0.1))
    body, codes = sent(prompt, NOVA_2, planned=True)
    assert "inferenceConfig" not in body
    assert codes == ["setting_dropped", "setting_dropped"]
    lower = msg_replaced(prompt, Thinking(effort="medium"))
    assert sent(lower, NOVA_2, planned=True)[0]["inferenceConfig"] == {"maxTokens": 10, "temperature": 0.1}


def msg_replaced(prompt: Prompt, thinking: Thinking) -> Prompt:
    return Prompt(prompt.messages, thinking=thinking, max_tokens=prompt.max_tokens, sampling=prompt.sampling)


def test_a_budget_gives_a_notice_if_only_efforts_are_taken() -> None:
    body, codes = sent(Prompt((user("?"),), thinking=Thinking(budget=2000)), GPT_OSS)
    assert body["additionalModelRequestFields"] == {"reasoning_effort": "medium"}
    assert codes == ["budget_not_sent"]
    assert sent(Prompt((user("?"),), thinking=Thinking(budget=2000)), "bedrock:meta.llama4")[1] == [
        "budget_not_sent",
        "on_not_sent",
    ]


def test_settings_go_into_the_fields_of_the_dialect() -> None:
    prompt = Prompt(
        (user("?"),),
        max_tokens=100,
        sampling=Sampling(temperature=0.5, top_p=0.9, top_k=3, seed=1),
        stop=("END",),
        metadata={"team": "a"},
        user="me",
        parallel_tool_calls=True,
        extra={"guardrailConfig": {"guardrailIdentifier": "g"}, "inferenceConfig": {"temperature": 0.1}},
    )
    body, codes = sent(prompt)
    del body["messages"]
    assert body == {
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.1, "topP": 0.9, "stopSequences": ["END"]},
        "additionalModelRequestFields": {"top_k": 3},
        "requestMetadata": {"team": "a"},
        "guardrailConfig": {"guardrailIdentifier": "g"},
    }
    assert codes == ["setting_dropped"] * 3
    assert sent(Prompt((user("?"),), sampling=Sampling(top_k=3)), NOVA)[0]["additionalModelRequestFields"] == {
        "inferenceConfig": {"topK": 3}
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [(None, None), ("auto", {"auto": {}}), ("required", {"any": {}}), ("look", {"tool": {"name": "look"}})],
)
def test_tools_and_their_choice(choice: str | None, expected: Any) -> None:
    body, _ = sent(Prompt((user("?"),), tools=(TOOL, Tool("listen", strict=True)), tool_choice=choice))
    first, second = body["toolConfig"]["tools"]
    assert first == {"toolSpec": {"name": "look", "description": "Look.", "inputSchema": {"json": {"type": "object"}}}}
    assert second["toolSpec"]["strict"] is True
    assert body["toolConfig"].get("toolChoice") == expected


def test_calls_of_the_past_need_their_tools_also_where_none_may_be_called() -> None:
    history = (user("go"), assistant(ToolCall("1", "look")), Message("tool", (ToolResult("1", "42"),)))
    body, codes = sent(Prompt(history, tools=(TOOL,), tool_choice="none"))
    assert ("toolChoice" in body["toolConfig"], codes) == (False, ["tool_choice_adjusted"])
    assert "toolConfig" not in sent(Prompt((user("go"),), tools=(TOOL,), tool_choice="none"))[0]
    assert sent(Prompt((user("go"),), tool_choice="required"))[1] == ["setting_dropped"]


def test_a_schema_for_the_answer_is_text() -> None:
    output = OutputSchema("answer", {"type": "object"})
    expected = {"name": "answer", "schema": '{"type":"object"}'}
    assert sent(Prompt((user("?"),), output=output))[0]["outputConfig"] == {
        "textFormat": {"type": "json_schema", "structure": {"jsonSchema": expected}}
    }
    assert sent(Prompt((user("?"),), output=output), NOVA)[1] == ["schema_not_sent"]
    assert sent(Prompt((user("?"),), output="json"))[1] == ["json_not_sent"]


@pytest.mark.requirement("FT-28", "S3-29")
def test_F6_a_turn_goes_back_block_for_block_and_in_its_order() -> None:
    signed = Thought("plan \n", seals=(Seal("signature", "c2ln+/="),))
    redacted = Thought("", "hidden", seals=(Seal("redacted", "UkVE"),))
    own = ServerTool("run", json='{"toolUse":{"name":"run","type":"server_tool_use"}}')
    cited = Text("cited", (Seal("citations", "", None, '[{"title":"a"}]'),))
    history = (
        user("go"),
        assistant(
            signed, redacted, Text("Let me see."), Text(" "), signed, own, cited, Refusal("-"), ToolCall("a b", "look")
        ),
        Message("tool", (ToolResult("a b", "no", is_error=True),)),
        user("and?", "more"),
    )
    body, _ = sent(Prompt(history, tools=(TOOL,)), planned=True)
    first, turn, last = body["messages"]
    reasoning = {"reasoningContent": {"reasoningText": {"text": "plan \n", "signature": "c2ln+/="}}}
    assert turn["content"][:-1] == [
        reasoning,
        {"reasoningContent": {"redactedContent": "UkVE"}},
        {"text": "Let me see."},
        reasoning,
        {"toolUse": {"name": "run", "type": "server_tool_use"}},
        {"citationsContent": {"content": [{"text": "cited"}], "citations": [{"title": "a"}]}},
    ]
    call_id = turn["content"][-1]["toolUse"]["toolUseId"]
    assert call_id.startswith("call_")
    assert last == {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": call_id, "content": [{"text": "no"}], "status": "error"}},
            {"text": "and?"},
            {"text": "more"},
        ],
    }
    assert first["role"] == "user"


@pytest.mark.requirement("FT-28")
@pytest.mark.parametrize(("model", "is_kept"), [(SONNET_4_5, False), (NOVA_2, True)])
def test_claude_gets_no_id_of_another_model_that_it_refuses(model: str, is_kept: bool) -> None:
    turns = [
        {"role": "user", "content": [{"text": "?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "functions.look:0", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "functions.look:0", "content": [{"text": "x"}]}}]},
    ]
    tools = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
    read = find_dialect("bedrock").read(
        json.dumps({"messages": turns, "toolConfig": tools}).encode(), f"/model/{model.partition(':')[2]}/converse"
    )
    messages = sent(read.prompt, model)[0]["messages"]
    called = messages[1]["content"][0]["toolUse"]["toolUseId"]
    assert called == messages[2]["content"][0]["toolResult"]["toolUseId"]
    assert (called == "functions.look:0") is is_kept


def test_H1_a_thought_without_a_signature_does_not_go_back_outside_a_tool_loop() -> None:
    history = (user("go"), assistant(Thought("leaky"), Text("42")), user("?"))
    for model, planned in ((GPT_OSS, True), (DEEPSEEK, True), (DEEPSEEK, False)):
        body, _ = sent(Prompt(history), model, planned=planned)
        assert "leaky" not in json.dumps(body)


def test_pictures_files_and_cache_breakpoints() -> None:
    parts = (
        Text("look", cache=True),
        Image(data=b"hi", media_type="image/jpeg"),
        Image(url="data:image/webp;base64,aGk="),
        Image(url="s3://bucket/a.png"),
        File("my_report!.v2.pdf", b"%PDF"),
        File("a.txt", b"x", media_type="text/plain"),
        File("a.mov", b"x", media_type="video/quicktime"),
        File("a.gif", b"x", media_type="image/gif"),
        UnknownPart('{"guardContent":{"text":{"text":"x"}}}'),
    )
    body, codes = sent(Prompt((system("Rules."), Message("user", parts), assistant("ok"), system("More."))))
    assert body["system"] == [{"text": "Rules."}, {"text": "More."}]
    assert codes == ["system_moved"]
    assert body["messages"][0]["content"] == [
        {"text": "look"},
        {"cachePoint": {"type": "default"}},
        {"image": {"format": "jpeg", "source": {"bytes": "aGk="}}},
        {"image": {"format": "webp", "source": {"bytes": "aGk="}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}},
        {"document": {"name": "my report v2", "format": "pdf", "source": {"bytes": "JVBERg=="}}},
        {"document": {"name": "a", "format": "txt", "source": {"bytes": "eA=="}}},
        {"video": {"format": "mov", "source": {"bytes": "eA=="}}},
        {"image": {"format": "gif", "source": {"bytes": "eA=="}}},
        {"guardContent": {"text": {"text": "x"}}},
    ]
    with pytest.raises(Unsupported, match="by their bytes"):
        sent(Prompt((user(Image(url="https://h/a.png")),)))


def test_content_that_cannot_be_sent_gives_a_notice() -> None:
    history = (user(" "), assistant(ToolCall("1", "look", raw_arguments="{")), Message("user", (Thought("x"),)))
    body, codes = sent(Prompt((user("go"), *history), tools=(TOOL,)))
    assert codes == ["message_not_sent", "arguments_not_sent", "part_not_sent"]
    assert body["messages"][1]["content"] == [{"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}]


@pytest.mark.parametrize("media_type", ["image/bmp", "image/svg+xml", "image/tiff"])
def test_a_picture_of_another_format_is_an_error(media_type: str) -> None:
    for part in (Image(data=b"x", media_type=media_type), File(name="a", data=b"x", media_type=media_type)):
        with pytest.raises(Unsupported, match="pictures are png"):
            asides.explain("bedrock:anthropic.claude-sonnet-5", [Message("user", (part,))], base_url="http://127.0.0.1")


def test_blocks_of_unknown_form_stand_apart_from_results_too() -> None:
    native = UnknownPart('{"guardContent":{"text":{"text":"?"}}}')
    result = Message("tool", (ToolResult("c1", "blue", "look"),))
    called = Message("assistant", (ToolCall("c1", "look", {}),))
    body, notices = sent(Prompt((user("hi"), called, result, Message("user", (native,))), tools=(TOOL,)), RESULTS_ALONE)
    assert [next(iter(turn["content"][0])) for turn in body["messages"][-3:]] == ["toolResult", "text", "guardContent"]
    assert notices == ["turn_added"]


@pytest.mark.parametrize(
    ("model", "goes_back"),
    [
        ("bedrock:minimax.minimax-m2", True),
        ("bedrock:us.minimax.minimax-m2", True),
        ("bedrock:moonshot.kimi-k2-thinking", True),
        ("bedrock:moonshotai.kimi-k2.5", True),
        ("bedrock:openai.gpt-oss-120b-1:0", True),
        ("bedrock:zai.glm-4.7", True),
        ("bedrock:zai.glm-5.3", True),
        ("bedrock:deepseek.v3-v1:0", False),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("bedrock:amazon.nova-2-lite-v1:0", False),
    ],
)
def test_unsigned_thinking_goes_back_in_a_tool_loop_to_the_models_that_take_it(model: str, goes_back: bool) -> None:
    thought = Thought("hm", "raw", "block")
    history = (
        user("go"),
        assistant(thought, ToolCall("c1", "look", {})),
        Message("tool", (ToolResult("c1", "blue", "look"),)),
    )
    body, _ = sent(Prompt(history, tools=(Tool("look"),)), model, planned=True)
    block = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    assert (block in body["messages"][1]["content"]) is goes_back
    assert ("hm" in json.dumps(body)) is goes_back
