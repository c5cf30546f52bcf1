"""Commands that repeat requests: safe in a shell and in a terminal, and without a key."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asides.relay.relay_request import RelayRequest
from asides_gateway.repeat_as_curl import Repeated, select_repeated, write_curl

ORIGIN = "http://127.0.0.1:4242"


def _write(body: Any = None, **more: Any) -> str:
    head: dict[str, Any] = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "dialect": "openai_chat",
        "repeated": Repeated({}, ""),
    }
    raw = None if body is None else msgspec.Raw(msgspec.json.encode(body))
    more = head | {"size": 9} | more
    return write_curl(ORIGIN, body=raw, **more)


@pytest.mark.parametrize(
    ("dialect", "header"),
    [
        ("anthropic", '"x-api-key: $ASIDES_GATEWAY_KEY"'),
        ("gemini", '"x-goog-api-key: $ASIDES_GATEWAY_KEY"'),
        ("openai_chat", '"authorization: Bearer $ASIDES_GATEWAY_KEY"'),
    ],
)
def test_the_key_is_a_variable_in_the_header_of_the_dialect(dialect: str, header: str) -> None:
    assert f"-H {header}" in _write({}, dialect=dialect)


def test_a_body_that_is_not_there_is_a_file() -> None:
    command = _write()
    assert command.startswith("# The body was not kept.")
    assert "--data-binary @request.json" in command


def test_a_request_without_a_body_has_none() -> None:
    command = write_curl(ORIGIN, "GET", "/v1/models", "openai_chat", Repeated({}, ""), body=None, size=0)
    assert "--data" not in command
    assert "#" not in command
    assert "-I" in write_curl(ORIGIN, "HEAD", "/", "openai_chat", Repeated({}, ""), body=None, size=0)


def test_a_body_that_is_too_long_for_a_command_is_a_file() -> None:
    assert "@request.json" in _write({"content": "x" * 200_000})


def test_what_was_blacked_out_is_told() -> None:
    assert "# What must not be shown" in _write({"signature": "*** (9 characters)"})


@example('it\'s "$(x)" `x` \x1b[201~', "a'b c")
@given(st.text(), st.text(alphabet=st.characters(codec="utf-8"), min_size=1))
def test_nothing_leaves_its_quotes(text: str, path: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    command = _write({"content": text}, path=f"/{path}", repeated=Repeated({"anthropic-beta": text}, "beta=true"))
    assert command.isascii()
    lines = [line for line in command.split("\n") if not line.startswith("#")]
    assert all(line.isprintable() for line in lines)
    words = shlex.split(" ".join(line.removesuffix("\\") for line in lines))
    assert words[:3] == ["curl", "-sS", "-N"]
    assert msgspec.json.decode(words[words.index("--data-raw") + 1]) == {"content": text}
    assert len(words) <= 12, "as many words as were written"


def test_only_what_a_repetition_needs_is_selected() -> None:
    headers = {
        "content-type": "application/json",
        "anthropic-beta": "one",
        "authorization": "Bearer CANARY",
        "x-api-key": "CANARY",
        "cookie": "CANARY",
        "x-anything": "CANARY",
    }
    request = RelayRequest("", "POST", "/v1/messages", "beta=true&key=CANARY&api_key=CANARY&token=CANARY", headers)
    repeated = select_repeated(request)
    assert repeated == Repeated({"content-type": "application/json", "anthropic-beta": "one"}, "beta=true")
    assert select_repeated(None) == Repeated({}, "")
