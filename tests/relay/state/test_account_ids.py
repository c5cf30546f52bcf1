"""Ids of a provider's account belong to the tenant whose replies had them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from asides.relay.state.account_ids import _SLICE, find_account_ids, list_reply_ids
from asides.values.parts import ServerTool, Text
from asides.values.reply import Reply
from asides.values.thinking import Seal
from asides_stage import Stage
from asides_stage.stage import Raw, Say
from tests.relay.relaying import Door
from tests.relay.responses_items import read_response

OPENAI = "openai-responses:gpt-5.2"
USER = {"role": "user", "content": "?"}

NAMED: list[tuple[Any, str]] = [
    # Responses
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}]}, "input.content.file_id"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}]}, "input.content.file_id"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input.id"),
    ({"input": [{"id": "x"}]}, "input.id"),
    ({"input": [{"type": "reasoning", "id": "x", "summary": []}]}, "input.id"),
    ({"input": [{"type": "reasoning", "id": "x"}]}, "input.id"),
    ({"input": [{"type": "reasoning", "id": "x", "encrypted_content": None, "content": []}]}, "input.id"),
    *(
        ({"input": [{"type": kind, "id": "x"}]}, "input.id")
        for kind in (None, "message", "web_search_call", "image_generation_call", "compaction")
    ),
    ({"input": [{"status": "completed", "id": "x", "content": []}]}, "input.id"),
    ({"input": [{"type": "image_generation_call", "id": "x", "result": None}]}, "input.id"),
    ({"input": [{"type": "code_interpreter_call", "id": "ci_1", "container_id": "x"}]}, "input.container_id"),
    # Interactions
    ({"input": {"type": "image", "uri": "files/x"}}, "input.uri"),
    ({"input": {"type": "user_input", "content": [{"type": "document", "uri": "gs://b/x"}]}}, "input.content.uri"),
    ({"input": [{"type": "function_result", "result": [{"type": "image", "uri": "files/x"}]}]}, "input.result.uri"),
    ({"tools": [{"type": "file_search", "vector_store_ids": ["x"]}]}, "tools.vector_store_ids"),
    ({"tools": [{"type": "code_interpreter", "container": "x"}]}, "tools.container"),
    ({"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["x"]}}]}, "tools.container"),
    ({"prompt": {"id": "x", "version": "1"}}, "prompt.id"),
    # Messages
    (
        {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "x"}}]}]},
        "",
    ),
    ({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "x"}]}]}, ""),
    ({"container": "x"}, "container"),
    ({"container": {"id": "x"}}, "container.id"),
    ({"container": {"skills": [{"type": "custom", "skill_id": "x"}]}}, "container.skills.skill_id"),
    ({"thread": {"id": "x"}}, "thread.id"),
    ({"workspace_id": "x"}, "workspace_id"),
    # Chat completions, xAI, Mistral
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}]}, ""),
    ({"tools": [{"type": "collections_search", "collection_ids": ["x"]}]}, ""),
    ({"tools": [{"type": "document_library", "library_ids": ["x"]}]}, ""),
    ({"messages": [{"content": [{"type": "image_url", "image_url": {"url": "gs://bucket/x"}}]}]}, ""),
    # Gemini
    ({"contents": [{"parts": [{"fileData": {"fileUri": "files/x"}}]}]}, "contents.parts.fileData.fileUri"),
    ({"contents": [{"parts": [{"file_data": {"file_uri": "gs://bucket/x"}}]}]}, ""),
    (
        {
            "contents": [
                {"parts": [{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}}]}
            ]
        },
        "",
    ),
    ({"cachedContent": "x"}, "cachedContent"),
    ({"cached_content": "x"}, "cached_content"),
    ({"tools": [{"fileSearch": {"fileSearchStoreNames": ["x"]}}]}, ""),
    ({"tools": [{"retrieval": {"vertexAiSearch": {"datastore": "x"}}}]}, ""),
    # Converse
    ({"messages": [{"content": [{"document": {"source": {"s3Location": {"uri": "s3://bucket/x"}}}}]}]}, ""),
    # In another case, and in the result of a tool.
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"File_ID": "x"}}]}]}, ""),
    ({"input": [{"type": "function_call_output", "output": [{"type": "input_file", "file_id": "x"}]}]}, ""),
]

OTHERS: list[Any] = [
    {"messages": [USER], "metadata": {"file_id": "x", "container": "x"}},
    {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": {"file_id": "x"}}]}]},
    {"input": [{"type": "function_result", "call_id": "c", "name": "a", "result": {"file_id": "x"}}]},
    {"input": [{"type": "image_generation_call", "id": "x", "result": "iVBO"}]},
    {"input": [{"type": "function_call", "id": "x", "call_id": "c", "name": "a", "arguments": ""}]},
    {"messages": [{"role": "user", "content": 'call it with "file_id": "x" or gs://bucket/x'}]},
    {"input": [{"type": "function_call", "arguments": '{"file_id": "x"}'}]},
    {"contents": [{"parts": [{"functionCall": {"args": {"file_id": "x"}}}]}]},
    {"contents": [{"parts": [{"functionResponse": {"response": {"container": "x"}}}]}]},
    {"contents": [{"parts": [{"fileData": {"fileUri": "https://www.youtube.com/watch?v=x"}}]}]},
    {"messages": [{"content": [{"toolUse": {"toolUseId": "t", "input": {"fileId": "x"}}}]}]},
    {"messages": [{"content": [{"toolResult": {"content": [{"json": {"fileId": "x"}}]}}]}]},
    {"tools": [{"function": {"parameters": {"properties": {"file_id": {"type": "string"}}, "required": ["file_id"]}}}]},
    {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}},
    {"prompt": "a text for /api/generate", "images": []},
    {"input": [{"type": "reasoning", "id": "x", "summary": [{"type": "summary_text", "text": "a"}]}]},
    {"input": [{"type": "reasoning", "id": "x", "summary": [], "encrypted_content": "gAAAA"}]},
    {"input": [{"type": "message", "role": "assistant", "id": "x", "content": []}], "reasoning": {"effort": "low"}},
    {
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}]}
        ]
    },
]


@pytest.mark.parametrize(("body", "field"), NAMED)
def test_an_id_of_the_account_is_found_wherever_it_stands(body: Any, field: str) -> None:
    (found,) = find_account_ids(msgspec.json.encode(body))
    assert found.id.endswith("x")
    assert found.field.startswith(field)


@pytest.mark.parametrize("body", OTHERS)
def test_what_a_client_calls_its_own_is_no_id_of_the_account(body: Any) -> None:
    assert find_account_ids(msgspec.json.encode(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": {"f\\u0069le_id": "x"}}',
        b'{"a": {"file_id": "x", "file_id": "x"}}',
        b'{"a": {"file_id": "x"}, "b": ' + b"9" * 5000 + b"}",
        b'{"a": {"uri": "gs:\\/\\/x"}}',
        b'{"a": {"FILE-id": "x"}}',
        b'{"a": {"vector_\\u017ftore_ids": ["x"]}}',
        b'{"input": [{"id": "x", "id": "x"}]}',
        '{"a": {"\u017f\u212aill_id": "x"}}'.encode(),
        b'{"a": {"image_url": {"url": "files/x"}}}',
        b'{"a": {"url": "HTTPS://generativelanguage.googleapis.com/v1beta/files/x"}}',
        b'{"input": [{' + b" " * 5000 + b'"id"' + b" " * 5000 + b':"x" }]}',
        b'{"input": [{"type"' + b" " * 5000 + b': "reasoning", "id": "x"}]}',
        *(b'{"input": "' + b"a" * (_SLICE - back) + b'", "file_id": "x"}' for back in range(12, 40)),
    ],
)
def test_no_spelling_hides_an_id(body: bytes) -> None:
    assert [each.id[-1] for each in find_account_ids(body)] == ["x"]


@pytest.mark.parametrize("text", ["a b ", "file ", "{ ", '"', "\\u00e9", '"id":"', "_", '{"id":""', '{"a":null,'])
def test_a_large_text_stops_no_other_thread_for_long(text: str) -> None:
    body = msgspec.json.encode({"messages": [{"role": "user", "content": text * (24_000_000 // len(text))}]})
    assert min(_measure_longest_stop(lambda: find_account_ids(body)) for _ in range(3)) < 1


def _measure_longest_stop(work: Callable[[], object]) -> float:
    """The longest time for which another thread could not run."""
    longest, is_over = 0.0, threading.Event()

    def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not is_over.wait(0.001):
            longest = max(longest, (now := time.perf_counter()) - last)
            last = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    work()
    is_over.set()
    ticking.join()
    return longest


def test_a_reply_names_its_ids() -> None:
    call = ServerTool("code_interpreter_call", "ci_1", None, '{"id": "ci_1", "container_id": "cntr_1"}')
    text = Text("a", seals=(Seal("message", "", None, '{"id": "msg_1"}'),))
    assert list_reply_ids(Reply((call, text)), with_items=False) == ("cntr_1",)
    assert list_reply_ids(Reply((call, text)), with_items=True) == ("cntr_1", "ci_1", "msg_1")


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize(("path", "model"), [("/v1/responses", OPENAI), ("/v1/chat/completions", "openai-chat:gpt-4o")])
def test_a_tenant_is_refused_before_the_provider_is_asked_and_an_owner_is_not(
    path: str, model: str, store: bool
) -> None:
    part = (
        {"type": "input_file", "file_id": "file-1"}
        if "responses" in path
        else {"type": "file", "file": {"file_id": "file-1"}}
    )
    field = "input" if "responses" in path else "messages"
    body = {
        "model": model,
        field: [
            {"role": "user", "content": [part, {"type": "input_text" if "responses" in path else "text", "text": "?"}]}
        ],
    }
    with Stage(lambda _: Say(text="42"), rules="lenient") as stage:
        door = Door(stage, store=store)
        refused = door.post(path, body, tenant="ada")
        assert (refused.status, len(stage.requests)) == (404, 0)
        assert "file-1" not in refused.body.decode()
        assert door.post(path, body).status == 200


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_tenant_refers_to_what_its_own_replies_had(stream: bool) -> None:
    item = {"type": "code_interpreter_call", "id": "ci_7", "status": "completed", "code": "1", "container_id": "cntr_7"}
    message = {
        "type": "message",
        "id": "msg_7",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "42", "annotations": []}],
    }
    whole = {"id": "resp_7", "object": "response", "model": "gpt-5.2", "status": "completed", "output": [item, message]}
    events = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        *(
            {"type": "response.output_item.done", "output_index": place, "item": each}
            for place, each in enumerate([item, message])
        ),
        {"type": "response.completed", "response": whole},
    ]
    data = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)
    first = Raw(
        body=data if stream else msgspec.json.encode(whole),
        headers={} if stream else {"content-type": "application/json"},
    )
    follow = [item, {"type": "item_reference", "id": "msg_7"}, {"role": "user", "content": "and?"}]
    tools = [{"type": "code_interpreter", "container": "cntr_7"}]
    with Stage([first, Say(text="Ada"), Say(text="Eve")], rules="lenient") as stage:
        door = Door(stage)
        asked = {"model": OPENAI, "input": "?", "stream": stream}
        assert read_response(door.post("/v1/responses", asked, tenant="ada").body)["id"] == "resp_7"
        own = door.post("/v1/responses", {"model": OPENAI, "input": follow, "tools": tools}, tenant="ada")
        assert own.status == 200, own.body
        before = len(stage.requests)
        for more in ({"input": follow[1:]}, {"input": follow[:1]}, {"input": "?", "tools": tools}):
            assert door.post("/v1/responses", {"model": OPENAI, **more}, tenant="eve").status == 404
        for path in ("/v1/responses/input_tokens", "/v1/responses/compact"):
            assert door.post(path, {"model": OPENAI, "input": follow}, tenant="eve").status == 404
        assert len(stage.requests) == before
