"""FT-39, FT-30, pain A4, C8 and D: what the rows make of requests and replies, through plan, encode and decode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides import dialects
from asides.history.plan import plan
from asides.providers.find import find_provider, find_target
from asides.providers.provider import Capabilities, Target
from asides.values.errors import InvalidThinking
from asides.values.fold import fold
from asides.values.messages import Message, Prompt, Sampling, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Origin, Thinking, ThinkingSetting, Thought, read_thinking
from asides.values.tools import Tool

ENVIRON = {
    "AZURE_OPENAI_ENDPOINT": "https://resource.openai.azure.com",
    "OPENAI_COMPATIBLE_BASE_URL": "http://localhost:1/v1",
    "AWS_REGION": "us-east-1",
}
ASKING = {
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "thinking_token_budget",
    "reasoning_budget",
    "reasoning_budget_tokens",
    "chat_template_kwargs",
    "prompt_mode",
    "reasoning_split",
    "reasoning_format",
    "clear_thinking",
}


def _find(model: str) -> Target:
    return find_target(model, environ=ENVIRON)


def _body(model: str, prompt: Prompt, on_conflict: Any = "raise") -> dict[str, Any]:
    target = _find(model)
    planned = plan(prompt, target, on_conflict=on_conflict)
    request, _ = dialects.find_dialect(target.dialect).encode(planned.prompt, target)
    body: dict[str, Any] = msgspec.json.decode(request.body)
    return body


def _asked(model: str, thinking: ThinkingSetting) -> dict[str, Any]:
    body = _body(model, Prompt((user("Hi"),), thinking=read_thinking(thinking)[0]))
    return {name: value for name, value in body.items() if name in ASKING}


# --- asking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "high", "off"),
    [
        ("openai:gpt-5.1", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        ("azure:gpt-5.6-sol", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        (
            "deepseek:deepseek-v4-pro",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
            {"thinking": {"type": "disabled"}},
        ),
        ("moonshot:kimi-k2.6", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        ("qwen:qwen-plus", {"enable_thinking": True}, {"enable_thinking": False}),
        ("zai:glm-4.6", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        (
            "zai:glm-5.2",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
            {"thinking": {"type": "disabled"}},
        ),
        (
            "minimax:MiniMax-M3",
            {"thinking": {"type": "adaptive"}, "reasoning_split": True},
            {"thinking": {"type": "disabled"}, "reasoning_split": True},
        ),
        ("xai:grok-4.3", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        ("mistral:mistral-small-latest", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        (
            "groq:qwen/qwen3-32b",
            {"reasoning_format": "parsed"},
            {"reasoning_effort": "none", "reasoning_format": "parsed"},
        ),
        ("cerebras:zai-glm-4.7", {"clear_thinking": False}, {"reasoning_effort": "none", "clear_thinking": False}),
        ("together:Qwen/Qwen3.5-397B-A17B", {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}}),
        (
            "fireworks:accounts/fireworks/models/deepseek-v4-pro",
            {"reasoning_effort": "high"},
            {"reasoning_effort": "none"},
        ),
        (
            "openrouter:anthropic/claude-sonnet-4.5",
            {"reasoning": {"effort": "high"}},
            {"reasoning": {"enabled": False}},
        ),
        (
            "nvidia:nvidia/nemotron-3-nano",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            "vllm:Qwen/Qwen3-8B",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            "vllm:deepseek-ai/DeepSeek-V3.1",
            {"chat_template_kwargs": {"thinking": True}},
            {"chat_template_kwargs": {"thinking": False}},
        ),
        (
            "llamacpp:tiny-reasoner",
            {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "high"},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ("ollama-openai:qwen3", {}, {"reasoning_effort": "none"}),
        ("openai-compatible:unheard-of", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
    ],
)
def test_pain_A4_FT_39_each_host_is_asked_in_its_own_words(
    model: str, high: dict[str, Any], off: dict[str, Any]
) -> None:
    assert _asked(model, "high") == high
    assert _asked(model, "off") == off


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        ("openai:gpt-5", "max", {"reasoning_effort": "high"}),
        ("openai:gpt-5.6-luna", "minimal", {"reasoning_effort": "low"}),
        ("openai:o3", "minimal", {"reasoning_effort": "low"}),
        ("openai:gpt-6.1-sol", "max", {"reasoning_effort": "xhigh"}),
        ("moonshot:kimi-k3", "medium", {"reasoning_effort": "low"}),
        ("zai:glm-5.3", "xhigh", {"reasoning_effort": "high"}),
        ("zai:glm-5.2", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("xai:grok-3-mini", "medium", {"reasoning_effort": "low"}),
        ("groq:openai/gpt-oss-120b", "max", {"reasoning_effort": "high"}),
        ("mistral:magistral-medium-latest", "on", {"prompt_mode": "reasoning"}),
        # DeepSeek says itself what the efforts between its own mean.
        ("deepseek:deepseek-v4-pro", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek:deepseek-v4-pro", "xhigh", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek:deepseek-v4-pro", "minimal", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        # Budgets, where there is a field for them.
        ("qwen:qwen3-235b-a22b", 2048, {"enable_thinking": True, "thinking_budget": 2048}),
        (
            "vllm:Qwen/Qwen3-8B",
            2048,
            {"chat_template_kwargs": {"enable_thinking": True}, "thinking_token_budget": 2048},
        ),
        (
            "llamacpp:qwen3",
            512,
            {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_budget_tokens": 512},
        ),
        ("openrouter:any/model", 2048, {"reasoning": {"max_tokens": 2048}}),
        # Nothing asked, nothing sent, but what has the thinking sent apart.
        ("openai:gpt-5", None, {}),
        ("deepseek:deepseek-v4-pro", None, {}),
        ("minimax:MiniMax-M2", None, {"reasoning_split": True}),
        ("groq:llama-3.3-70b-versatile", None, {}),
        ("groq:openai/gpt-oss-20b", None, {}),
        ("groq:deepseek-r1-distill-llama-70b", None, {"reasoning_format": "parsed"}),
    ],
)
def test_pain_D2_the_nearest_effort_that_a_model_takes(
    model: str, thinking: ThinkingSetting, expected: dict[str, Any]
) -> None:
    assert _asked(model, thinking) == expected


@pytest.mark.parametrize(
    "model",
    [
        "openai:o4-mini",
        "openai:gpt-5",
        "openai:gpt-5.2-pro",
        "openai:gpt-6-astra",
        "openai:gpt-6.1-sol",
        "moonshot:kimi-k3",
        "moonshot:kimi-k2.7-code",
        "zai:glm-5.3",
        "minimax:MiniMax-M2.5",
        "xai:grok-4.5",
        "groq:openai/gpt-oss-20b",
        "cerebras:gpt-oss-120b",
        "qwen:qwen3-235b-a22b-thinking-2507",
        "vllm:Qwen/QwQ-32B",
    ],
)
def test_models_that_cannot_stop_say_so_before_a_byte_is_sent(model: str) -> None:
    with pytest.raises(InvalidThinking, match="cannot stop thinking"):
        _asked(model, "off")


@pytest.mark.parametrize(
    "model", ["openai:gpt-4o", "openai:gpt-5-chat-latest", "xai:grok-4.20-non-reasoning", "perplexity:sonar-pro"]
)
def test_models_that_do_not_think_say_so_before_a_byte_is_sent(model: str) -> None:
    with pytest.raises(InvalidThinking, match="does not think"):
        _asked(model, "high")


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("openai:gpt-5.1", "temperature"),
        ("openai:o3", "top_p"),
        ("deepseek:deepseek-v4-pro", "temperature"),
        ("moonshot:kimi-k2.5", "temperature"),
        ("xai:grok-4.5", "presence_penalty"),
    ],
)
def test_pain_D3_settings_that_a_thinking_model_refuses(model: str, setting: str) -> None:
    prompt = Prompt((user("Hi"),), thinking=Thinking(effort="high"), sampling=msgspec.convert({setting: 0.5}, Sampling))
    with pytest.raises(InvalidThinking, match=setting):
        _body(model, prompt)
    assert setting not in _body(model, prompt, "adjust")
    assert setting in _body("openai:gpt-5.1", msgspec.structs.replace(prompt, thinking=Thinking(mode="off")))


@pytest.mark.parametrize("model", ["deepseek:deepseek-v4-flash", "qwen:qwen3-max", "moonshot:kimi-k2.6", "zai:glm-4.6"])
def test_pain_D4_a_forced_tool_and_thinking_contradict_each_other(model: str) -> None:
    tools = (Tool("add"),)
    forced = Prompt((user("Hi"),), thinking=Thinking(mode="on"), tools=tools, tool_choice="required")
    with pytest.raises(InvalidThinking, match="forced"):
        _body(model, forced)
    assert _body(model, msgspec.structs.replace(forced, thinking=Thinking(mode="off")))["tool_choice"] == "required"


def test_the_limit_and_the_system_role_have_the_names_that_the_host_knows() -> None:
    prompt = Prompt((user("Hi"),), system="Be brief.", max_tokens=100)
    seen = {
        model: _body(model, prompt)
        for model in ("openai:gpt-5", "openai:gpt-4o", "mistral:mistral-large", "xai:grok-4.5")
    }
    assert {model: body["messages"][0]["role"] for model, body in seen.items()} == {
        "openai:gpt-5": "developer",
        "openai:gpt-4o": "system",
        "mistral:mistral-large": "system",
        "xai:grok-4.5": "system",
    }
    assert [model for model, body in seen.items() if "max_tokens" in body] == ["mistral:mistral-large"]
    assert [model for model, body in seen.items() if "stream_options" not in body] == ["mistral:mistral-large"]


# --- what is known ------------------------------------------------------------------------------------------------


def test_FT_30_what_a_model_can_do_is_a_record() -> None:
    assert find_provider("deepseek").capabilities("DeepSeek-V4-Pro") == Capabilities(
        thinking="optional",
        default="on",
        kind="raw",
        efforts=("low", "high", "max"),
        can_stop=True,
        forced_tools=False,
        forbids=("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"),
        replay="tool_turns",
        since="2026-04-24",
        source="api-docs.deepseek.com/guides/thinking_mode",
    )
    astra = find_provider("openai").capabilities("gpt-6-astra")
    assert (astra.thinking, astra.can_stop, astra.kind, astra.replay) == ("always", False, "hidden", "never")
    assert find_provider("openai").capabilities("gpt-4o").thinking == "never"


def test_FT_30_unknown_is_unknown() -> None:
    assert find_provider("openai").capabilities("gpt-9") == Capabilities()
    assert find_provider("openai-compatible").capabilities("who-knows").can_stop is None


@pytest.mark.parametrize(
    "name",
    "openrouter deepseek groq moonshot zai xai mistral ollama vllm lmstudio llamacpp azure together fireworks "
    "cerebras".split(),
)
def test_FT_39_the_hosts_that_people_use_are_rows(name: str) -> None:
    assert find_provider(name).name == name


@pytest.mark.parametrize(
    "name",
    "alibaba azure avian bedrock bedrock_mantle cerebras cloudflare crusoe databricks deepseek doubleword "
    "github_copilot google gpustack groq heroku huggingface litellm_proxy llamacpp mirascope_router mistral "
    "mistralrs nvidia ollama "
    "ollama_cloud openai openrouter perplexity portkey pydantic_gateway snowflake together venice vercel_gateway vllm "
    "watsonx writer xai zai".split(),
)
def test_hosts_of_which_there_are_recordings_are_verified_rows(name: str) -> None:
    assert find_provider(name).tier == "verified"


# --- what goes back -----------------------------------------------------------------------------------------------


def _loop(model: str, *, via: str = "reasoning_content", text: str = "THOUGHT") -> Prompt:
    """A plain turn, a turn that called a tool, and a question behind them."""
    target = _find(model)
    origin = Origin(target.provider.name, target.base_url, target.model)
    thoughts = (Thought(text, origin=origin, via=via),) if text else ()
    return Prompt(
        (
            user("one"),
            Message("assistant", (*thoughts, Text("plain"))),
            user("two"),
            Message("assistant", (*thoughts, ToolCall("call_1", "add", {}))),
            Message("tool", (ToolResult("call_1", "3"),)),
            Message("assistant", (*thoughts, Text("three"))),
            user("four"),
        )
    )


def _turns_with_thinking(model: str, prompt: Prompt, field: str) -> list[int]:
    messages = _body(model, prompt)["messages"]
    return [place for place, message in enumerate(messages) if field in message]


@pytest.mark.parametrize(
    ("model", "field", "turns"),
    [
        ("deepseek:deepseek-v4-pro", "reasoning_content", [3]),
        ("deepseek:deepseek-reasoner", "reasoning_content", [3]),
        ("deepseek:deepseek-r1", "reasoning_content", []),
        ("moonshot:kimi-k2.6", "reasoning_content", [3]),
        ("zai:glm-4.7", "reasoning_content", [3]),
        ("zai-coding:glm-4.7", "reasoning_content", [1, 3, 5]),
        ("qwen:qwen3-max", "reasoning_content", [3]),
        ("qwen:qwen3.6-plus", "reasoning_content", [1, 3, 5]),
        ("qwen:qwen3.7-max", "reasoning_content", [1, 3, 5]),
        ("qwen:qwen3.8-max", "reasoning_content", [1, 3, 5]),
        ("qwen:qwen3.5-plus", "reasoning_content", [3]),
        ("groq:qwen/qwen3-32b", "reasoning", []),
        ("groq:qwen/qwen3.6-27b", "reasoning", [3]),
        ("xai:grok-3-mini", "reasoning_content", []),
        ("perplexity:sonar-reasoning-pro", "reasoning_content", []),
        ("groq:openai/gpt-oss-20b", "reasoning", [3]),
        ("vllm:Qwen/Qwen3-8B", "reasoning", [3]),
        ("llamacpp:qwen3", "reasoning_content", [3]),
        ("openrouter:deepseek/deepseek-v4", "reasoning", [1, 3, 5]),
    ],
)
def test_pain_C8_H4_what_goes_back_is_the_rows_rule(model: str, field: str, turns: list[int]) -> None:
    assert _turns_with_thinking(model, _loop(model, via=field), field) == turns


def test_pain_C8_within_a_tool_loop_the_thinking_goes_back_to_glm() -> None:
    prompt = _loop("zai:glm-4.7")
    in_the_loop = msgspec.structs.replace(prompt, messages=prompt.messages[:5])
    assert _turns_with_thinking("zai:glm-4.7", in_the_loop, "reasoning_content") == [3]


@pytest.mark.parametrize(
    ("model", "turns"), [("deepseek:deepseek-v4-pro", [3]), ("moonshot:kimi-k3", [3]), ("zai:glm-4.7", [])]
)
def test_pain_C8_H4_a_tool_turn_carries_the_field_also_when_it_is_empty(model: str, turns: list[int]) -> None:
    prompt = _loop(model, text="")
    assert _turns_with_thinking(model, prompt, "reasoning_content") == turns


def test_cerebras_glm_gets_its_thinking_back_in_tags_and_is_told_to_keep_it() -> None:
    prompt = _loop("cerebras:zai-glm-4.7", via="reasoning")
    body = _body("cerebras:zai-glm-4.7", msgspec.structs.replace(prompt, messages=prompt.messages[:5]))
    assert body["messages"][3]["content"] == "<think>THOUGHT</think>"
    assert body["clear_thinking"] is False


# --- what comes in ------------------------------------------------------------------------------------------------


def _decoded(model: str, *deltas: dict[str, str], finish: str = "stop") -> Reply:
    """The reply to these deltas, streamed; checked against the same said in one message."""
    target = _find(model)
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    message: dict[str, str] = {}
    for delta in deltas:
        for name, text in delta.items():
            message[name] = message.get(name, "") + text
    whole = msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    replies: list[Reply] = []
    for body in (lines + b"data: [DONE]\n\n", whole):
        decoder = dialects.find_dialect("openai_chat").decoder(target)
        replies.append(fold([*decoder.feed(body), *decoder.finish()]))
    assert replies[0] == replies[1]
    return replies[0]


def _parts(reply: Reply) -> tuple[str, str | None]:
    return reply.text, reply.thinking.text or None


OPENED = [
    "vllm:deepseek-ai/DeepSeek-R1",
    "sglang:Qwen/QwQ-32B",
    "llamacpp:Qwen3-4B-Thinking-2507",
    "openai-compatible:qwq",
]


@pytest.mark.parametrize("model", OPENED)
def test_pain_B1_where_the_template_opened_the_tag_the_text_begins_in_thinking(model: str) -> None:
    assert _parts(_decoded(model, {"content": "plan"}, {"content": "</th"}, {"content": "ink>\n\n42"})) == (
        "42",
        "plan",
    )


@pytest.mark.parametrize("model", OPENED)
def test_pain_B1_a_server_that_writes_the_opening_tag_is_read_as_well(model: str) -> None:
    assert _parts(_decoded(model, {"content": "<think>plan"}, {"content": "</think>\n\n42"})) == ("42", "plan")


@pytest.mark.parametrize("model", [*OPENED, "llamacpp:Qwen3-1.7B-Q4_K_M"])
@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_pain_B2_a_server_that_sends_thinking_apart_has_closed_the_tag_itself(model: str, field: str) -> None:
    assert _parts(_decoded(model, {field: "plan"}, {"content": "4"}, {"content": "2"})) == ("42", "plan")


def test_pain_B1_a_hybrid_under_llamacpp_may_send_a_lone_closing_tag() -> None:
    model = "llamacpp:Qwen3-1.7B-Q4_K_M"
    assert _parts(_decoded(model, {"content": "plan</think>\n\n42"})) == ("42", "plan")
    assert _parts(_decoded(model, {"content": "42"})) == ("42", None)


@pytest.mark.parametrize(
    "model", ["openai:gpt-4o", "deepseek:deepseek-v4-pro", "moonshot:kimi-k3", "xai:grok-4.5", "zai:glm-5"]
)
def test_pain_B2_a_host_that_never_inlines_is_taken_at_its_word(model: str) -> None:
    assert _parts(_decoded(model, {"content": "<think> is a tag"})) == ("<think> is a tag", None)


@pytest.mark.parametrize(
    ("model", "content"),
    [
        ("groq:qwen/qwen3-32b", "<think>plan</think>42"),
        ("perplexity:sonar-reasoning-pro", "<think>plan</think>42"),
        ("bedrock:openai.gpt-oss-20b-1:0", "<reasoning>plan</reasoning>42"),
        ("google-openai:gemini-2.5-pro", "<thought>plan</thought>42"),
        ("mistral:magistral-small-2506", "<think>plan</think>42"),
        ("vllm:google/gemma-4-27b-it", "<|channel>thought\nplan<channel|>42"),
        (
            "vllm:openai/gpt-oss-20b",
            "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>42",
        ),
        ("vllm:mistralai/Magistral-Small", "[THINK]plan[/THINK]42"),
        ("vllm:ByteDance-Seed/Seed-OSS-36B", "<seed:think>plan</seed:think>42"),
        ("minimax:MiniMax-M2", "<think>plan</think>42"),
        ("openai-compatible:any", "<thinking>plan</thinking>42"),
    ],
)
def test_pain_B1_each_host_is_read_in_the_grammars_that_its_models_write(model: str, content: str) -> None:
    text, thinking = _parts(_decoded(model, {"content": content}))
    assert (text, (thinking or "").strip()) == ("42", "plan")


@pytest.mark.parametrize(
    ("model", "when"),
    [
        ("lmstudio:openai/gpt-oss-20b", "tool_turns"),
        ("sambanova:gpt-oss-120b", "tool_turns"),
        ("lmstudio:qwen3", "never"),
        ("sambanova:DeepSeek-R1", "never"),
    ],
)
def test_gpt_oss_gets_its_thinking_back_in_a_tool_loop(model: str, when: str) -> None:
    target = find_target(model)
    assert target.provider.replay_rule(target.model).when == when
