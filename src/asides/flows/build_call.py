"""Turn the arguments of `ask` into a `Call`: merge the options, read the prompt, find target, key and policy.

Prompts, tools and timeouts have many forms, which are read here. Not here: the options (options) and the settings
(settings) themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec

from asides.dialects import plain_row
from asides.flows.call import POLICY_OPTIONS, Call, Policy, read_policy
from asides.options import (
    LIST_OPTIONS,
    THINKING_OPTIONS,
    CallOptions,
    ListOptions,
    Options,
    PromptLike,
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
from asides.values.errors import ConfigError, MissingKey, UnknownModel, UnknownProvider
from asides.values.messages import Message, Prompt, ProviderState, Sampling, user
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import Thinking, read_thinking
from asides.values.tools import Tool, check_tools, read_tool, read_tool_choice, report_fields
from asides.wire.inline_tags import DEFAULT_TAGS
from asides.wire.inline_tags.grammars import find_rules

if TYPE_CHECKING:
    # A plain call loads none of these.
    from asides.agents.tools.function_tool import ToolLike
    from asides.flows.list_models import ModelListCall


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
        given, names = read_options(self._defaults, options)
        try:
            name = self.settings.resolve_model(model) if self.settings.aliases else model
            known = self._targets.find(name, given.base_url, given.family)
        except (UnknownProvider, UnknownModel) as problem:
            raise self._mention_ignored(problem) from None
        read, notices = read_prompt(prompt, given, names, stream)
        choice, target = self._choose_target(known, read, given, names)
        self._check_tools(read, target, given)
        notices = (*self.settings.notices, *notices, *choice.notices, *_report_target(read, target))
        policy = self._usual_policy if options.keys().isdisjoint(POLICY_OPTIONS) else read_policy(given)
        return Call(read, target, policy, _find_key(target, given, needs_key), notices, choice.why)

    def build_model_list(self, provider: str, options: ListOptions) -> ModelListCall:
        """Build the call that lists the models of a provider. Raises before a byte is sent."""
        from asides.flows.list_models import ModelListCall

        if unknown := sorted(options.keys() - LIST_OPTIONS):
            raise TypeError(f"{unknown[0]} is no option of models; the options are {', '.join(sorted(LIST_OPTIONS))}.")
        given, _ = read_options(self._defaults, Options(**options))  # type: ignore[typeddict-item]
        target = find_host(provider, base_url=given.base_url, rows=self.rows)
        return ModelListCall(target, read_policy(given), _find_key(target, given, True))

    def _mention_ignored(self, problem: UnknownProvider | UnknownModel) -> UnknownProvider | UnknownModel:
        """The error, and the files of which something was ignored: one may define the provider, or the alias."""
        ignored = [notice.detail for notice in self.settings.notices if notice.code == "untrusted_settings"]
        return type(problem)(" ".join([str(problem), *(f"Note: {detail}." for detail in ignored)]))

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
    def _usual_policy(self) -> Policy:
        """The policy of calls that set nothing of it themselves."""
        return read_policy(read_options(self._defaults, Options())[0])

    @cached_property
    def _targets(self) -> KnownTargets:
        return KnownTargets(self.rows) if self.rows else SHARED_TARGETS

    @cached_property
    def _settings_facts(self) -> tuple[tuple[str, Any], ...]:
        return tuple(self.settings.collect_decoding_facts().items())

    def _choose_target(
        self, known: KnownTarget, prompt: Prompt, given: CallOptions, names: KeysView[str]
    ) -> tuple[Choice, Target]:
        """The dialect of the call, and its target: the same object for all calls that are equal in what decides it."""
        request = _read_endpoint_request(known.found, prompt, given)
        shows_raw = prompt.thinking.show == "raw"
        facts = self._settings_facts
        if not _DECODING_OPTIONS.isdisjoint(names):
            facts = (*facts, *_read_decoding_facts(given))
        kind = (request, shows_raw, facts)
        chosen = known.choices.get(kind)
        if chosen is None:
            found = known.found
            choice = Choice(found.provider.dialect, "")
            if request is not None:
                choice = choose_endpoint(found, EndpointRequest(*request))
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


def _read_endpoint_request(found: Target, prompt: Prompt, given: CallOptions) -> tuple[Any, ...] | None:
    """The facts that choose the dialect of the call, as `EndpointRequest` has them. None for most hosts: they speak
    only one.
    """
    if not (found.provider.also or given.endpoint or found.rule.endpoint == "responses"):
        return None
    state = prompt.state
    stateful = state.continues or state.resume or state.store is True
    return prompt.thinking.wanted, stateful, given.endpoint, given.openai_responses_enabled, is_responses_disabled()


def _report_target(prompt: Prompt, target: Target) -> tuple[Notice, ...]:
    """Notices about the target: a foreign address, no stored state though the caller asks, unknown fields of tools."""
    notices = report_fields(prompt.tools, target.dialect) if prompt.tools else ()
    if target.foreign:
        plain = plain_row(target.dialect).name
        detail = f"the address is not {target.provider.name}'s own, so replies are read as those of {plain}"
        notices += (Notice("foreign_address", f"{detail}; a row of your own for it can say more", "base_url"),)
    if prompt.state != _NO_STATE and target.dialect != RESPONSES:
        notices += (Notice("state_not_sent", "nothing is stored at this endpoint; all is sent each time", "stateful"),)
    return notices


_DECODING_OPTIONS = frozenset({"thinking_field", "heuristics", "tags", "tag_position", "starts_inside"})


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
_OTHER_PROMPT_OPTIONS = (*THINKING_OPTIONS, "tools", "tool_choice", "output", "stop", "extra")
_ALL_PROMPT_OPTIONS = frozenset(
    (*_STATE_OPTIONS.values(), *_SAMPLING_OPTIONS, *_PROMPT_OPTIONS, *_OTHER_PROMPT_OPTIONS)
)
_NO_STATE = ProviderState()


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
    if isinstance(prompt, Prompt):
        start = prompt if prompt.stream is stream else msgspec.structs.replace(prompt, stream=stream)
    else:
        system = None if isinstance(prompt, (str, Message)) else getattr(prompt, "system", None)  # a conversation's
        start = Prompt(read_messages(prompt), system=system if isinstance(system, str) else None, stream=stream)
    if _ALL_PROMPT_OPTIONS.isdisjoint(names):
        return start, ()
    changes, notices = _read_prompt_options(start, given)
    return msgspec.structs.replace(start, **changes), notices


def _read_prompt_options(start: Prompt, given: CallOptions) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The fields of the prompt that options change."""
    notices: tuple[Notice, ...] = ()
    changes = _collect(given, _PROMPT_OPTIONS)
    if changes.get("max_tokens", 1) < 1:
        raise ConfigError("max_tokens is below one; an answer needs at least one token.")
    if isinstance(given.system, list):
        blocks = {"role": "system", "content": given.system}
        changes |= {"system": None, "messages": (*read_messages([blocks]), *start.messages)}
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
    return changes, notices


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
    items = tuple(items)
    if set(map(type, items)) == _ONLY_MESSAGES:
        # A conversation's, perhaps thousands: nothing to read.
        return cast("tuple[Message, ...]", items)
    messages: list[Message] = []
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


_ONLY_MESSAGES = {Message}


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
    from asides.dialects.openai_chat.import_messages import import_message

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
