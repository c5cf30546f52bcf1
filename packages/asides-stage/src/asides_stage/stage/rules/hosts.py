"""The hosts that the stage plays: `find_target` names the row whose rules hold for a served request.

The first part of a path such as `/as-openrouter/v1/chat/completions` chooses a host; else the path of the real host,
else the name of the model. Any other request is served by the dialect's first host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from asides.providers.find import find_provider, find_rule, plain_row
from asides.providers.provider import Target

Host = TypeVar("Host", bound="StageHost")
STAGE_URL = "http://stage.localhost"
"""The address of targets on the stage. No request goes there."""


class StageHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that the stage plays in one dialect."""

    dialect: str
    row: str
    """The name of the provider's row."""
    at: str | None = None
    """The first part of the path that chooses it."""
    paths: str | None = None
    """The pattern of its real paths."""
    models: str | None = None
    """The pattern of the model names that it serves; None if they do not show it."""
    enforces: tuple[str, ...] | None = None
    """The rule sets of a host that has no row of its own: the row is that of the nearest relative."""


HOSTS = (
    StageHost(dialect="anthropic", row="bedrock-anthropic", paths=r"/model/[^/]+/invoke"),
    StageHost(dialect="anthropic", row="vertex-anthropic", paths=r"/publishers/anthropic/"),
    StageHost(dialect="anthropic", row="deepseek-anthropic", models=r".*deepseek-"),
    StageHost(dialect="anthropic", row="minimax-anthropic", models=r".*minimax-"),
    StageHost(dialect="anthropic", row="kimi-anthropic", models=r".*kimi-"),
    StageHost(dialect="anthropic", row="zai-anthropic", models=r"glm-"),
    StageHost(dialect="anthropic", row="ollama-anthropic", models=r"qwen"),
    StageHost(dialect="anthropic", row="anthropic", models=""),
    StageHost(dialect="bedrock", row="bedrock", models=""),
    StageHost(dialect="gemini", row="vertex", paths=r"/publishers/"),
    StageHost(dialect="gemini", row="google", models=""),
)


def choose_host(hosts: Iterable[Host], path: str, model: str) -> Host | None:
    """Return the first host that a path or the name of a model shows; None if nothing does."""
    listed = tuple(hosts)
    first, name = path.lstrip("/").partition("/")[0], model.lower()
    by_path = next((host for host in listed if host.at == first), None) or next(
        (host for host in listed if host.paths and re.search(host.paths, path)), None
    )
    return by_path or next((host for host in listed if host.models is not None and re.match(host.models, name)), None)


def find_host(dialect: str, path: str, model: str) -> StageHost | None:
    """Return the host that the stage plays for a request; None for a dialect without any."""
    return choose_host((host for host in HOSTS if host.dialect == dialect), path, model)


def find_target(dialect: str, path: str, model: str) -> Target:
    """Return the target whose rules hold for a request in this dialect."""
    return make_target(find_host(dialect, path, model), dialect, model)


def make_target(host: StageHost | None, dialect: str, model: str) -> Target:
    """Return the target of a model at a host; without one, at the dialect's plain row."""
    row = (find_provider(host.row).with_dialect(dialect) if host else None) or plain_row(dialect)
    # Names with a cloud's or a maker's words in front count, too.
    rule = find_rule(row, model, foreign=True)
    if host is not None and host.enforces is not None:
        row = msgspec.structs.replace(row, quirks=msgspec.structs.replace(row.quirks, enforces=host.enforces))
    return Target(row, model, STAGE_URL, rule, chosen_dialect=dialect)
