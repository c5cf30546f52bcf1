"""How a host differs from the documented form of its dialect: `Quirks`, a part of its row, and `Restrictions`, which
only refusals teach. Also the words of a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from asides.providers.switches.table import AskBy
from asides.values.thinking import Effort
from asides.wire.inline_tags.grammar_table import DEFAULT_TAGS

Cloud: TypeAlias = Literal["nothing", "aws", "google-cloud", "azure-ad"]
"""A cloud with credentials of its own, which its maker's library finds and renews."""

ThinkingForm: TypeAlias = Literal["enabled", "adaptive", "disabled", "between_tools"]
"""The values of `thinking.type`: with a budget · as the model decides · off · only between tool calls."""

ReplayWhen: TypeAlias = Literal["never", "tool_turns", "since_last_user", "sealed", "all"]
"""never · turns that call tools · turns after the last user message · thoughts with a seal · all turns"""

Sampled: TypeAlias = Literal[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "stop",
]

ReplayAs: TypeAlias = Literal["field", "details", "content_list", "tags"]
"""How thinking goes back: in the field it came in, as `reasoning_details`, in the content list, as tags in the text."""

Tags: TypeAlias = tuple[str | tuple[str, str], ...]
TagPosition: TypeAlias = Literal["auto", "leading", "anywhere"]
OutputLimit: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
SystemRole: TypeAlias = Literal["system", "developer", "user"]
"""user: the model refuses both other roles, so instructions are a user message."""
StreamOnly: TypeAlias = bool | Literal["thinking"]
EmptyThinking: TypeAlias = bool | Literal["."]
StructuredOutput: TypeAlias = Literal["json_schema", "json_object", "nothing"]

MessageRule: TypeAlias = Literal[
    "alternate", "system_first", "filled", "user_query", "system_in_user", "object_arguments"
]
"""What a host demands of messages: user and assistant take turns · one system message, at the start · none is blank ·
a user says something · instructions are in the first message of the user · the arguments of calls are JSON objects"""

ANY_TAGS: Tags = DEFAULT_TAGS
"""Every grammar that a server without a parser may leave in the content."""

THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")

FileKind: TypeAlias = Literal["audio", "video", "pdf"]
"""A kind of file besides pictures and text."""


class EffortUpdates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages of their own that change the effort from the next question on. The effort of the whole request then
    stays as it was, and so does the beginning of the prompt that a cache knows.
    """

    default: Effort | None = None
    """The effort of a request that names none; None = not known."""
    always: bool = False
    """Used for every change. Otherwise only in requests that ask for a cache: elsewhere there is none to keep."""
    since: str = ""
    source: str = ""


class Quirks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a host differs from the documented form of its dialect.

    A quirk that a model's rule can change is read by `settle` alone, and downstream as a field of `target.facts`. Every
    other quirk is read where its dialect needs it.
    """

    thinking_in: tuple[str, ...] = THINKING_FIELDS
    """The fields that carry thinking, in order of precedence; two with the same text count once."""
    reports_input: bool = False
    """It reports the thinking that it left out of a request, where the request asks for that."""
    heuristics: bool = True
    """Treat unknown fields that are named like thinking as thinking, with a warning. No row of ours sets this: the
    caller does (the option or the setting `heuristics`)."""
    tags: Tags | None = None
    """The inline tag grammars that can occur in content; () for hosts that never inline. None: unknown, so all grammars
    count (`ANY_TAGS`)."""
    tag_position: TagPosition = "auto"
    """Where its tags count. No row of ours sets this: the caller does (`tag_position=`), and `asides probe` puts it
    into the row of an unknown server."""
    fragmented_tags: bool = False
    """It closes and reopens its tag in every chunk: adjacent blocks are one thought. No row of ours sets this: `asides
    probe` puts it into the row of an unknown server."""
    snapshots: bool = False
    """Deltas repeat everything so far."""
    ask_by: AskBy = "reasoning_effort"
    """How to ask for thinking: the switch of this name (providers/switches/table.py)."""
    toggle_on: Literal["enabled", "adaptive"] = "enabled"
    """The value that turns a thinking toggle on."""
    budget_in: str | None = None
    """The field for a thinking budget in tokens ("thinking_token_budget", "reasoning_budget" …)."""
    output_limit: OutputLimit = "max_tokens"
    stream_usage: bool = True
    """Ask for usage in a stream with `stream_options`; some hosts refuse the field and send usage anyway."""
    system_role: SystemRole = "system"
    """The role of the system prompt. No row of ours sets this: model rules do, a refusal teaches it, and `asides probe`
    puts it into the row of an unknown server."""
    replay_as: ReplayAs = "field"
    replay_field: str | None = None
    """The field for thinking that came in an unknown field or was imported. None: an imported thought keeps its field,
    and `reasoning_content` is for unknown ones."""
    refuses_thinking: tuple[str, ...] = ()
    """The models, as globs, that refuse thinking in the history; others that need none ignore it."""
    message_fields: tuple[str, ...] = ()
    """The only fields that it accepts in a message of the model; () = any."""
    returns_refusals: bool = False
    """Whether it takes the refusal of an earlier turn back, in the field that it came in."""
    blank_content: bool = True
    """Whether a message with tool calls may have blank content beside them. We send none in any case."""
    empty_thinking: EmptyThinking = False
    """Turns that must carry thinking carry the field even when it is empty. ".": lost thinking is a dot there, since
    the host takes an empty field for none."""
    tool_call_ids: Literal["any", "up_to_40", "nine_alphanumerics"] = "any"
    """The ids of calls that it accepts. any: as far as is known; long ids of other dialects are shortened."""
    after_results: Literal["anyone", "assistant"] = "anyone"
    """The roles that may follow tool results. assistant: an assistant message is added before a user message."""
    structured_output: StructuredOutput = "json_schema"
    schema_words: Literal["json_schema", "shapes"] = "json_schema"
    """shapes: a schema may hold closed objects, lists and choices; bounds, open objects and recursion are refused."""
    output_with_tools: bool = True
    """Whether JSON may be asked for beside tools. False: the host refuses it, or the model no longer calls tools."""
    output_while_thinking: bool = True
    """Whether JSON may be asked for while the model thinks."""
    output_excludes_thinking: bool = False
    """Its output count excludes thinking, and its total does not show that."""
    auth: Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "nothing"] = "bearer"
    path: str = "/chat/completions"
    transport: Literal["direct", "bedrock_invoke", "vertex_predict"] = "direct"
    """How a cloud wraps another maker's dialect: an address for each model, the version inside the body."""
    raw_reasoning: Literal["aside", "alone", "shown"] | None = None
    """How `reasoning_text` of a Responses reply is read. aside: left out, since it is more than the provider shows.
    alone: the thinking of an item without a summary, known at the item's end. shown: the thinking, live, before any
    summary. None: "aside" for models that give summaries, else "alone"."""
    pictures: bool = True
    """Whether a message may hold a picture."""
    refuses_files: tuple[FileKind, ...] = ()
    """Kinds of files that it is known to refuse; all others are sent."""
    cache_control: bool = False
    """Whether a chat host takes cache breakpoints, in the form of Anthropic's parts."""
    cache_key: bool = False
    """Whether its cache takes `prompt_cache_key`, and a lifetime in `prompt_cache_retention`."""
    any_tool: bool = False
    """Whether a chat host's `tool_choice` takes the word "any" beside "required". Most hosts refuse it."""
    server_tools: tuple[str, ...] = ()
    """The types of the tools that a chat host runs itself, where they have no object of that name; "x:" is every type
    that begins so."""
    call_order: Literal["as_said", "grouped"] = "as_said"
    """grouped: the calls of a turn must follow each other, after its text."""
    encrypted_reasoning: bool = False
    """It returns encrypted reasoning for conversations that it does not store. We ask for that and store nothing."""
    account_bound: bool = False
    """Its seals are valid only in the account that made them, whatever the model."""
    raw_items: bool = True
    """Whether items of reasoning go back with their raw text."""
    refuses_thoughts_while_off: tuple[str, ...] = ()
    """The models, as globs, that refuse thoughts of the current turn in a request that does not think."""
    message_rules: tuple[MessageRule, ...] = ()
    enforces: tuple[str | tuple[str, ...], ...] = ()
    """The rule sets of its dialect (dialects/<name>/rules) that it enforces besides the common rules: a name, or a name
    and the globs of the models that it holds for."""
    results_alone: tuple[str, ...] = ()
    """The models, as globs, that refuse tool results beside other content in a message."""
    calls_alone: tuple[str, ...] = ()
    """The models, as globs, that refuse tool calls beside other content in a message."""
    refused_fields: tuple[str, ...] = ()
    """Fields of a request that it refuses, so they are left out: "a.b" is the field b of the object a, or of all
    objects in the list a. Fields that the caller gives with `extra=` stay."""
    hides_truncation: bool = False
    """It reports a reply that ran out of tokens as complete. A reply with nothing but thinking was cut."""
    fields: tuple[tuple[str, str | bool], ...] = ()
    """Request fields that make this host send thinking separately."""
    compacts: bool = False
    """Whether it compacts long conversations itself, in the documented form of its dialect."""
    continues: Literal["nothing", "prefix", "final_message"] = "nothing"
    """How to make a model continue after thinking that ended without an answer. prefix: an assistant message with the
    thinking in its field and `prefix: true`, at the host's beta address. final_message: an assistant message with the
    thinking in tags, `continue_final_message: true` and `add_generation_prompt: false`, with thinking turned off."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "thinking_in", trim_names(self.thinking_in) or THINKING_FIELDS)


class Restrictions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host refuses beyond its row. Learned from refusals: `settle` fills it in, and rows cannot set it."""

    summaries: bool = True
    """Whether it may be asked for summaries of reasoning."""
    includes_reasoning: bool = True
    """Whether `include` may ask for encrypted reasoning, where `encrypted_reasoning` says that it comes."""
    stores: bool = True
    """Whether a conversation can continue from a stored response. False: send the whole history each time."""
    item_ids: bool = True
    """Whether items of earlier turns go back with their ids."""
    missing_thinking: str | None = None
    """Stand-in for lost thinking, in every turn that must carry some; None: as `Quirks.empty_thinking` says."""
    stream_only: bool = False
    """It answers only as a stream."""
    message_rules: tuple[MessageRule, ...] = ()
    calls_need_tools: tuple[str, ...] = ("*claude*",)
    """The models, as globs, that refuse a history with calls in a request without tools, whatever the dialect:
    "Requests which have `tool_use` or `tool_result` blocks in messages must define tools" (Claude behind OpenRouter and
    LiteLLM, 2026-11)."""


NO_RESTRICTIONS = Restrictions()


def fits_glob(name: str, glob: str) -> bool:
    """Whether a name fits a glob. Most are refused by a word that is missing, which needs no compiled expression."""
    words = glob.partition("[")[0].split("*")
    return all(word in name for word in words if "?" not in word) and fnmatchcase(name, glob)


def fits_any(model: str, globs: Iterable[str]) -> bool:
    """Whether a model, in any case, fits one of the globs."""
    return any(fits_glob(model.lower(), glob) for glob in globs)


def trim_names(names: Iterable[str]) -> tuple[str, ...]:
    """Remove spaces around field names, and blank names (requirements, B5)."""
    return tuple(name.strip() for name in names if name.strip())
