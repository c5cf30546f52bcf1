"""Chooses between a host's dialects for one call: `choose_endpoint(…) → Choice`. Pure; `explain` shows the reason.

The first condition that applies decides: the model exists only on an endpoint that is neither chat nor Responses, or
the caller names such an endpoint · the environment disables Responses · the caller names an endpoint · the model
exists only on Responses · the provider stores the conversation · the settings enable Responses for a custom address ·
the address is the host's own and the call or the model thinks, or the model takes tools only on Responses · the model
takes tools while it thinks only on Responses · else chat.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from asides.providers.find import find_row, is_own_address, list_providers
from asides.providers.provider import Provider, Target
from asides.values.errors import ConfigError
from asides.values.notices import Notice

DISABLE_VARIABLE = "OPENAI_RESPONSES_DISABLE"
CHAT, RESPONSES = "openai_chat", "openai_responses"
_DIALECTS: dict[str, str] = {"chat": CHAT, "chat_completions": CHAT, "responses": RESPONSES}
_YES = frozenset({"true", "1", "yes", "on"})


class EndpointRequest(msgspec.Struct, frozen=True):
    """The facts of a call that decide its endpoint."""

    thinking: bool = False
    """The call asks for thinking, in any form."""
    stateful: bool = False
    """The provider stores the conversation or a part of it."""
    endpoint: str | None = None
    """"chat" or "responses", from the caller; anything else is ignored with a notice."""
    enabled: bool | None = None
    """The setting `openai_responses_enabled`."""
    disabled: bool = False
    """`OPENAI_RESPONSES_DISABLE=true` is in the environment."""
    tools: bool = False
    """The call has tools."""


class Choice(msgspec.Struct, frozen=True):
    """The chosen dialect and the reason."""

    dialect: str
    why: str
    notices: tuple[Notice, ...] = ()


def is_responses_disabled(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment disables Responses."""
    return environ.get(DISABLE_VARIABLE, "").strip().lower() in _YES


def choose_endpoint(target: Target, call: EndpointRequest) -> Choice:
    """Choose the dialect of a call. Raises ConfigError if the model exists only on a disabled endpoint."""
    row, rule = target.provider, target.rule
    available = {name for name in (CHAT, RESPONSES) if row.with_dialect(name) is not None}
    if (apart := _find_apart(row, rule.endpoint, call.endpoint)) is not None:
        return apart
    only_responses = rule.endpoint == "responses"
    if row.dialect not in available or not (row.also or call.endpoint):
        _refuse_chat(row.dialect, target)
        return Choice(row.dialect, "")
    notices: list[Notice] = []
    if call.disabled and RESPONSES in available and CHAT in available:
        if only_responses:
            raise ConfigError(
                f"{row.name}:{target.model} exists only on the Responses endpoint, and {DISABLE_VARIABLE} switches "
                f"that off. Unset {DISABLE_VARIABLE}, or choose another model."
            )
        if row.dialect == RESPONSES or call.endpoint == "responses":
            detail = f"{DISABLE_VARIABLE} is set, so chat completions are used"
            notices.append(Notice("responses_disabled", detail, "endpoint", "responses", "chat"))
        return Choice(CHAT, f"{DISABLE_VARIABLE} switches Responses off", tuple(notices))
    if call.endpoint is not None:
        named = _DIALECTS.get(call.endpoint.strip().lower())
        if named is None:
            detail = "the endpoint is chat or responses; the given value is neither and was ignored"
            notices.append(Notice("endpoint_ignored", detail, "endpoint"))
        else:
            return _use_named(named, available, target)
    if not row.chooses:
        if row.dialect == CHAT and call.enabled and RESPONSES in available:
            return Choice(RESPONSES, "openai_responses_enabled is set", tuple(notices))
        return Choice(row.dialect, "set in the provider row" if row.host else "", tuple(notices))
    return _choose_by_default(target, call, only_responses, tuple(notices))


def _find_apart(row: Provider, only: str, asked: str | None) -> Choice | None:
    """Choose an endpoint that is neither chat nor Responses: where alone the model exists, or as the caller asks."""
    spoken = {name.rpartition("_")[2]: name for name in (row.dialect, *(variant.dialect for variant in row.also))}
    others = {end: name for end, name in spoken.items() if end not in _DIALECTS}
    if only in others:
        return Choice(others[only], "" if others[only] == row.dialect else "the model exists only at this endpoint")
    named = (asked or "").strip().lower()
    return Choice(others[named], "chosen by the caller") if named in others else None


def _use_named(named: str, available: set[str], target: Target) -> Choice:
    if named not in available:
        raise ConfigError(
            f"{target.provider.name} is not known to speak {named}; leave endpoint= out, or add a provider row."
        )
    _refuse_chat(named, target)
    return Choice(named, "chosen by the caller")


def _refuse_chat(named: str, target: Target) -> None:
    # A server at another address may translate.
    if named == CHAT and target.rule.endpoint == "responses" and is_canonical(target):
        raise ConfigError(
            f"{target.provider.name}:{target.model} exists only on the Responses endpoint. Leave the endpoint "
            "to asides, or choose another model."
        )


def _choose_by_default(
    target: Target, call: EndpointRequest, only_responses: bool, notices: tuple[Notice, ...]
) -> Choice:
    if only_responses:
        return Choice(RESPONSES, "the model exists only at this endpoint", notices)
    if call.stateful:
        return Choice(RESPONSES, "the provider stores conversations only at this endpoint", notices)
    canonical = is_canonical(target)
    if call.enabled and not canonical:
        return Choice(RESPONSES, "openai_responses_enabled is set", notices)
    if canonical and call.enabled is not False:
        if call.thinking:
            return Choice(RESPONSES, "thinking was requested, and only this endpoint returns it", notices)
        if target.rule.thinking in ("always", "optional"):
            return Choice(
                RESPONSES, "the model thinks, and only this endpoint keeps its thoughts between turns", notices
            )
        if call.tools and target.rule.tools_need_off:
            return Choice(RESPONSES, "the model accepts tools only at this endpoint", notices)
        return Choice(CHAT, "nothing here needs Responses", notices)
    if call.tools and call.thinking and call.enabled is not False and target.rule.tools_while_thinking is not True:
        return Choice(RESPONSES, "the model accepts tools while it thinks only at this endpoint", notices)
    why = "the address is not the provider's own" if not canonical else "openai_responses_enabled is false"
    return Choice(CHAT, why, notices)


def is_canonical(target: Target) -> bool:
    """Whether the address is exactly the provider's own: scheme, host, port and path. A user's table that changes the
    address of a row of ours leaves open what the server there has.
    """
    if target.launches:
        return True  # The stage replaces the provider.
    if target.foreign:
        return False
    row = target.provider
    ours = find_row(row.name, ())
    if ours is None and row.chooses and row.tier == "yours":
        # Made `like` one of our rows.
        return any(_is_at_home(known, target.base_url) for known in list_providers() if known.chooses)
    return _is_at_home(ours or row, target.base_url)


def _is_at_home(row: Provider, base_url: str) -> bool:
    address = urlsplit(base_url)
    if address.scheme != "https" or not is_own_address(row, base_url):
        return False
    if not row.base_url:
        return bool(row.own_hosts) and "/deployments/" not in address.path
    return address.path.rstrip("/") == urlsplit(row.base_url).path.rstrip("/")
