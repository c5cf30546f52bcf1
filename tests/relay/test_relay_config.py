"""The head of a response: it leaves once, with an id and the codes of notices."""

from __future__ import annotations

from asides.flows.build_call import CallBuilder
from asides.relay.endpoints import Endpoint
from asides.relay.relay_config import NOTICE_HEADER, Caller, RelayConfig, write_codes
from asides.relay.relay_request import RelayRequest
from asides.values.notices import Notice


def _call(dialect: str) -> Caller:
    request = RelayRequest(dialect, "POST", "/", body=b"SECRET")
    assert "SECRET" not in repr(request)
    return Caller(request, Endpoint(dialect, "reply", "/", {}), CallBuilder(), RelayConfig())


def test_the_head_leaves_once() -> None:
    caller = _call("anthropic")
    (start,) = caller.start(200, {"content-type": "application/json"}, [Notice("one", "detail", "setting")])
    assert start.headers["request-id"].startswith("req_")
    assert start.headers[NOTICE_HEADER] == "one;setting"
    assert caller.start(500, {}) == []
    (other,) = _call("openai_chat").start(200, {"x-request-id": "theirs"})
    assert other.headers == {"x-request-id": "theirs"}


def test_codes_are_short_and_plain() -> None:
    notices = [Notice("same", "a"), Notice("same", "b"), Notice("bad\ncode", "c"), Notice("ümlaut", "d")]
    assert write_codes(notices) == "same"
    many = write_codes([Notice(f"code_{number}", "secret detail") for number in range(500)])
    assert len(many) <= 1000
    assert "secret" not in many
