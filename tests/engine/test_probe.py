"""`asides probe` against servers that nobody here wrote: llama.cpp's own, and LiteLLM's proxy where it is installed.

    ASIDES_LITELLM=/path/to/litellm python -m pytest tests/engine/test_probe.py

LiteLLM is looked for on the path, too. Its proxy takes half a minute to start.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import tomllib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

import asides
from asides.providers.user_rows import read_rows
from tests.engine.engines import PRODUCT, SUM, server
from tests.flows.probe.costumes import ANSWER, THOUGHT, Costume, in_tags, make_chat, wearing
from tests.flows.probe.wardrobe import ONE

LITELLM = os.environ.get("ASIDES_LITELLM") or shutil.which("litellm")
_START_SECONDS = 90
_KEY = "sk-made-up-for-this-test-0123456789"


def paste(report: asides.ProbeReport) -> asides.Provider:
    (row,) = read_rows(tomllib.loads(report.to_text())["providers"], "asides.toml", ())
    return row


@pytest.mark.engine
@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic"])
def test_llama_cpp_is_understood_and_its_row_separates(dialect: str) -> None:
    served = server()
    report = asides.probe(served.url, api_key=served.key, dialect=dialect)
    row = paste(report)
    assert (report.dialect, report.model) == (dialect, "tiny-reasoner")
    assert row.models[0].default == "on"
    if dialect == "openai_chat":
        assert row.quirks.thinking_in == ("reasoning_content",)
        assert (row.quirks.ask_by, row.models[0].thinking) == ("template", "optional")
        tools, replay = report.find("tools"), report.find("replay")
        assert tools is not None
        assert tools.value == {"called": True}
        assert replay is not None
        assert replay.value == {"kept": True, "left_out": True, "required": False}
    with asides.Client(providers=[row], api_key=served.key) as client:
        for stream in (False, True):
            reply = client.ask(f"{row.name}:{report.model}", PRODUCT, stream=stream)
            assert "1081" in reply.text
            assert reply.thinking
            assert "think" not in reply.text
            if row.models[0].thinking == "optional":
                off = client.ask(f"{row.name}:{report.model}", SUM, thinking="off", stream=stream)
                assert "132" in off.text
                assert not off.thinking


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if LITELLM is None:
        pytest.skip("LiteLLM is not installed")
    folder = tmp_path_factory.mktemp("litellm")
    costume = Costume("behind a proxy", make_chat(in_tags("<think>", "</think>")), models=ONE)
    with wearing(costume) as behind, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        config = folder / "config.yaml"
        config.write_text(
            "model_list:\n  - model_name: thinker\n    litellm_params:\n      model: openai/thinker-1\n"
            f"      api_base: {behind.url}\n      api_key: none\n",
            encoding="utf-8",
        )
        yield from _run_proxy(LITELLM, config, port, folder / "log")


def _run_proxy(command: str, config: Path, port: int, log: Path) -> Iterator[str]:
    environment = {**os.environ, "LITELLM_MASTER_KEY": _KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    arguments = [command, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as said, subprocess.Popen(arguments, stdout=said, stderr=said, env=environment) as child:
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _is_alive(port):
                assert child.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < deadline, "the proxy did not start"
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            child.terminate()


def _is_alive(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health/liveliness")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.engine
@pytest.mark.timeout(_START_SECONDS * 2)
def test_the_proxy_of_litellm_is_understood_and_its_row_separates(proxy: str) -> None:
    report = asides.probe(proxy, api_key=_KEY)
    row = paste(report)
    assert (report.dialect, report.model) == ("openai_chat", "thinker")
    with asides.Client(providers=[row], api_key=_KEY) as client:
        for stream in (False, True):
            reply = client.ask(f"{row.name}:thinker", SUM, stream=stream)
            assert (reply.text, reply.thinking and reply.thinking.text) == (ANSWER, THOUGHT)
