"""The stage's prompt cache: what repeats is read, what changed is not, and marks decide where a provider has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides_stage import OpenStage, Say, Stage
from asides_stage.stage.prompt_cache import CacheUse, PromptCache
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

MARK = {"cache_control": {"type": "ephemeral"}}


def text(words: str, **more: Any) -> Wire:
    return {"type": "text", "text": words, **more}


def said(role: str, *blocks: Wire) -> Wire:
    return {"role": role, "content": list(blocks)}


def use(cache: PromptCache, body: Wire, dialect: str = "anthropic", account: str = "a", model: str = "m") -> CacheUse:
    found = cache.use(dialect, account, model, body)
    assert found is not None
    return found


# --- marks ------------------------------------------------------------------------------------------------------------


def ask(*messages: Wire, **fields: Any) -> Wire:
    return {"system": [text("one two three", **MARK)], "messages": list(messages), **fields}


def test_a_marked_beginning_is_written_once_and_then_read() -> None:
    cache = PromptCache()
    first = use(cache, ask(said("user", text("four five", **MARK))))
    assert (first.read, first.written, first.read_parts) == (0, 5, 0)
    second = use(
        cache, ask(said("user", text("four five")), said("assistant", text("six")), said("user", text("7", **MARK)))
    )
    assert (second.read, second.written) == (5, 2), "the mark may move on"
    assert use(cache, ask(said("user", text("other", **MARK)))).read == 3, "the system prompt is still there"


def test_without_a_mark_nothing_is_kept() -> None:
    cache = PromptCache()
    body = {"system": "one two", "messages": [said("user", text("three"))]}
    assert use(cache, body) == CacheUse(0, 0, 3, 0)
    assert use(cache, body) == CacheUse(0, 0, 3, 0)
    marked = {**body, **MARK}
    assert (use(cache, marked).written, use(cache, marked).read) == (3, 3), "a mark on the request marks its end"


def test_a_mark_reads_back_twenty_blocks_and_no_more() -> None:
    for count, read in ((19, 1), (20, 0)):
        cache = PromptCache()
        use(cache, {"messages": [said("user", text("x", **MARK))]})
        later = [text("y") for _ in range(count - 1)]
        found = use(cache, {"messages": [said("user", text("x"), *later, text("z", **MARK))]})
        assert found.read == read, count


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, 5),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, 5),
        ({"thinking": {"type": "disabled"}}, 3),
        ({"tool_choice": {"type": "none"}}, 3),
        ({"tools": [{"name": "look"}]}, 0),
        ({"system": [text("ONE two three", **MARK)]}, 0),
        ({"messages": [said("assistant", text("four five", **MARK))]}, 3),
    ],
)
def test_a_change_loses_what_stands_behind_it(change: Wire, read: int) -> None:
    cache = PromptCache()
    body = ask(said("user", text("four five", **MARK)), thinking={"type": "adaptive"})
    use(cache, body)
    assert use(cache, body | change).read == read


def test_points_of_bedrock_mark_the_block_before_them() -> None:
    cache, point = PromptCache(), {"cachePoint": {"type": "default"}}
    hi = {"role": "user", "content": [{"text": "one two"}, point]}
    assert use(cache, {"messages": [hi]}, "bedrock").written == 2
    later = {"role": "user", "content": [{"text": "three"}, point]}
    without = {"role": "user", "content": [{"text": "one two"}]}
    found = use(cache, {"messages": [without, {"role": "assistant", "content": [{"text": "x"}]}, later]}, "bedrock")
    assert (found.read, found.written) == (2, 2)


# --- without marks ----------------------------------------------------------------------------------------------------

CONVERSATIONS: dict[str, list[Wire]] = {
    "openai_chat": [
        {"messages": [{"role": "system", "content": "a b"}, {"role": "user", "content": "c"}]},
        {
            "messages": [
                {"role": "system", "content": "a b"},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": "d"},
                {"role": "user", "content": [text("e f")]},
            ]
        },
    ],
    "openai_responses": [
        {"instructions": "a b", "input": "c"},
        {
            "instructions": "a b",
            "input": [
                {"role": "user", "content": "c"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "d"}]},
                {"role": "user", "content": "e f"},
            ],
        },
    ],
    "gemini": [
        {"systemInstruction": {"parts": [{"text": "a b"}]}, "contents": [{"role": "user", "parts": [{"text": "c"}]}]},
        {
            "systemInstruction": {"parts": [{"text": "a b"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "c"}]},
                {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "d"}]},
                {"role": "user", "parts": [{"text": "e f"}]},
            ],
        },
    ],
}
CONVERSATIONS["ollama"] = CONVERSATIONS["cohere"] = CONVERSATIONS["openai_chat"]


@pytest.mark.parametrize("dialect", CONVERSATIONS)
def test_others_find_a_repeated_beginning_themselves(dialect: str) -> None:
    cache = PromptCache()
    first, second = CONVERSATIONS[dialect]
    assert not use(cache, first, dialect).is_reported
    found = use(cache, second, dialect)
    assert (found.read, found.written, found.is_reported) == (3, 0, True)
    assert found.parts - found.read_parts == 2
    assert use(cache, second, dialect).read == 6
    assert use(cache, second, dialect, account="b").read == 0
    assert use(cache, second, dialect, model="n").read == 0


@pytest.mark.parametrize("body", [None, [], {"messages": 3}, {"messages": [3]}, {"messages": [{"content": [3]}]}])
def test_what_cannot_be_read_has_no_cache(body: Any) -> None:
    assert PromptCache().use("anthropic", "", "", body) is None
    assert PromptCache().use("made-up", "", "", {}) is None


def test_the_oldest_beginnings_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides_stage.stage.prompt_cache._MOST_PREFIXES", 2)
    cache = PromptCache()
    for words in ("a", "b", "a", "c"):
        use(cache, {"messages": [{"role": "user", "content": words}]}, "openai_chat")
    assert use(cache, {"messages": [{"role": "user", "content": "a"}]}, "openai_chat").read == 1
    assert use(cache, {"messages": [{"role": "user", "content": "b"}]}, "openai_chat").read == 0


# --- in replies -------------------------------------------------------------------------------------------------------


def post(stage: Stage, path: str, body: Wire) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body))
        return Answer(connection.getresponse())


@pytest.mark.parametrize(
    ("path", "dialect", "read"),
    [
        ("/v1/chat/completions", "openai_chat", lambda reply: reply["usage"]["prompt_tokens_details"]["cached_tokens"]),
        ("/v1/responses", "openai_responses", lambda reply: reply["usage"]["input_tokens_details"]["cached_tokens"]),
        ("/v1beta/models/m:generateContent", "gemini", lambda reply: reply["usageMetadata"]["cachedContentTokenCount"]),
    ],
)
def test_replies_report_it_in_the_field_of_their_dialect(stage: OpenStage, path: str, dialect: str, read: Any) -> None:
    opened = stage(Say(text="d"), cache=True)
    answers = [post(opened, path, {"model": "m", **body}) for body in CONVERSATIONS[dialect]]
    assert [answer.status for answer in answers] == [200, 200]
    assert read(answers[-1].json) == 3
    assert [request.cache.read for request in opened.requests if request.cache] == [0, 3]


def test_anthropic_reports_what_was_read_and_written_apart(stage: OpenStage) -> None:
    opened = stage(Say(text="d"), cache=True)
    body = {"model": "claude-opus-5-5", "max_tokens": 9, "messages": [said("user", text("a b", **MARK))]}
    first, second = post(opened, "/v1/messages", body).json["usage"], post(opened, "/v1/messages", body).json["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert [first[name] for name in names] == [0, 0, 2]
    assert [second[name] for name in names] == [0, 2, 0]
    start = json.loads(post(opened, "/v1/messages", {**body, "stream": True}).payloads[0])
    assert start["message"]["usage"]["cache_read_input_tokens"] == 2


def test_replies_say_nothing_of_it_unless_asked_and_the_log_does(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    for _ in range(2):
        assert asides.ask("openai-compatible:m", "a b", base_url=opened.url).usage.cached is None
    assert [request.cache and request.cache.read for request in opened.requests] == [0, 2]
    told = stage(Say(text="42"), cache=True)
    used = [asides.ask("openai-compatible:m", "a b", base_url=told.url).usage.cached for _ in range(2)]
    assert used == [None, 2]


def test_a_refused_request_fills_no_cache(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    body = {"model": "claude-opus-5-5", "messages": [said("user", text("a b", **MARK))]}
    assert post(opened, "/v1/messages", body).status == 400
    assert opened.requests[0].cache is None
    post(opened, "/v1/messages", {**body, "max_tokens": 9})
    assert opened.requests[1].cache == CacheUse(0, 2, 2, 0, is_marked=True)
