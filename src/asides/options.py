"""The options of a call: their names and types, how layers merge, and how values are checked.

A new option is declared in `SharedOptions` (the type for callers) and in `CallOptions` (the type after reading, which
inherits the fields of `Sampling`), and explained in docs/options.md and option_help. If `Prompt`, `Sampling`,
`ProviderState` or `Policy` has a field of its name, its value is put there; otherwise flows/build_call or flows/call
reads it. Tests fail until all of this exists. There are two declarations because type checkers read keyword arguments
from a TypedDict only, and callers may write more forms than the code reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, KeysView, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec

from asides.history.check import OnConflict
from asides.providers.credentials import KeyLike
from asides.providers.quirks import TagPosition, Tags, trim_names
from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling
from asides.values.parts import ContentItem, File, Image, MediaSource, Text
from asides.values.reply import Reply
from asides.values.thinking import ThinkingSetting
from asides.wire.inline_tags.grammars import find_rules

if TYPE_CHECKING:
    from asides.agents.tools.function_tool import ToolLike
    from asides.values.recover_policy import RecoverPolicy

Value = TypeVar("Value")


class Timeout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Timeouts in seconds; None: no limit. Only content ends a wait; a keep-alive counts as content."""

    connect: float | None = 10.0
    """Until the connection is open, name lookup, proxy and TLS included."""
    first_byte: float | None = 600.0
    """Until the head of the response, and until its first content. A model that thinks sends nothing before."""
    idle: float | None = 300.0
    """Until the next content, once the response has begun."""
    total: float | None = None
    """For the whole call, with all attempts and the waits between them."""


class ReplyLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maximum size of a reply; None: no limit. A larger reply raises ProtocolError; `.partial` has its start."""

    reply_bytes: int | None = 256 * 1024 * 1024
    """The bytes of the response."""
    events: int | None = 1_000_000
    """The documents of a stream, also those without content."""
    tool_calls: int | None = 1_000
    argument_bytes: int | None = 16 * 1024 * 1024
    """The arguments of one tool call, as JSON text."""


class HasMessages(Protocol):
    """A conversation, or anything else with a history."""

    @property
    def messages(self) -> Sequence[Message]:
        """The history, in order."""
        ...


class DumpsFields(Protocol):
    """A message or a response of another library: an object that can dump its own fields."""

    def model_dump(self, *args: Any, **kwargs: Any) -> Any:
        """The fields, as a dict."""
        ...


class HasFields(Protocol):
    """A message or a response of another library: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


# Only one kind of list: type checkers guess the type of a literal from it.
PromptItem: TypeAlias = Message | Reply | Mapping[str, Any] | ContentItem | DumpsFields | HasFields
PromptLike: TypeAlias = PromptItem | Prompt | HasMessages | Sequence[PromptItem | Sequence[ContentItem]]
"""Text; a message; a dict; a picture or a path; a list of texts, pictures and files, which is one message; a history of
messages, replies, dicts and objects of other libraries; or an object with `messages`."""

ModelLike: TypeAlias = str | Sequence[str]
"""A model as provider:model; or several in order: each is asked if those before it fail."""

TagsLike: TypeAlias = str | Sequence[str | tuple[str, str]]


class ListOptions(TypedDict, total=False):
    """Every option of `models`. `ask` and `stream` have them too."""

    base_url: str | None
    api_key: KeyLike | None
    timeout: float | Timeout | None
    retries: int | None
    max_wait: float | None


class SharedOptions(ListOptions, total=False):
    """The options that `ask`, `stream` and agents share. `output` is separate, since an agent types it differently."""

    # the request
    system: str | Sequence[Mapping[str, Any]] | None
    thinking: ThinkingSetting
    reasoning_effort: str | None
    reasoning: Mapping[str, Any] | None
    files: Sequence[MediaSource | Image | File | Text] | MediaSource | Image | File | None
    tools: Sequence[ToolLike] | None
    tool_choice: str | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    max_tokens: int | None
    stop: str | Sequence[str] | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    repetition_penalty: float | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | None
    top_logprobs: int | None
    seed: int | None
    user: str | None
    metadata: Mapping[str, str] | None
    extra: Mapping[str, Any] | None
    cache: bool | str | None
    stream: bool | None
    # what the provider stores
    store: bool | None
    stateful: bool | None
    previous_response_id: str | None
    conversation_id: str | None
    truncation: Literal["auto", "disabled"] | None
    include: Sequence[str] | None
    reasoning_context: Literal["auto", "current_turn", "all_turns"] | None
    reasoning_mode: Literal["standard", "pro"] | None
    compaction: Literal["provider"] | int | None
    # provider and endpoint
    family: str | None
    endpoint: str | None
    openai_responses_enabled: bool | None
    tools_max_count: int | None
    tools_max_json_kb: int | None
    # how to read the response
    thinking_field: str | Sequence[str] | None
    tags: TagsLike | None
    tag_position: TagPosition | None
    starts_inside: bool | None
    heuristics: bool | None
    keep_raw: bool | None
    thinking_encrypted: bool | None
    reply_limits: ReplyLimits | Mapping[str, int | None] | None
    # conflicts and failures
    on_conflict: OnConflict | None
    continuations: int | None
    recover: bool | RecoverPolicy | Mapping[str, Any] | None
    attempts: int | None


class Options(SharedOptions, total=False):
    """Every option of `ask` and `stream`, and every default of a client.

    None counts as not given. Then the next layer decides: call, client, settings, the model's rule, the default.
    """

    output: type[Any] | Mapping[str, Any] | OutputSchema | Literal["json"] | None


OPTIONS = frozenset(Options.__annotations__)
LIST_OPTIONS = frozenset(ListOptions.__annotations__)

THINKING_OPTIONS = frozenset({"thinking", "reasoning_effort", "reasoning"})
"""Three names of the same option."""


class CallOptions(Sampling, frozen=True, kw_only=True):
    """The options of one call: merged from all layers, and converted to their types. None: not given.

    `Any` marks options that have several forms; flows/build_call reads them.
    """

    # the request
    system: str | list[dict[str, Any]] | None = None
    thinking: Any = None
    reasoning_effort: Any = None
    reasoning: Any = None
    files: Any = None
    tools: Any = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    stop: str | tuple[str, ...] | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    extra: dict[str, Any] | None = None
    cache: bool | str | None = None
    stream: bool | None = None
    output: Any = None
    # what the provider stores
    store: bool | None = None
    stateful: bool | None = None
    previous_response_id: str | None = None
    conversation_id: str | None = None
    truncation: Literal["auto", "disabled"] | None = None
    include: tuple[str, ...] | None = None
    reasoning_context: Literal["auto", "current_turn", "all_turns"] | None = None
    reasoning_mode: Literal["standard", "pro"] | None = None
    compaction: Literal["provider"] | int | None = None
    # provider and endpoint
    base_url: str | None = None
    api_key: Any = None
    family: str | None = None
    endpoint: str | None = None
    openai_responses_enabled: bool | None = None
    tools_max_count: int | None = None
    tools_max_json_kb: int | None = None
    # how to read the response
    thinking_field: str | tuple[str, ...] | None = None
    tags: Any = None
    tag_position: TagPosition | None = None
    starts_inside: bool | None = None
    heuristics: bool | None = None
    keep_raw: bool | None = None
    thinking_encrypted: bool | None = None
    reply_limits: Any = None
    # how long to wait
    timeout: Any = None
    retries: int | None = None
    max_wait: float | None = None
    on_conflict: OnConflict | None = None
    continuations: int | None = None
    recover: Any = None
    attempts: int | None = None


def read_options(below: Options, above: Options) -> tuple[CallOptions, KeysView[str]]:
    """Merge two layers and convert every option to its type. Returns also the names of the options that are given.

    Raises a TypeError for an unknown option, and a ConfigError that names an option with an invalid value.
    """
    merged: dict[str, Any] = cast(dict[str, Any], merge_options(below, reject_unknown(above)))
    if (bias := merged.get("logit_bias")) is not None and isinstance(bias, Mapping):
        merged["logit_bias"] = {str(token): value for token, value in bias.items()}
    try:
        return msgspec.convert(merged, CallOptions), merged.keys()
    except msgspec.ValidationError:
        types = {field.name: field.type for field in msgspec.structs.fields(CallOptions)}
        for name, value in merged.items():
            convert_option(name, value, types[name])
        raise


def merge_options(below: Options, above: Options) -> Options:
    """Merge two layers. The upper one wins; of `extra` it wins field by field. None counts as not given."""
    upper: dict[str, Any] = {name: value for name, value in above.items() if value is not None}
    lower: dict[str, Any] = {name: value for name, value in below.items() if value is not None}
    if not THINKING_OPTIONS.isdisjoint(upper):
        # One option under three names: the upper layer replaces it under every name.
        lower = {name: value for name, value in lower.items() if name not in THINKING_OPTIONS}
    if lower.get("extra") and upper.get("extra"):
        upper["extra"] = {**lower["extra"], **upper["extra"]}
    return cast(Options, {**lower, **upper})


_SEVERAL_MODELS = 'a list of models, as in ask(["a:…", "b:…"], …)'
_ELSEWHERE = {
    **dict.fromkeys(("api_base", "endpoint_url", "url"), "base_url"),
    **dict.fromkeys(("attachments", "documents", "file", "image", "images"), "files"),
    **dict.fromkeys(("budget_tokens", "effort", "reasoning_budget", "thinking_budget"), "thinking"),
    **dict.fromkeys(("drop_params", "additional_drop_params"), "on_conflict"),
    "extra_body": "extra",
    **dict.fromkeys(("fallback", "fallbacks", "models"), _SEVERAL_MODELS),
    **dict.fromkeys(("conversation", "history", "input", "message", "messages", "prompts", "question"), "prompt"),
    **dict.fromkeys(("batch_size", "max_concurrency", "max_workers", "n_jobs", "workers"), "concurrency of ask_many"),
    **dict.fromkeys(
        ("max_iterations", "max_steps", "max_turns", "usage_limits"),
        'limits of an agent, as in Agent(…, limits={"turns": 8})',
    ),
    **dict.fromkeys(("instructions", "system_instruction", "system_prompt"), "system"),
    **dict.fromkeys(("max_completion_tokens", "max_new_tokens", "max_output_tokens"), "max_tokens"),
    **dict.fromkeys(("max_retries", "num_retries"), "retries"),
    **dict.fromkeys(
        ("json_schema", "output_type", "response_format", "response_model", "response_schema", "schema"), "output"
    ),
    "stop_sequences": "stop",
    **dict.fromkeys(("function_declarations", "functions", "toolset", "toolsets"), "tools"),
    "function_call": "tool_choice",
}
"""What other libraries call our options, for errors."""


def reject_unknown(options: Options, caller: str = "ask() and stream()", more: Collection[str] = ()) -> Options:
    """Return the options unchanged. Raises a TypeError for an unknown name; the error suggests the nearest option.

    `caller`: what was called, for the error. `more`: its other arguments.
    """
    if not OPTIONS.issuperset(options):
        name = next(name for name in options if name not in OPTIONS)
        hint = suggest_option(name, OPTIONS.union(more))
        raise TypeError(f"{caller} {'have' if ' and ' in caller else 'has'} no option {name!r}; {hint}")
    return options


def suggest_option(name: str, known: Collection[str]) -> str:
    """The option that an unknown name probably means; the list of all options if none is similar."""
    meant = _ELSEWHERE.get(name, name)
    if meant == "prompt":
        return "the messages are the second argument, as in ask(model, messages)."
    if meant == "model":
        return "the model is the first argument of each call, as in ask(model, prompt)."
    if meant != name:
        return f"did you mean {meant}?"
    listed = f"the options are {', '.join(sorted(known))}. Pass a field that only this provider has in extra=."
    return suggest_name(name, {*known, "model", "prompt"}, listed)


def convert_option(name: str, value: object, kind: type[Value]) -> Value:
    """Convert a value to the type of its option. Raises a ConfigError that names the option."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        words = [word for part in (kind, *get_args(kind)) if get_origin(part) is Literal for word in get_args(part)]
        choices = [*map(repr, words), *(["a number"] if int in get_args(kind) else [])]
        which = "one of " if len(choices) > 1 else ""
        hint = f" Use {which}{', '.join(choices)}." if words else ""
        raise ConfigError(f"{name} is not valid: {problem}.{hint}") from None


# --- how to read the response -----------------------------------------------------------------------------------------

DECODING_OPTIONS = frozenset({"thinking_field", "heuristics", "tags", "tag_position", "starts_inside"})
"""The options that say how a response is read."""


def read_decoding_facts(given: CallOptions) -> Iterator[tuple[str, Any]]:
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
    check_tags(tags)
    return read


def check_tags(tags: TagsLike) -> None:
    """Raise a ConfigError for tags that cannot be read."""
    try:
        find_rules(tags)
    except ValueError as problem:
        raise ConfigError(f"the tags are not valid: {problem}") from None
