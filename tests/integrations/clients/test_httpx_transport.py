"""The transports: keys and addresses, copies, timeouts, errors, leaving early, event loops, both HTTP libraries."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import anthropic
import httpx
import httpx2
import openai
import pytest

from asides import ConfigError, Provider
from asides.anthropic import Anthropic, AsyncAnthropic
from asides.openai import AsidesTransport, AsyncAsidesTransport, AsyncOpenAI, OpenAI
from asides.relay.vault.memory_vault import MemoryVault
from asides_stage import Fail, Hang, OpenStage, Refuse, Say, Stage

Behind: TypeAlias = Callable[..., Stage]
QUESTION: list[Any] = [{"role": "user", "content": "What is 23 * 47?"}]
ANSWER = "23 × 47 = 1081"
CLAUDE = "anthropic:claude-sonnet-4-5"
SLOW = Say("a long answer " * 40, thinking="plan", pause=0.05, piece=5)


def chat(client: Any, model: str = CLAUDE, **more: Any) -> Any:
    return client.chat.completions.create(model=model, messages=QUESTION, **more)


def send(client: Any, model: str = CLAUDE, **more: Any) -> Any:
    return client.messages.create(**{"model": model, "max_tokens": 9000, "messages": QUESTION, **more})


# --- keys and addresses -----------------------------------------------------------------------------------------------


def read_key(stage: Stage, number: int = -1) -> str:
    headers = stage.requests[number].headers
    return headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")


def test_a_key_goes_to_the_base_url_and_to_no_other_provider(stage: OpenStage) -> None:
    home, other = stage(), stage()
    rows = [Provider(name="elsewhere", base_url=other.url, key="optional")]
    with OpenAI(base_url=home.url, api_key="sk-home", asides={"providers": rows}) as client:
        chat(client, "any-model")
        chat(client, "elsewhere:any-model")
        chat(client.with_options(api_key="sk-second"), "any-model")
        chat(client.with_options(api_key="sk-second"), "elsewhere:any-model")
    assert [read_key(home, 0), read_key(home, 1)] == ["sk-home", "sk-second"]
    assert [read_key(other, 0), read_key(other, 1)] == ["", ""]
    assert not any(b"sk-" in received.body for received in (*home.requests, *other.requests))


def test_anthropics_key_goes_to_the_base_url_and_to_no_other_provider(stage: OpenStage) -> None:
    home, other = stage(), stage()
    rows = [Provider(name="elsewhere", base_url=other.url, key="optional")]
    with Anthropic(base_url=home.url.removesuffix("/v1"), api_key="sk-ant-home", asides={"providers": rows}) as client:
        send(client, "claude-opus-5-5")
        send(client, "elsewhere:any-model")
    assert (read_key(home), read_key(other)) == ("sk-ant-home", "")


def test_a_token_goes_where_the_official_client_puts_it(stage: OpenStage) -> None:
    home = stage()
    base_url = home.url.removesuffix("/v1")
    for make in (anthropic.Anthropic, Anthropic):
        with make(base_url=base_url, auth_token="token-1") as client:
            send(client, "claude-opus-5-5")
    credentials = [
        {name: value for name, value in received.headers.items() if name in ("authorization", "x-api-key")}
        for received in home.requests
    ]
    assert credentials == [{"authorization": "Bearer token-1"}] * 2


def test_a_key_of_the_environment_goes_to_its_own_provider(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = stage(), stage()
    monkeypatch.setenv("OPENAI_BASE_URL", home.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("ELSEWHERE_API_KEY", "key-of-elsewhere")
    rows = [Provider(name="elsewhere", base_url=other.url, key_env=("ELSEWHERE_API_KEY",))]
    with OpenAI(asides={"providers": rows}) as client:
        chat(client, "gpt-5")
        chat(client, "elsewhere:any-model")
    assert (read_key(home), read_key(other)) == ("sk-mine", "key-of-elsewhere")


def test_without_any_key_the_client_says_which_one_is_missing() -> None:
    with OpenAI(max_retries=0) as client, pytest.raises(openai.AuthenticationError, match="ANTHROPIC_API_KEY"):
        chat(client)
    with Anthropic(max_retries=0) as client, pytest.raises(anthropic.AuthenticationError, match="OPENAI_API_KEY"):
        send(client, "openai:gpt-5")


def test_names_with_a_colon_or_a_slash_belong_to_the_base_url(stage: OpenStage) -> None:
    home = stage()
    with OpenAI(base_url=home.url, api_key="sk-home") as client:
        for name in ("qwen3:8b", "ft:gpt-5:acme::x1", "anthropic/claude-sonnet-5", "deepseek/deepseek-r1:free"):
            chat(client, name)
    assert [json.loads(received.body)["model"] for received in home.requests] == [
        "qwen3:8b", "ft:gpt-5:acme::x1", "anthropic/claude-sonnet-5", "deepseek/deepseek-r1:free",
    ]  # fmt: skip


def test_headers_of_the_program_go_to_the_home_and_to_no_other_provider(stage: OpenStage) -> None:
    home, other = stage(), stage()
    rows = [
        Provider(name="elsewhere", base_url=other.url, key="optional"),
        Provider(name="abroad", dialect="anthropic", base_url=other.url, key="optional"),
    ]
    with OpenAI(
        base_url=home.url,
        api_key="sk-home",
        organization="org-1",
        default_headers={"x-proxy-key": "secret", "cf-aig-authorization": "secret"},
        asides={"providers": rows},
    ) as client:
        for name in ("any-model", "elsewhere:any-model", "abroad:any-model"):
            chat(client, name, extra_headers={"x-call": "7"})
    own = ("x-proxy-key", "cf-aig-authorization", "openai-organization", "x-call")
    assert [home.requests[0].headers.get(name) for name in own] == ["secret", "secret", "org-1", "7"]
    assert not any(name in received.headers for received in other.requests for name in own)
    assert not any(name.startswith("x-stainless") for received in other.requests for name in received.headers)


# --- options ----------------------------------------------------------------------------------------------------------


def test_options_of_the_client_and_of_one_request(behind: Behind) -> None:
    opened = behind()
    with OpenAI(asides={"thinking": 3000}) as client:
        chat(client)
        chat(client, extra_body={"asides": {"thinking": 5000}})
    bodies = [json.loads(received.body) for received in opened.requests]
    assert [body["thinking"]["budget_tokens"] for body in bodies] == [3000, 5000]
    assert not any("asides" in body for body in bodies)


def test_an_option_that_is_none_is_told(behind: Behind) -> None:
    opened = behind()
    with pytest.raises(ConfigError, match="no option 'thinkin'"):
        OpenAI(asides={"thinkin": "high"})
    with OpenAI() as client, pytest.raises(openai.BadRequestError, match=r"unknown option asides\.thinkin"):
        chat(client, extra_body={"asides": {"thinkin": "high"}})
    assert opened.requests == []


def test_copies_keep_the_transport(behind: Behind) -> None:
    opened = behind()
    with OpenAI(asides={"thinking": 3000}) as client:
        for copy in (client.copy(), client.with_options(timeout=5, max_retries=0), client.copy().copy(project="p")):
            assert type(copy) is OpenAI
            assert chat(copy).choices[0].message.content == ANSWER
        raw = client.with_raw_response.chat.completions.create(model=CLAUDE, messages=QUESTION)
        assert raw.parse().choices[0].message.content == ANSWER
        with client.with_streaming_response.chat.completions.create(model=CLAUDE, messages=QUESTION) as response:
            assert json.loads(response.read())["choices"][0]["message"]["content"] == ANSWER
    with Anthropic(asides={"thinking": 3000}) as other:
        for each in (other.copy(), other.with_options(timeout=5), other.with_middleware()):
            assert type(each) is Anthropic
            assert send(each).content[-1].text == ANSWER
        assert other.messages.with_raw_response.create(
            model=CLAUDE, max_tokens=9000, messages=QUESTION
        ).parse().content[-1].text == ANSWER  # type: ignore[union-attr]  # fmt: skip
    budgets = [json.loads(received.body)["thinking"]["budget_tokens"] for received in opened.requests]
    assert budgets == [3000] * len(budgets)


def test_an_http_client_with_another_transport_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"[Ll]eave it out"), httpx2.Client() as plain:
        OpenAI(http_client=plain)
    with httpx2.Client(transport=AsidesTransport()) as ours:
        assert OpenAI(http_client=ours).api_key
        with pytest.raises(ConfigError, match=r"[Pp]ass asides= to the transport"):
            OpenAI(http_client=ours, asides={"thinking": "high"})


# --- errors -----------------------------------------------------------------------------------------------------------

STATUSES: list[tuple[int, str]] = [
    (400, "BadRequestError"),
    (401, "AuthenticationError"),
    (403, "PermissionDeniedError"),
    (404, "NotFoundError"),
    (422, "UnprocessableEntityError"),
    (429, "RateLimitError"),
    (500, "InternalServerError"),
]


@pytest.mark.parametrize("model", [CLAUDE, "openai-chat:gpt-5", "gemini:gemini-3-pro-preview"])
@pytest.mark.parametrize(("status", "name"), STATUSES)
def test_errors_are_those_of_the_sdk(behind: Behind, status: int, name: str, model: str) -> None:
    behind(Fail(status=status, message="the words of the provider"))
    with OpenAI(max_retries=0) as client:
        with pytest.raises(getattr(openai, name), match="the words of the provider") as caught:
            chat(client, model)
        assert caught.value.status_code == status
        with pytest.raises(getattr(openai, name)):
            client.responses.create(model=model, input="?")
    with Anthropic(max_retries=0) as other, pytest.raises(getattr(anthropic, name), match="the words of the provider"):
        send(other, model)


@pytest.mark.parametrize("model", [CLAUDE, "openai-chat:gpt-5"])
def test_the_sdk_tries_again_as_often_as_it_is_told(behind: Behind, model: str) -> None:
    opened = behind(
        Fail(status=429, headers={"retry-after-ms": "1"}, retry_after=0.01), Fail(status=529), Say("at last")
    )
    with OpenAI(max_retries=2) as client:
        assert chat(client, model).choices[0].message.content == "at last"
    assert len(opened.requests) == 3


def test_retry_after_reaches_the_sdk(behind: Behind) -> None:
    behind(Fail(status=429, retry_after=7))
    with OpenAI(max_retries=0) as client, pytest.raises(openai.RateLimitError) as caught:
        chat(client)
    assert float(caught.value.response.headers["retry-after"]) == 7


@pytest.mark.parametrize("model", [CLAUDE, "openai-chat:gpt-5", "gemini:gemini-3-pro-preview"])
def test_a_stream_that_breaks_raises(behind: Behind, model: str) -> None:
    behind(Say("a long answer " * 20, thinking="plan", cut_after=700, piece=5))
    with OpenAI(max_retries=0) as client, pytest.raises((openai.APIError, httpx2.TransportError)):
        for _ in chat(client, model, stream=True):
            pass
    kinds: list[str] = []
    with OpenAI(max_retries=0) as client, suppress(openai.APIError, httpx2.TransportError):
        stream = client.responses.create(model=model, input="?", stream=True)
        kinds += (event.type for event in stream)
        # In Responses, an event tells of the failure.
        assert kinds[-1] in ("response.failed", "error")
    assert "response.completed" not in kinds
    with Anthropic(max_retries=0) as other, pytest.raises((anthropic.APIError, httpx2.TransportError)):
        for _ in send(other, model, stream=True):
            pass


def test_no_server_is_a_connection_error(stage: OpenStage) -> None:
    opened = stage(Refuse())
    with OpenAI(base_url=opened.url, api_key="k", max_retries=0) as client:
        with pytest.raises(openai.APIConnectionError) as caught:
            chat(client, "any")
        assert not isinstance(caught.value, openai.APITimeoutError)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_timeout_is_that_of_the_client(behind: Behind, streamed: bool) -> None:
    behind(Hang())
    with OpenAI(timeout=0.2, max_retries=0) as client, pytest.raises(openai.APITimeoutError):
        chat(client, stream=streamed)
    with OpenAI(max_retries=0) as client, pytest.raises(openai.APITimeoutError):
        chat(client, stream=streamed, timeout=httpx2.Timeout(60, read=0.2))
    with Anthropic(timeout=0.2, max_retries=0) as other, pytest.raises(anthropic.APITimeoutError):
        send(other, stream=streamed)


async def test_a_timeout_of_an_awaiting_client(behind: Behind) -> None:
    behind(Hang())
    async with AsyncOpenAI(timeout=0.2, max_retries=0) as client:
        with pytest.raises(openai.APITimeoutError):
            await chat(client)


# --- leaving early ----------------------------------------------------------------------------------------------------


def has_left(stage: Stage, count: int = 1) -> bool:
    return stage.wait_until(lambda: stage.closed_early == count)


def test_leaving_a_stream_leaves_the_provider(behind: Behind) -> None:
    opened = behind(SLOW)
    with OpenAI() as client:
        with chat(client, stream=True) as stream:
            next(iter(stream))
        assert has_left(opened)
        closed = chat(client, stream=True)
        next(iter(closed))
        closed.close()
        assert has_left(opened, 2)
        with client.chat.completions.stream(model=CLAUDE, messages=QUESTION) as helper:
            next(iter(helper))
        assert has_left(opened, 3)
    with Anthropic() as other:
        with other.messages.stream(model=CLAUDE, max_tokens=9000, messages=QUESTION) as messages:
            next(iter(messages))
        assert has_left(opened, 4)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_turn_is_confirmed_when_it_was_read_to_its_end(
    behind: Behind, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed: list[object] = []
    session = {"session-id": "mine"}
    monkeypatch.setattr(MemoryVault, "confirm", lambda _, record: confirmed.append(record))
    behind(lambda _: Say("all of it", thinking="plan", piece=3))
    with OpenAI(default_headers=session) as client:
        answer = chat(client, stream=streamed)
        assert not streamed or [*answer]
    assert len(confirmed) == 1
    async with AsyncOpenAI(default_headers=session) as awaiting:
        answer = await chat(awaiting, stream=streamed)
        assert not streamed or [chunk async for chunk in answer]
    assert len(confirmed) == 2
    with Anthropic(default_headers=session) as other:
        answer = send(other, "deepseek:deepseek-v4-pro", stream=streamed)
        assert not streamed or [*answer]
    assert len(confirmed) == 3
    with OpenAI(default_headers=session) as client, chat(client, stream=True) as left:
        next(iter(left))
    assert len(confirmed) == 3


def test_a_stream_that_nobody_reads_leaves_the_provider(behind: Behind) -> None:
    opened = behind(SLOW)
    with OpenAI() as client:
        stream = chat(client, stream=True)
        next(iter(stream))
        del stream
        gc.collect()
        assert has_left(opened)


def test_closing_from_another_thread_ends_a_wait(behind: Behind) -> None:
    opened = behind(Say("one two three " * 40, piece=5, hang_after=2000))
    with OpenAI() as client:
        stream = chat(client, stream=True)
        threading.Timer(0.2, stream.close).start()
        began = time.monotonic()
        for _ in stream:
            pass
        assert time.monotonic() - began < 5
    assert has_left(opened)


async def test_a_cancelled_task_leaves_the_provider(behind: Behind) -> None:
    opened = behind(SLOW, Hang())

    async def read(client: Any) -> None:
        async for _ in await chat(client, stream=True):
            pass

    async with AsyncOpenAI() as client:
        for task in (asyncio.create_task(read(client)), asyncio.create_task(chat(client))):
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await asyncio.to_thread(opened.wait_until, lambda: opened.open_connections == 0)


async def test_leaving_an_awaited_stream_leaves_the_provider(behind: Behind) -> None:
    opened = behind(SLOW)
    async with AsyncAnthropic() as client:
        async with client.messages.stream(model=CLAUDE, max_tokens=9000, messages=QUESTION) as stream:
            await anext(aiter(stream))
        assert await asyncio.to_thread(has_left, opened)


# --- event loops ------------------------------------------------------------------------------------------------------


def test_one_client_in_several_event_loops(behind: Behind) -> None:
    behind()

    async def ask(client: AsyncOpenAI) -> str:
        return str((await chat(client)).choices[0].message.content)

    client = AsyncOpenAI()
    assert [asyncio.run(ask(client)) for _ in range(3)] == [ANSWER] * 3
    del client
    gc.collect()


def test_without_asyncio_the_error_says_so() -> None:
    """As under trio: a coroutine that runs outside of an event loop of asyncio."""

    async def ask() -> Any:
        async with httpx.AsyncClient(transport=AsyncAsidesTransport()) as client:
            # The client's own send would already ask for an event loop.
            request = httpx.Request("POST", "https://api.openai.com/v1/chat/completions", json={"model": CLAUDE})
            return await client._transport.handle_async_request(request)

    coroutine = ask()
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    response = ended.value.value
    assert (response.status_code, "trio" in response.text) == (400, True)


def test_many_threads_share_a_client(behind: Behind) -> None:
    behind()
    found: list[str] = []
    with OpenAI() as client:
        threads = [
            threading.Thread(target=lambda: found.append(chat(client).choices[0].message.content)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [ANSWER] * 8


# --- both libraries ---------------------------------------------------------------------------------------------------

URLS: dict[str, dict[str, Any]] = {
    "https://api.openai.com/v1/chat/completions": {"model": CLAUDE, "messages": QUESTION},
    "https://api.openai.com/v1/responses": {"model": CLAUDE, "input": "What is 23 * 47?"},
    "https://api.anthropic.com/v1/messages": {"model": CLAUDE, "messages": QUESTION, "max_tokens": 1000},
    "http://localhost:11434/api/chat": {"model": CLAUDE, "messages": QUESTION, "stream": False},
    "https://api.cohere.com/v2/chat": {"model": CLAUDE, "messages": QUESTION},
}


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("url", URLS)
def test_plain_clients_of_both_libraries(behind: Behind, library: Any, url: str) -> None:
    behind()
    with library.Client(transport=AsidesTransport()) as client:
        response = client.post(url, json=URLS[url])
        assert (response.status_code, ANSWER in json.dumps(response.json(), ensure_ascii=False)) == (200, True)


async def test_plain_awaiting_clients_of_both_libraries(behind: Behind, library: Any) -> None:
    behind()
    url = "https://api.openai.com/v1/chat/completions"
    async with library.AsyncClient(transport=AsyncAsidesTransport()) as client:
        response = await client.post(url, json=URLS[url])
        assert response.json()["choices"][0]["message"]["content"] == ANSWER
        async with client.stream("POST", url, json={**URLS[url], "stream": True}) as streamed:
            lines = [line async for line in streamed.aiter_lines()]
    assert "data: [DONE]" in lines


def test_a_timeout_of_a_plain_client(behind: Behind, library: Any) -> None:
    behind(Hang())
    url = "https://api.openai.com/v1/chat/completions"
    with library.Client(transport=AsidesTransport(), timeout=0.2) as client, pytest.raises(library.ReadTimeout):
        client.post(url, json=URLS[url])
