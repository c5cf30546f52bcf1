"""Forward or translate, with the reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay_request import RelayRequest
from asides.testing import Stage
from asides.testing.stage import Say
from asides.values.visibility import Visibility
from tests.relay.relaying import Door, Response

_CLAUDE = b"""{ "max_tokens" : 64,
  "model":"anthropic:claude-opus-4-5" , "messages": [ {"role":"user","content":"caf\\u00e9?"} ],
  "new_field_of_2027": {"a": [1, 2.50, 1e3]}, "stream": %b }"""


def _post_claude(door: Door, body: bytes, **more: object) -> Response:
    headers = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2026-01-01,two-2026-02-02",
        "x-stainless-lang": "python",
        "user-agent": "Anthropic/Python 2.8",
        "authorization": "Bearer of-the-caller",
        "x-api-key": "of-the-caller",
        "cookie": "session=1",
        "host": "relay.test",
        "content-length": "1",
        "connection": "keep-alive",
        "accept-encoding": "gzip",
        "x-forwarded-for": "10.0.0.1",
    }
    request = RelayRequest("", "POST", "/v1/messages", "beta=true&key=secret", headers, body, **more)  # type: ignore[arg-type]
    return door.send(request)


@pytest.mark.parametrize(
    ("config", "asides", "reason"),
    [
        ({"forwards": False}, {}, "forwarding is switched off"),
        ({}, {"forward": False}, "forwarding is switched off"),
        ({}, {"thinking": 2048}, "options change the request"),
        ({"options": Options(temperature=0.5)}, {}, "options change the request"),
        ({}, {"visibility": ["raw"]}, "the caller may not see this thinking"),
    ],
)
def test_reasons_to_translate(config: dict[str, Any], asides: dict[str, Any], reason: str) -> None:
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "?"}],
        "asides": asides,
    }
    with Stage(Say(text="Hi")) as stage:
        stage.expect_no_refusals()
        response = _post_claude(Door(stage, **config), msgspec.json.encode(body))
    assert response.status == 200, response.body
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.reason) == ("translate", reason)


def test_a_policy_that_hides_thinking_holds_for_forwarded_requests_too() -> None:
    with Stage(Say(text="Hi", thinking="CANARY"), rules="lenient") as stage:
        door = Door(stage, sink="gateway")
        door.relay._builder.visibility = Visibility(gateway=())  # pyright: ignore[reportPrivateUsage]
        response = _post_claude(door, _CLAUDE % b"true")
    assert b"CANARY" not in response.body
    assert b"Hi" in response.body
