"""`asides connect`: prints what a client needs to reach a running gateway, or writes it into the client's own files.

What the shell or a file gets goes to stdout, all else to stderr, so that `eval "$(asides connect claude)"` works. Not
here: the clients (connect_clients), and their files (connect_files).
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from asides.cli.connect_clients import (
    CLIENTS,
    PLACEHOLDER,
    Access,
    FromVariable,
    KnownClient,
    Setup,
    Value,
)
from asides.cli.connect_files import Written, format_file, restore_file, write_file
from asides.cli.exit_codes import Exit
from asides.cli.render import print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.flows.build_call import CallBuilder
from asides.gateway_keys import VARIABLE as KEY_VARIABLE
from asides.options import Options
from asides.providers.find import find_row
from asides.providers.key_file import locate_key
from asides.providers.table import find_maker
from asides.relay.known_models import list_known_models
from asides.relay.routes import find_route
from asides.settings import Settings
from asides.values.error_words import find_near_name
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider
from asides.values.notices import escape_controls

DEFAULT_URL = "http://127.0.0.1:4242"
_PATIENCE = 0.5
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print or write the settings of one client."""
    client = _find_client(arguments.client)
    settings = read_settings(terminal)
    url = _check_url(arguments.url) if arguments.url is not None else _find_url(settings)
    key = _find_key(arguments, settings)
    model, small = _choose_models(arguments, client, settings, terminal)
    access = Access(url, model, small, key, _check_dialect(arguments))
    if arguments.undo:
        # What is taken out does not depend on the model.
        access = access._replace(model=model or PLACEHOLDER)
    setup = client.build(access, Path.home(), os.environ)
    if arguments.undo or arguments.write:
        _change_files(arguments, setup, terminal)
    if arguments.undo:
        return Exit.DONE
    gateway = _look_for_gateway(url, key)
    if arguments.json:
        print_json(terminal, _describe(arguments.client, client, setup, gateway))
        return Exit.DONE
    _print(arguments, setup, terminal)
    for line in (*_describe_next(arguments, setup), *_describe_gateway(gateway, url, key)):
        terminal.print_note(line)
    return Exit.DONE


def _find_client(name: str | None) -> KnownClient:
    names = ", ".join(CLIENTS)
    if name is None:
        raise ConfigError(f"no client was named. Write `asides connect NAME`; the clients are {names}.")
    if name in CLIENTS:
        return CLIENTS[name]
    near = find_near_name(name.lower(), CLIENTS)
    meant = "" if near is None else f" Did you mean {near}?"
    raise ConfigError(
        f"unknown client {escape_controls(name)!r}.{meant} Known clients: {names}. For any other client of OpenAI's or "
        "Anthropic's API, use openai or anthropic."
    )


def _check_url(text: str) -> str:
    """The address of a gateway without a path: each client adds its own."""
    try:
        parts = urlsplit(text if "//" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ConfigError(f"{escape_controls(text)!r} is not the address of a gateway. Write it as {DEFAULT_URL}.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = re.sub(r"/(?:v1|v1beta)$", "", parts.path.rstrip("/"))
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def _find_url(settings: Settings) -> str:
    """The address at which `asides serve` with these settings is reached from this machine."""
    host, port = settings.gateway.host.strip("[]"), settings.gateway.port
    if not port:
        raise ConfigError("the gateway of your settings takes a free port each time. Add --url.")
    if host in ("", "0.0.0.0", "::", "localhost"):  # noqa: S104 - every address, so this machine's own
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _find_key(arguments: Namespace, settings: Settings) -> Value:
    if arguments.key is not None:
        if not arguments.key.strip() or not (arguments.key.isascii() and arguments.key.isprintable()):
            raise ConfigError("--key is empty, or has characters that are not allowed in a header.")
        return str(arguments.key)
    if arguments.key_env is not None:
        if not _VARIABLE.fullmatch(arguments.key_env):
            raise ConfigError(
                "--key-env takes the name of the variable with the key, such as ASIDES_GATEWAY_KEY, not the key itself."
            )
        return FromVariable(arguments.key_env)
    for name in (KEY_VARIABLE, settings.gateway.key_env):
        if name and os.environ.get(name, "").strip():
            return FromVariable(name)
    return PLACEHOLDER


def _check_dialect(arguments: Namespace) -> str | None:
    if arguments.dialect is not None and arguments.client != "opencode":
        raise ConfigError("only opencode speaks several dialects; leave --dialect out.")
    return str(arguments.dialect) if arguments.dialect is not None else None


# --- the model --------------------------------------------------------------------------------------------------------


def _choose_models(
    arguments: Namespace, client: KnownClient, settings: Settings, terminal: Terminal
) -> tuple[str | None, str | None]:
    builder = CallBuilder(Options(), settings=settings)
    for name in (arguments.model, arguments.small_model):
        if name is not None:
            _check_model(name, client, builder, terminal, is_elsewhere=arguments.url is not None)
    model = arguments.model or settings.model or next(iter(settings.routes), None)
    if model is None and not _has_key(client, builder):
        known = list_known_models(builder)
        model = known[0].id if known else None
        if model is not None and not arguments.undo:
            terminal.print_note(f"no model is named; using {model}. Change it with --model PROVIDER:MODEL")
    return model, arguments.small_model or model


def _check_model(
    name: str, client: KnownClient, builder: CallBuilder, terminal: Terminal, *, is_elsewhere: bool
) -> None:
    """Refuse a name that leads nowhere. A gateway elsewhere may have names that are not known here."""
    try:
        route = find_route(name, builder, "", client.dialect)
        target = builder.find_target(name if route.is_guess else route.targets[0])
    except (UnknownModel, UnknownProvider) as problem:
        if not is_elsewhere:
            raise
        terminal.print_note(f"warning: not known here, perhaps at the gateway: {problem}")
    except ConfigError:
        return  # The address of the provider needs a variable, which the gateway may have.
    else:
        if route.is_bare and not is_elsewhere and not _has_key(client, builder):
            terminal.print_note(
                f"warning: {name} names no provider, no alias and no route, so the gateway takes it for a model of "
                f"{target.provider.title}, and no key for that is known here. Write PROVIDER:MODEL."
            )


def _has_key(client: KnownClient, builder: CallBuilder) -> bool:
    """Whether there is a key for the maker of the client's dialect, so that the client's own models are answered."""
    maker = find_maker(client.dialect)
    row = None if maker is None else find_row(maker, builder.rows)
    return row is not None and locate_key(row, clouds=False) is not None


# --- output -----------------------------------------------------------------------------------------------------------


def _print(arguments: Namespace, setup: Setup, terminal: Terminal) -> None:
    if arguments.write:
        # What no file holds is left for the shell.
        left = {name: value for name, value in setup.variables.items() if _is_left(value, setup)}
        print_lines(terminal, _format_variables(left, arguments.shell))
        return
    if setup.needs_files:
        for file in setup.files:
            terminal.print_note(f"in {file.path}:")
            terminal.write_answer(format_file(file))
    if setup.variables:
        print_lines(terminal, _format_variables(setup.variables, arguments.shell))


def _is_left(value: Value, setup: Setup) -> bool:
    if not setup.files:
        return True
    has_helper = any(path[-1] == "apiKeyHelper" for file in setup.files for path in file.values)
    return isinstance(value, FromVariable) and not has_helper


def _format_variables(variables: dict[str, Value], shell: str | None) -> list[str]:
    write = {"fish": _write_fish, "powershell": _write_powershell}.get(shell or _guess_shell(), _write_bash)
    return [write(name, value) for name, value in variables.items()]


def _write_bash(name: str, value: Value) -> str:
    return (
        f'export {name}="${value.name}"' if isinstance(value, FromVariable) else f"export {name}={shlex.quote(value)}"
    )


def _write_fish(name: str, value: Value) -> str:
    if isinstance(value, FromVariable):
        return f'set -gx {name} "${value.name}"'
    return "set -gx {} '{}'".format(name, value.replace("\\", "\\\\").replace("'", "\\'"))


def _write_powershell(name: str, value: Value) -> str:
    if isinstance(value, FromVariable):
        return f"$env:{name} = $env:{value.name}"
    return "$env:{} = '{}'".format(name, value.replace("'", "''"))


def write_shell_line(url: str) -> str:
    """The line that points a client, as an example Claude Code, at the gateway of this address in the user's shell."""
    command = "asides connect claude" + ("" if url == DEFAULT_URL else f" --url {url}")
    lines = {"fish": f"{command} | source", "powershell": f"{command} | Out-String | Invoke-Expression"}
    return lines.get(_guess_shell(), f'eval "$({command})"')


def _guess_shell() -> str:
    if os.name == "nt":
        return "powershell"
    return "fish" if Path(os.environ.get("SHELL", "")).name == "fish" else "bash"


def _describe_next(arguments: Namespace, setup: Setup) -> list[str]:
    lines = [f"note: {note}" for note in setup.notes]
    if setup.example:
        lines += ["then, in a program:", *(f"    {line}" for line in setup.example.splitlines())]
    if setup.command:
        lines.append(f"then run: {setup.command}")
    if setup.files and not arguments.write:
        lines.append(f"--write puts it into {' and '.join(str(file.path) for file in setup.files)}.")
    return lines


def _describe(name: str, client: KnownClient, setup: Setup, gateway: Gateway) -> dict[str, Any]:
    def write(value: Value) -> Any:
        return {"from": value.name} if isinstance(value, FromVariable) else value

    return {
        "client": name,
        "title": client.title,
        "checked": client.checked or None,
        "since": client.since,
        "source": client.source,
        "variables": {key: write(value) for key, value in setup.variables.items()},
        "files": [
            {"path": str(file.path), "format": file.format, "content": format_file(file)} for file in setup.files
        ],
        "command": setup.command or None,
        "notes": list(setup.notes),
        "gateway": gateway._asdict(),
    }


# --- the files --------------------------------------------------------------------------------------------------------


def _change_files(arguments: Namespace, setup: Setup, terminal: Terminal) -> None:
    if not setup.files:
        what = "undo: it has no file" if arguments.undo else "write: variables are its way"
        raise ConfigError(f"{arguments.client} has nothing to {what}. Leave the option out.")
    for file in setup.files:
        written = restore_file(file) if arguments.undo else write_file(file)
        for line in _describe_written(written, is_undone=arguments.undo):
            terminal.print_info(line)


def _describe_written(written: Written, *, is_undone: bool) -> list[str]:
    if not written.changes:
        return [f"{written.path} is already up to date."]
    if written.is_removed:
        return [f"removed {written.path}: it held nothing else."]
    lines = [f"{'restored' if is_undone else 'wrote'} {written.path}:"]
    for change in written.changes:
        name = ".".join(change.path)
        was = "" if change.before is None or is_undone else ", which had another value"
        lines.append(f"  {name}{' is gone' if change.after is None else was}")
    if written.backup is not None:
        lines.append(f"  the file as it was: {written.backup}; --undo takes this back")
    return lines


# --- the gateway ------------------------------------------------------------------------------------------------------


class Gateway(NamedTuple):
    """What was found at the address."""

    answers: bool
    needs_key: bool = False
    """It refused the key, or there is none."""


def _look_for_gateway(url: str, key: Value) -> Gateway:
    """Ask the gateway once whether it is there, and whether it takes the key."""
    if _fetch_status(url, "/healthz") is None:
        return Gateway(answers=False)
    sent = os.environ.get(key.name, "").strip() if isinstance(key, FromVariable) else key
    return Gateway(answers=True, needs_key=_fetch_status(url, "/v1/models?limit=1", sent) in (401, 403))


def _fetch_status(url: str, path: str, key: str = "") -> int | None:
    """The status of a GET; None without an answer in time."""
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    place = (parts.hostname or "", parts.port or (443 if is_secure else 80))
    credential = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"GET {parts.path}{path} HTTP/1.0\r\nHost: {parts.netloc}\r\n{credential}Accept: */*\r\n\r\n"
    try:
        with socket.create_connection(place, _PATIENCE) as plain:
            connection = plain
            if is_secure:
                import ssl  # Few gateways are elsewhere.

                connection = ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname)
            connection.settimeout(_PATIENCE)
            connection.sendall(head.encode())
            found = re.match(rb"HTTP/1\.[01] (\d{3})", connection.recv(64))
    except (OSError, ValueError):
        return None
    return None if found is None else int(found.group(1))


def _describe_gateway(gateway: Gateway, url: str, key: Value) -> list[str]:
    if not gateway.answers:
        return [f"no gateway answers at {url} yet. Run `asides serve`."]
    if not gateway.needs_key:
        return [f"the gateway answers at {url}."]
    if key == PLACEHOLDER:
        return [f"the gateway at {url} needs a key. Add --key-env NAME, with the variable that holds it."]
    where = f" in {key.name}" if isinstance(key, FromVariable) else ""
    return [f"the gateway at {url} does not take the key{where}. Check it."]
