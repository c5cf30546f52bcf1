"""Names that hosts read in different ways are refused for keys with limits, before a provider is asked."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from asides.relay.ambiguous_names import list_known_fields, refuse_ambiguous_names
from asides.relay.endpoints import find_endpoint, find_reply_form
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_request import CallerLimits
from asides_stage import Say
from asides_stage.stage import Stage
from tests.relay.relaying import CALLERS, Door
from tests.relay.test_captured_requests import BROKEN, CAPTURES, load, needs_captures

CHAT = '"model": "ollama:cheap", "messages": [{"role": "user", "content": "?"}]'
RESPONSES = '"model": "ollama:cheap", "input": "?"'
GEMINI = '"contents": [{"parts": [{"text": "?"}]}]'
CONVERSE = '"messages": [{"role": "user", "content": [{"text": "?"}]}]'

REFUSED = [
    # Another model: Go takes the last, in any case.
    ("openai_chat", CHAT + ', "Model": "big"', "Model"),
    ("openai_chat", CHAT + ', "MODEL": "big"', "MODEL"),
    ("openai_chat", CHAT + ', "model": "big"', "model"),
    ("openai_chat", CHAT + ', "m\\u006fdel": "big"', "model"),
    ("openai_chat", CHAT + ', "model ": "x", "Models": ["big"]', "Models"),
    ("openai_chat", CHAT + ', "modelſ": ["big"]', "modelſ"),
    ("openai_chat", CHAT + ', "Plugins": [{"id": "x"}]', "Plugins"),
    ("anthropic", CHAT + ', "max_tokens": 9, "Fallbacks": ["big"]', "Fallbacks"),
    # More replies, a dearer tier, a larger limit, hidden usage.
    ("openai_chat", CHAT + ', "N": 50', "N"),
    ("openai_chat", CHAT + ', "Best_Of": 50', "Best_Of"),
    ("openai_chat", CHAT + ', "n": 1, "n": 50', "n"),
    ("openai_chat", CHAT + ', "Service_Tier": "priority"', "Service_Tier"),
    ("openai_chat", CHAT + ', "ſervice_tier": "priority"', "ſervice_tier"),
    ("openai_chat", CHAT + ', "service_tier": "default", "serviceTier": "priority"', "serviceTier"),
    ("openai_chat", CHAT + ', "max_tokens": 9, "Max_Tokens": 99999', "Max_Tokens"),
    ("openai_chat", CHAT + ', "maxTokens": 99999', "maxTokens"),
    ("openai_chat", CHAT + ', "stream_options": {"Include_Usage": false}', "stream_options.Include_Usage"),
    ("openai_responses", RESPONSES + ', "Background": true', "Background"),
    ("openai_responses", RESPONSES + ', "Input": "another"', "Input"),
    ("anthropic", CHAT + ', "max_tokens": 9, "Speed": "fast"', "Speed"),
    ("anthropic", CHAT + ', "max_tokens": 9, "thinking": {"type": "disabled", "type": "enabled"}', "thinking.type"),
    ("cohere", CHAT + ', "Messages": []', "Messages"),
    ("ollama", CHAT + ', "options": {"num_predict": 9, "Num_Predict": 99999}', "options.Num_Predict"),
    ("ollama", CHAT + ', "options": {"Num_Ctx": 9999999}', "options.Num_Ctx"),
    (
        "anthropic",
        CHAT + ', "max_tokens": 9, "tools": [{"type": "web_search_20250305", "Max_Uses": 99}]',
        "tools.Max_Uses",
    ),
    ("openai_chat", CHAT + ', "web_search_options": {"Search_Context_Size": "high"}', "web_search_options.Search_"),
    ("openai_chat", CHAT + ', "plugins": [{"id": "web", "maxResults": 99}]', "plugins.maxResults"),
    ("openai_chat", CHAT + ', "provider": {"Order": ["x"]}', "provider.Order"),
    ("openai_chat", CHAT + ', "provider": {"allowFallbacks": true}', "provider.allowFallbacks"),
    # Inside of objects, and in both spellings that Google takes.
    ("gemini", GEMINI + ', "generationConfig": {}, "generation_config": {"candidateCount": 8}', "generation_config"),
    ("gemini", GEMINI + ', "generationConfig": {"candidateCount": 1, "candidate_count": 8}', "generationConfig."),
    ("gemini", GEMINI + ', "generationConfig": {"CandidateCount": 8}', "generationConfig.CandidateCount"),
    ("gemini", GEMINI + ', "GenerationConfig": {"candidateCount": 8}', "GenerationConfig"),
    ("gemini_interactions", RESPONSES + ', "Agent": "big"', "Agent"),
    ("bedrock", CONVERSE + ', "performanceConfig": {"Latency": "optimized"}', "performanceConfig.Latency"),
    ("bedrock", CONVERSE + ', "inferenceconfig": {"maxTokens": 99999}', "inferenceconfig"),
    # A tool of the host that asks a model of its own.
    (
        "anthropic",
        CHAT + ', "max_tokens": 9, "tools": [{"type": "advisor", "model": "", "model": "big"}]',
        "tools.model",
    ),
    ("anthropic", CHAT + ', "max_tokens": 9, "tools": [{"type": "advisor", "Model": "big"}]', "tools.Model"),
]

TAKEN = [
    ("openai_chat", CHAT + ', "n": 1, "service_tier": "default", "unknown": 1, "Unknown_Field": 2'),
    ("openai_chat", CHAT + ', "metadata": {"id": "1", "ID": "2", "Model": "3"}'),
    (
        "openai_chat",
        CHAT + ', "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", '
        '"properties": {"id": {}, "ID": {}, "Model": {}}}}}]',
    ),
    ("openai_chat", '"model": "a", "messages": [{"role": "user", "content": "\\"Model\\": 1"}]'),
    ("gemini", GEMINI + ', "generation_config": {"candidate_count": 1}, "safety_settings": []'),
    ("gemini", GEMINI + ', "generationConfig": {"candidateCount": 1, "thinkingConfig": {"thinkingBudget": 1}}'),
    ("bedrock", CONVERSE + ', "inferenceConfig": {"maxTokens": 9}, "additionalModelRequestFields": {"top_k": 1}'),
]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(lambda _: Say(text="42")) as stage:
        yield stage


@pytest.mark.parametrize(("dialect", "members", "name"), REFUSED)
def test_a_name_with_two_readings_is_refused(dialect: str, members: str, name: str) -> None:
    with pytest.raises(RelayRefusal) as refused:
        refuse_ambiguous_names(f"{{{members}}}".encode(), dialect)
    assert refused.value.status == 400
    assert (refused.value.param or "").startswith(name)
    assert "big" not in str(refused.value)


@pytest.mark.parametrize(("dialect", "members"), TAKEN)
def test_other_names_are_the_callers_own(dialect: str, members: str) -> None:
    refuse_ambiguous_names(f"{{{members}}}".encode(), dialect)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a": ' + b"9" * 5000 + b"}", b'"x"', b"\xff"])
def test_what_is_no_object_is_left_to_its_reader(body: bytes) -> None:
    refuse_ambiguous_names(body, "openai_chat")


def test_a_document_that_is_too_deep_is_refused() -> None:
    body = b'{"model": "openai:gpt-4o", "x": ' + b"[" * 5000 + b"]" * 5000 + b', "file_id": "y"}'
    for limits in (None, CallerLimits(("openai:*",))):
        assert Door(None).post("/v1/chat/completions", body, tenant="a", limits=limits).status == 400


@pytest.mark.parametrize("limits", [CallerLimits(("ollama:cheap",)), CallerLimits(has_budget=True)])
def test_only_a_key_with_limits_is_refused_and_no_provider_is_asked(stage: Stage, limits: CallerLimits) -> None:
    door = Door(stage)
    body = f'{{{CHAT}, "Model": "big"}}'.replace("ollama:cheap", "openai:gpt-4o").encode()
    before = len(stage.requests)
    refused = door.post("/v1/chat/completions", body, tenant="a", limits=limits)
    assert (refused.status, len(stage.requests)) == (400, before)
    assert refused.json["error"]["param"] == "Model"
    door.post("/v1/chat/completions", body, tenant="a")
    assert len(stage.requests) == before + 1


@pytest.mark.parametrize(
    ("path", "members", "name"),
    [
        ("/v1/responses", '"Previous_Response_Id": "resp_1"', "Previous_Response_Id"),
        ("/v1/responses", '"Conversation": "conv_1"', "Conversation"),
        ("/v1/responses", '"conversation": null, "conversation": "conv_1"', "conversation"),
        ("/v1beta/interactions", '"previousInteractionId": "int_1"', "previousInteractionId"),
    ],
)
def test_a_tenant_names_stored_state_in_one_spelling(stage: Stage, path: str, members: str, name: str) -> None:
    model = "google-interactions:gemini-3-pro-preview" if "interactions" in path else "openai-responses:gpt-5.2"
    before = len(stage.requests)
    body = f'{{"model": "{model}", "input": "?", {members}}}'.encode()
    refused = Door(stage).post(path, body, tenant="a")
    assert (refused.status, len(stage.requests)) == (400, before)
    assert name in refused.body.decode()


@needs_captures
@pytest.mark.parametrize(("name", "dialect"), [each for each in CAPTURES if each[0] not in BROKEN])
def test_what_real_clients_send_is_taken_and_its_fields_are_known(name: str, dialect: str) -> None:
    document, path = load(name)
    body = msgspec.json.encode(document)
    refuse_ambiguous_names(body, dialect)
    endpoint = find_endpoint("POST", path.partition("?")[0], "", {}, dialect)
    served = find_reply_form(dialect, endpoint.path, {})[0](body, endpoint.path)
    consumed = {field for field, value in document.items() if value is not None} - served.prompt.extra.keys()
    known = {spelling for spellings in list_known_fields(dialect).values() for spelling in spellings}
    assert consumed <= known


@pytest.mark.parametrize("dialect", CALLERS)
def test_every_dialect_names_its_fields(dialect: str) -> None:
    assert "messages" in list_known_fields(dialect) or len(list_known_fields(dialect)) > 10
