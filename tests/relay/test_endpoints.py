"""What a request asks for, from its method, path, query and headers."""

from __future__ import annotations

import pytest

from asides.relay.endpoints import NoEndpoint, find_endpoint


def test_a_hint_counts_where_dialects_share_a_path() -> None:
    assert find_endpoint("GET", "/v1/models", "", {}, "anthropic").dialect == "anthropic"
    assert find_endpoint("POST", "/v1/responses", "", {}, "openai_chat").dialect == "openai_responses"
    assert find_endpoint("GET", "/v1/responses/resp_1", "", {}, "openai_chat").names == {"response": "resp_1"}
    assert find_endpoint("GET", "/models/openai%3Agpt-5/", "", {}).names == {
        "model": "openai%3Agpt-5".replace("%3A", ":")
    }
    with pytest.raises(NoEndpoint):
        find_endpoint("POST", "/v1/embeddings", "", {}, "openai_chat")
