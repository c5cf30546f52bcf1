"""A body that our reader refuses still says which model it asks, whether it streams, and what it continues."""

from __future__ import annotations

import pytest

from asides.flows.build_call import CallBuilder
from asides.relay.endpoints import find_endpoint, find_reply_form
from asides.relay.error_response import RelayRefusal
from asides.relay.read_request_body import read_request, read_shallow
from asides.relay.relay_config import Caller, RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.settings import Settings
from asides.values.errors import ConfigError


def make_caller(path: str, body: bytes) -> Caller:
    request = RelayRequest("", "POST", path, body=body)
    return Caller(request, find_endpoint("POST", path, "", {}), CallBuilder(settings=Settings()), RelayConfig())


def test_what_can_be_read_is_read() -> None:
    caller = make_caller("/v1/responses", b'{"model": "m", "input": "hi"}')
    served, problem = read_request(find_reply_form("openai_responses", "/v1/responses", {})[0], caller)
    assert served is not None
    assert (served.model, problem) == ("m", None)


def test_what_cannot_be_read_is_told_unless_it_could_be_forwarded() -> None:
    read = find_reply_form("openai_responses", "/v1/responses", {})[0]
    served, problem = read_request(read, make_caller("/v1/responses", b'{"model": "m", "input": "hi", "metadata": 1}'))
    assert served is None
    assert "metadata" in str(problem)
    for body in (b"[", b"[]", b'{"model": "m", "model": "n", "metadata": 1}'):
        with pytest.raises(ConfigError):
            read_request(read, make_caller("/v1/responses", body))


@pytest.mark.parametrize(
    ("path", "body", "found"),
    [
        ("/v1/responses", b'{"model":"m","stream":true}', ("m", True, None, None)),
        ("/v1/responses", b'{"model":"m","previous_response_id":"resp_1"}', ("m", False, "resp_1", None)),
        ("/v1/responses", b'{"model":"m","previous_response_id":["resp_1"]}', ("m", False, "['resp_1']", None)),
        ("/v1/responses", b'{"model":"m","conversation":{"id":"conv_1"}}', ("m", False, None, "conv_1")),
        ("/v1/responses", b'{"model":"m","conversation":"conv_1"}', ("m", False, None, "conv_1")),
        ("/v1beta/models/openai:gpt-5:streamGenerateContent", b"{}", ("openai:gpt-5", True, None, None)),
        ("/model/us.amazon%3Anova/converse-stream", b"{}", ("us.amazon:nova", True, None, None)),
    ],
)
def test_what_decides_where_it_goes(path: str, body: bytes, found: tuple[object, ...]) -> None:
    asked = read_shallow(make_caller(path, body))
    state = asked.prompt.state
    assert (asked.model, asked.stream, state.previous_response_id, state.conversation) == found


def test_no_model_is_told() -> None:
    with pytest.raises(RelayRefusal, match="model is missing"):
        read_shallow(make_caller("/v1/responses", b'{"model": 7}'))
