"""The layers of a call laid over one another, and the call that comes of it: prompt, target, key and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from asides.arguments.options import Options, PromptLike, checked, known, laid_over, read_as
from asides.arguments.prompts import read_prompt
from asides.errors import ConfigError, MissingKey
from asides.flows.call import Call, Policy, Timeout
from asides.providers.credentials import Secret, find_key
from asides.providers.find import find
from asides.providers.provider import Provider, Target
from asides.settings import Settings, load_settings
from asides.thinking import Thinking
from asides.wire.inline_tags import DEFAULT_TAGS


class Defaults:
    """What a client was given once, and below it the settings. Makes the calls."""

    def __init__(
        self, options: Options | None = None, *, providers: Sequence[Provider] = (), settings: Settings | None = None
    ) -> None:
        self._options = known(options or Options())
        self._providers = tuple(providers)
        self._given_settings = settings

    @cached_property
    def settings(self) -> Settings:
        """What the environment and `asides.toml` say; read with the first call, not before."""
        return load_settings() if self._given_settings is None else self._given_settings

    def call(self, model: str, prompt: PromptLike, options: Options, *, stream: bool, needs_key: bool = True) -> Call:
        """Everything settled. Raises before a byte is sent; `stream` is what the caller's verb means by itself."""
        given = laid_over(laid_over(_of_settings(self.settings), self._options), known(options))
        target = _target(model, given, self.rows, self.settings)
        read, notices = read_prompt(prompt, given, stream)
        return Call(read, target, _policy(given), _key(target, given, needs_key), (*self.settings.notices, *notices))

    @property
    def rows(self) -> tuple[Provider, ...]:
        """The caller's own rows, those of the settings behind them."""
        return (*self._providers, *self.settings.providers)


def _of_settings(settings: Settings) -> Options:
    return Options(
        thinking=settings.thinking if settings.thinking != Thinking() else None,
        max_tokens=settings.max_tokens,
        timeout=Timeout(**msgspec.structs.asdict(settings.timeouts)),
        retries=settings.retries,
        on_conflict=settings.on_conflict,
        keep_raw=settings.keep_raw,
    )


def _target(model: str, given: Options, rows: Sequence[Provider], settings: Settings) -> Target:
    found = find(model, base_url=checked("base_url", given), family=checked("family", given), rows=rows)
    target = settings.tuned(found)
    quirks: dict[str, Any] = {}
    rule: dict[str, Any] = {}
    field = given.get("thinking_field") or ()
    if fields := tuple(name for name in ((field,) if isinstance(field, str) else field) if name.strip()):
        quirks["thinking_in"] = fields
    if (heuristics := checked("heuristics", given)) is not None:
        quirks["heuristics"] = heuristics
    if (tags := given.get("tags")) is not None:
        rule["tags"] = (tags,) if isinstance(tags, str) else tuple(tags)
    if (starts_inside := checked("starts_inside", given)) is not None:
        rule["starts_inside"] = starts_inside
        if starts_inside and "tags" not in rule and not (target.rule.tags or target.quirks.tags):
            # A host that is not known to inline; who says that it begins inside a tag says that it does.
            rule["tags"] = DEFAULT_TAGS
    if quirks:
        own = msgspec.structs.replace(target.quirks, **quirks)
        target = msgspec.structs.replace(target, provider=msgspec.structs.replace(target.provider, quirks=own))
    return msgspec.structs.replace(target, rule=msgspec.structs.replace(target.rule, **rule)) if rule else target


def _key(target: Target, given: Options, needed: bool) -> Secret | None:
    try:
        return find_key(target.provider, given.get("api_key"), base_url=target.base_url)
    except MissingKey:
        if needed:
            raise
        return None


def _policy(given: Options) -> Policy:
    names = ("retries", "max_wait", "on_conflict", "keep_raw")
    changes = {name: checked(name, given) for name in names if given.get(name) is not None}
    if changes.get("retries", 0) < 0 or changes.get("max_wait", 0.0) < 0:
        raise ConfigError("retries and max_wait are not below zero.")
    return Policy(_timeout(given.get("timeout")), **changes)


def _timeout(told: object) -> Timeout:
    """A number bounds every silence; a Timeout, or a mapping of its fields, says more."""
    usual = Timeout()
    if told is None:
        return usual
    if isinstance(told, Mapping):
        told = read_as("timeout", dict(told), Timeout)
    if isinstance(told, (int, float)) and not isinstance(told, bool):
        told = Timeout(connect=min(told, usual.connect or told), first_byte=told, idle=told)
    if not isinstance(told, Timeout):
        raise ConfigError(f"timeout is a number of seconds or a Timeout, not {type(told).__name__}.")
    if any(seconds is not None and not seconds > 0 for seconds in msgspec.structs.astuple(told)):
        raise ConfigError("a timeout is a number of seconds above zero; None waits for ever.")
    return told
