"""Options of ours in the body of a request, and how they meet its own fields."""

from __future__ import annotations

from asides.testing import Stage
from asides.testing.stage import Say
from tests.relay.relaying import Door


def test_options_of_a_request() -> None:
    body = {"model": "openai-compatible:any", "messages": [{"role": "user", "content": "?"}]}
    door = Door(None, options={"base_url": "http://127.0.0.1:1/v1"})
    for asides, words in (
        ({"api_key": "sk-stolen"}, "not allowed"),
        ({"base_url": "http://evil.test"}, "not allowed"),
        ({"nonsense": 1}, "no option"),
        ([], "object"),
        ({"fallbacks": [7]}, "list of models"),
        ({"visibility": "everything"}, "raw and summary"),
        ({"timeout": "soon"}, "timeout"),
    ):
        response = door.post("/v1/chat/completions", body | {"asides": asides})
        assert response.status == 400, asides
        assert words in response.json["error"]["message"]
        assert b"sk-stolen" not in response.body
    with Stage(Say(text="Hi")) as stage:
        own = {"base_url": stage.url, "api_key": "sk-own", "max_tokens": 7, "extra": {"top_k": 3}}
        response = Door(None, trusts_callers=True).post("/v1/chat/completions", body | {"asides": own})
        assert response.status == 200
        (received,) = stage.requests
    assert received.headers["authorization"] == "Bearer sk-own"
    assert received.json["max_tokens"] == 7
    assert received.json["top_k"] == 3
    assert "asides" not in received.json
