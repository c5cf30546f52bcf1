"""Keys from functions: called for each attempt, checked like any key, never shown."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import asides
from asides.providers.credentials import KeySource, Secret
from asides.values.errors import AuthError, ConfigError, IdleTimeout, ProviderError
from asides_stage.stage import Fail, OpenStage, Say

MODEL = "openai-compatible:m"
OLD, NEW = "token-old-0123456789", "token-new-0123456789"


def ask_sync(url: str, **options: Any) -> asides.Reply:
    with asides.Client() as client:
        return client.ask(MODEL, "?", base_url=url, **options)


def ask_async(url: str, **options: Any) -> asides.Reply:
    async def run() -> asides.Reply:
        async with asides.AsyncClient() as client:
            return await client.ask(MODEL, "?", base_url=url, **options)

    return asyncio.run(run())


Ask = Callable[..., asides.Reply]
both = pytest.mark.parametrize("ask", [ask_sync, ask_async])


def sent(stage: Any) -> list[str]:
    return [request.headers.get("authorization", "") for request in stage.requests]


def rotate(*keys: str) -> Callable[[], str]:
    rest: Iterator[str] = iter(keys)
    return lambda: next(rest)


@both
def test_a_function_is_called_for_each_attempt(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=503), Say(text="hi"))
    reply = ask(server.url, api_key=rotate(OLD, NEW), retries=1)
    assert reply.text == "hi"
    assert sent(server) == [f"Bearer {OLD}", f"Bearer {NEW}"]


@both
def test_a_client_asks_its_function_for_each_call(ask: Ask, stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    key = rotate(OLD, NEW)
    for _ in range(2):
        ask(server.url, api_key=key)
    assert sent(server) == [f"Bearer {OLD}", f"Bearer {NEW}"]


@both
def test_a_refused_key_is_fetched_once_more_also_without_retries(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=401), Say(text="hi"))
    assert ask(server.url, api_key=rotate(OLD, NEW), retries=0).text == "hi"
    assert sent(server) == [f"Bearer {OLD}", f"Bearer {NEW}"]


@both
def test_a_second_refusal_ends_it(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=401))
    with pytest.raises(AuthError):
        ask(server.url, api_key=rotate("one-key-0123456", "two-key-0123456", "three-key-01234"))
    assert len(server.requests) == 2


@both
def test_the_same_key_is_not_sent_twice_to_be_refused(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=401, message="no such key"))
    with pytest.raises(AuthError, match="no such key"):
        ask(server.url, api_key=lambda: OLD)
    assert len(server.requests) == 1


@both
def test_a_forbidden_key_is_final_and_an_expired_one_is_not(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=403, message="not yours"))
    with pytest.raises(AuthError):
        ask(server.url, api_key=rotate(OLD, NEW))
    assert len(server.requests) == 1
    body = '{"error": {"message": "too old", "code": "ExpiredTokenException"}}'
    expired = stage(Fail(status=403, body=body), Say(text="hi"))
    assert ask(expired.url, api_key=rotate(OLD, NEW)).text == "hi"


@both
def test_text_that_is_refused_is_tried_once(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=401))
    with pytest.raises(AuthError):
        ask(server.url, api_key=OLD)
    assert len(server.requests) == 1


@both
def test_a_secret_may_be_returned(ask: Ask, stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    ask(server.url, api_key=lambda: Secret(NEW))
    assert sent(server) == [f"Bearer {NEW}"]


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, "returned NoneType, not text"),
        (42, "returned int, not text"),
        (b"bytes", "returned bytes, not text"),
        (OSError(f"no {OLD}"), "returned OSError, not text"),
        (ConfigError(f"no {OLD}"), "returned ConfigError, not text"),
        ("", "returned an empty key"),
        (" \n", "returned an empty key"),
        (f"{OLD}\r\nX-Evil: 1", "holds a blank, a line break"),
        ("schlüssel-0123456789", "holds a blank, a line break"),
    ],
)
@both
def test_what_is_no_key_is_refused_before_a_byte_is_sent(
    ask: Ask, stage: OpenStage, returned: object, says: str
) -> None:
    server = stage(Say(text="hi"))
    with pytest.raises(ConfigError, match=says) as caught:
        ask(server.url, api_key=lambda: returned)
    assert server.requests == []
    assert OLD not in str(caught.value)


@both
def test_an_error_of_the_function_is_the_cause_and_its_text_stays_there(ask: Ask, stage: OpenStage) -> None:
    def fail() -> str:
        raise OSError(f"vault closed for {OLD}")

    server = stage(Say(text="hi"))
    with pytest.raises(ConfigError, match="raised OSError") as caught:
        ask(server.url, api_key=fail)
    assert OLD not in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert server.requests == []


@both
def test_an_error_of_ours_passes(ask: Ask, stage: OpenStage) -> None:
    def fail() -> str:
        raise asides.MissingKey("Vault", ("VAULT",))

    with pytest.raises(asides.MissingKey, match="Vault needs an API key"):
        ask(stage(Say(text="hi")).url, api_key=fail)


@both
def test_every_key_that_was_used_is_taken_out_of_errors(ask: Ask, stage: OpenStage) -> None:
    server = stage(Fail(status=503), Fail(status=400, message=f"bad keys {OLD} and {NEW}"))
    with pytest.raises(ProviderError) as caught:
        ask(server.url, api_key=rotate(OLD, NEW))
    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert OLD not in shown
    assert NEW not in shown
    assert "bad keys *** and ***" in shown


@both
def test_models_are_listed_with_a_function_too(ask: Ask, stage: OpenStage) -> None:
    server = stage(key=NEW)
    if ask is ask_sync:
        with asides.Client() as client:
            assert client.models("openai-compatible", base_url=server.url, api_key=rotate(OLD, NEW))
    else:

        async def run() -> None:
            async with asides.AsyncClient() as client:
                assert await client.models("openai-compatible", base_url=server.url, api_key=rotate(OLD, NEW))

        asyncio.run(run())
    assert sent(server) == [f"Bearer {OLD}", f"Bearer {NEW}"]


# --- sync and async functions -----------------------------------------------------------------------------------------


async def fetch_new() -> str:
    await asyncio.sleep(0)
    return NEW


async def fetch_any(key: str) -> str:
    return key


class Vault:
    async def __call__(self) -> str:
        return NEW


class InheritedVault(Vault):
    pass


@pytest.mark.parametrize(
    "function", [fetch_new, partial(fetch_any, NEW), Vault(), InheritedVault(), lambda: fetch_any(NEW)]
)
def test_an_async_client_awaits_what_is_awaitable(function: Callable[[], Any], stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    ask_async(server.url, api_key=function)
    assert sent(server) == [f"Bearer {NEW}"]


@pytest.mark.parametrize("function", [fetch_new, Vault(), lambda: fetch_any(NEW)])
def test_a_sync_client_refuses_an_awaitable(function: Callable[[], Any], stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    with pytest.raises(ConfigError, match=r"cannot await.*asides\.aio"):
        ask_sync(server.url, api_key=function)
    assert server.requests == []


def test_a_function_that_blocks_does_not_block_the_event_loop(stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    ticked = threading.Event()

    def block() -> str:
        # Ends only because the loop goes on meanwhile.
        assert ticked.wait(10)
        return NEW

    async def run() -> str:
        async with asides.AsyncClient() as client:
            asking = asyncio.create_task(client.ask(MODEL, "?", base_url=server.url, api_key=block))
            await asyncio.sleep(0.05)
            ticked.set()
            return (await asking).text

    assert asyncio.run(run()) == "hi"


def test_the_time_of_the_whole_call_holds_for_the_key_too(stage: OpenStage) -> None:
    async def wait() -> str:
        await asyncio.sleep(30)
        return NEW

    began = time.monotonic()
    with pytest.raises(IdleTimeout, match="the whole call may take"):
        ask_async(stage(Say(text="hi")).url, api_key=wait, timeout={"total": 0.2})
    assert time.monotonic() - began < 10


def test_a_cancelled_task_stays_cancelled(stage: OpenStage) -> None:
    async def wait() -> str:
        await asyncio.sleep(30)
        return NEW

    async def run() -> None:
        async with asides.AsyncClient() as client:
            asking = asyncio.create_task(client.ask(MODEL, "?", base_url=stage(Say()).url, api_key=wait))
            await asyncio.sleep(0.05)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(run())


def test_ctrl_c_in_the_function_passes(stage: OpenStage) -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_sync(stage(Say()).url, api_key=interrupt)


def test_an_agent_fetches_a_key_for_each_of_its_requests(stage: OpenStage) -> None:
    def add(left: int, right: int) -> int:
        """Add."""
        return left + right

    server = stage(
        Say(tool_calls=(asides.ToolCall(id="c1", name="add", arguments={"left": 1, "right": 2}),)), Say(text="3")
    )
    with asides.Client(base_url=server.url, api_key=rotate(OLD, NEW)) as client:
        agent = asides.Agent(MODEL, tools=[add], client=client)
        assert agent.send("?").text == "3"
    assert sent(server) == [f"Bearer {OLD}", f"Bearer {NEW}"]


def test_explain_calls_no_function_and_shows_where_the_key_goes() -> None:
    def never() -> str:
        raise AssertionError("explain sends nothing, so it needs no key")

    explained = asides.explain("groq:qwen/qwen3-32b", "?", api_key=never)
    assert explained.headers["Authorization"] == "Bearer ***"
    assert explained.missing_key is None


def test_what_is_neither_text_nor_a_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="api_key is text, or a function that returns it, not int"):
        asides.ask("groq:m", "?", api_key=42)  # type: ignore[call-overload]


def test_a_source_shows_nothing() -> None:
    row = asides.Provider(name="mine", key_env=("MINE",))
    source = KeySource(row, lambda: NEW)
    assert source.reveal() == ""
    source.take(NEW)
    assert source.reveal() == NEW
    assert NEW not in f"{source!r} {source}"
    assert source.list_secrets() == [NEW]
