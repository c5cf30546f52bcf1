"""Encode prompts as generateContent requests: address, headers, tools, settings, thinking, history and signatures."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.gemini import dialect
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.values.errors import ConfigError, InvalidThinking, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, ThinkingSetting, Thought, read_thinking
from asides.values.tools import Tool

VERTEX = {"GOOGLE_CLOUD_LOCATION": "europe-west4", "GOOGLE_CLOUD_PROJECT": "my-project"}
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def encoded(
    prompt: Prompt, model: str = "google:gemini-2.5-flash", **options: Any
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    target = find_target(model, environ=VERTEX)
    planned = plan(prompt, target, **options)
    request, notices = dialect.encode(planned.prompt, target)
    return json.loads(request.body), (*planned.notices, *notices)


def thinking_of(setting: ThinkingSetting, model: str, max_tokens: int | None = None, **options: Any) -> Any:
    prompt = Prompt((user("hi"),), thinking=read_thinking(setting)[0], max_tokens=max_tokens)
    body, _ = encoded(prompt, model, **options)
    return body.get("generationConfig", {}).get("thinkingConfig")


# --- where ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "stream", "url"),
    [
        (
            "google:gemini-3-pro",
            False,
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
        ),
        (
            "gemini:gemini-3-pro",
            True,
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "google:tunedModels/mine",
            False,
            "https://generativelanguage.googleapis.com/v1beta/tunedModels/mine:generateContent",
        ),
        (
            "vertex:gemini-3-pro",
            False,
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-3-pro:generateContent",
        ),
    ],
)
def test_the_model_and_the_verb_are_in_the_address(model: str, stream: bool, url: str) -> None:
    request, _ = dialect.encode(Prompt((user("hi"),), stream=stream), find_target(model, environ=VERTEX))
    assert request.url == url


def test_the_global_region_has_a_host_without_one() -> None:
    target = find_target("vertex:gemini-3-pro", environ={**VERTEX, "GOOGLE_CLOUD_LOCATION": "global"})
    assert target.base_url == (
        "https://aiplatform.googleapis.com/v1beta1/projects/my-project/locations/global/publishers/google"
    )


def test_vertex_without_a_project_raises_with_the_variable_to_set() -> None:
    with pytest.raises(ConfigError, match="GOOGLE_CLOUD_LOCATION"):
        find_target("vertex:gemini-3-pro", environ={})


@pytest.mark.parametrize(
    ("model", "header"), [("google:x", ("x-goog-api-key", "")), ("vertex:x", ("Authorization", "Bearer "))]
)
def test_the_header_that_carries_the_key(model: str, header: tuple[str, str]) -> None:
    request, _ = dialect.encode(Prompt((user("hi"),)), find_target(model, environ=VERTEX))
    assert request.credential_header == header


# --- settings ---------------------------------------------------------------------------------------------------------


def test_every_setting_under_its_name() -> None:
    prompt = Prompt(
        (user("hi"),),
        system="Be brief.",
        sampling=Sampling(
            temperature=0.5, top_p=0.9, top_k=40, presence_penalty=0.1, frequency_penalty=0.2, seed=7, top_logprobs=3
        ),
        max_tokens=100,
        stop=("END",),
        output=OutputSchema("answer", {"type": "object"}),
    )
    body, notices = encoded(prompt)
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "logprobs": 3,
            "seed": 7,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    }
    assert notices == ()


def test_settings_without_a_field_give_a_notice() -> None:
    prompt = Prompt(
        (user("hi"),), sampling=Sampling(min_p=0.1), metadata={"a": "b"}, user="me", parallel_tool_calls=False
    )
    body, notices = encoded(prompt)
    assert {notice.setting for notice in notices if notice.code == "setting_dropped"} == {
        "min_p",
        "metadata",
        "user",
        "parallel_tool_calls",
    }
    assert "generationConfig" not in body


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (None, None),
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("look", {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_tools_and_which_to_call(choice: str | None, config: dict[str, Any] | None) -> None:
    body, _ = encoded(Prompt((user("hi"),), tools=(LOOK,), tool_choice=choice))
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look", "description": "Looks.", "parametersJsonSchema": LOOK.parameters},
            ]
        }
    ]
    assert body.get("toolConfig") == (None if config is None else {"functionCallingConfig": config})


def test_native_fields_win_and_leave_their_siblings() -> None:
    extra = {"generationConfig": {"topK": 1}, "safetySettings": [{"category": "X"}]}
    body, _ = encoded(Prompt((user("hi"),), max_tokens=9, sampling=Sampling(top_k=40), extra=extra))
    assert body["generationConfig"] == {"topK": 1, "maxOutputTokens": 9}
    assert body["safetySettings"] == [{"category": "X"}]


# --- thinking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "setting", "config"),
    [
        ("google:gemini-2.5-flash", None, None),
        ("google:gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("google:gemini-2.5-flash", "on", {"thinkingBudget": -1, "includeThoughts": True}),
        ("google:gemini-2.5-flash", "auto", {"thinkingBudget": -1, "includeThoughts": True}),
        ("google:gemini-2.5-flash", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("google:gemini-2.5-flash", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("google:gemini-2.5-flash", 3000, {"thinkingBudget": 3000, "includeThoughts": True}),
        ("google:gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 512, "includeThoughts": True}),
        ("google:gemini-2.5-pro", "max", {"thinkingBudget": 24576, "includeThoughts": True}),
        (
            "google:gemini-2.5-flash",
            {"effort": "low", "show": "none"},
            {"thinkingBudget": 1024, "includeThoughts": False},
        ),
        ("google:gemini-3-pro", None, None),
        ("google:gemini-3-pro", "on", {"includeThoughts": True}),
        ("google:gemini-3-pro", "low", {"thinkingLevel": "LOW", "includeThoughts": True}),
        # Only later models take MEDIUM.
        ("google:gemini-3-pro", "medium", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("google:gemini-3.1-pro", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("google:gemma-4-31b-it", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemma-4-31b-it", "low", {"thinkingLevel": "MINIMAL", "includeThoughts": True}),
        ("google:gemini-3-pro", "xhigh", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemini-3-pro", "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("google:gemini-3.5-flash", "minimal", {"thinkingLevel": "MINIMAL", "includeThoughts": True}),
        ("google:gemini-3.8-flash", "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("google:gemini-3.5-flash", 1500, {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("google:gemini-3.5-flash", 5000, {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("google:gemini-3.5-flash", 30000, {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemini-4-argon", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemini-9", "max", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemini-9", "off", {"thinkingLevel": "MINIMAL"}),
    ],
)
def test_the_amount_of_thinking(model: str, setting: ThinkingSetting, config: dict[str, Any] | None) -> None:
    assert thinking_of(setting, model) == config


@pytest.mark.parametrize("setting", ["low", 5000, "on"])
def test_a_model_without_levels_is_only_asked_to_show_its_thinking(setting: ThinkingSetting) -> None:
    prompt = Prompt((user("hi"),), thinking=read_thinking(setting)[0])
    body, notices = encoded(prompt, "google:gemini-3-pro-image")
    assert body["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
    assert [notice.setting for notice in notices] == ([] if setting == "on" else ["thinking"])


def test_mapped_values_give_notices() -> None:
    def codes(setting: ThinkingSetting, model: str) -> list[tuple[str, str | None, str | None]]:
        prompt = Prompt((user("hi"),), thinking=read_thinking(setting)[0], max_tokens=50_000)
        return [(notice.code, notice.asked, notice.sent) for notice in encoded(prompt, model)[1]]

    assert codes("low", "google:gemini-2.5-flash") == [("effort_mapped", "low", "1024")]
    assert codes(5000, "google:gemini-3.1-pro") == [("budget_mapped", "5000", "medium")]
    assert codes(5000, "google:gemini-3-pro") == [("budget_mapped", "5000", "low")]
    assert codes("max", "google:gemini-3-pro") == [("effort_mapped", "max", "high")]
    assert [code for code, _, _ in codes("max", "google:gemini-9")] == ["unknown_model", "effort_mapped"]


def test_an_effort_leaves_room_for_an_answer() -> None:
    assert thinking_of("high", "google:gemini-2.5-flash", 1000)["thinkingBudget"] == 500


@pytest.mark.parametrize(
    ("setting", "model"),
    [
        ("off", "google:gemini-2.5-pro"),
        ("off", "google:gemini-3-pro"),
        (100, "google:gemini-2.5-pro"),
        (40_000, "google:gemini-2.5-flash"),
        ("high", "google:gemini-2.0-flash"),
    ],
)
def test_settings_that_a_model_does_not_allow_are_refused_before_sending(setting: ThinkingSetting, model: str) -> None:
    with pytest.raises(InvalidThinking):
        thinking_of(setting, model)


@pytest.mark.parametrize(
    ("setting", "model", "config"),
    [
        ("off", "google:gemini-2.5-pro", {"thinkingBudget": 512, "includeThoughts": True}),
        ("off", "google:gemini-3-pro", {"thinkingLevel": "LOW", "includeThoughts": True}),
        (100, "google:gemini-2.5-pro", {"thinkingBudget": 128, "includeThoughts": True}),
        ("high", "google:gemini-2.0-flash", None),
    ],
)
def test_or_they_are_adjusted_on_request(setting: ThinkingSetting, model: str, config: Any) -> None:
    assert thinking_of(setting, model, on_conflict="adjust") == config


# --- the history ------------------------------------------------------------------------------------------------------


def contents(*messages: Message, model: str = "google:gemini-3-pro") -> list[dict[str, Any]]:
    body, _ = encoded(Prompt(messages), model)
    sent: list[dict[str, Any]] = body["contents"]
    return sent


def test_results_of_one_turn_are_one_content_and_texts_are_separate() -> None:
    history = (
        user("look twice"),
        assistant(ToolCall("c1", "look", {"at": "x"}), ToolCall("c2", "look", {"at": "y"})),
        Message("tool", (ToolResult("c1", "one"),)),
        Message("tool", (ToolResult("c2", "no", is_error=True),)),
        user("and now?"),
    )
    sent = contents(*history, model="google:gemini-2.5-flash")
    assert [content["role"] for content in sent] == ["user", "model", "user", "user"]
    assert sent[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "one"}}},
        {"functionResponse": {"id": "c2", "name": "look", "response": {"error": "no"}}},
    ]
    assert sent[3]["parts"] == [{"text": "and now?"}]


def test_pictures_and_files() -> None:
    sent = contents(
        user(
            Image(data=b"hi", media_type="image/png"),
            Image(url="https://example.org/a.png"),
            Image(url="data:image/gif;base64,aGk="),
            File(data=b"hi", media_type="application/pdf"),
            File(id="https://generativelanguage.googleapis.com/v1beta/files/abc"),
        )
    )
    assert sent[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
        {"inlineData": {"mimeType": "image/gif", "data": "aGk="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
        {
            "fileData": {
                "mimeType": "application/pdf",
                "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc",
            }
        },
    ]
    with pytest.raises(Unsupported):
        contents(user(msgspec.convert({"type": "image"}, Image)))


def test_a_picture_from_a_tool_is_sent_beside_its_result() -> None:
    result = ToolResult("c1", (Text("a map"), Image(data=b"hi")), "look")
    sent = contents(user("?"), assistant(ToolCall("c1", "look")), Message("tool", (result,)))
    assert [next(iter(part)) for part in sent[2]["parts"]] == ["functionResponse", "inlineData"]


def test_later_system_messages_join_the_instruction() -> None:
    body, notices = encoded(Prompt((system("a"), user("hi"), system("b")), system="first"))
    assert body["systemInstruction"] == {"parts": [{"text": "first"}, {"text": "a"}, {"text": "b"}]}
    assert [notice.code for notice in notices] == ["system_moved"]


ORIGIN = Origin("google", "https://generativelanguage.googleapis.com/v1beta", "gemini-3-pro")
SEAL = Seal("thought_signature", "a+b/c=", ORIGIN)


def test_each_signature_is_in_its_part_and_no_thought_goes_without_one() -> None:
    answer = assistant(
        Thought("plan", "summary", "block", ORIGIN),
        Thought("signed plan", "summary", "block", ORIGIN, (SEAL,)),
        Text("one "),
        Text("two", (SEAL,)),
        Text("", (SEAL,)),
        Image(data=b"hi", seals=(SEAL,)),
        ServerTool("executableCode", json='{"executableCode": {"code": "1"}, "thoughtSignature": "x"}', seals=(SEAL,)),
        ServerTool("groundingMetadata", json="{}"),
        Refusal("I would rather not."),
    )
    assert contents(user("?"), answer, user("go on"))[1]["parts"] == [
        {"text": "signed plan", "thought": True, "thoughtSignature": "a+b/c="},
        {"text": "one "},
        {"text": "two", "thoughtSignature": "a+b/c="},
        {"text": "", "thoughtSignature": "a+b/c="},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "a+b/c="},
        {"executableCode": {"code": "1"}, "thoughtSignature": "a+b/c="},
        {"text": "I would rather not."},
    ]


def test_a_tool_of_the_server_goes_without_the_signature_that_plan_took_away() -> None:
    code = ServerTool("executableCode", json='{"executableCode": {"code": "1"}, "thoughtSignature": "x"}')
    assert contents(user("?"), assistant(code), user("!"))[1]["parts"] == [{"executableCode": {"code": "1"}}]


def test_parts_of_other_providers_are_left_out() -> None:
    foreign = Origin("elsewhere", "https://example.org", "m")
    answer = assistant("42", UnknownPart('{"type": "x"}', foreign), ServerTool("s", origin=foreign))
    assert contents(user("?"), answer, user("!"))[1]["parts"] == [{"text": "42"}]


def test_content_that_cannot_be_sent_gives_a_notice() -> None:
    messages = (user("?", Refusal("no")), Message("assistant", (Text(""),)), user("!", Image(url="xx:y", detail="low")))
    body, notices = encoded(Prompt(messages))
    assert [content["role"] for content in body["contents"]] == ["user", "user"]
    assert [notice.code for notice in notices] == ["part_not_sent", "message_not_sent", "detail_not_sent"]


def test_invalid_arguments_are_sent_as_none_with_a_notice() -> None:
    broken = ToolCall("c1", "look", {}, '{"at": ')
    body, notices = encoded(Prompt((user("?"), assistant(broken), Message("tool", (ToolResult("c1", "no"),)))))
    assert body["contents"][1]["parts"] == [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]
    assert [notice.code for notice in notices] == ["tool_arguments_dropped"]


def test_system_messages_are_text_only() -> None:
    body, notices = encoded(Prompt((Message("system", (Image(data=b"hi"), Text(" "))), user("?"))))
    assert "systemInstruction" not in body
    assert [notice.code for notice in notices] == ["part_not_sent"]


def test_a_tool_choice_without_tools_gives_a_notice_unless_they_are_native() -> None:
    assert [notice.code for notice in encoded(Prompt((user("?"),), tool_choice="auto"))[1]] == ["setting_dropped"]
    native = Prompt((user("?"),), tool_choice="auto", extra={"tools": [{"googleSearch": {}}]})
    assert encoded(native)[1] == ()


def test_a_native_part_of_the_caller_is_sent_unchanged() -> None:
    assert contents(user(UnknownPart('{"videoMetadata": {"fps": 1}}')))[0]["parts"] == [{"videoMetadata": {"fps": 1}}]


def test_a_result_that_belongs_to_nothing_is_not_guessed() -> None:
    target = find_target("google:gemini-3-pro")
    with pytest.raises(Unsupported, match="c9"):
        dialect.encode(Prompt((Message("tool", (ToolResult("c9", "x"),)),)), target)
