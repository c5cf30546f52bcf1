"""Every option by name and type, one layer over another, and the check that a value is what its option takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

import msgspec

from asides.history.check import OnConflict
from asides.providers.credentials import Secret
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.reply import Reply
from asides.values.thinking import ThinkingSetting

if TYPE_CHECKING:
    from asides.agents.tools.toolset import ToolLike

Value = TypeVar("Value")


class Timeout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to wait, in seconds; None waits for ever. A keep-alive of the server counts as a sign of life."""

    connect: float | None = 10.0
    """For a connection, name lookup and TLS included."""
    first_byte: float | None = 600.0
    """For the first bytes of the answer. A model that thinks without streaming it is silent for all that time."""
    idle: float | None = 300.0
    """Between two reads, once the answer has begun."""
    total: float | None = None
    """For the whole call, repeated attempts and the waits between them included."""


class HasMessages(Protocol):
    """A conversation, or anything else that keeps a history."""

    @property
    def messages(self) -> Sequence[Message]:
        """What was said, in order."""
        ...


PromptLike: TypeAlias = str | Message | Prompt | HasMessages | Sequence[Message | Reply | Mapping[str, Any]]
"""A question; a message; a history, in our messages, in replies and in OpenAI-shaped dicts; or what holds one."""

TagsLike: TypeAlias = str | Sequence[str | tuple[str, str]]


class SharedOptions(TypedDict, total=False):
    """Every option that `ask`, `stream` and agents have alike; an agent's `output` is typed, and so is its own."""

    # what is asked
    system: str | None
    thinking: ThinkingSetting
    reasoning_effort: str | None
    reasoning: Mapping[str, Any] | None
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
    stream: bool | None
    # what the provider keeps
    store: bool | None
    stateful: bool | None
    previous_response_id: str | None
    conversation_id: str | None
    truncation: Literal["auto", "disabled"] | None
    include: Sequence[str] | None
    reasoning_context: Literal["auto", "current_turn", "all_turns"] | None
    reasoning_mode: Literal["standard", "pro"] | None
    # of whom
    base_url: str | None
    api_key: str | Secret | None
    family: str | None
    endpoint: str | None
    openai_responses_enabled: bool | None
    tools_max_count: int | None
    tools_max_json_kb: int | None
    # how it is read
    thinking_field: str | Sequence[str] | None
    tags: TagsLike | None
    starts_inside: bool | None
    heuristics: bool | None
    keep_raw: bool | None
    thinking_encrypted: bool | None
    # how patiently
    timeout: float | Timeout | None
    retries: int | None
    max_wait: float | None
    on_conflict: OnConflict | None


class Options(SharedOptions, total=False):
    """Every option of `ask` and `stream`, and every default of a client.

    None, like nothing, leaves a choice to the next in line: call, client, settings, the model's rule, the default.
    """

    output: type[Any] | Mapping[str, Any] | OutputSchema | Literal["json"] | None


class ListOptions(TypedDict, total=False):
    """Every option of `models`."""

    base_url: str | None
    api_key: str | Secret | None
    timeout: float | Timeout | None
    retries: int | None
    max_wait: float | None


OPTIONS = frozenset(Options.__annotations__)
LIST_OPTIONS = frozenset(ListOptions.__annotations__)

SPELLINGS_OF_THINKING = frozenset({"thinking", "reasoning_effort", "reasoning"})

_CHECKED: dict[str, Any] = {
    "system": str,
    "parallel_tool_calls": bool,
    "max_tokens": int,
    "user": str,
    "base_url": str,
    "family": str,
    "starts_inside": bool,
    "heuristics": bool,
    "keep_raw": bool,
    "thinking_encrypted": bool,
    "endpoint": str,
    "openai_responses_enabled": bool,
    "tools_max_count": int,
    "tools_max_json_kb": int,
    "store": bool,
    "stateful": bool,
    "previous_response_id": str,
    "conversation_id": str,
    "truncation": Literal["auto", "disabled"],
    "reasoning_context": Literal["auto", "current_turn", "all_turns"],
    "reasoning_mode": Literal["standard", "pro"],
    "stream": bool,
    "retries": int,
    "max_wait": float,
    "on_conflict": OnConflict,
}


def merge_options(below: Options, above: Options) -> Options:
    """The options of two layers: what the upper one says wins, `extra` field by field."""
    given: dict[str, Any] = {name: value for name, value in above.items() if value is not None}
    kept: dict[str, Any] = {name: value for name, value in below.items() if value is not None}
    if SPELLINGS_OF_THINKING & given.keys():
        # One wish in three spellings: a call that says it in one must not meet the client's in another.
        kept = {name: value for name, value in kept.items() if name not in SPELLINGS_OF_THINKING}
    if kept.get("extra") and given.get("extra"):
        given["extra"] = {**kept["extra"], **given["extra"]}
    return Options(**{**kept, **given})  # type: ignore[typeddict-item]


def reject_unknown(options: Options) -> Options:
    """The options, if all of them are some; a TypeError names the one that is not, and the nearest that is."""
    for name in options:
        if name not in OPTIONS:
            from difflib import get_close_matches

            close = get_close_matches(name, OPTIONS, n=1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(OPTIONS))}."
            raise TypeError(f"{name} is no option of ask and stream; {meant} A provider's own field goes into extra=.")
    return options


def checked(name: str, given: Options) -> Any:
    """The option, of its type; None when it was not given."""
    value = given.get(name)
    return None if value is None else convert_option(name, value, _CHECKED[name])


def convert_option(name: str, value: object, kind: type[Value]) -> Value:
    """The value as what its option takes, or a ConfigError that names the option and not the value."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{name} does not read: {problem}.") from None
