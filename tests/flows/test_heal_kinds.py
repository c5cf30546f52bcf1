"""Every kind of refusal over real sockets: healed with one more request, and never again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest

import asides
from asides.flows.heal import refused_settings, replayed_state
from asides.providers.learned_rules import forget
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.rejections import KINDS
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from tests.strict_servers import (
    Body,
    Refuse,
    Strict,
    anthropic_error,
    google_error,
    message_of,
    openai_error,
    refusing,
)

KEY = "sk-heal-123456"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


def test_every_kind_has_a_repair_or_a_reason_why_it_has_none() -> None:
    fixed = [*replayed_state.FIXES, *refused_settings.FIXES]
    assert sorted([*fixed, *replayed_state.UNFIXED]) == sorted(KINDS)


# --- histories ----------------------------------------------------------------------------------------------------


def signed(*numbers: int) -> list[Message]:
    """Turns with signed thinking, as an import has them: nobody knows who made it."""
    turns = [
        [
            user(f"{number}?"),
            assistant(Thought(f"t{number}", source="block", seals=(Seal("signature", f"s{number}"),)), "ok"),
        ]
        for number in numbers
    ]
    return [message for turn in turns for message in turn]


def encrypted(*names: str, value: bool = True) -> list[Message]:
    turns: list[Message] = []
    for name in names:
        item: Body = {"type": "reasoning", "id": f"rs_{name}", "summary": []}
        if value:
            item["encrypted_content"] = f"gAAA{name}wXBV"
        seal = Seal("encrypted" if value else "item", f"gAAA{name}wXBV" if value else "", None, json.dumps(item))
        said = Text("ok", seals=(Seal("item", "", None, json.dumps({"type": "message", "id": f"msg_{name}"})),))
        turns += [user("?"), assistant(Thought("", "hidden", "responses_summary", seals=(seal,)), said)]
    return turns


def called(*seals: Seal, thought: Thought | None = None) -> list[Message]:
    call = ToolCall("call_1", "look", {"at": "sky"}, seals=seals)
    turn = assistant(*([thought] if thought else []), call)
    return [user("?"), turn, Message("tool", (ToolResult("call_1", "blue", "look"),))]


LOOK = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})


class Case(NamedTuple):
    """A server that refuses, and a call that it refuses."""

    kind: str
    model: str
    refuse: Refuse
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    history: Sequence[Message] = ()
    notice: str = "request_repaired"
    check: Callable[[Strict], bool] | None = None
    repairs: int = 1
    is_fact: bool = True
    """Whether it is remembered: not what depends on the length of one request."""
    ends_with: Message | None = user("And now?")


def _texts(body: Body) -> str:
    return json.dumps(body)


def _if_has(*words: str, said: Any) -> Refuse:
    return lambda body: said if all(word in _texts(body) for word in words) else None


SIGNATURE = anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block")
BOUND = (
    "messages.{}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
MODIFIED = (
    "messages.{}.content.[]: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)
WRONG_ACCOUNT = (
    "The encrypted content gAAA... could not be verified. Reason: Encrypted content organization_id did not match the "
    "target organization."
)
CLAUDE = "anthropic:claude-sonnet-4-5"
NEW_CLAUDE = "anthropic:claude-opus-5-5"
OTHER_CLAUDE = "anthropic:made-up-1"
GPT = "openai-responses:gpt-5"
CHAT = "openai-compatible:m"


def _refuse_named(number: int, words: str, signature: str) -> Refuse:
    """Refuse the block with this signature, at its place."""

    def refuse(body: Body) -> Any:
        for place, message in enumerate(body["messages"]):
            for at, block in enumerate(message["content"] if isinstance(message["content"], list) else []):
                if block.get("signature") == signature:
                    return anthropic_error(words.replace("{}", str(place)).replace("[]", str(at)))
        return None

    return refuse


def _last_body(served: Strict) -> str:
    return _texts(served.bodies[1])


def _refuse_items(body: Body) -> Any:
    for item in body["input"]:
        if item.get("encrypted_content") == "gAAAbwXBV":
            return openai_error(
                "The encrypted content gAAA...wXBV could not be verified.", code="invalid_encrypted_content"
            )
    return None


def _refuse_orphan(body: Body) -> Any:
    if any(item.get("id") == "rs_b" for item in body["input"]):
        return openai_error(
            "Item 'rs_b' of type 'reasoning' was provided without its required following item.", "input"
        )
    return None


def _refuse_missing(body: Body) -> Any:
    if any(item.get("id") == "msg_a" for item in body["input"]):
        text = "Item 'msg_a' of type 'message' was provided without its required 'reasoning' item: 'rs_a'."
        return openai_error(text, "input")
    return None


def _refuse_id(body: Body) -> Any:
    for item in body["input"]:
        if item.get("type") == "reasoning" and "id" in item:
            text = f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
            return 404, openai_error(text, "input")
    return None


def _need_thinking(body: Body) -> Any:
    missing = [each for each in body["messages"] if each["role"] == "assistant" and "reasoning_content" not in each]
    text = "The `reasoning_content` in the thinking mode must be passed back to the API."
    return openai_error(text, code="invalid_request_error") if missing else None


def _need_a_word(body: Body) -> Any:
    missing = [each for each in body["messages"] if each.get("tool_calls") and not each.get("reasoning_content")]
    text = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    return openai_error(text) if missing else None


def _refuse_user_after_tool(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    said = {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "code": "3230"}
    return said if any(pair == ("tool", "user") for pair in pairwise(roles)) else None


def _refuse_row_of_roles(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    text = "Conversation roles must alternate user/assistant/user/assistant/..."
    return openai_error(text) if any(one == two for one, two in pairwise(roles)) else None


def _refuse_late_system(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    return openai_error("System message must be at the beginning.") if "system" in roles[1:] else None


def _refuse_unsigned(body: Body) -> Any:
    parts = [part for content in body["contents"] for part in content["parts"]]
    text = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."
    return (
        google_error(text) if any("functionCall" in part and "thoughtSignature" not in part for part in parts) else None
    )


def _refuse_seals(body: Body) -> Any:
    return google_error("Corrupted thought signature.") if "bad-seal" in _texts(body) else None


def _refuse_effort(*taken: str) -> Refuse:
    def refuse(body: Body) -> Any:
        effort = body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")
        listed = ", ".join(f"'{value}'" for value in taken)
        text = f"Unsupported value: '{effort}' is not supported with the 'm' model. Supported values are: {listed}."
        return openai_error(text, "reasoning_effort", "unsupported_value") if effort and effort not in taken else None

    return refuse


def _refuse_form(form: str, said: str) -> Refuse:
    return lambda body: anthropic_error(said) if (body.get("thinking") or {}).get("type") == form else None


ADAPTIVE = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".'
)
DISABLED = (
    '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".'
)


def _refuse_whole(body: Body) -> Any:
    text = "parameter.enable_thinking must be set to false for non-streaming calls"
    return None if body.get("stream") else openai_error(text, code="invalid_parameter_error")


def _refuse_sum(body: Body) -> Any:
    limit = body["max_tokens"]
    text = f"input length and `max_tokens` exceed context limit: 196000 + {limit} > 200000, decrease input length"
    return anthropic_error(text) if limit > 4000 else None


def _refuse_budget(body: Body) -> Any:
    budget = (body.get("thinking") or {}).get("budget_tokens")
    text = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    return anthropic_error(text) if budget is not None and budget < 1024 else None


def _refuse_large_budget(body: Body) -> Any:
    budget = (body.get("thinking") or {}).get("budget_tokens") or 0
    text = "`max_tokens` must be greater than `thinking.budget_tokens`."
    return anthropic_error(text) if budget >= body["max_tokens"] else None


def _summary(body: Body) -> Any:
    text = "Your organization must be verified to generate reasoning summaries."
    return (
        openai_error(text, "reasoning.summary", "unsupported_value") if "summary" in body.get("reasoning", {}) else None
    )


def _chat_only_without_effort(body: Body) -> Any:
    if "messages" in body and body.get("tools") and body.get("reasoning_effort", "medium") != "none":
        text = (
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Use /v1/responses."
        )
        return openai_error(text, "reasoning_effort")
    return None


TWO = signed(1, 2)
CASES = [
    Case(
        "thinking_signature_invalid",
        CLAUDE,
        _if_has("s1", said=SIGNATURE),
        {"thinking": 2000},
        TWO,
        "thoughts_rejected",
        lambda served: "s1" not in _last_body(served) and "ok" in _last_body(served),
    ),
    Case(
        "thinking_prefix_mismatch",
        NEW_CLAUDE,
        _refuse_named(3, BOUND, "s2"),
        {"thinking": "high"},
        signed(1, 2, 3),
        "thoughts_rejected",
        lambda served: "s1" in _last_body(served) and "s2" not in _last_body(served) and "s3" not in _last_body(served),
    ),
    Case(
        "thinking_block_modified",
        CLAUDE,
        _refuse_named(
            3,
            MODIFIED,
            "s2",
        ),
        {"thinking": 2000},
        TWO,
        "thoughts_rejected",
        lambda served: "s1" in _last_body(served) and "s2" not in _last_body(served),
    ),
    Case(
        "thinking_signature_missing",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error("messages.1.content.0.thinking.signature: Field required")
            if '"signature": ""' in _texts(body)
            else None
        ),
        {"thinking": "high"},
        [user("?"), assistant(Thought("unsigned", source="block"), "ok")],
        "thoughts_rejected",
    ),
    Case(
        "encrypted_reasoning_invalid",
        GPT,
        _refuse_items,
        {},
        encrypted("a", "b"),
        "thoughts_rejected",
        lambda served: "gAAAbwXBV" not in _last_body(served),
    ),
    Case("reasoning_item_orphaned", GPT, _refuse_orphan, {}, encrypted("a", "b"), "thoughts_rejected"),
    Case("reasoning_item_missing", GPT, _refuse_missing, {}, encrypted("a", "b")),
    Case("item_not_persisted", GPT, _refuse_id, {}, encrypted("a", "b")),
    Case(
        "encrypted_reasoning_unsupported",
        GPT,
        lambda body: (
            openai_error("Encrypted content is not supported with this model", "include")
            if body.get("include")
            else None
        ),
    ),
    Case(
        "encrypted_reasoning_wrong_account",
        GPT,
        _if_has(
            "gAAAa",
            said=openai_error(WRONG_ACCOUNT, code="invalid_encrypted_content"),
        ),
        {},
        encrypted("a", "b"),
        "thoughts_rejected",
    ),
    Case(
        "reasoning_item_id_invalid",
        GPT,
        lambda body: (
            openai_error(
                "Invalid 'input[1].id': 'rs_a'. Expected an ID that begins with 'rs'.", "input[1].id", "invalid_value"
            )
            if '"id": "rs_' in _texts(body)
            else None
        ),
        {},
        encrypted("a"),
    ),
    Case(
        "thought_signature_missing",
        "gemini:gemini-2.5-pro",
        _refuse_unsigned,
        {"tools": [LOOK]},
        called(),
        "signature_stand_in",
        ends_with=None,
    ),
    Case(
        "thought_signature_invalid",
        "gemini:gemini-3-pro-preview",
        _refuse_seals,
        {"tools": [LOOK]},
        called(Seal("thought_signature", "bad-seal")),
        "thoughts_rejected",
        lambda served: "skip_thought_signature_validator" in _last_body(served),
        ends_with=None,
    ),
    Case("reasoning_content_required", CHAT, _need_thinking, {"thinking": "high"}, [user("?"), assistant("ok")]),
    Case(
        "reasoning_content_required with a word",
        CHAT,
        _need_a_word,
        {"tools": [LOOK]},
        called(),
        ends_with=None,
        repairs=2,
    ),
    Case(
        "reasoning_field_rejected",
        "vllm:m",
        lambda body: (
            openai_error("'messages.1' : property 'reasoning' is unsupported")
            if '"reasoning": "hm' in _texts(body)
            else None
        ),
        {"tools": [LOOK]},
        called(thought=Thought("hm", via="reasoning_content")),
        "thoughts_rejected",
    ),
    Case("tool_turn_order", CHAT, _refuse_user_after_tool, {"tools": [LOOK]}, called(), "turn_added"),
    Case("role_alternation", CHAT, _refuse_row_of_roles, {}, [user("One."), user("Two.")], "messages_merged"),
    Case(
        "system_position",
        CHAT,
        _refuse_late_system,
        {},
        [user("One."), Message("system", (Text("Be brief."),))],
        "system_moved",
    ),
    Case(
        "empty_content",
        CHAT,
        lambda body: (
            openai_error("Invalid request content: Each message must have at least one content element.")
            if any(message.get("content") == "" for message in body["messages"])
            else None
        ),
        {"tools": [LOOK]},
        [*called()[:2], Message("tool", (ToolResult("call_1", "", "look"),))],
    ),
    Case(
        "context_length",
        CLAUDE,
        _refuse_sum,
        {"max_tokens": 8000},
        check=lambda served: served.bodies[1]["max_tokens"] == 4000,
        is_fact=False,
    ),
    # --- settings ---
    Case("thinking_mode_unsupported", OTHER_CLAUDE, _refuse_form("enabled", ADAPTIVE), {"thinking": 2000}),
    Case(
        "adaptive_unsupported",
        OTHER_CLAUDE,
        _refuse_form("adaptive", "adaptive thinking is not supported on this model"),
        {"thinking": "high"},
    ),
    Case(
        "between_tools_unsupported",
        "anthropic:claude-sonnet-5-5",
        _refuse_form("between_tools", '"thinking.type.between_tools" is not supported for this model.'),
        {"thinking": "off"},
    ),
    Case("thinking_cannot_disable", OTHER_CLAUDE, _refuse_form("disabled", DISABLED), {"thinking": "off"}),
    Case(
        "thinking_unsupported_model",
        "ollama:m",
        lambda body: {"error": '"m" does not support thinking'} if body.get("think") else None,
        {"thinking": "on"},
    ),
    Case(
        "effort_unsupported_param",
        CHAT,
        lambda body: (
            {"code": "x", "error": "Model m does not support parameter reasoningEffort."}
            if "reasoning_effort" in body
            else None
        ),
        {"thinking": "high"},
    ),
    Case(
        "effort_unsupported_value",
        CHAT,
        _refuse_effort("none", "low", "medium"),
        {"thinking": "xhigh"},
        check=lambda served: served.bodies[1]["reasoning_effort"] == "medium",
    ),
    Case(
        "effort_unsupported_value without a list",
        "ollama:m",
        lambda body: (
            {"error": 'think value "high" is not supported for this model'} if body.get("think") == "high" else None
        ),
        {"thinking": "high"},
        check=lambda served: served.bodies[1]["think"] is True,
    ),
    Case(
        "effort_tools_endpoint",
        "openai:made-up",
        _chat_only_without_effort,
        {"thinking": "high", "tools": [LOOK], "endpoint": "chat"},
        check=lambda served: "/responses" in served.paths[1],
    ),
    Case(
        "effort_tools_endpoint without another",
        "openai-chat:made-up",
        _chat_only_without_effort,
        {"thinking": "high", "tools": [LOOK]},
        check=lambda served: served.bodies[1]["reasoning_effort"] == "none",
    ),
    Case(
        "reasoning_params_conflict",
        "vllm:m",
        lambda body: (
            openai_error("cannot specify both 'chat_template_kwargs' and 'reasoning_effort'")
            if "chat_template_kwargs" in body and "reasoning_effort" in body
            else None
        ),
        {"thinking": "high"},
    ),
    Case("budget_too_small", OTHER_CLAUDE, _refuse_budget, {"thinking": 100}),
    Case("budget_exceeds_max_tokens", OTHER_CLAUDE, _refuse_large_budget, {"thinking": 50_000}),
    Case(
        "sampling_with_thinking",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
            if "temperature" in body
            else None
        ),
        {"thinking": "high", "temperature": 0.5},
    ),
    Case(
        "sampling_unsupported",
        CHAT,
        lambda body: (
            openai_error(
                "Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"
            )
            if "top_p" in body
            else None
        ),
        {"top_p": 0.5, "temperature": 0.4},
        check=lambda served: served.bodies[1]["temperature"] == 0.4,
    ),
    Case(
        "tool_choice_with_thinking",
        CHAT,
        lambda body: (
            openai_error("Thinking mode does not support this tool_choice")
            if body.get("tool_choice") == "required"
            else None
        ),
        {"thinking": "high", "tools": [LOOK], "tool_choice": "required"},
    ),
    Case(
        "tool_choice_unsupported",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error('tool_choice: type "tool" and "any" are not supported for this model.')
            if body.get("tool_choice", {}).get("type") in ("tool", "any")
            else None
        ),
        {"tools": [LOOK], "tool_choice": "required"},
    ),
    Case(
        "prefill_unsupported",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error(
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
            if body["messages"][-1]["role"] == "assistant"
            else None
        ),
        {},
        [user("?")],
        "prefill_adjusted",
        ends_with=assistant("It is"),
    ),
    Case(
        "context_edit_needs_thinking",
        CLAUDE,
        lambda body: (
            anthropic_error("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive")
            if "clear_thinking" in _texts(body)
            else None
        ),
        {"extra": {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}},
    ),
    Case(
        "binding_control_unavailable",
        NEW_CLAUDE,
        lambda body: (
            anthropic_error("thinking.block_binding: Extra inputs are not permitted")
            if "block_binding" in _texts(body)
            else None
        ),
        {"thinking": "high", "extra": {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}},
    ),
    Case("summary_not_allowed", GPT, _summary, {"thinking": "high"}, (), "summary_refused"),
    Case("stream_required", CHAT, _refuse_whole, {"thinking": "high"}, (), "streamed"),
    Case(
        "unknown_param",
        CHAT,
        lambda body: (
            openai_error("Unrecognized request argument supplied: parallel_tool_calls")
            if "parallel_tool_calls" in body
            else None
        ),
        {"tools": [LOOK], "parallel_tool_calls": False},
    ),
    Case(
        "opaque_provider_error, the effort",
        CHAT,
        lambda body: "400 Bad Request\n" if "reasoning_effort" in body else None,
        {"thinking": "high"},
    ),
    Case(
        "opaque_provider_error, foreign state",
        GPT,
        lambda body: (400, "400 Bad Request\n") if "gAAAa" in _texts(body) else None,
        {},
        encrypted("a"),
        "thoughts_rejected",
    ),
]


def _ask(served: Strict, case: Case, messages: Sequence[Message]) -> asides.Reply:
    return asides.ask(
        case.model, list(messages), base_url=_address(served, case), api_key=KEY, retries=0, **_options(case)
    )


def _ask_async(served: Strict, case: Case, messages: Sequence[Message]) -> asides.Reply:
    async def run() -> asides.Reply:
        return await asides.aio.ask(
            case.model, list(messages), base_url=_address(served, case), api_key=KEY, retries=0, **_options(case)
        )

    return asyncio.run(run())


def _options(case: Case) -> dict[str, Any]:
    return {"stream": False, **case.options}


def _address(served: Strict, case: Case) -> str:
    return served.base if case.model.startswith(("ollama:", "gemini:", "bedrock:")) else served.url


def _save_and_load(messages: Sequence[Message]) -> list[Message]:
    return msgspec.json.decode(msgspec.json.encode(messages), type=list[Message])


@pytest.mark.parametrize("ask", [_ask, _ask_async])
@pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "-", case.kind) for case in CASES])
def test_a_refusal_is_healed_once_in_the_whole_conversation(case: Case, ask: Callable[..., asides.Reply]) -> None:
    with refusing(case.refuse) as served:
        begun = [*case.history, *([case.ends_with] if case.ends_with else [])]
        reply = ask(served, case, begun)
        assert reply.text == "42"
        assert served.count() == 1 + case.repairs, [json.dumps(body) for body in served.bodies]
        if case.check is not None:
            assert case.check(served), _last_body(served)
        codes = [notice.code for notice in reply.warnings]
        assert case.notice in codes, codes
        if not case.is_fact:
            assert reply.learned == ()
            return
        assert reply.learned, "nothing would be remembered"
        assert {fact.kind for fact in reply.learned} == {case.kind.partition(" ")[0].partition(",")[0]}
        count = served.count()
        # The next turn of the same conversation.
        after = [*begun, message_of(reply), user("And then?")]
        again = ask(served, case, after)
        assert served.count() == count + 1, [json.dumps(body) for body in served.bodies]
        # Another conversation in the same process.
        other = ask(served, case, begun)
        assert served.count() == count + 2
        # The saved conversation in another process.
        forget()
        loaded = _save_and_load([*after, message_of(again), user("Go on.")])
        ask(served, case, loaded)
        assert served.count() == count + 3
        # And the other one, which never saw the refusal.
        forget()
        ask(served, case, _save_and_load([*begun, message_of(other), user("Go on.")]))
        assert served.count() == count + 4
