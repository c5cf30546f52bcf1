"""Turn the arguments of `ask` into a `Call`: merge the options, read the prompt, find target, key and policy.

Prompts, tools and timeouts have many forms, which are read here. Not here: the options (options) and the settings
(settings) themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from asides.dialects import plain_row
from asides.dialects.openai_chat.import_messages import import_message
from asides.flows.call import Call, Policy
from asides.flows.list_models import ModelListCall
from asides.options import (
    LIST_OPTIONS,
    CallOptions,
    ListOptions,
    Options,
    PromptLike,
    ReplyLimits,
    TagsLike,
    Timeout,
    convert_option,
    merge_options,
    read_options,
    reject_unknown,
)
from asides.providers.credentials import Secret, find_key
from asides.providers.endpoint import RESPONSES, Choice, EndpointRequest, choose_endpoint, is_responses_disabled
from asides.providers.find import find_host, find_rule
from asides.providers.known_targets import SHARED_TARGETS, KnownTarget, KnownTargets
from asides.providers.provider import Provider, Target, settle
from asides.providers.quirks import Tags, trim_names
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError, MissingKey, UnknownProvider
from asides.values.messages import Message, Prompt, ProviderState, Sampling, user
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import Thinking, read_thinking
from asides.values.tools import Tool, check_tools, read_tool, read_tool_choice, report_fields
from asides.wire.inline_tags import DEFAULT_TAGS
from asides.wire.inline_tags.grammars import find_rules

if TYPE_CHECKING:
    from asides.agents.tools.function_tool import ToolLike


class CallBuilder:
    """Builds calls from the options of a client and, below them, the settings."""

    def __init__(
        self, options: Options | None = None, *, providers: Sequence[Provider] = (), settings: Settings | None = None
    ) -> None:
        self._options = reject_unknown(options or Options())
        self._providers = tuple(providers)
        self._given_settings = settings

    def build(self, model: str, prompt: PromptLike, options: Options, *, stream: bool, needs_key: bool = True) -> Call:
        """Build the call. Raises before a byte is sent. `stream` is the default of the option `stream`."""
        given = read_options(self._defaults, options)
        try:
            known = self._targets.find(model, given.base_url, given.family)
        except UnknownProvider as problem:
            raise self._mention_ignored(problem) from None
        read, notices = read_prompt(prompt, given, stream)
        choice, target = self._choose_target(known, read, given)
        self._check_tools(read, target, given)
        notices = (*self.settings.notices, *notices, *choice.notices, *_report_target(read, target))
        return Call(read, target, _read_policy(given), _find_key(target, given, needs_key), notices, choice.why)

    def build_model_list(self, provider: str, options: ListOptions) -> ModelListCall:
        """Build the call that lists the models of a provider. Raises before a byte is sent."""
        if unknown := sorted(options.keys() - LIST_OPTIONS):
            raise TypeError(f"{unknown[0]} is no option of models; the options are {', '.join(sorted(LIST_OPTIONS))}.")
        given = read_options(self._defaults, Options(**options))  # type: ignore[typeddict-item]
        target = find_host(provider, base_url=given.base_url, rows=self.rows)
        return ModelListCall(target, _read_policy(given), _find_key(target, given, True))

    def _mention_ignored(self, problem: UnknownProvider) -> UnknownProvider:
        """The error, and the files whose rows were ignored: one of them may define the provider."""
        ignored = [notice.detail for notice in self.settings.notices if notice.code == "untrusted_settings"]
        return UnknownProvider(" ".join([str(problem), *(f"Note: {detail}." for detail in ignored)]))

    @cached_property
    def settings(self) -> Settings:
        """The settings, read with the first call."""
        return load_settings() if self._given_settings is None else self._given_settings

    @cached_property
    def rows(self) -> tuple[Provider, ...]:
        """The provider rows of the caller, then those of the settings."""
        return (*self._providers, *self.settings.providers)

    @cached_property
    def _defaults(self) -> Options:
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
    def _targets(self) -> KnownTargets:
        return KnownTargets(self.rows) if self.rows else SHARED_TARGETS

    @cached_property
    def _settings_facts(self) -> tuple[tuple[str, Any], ...]:
        return tuple(self.settings.collect_decoding_facts().items())

    def _choose_target(self, known: KnownTarget, prompt: Prompt, given: CallOptions) -> tuple[Choice, Target]:
        """The dialect of the call, and its target: the same object for all calls that are equal in what decides it."""
        request = _read_endpoint_request(known.found, prompt, given)
        shows_raw = prompt.thinking.show == "raw"
        facts = (*self._settings_facts, *_read_decoding_facts(given))
        kind = (request, shows_raw, facts)
        chosen = known.choices.get(kind)
        if chosen is None:
            found = known.found
            choice = Choice(found.provider.dialect, "") if request is None else choose_endpoint(found, request)
            chosen = known.keep_choice(kind, choice, self._adjust_target(found, choice, shows_raw, dict(facts)))
        return chosen

    def _adjust_target(self, found: Target, choice: Choice, shows_raw: bool, facts: dict[str, Any]) -> Target:
        """The target in its chosen dialect, with the decoding facts that settings and options override."""
        changes: dict[str, Any] = {}
        tags = found.facts.tags
        if choice.dialect != found.dialect and (row := found.provider.with_dialect(choice.dialect)) is not None:
            rule = find_rule(row, found.family or found.model, foreign=found.foreign)
            tags = settle(rule, row.quirks).tags
            changes = {"provider": row, "rule": rule, "chosen_dialect": choice.dialect}
        if shows_raw:
            changes["shows_raw"] = True
        if "tags" not in facts and not tags and (facts.get("starts_inside") or "tag_position" in facts):
            # The row lists no inline tags for this host, but the caller says that it sends them.
            facts["tags"] = DEFAULT_TAGS
        if facts:
            changes["overrides"] = tuple(facts.items())
        if self.rows:
            # Only a row of the caller can have bad tags.
            _check_tags(facts.get("tags", tags))
        return msgspec.structs.replace(found, **changes) if changes else found

    def _check_tools(self, prompt: Prompt, target: Target, given: CallOptions) -> None:
        if not prompt.tools:
            return
        settings, most, most_kb = self.settings, given.tools_max_count, given.tools_max_json_kb
        is_given = most is not None or most_kb is not None
        is_in_settings = not settings.origins.keys().isdisjoint(("tools_max_count", "tools_max_json_kb"))
        if target.provider.limits_tools or is_given or is_in_settings:
            check_tools(
                prompt.tools,
                most=settings.tools_max_count if most is None else most,
                most_kb=settings.tools_max_json_kb if most_kb is None else most_kb,
            )


# --- target, key and policy ---------------------------------------------------------------------------------------


def _read_endpoint_request(found: Target, prompt: Prompt, given: CallOptions) -> EndpointRequest | None:
    """The facts that choose the dialect of the call; None for most hosts, which speak only one."""
    if not (found.provider.also or given.endpoint or found.rule.endpoint == "responses"):
        return None
    state = prompt.state
    return EndpointRequest(
        thinking=prompt.thinking.wanted,
        stateful=state.continues or state.resume or state.store is True,
        endpoint=given.endpoint,
        enabled=given.openai_responses_enabled,
        disabled=is_responses_disabled(),
    )


def _report_target(prompt: Prompt, target: Target) -> tuple[Notice, ...]:
    """Notices about the target: a foreign address, no stored state though the caller asks, unknown fields of tools."""
    notices = report_fields(prompt.tools, target.dialect) if prompt.tools else ()
    if target.foreign:
        plain = plain_row(target.dialect).name
        detail = f"the address is not {target.provider.name}'s own, so replies are read as those of {plain}"
        notices += (Notice("foreign_address", f"{detail}; a row of your own for it can say more", "base_url"),)
    if prompt.state != ProviderState() and target.dialect != RESPONSES:
        notices += (Notice("state_not_sent", "nothing is stored at this endpoint; all is sent each time", "stateful"),)
    return notices


def _read_decoding_facts(given: CallOptions) -> Iterator[tuple[str, Any]]:
    """The facts about decoding a response that the options override."""
    names = given.thinking_field or ()
    if names and (fields := trim_names((names,) if isinstance(names, str) else names)):
        yield "thinking_in", fields
    if given.heuristics is not None:
        yield "heuristics", given.heuristics
    if given.tags is not None:
        yield "tags", _read_tags(given.tags)
    if given.tag_position is not None:
        yield "tag_position", given.tag_position
    if given.starts_inside is not None:
        yield "starts_inside", given.starts_inside


def _read_tags(tags: TagsLike) -> Tags:
    """Read and check the tags."""
    read = (tags,) if isinstance(tags, str) else convert_option("tags", tags, Tags)
    _check_tags(tags)
    return read


def _check_tags(tags: TagsLike) -> None:
    try:
        find_rules(tags)
    except ValueError as problem:
        raise ConfigError(f"the tags are not valid: {problem}") from None


def _find_key(target: Target, given: CallOptions, needed: bool) -> Secret | None:
    key = given.api_key
    if not (key is None or isinstance(key, (str, Secret))):
        raise ConfigError(f"api_key is text, not {type(key).__name__}.")
    try:
        return find_key(target.provider, key, base_url=target.base_url)
    except MissingKey:
        if needed:
            raise
        return None


def _read_policy(given: CallOptions) -> Policy:
    names = ("retries", "max_wait", "on_conflict", "keep_raw", "thinking_encrypted")
    changes = {name: value for name in names if (value := getattr(given, name)) is not None}
    if changes.get("retries", 0) < 0 or changes.get("max_wait", 0.0) < 0:
        raise ConfigError("retries and max_wait cannot be below zero.")
    if "max_wait" in changes:
        changes["max_wait"] = min(changes["max_wait"], _LONGEST_WAIT)
    if given.reply_limits is not None:
        changes["reply_limits"] = _read_reply_limits(given.reply_limits)
    return Policy(_read_timeout(given.timeout), **changes)


def _read_reply_limits(given: object) -> ReplyLimits:
    """A ReplyLimits, or a mapping of its fields."""
    limits = convert_option("reply_limits", dict(given) if isinstance(given, Mapping) else given, ReplyLimits)
    for name, limit in msgspec.structs.asdict(limits).items():
        if limit is not None and limit < 1:
            raise ConfigError(f"reply_limits: {name} is {limit}; give a number above zero, or None for no limit.")
    return limits


# Some decades. No clock of a system or an event loop takes much more, and infinity is how some write "for ever".
_LONGEST_WAIT = 1e9


def _read_timeout(given: object) -> Timeout:
    """A number limits every wait; a Timeout, or a mapping of its fields, sets each limit."""
    default = Timeout()
    if given is None:
        return default
    if isinstance(given, Mapping):
        given = convert_option("timeout", dict(given), Timeout)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = Timeout(connect=min(given, default.connect or given), first_byte=given, idle=given)
    if not isinstance(given, Timeout):
        raise ConfigError(f"timeout is a number of seconds or a Timeout, not {type(given).__name__}.")
    if any(seconds is not None and not seconds > 0 for seconds in msgspec.structs.astuple(given)):
        raise ConfigError("a timeout is a number of seconds above zero; None waits for ever.")
    endless = [name for name, seconds in msgspec.structs.asdict(given).items() if (seconds or 0) > _LONGEST_WAIT]
    return msgspec.structs.replace(given, **dict.fromkeys(endless)) if endless else given


# --- the prompt ---------------------------------------------------------------------------------------------------

# Fields of a ProviderState → the names of their options.
_STATE_OPTIONS = {
    "store": "store",
    "resume": "stateful",
    "previous_response_id": "previous_response_id",
    "conversation": "conversation_id",
    "truncation": "truncation",
    "include": "include",
    "context": "reasoning_context",
    "mode": "reasoning_mode",
}
_SAMPLING_OPTIONS = {name: name for name in Sampling.__struct_fields__}
_PROMPT_OPTIONS = {name: name for name in ("system", "parallel_tool_calls", "max_tokens", "user", "metadata")}


def _collect(given: CallOptions, options: Mapping[str, str]) -> dict[str, Any]:
    """The options that were given, by field name. `options` maps fields to option names."""
    return {field: value for field, name in options.items() if (value := getattr(given, name)) is not None}


def read_prompt(prompt: PromptLike, given: CallOptions, stream: bool) -> tuple[Prompt, tuple[Notice, ...]]:
    """Build the prompt of a call; returns it with notices. Options override the fields of a `Prompt`."""
    if isinstance(prompt, Prompt):
        start = prompt
    else:
        system = None if isinstance(prompt, (str, Message)) else getattr(prompt, "system", None)  # a conversation's
        start = Prompt(read_messages(prompt), system=system if isinstance(system, str) else None)
    notices: tuple[Notice, ...] = ()
    changes = _collect(given, _PROMPT_OPTIONS)
    if changes.get("max_tokens", 1) < 1:
        raise ConfigError("max_tokens is below one; an answer needs at least one token.")
    if isinstance(given.system, list):
        blocks = {"role": "system", "content": given.system}
        changes |= {"system": None, "messages": (*read_messages([blocks]), *start.messages)}
    changes["stream"] = stream if given.stream is None else given.stream
    if (given.thinking, given.reasoning_effort, given.reasoning) != (None, None, None):
        changes["thinking"], notices = read_thinking(
            given.thinking, reasoning_effort=given.reasoning_effort, reasoning=given.reasoning
        )
    if given.tools is not None:
        changes["tools"] = tuple(_read_tool(tool) for tool in given.tools)
    if given.tool_choice is not None:
        changes["tool_choice"] = read_tool_choice(given.tool_choice)
    if given.output is not None:
        from asides.agents.outputs.schemas import build_schema

        changes["output"] = build_schema(given.output).schema
    if given.stop is not None:
        changes["stop"] = (given.stop,) if isinstance(given.stop, str) else given.stop
    if given.extra is not None:
        changes["extra"] = {**start.extra, **given.extra}
    if state := _collect(given, _STATE_OPTIONS):
        changes["state"] = msgspec.structs.replace(start.state, **state)
    if sampling := _collect(given, _SAMPLING_OPTIONS):
        changes["sampling"] = msgspec.structs.replace(start.sampling, **sampling)
    return msgspec.structs.replace(start, **changes), notices


def read_messages(prompt: PromptLike, *, after: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Read the messages of a prompt in any of its forms. Raises a ConfigError for anything else.

    `after` are the messages of the conversation so far: calls of the old kind have no ids, and are counted.
    """
    if isinstance(prompt, str):
        return (user(prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    items = getattr(prompt, "messages", prompt)
    if isinstance(items, (Mapping, bytes, str)) or not isinstance(items, Iterable):
        raise ConfigError(
            f"a prompt is text, a message or a list of messages, not {type(prompt).__name__}. To do: pass one of these."
        )
    messages: list[Message] = []
    items = list(items)
    legacy_calls = _count_legacy_calls(after) if any(map(_is_legacy, items)) else 0
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("function_call"):
            legacy_calls += 1
        message = _read_message(item, index, legacy_calls)
        if message is not None:
            messages.append(message)
    if not messages:
        raise ConfigError("the prompt has no message. To do: pass at least one.")
    return tuple(messages)


def _is_legacy(item: object) -> bool:
    return isinstance(item, Mapping) and bool(item.get("function_call") or item.get("role") == "function")


def _count_legacy_calls(messages: Sequence[Message]) -> int:
    """The highest number in an id that was made for a call without one: 2 for "call_NAME_2"."""
    ids = [call.id.rpartition("_") for message in messages for call in message.tool_calls]
    return max((int(number) for _, _, number in ids if number.isdecimal() and len(number) < 10), default=0)


def _read_message(item: object, index: int, legacy_calls: int) -> Message | None:
    if isinstance(item, Message):
        return item
    if isinstance(item, Reply):
        return item.to_message()
    if not isinstance(item, Mapping):
        raise ConfigError(f"messages[{index}] is {type(item).__name__}, not a message. To do: use user(…) or a dict.")
    try:
        return import_message(item, legacy_calls)
    except ConfigError as problem:
        raise ConfigError(f"messages[{index}]: {problem}") from None


def _read_tool(tool: ToolLike) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return read_tool(tool)
    # Imported late: most calls need no code that reads function signatures.
    from asides.agents.tools.function_tool import read_offer

    return read_offer(tool).tool
