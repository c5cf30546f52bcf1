"""A gateway in a process of its own, whose memory can be measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import asides

_CHILD = """
import sys, msgspec
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides.options import Options
from asides.settings import load_settings

given = msgspec.json.decode(sys.argv[1])
if given["uvloop"]:
    import asyncio, uvloop
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
options = Options(base_url=given["url"], api_key="sk-upstream")
with Gateway(GatewaySettings(**given["settings"]), load_settings(environ={}, files=[]), options=options) as gateway:
    print(gateway.url, flush=True)
    sys.stdin.read()
"""


class GatewayProcess:
    """A gateway in a child process."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def measure_memory(self) -> int:
        """The resident memory of the process, in bytes."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the process is gone")

    def measure_cpu(self) -> float:
        """The processor time of the process so far, in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def count_files(self) -> int:
        """The open files of the process, sockets included."""
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))


@contextmanager
def gateway_process(url: str, *, uvloop: bool = False, **settings: Any) -> Generator[GatewayProcess, None, None]:
    """Run a gateway in a child whose every provider is at this address."""
    own = {"port": 0, "drain_seconds": 0.5, **settings}
    given = msgspec.json.encode({"url": url, "uvloop": uvloop, "settings": own}).decode()
    source = str(Path(asides.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": source},
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield GatewayProcess(process, process.stdout.readline().strip())
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
