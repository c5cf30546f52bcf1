"""What is asked of a Responses endpoint: the requirements on the request, by id, as the body that goes out."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides import dialects
from asides.history.plan import plan
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides_stage.stage import OpenStage, Raw, Say
from tests.responses import DIALECT, call, message, read, reasoning, whole

MODEL = "openai-responses:gpt-5"


def told(prompt: Any = "Hi", model: str = MODEL, **options: Any) -> asides.Explanation:
    return asides.explain(model, prompt, **options)


def body(prompt: Any = "Hi", model: str = MODEL, **options: Any) -> dict[str, Any]:
    sent = told(prompt, model, **options).body
    assert isinstance(sent, dict)
    return sent


def codes(explanation: asides.Explanation) -> list[str]:
    return [notice.code for notice in explanation.notices]


def own(*items: dict[str, Any], **fields: Any) -> asides.Reply:
    """A reply that came from where these requests go."""
    row = find_provider("openai-responses")
    return read(whole(*items, **fields), Target(row, "gpt-5", row.base_url, row.rule("gpt-5")))


@pytest.mark.requirement(
    "S0-53",
    "S0-55",
    "S0-56",
    "S0-58",
    "S0-70",
    "S1-07",
    "S1-08",
    "S1-33",
    "FT-16",
    "S4-A2",
    "S0-76",
    "S0-49",
    "S0-42",
    "S1-09",
    "S1-12",
)
def test_the_golden_body_of_a_stateless_question() -> None:
    explanation = told(thinking="high", system="Be brief.", max_tokens=500)
    assert explanation.url == "https://api.openai.com/v1/responses"
    assert explanation.body == {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Hi"}],
        "max_output_tokens": 500,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
    }


@pytest.mark.requirement("S0-55")
def test_an_empty_system_prompt_is_no_instructions() -> None:
    assert "instructions" not in body(system="  ")


@pytest.mark.requirement("S0-57")
def test_nothing_asked_about_thinking_asks_nothing() -> None:
    assert "reasoning" not in body()


@pytest.mark.parametrize("summary", ["auto", "concise", "detailed"])
@pytest.mark.requirement("S1-14", "S3-13")
def test_I5_summaries_by_name(summary: Any) -> None:
    assert body(thinking=Thinking(effort="low", summary=summary))["reasoning"] == {"effort": "low", "summary": summary}


@pytest.mark.requirement("S0-49", "S3-13")
def test_I5_no_summary_is_asked_for_when_none_is_to_be_shown_and_brief_is_concise() -> None:
    assert body(thinking=Thinking(effort="low", show="none"))["reasoning"] == {"effort": "low"}
    assert body(thinking={"effort": "low", "summary": "none"})["reasoning"] == {"effort": "low"}
    assert body(reasoning={"effort": "low", "summary": "none"})["reasoning"] == {"effort": "low"}
    explanation = told(thinking={"effort": "low", "summary": "brief"})
    assert explanation.body["reasoning"]["summary"] == "concise"
    assert "summary_mapped" in codes(explanation)


@pytest.mark.requirement("FT-18")
def test_I6_encrypted_reasoning_is_asked_for_where_there_can_be_some_and_nothing_is_stored() -> None:
    assert body()["include"] == ["reasoning.encrypted_content"]
    assert "include" not in body(model="openai-responses:gpt-4o")
    assert "include" not in body(model="openai-responses:gpt-5.1", thinking="off")
    assert "include" not in body(previous_response_id="resp_1")


@pytest.mark.requirement("S1-22", "FT-18", "S3-17")
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_S1_21_what_came_encrypted_is_sent_back_in_every_later_call(stage: OpenStage, streaming: bool) -> None:
    look = ToolCall("call_abc", "look_up", {})
    served = stage(Say(thinking="plan", tool_calls=(look,)), Say(thinking="more", text="18 °C"), Say(text="Sure."))
    tools = [{"name": "look_up", "parameters": {"type": "object", "properties": {}}}]
    options: dict[str, Any] = {"base_url": served.url, "api_key": "k", "thinking": "low", "tools": tools}
    first = asides.ask(MODEL, "Weather?", stream=streaming, **options)
    history: list[Any] = [user("Weather?"), first, Message("tool", (ToolResult("call_abc", "18 °C"),))]
    second = asides.ask(MODEL, history, stream=streaming, **options)
    asides.ask(MODEL, [*history, second, user("Sure?")], stream=streaming, **options)
    sealed = [seal.value for reply in (first, second) for seal in reply.seals if seal.kind == "encrypted"]
    assert len(sealed) == 2
    asked = [request.json for request in served.requests]
    assert [body["include"] for body in asked] == [["reasoning.encrypted_content"]] * 3
    assert [body["store"] for body in asked] == [False] * 3
    went_back = [[item["encrypted_content"] for item in body["input"] if "encrypted_content" in item] for body in asked]
    assert went_back == [[], sealed[:1], sealed]


@pytest.mark.requirement("S4-REQ-004.3", "S0-59")
def test_only_fields_that_the_endpoint_has_are_sent() -> None:
    explanation = told(model="openai-responses:gpt-4o", temperature=0.5, top_k=3, seed=1, stop=["x"], top_p=0.9)
    sent = explanation.body
    assert (sent["temperature"], sent["top_p"]) == (0.5, 0.9)
    assert not {"top_k", "seed", "stop"} & sent.keys()
    assert codes(explanation).count("setting_dropped") == 3


def test_tools_choice_and_schema_in_this_endpoint_s_form() -> None:
    def look(at: str) -> str:
        """Look."""
        return at

    sent = body(tools=[look], tool_choice="look", parallel_tool_calls=False, output={"type": "object", "title": "Sky"})
    assert sent["tools"][0]["type"] == "function"
    assert (sent["tools"][0]["name"], sent["tools"][0]["strict"]) == ("look", False)
    assert sent["tool_choice"] == {"type": "function", "name": "look"}
    assert sent["parallel_tool_calls"] is False
    assert sent["text"]["format"] == {
        "type": "json_schema",
        "name": "Sky",
        "schema": {"type": "object", "title": "Sky"},
        "strict": False,
    }


def test_context_mode_truncation_and_metadata() -> None:
    sent = body(
        reasoning_context="all_turns", reasoning_mode="pro", truncation="auto", metadata={"a": "b"}, include=["x"]
    )
    assert sent["reasoning"] == {"context": "all_turns", "mode": "pro"}
    assert (sent["truncation"], sent["metadata"], sent["include"][0]) == ("auto", {"a": "b"}, "x")


# --- history --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-REQ-007.1", "S1-22", "pain C5", "pain C6", "S3-17")
def test_a_turn_with_a_call_goes_back_item_by_item() -> None:
    reply = own(reasoning("plan", encrypted="gAAA"), message("I look.", phase="commentary"), call())
    result = Message("tool", (ToolResult("call_abc", "18 °C"),))
    sent = body([user("Weather?"), reply, result])
    assert sent["input"] == [
        {"role": "user", "content": "Weather?"},
        reasoning("plan", encrypted="gAAA"),
        message("I look.", phase="commentary"),
        call(),
        {"type": "function_call_output", "call_id": "call_abc", "output": "18 °C"},
    ]


@pytest.mark.requirement("pain C5")
def test_an_edited_turn_goes_back_without_ids() -> None:
    reply = own(reasoning(encrypted="gAAA"), message("Hello"))
    edited = assistant(reply.parts[0], Text("Hello!"))
    sent = body([user("?"), edited, user("?")])["input"]
    assert sent[1:3] == [
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"role": "assistant", "content": "Hello!"},
    ]


@pytest.mark.requirement("pain C5")
def test_reasoning_that_nothing_follows_is_not_sent() -> None:
    reply = own(reasoning(encrypted="gAAA"), message("Hello"))
    explanation = told([user("?"), assistant(reply.parts[0]), user("?")])
    assert [item.get("role") for item in explanation.body["input"]] == ["user", "user"]
    assert "reasoning_not_sent" in codes(explanation)


@pytest.mark.requirement("pain C6")
def test_C6_pain_an_id_without_its_content_is_not_sent_where_nothing_is_stored() -> None:
    reply = own(reasoning("plan"), message("Hello"))
    sent = body([user("?"), reply, user("?")])["input"]
    assert [item.get("type", item.get("role")) for item in sent] == ["user", "message", "user"]
    assert "id" not in sent[1]
    # A provider that has stored it knows the id.
    kept = body([user("?"), reply, user("?")], store=True)["input"]
    assert [item.get("id") for item in kept[1:3]] == ["rs_1", "msg_1"]


def test_summary_is_always_there() -> None:
    bare = own({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"}, message("Hello"))
    assert body([user("?"), bare, user("?")])["input"][1] == reasoning(encrypted="gAAA")
    thought = Thought("", "hidden", "responses_summary", seals=(Seal("encrypted", "gAAA"),))
    sent = body([user("?"), assistant(thought, "Hello"), user("?")])["input"]
    assert sent[1] == {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}


@pytest.mark.requirement("pain C7")
def test_H5_another_model_s_state_is_not_sent() -> None:
    reply = own(reasoning("plan", encrypted="gAAA"), message("Hello"))
    sent = body([user("?"), reply, user("?")], model="openai-responses:gpt-5-mini")["input"]
    assert sent[1] == {"role": "assistant", "content": "Hello"}
    assert len(sent) == 3


def test_thoughts_are_dropped_when_asked_to() -> None:
    reply = own(reasoning("plan", encrypted="gAAA"), message("Hello"))
    sent = body([user("?"), reply, user("?")], thinking=Thinking(replay="never"))["input"]
    assert "gAAA" not in json.dumps(sent)
    assert sent[1]["content"][0]["text"] == "Hello"
    assert "id" not in sent[1]


def test_arguments_go_back_byte_for_byte_unless_they_were_changed() -> None:
    spaced = call(arguments='{ "location" : "SF" }')
    reply = own(reasoning(encrypted="e"), spaced)
    result = Message("tool", (ToolResult("call_abc", "x"),))
    assert body([user("?"), reply, result])["input"][2]["arguments"] == '{ "location" : "SF" }'
    changed = assistant(
        reply.parts[0], ToolCall("call_abc", "get_weather", {"location": "LA"}, None, reply.tool_calls[0].seals)
    )
    assert body([user("?"), changed, result])["input"][2]["arguments"] == '{"location":"LA"}'


def test_a_host_that_wants_calls_together_gets_them_together() -> None:
    row = find_provider("deepseek").with_dialect(DIALECT)
    assert row is not None
    target = Target(row, "deepseek-v4-flash", row.base_url, row.rule("deepseek-v4-flash"))
    turn = assistant(ToolCall("a", "one"), "and", ToolCall("b", "two"))
    results = Message("tool", (ToolResult("a", "1"), ToolResult("b", "2")))
    planned = plan(asides.Prompt((user("?"), turn, results)), target)
    request, _ = dialects.find_dialect(DIALECT).encode(planned.prompt, target)
    kinds = [item.get("type", item.get("role")) for item in json.loads(request.body)["input"]]
    # The turn has lost its thinking, and this host wants some: a stand-in leads.
    assert kinds == [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]


# --- stateful -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-REQ-004.1", "S4-REQ-004.2", "FT-19")
def test_H7_only_what_is_new_goes_to_a_parent_and_instructions_go_again() -> None:
    first = own(reasoning("plan"), call(), id="resp_7", store=True)
    history = [user("Weather?"), first, Message("tool", (ToolResult("call_abc", "18 °C"),))]
    sent = body(history, stateful=True, system="Be brief.")
    assert sent["previous_response_id"] == "resp_7"
    assert sent["input"] == [{"type": "function_call_output", "call_id": "call_abc", "output": "18 °C"}]
    assert sent["instructions"] == "Be brief."
    assert "include" not in sent


def test_H7_turns_of_others_since_then_are_sent() -> None:
    first = own(message("one"), id="resp_7", store=True)
    sent = body([user("1"), first, user("2"), assistant("two, said another"), user("3")], stateful=True)
    assert sent["previous_response_id"] == "resp_7"
    assert [item["content"] for item in sent["input"]] == ["2", "two, said another", "3"]


def test_H7_results_of_calls_that_the_provider_has_are_sent_though_the_calls_are_not_here() -> None:
    result = Message("tool", (ToolResult("call_abc", "18 °C"),))
    sent = body([result], previous_response_id="resp_1")
    assert sent["input"] == [{"type": "function_call_output", "call_id": "call_abc", "output": "18 °C"}]
    assert "orphan_tool_result" in codes(told([user("?"), result]))


def test_state_where_nobody_keeps_any_is_told() -> None:
    assert codes(told(model="groq:any", stateful=True)) == ["state_not_sent"]
    assert codes(told(stateful=True)) == []


def test_H8_what_was_not_stored_is_no_parent() -> None:
    first = own(message("one"), id="resp_7", store=False)
    assert first.to_message() == Message("assistant", first.parts)
    sent = body([user("1"), first, user("2")], stateful=True)
    assert "previous_response_id" not in sent
    assert (sent["store"], len(sent["input"])) == (True, 3)


@pytest.mark.requirement("S4-REQ-004.2", "S4-EC8")
def test_a_parent_that_is_not_in_the_history_stands_for_all_up_to_the_last_answer() -> None:
    sent = body([user("1"), assistant("one"), user("2")], previous_response_id="resp_elsewhere")
    assert sent["input"] == [{"role": "user", "content": "2"}]


def test_a_parent_and_a_conversation_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="both"):
        body(previous_response_id="resp_1", conversation_id="conv_1")
    assert body(conversation_id="conv_1")["conversation"] == "conv_1"


def test_H9_state_survives_json() -> None:
    reply = own(reasoning("plan", encrypted="gAAA"), message("Hello", phase="final_answer"), id="resp_7", store=True)
    kept = reply.to_message()
    assert kept is not None
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Message) == kept
    assert kept.stored is not None
    assert kept.stored.id == "resp_7"


# --- hosts ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-39")
def test_azure_has_two_forms_of_address(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://r.openai.azure.com"
    monkeypatch.delenv("OPENAI_API_VERSION", raising=False)
    newer = told(model="azure:mine", base_url=url, family="gpt-5", api_key="k-123456")
    assert newer.url == f"{url}/openai/v1/responses"
    assert newer.headers["api-key"] == "***"
    assert newer.body["model"] == "mine"
    older = told(
        model="azure:mine", base_url=f"{url}?api-version=2025-04-01-preview", family="gpt-5", endpoint="responses"
    )
    assert older.url == f"{url}/openai/responses?api-version=2025-04-01-preview"


def test_xai_speaks_responses_with_encrypted_reasoning() -> None:
    explanation = told(model="xai:grok-4.3", thinking="high")
    assert explanation.url == "https://api.x.ai/v1/responses"
    assert (explanation.body["store"], explanation.body["include"]) == (False, ["reasoning.encrypted_content"])


def test_a_server_of_one_s_own_is_asked_without_what_it_has_not() -> None:
    sent = body(model="llamacpp:tiny-reasoner", endpoint="responses", thinking="high")
    assert not {"store", "include"} & sent.keys()
    assert sent["reasoning"] == {"effort": "high"}


@pytest.mark.requirement("S0-68", "FT-17", "S0-16", "S1-29", "S0-49")
def test_raw_is_shown_only_when_asked_and_then_also_in_metadata(stage: OpenStage) -> None:
    both = whole(reasoning("short", raw=("long",), encrypted="e"), message("42"))
    served = stage(Raw(body=both, content_type="application/json"))
    usual = asides.ask(MODEL, "?", base_url=served.url)
    assert usual.metadata["thinking"] == "short"
    assert not {"thinking_raw", "thinking_encrypted"} & usual.metadata.keys()
    asked = asides.ask(
        MODEL, "?", base_url=served.url, thinking=Thinking(effort="high", show="raw"), thinking_encrypted=True
    )
    assert (asked.metadata["thinking"], asked.metadata["thinking_type"]) == ("long", "raw")
    assert (asked.metadata["thinking_raw"], asked.metadata["thinking_encrypted"]) == ("long", ("e",))
    assert asked.text == "42"


@pytest.mark.requirement("S0-73", "S3-22", "S4-A3")
def test_no_sdk_is_needed_and_few_other_packages() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=!~ \[;]", name)[0] for name in project["dependencies"]}
    assert needed == {"msgspec", "fastjsonschema", "argcomplete", "tomlkit"}


@pytest.mark.requirement("S4-REQ-007.1", "S4-REQ-007.2")
def test_the_page_shows_items_and_events_of_this_endpoint_and_not_of_chat() -> None:
    page = (Path(__file__).parents[3] / "docs" / "responses.md").read_text(encoding="utf-8")
    for word in (
        "function_call_output",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.completed",
    ):
        assert word in page
    assert "chat.completion" not in page
    assert '"tool_calls"' not in page


# --- recordings -----------------------------------------------------------------------------------------------------

FOLDER = Path(os.environ.get("ASIDES_RECORDINGS") or Path(__file__).parents[4] / "shared" / "recordings")


def continued() -> list[dict[str, Any]]:
    if not (FOLDER / "manifest.jsonl").exists():
        return []
    entries = [json.loads(line) for line in (FOLDER / "manifest.jsonl").read_text().splitlines()]
    known = {entry["id"]: entry for entry in entries if entry["dialect"] == DIALECT}
    pairs = [(known.get(entry["continues_from"]), entry) for entry in known.values() if entry["continues_from"]]
    return [before for before, _ in pairs if before is not None and before["status"] == 200]


@pytest.mark.recordings
@pytest.mark.skipif(not continued(), reason="no folder of recordings beside this checkout")
@pytest.mark.parametrize("entry", continued(), ids=lambda entry: entry["id"].rpartition("/")[2])
def test_every_recorded_turn_goes_back_with_all_that_the_endpoint_needs(entry: dict[str, Any]) -> None:
    try:
        row = find_provider(entry["provider"]).with_dialect(DIALECT)
    except asides.UnknownProvider:
        row = None
    row = row or find_provider("openai-responses")
    model = entry["model"]
    target = Target(row, model, row.base_url or "https://example.test/v1", row.rule(model))
    data = (FOLDER / entry["file"]).read_bytes()
    decoder = dialects.find_dialect(DIALECT).decoder(target)
    reply = asides.fold([*decoder.feed(data), *decoder.finish()])
    results = tuple(ToolResult(one.id, "done") for one in reply.tool_calls)
    after = Message("tool", results) if results else user("Go on.")
    planned = plan(asides.Prompt((user("?"), Message("assistant", reply.parts), after)), target)
    request, _ = dialects.find_dialect(DIALECT).encode(planned.prompt, target)
    sent = json.loads(request.body)["input"][1:]
    came = _items(data)
    if row.replay_rule(model).when == "all":
        encrypted = [item["encrypted_content"] for item in came if item.get("encrypted_content")]
        assert [item["encrypted_content"] for item in sent if item.get("encrypted_content")] == encrypted
        if encrypted:
            assert [item["id"] for item in sent if item.get("type") == "reasoning"] == [
                item["id"] for item in came if item.get("type") == "reasoning" and item.get("encrypted_content")
            ]
    assert [item["phase"] for item in sent if item.get("phase")] == [
        item["phase"] for item in came if item.get("phase")
    ]
    for item in came:
        if item["type"] == "function_call":
            assert any(
                one.get("call_id") == item["call_id"] and one.get("arguments") == item["arguments"] for one in sent
            )
    for place, item in enumerate(sent):
        if item.get("type") == "reasoning":
            assert sent[place + 1].get("type", "message") in (
                "message",
                "function_call",
                "reasoning",
                "custom_tool_call",
            ) or (sent[place + 1]["type"].endswith(("_call", "_output", "_tools")))


def _items(data: bytes) -> list[dict[str, Any]]:
    if data.lstrip()[:1] == b"{":
        output = json.loads(data)["output"]
        assert isinstance(output, list)
        return output
    documents = [
        json.loads(line[5:]) for line in data.splitlines() if line.startswith(b"data:") and b"[DONE]" not in line
    ]
    return [event["item"] for event in documents if event["type"] == "response.output_item.done"]
