"""Repairs that lead to the next refusal, their limits, and where they work: streams, fallbacks, agents, accounts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asides
from asides.flows.heal import refused_settings, refused_thinking, replayed_state
from asides.history.plan import plan
from asides.providers.find import find_provider, find_target
from asides.providers.learned_rules import MEMORY, forget
from asides.values.errors import AsidesError, BadRequest, ProviderError, Unsupported
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.rejections import KINDS
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from tests.loopback import ReceivedRequest, serving, whole_response
from tests.strict_servers import Body, anthropic_error, message_of, openai_error, openrouter_error, refusing

KEY = "sk-heal-123456"
CHAT = "openai-compatible:m"
R1 = "bedrock:us.deepseek.r1-v1:0"
CLAUDE = "anthropic:made-up-1"
GPT = "openai-responses:gpt-5"
LOOK = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


def ask(url: str, model: str, prompt: Any = "?", **options: Any) -> asides.Reply:
    given: dict[str, Any] = {"api_key": KEY, "retries": 0, "stream": False, **options}
    return asides.ask(model, prompt, base_url=url, **given)


def codes(reply: asides.Reply) -> list[str]:
    return [notice.code for notice in reply.warnings if notice.code not in ("foreign_address", "unknown_model")]


def test_every_kind_has_a_repair() -> None:
    assert sorted([*replayed_state.FIXES, *refused_thinking.FIXES, *refused_settings.FIXES]) == sorted(KINDS)


# --- chains -------------------------------------------------------------------------------------------------------


def test_one_repair_causes_the_next_refusal_and_both_are_healed_and_remembered() -> None:
    def refuse(body: Body) -> Any:
        # Kimi: a forced tool is refused while it thinks; then a temperature that only thinking allows.
        if body.get("tool_choice") == "required":
            return openai_error("tool_choice 'required' is incompatible with thinking enabled")
        if "temperature" in body:
            return openai_error("invalid temperature: only 0.6 is allowed for this model")
        if body.get("reasoning_effort") == "high":
            return openai_error("This model does not support effort level 'high'. Supported levels: low, medium.")
        return None

    options: dict[str, Any] = {"thinking": "high", "tools": [LOOK], "tool_choice": "required", "temperature": 0.2}
    with refusing(refuse) as served:
        reply = ask(served.url, CHAT, **options)
        assert served.count() == 4
        assert [notice.setting for notice in reply.warnings if notice.code == "request_repaired"] == [
            "tool_choice",
            "temperature",
            "thinking",
        ]
        assert served.bodies[-1]["reasoning_effort"] == "medium"
        ask(served.url, CHAT, **options)
        assert served.count() == 5


def test_after_three_repairs_the_error_is_raised() -> None:
    def refuse(body: Body) -> Any:
        for name in ("top_p", "temperature", "seed"):
            if name in body:
                kind = "`{0}` may only be set to 1 when thinking is enabled" if name == "top_p" else "'{0}'"
                return openai_error(
                    f"Unsupported parameter: {kind.format(name)} is not supported with this model.", name
                )
        if "parallel_tool_calls" in body:
            return openai_error("Unrecognized request argument supplied: parallel_tool_calls")
        if body.get("tool_choice") == "required":
            return openai_error("Thinking mode does not support this tool_choice")
        return openai_error("Reasoning is mandatory for this endpoint and cannot be disabled.")

    options: dict[str, Any] = {"thinking": "off", "tools": [LOOK], "tool_choice": "required"}
    with refusing(refuse) as served:
        with pytest.raises(ProviderError):
            ask(served.url, CHAT, parallel_tool_calls=False, temperature=1.0, top_p=0.9, seed=1, **options)
        assert 1 < served.count() <= 4
    # What did not help is not remembered.
    assert not MEMORY


def test_a_second_block_of_one_kind_drops_all_thoughts() -> None:
    def refuse(body: Body) -> Any:
        for place, message in enumerate(body["messages"]):
            for at, block in enumerate(message["content"] if isinstance(message["content"], list) else []):
                if block.get("type") == "thinking" and block["signature"] in ("s1", "s3"):
                    return anthropic_error(f"messages.{place}.content.{at}: Invalid `signature` in `thinking` block")
        return None

    with refusing(refuse) as served:
        account = asides.ask(CLAUDE, "?", api_key=KEY, base_url=served.url, stream=False).parts[0]
        assert isinstance(account, Thought)
        origin = account.origin
        history: list[Message] = []
        for name in ("s1", "s2", "s3"):
            thought = Thought(f"t {name}", source="block", origin=origin, seals=(Seal("signature", name, origin),))
            history += [user("?"), assistant(thought, "ok")]
        reply = ask(served.url, CLAUDE, [*history, user("!")], thinking="high")
        assert [sum(name in json.dumps(body) for name in ("s1", "s2", "s3")) for body in served.bodies[1:]] == [3, 2, 0]
        assert codes(reply).count("thoughts_rejected") == 1
        after = [*history, user("!"), message_of(reply), user("More.")]
        ask(served.url, CLAUDE, after, thinking="high")
        # The thought of the new turn goes back.
        assert "sig-" in json.dumps(served.bodies[-1])
        assert served.count() == 5


def test_a_repair_that_changes_nothing_is_not_tried() -> None:
    with refusing(
        lambda body: anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block")
    ) as served:
        with pytest.raises(BadRequest):
            ask(served.url, CLAUDE, [user("?"), assistant("ok"), user("!")])
        assert served.count() == 1


def test_a_field_of_the_caller_is_not_taken_out() -> None:
    with refusing(
        lambda body: openai_error("Unrecognized request argument supplied: top_a") if "top_a" in body else None
    ) as served:
        with pytest.raises(BadRequest):
            ask(served.url, CHAT, extra={"top_a": 1})
        assert served.count() == 1


def test_what_was_learned_never_turns_into_an_error_of_the_caller() -> None:
    def refuse(body: Body) -> Any:
        text = "Reasoning is mandatory for this endpoint and cannot be disabled."
        return openai_error(text) if body.get("reasoning_effort") == "none" else None

    with refusing(refuse) as served:
        for _ in range(2):
            assert ask(served.url, CHAT, thinking="off", on_conflict="raise").text == "42"
        assert served.count() == 3


def test_a_contradiction_to_the_row_is_still_an_error_where_something_was_learned() -> None:
    with refusing(
        lambda body: (
            openai_error("Unsupported parameter: 'top_p' is not supported with this model.", "top_p")
            if "top_p" in body
            else None
        )
    ) as served:
        ask(served.url, "anthropic:claude-sonnet-4-5", top_p=0.5)
        assert MEMORY
        with pytest.raises(asides.InvalidThinking):
            ask(served.url, "anthropic:claude-sonnet-4-5", thinking=100)


# --- retries, status, streams -----------------------------------------------------------------------------------------


def test_a_repaired_request_gets_its_attempts_again() -> None:
    answers = iter(
        [
            (429, "busy"),
            anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block"),
            (503, "busy"),
            None,
        ]
    )
    history = [user("?"), assistant(Thought("t", source="block", seals=(Seal("signature", "s1"),)), "ok"), user("!")]
    with refusing(lambda body: next(answers)) as served:
        reply = ask(served.url, CLAUDE, history, retries=1, thinking="high")
        assert reply.text == "42"
        assert served.count() == 4


@pytest.mark.parametrize("status", [400, 429, 502])
def test_the_text_counts_and_not_the_status(status: int) -> None:
    said = anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block")
    history = [user("?"), assistant(Thought("t", source="block", seals=(Seal("signature", "s1"),)), "ok"), user("!")]
    with refusing(lambda body: (status, said) if '"s1"' in json.dumps(body) else None) as served:
        assert codes(ask(served.url, CLAUDE, history, retries=2, thinking="high")) == ["thoughts_rejected"]
        assert served.count() == 2


def test_a_server_error_without_a_reason_is_tried_again_before_anything_is_changed() -> None:
    said = {"error": {"message": "Upstream request failed", "type": "upstream_error"}}
    with refusing(lambda body: (502, said) if "reasoning_effort" in body else None) as served:
        reply = ask(served.url, CHAT, thinking="high", retries=1)
        assert served.count() == 3
        # It may have been an accident, so it is not remembered.
        assert (reply.learned, dict(MEMORY)) == ((), {})


def _in_stream(*events: Body) -> bytes:
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return whole_response(lines.encode(), "text/event-stream")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_refusal_inside_of_a_stream_is_healed_before_the_first_event(awaited: bool) -> None:
    created = {
        "type": "response.created",
        "response": {"id": "resp_1", "status": "in_progress", "model": "m", "output": []},
    }
    error = {
        "type": "error",
        "code": "invalid_encrypted_content",
        "message": "The encrypted content for item rs_a could not be verified. Reason: it could not be decrypted.",
        "param": None,
    }
    item = {"type": "reasoning", "id": "rs_a", "summary": [], "encrypted_content": "gAAAbad"}
    seal = Seal("encrypted", "gAAAbad", None, json.dumps(item))
    history = [user("?"), assistant(Thought("", "hidden", "responses_summary", seals=(seal,)), "ok"), user("!")]

    def answer(request: ReceivedRequest, connection: Any) -> bool:
        if b"gAAAbad" in request.body:
            connection.sendall(_in_stream(created, error))
        else:
            message = {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "42"}],
            }
            done = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [message]}}
            connection.sendall(
                _in_stream(created, {"type": "response.output_item.done", "output_index": 0, "item": message}, done)
            )
        return True

    with serving(answer) as server:
        events: list[Any] = []
        if awaited:

            async def run() -> asides.Reply:
                async with asides.aio.stream(GPT, history, base_url=server.url, api_key=KEY, retries=0) as stream:
                    events.extend([event async for event in stream])
                    return stream.reply

            reply = asyncio.run(run())
        else:
            with asides.stream(GPT, history, base_url=server.url, api_key=KEY, retries=0) as stream:
                events.extend(stream)
                reply = stream.reply
        assert (reply.text, len(server.heard)) == ("42", 2)
        assert sum(isinstance(event, asides.ReplyStarted) for event in events) == 1


def test_a_stream_that_is_left_early_has_taught_its_lesson() -> None:
    with refusing(
        lambda body: (
            openai_error("Unrecognized request argument supplied: stream_options") if "stream_options" in body else None
        )
    ) as served:
        with asides.stream(CHAT, "?", base_url=served.url, api_key=KEY) as stream:
            next(iter(stream))
        with asides.stream(CHAT, "?", base_url=served.url, api_key=KEY) as stream:
            for _ in stream:
                pass
        assert served.count() == 3


def test_thoughts_of_the_current_turn_stay_out_of_requests_that_do_not_think() -> None:
    text = (
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`. To use thinking blocks, enable `thinking` in your request."
    )

    def refuse(body: Body) -> Any:
        last = [message for message in body["messages"] if message["role"] == "assistant"][-1:]
        is_open = "tool_result" in json.dumps(body["messages"][-1])
        thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
        return anthropic_error(text) if is_open and not thinks and '"signature"' in json.dumps(last) else None

    thought = Thought("t", source="block", seals=(Seal("signature", "s1"),))
    call = ToolCall("call_1", "look", {"at": "sky"})
    history = [user("?"), assistant(thought, call), Message("tool", (ToolResult("call_1", "blue", "look"),))]
    options: dict[str, Any] = {"tools": [LOOK]}
    with refusing(refuse) as served:
        # Planned where it is known.
        ask(served.url, "anthropic:claude-opus-4-8", history, **options)
        assert served.count() == 1
        row = find_provider("anthropic")
        quirks = msgspec.structs.replace(row.quirks, refuses_thoughts_while_off=())
        unknown = msgspec.structs.replace(row, name="other", base_url=served.url, quirks=quirks)
        with asides.Client(providers=[unknown], api_key=KEY, retries=0, stream=False) as client:
            for _ in range(2):
                client.ask("other:claude-opus-4-8", history, **options)
        # A turn that thought goes on with its thinking, so nothing is refused.
        assert served.count() == 3


# --- other accounts, routers, tools that are gone ---------------------------------------------------------------------


def _row(name: str, url: str) -> asides.Provider:
    return msgspec.structs.replace(find_provider(name), base_url=url)


def test_two_sealed_turns_and_another_key_need_no_refusal() -> None:
    owners: dict[str, str] = {}

    def refuse(body: Body) -> Any:
        for item in body["input"]:
            if (secret := item.get("encrypted_content")) and owners.get(secret) == "other":
                text = "The encrypted content gAAA... could not be verified. Reason: organization_id did not match."
                return openai_error(text, code="invalid_encrypted_content")
        return None

    with (
        refusing(refuse) as served,
        asides.Client(providers=[_row("openai-responses", served.url)], retries=0, stream=False) as client,
    ):
        history: list[Message] = []
        for _ in range(2):
            history.append(user("?"))
            history.append(message_of(client.ask(GPT, history, api_key="sk-one-111111")))
        owners |= {f"gAAA{number}secret": "other" for number in (1, 2)}
        history.append(user("?"))
        reply = client.ask(GPT, history, api_key="sk-two-222222")
        assert (reply.text, served.count()) == ("42", 3)
        assert "gAAA" not in json.dumps(served.bodies[-1])
        # Back with the first key, its own state goes back.
        owners.clear()
        client.ask(GPT, [*history, message_of(reply), user("?")], api_key="sk-one-111111")
        sent = json.dumps(served.bodies[-1])
        assert ("gAAA1secret" in sent, "gAAA2secret" in sent, "gAAA3secret" in sent) == (True, True, False)


def test_a_router_s_refusal_is_read_and_healed() -> None:
    details = '{"type":"reasoning.text","text":"t","signature":"bad-seal","index":0}'
    said = openrouter_error(anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block"))
    with refusing(lambda body: said if "bad-seal" in json.dumps(body) else None) as served:
        client = asides.Client(providers=[_row("openrouter", served.url)], retries=0, stream=False, api_key=KEY)
        history = [
            user("?"),
            assistant(Thought("t", seals=(Seal("reasoning_details", "bad-seal", None, details),)), "ok"),
            user("!"),
        ]
        with client:
            reply = client.ask("openrouter:anthropic/claude-opus-4.6", history, thinking="high")
            assert "thoughts_rejected" in codes(reply)
            client.ask(
                "openrouter:anthropic/claude-opus-4.6", [*history, message_of(reply), user("More.")], thinking="high"
            )
        assert served.count() == 3


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-8", "bedrock:us.anthropic.claude-opus-4-6-v1"])
def test_tools_that_are_gone_are_sent_by_name(model: str) -> None:
    def refuse(body: Body) -> Any:
        has_calls = "toolUse" in json.dumps(body) or "tool_use" in json.dumps(body)
        if has_calls and not (body.get("tools") or body.get("toolConfig")):
            return anthropic_error("Requests which include `tool_use` or `tool_result` blocks must define tools")
        return None

    history = [
        user("?"),
        assistant(ToolCall("call_1", "look", {"at": "sky"})),
        Message("tool", (ToolResult("call_1", "blue", "look"),)),
        assistant("Blue."),
        user("Thanks."),
    ]
    with refusing(refuse) as served:
        url = served.url if model.startswith("anthropic") else served.base
        assert "tools_added" in codes(ask(url, model, history))
        assert served.count() == 1
        body = served.bodies[0]
        assert "look" in json.dumps(body.get("tools") or body.get("toolConfig"))
        if "tools" in body:
            assert body["tool_choice"] == {"type": "none"}


CALLED = [
    user("?"),
    assistant(ToolCall("call_1", "look", {"at": "sky"})),
    Message("tool", (ToolResult("call_1", "blue", "look"),)),
    assistant("Blue."),
    user("Thanks."),
]


def test_claude_behind_a_router_gets_the_tools_that_are_gone_by_name() -> None:
    said = openrouter_error(
        anthropic_error("Requests which have `tool_use` or `tool_result` blocks in messages must define tools.")
    )
    with refusing(lambda body: None if body.get("tools") else said) as served:
        reply = ask(served.url, "openrouter:anthropic/claude-sonnet-4.5", CALLED)
        assert ("tools_added" in codes(reply), served.count()) == (True, 1)
        body = served.bodies[0]
        assert (body["tools"][0]["function"]["name"], body["tool_choice"]) == ("look", "none")


@pytest.mark.parametrize(
    "said",
    [
        anthropic_error("Requests which have `tool_use` or `tool_result` blocks in messages must define tools."),
        {"message": "The toolConfig field must be defined when using toolUse and toolResult content blocks."},
        openai_error(
            "litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in. Set "
            "`litellm.modify_params = True` to add a dummy tool to the request"
        ),
    ],
)
def test_a_host_that_wants_the_tools_of_a_history_is_learned_once(said: Any) -> None:
    with refusing(lambda body: None if body.get("tools") else said) as served:
        first = ask(served.url, CHAT, CALLED)
        assert "tools_added" in codes(first)
        forget()
        ask(served.url, CHAT, [*CALLED, message_of(first), user("And?")])
        assert served.count() == 3


def _uses_tools(body: Body) -> bool:
    said = json.dumps(body)
    return any(word in said for word in ("tool_calls", '"tools"', "toolUse", "tool_use", "toolConfig"))


@pytest.mark.parametrize(
    ("model", "said", "requests"),
    [
        ("bedrock:us.deepseek.r1-v1:0", {"message": "This model doesn't support tool use."}, 1),
        ("bedrock:maker.new-model-v1:0", {"message": "This model doesn't support tool use."}, 2),
        ("openrouter:maker/model", openai_error("No endpoints found that support tool use. Try disabling it."), 2),
        ("groq:model", openai_error("`tool calling` is not supported with this model"), 2),
        (CHAT, openai_error("deepseek-reasoner does not support Function Calling"), 2),
        (CHAT, openai_error("registry.ollama.ai/library/gemma3:4b does not support tools"), 2),
        (CHAT, openai_error("`tools` is not supported with this model"), 2),
        (CHAT, openai_error("Tool use is not supported for this model"), 2),
    ],
)
def test_a_history_with_tools_goes_to_a_model_without_as_text(model: str, said: Any, requests: int) -> None:
    with refusing(lambda body: said if _uses_tools(body) else None) as served:
        url = served.base if model.startswith("bedrock") else served.url
        reply = ask(url, model, CALLED)
        assert ("calls_as_text" in codes(reply), served.count()) == (True, requests)
        assert "called look with" in json.dumps(served.bodies[-1])
        forget()
        ask(url, model, [*CALLED, message_of(reply), user("And?")])
        assert served.count() == requests + 1


@pytest.mark.parametrize("model", ["bedrock:writer.palmyra-x5-v1:0", "ollama-openai:x", "openrouter:some/model", CHAT])
@pytest.mark.parametrize("history", [CALLED, [user("?"), assistant("Yes."), user("And?")]], ids=["calls", "no calls"])
def test_a_conversation_with_tools_moves_to_a_model_without(model: str, history: list[Message]) -> None:
    bedrock = model.startswith("bedrock")
    said = {"message": "This model doesn't support tool use."} if bedrock else openai_error("m does not support tools")
    with refusing(lambda body: said if _uses_tools(body) else None) as served:
        url = served.base if bedrock else served.url
        reply = ask(url, model, history, tools=[LOOK], tool_choice="auto")
        assert ("tools_dropped" in codes(reply), served.count()) == (True, 2)
        forget()
        ask(url, model, [*history, message_of(reply), user("And?")], tools=[LOOK])
        assert served.count() == 3


def test_tools_of_a_first_question_to_a_model_without_are_an_error() -> None:
    said = openai_error("m does not support tools")
    with refusing(lambda body: said if _uses_tools(body) else None) as served:
        with pytest.raises(BadRequest):
            ask(served.url, CHAT, "?", tools=[LOOK])
        ask(served.url, CHAT, CALLED, tools=[LOOK])
        # What that taught is not an error of the caller: the server decides.
        with pytest.raises(BadRequest):
            ask(served.url, CHAT, "?", tools=[LOOK])
        assert served.count() == 4
        reply = ask(served.url, CHAT, "?", tools=[LOOK], on_conflict="adjust")
        assert ("tools_dropped" in codes(reply), served.count()) == (True, 5)


def test_a_conversation_with_tools_moves_to_a_known_model_without() -> None:
    said = {"message": "This model doesn't support tool use."}
    with refusing(lambda body: said if _uses_tools(body) else None) as served:
        chat = asides.Conversation(tools=[LOOK])
        options: dict[str, Any] = {"base_url": served.base, "api_key": KEY, "retries": 0}
        with pytest.raises(Unsupported, match=r"takes no tools\. Leave them out, ask a model that takes tools"):
            chat.ask("?", model=R1, **options)
        reply = chat.ask("?", model=R1, on_conflict="adjust", **options)
        assert ("tools_dropped" in codes(reply), served.count()) == (True, 1)
    with refusing(lambda body: said if _uses_tools(body) and len(served.bodies) > 1 else None) as served:
        chat, options["base_url"] = asides.Conversation(tools=[LOOK]), served.base
        chat.ask("?", model="bedrock:us.meta.llama4-maverick-17b-instruct-v1:0", **options)
        reply = chat.ask("And?", model=R1, **options)
        assert ("tools_dropped" in codes(reply), served.count()) == (True, 2)
        assert [LOOK.name in json.dumps(body) for body in served.bodies] == [True, False]


def test_a_model_with_native_tools_alone_loses_only_the_others() -> None:
    prompt = Prompt((user("?"),), tools=(LOOK, Tool("web_search", native={"type": "web_search"})))
    planned = plan(prompt, find_target("xai:grok-4.20-multi-agent"), on_conflict="adjust")
    assert [tool.name for tool in planned.prompt.tools] == ["web_search"]
    assert [notice.code for notice in planned.notices] == ["tools_dropped"]


def test_a_model_that_takes_no_items_of_reasoning_is_learned_once() -> None:
    said = openai_error(
        "Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from "
        "your input and try again.",
        "input",
    )
    history: list[Message] = []
    with refusing(lambda body: said if '"reasoning", "id"' in json.dumps(body["input"]) else None) as served:
        for _ in range(4):
            history.append(user("?"))
            history.append(message_of(ask(served.url, "openai-responses:made-up", history)))
        assert served.count() == 5


def test_a_model_without_reasoning_gets_the_history_and_not_the_stored_turn() -> None:
    text = "Reasoning input items can only be provided to a reasoning or computer use model."
    with (
        refusing(lambda body: openai_error(text) if "previous_response_id" in body else None) as served,
        asides.Client(providers=[_row("openai-responses", served.url)], api_key=KEY, retries=0, stream=False) as client,
    ):
        history: list[Message] = [user("?")]
        history.append(message_of(client.ask("openai-responses:one", history)))
        history.append(user("And?"))
        reply = client.ask("openai-responses:two", history, previous_response_id="resp_1")
        assert ("parent_rejected" in codes(reply), served.count()) == (True, 3)
        assert "gAAA" not in json.dumps(served.bodies[-1])


def test_a_host_that_takes_no_schema_is_learned_once() -> None:
    said = openai_error("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
    with refusing(lambda body: said if "json_schema" in json.dumps(body) else None) as served:
        for _ in range(2):
            assert ask(served.url, CHAT, output={"type": "integer"}).output == 42
        assert served.count() == 3


@pytest.mark.parametrize(
    "text",
    [
        "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.[0].role'",
        "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
        "unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`",
    ],
)
def test_a_host_that_does_not_know_the_role_developer_is_learned_once(text: str) -> None:
    with refusing(lambda body: openai_error(text) if body["messages"][0]["role"] == "developer" else None) as served:
        for _ in range(2):
            assert ask(served.url, "openai-chat:o4-mini", system="Be brief.").text == "42"
        assert [body["messages"][0]["role"] for body in served.bodies] == ["developer", "system", "system"]


def _needs_thinking_blocks(body: Body) -> Any:
    for message in body["messages"]:
        kinds = [block["type"] for block in message["content"] if isinstance(block, dict)]
        if "tool_use" in kinds and "thinking" not in kinds:
            return anthropic_error("The `content[].thinking` in the thinking mode must be passed back to the API.")
    return None


@pytest.mark.parametrize(
    ("model", "requests"), [("deepseek-anthropic:deepseek-flash", 2), ("anthropic-compatible:m", 3)]
)
def test_blocks_of_lost_thinking_get_a_stand_in(model: str, requests: int) -> None:
    """Planned where it is known, else learned, and never by turning thinking off in each turn."""
    row = model.partition(":")[0]
    with (
        refusing(_needs_thinking_blocks) as served,
        asides.Client(providers=[_row(row, served.url)], api_key=KEY, retries=0, stream=False) as client,
    ):
        first = client.ask(model, CALLED)
        client.ask(model, [*CALLED, message_of(first), user("And?")])
        assert served.count() == requests
        assert "disabled" not in json.dumps(served.bodies)


def test_a_model_that_nobody_knew_to_bind_its_prefix_is_learned_once() -> None:
    text = (
        "messages.{}.content.0: Invalid `signature` in `thinking` block. "
        "The block is bound to a different conversation."
    )
    seen: dict[str, str] = {}

    def refuse(body: Body) -> Any:
        for place, message in enumerate(body["messages"]):
            before = json.dumps([body.get("system"), body["messages"][:place]])
            for signature in re.findall(r"sig-\d+", json.dumps(message)):
                if seen.setdefault(signature, before) != before:
                    return anthropic_error(text.format(place))
        return None

    history: list[Message] = []
    with refusing(refuse) as served:
        for number in (1, 1, 2, 2, 3, 3, 4, 4):
            history.append(user("?"))
            reply = ask(served.url, CLAUDE, history, system=f"Today is day {number}.")
            history.append(message_of(reply))
        assert served.count() == 9


def test_lost_thinking_gets_a_stand_in_though_thinking_was_turned_off() -> None:
    """The host thinks in spite of what it was told: its refusal says so."""

    def refuse(body: Body) -> Any:
        lacks = any("tool_calls" in message and "reasoning_content" not in message for message in body["messages"])
        text = "The `reasoning_content` in the thinking mode must be passed back to the API."
        return openai_error(text) if lacks else None

    with refusing(refuse) as served:
        first = ask(served.url, CHAT, CALLED, thinking="off")
        assert served.count() == 2
        ask(served.url, CHAT, [*CALLED, message_of(first), user("And?")], thinking="off")
        assert served.count() == 3


def test_what_hosts_are_known_to_want_needs_no_refusal() -> None:
    with refusing(lambda _: None) as served:
        kimi = asides.Client(providers=[_row("moonshot", served.url)], api_key=KEY, retries=0, stream=False)
        with kimi:
            kimi.ask("moonshot:kimi-k3", CALLED)
        # An empty field counts as a missing one there.
        assert served.bodies[0]["messages"][1]["reasoning_content"] == "."


def test_a_relay_that_changes_its_mind_is_followed_each_time() -> None:
    """What was learned first is learned again, though the conversation knows it already."""
    now = "required"

    def refuse(body: Body) -> Any:
        has = any("reasoning_content" in message for message in body["messages"])
        if now == "required" and not has:
            return openai_error("The `reasoning_content` in the thinking mode must be passed back to the API.")
        return openai_error("property 'reasoning_content' is unsupported") if now == "refused" and has else None

    history: list[Message] = list(CALLED)
    with refusing(refuse) as served:
        for now in ("required", "refused", "required", "refused", "required"):
            before = served.count()
            for _ in range(2):
                history += [message_of(ask(served.url, CHAT, history)), user("And?")]
            assert served.count() - before == 3, now
        # Another process knows the last of them from the messages alone.
        forget()
        before = served.count()
        ask(served.url, CHAT, history)
        assert served.count() - before == 1


@pytest.mark.parametrize(
    "text",
    [
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.',
        "messages.2.role: Input should be 'user' or 'assistant'",
        "messages.2.output_config: Extra inputs are not permitted",
    ],
)
def test_a_host_without_messages_that_change_the_effort_is_learned_once(text: str) -> None:
    def refuse(body: Body) -> Any:
        is_new = any(message["role"] == "system" for message in body["messages"])
        return anthropic_error(text) if is_new else None

    with refusing(refuse) as served, asides.Client(providers=[_row("anthropic", served.url)], api_key=KEY) as client:
        chat = asides.Conversation("anthropic:claude-opus-5-5", client=client, cache=True, stream=False)
        for effort in ("low", "high", "low", "max"):
            assert chat.ask("?", thinking=effort).text == "42"
            assert served.bodies[-1]["output_config"]["effort"] == effort
        assert served.count() == 5


@pytest.mark.parametrize("change", ["fork", "edit", "trim", "truncate", "compact"])
def test_what_a_conversation_learned_outlives_the_message_that_knew_it(change: str) -> None:
    text = "Unsupported value: 'high'. Supported values are: 'low' and 'medium'."
    with refusing(
        lambda body: openai_error(text, "reasoning_effort") if body.get("reasoning_effort") == "high" else None
    ) as served:
        options: dict[str, Any] = {"base_url": served.url, "api_key": KEY, "retries": 0, "stream": False}
        chat = asides.Conversation(CHAT, thinking="high", **options)
        chat.append("Before.")
        chat.append(assistant("I see."))
        for _ in range(3):
            chat.ask("?")
        match change:
            case "fork":
                chat = chat.fork(2)
            case "edit":
                for place in range(len(chat)):
                    chat.edit(place, "Edited.")
            case "trim":
                chat.trim_to(20)
            case "truncate":
                chat.truncate(2)
            case _:
                chat.compact(keep_turns=1)
        saved = chat.to_json()
        forget()
        before = served.count()
        asides.Conversation.from_json(saved, thinking="high", **options).ask("And now?")
        assert served.count() - before == 1


# --- fallbacks, many, typed output, agents ----------------------------------------------------------------------------


def _refuse_effort(body: Body) -> Any:
    text = "This model does not support effort level 'high'. Supported levels: low, medium."
    return openai_error(text) if body.get("reasoning_effort") == "high" else None


def test_each_model_of_a_list_is_healed_by_itself() -> None:
    with refusing(lambda body: (401, openai_error("no such key"))) as broken, refusing(_refuse_effort) as served:
        rows = [
            asides.Provider(name="one", base_url=broken.url, key="optional"),
            asides.Provider(name="two", base_url=served.url, key="optional"),
        ]
        with asides.Client(providers=rows, stream=False, retries=0) as client:
            reply = client.ask(["one:m", "two:m"], "?", thinking="high")
            assert "fell_back" in codes(reply)
            assert "request_repaired" in codes(reply)
        assert (broken.count(), served.count()) == (1, 2)


def test_many_questions_pay_for_one_refusal_where_they_follow_each_other() -> None:
    with refusing(_refuse_effort) as served:
        options: dict[str, Any] = {"thinking": "high", "stream": False, "api_key": KEY, "retries": 0}
        done = list(asides.ask_many(CHAT, ["1", "2", "3"], concurrency=1, base_url=served.url, **options))
        assert all(isinstance(reply, asides.Reply) for _, reply in done)
        assert served.count() == 4


def test_agents_are_healed_too() -> None:
    def refuse(body: Body) -> Any:
        return openai_error("Unrecognized request argument supplied: seed") if "seed" in body else None

    with refusing(refuse) as served:
        agent = asides.Agent(CHAT, base_url=served.url, api_key=KEY, seed=1, retries=0)
        assert [agent.run("?").output for _ in range(2)] == ["42", "42"]
        assert served.count() == 3


# --- memory -----------------------------------------------------------------------------------------------------------


def test_explain_shows_what_was_learned() -> None:
    with refusing(_refuse_effort) as served:
        reply = ask(served.url, CHAT, thinking="high")
        shown = asides.explain(CHAT, "?", base_url=served.url, api_key=KEY, thinking="high")
        assert [fact.kind for fact in shown.memory] == ["effort_unsupported_value"]
        assert shown.body["reasoning_effort"] == "medium"
        assert 'effort_unsupported_value: efforts = ["low","medium"]' in shown.to_text()
        other = asides.explain(CHAT, "?", base_url=served.url, api_key="sk-another-99999", thinking="high")
        assert (other.memory, other.body["reasoning_effort"]) == ((), "high")
        forget()
        saved = asides.explain(
            CHAT, [user("?"), message_of(reply), user("!")], base_url=served.url, api_key=KEY, thinking="high"
        )
        assert saved.body["reasoning_effort"] == "medium"


def test_a_saved_conversation_knows_what_it_took(tmp_path: Any) -> None:
    with refusing(_refuse_effort) as served:
        options: dict[str, Any] = {"model": CHAT, "thinking": "high", "base_url": served.url, "api_key": KEY}
        chat = asides.Conversation(**options, stream=False, retries=0)
        chat.ask("?")
        chat.save(tmp_path / "chat.json")
        assert "sk-heal" not in (tmp_path / "chat.json").read_text()
        forget()
        loaded = asides.Conversation.load(tmp_path / "chat.json", **options, stream=False, retries=0)
        loaded.ask("!")
        assert served.count() == 3


def test_no_memory_no_heal_modules() -> None:
    import subprocess
    import sys

    code = (
        "import sys, asides\n"
        "from asides_stage.stage import Say, Stage\n"
        "with Stage([Say(text='42')]) as stage:\n"
        "    asides.ask('openai-compatible:m', '?', base_url=stage.url, api_key='k-123456')\n"
        "print([name for name in sys.modules if '.heal' in name or 'rejections' in name or 'refusals' in name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


# --- whatever a server says -------------------------------------------------------------------------------------------

_WORDS = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "The encrypted content gAAA...x could not be verified.",
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "property 'reasoning_content' is unsupported",
    "Unsupported value: 'high' is not supported. Supported values are: 'low'.",
    "This model does not support the effort parameter.",
    "Thinking mode does not support this tool_choice",
    "`temperature` may only be set to 1 when thinking is enabled",
    "Unrecognized request argument supplied: tools",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Reasoning is mandatory for this endpoint and cannot be disabled.",
    "prompt is too long: 214032 tokens > 200000 maximum",
    "400 Bad Request",
    "",
    "Upstream request failed",
    "System message must be at the beginning.",
]
_SAID = st.one_of(st.sampled_from(_WORDS), st.text(max_size=60))
_ANSWERS = st.lists(st.tuples(st.sampled_from([400, 404, 422, 429, 500, 502]), _SAID), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_ANSWERS, st.sampled_from([CHAT, CLAUDE, GPT]), st.sampled_from([0, 1]))
def test_law_whatever_servers_say_the_requests_are_few_and_end(
    answers: Sequence[tuple[int, str]], model: str, retries: int
) -> None:
    forget()
    said = iter(answers)

    def refuse(_: Body) -> Any:
        status, text = next(said, answers[-1])
        return status, {"error": {"message": text, "type": "invalid_request_error"}}

    thought = Thought("hm", source="block", seals=(Seal("signature", "s1"),))
    history = [user("?"), assistant(thought, "ok"), user("!"), user("!")]
    with refusing(refuse) as served:
        with pytest.raises(AsidesError):
            ask(
                served.url,
                model,
                history,
                thinking="high",
                tools=[LOOK],
                temperature=0.3,
                retries=retries,
                on_conflict="adjust",
            )
        assert served.count() <= (1 + retries) * 4
        seen = [json.dumps(body, sort_keys=True) for body in served.bodies]
        assert max(map(seen.count, seen)) <= 1 + retries
    assert not MEMORY


# --- real bodies ------------------------------------------------------------------------------------------------------

_BODIES = Path(__file__).resolve().parents[4] / "shared" / "reference" / "rejections.jsonl"


@pytest.mark.skipif(not _BODIES.exists(), reason="the collected bodies are not here")
def test_every_collected_body_leads_to_few_requests_and_an_end() -> None:
    """A server that always says the same is asked at most four times, and whatever it says, nothing else is raised."""
    rows = [json.loads(line) for line in _BODIES.read_text(encoding="utf-8").splitlines()]
    said: list[Any] = []

    def refuse(_: Body) -> Any:
        return said[-1]

    thought = Thought("hm", source="block", seals=(Seal("signature", "s1"),))
    history = [user("?"), assistant(thought, "ok"), user("!"), user("!")]
    options: dict[str, Any] = {"thinking": "high", "tools": [LOOK], "temperature": 0.3, "on_conflict": "adjust"}
    with refusing(refuse) as served:
        for row in rows:
            said.append((row["status"], row["body"]))
            for model in (CHAT, CLAUDE, GPT):
                forget()
                before = served.count()
                with pytest.raises(ProviderError):
                    ask(served.url, model, history, **options)
                assert 1 <= served.count() - before <= 4, row["id"]
                assert not MEMORY


def test_a_last_message_of_the_system_is_put_first_where_a_user_must_speak_last() -> None:
    text = "invalid request: the last message must be of the role 'user' or 'tool'."
    history = [user("?"), assistant("Yes."), user("And?"), system("Be brief.")]

    def refuse(body: Body) -> Any:
        return None if body["messages"][-1]["role"] == "user" else {"message": text}

    with refusing(refuse) as served:
        reply = ask(served.url, CHAT, history)
        assert (codes(reply), served.count()) == (["system_moved"], 2)
        assert [message["role"] for message in served.bodies[-1]["messages"]] == ["system", "user", "assistant", "user"]


def test_a_prompt_without_a_user_gets_one_where_it_counts_as_empty() -> None:
    said = openai_error("The prompt parameter was not received normally.", code="1213")
    with refusing(lambda body: None if any(each["role"] == "user" for each in body["messages"]) else said) as served:
        reply = ask(served.url, "fireworks:glm-4p6", [system("Be brief.")])
        assert ("turn_added" in codes(reply), served.count()) == (True, 2)
