"""`asides serve`: runs the gateway until Ctrl-C."""

from __future__ import annotations

import logging
import os
import sys
from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from asides.cli.connect import write_shell_line
from asides.cli.exit_codes import Exit
from asides.cli.keys import read_stored_keys
from asides.cli.render import describe_error
from asides.cli.terminal import Terminal, open_terminal
from asides.providers.find import STAGE_VARIABLE, list_providers
from asides.providers.key_file import locate_key
from asides.providers.stage_switch import read_stage_switch
from asides.values.errors import AsidesError, ConfigError

if TYPE_CHECKING:
    # They need packages of the extra, which are looked for first.
    from asides_gateway.reload_settings import LoadedSettings

_PACKAGES = {name: name.replace("_", "-") for name in ("uvicorn", "httptools", "cryptography", "prometheus_client")}
_METRICS_VARIABLES = ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir")
_MOST_NAMES = 10
# A worker imports modules from its parent's path, not from the current folder.
_WORKER = """\
import sys
line = sys.stdin.buffer.readline()
if not line:
    sys.exit(1)
import json
sys.path[:] = json.loads(line)["path"]
from asides_gateway.commands.serve import run_worker
sys.exit(run_worker(line))
"""


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the gateway. Its address goes to stdout, so that a script can read it."""
    _check_packages()
    from asides_gateway.access_log import start_log
    from asides_gateway.commands.serve_settings import ServeSettings, collect_flags

    flags = collect_flags(arguments)
    source = ServeSettings(flags, os.environ, lambda text: terminal.print_note(f"warning: {text}"))
    loaded = source.load()

    def announce(url: str) -> None:
        terminal.write_answer(f"{url}\n")
        terminal.flush()
        if terminal.err_is_terminal:
            for line in _greet(url, loaded, terminal):
                terminal.print_note(line)

    if loaded.gateway.workers > 1:
        from asides_gateway.worker_processes import run_workers

        start_log(loaded.gateway.log)
        command = [sys.executable, "-P", "-c", _WORKER, "asides-serve-worker"]
        return run_workers(loaded.gateway, announce, command, flags)
    # Other processes may count there; one process needs no folder.
    for name in _METRICS_VARIABLES:
        os.environ.pop(name, None)
    from asides_gateway.run_gateway import run_gateway

    start_log(loaded.gateway.log)
    source.warn = _warn_in_log
    return run_gateway(loaded, announce, source=source)


def run_worker(line: bytes) -> int:
    """Run one of several processes. Standard input brought its plan, and ends when its parent does."""
    terminal = open_terminal()
    try:
        return _run_worker(line)
    except AsidesError as problem:
        terminal.print_error(describe_error(problem))
        return Exit.USAGE if isinstance(problem, ConfigError) else Exit.UNEXPECTED


def _run_worker(line: bytes) -> int:
    import msgspec

    from asides_gateway.access_log import start_log
    from asides_gateway.commands.serve_settings import ServeSettings
    from asides_gateway.run_gateway import run_gateway
    from asides_gateway.worker_processes import WorkerPlan

    plan = msgspec.json.decode(line, type=WorkerPlan)
    # The parent has already printed the warnings.
    source = ServeSettings({**plan.flags, "port": plan.port}, os.environ, None)
    loaded = source.load()
    start_log(loaded.gateway.log)
    source.warn = _warn_in_log

    def announce(url: str) -> None:
        os.write(1, f"{url}\n".encode())

    return run_gateway(loaded, announce, source=source, shares_port=True, parent=0)


def _warn_in_log(text: str) -> None:
    logging.getLogger("asides.gateway").warning("%s", text)


def _check_packages() -> None:
    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise ConfigError(
            f"`asides serve` needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            "installed. Run pip install 'asides[gateway]'."
        )


# --- the greeting -----------------------------------------------------------------------------------------------------


def _greet(url: str, loaded: LoadedSettings, terminal: Terminal) -> list[str]:
    """The first lines on a terminal. Names of providers, never a key."""
    from asides_gateway.gateway_settings import may_have_records

    settings = loaded.gateway
    stored = read_stored_keys(terminal)
    rows = list_providers(loaded.calls.providers)
    found = [row.name for row in rows if locate_key(row, keys=stored) is not None]
    if read_stage_switch(os.environ) is not None:
        found = [f"any provider: {STAGE_VARIABLE} is set, and the stage answers"]
    named = ", ".join(found[:_MOST_NAMES]) + (f" and {len(found) - _MOST_NAMES} more" if found[_MOST_NAMES:] else "")
    kept = {"off": "no reasoning state", "carry-only": "reasoning state only with the clients"}
    kept |= {"memory": "reasoning state in memory", "store": "reasoning state, encrypted"}
    keys = len(settings.keys)
    lines = [
        f"The gateway answers at {url}",
        f"  page       {url}/ui/" if settings.page else "",
        f"  clients    {_describe_access(keys, has_records=may_have_records(settings))}",
        f"  keys for   {named or 'no provider yet: run `asides keys set PROVIDER`'}",
        f"  routes     {', '.join(list(loaded.calls.routes)[:_MOST_NAMES])}" if loaded.calls.routes else "",
        f"  kept       {kept[settings.state_mode]}; conversations, in {settings.folder}",
        f"  connect    {write_shell_line(url)}",
        "In another terminal; codex, gemini, opencode or openai instead of claude. Ctrl-C ends the gateway.",
    ]
    return [line for line in lines if line]


def _describe_access(keys: int, *, has_records: bool) -> str:
    if has_records:
        return "need a key: `asides gateway key list` shows those of the database"
    if not keys:
        return "of this machine only; they need no key"
    return "need the key of the gateway" if keys == 1 else f"need one of the {keys} keys of the gateway"
