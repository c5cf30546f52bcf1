"""The layers of a call laid over one another, and the call that comes of it: prompt, target, key and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from asides.flows.call import Call, Policy
from asides.flows.list_models import ModelListCall
from asides.options import (
    LIST_OPTIONS,
    ListOptions,
    Options,
    PromptLike,
    TagsLike,
    Timeout,
    checked,
    convert_option,
    merge_options,
    reject_unknown,
)
from asides.providers.credentials import Secret, find_key
from asides.providers.endpoint import RESPONSES, EndpointRequest, apply_choice, choose_endpoint, is_responses_disabled
from asides.providers.find import find_host, find_target
from asides.providers.provider import Provider, Target
from asides.providers.quirks import trim_names
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError, MissingKey
from asides.values.messages import Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.thinking import Thinking
from asides.values.tools import check_tools
from asides.wire.inline_tags import DEFAULT_TAGS
from asides.wire.inline_tags.grammars import rules_for


class CallBuilder:
    """What a client was given once, and below it the settings. Makes the calls."""

    def __init__(
        self, options: Options | None = None, *, providers: Sequence[Provider] = (), settings: Settings | None = None
    ) -> None:
        self._options = reject_unknown(options or Options())
        self._providers = tuple(providers)
        self._given_settings = settings

    @cached_property
    def settings(self) -> Settings:
        """What the environment and `asides.toml` say; read with the first call, not before."""
        return load_settings() if self._given_settings is None else self._given_settings

    def call(self, model: str, prompt: PromptLike, options: Options, *, stream: bool, needs_key: bool = True) -> Call:
        """Everything settled. Raises before a byte is sent; `stream` is what the caller's verb means by itself."""
        given = merge_options(self._below, reject_unknown(options))
        base_url, family = checked("base_url", given), checked("family", given)
        found = find_target(model, base_url=base_url, family=family, rows=self.rows)
        read, notices = read_prompt(prompt, given, stream)
        choice = choose_endpoint(found, self._wish(read, given))
        target = _tuned(apply_choice(found, choice), given, self.settings)
        if read.thinking.show == "raw":
            target = msgspec.structs.replace(target, shows_raw=True)
        self._check_tools(read, target, given)
        told = (*self.settings.notices, *notices, *choice.notices, *_unkept(read, target))
        return Call(read, target, _policy(given), _key(target, given, needs_key), told, choice.why)

    def listing(self, provider: str, options: ListOptions) -> ModelListCall:
        """Whose models are asked for, settled. Raises before a byte is sent."""
        if strange := sorted(options.keys() - LIST_OPTIONS):
            raise TypeError(f"{strange[0]} is no option of models; there are {', '.join(sorted(LIST_OPTIONS))}.")
        given = merge_options(self._below, Options(**options))  # type: ignore[typeddict-item]
        target = find_host(provider, base_url=checked("base_url", given), rows=self.rows)
        return ModelListCall(target, _policy(given), _key(target, given, True))

    def _wish(self, prompt: Prompt, given: Options) -> EndpointRequest:
        state = prompt.state
        return EndpointRequest(
            thinking=prompt.thinking.wanted,
            stateful=state.continues or state.resume or state.store is True,
            endpoint=checked("endpoint", given),
            enabled=checked("openai_responses_enabled", given),
            disabled=is_responses_disabled(),
        )

    def _check_tools(self, prompt: Prompt, target: Target, given: Options) -> None:
        settings = self.settings
        chosen = any(name in given or name in settings.origins for name in ("tools_max_count", "tools_max_json_kb"))
        if prompt.tools and (target.provider.limits_tools or chosen):
            most, most_kb = checked("tools_max_count", given), checked("tools_max_json_kb", given)
            check_tools(
                prompt.tools,
                most=settings.tools_max_count if most is None else most,
                most_kb=settings.tools_max_json_kb if most_kb is None else most_kb,
            )

    @cached_property
    def _below(self) -> Options:
        return merge_options(_of_settings(self.settings), self._options)

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
        openai_responses_enabled=settings.openai_responses_enabled,
    )


def _unkept(prompt: Prompt, target: Target) -> tuple[Notice, ...]:
    """What is said about state where no provider keeps any."""
    if prompt.state == ProviderState() or target.dialect == RESPONSES:
        return ()
    return (Notice("state_not_sent", "this endpoint keeps no conversations; everything is sent each time", "stateful"),)


def _tuned(target: Target, given: Options, settings: Settings) -> Target:
    """The target with what the settings and the caller say about reading laid over what its row says."""
    target = settings.tuned(target)
    facts: dict[str, Any] = {}
    field = given.get("thinking_field") or ()
    named = convert_option("thinking_field", (field,) if isinstance(field, str) else field, tuple[str, ...])
    if fields := trim_names(named):
        facts["thinking_in"] = fields
    if (heuristics := checked("heuristics", given)) is not None:
        facts["heuristics"] = heuristics
    if (tags := given.get("tags")) is not None:
        facts["tags"] = _tags(tags)
    if (starts_inside := checked("starts_inside", given)) is not None:
        facts["starts_inside"] = starts_inside
        if starts_inside and "tags" not in facts and not target.facts.tags:
            # A host that is not known to inline; who says that it begins inside a tag says that it does.
            facts["tags"] = DEFAULT_TAGS
    # A row of the caller's may err too.
    _check_tags(target.facts.tags)
    return target.override(**facts)


def _tags(tags: TagsLike) -> tuple[str | tuple[str, str], ...]:
    """The tags, if they are some; found out here and not when the first bytes of the answer are there."""
    told = (tags,) if isinstance(tags, str) else convert_option("tags", tags, tuple[str | tuple[str, str], ...])
    _check_tags(tags)
    return told


def _check_tags(tags: TagsLike) -> None:
    try:
        rules_for(tags)
    except ValueError as problem:
        raise ConfigError(f"the tags do not read: {problem}") from None


def _given_key(key: object) -> str | Secret | None:
    if key is None or isinstance(key, (str, Secret)):
        return key
    raise ConfigError(f"api_key is text, not {type(key).__name__}.")


def _key(target: Target, given: Options, needed: bool) -> Secret | None:
    try:
        return find_key(target.provider, _given_key(given.get("api_key")), base_url=target.base_url)
    except MissingKey:
        if needed:
            raise
        return None


def _policy(given: Options) -> Policy:
    names = ("retries", "max_wait", "on_conflict", "keep_raw", "thinking_encrypted")
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
        told = convert_option("timeout", dict(told), Timeout)
    if isinstance(told, (int, float)) and not isinstance(told, bool):
        told = Timeout(connect=min(told, usual.connect or told), first_byte=told, idle=told)
    if not isinstance(told, Timeout):
        raise ConfigError(f"timeout is a number of seconds or a Timeout, not {type(told).__name__}.")
    if any(seconds is not None and not seconds > 0 for seconds in msgspec.structs.astuple(told)):
        raise ConfigError("a timeout is a number of seconds above zero; None waits for ever.")
    return told
