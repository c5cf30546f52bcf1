"""Histories from public reports that a provider refuses for good: the doctor reports each, in the words of the server,
and its repair is one that the rules accept. The plan of an ordinary call sends one that they accept, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import asides
from asides.history.doctor.diagnose import diagnose

Wire = dict[str, Any]
ASKED: Wire = {"role": "user", "content": "one"}
SAID: Wire = {"role": "assistant", "content": "A"}
SYSTEM: Wire = {"role": "system", "content": "Be brief."}
CALL: Wire = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLED: Wire = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Wire = {"role": "tool", "tool_call_id": "c1", "content": "blue"}
UNSIGNED = {"type": "reasoning.text", "text": "hm", "format": "anthropic-claude-v1", "index": 0}


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def content(role: str, *parts: Wire) -> Wire:
    return {"role": role, "parts": list(parts)}


def g_call(name: str, signature: str | None = "c2ln") -> Wire:
    part: Wire = {"functionCall": {"name": name, "args": {}}}
    return part | ({"thoughtSignature": signature} if signature else {})


def g_result(name: str) -> Wire:
    return {"functionResponse": {"name": name, "response": {"output": "fine"}}}


G_ASKED = content("user", {"text": "one"})
LOOK_RESULT = content("user", g_result("look"))
BOTH_RESULTS = content("user", g_result("look"), g_result("feel"))


SEARCH: Wire = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SEARCH_RESULT: Wire = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MARK: Wire = {"cache_control": {"type": "ephemeral"}}


class Stuck(NamedTuple):
    """A history that is refused, and words of the refusal."""

    model: str
    words: str
    history: Any

    def __str__(self) -> str:
        return f"{self.model}: {self.words}"


ALTERNATE, NO_QUERY, CALL_TURN = "roles must alternate", "No user query found", "function call turn comes immediately"
EMPTY_CALLS, PASSED_BACK = "tool_calls", "must be passed back"
STUCK = [
    *(
        Stuck(model, ALTERNATE, history)
        for model in ("vllm:google/gemma-3-27b-it", "llamacpp:gemma-3-12b-it", "lmstudio:google/gemma-3-12b")
        for history in (
            [user("one"), user("two")],
            [user("?"), user("?")],
            [user("one"), user("two"), user("three")],
            [SYSTEM, user("one"), user("two")],
            [user("one"), SAID, {**SAID, "content": "B"}, user("two")],
        )
    ),
    *(
        Stuck(model, NO_QUERY, history)
        for model in ("vllm:Qwen/Qwen3.5-27B", "llamacpp:Qwen3.6-35B-A3B", "lmstudio:qwen/qwen3.5-9b")
        for history in ([SYSTEM, CALLED, RESULT], [CALLED, RESULT], [SYSTEM])
    ),
    *(
        Stuck("sglang:Qwen/Qwen3.5-27B", NO_QUERY, history)
        for history in ([SYSTEM, CALLED, RESULT], [CALLED, RESULT], [SYSTEM])
    ),
    *(
        Stuck(model, "System role not supported", history)
        for model in ("vllm:google/gemma-2-9b-it", "sglang:google/gemma-1.1-7b-it", "llamacpp:gemma-2b-it")
        for history in ([SYSTEM, user("one")], [SYSTEM, user("one"), SAID, user("two")], [ASKED, SAID, SYSTEM, ASKED])
    ),
    *(
        Stuck("perplexity:sonar", "should alternate with assistant", history)
        for history in ([ASKED, user("two")], [SYSTEM, ASKED, SAID, SAID, user("two")])
    ),
    *(Stuck(f"{name}:glm-4.6", "not received normally", [SYSTEM]) for name in ("zai", "zai-coding")),
    *(
        Stuck(
            "anthropic:claude-opus-5",
            words,
            [ASKED, {"role": "assistant", "content": [*given, {"type": "text", "text": "A"}]}, user("two")],
        )
        for words, given in (
            ("was found without a corresponding", [SEARCH]),
            ("was found without a corresponding", [SEARCH, SEARCH_RESULT, {**SEARCH, "id": "srvtoolu_2"}]),
            ("must have a corresponding `server_tool_use`", [SEARCH_RESULT]),
            ("Extra inputs", [{"type": "thinking", "thinking": "hm", "signature": "c2ln", **MARK}]),
            ("Extra inputs", [{"type": "redacted_thinking", "data": "c2ln", **MARK}]),
        )
    ),
    Stuck("llamacpp:Qwen3.5-9B", "System message must be at the beginning", [ASKED, SYSTEM, SAID, user("two")]),
    *(
        Stuck(model, EMPTY_CALLS, history)
        for model in ("openai:gpt-4o", "azure:gpt-4o", "qwen:qwen3-max")
        for history in ([ASKED, {**SAID, "tool_calls": []}, user("two")], [ASKED, {**SAID, "tool_calls": []}])
    ),
    *(
        Stuck(model, words, [ASKED, {**CALLED, "tool_calls": [{**CALL, "function": {"name": "", "arguments": "{}"}}]},
                             RESULT, user("two")])
        for model, words in (("openai:gpt-4o", "function.name': empty string"),
                             ("minimax:MiniMax-M2", "function name or parameters is empty"))
    ),
    Stuck("openai:gpt-4o", "string too long", [ASKED, {**CALLED, "tool_calls": [{**CALL, "id": "x" * 41}]},
                                               {**RESULT, "tool_call_id": "x" * 41}]),
    Stuck("deepseek:deepseek-v4-pro", "unknown variant `developer`", [{**SYSTEM, "role": "developer"}, ASKED]),
    Stuck("llamacpp:gpt-oss-20b", "Cannot pass both content and thinking",
          [ASKED, {**CALLED, "content": "Let me look.", "reasoning_content": "hm"}, RESULT]),
    Stuck("llamacpp:gpt-oss-20b", "containing <|channel|> tags",
          [ASKED, {**SAID, "content": "<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>A"},
           user("so?")]),
    Stuck("minimax:MiniMax-M2", "chat content is empty", [ASKED, CALLED, {**RESULT, "content": ""}]),
    Stuck("minimax:MiniMax-M2", "chat content is empty", [ASKED, {**SAID, "content": ""}, user("two")]),
    Stuck("minimax:MiniMax-M2", "chat content is empty", [ASKED, {**CALLED, "content": ""}, RESULT]),
    *(
        Stuck("openrouter:anthropic/claude-sonnet-4.5", "are not whole", [ASKED, turn, *rest])
        for turn, rest in (
            ({**SAID, "reasoning": "hm", "reasoning_details": [UNSIGNED]}, [user("two")]),
            ({**CALLED, "reasoning": "hm", "reasoning_details": [UNSIGNED]}, [RESULT]),
        )
    ),
    Stuck(
        "deepseek-anthropic:deepseek-v4-pro",
        PASSED_BACK,
        [
            ASKED,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "blue"}]},
        ],
    ),
    Stuck("llamacpp:qwen3", "prefill is incompatible", {"model": "qwen3", "messages": [ASKED, SAID]}),
    *(
        Stuck("google:gemini-3-pro-preview", words, history)
        for words, history in (
            (
                "missing a thought_signature",
                [G_ASKED, content("model", g_call("look")), content("model", g_call("feel", None)), BOTH_RESULTS],
            ),
            (
                CALL_TURN,
                [G_ASKED, content("model", {"text": "hm"}), content("model", g_call("look", None)), LOOK_RESULT],
            ),
            (CALL_TURN, [content("model", g_call("look")), LOOK_RESULT]),
            (
                "number of function response parts",
                [G_ASKED, content("model", g_call("look"), g_call("feel", None)), LOOK_RESULT,
                 content("user", g_result("feel"))],
            ),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("stuck", STUCK, ids=str)
def test_a_stuck_history_is_reported_and_repaired(stuck: Stuck) -> None:
    found = diagnose(stuck.history, stuck.model)
    assert any(stuck.words in finding.detail for finding in found.refused), found.findings
    assert all(finding.repair for finding in found.refused)
    again = diagnose(found.repaired, stuck.model)
    assert again.sound, again.findings
    assert diagnose(again.repaired, stuck.model).repaired == found.repaired


@pytest.mark.parametrize(
    ("model", "history"),
    [
        ("vllm:google/gemma-3-27b-it", [ASKED, SAID, user("two")]),
        ("vllm:Qwen/Qwen3.5-27B", [SYSTEM, ASKED, CALLED, RESULT]),
        ("vllm:Qwen/Qwen3-8B", [SYSTEM, CALLED, RESULT]),
        ("vllm:Qwen/Qwen3-8B", [user("one"), user("two")]),
        ("openai:gpt-4o", [ASKED, {**SAID, "tool_calls": None}, user("two")]),
        ("minimax:MiniMax-M2", [ASKED, CALLED, RESULT]),
        ("openai:gpt-4o", [ASKED, {**CALLED, "tool_calls": [{**CALL, "id": "x" * 40}]},
                           {**RESULT, "tool_call_id": "x" * 40}]),
        ("openai:gpt-4o", [{**SYSTEM, "role": "developer"}, ASKED]),
        ("llamacpp:gpt-oss-20b", [ASKED, {**CALLED, "reasoning_content": "hm"}, RESULT]),
        ("llamacpp:gpt-oss-20b", [ASKED, {**CALLED, "content": "Let me look."}, RESULT]),
        ("llamacpp:qwen3", [ASKED, {**CALLED, "content": "Let me look.", "reasoning_content": "hm"}, RESULT]),
        ("llamacpp:qwen3", [ASKED, SAID]),
        ("google:gemini-3-pro-preview", [G_ASKED, content("model", g_call("look")), content("model", g_call("feel")),
                                         BOTH_RESULTS]),
        ("google:gemini-3-pro-preview", [G_ASKED, content("model", g_call("look"), g_call("feel", None)),
                                         BOTH_RESULTS]),
    ],
)  # fmt: skip
def test_the_nearest_history_that_is_taken_is_sound(model: str, history: Any) -> None:
    found = diagnose(history, model)
    assert found.sound, found.findings
    assert found.repaired == history


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        ("vllm:Qwen/Qwen3.5-27B", ["system", "user", "assistant", "tool"]),
        ("vllm:Qwen/Qwen3-8B", ["system", "assistant", "tool"]),
    ],
)
def test_a_call_adds_the_words_of_a_user_where_a_template_wants_them(model: str, roles: list[str]) -> None:
    asked = asides.explain(model, [SYSTEM, CALLED, RESULT])
    assert [message["role"] for message in asked.body["messages"]] == roles
    assert ("turn_added" in [notice.code for notice in asked.notices]) is ("user" in roles)


def blocks(role: str, *parts: Wire) -> Wire:
    return {"role": role, "content": list(parts)}


USED: Wire = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
USED_RESULT: Wire = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "blue"}
CLAUDE, GPT, GPT_5, GEMINI = (
    "anthropic:claude-opus-5",
    "openai:gpt-4o",
    "openai-responses:gpt-5",
    "google:gemini-2.5-pro",
)
R_ASKED: Wire = {"type": "message", "role": "user", "content": "one"}
R_CALL: Wire = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
R_OUTPUT: Wire = {"type": "function_call_output", "output": "blue"}
NO_OBJECTS: list[Any] = ["{}", '{"at": 1}', '{"at": 1', "", [], 5]
UNREADABLE = [
    *(
        Stuck(
            CLAUDE, "Input should be a valid dictionary", [ASKED, blocks("assistant", {**USED, "input": given}), result]
        )
        for result in [blocks("user", USED_RESULT)]
        for given in NO_OBJECTS
    ),
    Stuck(
        CLAUDE,
        "unexpected `tool_use_id`",
        [ASKED, blocks("assistant", USED), blocks("user", {"type": "tool_result", "content": "blue"})],
    ),
    *(
        Stuck(
            GPT, "must be a response to a preceeding message", [*before, {**RESULT, "tool_call_id": given}, user("two")]
        )
        for before in ([ASKED], [ASKED, CALLED])
        for given in (None, 5)
    ),
    Stuck(
        GPT,
        "must be a response to a preceeding message",
        [ASKED, {**CALLED, "tool_calls": [CALL, {**CALL, "id": "c2"}]}, {"role": "tool", "content": "red"}, RESULT],
    ),
    Stuck(GPT_5, "No tool call found", [R_ASKED, R_CALL, R_OUTPUT]),
    *(
        Stuck(
            GEMINI, "Please use a valid role", [G_ASKED, content(role, {"text": "A"}), content("user", {"text": "two"})]
        )
        for role in ("assistant", "ai")
    ),
]


@pytest.mark.parametrize("stuck", UNREADABLE, ids=str)
def test_a_history_that_no_importer_reads_is_reported_and_repaired(stuck: Stuck) -> None:
    with pytest.raises(asides.ConfigError):
        asides.explain(stuck.model, stuck.history)
    test_a_stuck_history_is_reported_and_repaired(stuck)


def test_arguments_that_are_text_are_kept() -> None:
    history = [ASKED, blocks("assistant", {**USED, "input": '{"at": 1}'}), blocks("user", USED_RESULT)]
    assert diagnose(history, CLAUDE).repaired[1]["content"][0]["input"] == {"at": 1}


def test_a_result_without_an_id_answers_the_call_that_has_none() -> None:
    calls = {**CALLED, "tool_calls": [CALL, {**CALL, "id": "c2"}]}
    found = diagnose([ASKED, calls, {"role": "tool", "content": "red"}, RESULT], GPT).repaired
    assert {item["tool_call_id"]: item["content"] for item in found if item["role"] == "tool"} == {
        "c1": "blue",
        "c2": "red",
    }
