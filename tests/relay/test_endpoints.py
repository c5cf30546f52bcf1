"""What a request asks for, from its method, path, query and headers."""

from __future__ import annotations

import pytest

from asides.relay.endpoints import NoEndpoint, find_endpoint, find_other_dialect, find_reply_form


def test_a_hint_counts_where_dialects_share_a_path() -> None:
    assert find_endpoint("GET", "/v1/models", "", {}, "anthropic").dialect == "anthropic"
    assert find_endpoint("POST", "/v1/responses", "", {}, "openai_chat").dialect == "openai_responses"
    assert find_endpoint("GET", "/v1/responses/resp_1", "", {}, "openai_chat").names == {"response": "resp_1"}
    assert find_endpoint("GET", "/models/openai%3Agpt-5/", "", {}).names == {
        "model": "openai%3Agpt-5".replace("%3A", ":")
    }
    with pytest.raises(NoEndpoint):
        find_endpoint("POST", "/v1/images/edits", "", {}, "openai_chat")
    assert find_endpoint("POST", "/v1/embeddings", "", {}).action == "pass_through"


def test_the_name_of_a_model_may_hold_colons_and_slashes() -> None:
    read, _ = find_reply_form("gemini", "", {})
    body = b'{"contents":[{"parts":[{"text":"?"}]}]}'
    for name in ("openrouter:anthropic/claude-x", "openrouter%3Aanthropic%2Fclaude-x"):
        for path in (
            f"/v1beta/models/{name}:generateContent",
            f"/v1/projects/p/publishers/google/models/{name}:generateContent",
        ):
            assert read(body, path).model == "openrouter:anthropic/claude-x"
        counted = find_endpoint("POST", f"/v1beta/models/{name}:countTokens", "", {})
        assert counted.names == {"model": "openrouter:anthropic/claude-x"}
        assert find_endpoint("GET", f"/v1/models/{name}", "", {}).names == {"model": "openrouter:anthropic/claude-x"}
    assert read(body, "/v1beta/tunedModels/mine:generateContent").model == "mine"


def test_a_path_without_end_leads_nowhere() -> None:
    assert find_endpoint("GET", "/v1/models/" + "a" * 4000, "", {}).action == "model"
    with pytest.raises(NoEndpoint):
        find_endpoint("GET", "/v1/models/" + "a" * 5000, "", {})


def test_a_model_with_its_provider_is_not_the_path_of_another_dialect() -> None:
    for name in ("ollama:qwen3", "absent:model", "ollama:qwen3:8b"):
        endpoint = find_endpoint("GET", f"/v1/models/{name}", "", {})
        assert (endpoint.dialect, endpoint.action, endpoint.names) == ("openai_chat", "model", {"model": name})
    assert find_other_dialect("/v1/projects/p/publishers/google/models/m:embedContent", {}, {}) == "gemini"
