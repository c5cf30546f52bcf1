"""Turn the arguments of `ask` into a `Call`: merge the options, read the prompt, find target, key and policy.

Prompts, tools and timeouts have many forms, which are read here. Not here: the options (options) and the settings
(settings) themselves.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec

from asides.flows.call import NO_STATE, POLICY_OPTIONS, Call, Policy, fit_compaction, read_policy, report_target
from asides.options import (
    DECODING_OPTIONS,
    LIST_OPTIONS,
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
from asides.providers.find import find_host, find_rule
from asides.providers.known_targets import SHARED_TARGETS, KnownTarget, KnownTargets
from asides.providers.provider import Provider, Target, settle
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError, MissingKey, UnknownModel, UnknownProvider
from asides.values.messages import Message, Prompt, Sampling, read_attribute, user
from asides.values.notices import Notice
from asides.values.thinking import Thinking, read_thinking
from asides.values.tools import Tool, check_tools, read_tool, read_tool_choice, report_fields
from asides.values.visibility import DEFAULT_VISIBILITY, Visibility
from asides.wire.inline_tags import DEFAULT_TAGS

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
        self.reported: set[str] = set()
        """The default models that a notice has reported."""

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
        known = self.find_known(model, given.base_url, given.family)
        read, notices = read_prompt(prompt, given, names, stream)
        choice, target = self._choose_target(known, read, given, names)
        expected = None
        if given.output is not None or read.output is not None:
            from asides.agents.outputs.expected_output import expect_output

            read, expected, more = expect_output(given.output, read, target)
            notices += more
        if read.compaction is not None:
            read, notices = fit_compaction(read, target, given.on_conflict or "raise", notices)
        self._check_tools(read, target, given)
        notices = (*self.settings.notices, *notices, *choice.notices)
        if read.tools:
            notices += report_fields(read.tools, target.dialect)
        if target.foreign or target.launches or read.state != NO_STATE:
            notices += report_target(read, target)
        policy = self._usual_policy if options.keys().isdisjoint(POLICY_OPTIONS) else self._read_policy(given)
        key = _find_key(target, given, needs_key)
        if key is not None and (account := key.account):
            target = known.find_for_account(target, account)
        return Call(read, target, policy, key, notices, choice.why, expected)

    def find_known(self, model: str, base_url: str | None = None, family: str | None = None) -> KnownTarget:
        """Find the target of a model."""
        if self.settings.aliases:
            model = self.settings.resolve_model(model)
        try:
            return self._targets.find(model, base_url, family)
        except (UnknownModel, UnknownProvider) as problem:
            raise self._mention_ignored(problem) from None

    def build_model_list(self, provider: str, options: ListOptions) -> ModelListCall:
        """Build the call that lists the models of a provider. Raises before a byte is sent."""
        from asides.flows.list_models import ModelListCall

        if unknown := sorted(options.keys() - LIST_OPTIONS):
            raise TypeError(f"{unknown[0]} is no option of models; the options are {', '.join(sorted(LIST_OPTIONS))}.")
        given, _ = read_options(self.defaults, Options(**options))  # type: ignore[typeddict-item]
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
    def visibility(self) -> Visibility:
        """What each place may see of thinking. A client may set another than that of the settings."""
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
        """The policy of calls that set nothing of it themselves."""
        return self._read_policy(read_options(self.defaults, Options())[0])

    def _read_policy(self, given: CallOptions) -> Policy:
        policy, own = read_policy(given), self.visibility
        return policy if own == DEFAULT_VISIBILITY else msgspec.structs.replace(policy, visibility=own)

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
        if not DECODING_OPTIONS.isdisjoint(names):
            facts = (*facts, *read_decoding_facts(given))
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
            check_tags(facts.get("tags", tags))
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
    disabled, enabled = is_responses_disabled(), given.openai_responses_enabled
    return prompt.thinking.wanted, stateful, given.endpoint, enabled, disabled, bool(prompt.tools)


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
CACHE_LIFETIMES = ("5m", "1h", "24h")
_SAMPLING_OPTIONS = {name: name for name in Sampling.__struct_fields__}
_PROMPT_FIELDS = ("system", "parallel_tool_calls", "max_tokens", "user", "metadata", "cache", "compaction")
_OTHER_PROMPT_OPTIONS = (*THINKING_OPTIONS, "tools", "tool_choice", "output", "stop", "extra", "files")
PROMPT_OPTIONS = frozenset((*_STATE_OPTIONS.values(), *_SAMPLING_OPTIONS, *_PROMPT_FIELDS, *_OTHER_PROMPT_OPTIONS))


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
            read_messages(fill_prompt(prompt, given.files)),
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
    changes = {name: value for name in _PROMPT_FIELDS if (value := getattr(given, name)) is not None}
    if changes.get("max_tokens", 1) < 1:
        raise ConfigError("max_tokens is below one; an answer needs at least one token.")
    if isinstance(given.cache, str) and given.cache not in CACHE_LIFETIMES:
        raise ConfigError(f"cache is True or False, or how long it lasts: {', '.join(CACHE_LIFETIMES)}.")
    if isinstance(given.system, list):
        blocks = {"role": "system", "content": given.system}
        changes |= {"system": None, "messages": (*read_messages([blocks]), *start.messages)}
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


def fill_prompt(prompt: Any, files: object) -> Any:
    """The prompt; beside files, a text may be empty."""
    return Message("user", ()) if prompt == "" and files else prompt


def attach_files(messages: tuple[Message, ...], files: object) -> tuple[Message, ...]:
    """Put the files of the option `files` into the last user message, before its text. Raises if there is none."""
    from asides.values.attachments import attach, read_attachments

    place = max((place for place, message in enumerate(messages) if message.role == "user"), default=None)
    if place is None:
        raise ConfigError("files= goes with a question, and no message is a user's. To do: add one, user(…).")
    parts = attach(read_attachments(files), messages[place].parts)
    return (*messages[:place], msgspec.structs.replace(messages[place], parts=parts), *messages[place + 1 :])


def read_messages(prompt: PromptLike, *, after: Sequence[Message] = (), each: bool = False) -> tuple[Message, ...]:
    """Read the messages of a prompt in any of its forms. Raises a ConfigError for anything else.

    `after` are the messages of the conversation so far: calls of the old kind have no ids, and are counted. With
    `each`, every text of a list is a message of its own; otherwise texts, pictures and files in a row are one message.
    """
    if isinstance(prompt, str):
        return (user(prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    items = prompt if isinstance(prompt, (list, tuple)) else read_attribute(prompt, "messages")
    if isinstance(items, (list, tuple)) and set(map(type, items)) == _ONLY_MESSAGES:
        # A conversation's, perhaps thousands: nothing to read.
        return cast("tuple[Message, ...]", tuple(items))
    from asides.flows.prompt_messages import read_any_prompt

    return read_any_prompt(prompt, after, each=each)


_ONLY_MESSAGES = {Message}


def _read_tool(tool: ToolLike) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return read_tool(tool)
    # Imported late: most calls need no code that reads function signatures.
    from asides.agents.tools.function_tool import read_offer

    return read_offer(tool).tool
