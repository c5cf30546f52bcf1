"""No error, notice, log or explanation of a call shows its key or its prompt, whatever a server echoes.

Every provider's row, over real sockets, in both shells.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

import asides
from asides.providers.find import list_providers
from asides.providers.provider import Provider
from asides.values.errors import AsidesError, ProtocolError, ProviderError
from tests.loopback import ReceivedRequest, Server, serving

KEY = "sk+canary/31415926=535897"
PROMPT = "My name is Ada Lovelace and my number is 4111-1111-1111-1111, tell nobody!"
SPELLINGS = (
    KEY,
    quote(KEY, safe=""),
    json.dumps(KEY)[1:-1].replace("/", "\\/"),
    base64.b64encode(KEY.encode()).decode(),
    base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    base64.b64encode(f"user:{KEY}".encode()).decode(),
    KEY.encode().hex(),
)
ROWS = [row for row in list_providers() if row.quirks.auth != "nothing"]


def _echo(words: str) -> dict[str, Any]:
    """An error in which every dialect finds its message."""
    return {"error": {"message": words, "type": KEY, "code": KEY}, "message": words, "detail": words, "code": KEY}


ECHOES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "in a message": (401, {}, json.dumps(_echo(f"wrong: {' | '.join(SPELLINGS)}")).encode()),
    "at the cut of a message": (400, {}, json.dumps(_echo(f"{'x' * 490} {KEY}")).encode()),
    "in a text": (403, {"Content-Type": "text/plain"}, " | ".join(SPELLINGS).encode()),
    "in a header": (429, {"x-request-id": KEY, "request-id": KEY, "x-amzn-requestid": KEY}, b"{}"),
    "in a redirect": (307, {"Location": f"https://{KEY}.example/{quote(KEY, safe='')}?key={KEY}"}, b""),
    "in an error inside a good response": (200, {}, json.dumps(_echo(f"wrong: {KEY}")).encode()),
    "in a good response that is none": (200, {}, f"<html>{KEY}".encode()),
    "in the prompt that it quotes": (400, {}, json.dumps(_echo(f"bad content: {PROMPT}")).encode()),
}


def _answer(status: int, headers: dict[str, str], body: bytes) -> Callable[[ReceivedRequest, socket.socket], bool]:
    lines = {"Content-Type": "application/json", **headers, "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(f"HTTP/1.1 {status} Answer\r\n{head}\r\n".encode() + body)
        return False

    return answer


@pytest.fixture(scope="module", params=ECHOES)
def echo(request: pytest.FixtureRequest) -> Iterator[tuple[str, Server]]:
    with serving(_answer(*ECHOES[request.param])) as server:
        yield request.param, server


def _ask_sync(model: str, prompt: str, **options: Any) -> AsidesError:
    with asides.Client(providers=options.pop("providers", ())) as client, pytest.raises(AsidesError) as raised:
        client.ask(model, prompt, retries=0, **options)
    return raised.value


def _ask_async(model: str, prompt: str, **options: Any) -> AsidesError:
    async def ask() -> AsidesError:
        async with asides.AsyncClient(providers=options.pop("providers", ())) as client:
            with pytest.raises(AsidesError) as raised:
                await client.ask(model, prompt, retries=0, **options)
            return raised.value

    return asyncio.run(ask())


SHELLS = pytest.mark.parametrize("ask", [_ask_sync, _ask_async], ids=["sync", "async"])


def _show(error: BaseException) -> str:
    """Everything that an error can show: its texts, its data, and the errors behind it."""
    shown = [str(error), repr(error), repr(error.args), repr(vars(error)), "".join(traceback.format_exception(error))]
    shown += [value.decode("latin-1") for value in vars(error).values() if isinstance(value, bytes)]
    if isinstance(error, AsidesError):
        shown.append(pickle.dumps(error).decode("latin-1"))
        shown.append(repr(None if error.partial is None else error.partial.raw))
    shown += [_show(behind) for behind in (error.__cause__, error.__context__) if behind is not None]
    return "\n".join(shown)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@SHELLS
def test_no_provider_s_echo_of_the_key_is_shown(
    echo: tuple[str, Server], ask: Callable[..., AsidesError], step: int, caplog: pytest.LogCaptureFixture
) -> None:
    case, server = echo
    for row in ROWS[len(case) % step :: step]:
        caplog.clear()
        with caplog.at_level(logging.DEBUG):
            error = ask(f"{row.name}:made-up", PROMPT, base_url=server.url, api_key=KEY, max_tokens=99)
        shown = _show(error) + caplog.text
        assert [spelling for spelling in SPELLINGS if spelling in shown] == [], row.name
        assert isinstance(error, (ProviderError, ProtocolError)), (case, row.name)
        assert str(error).isprintable(), row.name
        assert "Lovelace" not in str(error) + repr(error), row.name
        assert "1111-1111" not in str(error) + repr(error), row.name
        if case == "in the prompt that it quotes":
            assert isinstance(error, ProviderError)
            assert b"Lovelace" in error.body, "the data has it"


@SHELLS
def test_a_key_in_the_query_or_a_header_of_a_row_is_not_shown_either(
    ask: Callable[..., AsidesError], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_TOKEN", "canary-in-the-query-1234")
    monkeypatch.setenv("MINE_PATH_SECRET", "canary-in-the-path-1234")
    secrets = ("canary-in-the-query-1234", "canary-in-the-path-1234", "canary-in-a-header-1234", "canary-in-the-url-1")

    def row(port: int) -> Provider:
        return Provider(
            name="mine",
            base_url=f"http://127.0.0.1:{port}/$MINE_PATH_SECRET/v1",
            key="optional",
            query=(("a", "$MINE_TOKEN"), ("b", secrets[3])),
            headers=(("X-Gateway-Token", f"Bearer {secrets[2]}"),),
        )

    words = " | ".join(secrets)
    with serving(_answer(401, {}, json.dumps(_echo(words)).encode())) as server, caplog.at_level(logging.DEBUG):
        mine = row(server.port)
        refused = ask("mine:m", "?", providers=[mine])
        explanation = asides.explain("mine:m", "?", providers=[mine])
    assert secrets[0] in server.heard[0].line, "it was sent"
    assert secrets[1] in server.heard[0].line
    gone = ask("mine:m", "?", providers=[row(1)])
    shown = _show(refused) + _show(gone) + caplog.text + explanation.to_text() + repr(explanation) + repr(mine)
    shown += repr(explanation.target.provider)
    assert [secret for secret in secrets if secret in shown] == []


def test_a_prompt_in_the_code_of_an_error_is_not_shown() -> None:
    answer = _answer(400, {}, json.dumps({"error": {"message": "no", "code": "SECRETWORD"}}).encode())
    with serving(answer) as server:
        error = _ask_sync("groq:m", "SECRETWORD", base_url=server.url, api_key=KEY)
    assert str(error) == "groq answered 400: no. Change the request; `asides explain` shows it."


@SHELLS
def test_aws_credentials_are_not_shown(ask: Callable[..., AsidesError], monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLECANARY",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+canary",
        "AWS_SESSION_TOKEN": "FwoGZXIvYXdzEBYaD/canary+token==",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    spellings = [spelling for value in secrets.values() for spelling in (value, quote(value, safe=""))]
    with serving(_answer(403, {}, json.dumps(_echo(" | ".join(spellings))).encode())) as server:
        shown = _show(ask("bedrock:m", "?", base_url=server.url))
    assert [spelling for spelling in spellings if spelling in shown] == []


def test_an_error_inside_a_stream_hides_the_key_also_in_what_had_arrived() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "Half"}}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: {json.dumps({'error': {'message': f'wrong key {KEY}'}})}\n\n"
    with (
        serving(_answer(200, {"Content-Type": "text/event-stream"}, body.encode())) as server,
        asides.Client() as client,
    ):
        events = client.stream("groq:m", "?", base_url=server.url, api_key=KEY, retries=0)
        with pytest.raises(ProviderError) as raised:
            list(events)
    assert raised.value.partial is not None
    assert raised.value.partial.text == "Half"
    assert KEY not in _show(raised.value)


def test_a_notice_hides_the_key_and_forges_no_line() -> None:
    chunk = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": f"{KEY}\nwarning\u202e"}]}
    with serving(_answer(200, {}, json.dumps(chunk).encode())) as server, asides.Client() as client:
        reply = client.ask("groq:m", "?", base_url=server.url, api_key=KEY)
        events = list(client.stream("groq:m", "?", base_url=server.url, api_key=KEY))
    told = [*reply.warnings, *(event.notice for event in events if isinstance(event, asides.Warned))]
    assert [notice.code for notice in told] == ["foreign_address", "unknown_stop_reason"] * 2
    assert all(KEY not in str(notice) and str(notice).isprintable() for notice in told)


def test_the_list_of_models_hides_the_key() -> None:
    answer = _answer(401, {}, json.dumps(_echo(f"wrong {KEY}")).encode())
    with serving(answer) as server, asides.Client() as client, pytest.raises(ProviderError) as raised:
        client.models("groq", base_url=server.url, api_key=KEY, retries=0)
    assert KEY not in _show(raised.value)
