"""Rows with a launcher: the server starts with the first request, off the event loop, and only its address is used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import asides
from asides.history.plan import plan
from asides.local import server_pool
from asides.providers.find import find_target
from asides.providers.provider import LAUNCH_URL, Provider
from asides.values.errors import ConfigError
from asides_stage.stage import OpenStage, Say
from tests.local import slow_launcher

_ROW = Provider(name="far", base_url=f"{LAUNCH_URL}/v1", key="optional", launcher="tests.local.slow_launcher:launch")


async def test_the_loop_does_not_wait_for_a_server_that_starts(stage: OpenStage) -> None:
    opened = stage(Say(text="here"), key="key-of-the-server")
    slow_launcher.reset(opened.url.removesuffix("/v1"))
    async with asides.AsyncClient(providers=[_ROW]) as client:
        asking = asyncio.create_task(client.ask("far:model", "Hi", api_key="key-of-somebody-else"))
        while len(slow_launcher.asked) < 2:
            await asyncio.sleep(0.001)
        slow_launcher.may_start.set()
        assert (await asking).text == "here"
        assert (await client.ask("far:model", "Hi")).text == "here"
    # The second question finds it running, and takes no thread.
    assert slow_launcher.asked == [("model", False), ("model", True), ("model", False)]


def test_nothing_is_started_before_a_stream_is_read(stage: OpenStage) -> None:
    opened = stage(Say(text="here"), key="key-of-the-server")
    slow_launcher.reset(opened.url.removesuffix("/v1"))
    slow_launcher.may_start.set()
    with asides.Client(providers=[_ROW]) as client:
        events = client.stream("far:model", "Hi")
        assert slow_launcher.asked == []
        assert events.reply.text == "here"
    assert slow_launcher.asked == [("model", True)]


def test_another_address_starts_nothing(stage: OpenStage) -> None:
    opened = stage(Say(text="here"))
    slow_launcher.reset("http://127.0.0.1:9")
    with asides.Client(providers=[_ROW]) as client:
        assert client.ask("far:model", "Hi", base_url=opened.url).text == "here"
    assert slow_launcher.asked == []


def test_explain_starts_nothing_and_shows_where_it_would_be() -> None:
    before = server_pool.list_running()
    told = asides.explain("local:tiny", "Hi")
    assert told.url == "http://started-on-demand.localhost/v1/chat/completions"
    assert told.headers["Authorization"] == "Bearer ***"
    assert told.missing_key is None
    assert server_pool.list_running() == before


def test_a_local_model_has_the_rules_of_the_server_that_it_is() -> None:
    row, server = asides.find_provider("local"), asides.find_provider("llamacpp")
    assert (row.dialect, row.quirks, row.replay, row.headers) == (
        server.dialect,
        server.quirks,
        server.replay,
        server.headers,
    )
    assert row.models[1:] == server.models
    assert row.rule("/models/Qwen3-8B.gguf") == server.rule("qwen3-8b")


def test_thoughts_of_a_local_model_go_back_whatever_port_it_has() -> None:
    target = find_target("local:tiny")
    assert target.origin == asides.Origin("local", f"{LAUNCH_URL}/v1", "tiny")


def test_the_embedded_model_is_never_asked_without_a_limit() -> None:
    planned = plan(asides.Prompt((asides.user("Hi"),)), find_target("local:tiny"))
    assert planned.prompt.max_tokens == 1024
    assert [(notice.code, notice.sent) for notice in planned.notices] == [("max_tokens_chosen", "1024")]
    asked = plan(asides.Prompt((asides.user("Hi"),), max_tokens=50), find_target("local:tiny"))
    assert (asked.prompt.max_tokens, asked.notices) == (50, ())
    assert plan(asides.Prompt((asides.user("Hi"),)), find_target("local:/any.gguf")).prompt.max_tokens is None


def test_bytes_of_a_local_server_decode_under_its_name() -> None:
    body = b'{"choices":[{"message":{"content":"4","reasoning_content":"2 + 2"},"finish_reason":"stop"}]}'
    reply = asides.decode("openai_chat", body, provider="local")
    assert reply.thinking
    assert (reply.text, reply.thinking.text) == ("4", "2 + 2")


def test_a_settings_file_cannot_name_code_to_run(tmp_path: Path) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text('[providers.mine]\nbase_url = "http://127.0.0.1"\nlauncher = "os:abort"\n')
    with pytest.raises(ConfigError, match="launcher does not belong in a file"):
        asides.load_settings({}, files=[settings])
    settings.write_text('[providers.mine]\nlike = "local"\n')
    (row,) = asides.load_settings({}, files=[settings]).providers
    assert row.launcher == asides.find_provider("local").launcher
