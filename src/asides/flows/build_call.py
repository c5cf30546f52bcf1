"""Turn the arguments of `ask` into a `Call`: merge the options, read the prompt, find target, key and policy.

Prompts, tools and timeouts have many forms, which are read here.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from asides.flows.call import NO_STATE, POLICY_OPTIONS, Call, Policy, fit_compaction, read_policy, report_target
from asides.intake.files import attach_files, fill_prompt
from asides.intake.read import read
from asides.options import (
    DECODING_OPTIONS,
    LIST_OPTIONS,
    OPTIONS,
    THINKING_OPTIONS,
    CallOptions,
    ListOptions,
    ModelLike,
    Options,
    PromptLike,
    Timeout,
    check_tags,
    merge_options,
    read_decoding_facts,
    read_options,
    reject_unknown,
)
from asides.providers.credentials import Secret, find_key
from asides.providers.endpoint import Choice, EndpointRequest, choose_endpoint, is_responses_disabled
from asides.providers.find import find_host, find_target
from asides.providers.provider import Provider, Target
from asides.providers.settle import settle
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError, MissingKey, UnknownModel, UnknownProvider
from asides.values.messages import Message, Prompt, ProviderState, Sampling, read_attribute
from asides.values.notices import Notice
from asides.values.thinking import Thinking, read_thinking
from asides.values.tools import Tool, check_tools, read_tool, read_tool_choice, report_fields, report_many_tools
from asides.values.visibility import DEFAULT_VISIBILITY, Visibility

if TYPE_CHECKING:
    # A plain call loads none of these.
    from asides.agents.tools.function_tool import ToolLike
    from asides.flows.list_models import ModelListCall
    from asides.flows.pace import Pace


class CallBuilder:
    """Builds calls from the options of a client and, below them, the settings."""

    def __init__(
        self, options: Options | None = None, *, providers: Sequence[Provider] = (), settings: Settings | None = None
    ) -> None:
        self._options = reject_unknown(options or Options(), "the client")
        self._providers = tuple(providers)
        self._given_settings = settings
        self.reported: set[str] = set()
        """The default models that a notice has reported."""
        self._pace: Pace | None = None

    def with_pace(self, pace: Pace) -> CallBuilder:
        """This builder, for the calls of one list."""
        builder = copy(self)
        builder._pace = pace
        vars(builder).pop("_usual_policy", None)
        return builder

    def build(
        self,
        model: ModelLike | None,
        prompt: PromptLike | None,
        options: Options,
        *,
        stream: bool,
        needs_key: bool = True,
    ) -> Call:
        """Build the call. Raises before a byte is sent. `stream` is the default of the option `stream`.

        `model` may be several in order; None is the model of the settings.
        """
        if type(model) is str and prompt is not None and not self.settings.fallbacks:
            return self.build_for(model, prompt, options, stream=stream, needs_key=needs_key)
        from asides.flows.fallback import build_in_order

        return build_in_order(self, model, prompt, options, stream=stream, needs_key=needs_key)

    def build_for(
        self,
        model: str,
        prompt: PromptLike,
        options: Options,
        *,
        stream: bool,
        needs_key: bool = True,
        is_elsewhere: bool = False,
    ) -> Call:
        """Build the call of one model. `is_elsewhere`: the options were given for another provider, so its address and
        key do not count.
        """
        given, names = read_options(self.defaults, options)
        if is_elsewhere:
            given = msgspec.structs.replace(given, api_key=None, base_url=None, family=None)
        found = self.find_target(model, given.base_url, given.family)
        read, notices = read_prompt(prompt, given, names, stream)
        choice = _choose_endpoint(found, read, given)
        key = _find_key(found, given, needs_key)
        facts = self._settings_facts
        if not DECODING_OPTIONS.isdisjoint(names):
            facts = {**facts, **dict(read_decoding_facts(given))}
        target = settle(
            found,
            dialect=choice.dialect,
            shows_raw=read.thinking.show == "raw",
            overrides=facts,
            account="" if key is None else key.account,
        )
        if self.rows:
            # Only a row of the caller can have bad tags.
            check_tags(target.facts.tags)
        expected = None
        if given.output is not None or read.output is not None:
            from asides.agents.outputs.expected_output import expect_output

            read, expected, more = expect_output(given.output, read, target)
            notices += more
        if read.compaction is not None:
            read, notices = fit_compaction(read, target, given.on_conflict or "raise", notices)
        notices = (*self.settings.notices, *notices, *choice.notices, *self._report_prompt(read, target, given))
        policy = self._usual_policy if options.keys().isdisjoint(POLICY_OPTIONS) else self._read_policy(given)
        return Call(read, target, policy, key, notices, choice.why, expected)

    def report_prompt(self, prompt: Prompt, target: Target, options: Options) -> tuple[Notice, ...]:
        """Check the tools of another prompt for the target of a call with these options, and report what concerns the
        prompt alone. Raises TooManyTools.
        """
        is_reported = target.foreign or target.launches or prompt.state != NO_STATE
        if not (prompt.tools or is_reported):
            return ()  # as most
        is_usual = options.keys().isdisjoint(_TOOL_LIMITS)
        given = self._usual_options if is_usual else read_options(self.defaults, options)[0]
        return self._report_prompt(prompt, target, given)

    def _report_prompt(self, prompt: Prompt, target: Target, given: CallOptions) -> tuple[Notice, ...]:
        notices: tuple[Notice, ...] = ()
        if prompt.tools:
            notices = self._check_tools(prompt, target, given)
            if not prompt.is_from(target.dialect):
                notices += report_fields(prompt.tools, target.dialect)
        if target.foreign or target.launches or prompt.state != NO_STATE:
            notices += report_target(prompt, target)
        return notices

    def find_target(self, model: str, base_url: str | None = None, family: str | None = None) -> Target:
        """Find a model: row, rule and address, before a call chooses among them."""
        if self.settings.aliases:
            model = self.settings.resolve_model(model)
        try:
            return find_target(model, base_url=base_url, family=family, rows=self.rows)
        except (UnknownModel, UnknownProvider) as problem:
            raise self._mention_ignored(problem) from None

    def build_model_list(self, provider: str, options: ListOptions) -> ModelListCall:
        """Build the call that lists the models of a provider. Raises before a byte is sent."""
        from asides.flows.list_models import ModelListCall

        if unknown := sorted(options.keys() - LIST_OPTIONS):
            raise TypeError(
                f"models() has no option {unknown[0]!r}; the options are {', '.join(sorted(LIST_OPTIONS))}."
            )
        given, _ = read_options(self.defaults, Options(**options))  # type: ignore[typeddict-item]
        target = find_host(provider, base_url=given.base_url, rows=self.rows)
        return ModelListCall(target, read_policy(given), _find_key(target, given, True))

    def _mention_ignored(self, problem: UnknownProvider | UnknownModel) -> UnknownProvider | UnknownModel:
        """Add the files with ignored settings to the error: one of them may define the provider or the alias."""
        ignored = [notice.detail for notice in self.settings.notices if notice.code == "untrusted_settings"]
        return type(problem)(" ".join([str(problem), *(f"Note: {detail}." for detail in ignored)]))

    @cached_property
    def settings(self) -> Settings:
        """The settings, read with the first call."""
        return load_settings() if self._given_settings is None else self._given_settings

    @cached_property
    def visibility(self) -> Visibility:
        """Which thinking each place may see. A client can override the settings."""
        return self.settings.visibility

    @cached_property
    def rows(self) -> tuple[Provider, ...]:
        """The provider rows of the caller, then those of the settings."""
        return (*self._providers, *self.settings.providers)

    @cached_property
    def defaults(self) -> Options:
        """The options of the client over those of the settings."""
        settings = self.settings
        below = Options(
            thinking=settings.thinking if settings.thinking != Thinking() else None,
            max_tokens=settings.max_tokens,
            timeout=Timeout(**msgspec.structs.asdict(settings.timeouts)),
            retries=settings.retries,
            on_conflict=settings.on_conflict,
            keep_raw=settings.keep_raw,
            openai_responses_enabled=settings.openai_responses_enabled,
        )
        return merge_options(below, self._options)

    @cached_property
    def _usual_policy(self) -> Policy:
        """The policy of calls that do not set their own."""
        return self._read_policy(self._usual_options)

    @cached_property
    def _usual_options(self) -> CallOptions:
        """The default options of calls."""
        return read_options(self.defaults, Options())[0]

    def _read_policy(self, given: CallOptions) -> Policy:
        policy, own = read_policy(given), self.visibility
        if self._pace is not None:
            policy = msgspec.structs.replace(policy, pace=self._pace)
        return policy if own == DEFAULT_VISIBILITY else msgspec.structs.replace(policy, visibility=own)

    @cached_property
    def _settings_facts(self) -> Mapping[str, Any]:
        return self.settings.collect_decoding_facts()

    def _check_tools(self, prompt: Prompt, target: Target, given: CallOptions) -> tuple[Notice, ...]:
        """Enforce the tool limits that were set. Default limits only advise, and the provider's cap applies."""
        settings, most, most_kb = self.settings, given.tools_max_count, given.tools_max_json_kb
        if most is None and "tools_max_count" in settings.origins:
            most = settings.tools_max_count
        if most_kb is None and "tools_max_json_kb" in settings.origins:
            most_kb = settings.tools_max_json_kb
        if most is not None or most_kb is not None:
            check_tools(prompt.tools, most=most, most_kb=most_kb)
        cap = target.provider.max_tools
        if cap is None or (most is not None and most_kb is not None):
            return ()
        return report_many_tools(
            prompt.tools,
            target.provider.title,
            cap if most is None else None,
            advised=settings.tools_max_count if most is None else None,
            advised_kb=settings.tools_max_json_kb if most_kb is None else None,
        )


# --- target, key and policy ---------------------------------------------------------------------------------------


def _choose_endpoint(found: Target, prompt: Prompt, given: CallOptions) -> Choice:
    """Choose the dialect of the call. Most hosts have only one."""
    if not (found.provider.also or given.endpoint or found.rule.endpoint == "responses"):
        return Choice(found.provider.dialect, "")
    state = prompt.state
    request = EndpointRequest(
        prompt.thinking.wanted,
        state.continues or state.resume or state.store is True,
        given.endpoint,
        given.openai_responses_enabled,
        is_responses_disabled(),
        bool(prompt.tools),
    )
    return choose_endpoint(found, request)


def _find_key(target: Target, given: CallOptions, needed: bool) -> Secret | None:
    key: Any = given.api_key
    if not (key is None or isinstance(key, (str, Secret)) or callable(key)):
        raise ConfigError(f"api_key is text, or a function that returns it, not {type(key).__name__}.")
    try:
        return find_key(target.provider, given.api_key, base_url=target.base_url)
    except MissingKey:
        if needed:
            raise
        return None


_TOOL_LIMITS = frozenset({"tools_max_count", "tools_max_json_kb"})


# --- the prompt ---------------------------------------------------------------------------------------------------

CACHE_LIFETIMES = ("5m", "1h", "24h")
# Fields of a ProviderState whose options have other names.
_RENAMED = {
    "resume": "stateful",
    "conversation": "conversation_id",
    "context": "reasoning_context",
    "mode": "reasoning_mode",
}
# Field → option.
_STATE_OPTIONS = {name: _RENAMED.get(name, name) for name in ProviderState.__struct_fields__}
_SAMPLING_OPTIONS = {name: name for name in Sampling.__struct_fields__}
_CONVERTED_OPTIONS = THINKING_OPTIONS | {"tools", "tool_choice", "output", "stop", "extra", "files"}
_PLAIN_OPTIONS = (OPTIONS & frozenset(Prompt.__struct_fields__)) - _CONVERTED_OPTIONS - {"stream"}
"""Options that become fields of a prompt unchanged."""
PROMPT_OPTIONS = _PLAIN_OPTIONS | _CONVERTED_OPTIONS | {*_STATE_OPTIONS.values(), *_SAMPLING_OPTIONS}


def _collect(given: CallOptions, options: Mapping[str, str]) -> dict[str, Any]:
    """The options that were given, by field name. `options` maps fields to option names."""
    return {field: value for field, name in options.items() if (value := getattr(given, name)) is not None}


def read_prompt(
    prompt: PromptLike, given: CallOptions, names: KeysView[str], stream: bool
) -> tuple[Prompt, tuple[Notice, ...]]:
    """Build the prompt of a call; returns it with notices. Options override the fields of a `Prompt`. `names` are the
    options that were given.
    """
    stream = stream if given.stream is None else given.stream
    known: tuple[Notice, ...] = ()
    if isinstance(prompt, Prompt):
        start = prompt if prompt.stream is stream else msgspec.structs.replace(prompt, stream=stream)
    else:
        system = None if isinstance(prompt, (str, Message)) else read_attribute(prompt, "system")  # a conversation's
        start = Prompt(
            read(fill_prompt(prompt, given.files)),
            system=system if isinstance(system, str) else None,
            stream=stream,
        )
        known = found if isinstance(found := read_attribute(prompt, "notices"), tuple) else ()  # a conversation's
    if PROMPT_OPTIONS.isdisjoint(names):
        return start, known
    changes, notices = _read_prompt_options(start, given)
    return msgspec.structs.replace(start, **changes), (*known, *notices)


def _read_prompt_options(start: Prompt, given: CallOptions) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The fields of the prompt that options change."""
    notices: tuple[Notice, ...] = ()
    changes = {name: value for name in _PLAIN_OPTIONS if (value := getattr(given, name)) is not None}
    if changes.get("max_tokens", 1) < 1:
        raise ConfigError("max_tokens is below one; an answer needs at least one token.")
    if isinstance(given.cache, str) and given.cache not in CACHE_LIFETIMES:
        raise ConfigError(f"cache is True or False, or how long it lasts: {', '.join(CACHE_LIFETIMES)}.")
    if isinstance(given.system, list):
        blocks = {"role": "system", "content": given.system}
        changes |= {"system": None, "messages": (*read([blocks]), *start.messages)}
    if given.files is not None:
        changes["messages"] = attach_files(changes.get("messages", start.messages), given.files)
    if (given.thinking, given.reasoning_effort, given.reasoning) != (None, None, None):
        changes["thinking"], notices = read_thinking(
            given.thinking, reasoning_effort=given.reasoning_effort, reasoning=given.reasoning
        )
    if given.tools is not None:
        changes["tools"] = tuple(_read_tool(tool) for tool in given.tools)
    if given.tool_choice is not None:
        changes["tool_choice"] = read_tool_choice(given.tool_choice)
    if given.stop is not None:
        changes["stop"] = (given.stop,) if isinstance(given.stop, str) else given.stop
    if given.extra is not None:
        changes["extra"] = {**start.extra, **given.extra}
    if state := _collect(given, _STATE_OPTIONS):
        changes["state"] = msgspec.structs.replace(start.state, **state)
    if sampling := _collect(given, _SAMPLING_OPTIONS):
        changes["sampling"] = msgspec.structs.replace(start.sampling, **sampling)
    return changes, notices


def _read_tool(tool: ToolLike) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return read_tool(tool)
    # Imported late: most calls need no code that reads function signatures.
    from asides.agents.tools.function_tool import read_offer

    return read_offer(tool).tool
