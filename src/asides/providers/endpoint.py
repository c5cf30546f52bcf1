"""Which of a host's dialects a call is spoken in: `choose_endpoint(…) → Choice`. Pure; `explain` shows the reason.

The order is fixed (the first that applies decides): Responses switched off in the environment · an endpoint that was
named · a model that exists only there · switched on for a custom address · the host's own address, and thinking asked
for or a model that thinks · else chat. Not here: what is then said.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from asides.providers.provider import Provider, Target
from asides.values.errors import ConfigError
from asides.values.notices import Notice

DISABLE_VARIABLE = "OPENAI_RESPONSES_DISABLE"
CHAT, RESPONSES = "openai_chat", "openai_responses"
_DIALECTS: dict[str, str] = {"chat": CHAT, "chat_completions": CHAT, "responses": RESPONSES}
_YES = frozenset({"true", "1", "yes", "on"})


class EndpointRequest(msgspec.Struct, frozen=True):
    """What is known of a call when its endpoint is chosen."""

    thinking: bool = False
    """Thinking is asked for, by any of its spellings."""
    stateful: bool = False
    """The conversation, or a part of it, is to be with the provider."""
    endpoint: str | None = None
    """"chat" or "responses", as the caller says; anything else is no word and is ignored."""
    enabled: bool | None = None
    """The setting `openai_responses_enabled`."""
    disabled: bool = False
    """`OPENAI_RESPONSES_DISABLE=true` is in the environment."""


class Choice(msgspec.Struct, frozen=True):
    """The dialect, and why."""

    dialect: str
    why: str
    notices: tuple[Notice, ...] = ()


def is_responses_disabled(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment switches Responses off."""
    return environ.get(DISABLE_VARIABLE, "").strip().lower() in _YES


def choose_endpoint(target: Target, wish: EndpointRequest) -> Choice:
    """The dialect of a call to this target. Raises ConfigError where the model exists only on the one that is off."""
    row, rule = target.provider, target.rule
    spoken = {name for name in (CHAT, RESPONSES) if row.speaking(name) is not None}
    only_responses = rule.endpoint == "responses"
    if row.dialect not in spoken or not (row.also or wish.endpoint):
        _refuse_chat(row.dialect, target)
        return Choice(row.dialect, "")
    notices: list[Notice] = []
    if wish.disabled and RESPONSES in spoken and CHAT in spoken:
        if only_responses:
            raise ConfigError(
                f"{row.name}:{target.model} exists only on the Responses endpoint, and {DISABLE_VARIABLE} switches "
                f"that off. To do: unset {DISABLE_VARIABLE}, or choose another model."
            )
        if row.dialect == RESPONSES or wish.endpoint == "responses":
            told = f"{DISABLE_VARIABLE} is set, so chat completions are used"
            notices.append(Notice("responses_disabled", told, "endpoint", "responses", "chat"))
        return Choice(CHAT, f"{DISABLE_VARIABLE} switches Responses off", tuple(notices))
    if wish.endpoint is not None:
        named = _DIALECTS.get(wish.endpoint.strip().lower())
        if named is None:
            told = "the endpoint is chat or responses; what was given is neither and was ignored"
            notices.append(Notice("endpoint_ignored", told, "endpoint"))
        else:
            return _explicit(named, spoken, target)
    if not row.chooses:
        if row.dialect == CHAT and wish.enabled and RESPONSES in spoken:
            return Choice(RESPONSES, "openai_responses_enabled is set", tuple(notices))
        return Choice(row.dialect, "the row names it" if row.host else "", tuple(notices))
    return _usual(target, wish, only_responses, tuple(notices))


def _explicit(named: str, spoken: set[str], target: Target) -> Choice:
    if named not in spoken:
        raise ConfigError(f"{target.provider.name} is not known to speak {named}; leave endpoint= out, or write a row.")
    _refuse_chat(named, target)
    return Choice(named, "the caller named it")


def _refuse_chat(named: str, target: Target) -> None:
    # A server of somebody else's may know how to translate.
    if named == CHAT and target.rule.endpoint == "responses" and is_canonical(target):
        raise ConfigError(
            f"{target.provider.name}:{target.model} exists only on the Responses endpoint. To do: leave the endpoint "
            "to asides, or choose another model."
        )


def _usual(target: Target, wish: EndpointRequest, only_responses: bool, notices: tuple[Notice, ...]) -> Choice:
    if only_responses:
        return Choice(RESPONSES, "the model exists only there", notices)
    if wish.stateful:
        return Choice(RESPONSES, "only there the provider keeps conversations", notices)
    canonical = is_canonical(target)
    if wish.enabled and not canonical:
        return Choice(RESPONSES, "openai_responses_enabled is set", notices)
    if canonical and wish.enabled is not False:
        if wish.thinking:
            return Choice(RESPONSES, "thinking is asked for, and only there it comes back", notices)
        if target.rule.thinking in ("always", "optional"):
            return Choice(RESPONSES, "the model thinks, and only there it keeps its thoughts between turns", notices)
        return Choice(CHAT, "nothing here needs Responses", notices)
    why = "the address is not the provider's own" if not canonical else "openai_responses_enabled is false"
    return Choice(CHAT, why, notices)


def is_canonical(target: Target) -> bool:
    """Whether the address is the provider's own: its scheme, its very host, its path. One that looks like it is not."""
    address = urlsplit(target.base_url)
    row = target.provider
    if address.scheme != "https" or not address.hostname:
        return False
    if row.own_hosts:
        named = any(_is_at(address.hostname.lower(), host) for host in row.own_hosts)
        return named and "/deployments/" not in address.path and address.port in (None, 443)
    own = urlsplit(row.base_url)
    same_port = address.port in (None, 443) and own.port in (None, 443)
    return (
        address.hostname.lower() == (own.hostname or "")
        and same_port
        and address.path.rstrip("/") == own.path.rstrip("/")
    )


def _is_at(hostname: str, host: str) -> bool:
    return hostname == host or (host.startswith(".") and hostname.endswith(host) and len(hostname) > len(host))


def speaking(target: Target, choice: Choice) -> Target:
    """The target with the facts of its chosen dialect."""
    if choice.dialect == target.dialect:
        return target
    row: Provider | None = target.provider.speaking(choice.dialect)
    if row is None:
        return target
    rule = row.rule(target.family or target.model)
    return msgspec.structs.replace(target, provider=row, rule=rule, chosen_dialect=choice.dialect)
