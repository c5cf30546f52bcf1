"""The gateways of the table: how each is started before the replay server, and what its process uses.

A model's name is a profile of the replay server.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from bench.environments import BENCH, ROOT, build_environ, find_folder, find_python
from bench.gateway_client import KEY, Failed, connect
from bench.gateway_requests import write_body
from bench.processes import LOGS

START_SECONDS = 120
BARE, PARSING = "bare", "pass-through"
ASIDES, ASIDES_ON_POSTGRES, ASIDES_WITH_KEYS = "asides", "asides on PostgreSQL", "asides with keys"
ONE_WORKER, TWO_WORKERS = "asides, 1 worker", "asides, 2 workers"
BARE_ON_ASYNCIO, ASIDES_ON_ASYNCIO = "bare on asyncio's loop", "asides on asyncio's loop"
# kind of key → the words of `asides gateway key create`; limits that no run reaches
KEYS: dict[str, tuple[str, ...]] = {
    "a key": (),
    "key and limits": ("--rpm", "1000000000", "--tpm", "1000000000"),
    "a budget": ("--budget-day", "1000000"),
}
_LOGGED_NAME = re.compile(r"\W+")


def list_cores() -> list[int]:
    """The cores of this process."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


CORES = list_cores()
HAS_CORES_FOR_TWO = len(CORES) >= 4
"""Whether two workers, the load and the upstream have a core each."""


def choose_cores() -> tuple[set[int], set[int]]:
    """The core of a gateway, and those of the load and the upstream. The same ones where there is only one."""
    if not CORES:
        return set(), set()
    return {CORES[-1]}, set(CORES[:-2] if HAS_CORES_FOR_TWO else CORES[:-1]) or set(CORES)


def choose_cores_of_two() -> set[int]:
    """The cores of a gateway with two workers. With fewer than four, all: it shares them with the load."""
    return set(CORES[-2:] if HAS_CORES_FOR_TWO else CORES)


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
    keys: dict[str, str] = field(default_factory=dict)
    """The keys of its clients, by their kind."""

    def cpu_seconds(self) -> float:
        """The CPU time so far of the process and its children, all threads."""
        return sum(self.cpu_by_process().values())

    def cpu_by_process(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for pid in self._pids():
            with suppress(OSError):
                # The CPU clock of a process, as clock_getcpuclockid(3) names it: exact, with threads that have ended.
                found[pid] = time.clock_gettime((~pid << 3) | 2)
        return found

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
def _start_floor(
    name: str, module: str, upstream: str, cores: set[int], more: dict[str, str] | None = None
) -> Generator[Gateway]:
    command = [str(find_python("gateway")), "-m", f"bench.floors.{module}", upstream]
    with _run(name, command, build_environ("gateway") | (more or {}), cores, ROOT) as process:
        assert process.stdout is not None
        yield Gateway(name, int(process.stdout.readline()), process.pid)


def start_bare(upstream: str, cores: set[int], _folder: Path) -> AbstractContextManager[Gateway]:
    """The bare pass-through on the stack of asides."""
    return _start_floor(BARE, "bare_gateway", upstream, cores)


def start_bare_on_asyncio(upstream: str, cores: set[int], _folder: Path) -> AbstractContextManager[Gateway]:
    return _start_floor(BARE_ON_ASYNCIO, "bare_gateway", upstream, cores, _hide_uvloop(build_environ("gateway")))


def start_pass_through(upstream: str, cores: set[int], _folder: Path) -> AbstractContextManager[Gateway]:
    """The parsing pass-through on the stack of asides."""
    return _start_floor(PARSING, "gateway", upstream, cores)


def _hide_uvloop(environ: dict[str, str]) -> dict[str, str]:
    """The variables with which a process of these does not find uvloop, nor do its children."""
    path = (str(BENCH / "without_uvloop"), environ.get("PYTHONPATH"))
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


@contextmanager
def start_asides(
    upstream: str,
    cores: set[int],
    folder: Path,
    name: str = ASIDES,
    more: dict[str, str] | None = None,
    words: tuple[str, ...] = (),
    keys: dict[str, tuple[str, ...]] | None = None,
) -> Generator[Gateway]:
    """`asides serve` as it is by default, with the replay server as a provider for each profile.

    `more`: variables. `words`: of its command line. `keys`: those of its clients, none by default.
    """
    settings = folder / "asides.toml"
    # By default, clients with a key see only summaries, so that the replies of chat would change.
    seen = '[visibility]\ngateway = ["raw", "summary", "sealed"]\n' if keys else ""
    settings.write_text(seen + "".join(_write_providers(profile, upstream) for profile in PROFILES))
    environ = build_environ("asides") | {
        "ASIDES_CONFIG": str(settings),
        "ASIDES_STATE": str(folder),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        **(more or {}),
    }
    asides = [str(find_python("gateway")), "-m", "asides"]
    made = {kind: _make_key(asides, kind, limits, environ, folder) for kind, limits in (keys or {}).items()}
    with _run(name, [*asides, "serve", "--port", "0", *words], environ, cores, folder) as process:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        if not line:
            raise Failed("asides serve did not start")
        port = next(word for word in line if word.startswith("http")).rstrip("/").rpartition(":")[2]
        yield Gateway(name, int(port), process.pid, keys=made)


def _make_key(asides: list[str], kind: str, limits: tuple[str, ...], environ: dict[str, str], folder: Path) -> str:
    command = [*asides, "gateway", "key", "create", "--name", kind, *limits, "--quiet"]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"no key could be made: {done.stderr.strip()[-200:]}")
    return done.stdout.split()[-1]


def start_asides_with_keys(upstream: str, cores: set[int], folder: Path) -> AbstractContextManager[Gateway]:
    return start_asides(upstream, cores, folder, ASIDES_WITH_KEYS, keys=KEYS)


def start_one_worker(upstream: str, cores: set[int], folder: Path) -> AbstractContextManager[Gateway]:
    """The base of two workers: one on the same cores."""
    del cores
    return start_asides(upstream, choose_cores_of_two(), folder, ONE_WORKER)


def start_two_workers(upstream: str, cores: set[int], folder: Path) -> AbstractContextManager[Gateway]:
    del cores
    return start_asides(upstream, choose_cores_of_two(), folder, TWO_WORKERS, words=("--workers", "2"))


def start_asides_on_asyncio(upstream: str, cores: set[int], folder: Path) -> AbstractContextManager[Gateway]:
    return start_asides(upstream, cores, folder, ASIDES_ON_ASYNCIO, _hide_uvloop(build_environ("asides")))


@contextmanager
def start_asides_on_postgres(upstream: str, cores: set[int], folder: Path) -> Generator[Gateway]:
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
SMALL, BURST, TICKS, QUICK_TICKS = "body-2048", "burst-1000", "ticks-160", "ticks-80"
PROFILES = (SMALL, BURST, TICKS, QUICK_TICKS)


STORED = "stored"
"""A host that speaks chat and wants thinking back, so that every turn is stored."""
# host → its row, its maker, the end of its address, and its model
_KNOWN_HOSTS = {
    "messages": ("anthropic", "anthropic", "v1", "claude-sonnet-4-5"),
    "responses": ("openai-responses", "openai", "v1", "gpt-5"),
    "gemini": ("google", "google", "v1beta", "gemini-2.5-flash"),
}


def name_model(host: str, profile: str) -> str:
    """The route to a profile of a host. That of chat has the name of the profile, as the other gateways have it."""
    return profile if host == "chat" else f"{host}-{profile}"


def _write_providers(profile: str, upstream: str) -> str:
    """A host that takes plain chat completions, where nothing is stored; one that wants thinking back; and the known
    host of each other dialect, as it is. Each with a route.
    """
    rows = {
        host: f'dialect = "openai_chat"\nbase_url = "{upstream}/{profile}/v1"\nkey = "optional"\nprices = "openai"\n'
        f"quirks = {{ tags = [], output_with_tools = false }}\nreplay = [{{ models = '*', when = '{when}' }}]\n"
        for host, when in (("chat", "never"), (STORED, "all"))
    }
    models = dict.fromkeys(rows, "gpt-4.1-mini")
    for host, (name, maker, end, model) in _KNOWN_HOSTS.items():
        # The maker's own host, at another address.
        who = f'like = "{name}"\nhost = "{maker}"\nprices = "{maker}"\nquirks = {{ tags = [] }}\n'
        rows[host] = f'{who}base_url = "{upstream}/{profile}/{end}"\nkey = "optional"\n'
        models[host] = model
    return "".join(
        f"[providers.up-{name_model(host, profile)}]\n{row}"
        f"[routes.{name_model(host, profile)}]\n"
        f"targets = ['up-{name_model(host, profile)}:{models[host]}']\n"
        for host, row in rows.items()
    )


@contextmanager
def start_litellm(upstream: str, cores: set[int], folder: Path) -> Generator[Gateway]:
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


GATEWAYS: dict[str, Callable[[str, set[int], Path], AbstractContextManager[Gateway]]] = {
    BARE: start_bare,
    PARSING: start_pass_through,
    ASIDES: start_asides,
    ASIDES_WITH_KEYS: start_asides_with_keys,
    ASIDES_ON_POSTGRES: start_asides_on_postgres,
    ONE_WORKER: start_one_worker,
    TWO_WORKERS: start_two_workers,
    BARE_ON_ASYNCIO: start_bare_on_asyncio,
    ASIDES_ON_ASYNCIO: start_asides_on_asyncio,
    "litellm": start_litellm,
}
FLOORS = (BARE, PARSING)
WORKERS = (ONE_WORKER, TWO_WORKERS)
LOOPS = (BARE_ON_ASYNCIO, ASIDES_ON_ASYNCIO)


@contextmanager
def _run(
    name: str, command: list[str], environ: dict[str, str], cores: set[int], folder: Path
) -> Generator[subprocess.Popen[str]]:
    LOGS.mkdir(exist_ok=True)
    with (
        (LOGS / f"gateway_{_LOGGED_NAME.sub('_', name)}.log").open("w") as log,
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
    if name.startswith(ASIDES):
        return "this checkout"
    package = "litellm" if name == "litellm" else "aiohttp"
    environment = "litellm_proxy" if name == "litellm" else "gateway"
    python = find_python(environment) or Path(sys.executable)
    code = f"import importlib.metadata as m; print('{package}', m.version('{package}'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()
