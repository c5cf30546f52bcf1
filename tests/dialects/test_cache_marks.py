"""The breakpoints of `cache=`: where they are, how many, and that they move with what stays the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import find_dialect
from asides.history.plan import encode_plan, plan
from asides.intake.documents import import_messages
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.parts import Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thinking
from asides.values.tools import Tool

ENVIRON = {"AWS_REGION": "us-east-1"}
CLAUDE = find_target("anthropic:claude-sonnet-4-5")
BEDROCK = find_target("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", environ=ENVIRON)
NOVA = find_target("bedrock:us.amazon.nova-pro-v1:0", environ=ENVIRON)
OPENROUTER = find_target("openrouter:anthropic/claude-sonnet-4.5")
MARK = {"type": "ephemeral"}
HISTORY = (user("2 + 2?"), assistant("4"), user("3 + 3?"), assistant("6"), user("and?"))
LOOP = (
    user("go"),
    assistant(ToolCall("c1", "look", {"at": 1.5}), ToolCall("c2", "look", {})),
    Message("tool", (ToolResult("c1", "one", "look"),)),
    Message("tool", (ToolResult("c2", "two", "look"),)),
)


def send(target: Target, messages: tuple[Message, ...], **settings: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"cache": True, "system": "Be brief.", "tools": (Tool("look"), Tool("find")), **settings}
    planned = plan(Prompt(messages, **given), target)
    body: dict[str, Any] = msgspec.json.decode(encode_plan(planned, target, find_dialect(target.dialect))[0].body)
    return body


def find_marks(value: Any, path: str = "") -> list[str]:
    """The paths of all breakpoints."""
    if isinstance(value, dict):
        own = [path for name in value if name in ("cache_control", "cachePoint")]
        return own + [found for name, inner in value.items() for found in find_marks(inner, f"{path}.{name}")]
    if isinstance(value, list):
        return [found for place, inner in enumerate(value) for found in find_marks(inner, f"{path}[{place}]")]
    return []


def test_the_tools_the_system_prompt_the_newest_message_and_the_end_of_the_request_before_are_marked() -> None:
    body = send(CLAUDE, HISTORY)
    assert find_marks(body) == [
        ".system[0]",
        ".tools[1]",
        ".messages[2].content[0]",
        ".messages[4].content[0]",
    ]
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert body["messages"][4] == {
        "role": "user",
        "content": [{"type": "text", "text": "and?", "cache_control": MARK}],
    }


def test_a_first_question_has_one_mark_of_its_own() -> None:
    assert find_marks(send(CLAUDE, HISTORY[:1], tools=(), system=None)) == [".messages[0].content[0]"]


def test_results_are_marked_after_the_last_one_and_the_bytes_of_the_others_stay() -> None:
    body = send(CLAUDE, LOOP)
    assert find_marks(body["messages"]) == ["[0].content[0]", "[2].content[1]"]
    assert body["messages"][1]["content"][0]["input"] == {"at": 1.5}
    assert body["messages"][2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "c2",
        "content": "two",
        "cache_control": MARK,
    }


def test_points_are_blocks_of_their_own() -> None:
    body = send(BEDROCK, HISTORY, cache="1h")
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["toolConfig"]["tools"][-1] == point
    assert body["system"] == [{"text": "Be brief."}, point]
    assert body["messages"][4]["content"] == [{"text": "and?"}, point]
    assert body["messages"][2]["content"] == [{"text": "3 + 3?"}, point]
    assert len(find_marks(body)) == 4


def test_models_have_points_where_they_are_documented() -> None:
    assert find_marks(send(NOVA, HISTORY)) == [".system[1]", ".messages[2].content[1]", ".messages[4].content[1]"]
    assert find_marks(send(find_target("bedrock:openai.gpt-oss-120b-1:0", environ=ENVIRON), HISTORY)) == []


def test_a_chat_host_that_takes_them_gets_them() -> None:
    body = send(OPENROUTER, HISTORY)
    assert find_marks(body) == [
        ".messages[0].content[0]",
        ".messages[3].content[0]",
        ".messages[5].content[0]",
        ".tools[1]",
    ]


@pytest.mark.parametrize("target", [CLAUDE, BEDROCK, OPENROUTER], ids=lambda target: target.provider.name)
@pytest.mark.parametrize("own", range(6))
def test_there_are_never_more_than_four_of_ours_and_the_caller_s_stay(target: Target, own: int) -> None:
    texts = tuple(Text(f"page {number}", cache=number < own) for number in range(6))
    marks = find_marks(send(target, (Message("user", texts), assistant("fine"), user("and?"))))
    assert len(marks) == max(4, own)


def test_a_block_that_the_caller_marked_is_not_marked_twice() -> None:
    body = send(CLAUDE, (Message("user", (Text("hi", cache="1h"),)),), tools=(), system=None)
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]


@pytest.mark.parametrize(
    ("cache", "own", "lifetimes"),
    [
        # In the order of the cache: tools, system, messages. A longer one never follows a shorter one.
        (True, "1h", ["1h", "1h", "1h", "1h"]),
        ("1h", True, ["1h", "1h", None, None]),
        ("1h", "1h", ["1h", "1h", "1h", "1h"]),
        ("24h", False, ["1h", "1h", "1h", "1h"]),
    ],
)
def test_a_longer_lifetime_never_follows_a_shorter_one(
    cache: bool | str, own: bool | str, lifetimes: list[str | None]
) -> None:
    first = Message("user", (Text("manual", cache=own),))
    body = send(CLAUDE, (first, assistant("fine"), user("and?")), cache=cache)
    marked = [body["tools"][1], body["system"][0], body["messages"][0]["content"][0], body["messages"][2]["content"][0]]
    assert [each["cache_control"].get("ttl") for each in marked] == lifetimes


def test_where_the_caller_marked_the_front_we_mark_only_messages() -> None:
    body = send(CLAUDE, HISTORY, tools=(Tool("look", cache=True), Tool("find")))
    assert find_marks(body) == [".tools[0]", ".messages[2].content[0]", ".messages[4].content[0]"]
    blocks = Message("system", (Text("Rules.", cache=True), Text("More rules.")))
    body = send(CLAUDE, (blocks, *HISTORY), system=None)
    assert find_marks(body) == [".system[0]", ".messages[2].content[0]", ".messages[4].content[0]"]


def test_a_message_without_content_gets_no_mark() -> None:
    body = send(OPENROUTER, (user("hi"), assistant("yes?"), Message("user", (Text(""),))), tools=(), system=None)
    assert find_marks(body) == [".messages[0].content[0]"]


def test_a_block_of_the_caller_s_own_keeps_its_bytes() -> None:
    body = send(CLAUDE, (Message("user", (UnknownPart('{"type":"new","n":1.50}'),)),), tools=(), system=None)
    assert body["messages"][0]["content"] == [{"type": "new", "n": 1.5, "cache_control": MARK}]


def test_an_answer_that_the_model_continues_is_not_the_end_of_what_stays() -> None:
    marks = find_marks(send(CLAUDE, (user("count"), assistant("1, 2,")), tools=(), system=None))
    assert marks == [".messages[0].content[0]"]


def test_hosts_with_a_cache_of_their_own_get_a_key_that_stays() -> None:
    bodies = [
        asides.explain("openai:gpt-5.5", list(HISTORY[:length]), system="Be brief.", cache=True).body
        for length in (1, 3, 5)
    ]
    keys = {body["prompt_cache_key"] for body in bodies}
    assert len(keys) == 1
    assert "prompt_cache_retention" not in bodies[0]
    other = asides.explain("openai:gpt-5.5", "another", system="Be brief.", cache="24h").body
    assert other["prompt_cache_key"] not in keys
    assert other["prompt_cache_retention"] == "24h"
    assert "prompt_cache_key" in asides.explain("openai-chat:gpt-4o", "hi", cache=True).body
    assert "prompt_cache_key" not in asides.explain("openai:gpt-5.5", "hi").body


@pytest.mark.parametrize(
    "model", ["gemini:gemini-3-pro-preview", "groq:qwen/qwen3-32b", "ollama:qwen3", "openai:gpt-5"]
)
def test_a_lifetime_that_cannot_be_set_is_reported(model: str) -> None:
    assert "cache_not_sent" in [notice.code for notice in asides.explain(model, "hi", cache="1h").notices]
    assert "cache_not_sent" not in [notice.code for notice in asides.explain(model, "hi", cache=True).notices]


@pytest.mark.parametrize("wrong", ["yes", "2 days", ""])
def test_a_lifetime_that_nobody_has_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="cache is True or False, or how long it lasts: 5m, 1h, 24h"):
        asides.explain("anthropic:claude-sonnet-4-5", "hi", cache=wrong)


def test_the_effort_between_two_questions_takes_no_mark() -> None:
    target = find_target("anthropic:claude-opus-5-5")
    history = (user("plan it"), Message("assistant", "so", effort="high"), system(" "), user("sum up"))
    body = send(target, history, thinking=Thinking(effort="low"), tools=(), system=None)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "system", "user"]
    assert find_marks(body) == [".messages[0].content[0]", ".messages[3].content[0]"]


@pytest.mark.parametrize("cache", [False, True])
def test_breakpoints_of_a_history_that_was_read_count_once(cache: bool) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "blue", **mark}]}
    messages = import_messages(
        [
            {"role": "user", "content": [{"type": "text", "text": "Look.", **mark}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}, **mark}]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": "Blue.", **mark}]},
            {"role": "user", "content": "And?"},
        ],
        "anthropic",
    )
    prompt = Prompt(messages, system="Be brief.", cache=cache)
    request, _ = find_dialect("anthropic").encode(prompt, find_target("anthropic:claude-opus-4-5"))
    assert request.body.count(b'"cache_control"') == 4
