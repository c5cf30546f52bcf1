"""`plan`: the parts that go back, the parts that are adapted, and requests that are refused."""

from __future__ import annotations

import json

import msgspec
import pytest

import asides
from asides.history.plan import PASSES, Draft, Plan, plan
from asides.providers.find import find_target
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, ReplayWhen, Target
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Message, Prompt, ProviderState, Sampling, user
from asides.values.parts import File, Text, ToolCall, ToolResult
from asides.values.thinking import Origin, Seal, Thinking, Thought
from asides.values.traits import find_traits
from asides_stage.stage import OpenStage, Say

URL = "http://127.0.0.1:9/v1"


def target(
    rule: ModelRule | None = None,
    *,
    when: ReplayWhen = "never",
    name: str = "example",
    model: str = "m",
    url: str = URL,
) -> Target:
    row = Provider(
        name=name, base_url=url, models=(rule,) if rule else (), replay=(ReplayRule(when=when),), quirks=Quirks()
    )
    return Target(row, model, url, row.rule(model))


def ask(rule: ModelRule, thinking: Thinking | None = None, *, adjust: bool = False, **settings: object) -> Plan:
    prompt = Prompt((user("hi"),), thinking=thinking or Thinking(), **settings)  # type: ignore[arg-type]
    return plan(prompt, target(rule), on_conflict="adjust" if adjust else "raise")


def codes(planned: Plan) -> list[str]:
    return [notice.code for notice in planned.notices]


OPTIONAL = ModelRule(thinking="optional", efforts=("low", "high"), budget=(1024, 8000))
ALWAYS = ModelRule(thinking="always", efforts=("low", "medium"))


# --- how much to think ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-27", "FT-11")
def test_the_nearest_effort_is_sent_and_said() -> None:
    planned = ask(OPTIONAL, Thinking(effort="max"))
    assert planned.prompt.thinking.effort == "high"
    assert [(notice.code, notice.asked, notice.sent) for notice in planned.notices] == [
        ("effort_mapped", "max", "high")
    ]
    assert ask(OPTIONAL, Thinking(effort="minimal")).prompt.thinking.effort == "low"
    assert ask(OPTIONAL, Thinking(effort="medium")).prompt.thinking.effort == "low"
    mapped = ModelRule(thinking="optional", efforts=("low", "high"), effort_map=(("medium", "high"),))
    assert ask(mapped, Thinking(effort="medium")).prompt.thinking.effort == "high"


def test_an_unset_effort_stays_unset() -> None:
    planned = ask(OPTIONAL)
    assert planned.prompt.thinking == Thinking()
    assert planned.notices == ()


def test_what_is_not_known_is_sent_as_asked_with_a_warning() -> None:
    planned = ask(ModelRule(), Thinking(effort="xhigh"))
    assert planned.prompt.thinking.effort == "xhigh"
    assert codes(planned) == ["unknown_model"]


def test_thinking_asked_of_a_model_that_does_not_think() -> None:
    never = ModelRule(thinking="never")
    with pytest.raises(InvalidThinking, match="does not think") as caught:
        ask(never, Thinking(effort="low"))
    assert caught.value.setting == "thinking"
    planned = ask(never, Thinking(effort="low"), adjust=True)
    assert not planned.prompt.thinking.asked
    assert codes(planned) == ["thinking_unsupported"]
    assert codes(ask(never, Thinking(mode="off"))) == []


def test_off_asked_of_a_model_that_cannot_stop() -> None:
    with pytest.raises(InvalidThinking, match="cannot stop thinking"):
        ask(ALWAYS, Thinking(mode="off"))
    planned = ask(ALWAYS, Thinking(mode="off"), adjust=True)
    assert planned.prompt.thinking.effort == "low"
    assert codes(planned) == ["thinking_cannot_stop"]


@pytest.mark.requirement("FT-27")
@pytest.mark.parametrize(
    ("budget", "max_tokens", "sent"),
    [
        (1023, None, (1024, 1024 + 4096)),
        (9000, None, (8000, 8000 + 4096)),
        (4000, 3000, (1500, 3000)),
        (2000, 2000, (1024, 2000)),
        (1024, 1024, (1024, 5120)),
    ],
)
def test_pain_D1_a_budget_that_does_not_fit_raises_or_is_adjusted(
    budget: int, max_tokens: int | None, sent: tuple[int, int]
) -> None:
    with pytest.raises(InvalidThinking):
        ask(OPTIONAL, Thinking(budget=budget), max_tokens=max_tokens)
    planned = ask(OPTIONAL, Thinking(budget=budget), adjust=True, max_tokens=max_tokens).prompt
    assert (planned.thinking.budget, planned.max_tokens) == sent


def test_pain_D1_a_budget_without_a_limit_gets_room_for_an_answer() -> None:
    planned = ask(OPTIONAL, Thinking(budget=2000))
    assert planned.prompt.max_tokens == 2000 + 4096
    assert codes(planned) == ["max_tokens_chosen"]


@pytest.mark.requirement("FT-21", "S0-59", "S1-11")
def test_pain_D3_a_setting_that_the_model_refuses_while_it_thinks() -> None:
    rule = ModelRule(thinking="optional", default="on", forbids=("temperature", "stop"))
    with pytest.raises(InvalidThinking, match="temperature"):
        ask(rule, Thinking(mode="on"), sampling=Sampling(temperature=0.5))
    with pytest.raises(InvalidThinking, match=r"[Ll]eave temperature out or turn thinking off, or pass"):
        ask(rule, sampling=Sampling(temperature=0, seed=1))
    always = ModelRule(thinking="always", forbids=("temperature", "stop"))
    with pytest.raises(InvalidThinking, match=r"[Ll]eave temperature out, or pass"):
        ask(always, sampling=Sampling(temperature=0))
    with pytest.raises(InvalidThinking, match=r"[Ll]eave stop out, or pass"):
        ask(always, stop=("x",))
    habit = ask(rule, adjust=True, sampling=Sampling(temperature=0.5, seed=1), stop=("x",))
    assert (habit.prompt.sampling, habit.prompt.stop) == (Sampling(seed=1), ())
    assert codes(habit) == ["setting_dropped", "setting_dropped"]
    off = ask(rule, Thinking(mode="off"), sampling=Sampling(temperature=0.5))
    assert off.prompt.sampling.temperature == 0.5


def test_a_forced_tool_where_the_model_refuses_it() -> None:
    rule = ModelRule(thinking="always", forced_tools=False)
    with pytest.raises(InvalidThinking, match="forced"):
        ask(rule, tool_choice="required")
    planned = ask(rule, tool_choice="get_weather", adjust=True)
    assert planned.prompt.tool_choice == "auto"
    assert ask(rule, tool_choice="auto").notices == ()


def test_an_empty_system_prompt_is_none() -> None:
    assert ask(OPTIONAL, system="").prompt.system is None


# --- what goes back ---------------------------------------------------------------------------------------------------


def said(
    text: str,
    thought: str,
    *calls: ToolCall,
    origin: Origin | None = None,
    seals: tuple[Seal, ...] = (),
    complete: bool = True,
) -> Message:
    return Message("assistant", (Thought(thought, origin=origin, seals=seals, complete=complete), Text(text), *calls))


CALL = ToolCall("c1", "look_up", {})
RESULT = Message("tool", (ToolResult("c1", "found"),))
HISTORY = (
    user("1"),
    said("a", "T1"),
    user("2"),
    said("b", "T2", CALL),
    RESULT,
    said("c", "T3"),
    user("3"),
    said("d", "T4", ToolCall("c2", "look_up")),
    Message("tool", (ToolResult("c2", "x"),)),
)


def thoughts_sent(planned: Plan) -> list[str]:
    return [part.text for message in planned.prompt.messages for part in message.parts if isinstance(part, Thought)]


@pytest.mark.requirement("S0-09", "S3-07", "FT-28")
@pytest.mark.parametrize(
    ("when", "sent"),
    [("never", []), ("tool_turns", ["T2", "T4"]), ("since_last_user", ["T4"]), ("all", ["T1", "T2", "T3", "T4"])],
)
def test_the_replay_rule_of_the_row_decides(when: ReplayWhen, sent: list[str]) -> None:
    planned = plan(Prompt(HISTORY), target(when=when))
    assert thoughts_sent(planned) == sent
    assert len(planned.decisions) == 4
    assert HISTORY[1].parts[0] == Thought("T1"), "the history itself is not touched"


def test_replay_never_beats_the_row() -> None:
    assert thoughts_sent(plan(Prompt(HISTORY, thinking=Thinking(replay="never")), target(when="all"))) == []


def test_only_the_maker_gets_its_thoughts_back_and_gets_them_back() -> None:
    ours, theirs = Origin("example", URL, "m"), Origin("other", "http://127.0.0.1:8/v1", "n")
    history = (user("1"), said("a", "mine", origin=ours), user("2"), said("b", "foreign", origin=theirs), user("3"))
    assert thoughts_sent(plan(Prompt(history), target(when="all"))) == ["mine"]
    there = target(when="all", name="other", model="n", url="http://127.0.0.1:8/v1")
    assert thoughts_sent(plan(Prompt(history), there)) == ["foreign"]
    assert [
        message.text for message in plan(Prompt(history), there).prompt.messages if message.role == "assistant"
    ] == ["a", "b"]


def test_a_thought_is_bound_to_its_model_unless_the_rule_says_otherwise() -> None:
    """Its seals are bound to the model in any case."""
    other_model = Origin("example", URL, "older")
    sealed = said("a", "sealed", origin=other_model, seals=(Seal("signature", "s", other_model),))
    plain = said("b", "plain", origin=other_model)
    own = said("c", "own", origin=Origin("example", URL, "m"))
    unnamed = said("d", "unnamed", origin=Origin("example", URL, ""))
    history = Prompt((user("1"), sealed, user("2"), plain, user("3"), own, user("4"), unnamed, user("5")))
    strict = target(when="all")
    assert thoughts_sent(plan(history, strict)) == ["own", "unnamed"]
    row = msgspec.structs.replace(strict.provider, replay=(ReplayRule(when="all", other_models=True),))
    lenient = Target(row, "m", URL)
    assert thoughts_sent(plan(history, lenient)) == ["plain", "own", "unnamed"]


IMPORTED: dict[str, dict[str, object]] = {
    "field": {"reasoning_content": "T"},
    "other field": {"reasoning": "T"},
    "details": {"reasoning_details": [{"type": "reasoning.text", "text": "T"}]},
    "signed details": {"reasoning_details": [{"type": "reasoning.text", "text": "T", "signature": "c2lnbmVk"}]},
    "summary": {"reasoning_details": [{"type": "reasoning.summary", "summary": "T"}]},
    "encrypted": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2VhbGVk"}]},
}


@pytest.mark.parametrize(
    "model",
    [
        "anthropic:claude-opus-4-6",
        "anthropic-compatible:any",
        "minimax-anthropic:MiniMax-M2",
        "bedrock:us.anthropic.claude-opus-4-6-v1",
        "google:gemini-3.1-pro-preview",
        "openai-responses:gpt-5.4",
    ],
)
@pytest.mark.parametrize("kind", IMPORTED)
def test_imported_thinking_of_another_dialect_goes_to_none_that_thinks_in_blocks(model: str, kind: str) -> None:
    """Messages, for one, refuses a thinking block with an empty signature."""
    said_before = {"role": "assistant", "content": "A", **IMPORTED[kind]}
    history: list[dict[str, object]] = [
        {"role": "user", "content": "?"},
        said_before,
        {"role": "user", "content": "And?"},
    ]
    url = "http://127.0.0.1:9/v1" if model.startswith("anthropic-c") else None
    environment = {"AWS_REGION": "eu-west-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        sent = json.dumps(asides.explain(model, history, api_key="k", base_url=url).body)
    assert '"T"' not in sent
    assert "signature" not in sent.lower()
    assert 'encrypted_content": "c2VhbGVk' not in sent


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("groq:openai/gpt-oss-120b", "reasoning"),
        ("deepseek:deepseek-chat", "reasoning_content"),
        ("moonshot:kimi-k2.6", "reasoning_content"),
        ("openai-compatible:any", None),
    ],
)
@pytest.mark.parametrize("given", ["reasoning_content", "reasoning"])
def test_imported_thinking_goes_in_the_one_field_that_a_host_takes(model: str, field: str | None, given: str) -> None:
    """Groq refuses `reasoning_content`. A server of which nothing is known gets the field that the caller wrote."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said_before = {"role": "assistant", given: "T", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "r"}
    url = "http://127.0.0.1:9/v1" if field is None else None
    body = asides.explain(
        model, [{"role": "user", "content": "?"}, said_before, result], api_key="k", base_url=url
    ).body
    fields = {name: value for name, value in body["messages"][1].items() if value == "T"}
    assert fields == {field or given: "T"}


def test_a_result_for_a_stored_call_keeps_the_id_that_its_provider_knows() -> None:
    """Some hosts count their calls from zero in every response."""
    calls = (Message("assistant", (ToolCall("c1", "f"),)), RESULT)
    history = (user("1"), *calls, user("2"), *calls)
    state = ProviderState(previous_response_id="resp_2")
    planned = plan(Prompt(history, state=state), target())
    assert planned.prompt.messages == (RESULT,)


@pytest.mark.parametrize("same", ["http://127.0.0.1:9/v1/", "HTTP://127.0.0.1:9/v1"])
def test_addresses_that_mean_the_same_are_the_same(same: str) -> None:
    history = (user("1"), said("a", "mine", origin=Origin("example", same, "m")), user("2"))
    assert thoughts_sent(plan(Prompt(history), target(when="all"))) == ["mine"]


def test_a_thought_of_unknown_origin_is_kept_and_a_broken_one_is_not() -> None:
    history = (user("1"), said("a", "imported"), user("2"), said("b", "cut", complete=False), user("3"))
    assert thoughts_sent(plan(Prompt(history), target(when="all"))) == ["imported"]


def test_a_turn_that_only_thought_is_dropped_with_its_thought() -> None:
    history = (user("1"), Message("assistant", (Thought("hm"),)), user("2"))
    assert [message.role for message in plan(Prompt(history), target()).prompt.messages] == ["user", "user"]


def test_a_message_that_says_nothing_without_a_result_that_no_call_asked_for_is_left_out() -> None:
    orphaned = Message("user", (ToolResult("c9", "42", "f"), Text(" ")))
    planned = plan(Prompt((user("1"), orphaned, user("2"))), target())
    assert planned.prompt.messages == (user("1"), user("2"))
    assert codes(planned) == ["orphan_tool_result", "blank_message_dropped"]


def test_every_call_is_answered_and_every_result_asked_for() -> None:
    history = (
        user("1"),
        Message("assistant", (ToolCall("c1", "f"), ToolCall("c2", "g"))),
        RESULT,
        Message("tool", (ToolResult("zz", "?"),)),
        user("2"),
    )
    planned = plan(Prompt(history), target())
    results = [
        part.call_id for message in planned.prompt.messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert results == ["c1", "c2"]
    assert codes(planned) == ["orphan_tool_result", "dangling_tool_call"]
    assert [message.role for message in planned.prompt.messages] == ["user", "assistant", "tool", "tool", "user"]


def test_H6_what_recorded_bytes_say_goes_back_where_the_row_has_no_address_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    content = [
        {"reasoningContent": {"reasoningText": {"text": "a thought", "signature": "seal"}}},
        {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}},
    ]
    body = json.dumps({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use"})
    turn = asides.decode("bedrock", body, provider="bedrock", model=model).to_message()
    assert turn is not None
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    history: list[Message | dict[str, str]] = [user("?"), turn, result]
    sent = asides.explain(f"bedrock:{model}", history, thinking=3000).body
    assert sent["messages"][1]["content"] == content
    elsewhere = asides.explain("bedrock:us.anthropic.claude-opus-4-7", history).body
    assert "seal" not in json.dumps(elsewhere)


@pytest.mark.parametrize("named", [{}, {"model": "claude-sonnet-4-5"}, {"provider": "anthropic"}])
def test_H6_recorded_bytes_of_which_not_all_is_named_go_back_in_their_own_dialect_only(named: dict[str, str]) -> None:
    content = [{"type": "thinking", "thinking": "t", "signature": "seal"}, {"type": "text", "text": "hi"}]
    body = json.dumps({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"})
    turn = asides.decode("anthropic", body, **named).to_message()  # type: ignore[arg-type]
    assert turn is not None
    history = [user("?"), turn, user("?")]
    sent = asides.explain("anthropic:claude-sonnet-4-5", history, thinking=3000).body
    assert sent["messages"][1]["content"] == content
    for elsewhere in ("openai-responses:gpt-5", "google:gemini-3-pro-preview", "deepseek:deepseek-chat"):
        assert "seal" not in json.dumps(asides.explain(elsewhere, history).body)


def test_a_turn_without_parts_in_front_of_calls_breaks_nothing() -> None:
    from asides.history.turns import lacks_thinking

    called = Message("assistant", (ToolCall("call_1", "look"),))
    assert lacks_thinking((user("?"), Message("assistant"), called))
    assert not lacks_thinking((user("?"), Message("assistant")))


@pytest.mark.parametrize("model", ["cohere:command-a-reasoning-08-2025", "moonshot:kimi-k2-thinking", "groq:qwen3"])
def test_what_was_said_without_a_word_is_left_out_of_the_past(model: str, stage: OpenStage) -> None:
    open_stage = stage(Say(text="Well."))
    past = [Message("user"), Message("assistant", (Text("Yes?"),)), user("  \n"), Message("assistant", (Text("?"),))]
    reply = asides.ask(model, [*past, user("There.")], base_url=open_stage.url, api_key="made-up")
    assert reply.text == "Well."
    assert open_stage.requests[0].problem is None
    assert "blank_message_dropped" in [notice.code for notice in reply.warnings]
    served = open_stage.requests[0].served
    assert served is not None
    assert [message.text for message in served.prompt.messages if message.role == "user"] == ["There."]


# --- media that a dialect cannot carry --------------------------------------------------------------------------------

PDF = File("a.pdf", b"%PDF", media_type="application/pdf")
WAV = File("a.wav", b"RIFF", media_type="audio/wav")


@pytest.mark.parametrize(
    ("model", "file"),
    [
        ("ollama:qwen3", PDF),
        ("cohere:command-a-03-2025", PDF),
        ("bedrock:us.anthropic.claude-opus-4-6-v1", WAV),
        ("anthropic:claude-opus-4-6", WAV),
        ("openai-responses:gpt-5.4", WAV),
    ],
)
def test_a_file_that_a_dialect_cannot_carry_ends_no_conversation(
    model: str, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was fine when it was sent, perhaps to another model. In the question itself it is an error."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    earlier = [user("What is in it?", file), Message("assistant", (Text("A plan."),)), user("And now?")]
    explained = asides.explain(model, earlier, api_key="k")
    assert [notice.code for notice in explained.notices].count("files_dropped") == 1
    assert "a file was here" in json.dumps(explained.body)
    with pytest.raises(asides.Unsupported):
        asides.explain(model, [*earlier, user("This one?", file)], api_key="k")
    adjusted = asides.explain(model, [user("This one?", file)], api_key="k", on_conflict="adjust")
    assert "a file was here" in json.dumps(adjusted.body)


@pytest.mark.parametrize("model", ["ollama:qwen3:8b", "cohere:command-a-03-2025"])
def test_a_file_of_the_past_does_not_end_the_conversation_and_one_of_the_question_is_refused(model: str) -> None:
    """Another provider took it. In a tool's result it is no question either."""
    called = Message("assistant", (ToolCall("c1", "f"),))
    result = Message("tool", (ToolResult("c1", (Text("r"), PDF)),))
    past = (user("read", PDF), called, result, Message("assistant", (Text("A"),)))
    planned = asides.explain(model, (*past, user("and?")), api_key="k")
    assert "files_dropped" in [notice.code for notice in planned.notices]
    assert json.dumps(planned.body).count("[a file was here; it cannot be shown]") == 2
    with pytest.raises(Unsupported):
        asides.explain(model, (*past, user("and", PDF)), api_key="k")
    text = File(data=b"abc", media_type="text/plain", name="a.txt")
    assert "a file was here" not in json.dumps(asides.explain(model, (user("read", text), user("?")), api_key="k").body)


# --- passes -----------------------------------------------------------------------------------------------------------


def list_passes(planned: Plan) -> list[str]:
    return [each.name for each in planned.passes]


def test_a_plan_names_the_passes_that_changed_the_request() -> None:
    assert list_passes(ask(OPTIONAL)) == []
    assert list_passes(ask(OPTIONAL, Thinking(effort="max"))) == ["check_settings"]
    call, result = ToolCall("c", "f"), ToolResult("c", "42", "f")
    mixed = (user("?"), Message("assistant", (call,)), user(result, "and?"))
    assert list_passes(plan(Prompt(mixed), target())) == []
    twice = (user("?"), Message("assistant", (call,)), Message("tool", (result,)), Message("assistant", (call,)))
    assert list_passes(plan(Prompt(twice), target())) == ["unique_ids", "pair_calls"]
    blank = (Message("user", ()), Message("assistant", (Thought("t"), Text("a"))), user("!"))
    assert list_passes(plan(Prompt(blank), target())) == ["replay", "drop_blanks"]


def test_each_pass_has_a_name_and_a_reason_of_one_line() -> None:
    assert len({each.name for each in PASSES}) == len(PASSES)
    assert all(each.reason and "\n" not in each.reason for each in PASSES)


def test_a_pass_that_changes_nothing_returns_its_draft() -> None:
    prompt = Prompt((user("?"), Message("assistant", (Text("a"),)), user("!")))
    draft = Draft(prompt, target(), "raise", prompt.messages, find_traits(prompt.messages))
    assert all(each.run(draft).prompt is prompt for each in PASSES)


def test_explain_prints_the_passes_with_their_reasons() -> None:
    history = (user("?"), Message("assistant", (ToolCall("c", "f"),)), user("!"))
    shown = asides.explain("anthropic:claude-opus-4-5", history, api_key="k")
    reasons = {each.name: each.reason for each in PASSES}
    assert shown.passes == {name: reasons[name] for name in ("pair_calls", "add_called_tools")}
    assert f"  pair_calls: {reasons['pair_calls']}\n" in shown.to_text()
    assert "What the plan changed" not in asides.explain("anthropic:claude-opus-4-5", "?", api_key="k").to_text()


@pytest.mark.parametrize("model", ["qwen.qwen3-32b-v1:0", "zai.glm-4.7", "moonshotai.kimi-k2.5"])
@pytest.mark.parametrize("thinking", [Thinking("off"), Thinking(effort="high")], ids=["off", "high"])
def test_on_bedrock_only_claude_refuses_thoughts_while_thinking_is_off(model: str, thinking: Thinking) -> None:
    """Elsewhere a thought that is withheld at first, and sent one request later, breaks the prefix that is cached."""
    there, claude = (
        find_target(f"bedrock:{name}", environ={"AWS_REGION": "us-east-1"})
        for name in (model, "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    )
    turn = Message("assistant", (Thought("hm", source="block", origin=there.origin), ToolCall("c1", "look", {})))
    history = (user("?"), turn, Message("tool", (ToolResult("c1", "blue", "look"),)))
    sent = plan(Prompt(history, thinking=thinking), there, on_conflict="adjust").prompt.messages
    assert [part for message in sent for part in message.parts if isinstance(part, Thought)]
    assert claude.refuses_thoughts_while_off
