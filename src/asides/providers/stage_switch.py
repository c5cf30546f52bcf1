"""The variable ASIDES_STAGE: every row is moved to the offline stage, so that no request leaves this machine.

`ASIDES_STAGE=1` starts a stage in this process with the first request; `ASIDES_STAGE=http://127.0.0.1:8765/v1` uses one
that runs. Only the environment can set it: a settings file has no say in where requests go. Loaded only when the
variable is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from asides.providers.credentials import is_loopback, is_secret_header
from asides.providers.find import OWN_STAGE, RUNNING_STAGE, STAGE_VARIABLE
from asides.providers.provider import LAUNCH_URL, Provider
from asides.providers.quirks import Quirks
from asides.values.errors import ConfigError

OPEN_STAGES: set[str] = set()
"""The addresses (host and port) of the stages that this process opened itself. Requests to them stay."""

_PLAIN_PATHS = {"openai_chat": "/chat/completions", "anthropic": "/messages"}
_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"", "0", "false", "no", "off"})


def read_stage_switch(environ: Mapping[str, str]) -> str | None:
    """What ASIDES_STAGE says: None for no stage, "" for a stage in this process, else the address of a running one."""
    value = environ.get(STAGE_VARIABLE, "").strip()
    if value.lower() in _OFF:
        return None
    if value.lower() in _ON:
        return ""
    if value.startswith("http://") and is_loopback(value):
        return value.rstrip("/")
    raise ConfigError(
        f"{STAGE_VARIABLE} is neither 1 nor the address of a stage on this machine. Set it to 1, or to the "
        "address that `asides stage` prints; unset it to ask the providers."
    )


def move_to_stage(row: Provider, explicit: str | None, environ: Mapping[str, str]) -> Provider | None:
    """The row at the stage's address, without keys; None where the switch is off or does not concern the row.

    It does not concern a model that runs on this machine (`local:`), nor a stage that the program opened itself.
    `explicit` is the address that the call names.
    """
    named = read_stage_switch(environ)
    if named is None or row.launcher:
        return None
    address = (explicit or "").strip() or row.base_url
    if address and _read_host(address) in OPEN_STAGES:
        return None
    return msgspec.structs.replace(
        row,
        quirks=_use_plain_path(row.quirks, row.dialect),
        also=tuple(
            msgspec.structs.replace(other, quirks=_use_plain_path(other.quirks, other.dialect)) for other in row.also
        ),
        base_url=f"{LAUNCH_URL}/v1",
        base_url_env=(),
        addressing="plain",
        key_env=(),
        key="optional",
        signing="nothing",
        headers=tuple((name, value) for name, value in row.headers if not is_secret_header(name)),
        query=(),
        launcher=RUNNING_STAGE if named else OWN_STAGE,
    )


def _use_plain_path(quirks: Quirks, dialect: str) -> Quirks:
    """The quirks with the path that shows the dialect. Some hosts wrap a dialect in an address of their own."""
    plain = _PLAIN_PATHS.get(dialect, quirks.path)
    if quirks.transport == "direct" and quirks.path == plain:
        return quirks
    return msgspec.structs.replace(quirks, transport="direct", path=plain)


def _read_host(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""
