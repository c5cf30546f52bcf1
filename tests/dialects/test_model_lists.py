"""The lists of models of every dialect: their addresses, their entries, and the pages that the server half writes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides import dialects
from asides.dialects import DIALECTS
from asides.providers.find import find_host
from asides.values.errors import ProtocolError, Unsupported
from asides.values.model_info import ModelInfo, ModelPage, ThinkingInfo

_LISTING = sorted(set(DIALECTS) - {"bedrock"})
_THINKS = ThinkingInfo(supported=True)


def read(dialect: str, document: object) -> ModelPage:
    """The page without the raw entries, which are what went in."""
    page = dialects.find_dialect(dialect).read_models(json.dumps(document).encode())
    return ModelPage(tuple(msgspec.structs.replace(model, raw={}) for model in page.models), page.after)


@pytest.mark.parametrize(
    ("provider", "base_url", "after", "url"),
    [
        ("openai", None, None, "https://api.openai.com/v1/models"),
        ("openai-responses", None, None, "https://api.openai.com/v1/models"),
        ("openai-compatible", "http://h/v1/chat/completions?x=1", None, "http://h/v1/models?x=1"),
        ("azure", "https://r.openai.azure.com", None, "https://r.openai.azure.com/openai/v1/models"),
        (
            "azure",
            "https://r.openai.azure.com?api-version=2024-10-21",
            None,
            "https://r.openai.azure.com/openai/models?api-version=2024-10-21",
        ),
        ("anthropic", None, None, "https://api.anthropic.com/v1/models?limit=1000"),
        ("anthropic", "http://h/proxy", "m 1", "http://h/proxy/v1/models?limit=1000&after_id=m+1"),
        ("google", None, "t", "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000&pageToken=t"),
        ("ollama", None, None, "http://localhost:11434/api/tags"),
        ("ollama", "http://h/v1", None, "http://h/api/tags"),
        ("cohere", None, None, "https://api.cohere.com/v1/models?endpoint=chat&page_size=1000"),
        ("cohere", None, "t", "https://api.cohere.com/v1/models?endpoint=chat&page_size=1000&page_token=t"),
    ],
)
def test_where_a_list_is_asked_for(provider: str, base_url: str | None, after: str | None, url: str) -> None:
    target = find_host(provider, base_url=base_url, environ={})
    request = dialects.find_dialect(target.dialect).models_request(target, after)
    assert (request.method, request.url, request.body) == ("GET", url, b"")
    assert "Content-Type" not in request.headers
    assert dict(target.provider.headers).items() <= request.headers.items()


@pytest.mark.parametrize(
    ("provider", "environ"),
    [
        ("bedrock", {"AWS_REGION": "eu-west-1"}),
        ("bedrock-anthropic", {"AWS_REGION": "eu-west-1"}),
        ("vertex", {"GOOGLE_CLOUD_LOCATION": "global", "GOOGLE_CLOUD_PROJECT": "p"}),
        ("vertex-anthropic", {"GOOGLE_CLOUD_LOCATION": "global", "GOOGLE_CLOUD_PROJECT": "p"}),
    ],
)
def test_a_cloud_that_has_no_list_says_so(provider: str, environ: dict[str, str]) -> None:
    target = find_host(provider, environ=environ)
    with pytest.raises(Unsupported, match=provider):
        dialects.find_dialect(target.dialect).models_request(target)


_CLAUDE = {
    "type": "model",
    "id": "claude-opus-4-6",
    "display_name": "Claude Opus 4.6",
    "created_at": "2026-02-04T00:00:00Z",
    "max_input_tokens": 200_000,
    "max_tokens": 128_000,
    "capabilities": {
        "batch": {"supported": True},
        "thinking": {"supported": True, "types": {"adaptive": {"supported": True}, "enabled": {"supported": True}}},
        "effort": {
            "supported": True,
            "low": {"supported": True},
            "medium": {"supported": True},
            "high": {"supported": True},
            "xhigh": {"supported": False},
            "max": {"supported": True},
        },
    },
}


@pytest.mark.requirement("FT-30")
def test_the_thinking_of_claude_models_is_read_from_their_capabilities() -> None:
    older = {
        "id": "claude-3-haiku-20240307",
        "display_name": "Claude Haiku 3",
        "created_at": "1970-01-01T00:00:00Z",
        "capabilities": {
            "thinking": {"supported": False, "types": {"adaptive": {"supported": False}}},
            "effort": {"supported": False, "low": {"supported": False}},
        },
    }
    page = {"data": [_CLAUDE, older, {"id": "bare"}], "first_id": "x", "has_more": True, "last_id": "bare"}
    thinks = ThinkingInfo(True, None, ("adaptive", "enabled"), ("low", "medium", "high", "max"))
    assert read("anthropic", page) == ModelPage(
        (
            ModelInfo("claude-opus-4-6", "Claude Opus 4.6", 1770163200, 200_000, 128_000, thinks),
            ModelInfo("claude-3-haiku-20240307", "Claude Haiku 3", thinking=ThinkingInfo(False, efforts=())),
            ModelInfo("bare"),
        ),
        "bare",
    )
    assert read("anthropic", {**page, "has_more": False}).after is None


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (
            {"id": "gpt-5", "object": "model", "created": 1754000000, "owned_by": "x"},
            ModelInfo("gpt-5", created=1754000000),
        ),
        (
            {"id": "a/b", "name": "B", "context_length": 9, "top_provider": {"max_completion_tokens": 3}}
            | {"reasoning": {"mandatory": True, "supported_efforts": ["high", "low", "none"]}},
            ModelInfo("a/b", "B", None, 9, 3, ThinkingInfo(True, True, (), ("high", "low"))),
        ),
        ({"id": "a", "supported_parameters": ["tools", "reasoning"]}, ModelInfo("a", thinking=_THINKS)),
        ({"id": "a", "supported_parameters": ["tools"]}, ModelInfo("a", thinking=ThinkingInfo(False))),
        (
            {"id": "qwen", "context_window": 131072, "max_completion_tokens": 40960},
            ModelInfo("qwen", context=131072, max_output=40960),
        ),
        (
            {"id": "magistral", "max_context_length": 40000, "capabilities": {"reasoning": True}},
            ModelInfo("magistral", context=40000, thinking=_THINKS),
        ),
        ({"id": "kimi", "supports_reasoning": False}, ModelInfo("kimi", thinking=ThinkingInfo(False))),
        ({"id": "local", "max_model_len": 4096}, ModelInfo("local", context=4096)),
        ({"id": "local", "meta": {"n_ctx_train": 4096}}, ModelInfo("local", context=4096)),
        (
            {"id": "odd", "created": "soon", "context_length": "long", "reasoning": 7, "capabilities": [1]},
            ModelInfo("odd"),
        ),
    ],
)
def test_fields_that_hosts_add_are_read_by_their_names(entry: dict[str, Any], model: ModelInfo) -> None:
    for dialect in ("openai_chat", "openai_responses"):
        assert read(dialect, {"object": "list", "data": [entry]}).models == (model,)
    assert read("openai_chat", [entry]).models == (model,), "one host leaves the object around the list out"


def test_gemini_ollama_and_cohere() -> None:
    gemini: dict[str, Any] = {"name": "models/gemini-3-pro", "displayName": "Gemini 3 Pro", "inputTokenLimit": 1048576}
    gemini |= {"outputTokenLimit": 65536, "thinking": True, "supportedGenerationMethods": ["generateContent"]}
    assert read("gemini", {"models": [gemini], "nextPageToken": "t"}) == ModelPage(
        (ModelInfo("gemini-3-pro", "Gemini 3 Pro", None, 1048576, 65536, _THINKS),), "t"
    )
    assert read("gemini", {}) == ModelPage(()), "an empty list is left out there"
    ollama: dict[str, Any] = {
        "name": "qwen3:8b",
        "model": "qwen3:8b",
        "modified_at": "2026-01-02T03:04:05.123456789+01:00",
    }
    ollama |= {"details": {"family": "qwen3"}, "capabilities": ["completion", "thinking"]}
    assert read("ollama", {"models": [ollama]}).models == (ModelInfo("qwen3:8b", created=1767319445, thinking=_THINKS),)
    cohere = {"name": "command-a-reasoning", "context_length": 256000, "features": ["reasoning"], "endpoints": ["chat"]}
    assert read("cohere", {"models": [cohere, {"name": "old"}], "next_page_token": "t"}) == ModelPage(
        (ModelInfo("command-a-reasoning", context=256000, thinking=_THINKS), ModelInfo("old")), "t"
    )


@pytest.mark.parametrize("dialect", _LISTING)
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"7", b'"x"', b'{"object":"list"}', b'{"data":7,"models":{}}', b"\xff"]
)
def test_a_body_without_a_list_is_a_protocol_error(dialect: str, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        dialects.find_dialect(dialect).read_models(body)


@pytest.mark.parametrize("dialect", _LISTING)
def test_entries_that_are_no_models_are_skipped(dialect: str) -> None:
    entries = [7, None, {}, {"id": 7, "name": [], "model": {}}]
    assert read(dialect, {"data": entries, "models": entries}).models == ()


def test_an_entry_is_stored_unchanged() -> None:
    body = json.dumps({"data": [_CLAUDE]}).encode()
    (model,) = dialects.find_dialect("anthropic").read_models(body).models
    assert model.raw == _CLAUDE


# --- what is written is what is read ----------------------------------------------------------------------------------

_counts = st.none() | st.integers(1, 2**40)
_words = st.lists(st.sampled_from(("low", "medium", "high", "max")), unique=True).map(tuple)
_ids = st.text("abcdef-.:/", min_size=1, max_size=8)


@st.composite
def _models(draw: st.DrawFn, dialect: str) -> ModelInfo:
    """A model with what its dialect can tell."""
    thinking: ThinkingInfo | None = None
    if draw(st.booleans()):
        supported = draw(st.booleans())
        described: dict[str, Any] = {}
        if supported and dialect.startswith("openai"):
            described = {"always": draw(st.none() | st.booleans()), "efforts": draw(st.none() | _words)}
        elif supported and dialect == "anthropic":
            types = st.lists(st.sampled_from(("adaptive", "enabled")), unique=True)
            described = {"types": tuple(draw(types)), "efforts": draw(st.none() | _words)}
        thinking = ThinkingInfo(supported, **described)
    named, written = draw(_ids), draw(_ids).upper()
    has = {
        "openai_chat": {"name", "created", "context", "max_output"},
        "openai_responses": {"name", "created", "context", "max_output"},
        "anthropic": {"name", "created", "context", "max_output"},
        "gemini": {"name", "context", "max_output"},
        "gemini_interactions": {"name", "context", "max_output"},
        "ollama": {"created", "context"},
        "cohere": {"context"},
    }[dialect]
    fields: dict[str, Any] = {
        "name": written if written != named else None,
        "created": draw(st.none() | st.integers(1, 2**31)),
        "context": draw(_counts),
        "max_output": draw(_counts),
    }
    if dialect == "anthropic" and fields["name"] is None:
        fields["name"] = named
    return ModelInfo(named, thinking=thinking, **{name: value for name, value in fields.items() if name in has})


@pytest.mark.parametrize("dialect", _LISTING)
@given(data=st.data())
def test_law_a_list_that_is_written_is_the_list_that_is_read(dialect: str, data: st.DataObject) -> None:
    models = data.draw(st.lists(_models(dialect), max_size=5, unique_by=lambda model: model.id))
    speaks = dialects.find_dialect(dialect)
    size = str(data.draw(st.integers(1, 3)))
    found: list[ModelInfo] = []
    after: str | None = None
    cursors = {
        "anthropic": ("limit", "after_id"),
        "gemini": ("pageSize", "pageToken"),
        "cohere": ("page_size", "page_token"),
    }
    for _ in range(len(models) + 1):
        names = cursors.get(dialect)
        query = {} if names is None else {names[0]: size} if after is None else {names[0]: size, names[1]: after}
        page = speaks.read_models(speaks.write_models(models, query))
        assert names is None or len(page.models) <= int(size)
        found += [msgspec.structs.replace(model, raw={}) for model in page.models]
        after = page.after
        if after is None:
            break
    assert found == models
