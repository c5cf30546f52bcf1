"""The stage refuses what Anthropic's servers refuse, and never what asides sends."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.fold import Fold
from asides.values.messages import Message, user
from asides.values.parts import ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

BUDGET_MODEL = "claude-sonnet-4-5"
ADAPTIVE_MODEL = "claude-opus-5-5"
TOOLS = [Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})]


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client(api_key="sk-ant-made-up") as client:
        yield client


def step(number: int, *, last: bool) -> Say:
    """A turn with everything in it: a thought, a redacted one, words, another thought, a call (but in the last one)."""
    events: list[Event] = [
        ReplyStarted(None, f"msg_{number}"),
        ThinkingDelta(f"plan {number}", 0),
        ThoughtSealed(Seal("redacted", f"cipher-{number}"), 1, "hidden", "block"),
        TextDelta(f"step {number}", 2),
        ThinkingDelta("more ", 3),
        ThinkingDelta("thought", 3),
    ]
    if last:
        events.append(TextDelta("done", 4))
    else:
        events += [ToolCallDelta(4, f"toolu_{number}", "look_up"), ToolCallDelta(4, arguments=f'{{"n": {number}}}')]
    return Say(events=(*events, ReplyEnded(StopReason("stop" if last else "tool_calls"))))


def steps(count: int) -> Callable[[ServedRequest], Say]:
    def play(request: ServedRequest) -> Say:
        done = sum(isinstance(part, ToolResult) for message in request.prompt.messages for part in message.parts)
        return step(done, last=done >= count)

    return play


def loop(client: asides.Client, stage: Stage, model: str, thinking: Any, **options: Any) -> list[Message]:
    """Ask, run the tools, ask again, until there is nothing to run: the whole history."""
    history = [user("go")]
    for _ in range(10):
        reply = client.ask(
            f"anthropic:{model}", history, base_url=stage.url, tools=TOOLS, thinking=thinking, retries=0, **options
        )
        message = reply.to_message()
        assert message is not None
        history.append(message)
        if not reply.tool_calls:
            return history
        history.append(Message("tool", tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)))
    raise AssertionError("it never ended")


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        (BUDGET_MODEL, 2000),
        (BUDGET_MODEL, "high"),
        ("claude-opus-4-6", "max"),
        (ADAPTIVE_MODEL, "low"),
        ("claude-sonnet-5-5", "off"),
        ("claude-sonnet-5-5", {"type": "between_tools"}),
        ("other", 4000),
    ],
)
def test_a_tool_loop_of_three_steps_is_never_refused(
    client: asides.Client, stage: OpenStage, model: str, thinking: Any
) -> None:
    opened = stage(steps(3))
    history = loop(client, opened, model, thinking)
    assert len(opened.requests) == 4
    sent = json.loads(opened.requests[-1].body)["messages"]
    turns = [turn["content"] for turn in sent if turn["role"] == "assistant"]
    kinds = ["thinking", "redacted_thinking", "text", "thinking", "tool_use"]
    assert [[block["type"] for block in turn] for turn in turns] == [kinds] * 3
    assert history[-1].text == "step 3done"
    # And once more, after it all.
    client.ask(
        f"anthropic:{model}", [*history, user("thanks")], base_url=opened.url, tools=TOOLS, thinking=thinking, retries=0
    )
    assert refused(opened) == []


def test_hidden_thinking_is_signed_and_goes_back(client: asides.Client, stage: OpenStage) -> None:
    opened = stage(steps(2))
    history = loop(client, opened, ADAPTIVE_MODEL, asides.Thinking(effort="low", show="none"))
    thoughts = [part for part in history[1].parts if isinstance(part, Thought)]
    assert [(thought.text, thought.kind, len(thought.seals)) for thought in thoughts] == [("", "hidden", 1)] * 3
    assert (len(opened.requests), refused(opened)) == (3, [])


def test_one_byte_of_a_signature_or_a_thought_is_enough_to_be_refused(client: asides.Client, stage: OpenStage) -> None:
    opened = stage(steps(1))
    loop(client, opened, BUDGET_MODEL, 2000)
    body = json.loads(opened.requests[-1].body)
    assert post(opened, body).status == 200
    for field in ("signature", "thinking"):
        changed = json.loads(json.dumps(body))
        block = changed["messages"][1]["content"][0]
        block[field] = block[field][:-2] + ("A" if block[field][-2] != "A" else "B") + block[field][-1]
        answer = post(opened, changed)
        assert answer.status == 400
        assert answer.json["error"]["type"] == "invalid_request_error"
        expected = {"signature": "Invalid `signature` in `thinking` block", "thinking": "cannot be modified"}
        assert expected[field] in answer.json["error"]["message"]
    changed = json.loads(json.dumps(body))
    changed["messages"][1]["content"][1]["data"] += "x"
    assert "Invalid `data`" in post(opened, changed).json["error"]["message"]


@pytest.mark.requirement("H5", "pain C2")
def test_pain_C2_a_switch_of_models_and_back_is_never_refused(client: asides.Client, stage: OpenStage) -> None:
    opened = stage(Say(text="42", thinking="plan"))
    history = [user("one")]
    for number, model in enumerate(["claude-opus-4-1", BUDGET_MODEL, "claude-opus-4-1", "claude-opus-4-6"]):
        reply = client.ask(f"anthropic:{model}", history, base_url=opened.url, thinking=2000, retries=0)
        message = reply.to_message()
        assert message is not None
        history += [message, user(f"and {number}")]
    seen = [signatures(request.body) for request in opened.requests]
    assert [len(values) for values in seen] == [0, 0, 1, 0], "only its own go back to a model, and they do"
    assert all(text in opened.requests[-1].body for text in (b"one", b"and 0", b"and 1", b"and 2"))
    assert refused(opened) == []


def test_signatures_of_another_stage_are_refused(client: asides.Client, stage: OpenStage) -> None:
    first, second = stage(Say(text="42", thinking="plan")), stage(Say(text="43", thinking="plan"))
    reply = client.ask(f"anthropic:{BUDGET_MODEL}", "one", base_url=first.url, thinking=2000)
    message = reply.to_message()
    assert message is not None
    history = [user("one"), message, user("two")]
    client.ask(f"anthropic:{BUDGET_MODEL}", history, base_url=second.url, thinking=2000, retries=0)
    assert signatures(second.requests[0].body) == []
    client.ask(f"anthropic:{BUDGET_MODEL}", history, base_url=first.url, thinking=2000, retries=0)
    assert len(signatures(first.requests[1].body)) == 1
    assert refused(first) == refused(second) == []


def test_signatures_of_the_newest_models_are_bound_to_everything_before_them(
    client: asides.Client, stage: OpenStage
) -> None:
    opened = stage(Say(text="42", thinking="plan"))
    for model, accepted in ((BUDGET_MODEL, True), (ADAPTIVE_MODEL, False)):
        name = f"anthropic:{model}"
        reply = client.ask(name, "one", base_url=opened.url, system="It is Monday.", thinking="low")
        message = reply.to_message()
        assert message is not None
        history = [user("one"), message, user("two")]
        client.ask(name, history, base_url=opened.url, system="It is Monday.", thinking="low", retries=0)
        changed = json.loads(opened.requests[-1].body) | {"system": "It is Tuesday."}
        assert (post(opened, changed).status == 200) is accepted


@pytest.mark.requirement("pain C3")
def test_pain_C3_a_conversation_continues_after_a_stream_left_at_any_event(
    client: asides.Client, stage: OpenStage
) -> None:
    opened = stage(steps(2))
    model = f"anthropic:{BUDGET_MODEL}"
    options: dict[str, Any] = {"base_url": opened.url, "tools": TOOLS, "thinking": 2000, "retries": 0}
    with client.stream(model, "go", **options) as events:
        count = len(list(events))
    assert count > 8
    for left_at in range(count + 1):
        folding = Fold()
        with client.stream(model, "go", **options) as events:
            for number, event in enumerate(events):
                if number == left_at:
                    break
                folding.feed([event])
        partial = folding.reply().to_message()
        history = [user("go"), *([partial] if partial is not None and partial.parts else []), user("go on")]
        assert client.ask(model, history, **options).complete, left_at
        assert refused(opened) == [], left_at


@pytest.mark.requirement("pain C1")
@pytest.mark.parametrize("model", [BUDGET_MODEL, "claude-opus-4-6", ADAPTIVE_MODEL])
def test_pain_C1_a_conversation_continues_after_a_tool_turn_from_elsewhere(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    """History in another library's shape has no thinking to give back; the request is made so that it is accepted."""
    opened = stage(steps(0))
    history: list[Any] = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "I will look.",
            "reasoning_content": "a thought of another model",
            "tool_calls": [
                {"id": "call:1|x", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call:1|x", "content": "42"},
    ]
    thinking: Any = 2000 if model != ADAPTIVE_MODEL else "high"
    reply = client.ask(f"anthropic:{model}", history, base_url=opened.url, tools=TOOLS, thinking=thinking, retries=0)
    body = opened.requests[0].body
    assert b"another model" not in body
    expected = {BUDGET_MODEL: None, "claude-opus-4-6": "adaptive", ADAPTIVE_MODEL: "adaptive"}[model]
    assert (json.loads(body).get("thinking") or {}).get("type") == expected
    paused = [notice for notice in reply.warnings if notice.code == "thinking_paused"]
    assert len(paused) == (0 if model == ADAPTIVE_MODEL else 1)
    assert refused(opened) == []


def test_the_stage_refuses_such_a_turn_without_a_thought(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    answer = post(
        opened,
        {
            "model": BUDGET_MODEL,
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "tools": DEFINED,
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
            ],
        },
    )
    assert answer.status == 400
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in answer.json["error"]["message"]


ASKED: dict[str, Any] = {"model": BUDGET_MODEL, "max_tokens": 4000, "messages": [{"role": "user", "content": "hi"}]}
ENABLED: dict[str, Any] = {"type": "enabled", "budget_tokens": 2000}
CALLS = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
HI = {"role": "user", "content": "hi"}
DEFINED = [{"name": "look_up", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"thinking": {"type": "enabled", "budget_tokens": 512}}, "greater than or equal to 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, "`max_tokens` must be greater than"),
        ({"thinking": {"type": "adaptive"}}, "adaptive thinking is not supported on this model"),
        ({"model": ADAPTIVE_MODEL, "thinking": ENABLED}, '"thinking.type.enabled" is not supported'),
        (
            {
                "model": "claude-sonnet-5-5",
                "thinking": {"type": "between_tools"},
                "output_config": {"effort": "xhigh"},
            },
            "'xhigh' is not supported when thinking is disabled",
        ),
        ({"model": ADAPTIVE_MODEL, "thinking": {"type": "disabled"}}, '"thinking.type.disabled" is not supported'),
        ({"model": "claude-3-5-haiku-latest", "thinking": ENABLED}, "does not support"),
        ({"thinking": ENABLED, "temperature": 0.5}, "`temperature` may only be set to 1"),
        ({"thinking": ENABLED, "top_k": 5}, "`top_k` must be unset"),
        ({"thinking": ENABLED, "top_p": 0.5}, "`top_p` must be"),
        ({"model": ADAPTIVE_MODEL, "temperature": 1}, "`temperature` is deprecated for this model."),
        ({"thinking": ENABLED, "tool_choice": {"type": "any"}}, "forces tool use"),
        ({"model": ADAPTIVE_MODEL, "tool_choice": {"type": "tool", "name": "x"}}, '"tool" and "any" are not supported'),
        (
            {"model": "claude-3-5-haiku-latest", "messages": [{"role": "assistant", "content": "hi"}, HI]},
            'must use the "user" role',
        ),
        ({"messages": [HI, CALLS, HI]}, "without `tool_result` blocks immediately after: t1"),
        (
            {"messages": [HI, CALLS, {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]}]},
            "without `tool_result` blocks immediately after: t1",
        ),
        ({"messages": [{"role": "user", "content": [RESULT]}, HI]}, "messages.0.content.0: unexpected"),
        (
            {"messages": [HI, {"role": "assistant", "content": "a"}, {"role": "user", "content": [RESULT]}]},
            "unexpected",
        ),
        ({"messages": [{"role": "user", "content": "  "}]}, "non-whitespace"),
        (
            {"messages": [HI, {"role": "assistant", "content": "Once"}], "thinking": ENABLED},
            "a final `assistant` message must start with a thinking block",
        ),
        ({"model": ADAPTIVE_MODEL, "messages": [HI, {"role": "assistant", "content": "Once"}]}, "prefill"),
        (
            {
                "messages": [
                    HI,
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}]},
                    HI,
                ]
            },
            "final block",
        ),
        (
            {
                "messages": [
                    HI,
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "x", "signature": "made up"},
                            {"type": "text", "text": "y"},
                        ],
                    },
                    HI,
                ]
            },
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        ),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(stage: OpenStage, changes: dict[str, Any], message: str) -> None:
    body = {name: value for name, value in (ASKED | changes).items() if value is not None}
    answer = post(stage(Say(text="42")), body)
    assert answer.status == 400
    assert message in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"thinking": ENABLED, "temperature": 1},
        {"thinking": ENABLED, "top_p": 0.97},
        {"messages": [HI, {"role": "assistant", "content": "Once"}]},
        {"model": "claude-opus-4-6", "thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}},
        {
            "messages": [HI, CALLS, {"role": "user", "content": [RESULT, {"type": "text", "text": "and?"}]}],
            "tools": DEFINED,
        },
    ],
)
def test_allowed_requests_are_answered(stage: OpenStage, changes: dict[str, Any]) -> None:
    assert post(stage(Say(text="42")), ASKED | changes).status == 200


def tool_use(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "look", "input": {}}]}


def tool_result(name: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "fine"}]}


@pytest.mark.parametrize(("second", "status"), [("b", 200), ("a", 400)])
def test_an_id_is_used_once_in_a_conversation(stage: OpenStage, second: str, status: int) -> None:
    go = {"role": "user", "content": "go"}
    history = [go, tool_use("a"), tool_result("a"), tool_use(second), tool_result(second)]
    answer = post(stage(Say(text="42")), {"model": "other", "max_tokens": 99, "messages": history, "tools": DEFINED})
    assert answer.status == status
    assert (b"`tool_use` ids must be unique" in answer.body) == (status == 400)


def test_with_interleaved_thinking_a_budget_may_exceed_the_limit(stage: OpenStage) -> None:
    body = ASKED | {"thinking": {"type": "enabled", "budget_tokens": 9000}}
    assert post(stage(Say(text="42")), body).status == 400
    beta = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    assert post(stage(Say(text="42")), body, beta).status == 200


def post(stage: Stage, body: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", "/v1/messages", json.dumps(body).encode(), headers or {})
        response: http.client.HTTPResponse = connection.getresponse()
        return Answer(response)


def refused(stage: Stage) -> list[str | None]:
    """Return what the stage refused; a client that heals itself would hide it."""
    return [request.problem for request in stage.requests if request.problem is not None]


def signatures(body: bytes) -> list[str]:
    return [
        block["signature"]
        for turn in msgspec.json.decode(body)["messages"]
        if isinstance(turn["content"], list)
        for block in turn["content"]
        if block["type"] == "thinking"
    ]


# --- as real clients send it ------------------------------------------------------------------------------------------


def post_messages(stage: Stage, *messages: dict[str, Any], **fields: Any) -> Answer:
    body = {"model": BUDGET_MODEL, "max_tokens": 4000, "messages": messages, **fields}
    with connected(stage) as connection:
        connection.request("POST", "/v1/messages?beta=true", json.dumps(body), {"anthropic-version": "2023-06-01"})
        return Answer(connection.getresponse())


QUESTION = {"role": "user", "content": "What is 2 + 3?"}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
def test_a_thread_is_refused_so_that_the_client_sends_everything(stage: OpenStage, thread: dict[str, str]) -> None:
    answer = post_messages(stage(), QUESTION, thread=thread)
    error = answer.json["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["details"]["error_code"] == "thread_unsupported_request"


def write_url_safe(signature: str) -> str:
    return signature.translate(str.maketrans("+/", "-_"))


@pytest.mark.parametrize(
    ("rewrite", "status"),
    [
        pytest.param(str, 200, id="as it was"),
        pytest.param(write_url_safe, 200, id="the other alphabet"),
        pytest.param(lambda value: write_url_safe(value).rstrip("="), 200, id="without padding"),
        pytest.param(str.swapcase, 400, id="other bytes"),
    ],
)
def test_a_signature_is_its_bytes_in_either_alphabet(
    stage: OpenStage, rewrite: Callable[[str], str], status: int
) -> None:
    opened = stage()
    for number in range(8):  # some of these signatures have a character that differs between the alphabets
        question = {"role": "user", "content": f"What is {number} + 3?"}
        thought, *rest = post_messages(opened, question, thinking=THINKING).json["content"]
        thought["signature"] = rewrite(thought["signature"])
        turn = {"role": "assistant", "content": [thought, *rest]}
        assert post_messages(opened, question, turn, QUESTION, thinking=THINKING).status == status


def test_a_system_message_may_stand_between_the_others(stage: OpenStage) -> None:
    reminder = {"role": "system", "content": "Be brief."}
    blocks = {
        "role": "system",
        "content": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    }
    assert post_messages(stage(), QUESTION, reminder).status == 200
    assert post_messages(stage(), QUESTION, {"role": "assistant", "content": "5"}, QUESTION, blocks).status == 200


def test_a_stream_begins_with_both_counts(stage: OpenStage) -> None:
    start = json.loads(post_messages(stage(), QUESTION, stream=True).payloads[0])
    assert start["message"]["usage"] == {"input_tokens": 5, "output_tokens": 0}
