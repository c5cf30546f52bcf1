"""The gateways of the table: how each is started before the replay server, and what its process uses.

A model's name is a profile of the replay server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.environments import ROOT, build_environ, find_folder, find_python
from bench.gateway_client import KEY, Failed, connect, write_body
from bench.processes import LOGS

START_SECONDS = 120
ASIDES, ASIDES_ON_POSTGRES = "asides", "asides on PostgreSQL"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def choose_cores() -> tuple[set[int], set[int]]:
    """The core of the gateway, and those of the load and the upstream. The same ones where there is only one."""
    if not hasattr(os, "sched_getaffinity"):
        return set(), set()
    cores = sorted(os.sched_getaffinity(0))
    return {cores[-1]}, set(cores[:-1]) or set(cores)


def pin(pid: int, cores: set[int]) -> None:
    """Keep a process, and the threads that it will start, on these cores."""
    if cores:
        os.sched_setaffinity(pid, cores)


@dataclass
class Gateway:
    """A gateway that runs. Its upstream's address is part of how it was started."""

    name: str
    port: int
    pid: int
    version: str = ""

    def cpu_seconds(self) -> float:
        """The CPU time so far of the process and its children, all threads."""
        total = 0.0
        for pid in self._pids():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                exact = sum(
                    int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()
                )
                # The exact figure leaves out threads that have ended.
                total += max(exact / 1e9, (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND)
        return total

    def memory_kb(self) -> float:
        """The resident memory of the process and its children."""
        total = 0.0
        for pid in self._pids():
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith("VmRSS:"):
                        total += float(line.split()[1])
        return total

    def _pids(self) -> list[int]:
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            with suppress(OSError):
                waiting += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return found


@contextmanager
def start_pass_through(upstream: str, cores: set[int], folder: Path) -> Iterator[Gateway]:
    """The parsing pass-through on the stack of asides."""
    del folder
    command = [str(find_python("gateway")), "-m", "bench.floors.gateway", upstream]
    with _run("pass-through", command, build_environ("gateway"), cores, ROOT) as process:
        assert process.stdout is not None
        yield Gateway("pass-through", int(process.stdout.readline()), process.pid)


@contextmanager
def start_asides(
    upstream: str, cores: set[int], folder: Path, name: str = ASIDES, more: dict[str, str] | None = None
) -> Iterator[Gateway]:
    """`asides serve` as it is by default, with the replay server as a provider for each profile."""
    settings = folder / "asides.toml"
    settings.write_text("".join(_write_providers(profile, upstream) for profile in PROFILES))
    environ = build_environ("asides") | {
        "ASIDES_CONFIG": str(settings),
        "ASIDES_STATE": str(folder),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        **(more or {}),
    }
    command = [str(find_python("gateway")), "-m", "asides", "serve", "--port", "0"]
    with _run(name, command, environ, cores, folder) as process:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        if not line:
            raise Failed("asides serve did not start")
        port = next(word for word in line if word.startswith("http")).rstrip("/").rpartition(":")[2]
        yield Gateway(name, int(port), process.pid)


@contextmanager
def start_asides_on_postgres(upstream: str, cores: set[int], folder: Path) -> Iterator[Gateway]:
    """The same with everything in a PostgreSQL server of its own, which keeps what it has as in earnest."""
    from tests.servers import PostgresServer

    server = PostgresServer(durable=True)
    try:
        # On the cores of the load, as this process is.
        server.start()
        more = {"ASIDES_STORE": server.create_database("bench"), "ASIDES_RELAY_KEY": "0b" * 32}
        with start_asides(upstream, cores, folder, ASIDES_ON_POSTGRES, more) as gateway:
            yield gateway
    finally:
        server.remove()


# Every profile that is asked for. The small answer, streams with known words, and streams that tell the time.
SMALL, BURST, TICKS, QUICK_TICKS = "body-300", "burst-1000", "ticks-160", "ticks-80"
PROFILES = (SMALL, BURST, TICKS, QUICK_TICKS)


STORED = "stored-"
"""How the route to a host begins that wants thinking back, so that every turn is stored."""


def _write_providers(profile: str, upstream: str) -> str:
    """A host that takes plain chat completions, so that chat is forwarded and nothing is stored, with a route of the
    profile's name; and one that wants thinking back.
    """
    return "".join(
        f'[providers.up-{route}]\ndialect = "openai_chat"\nbase_url = "{upstream}/{profile}/v1"\nkey = "optional"\n'
        f"quirks = {{ tags = [], output_with_tools = false }}\nreplay = [{{ models = '*', when = '{when}' }}]\n"
        f"[routes.{route}]\ntargets = ['up-{route}:any']\n"
        for route, when in ((profile, "never"), (STORED + profile, "all"))
    )


@contextmanager
def start_litellm(upstream: str, cores: set[int], folder: Path) -> Iterator[Gateway]:
    """LiteLLM's proxy, with one worker, no retries and no telemetry."""
    settings = folder / "litellm.yaml"
    models = "".join(
        f"  - model_name: {profile}\n    litellm_params:\n      model: openai/deepseek-reasoner\n"
        f"      api_base: {upstream}/{profile}/v1\n      api_key: x\n"
        for profile in PROFILES
    )
    settings.write_text(
        f"model_list:\n{models}general_settings:\n  master_key: {KEY}\n"
        "litellm_settings:\n  telemetry: false\n  num_retries: 0\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(find_folder("litellm_proxy") / "bin" / "litellm"), "--config", str(settings)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with _run("litellm", command, build_environ("litellm_proxy"), cores, folder) as process:
        asyncio.run(_wait_for(port, process))
        yield Gateway("litellm", port, process.pid)


Start = Callable[[str, set[int], Path], "contextmanager[Gateway]"]  # type: ignore[valid-type]
GATEWAYS = {
    "pass-through": start_pass_through,
    ASIDES: start_asides,
    ASIDES_ON_POSTGRES: start_asides_on_postgres,
    "litellm": start_litellm,
}


@contextmanager
def _run(
    name: str, command: list[str], environ: dict[str, str], cores: set[int], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    LOGS.mkdir(exist_ok=True)
    with (
        (LOGS / f"gateway_{name.replace(' ', '_')}.log").open("w") as log,
        subprocess.Popen(
            command,
            env=environ,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        pin(process.pid, cores)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


async def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            connection = await connect(port)
            await connection.ask("/v1/chat/completions", write_body("chat", SMALL, stream=False), bytes)
        except (OSError, Failed):
            await asyncio.sleep(0.3)
        else:
            connection.close()
            return
    raise Failed(f"it did not start within {START_SECONDS} s; its log is in {LOGS}")


def is_installed(name: str) -> bool:
    if name == ASIDES_ON_POSTGRES:
        return find_spec("psycopg") is not None
    return name != "litellm" or (find_folder("litellm_proxy") / "bin" / "litellm").exists()


def find_version(name: str) -> str:
    """The version of a gateway."""
    if name in (ASIDES, ASIDES_ON_POSTGRES):
        return "this checkout"
    package = "litellm" if name == "litellm" else "aiohttp"
    environment = "litellm_proxy" if name == "litellm" else "gateway"
    python = find_python(environment) or Path(sys.executable)
    code = f"import importlib.metadata as m; print('{package}', m.version('{package}'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()
