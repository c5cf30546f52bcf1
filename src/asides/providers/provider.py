"""A provider as a row: frozen, every field documented, every rule with the date and the source of its fact.

Not here: the rows themselves (table), and what a dialect makes of a quirk (dialects).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from asides.thinking import Effort, Origin, ThoughtKind

AskBy: TypeAlias = Literal[
    "reasoning_effort",
    "reasoning_object",
    "thinking_toggle",
    "thinking_toggle_and_effort",
    "enable_thinking",
    "template",
    "template_and_effort",
    "prompt_mode",
    "thinking_budget",
    "thinking_level",
    "think",
    "max_reasoning_effort",
    "reasoning_config",
    "nothing",
]
"""How this host is asked for thinking:

reasoning_effort            `reasoning_effort: "low"`; off is "none"
reasoning_object            `reasoning: {effort | max_tokens | enabled, exclude}`
thinking_toggle             `thinking: {type: "enabled" | "disabled", budget_tokens?}`
thinking_toggle_and_effort  the toggle, and `reasoning_effort` beside it
enable_thinking             `enable_thinking: true`, `thinking_budget: 1024`
template                    `chat_template_kwargs: {enable_thinking: true}`
template_and_effort         the same, and `reasoning_effort` beside it
prompt_mode                 `prompt_mode: "reasoning"` for the models that always think, else `reasoning_effort`
thinking_budget             `thinkingConfig: {thinkingBudget: 1024}`; -1 leaves it to the model, off is 0
thinking_level              `thinkingConfig: {thinkingLevel: "LOW"}`
think                       `think: true`, false, or an effort
max_reasoning_effort        `reasoningConfig: {type: "enabled", maxReasoningEffort: "low"}`
reasoning_config            `reasoning_config: "low"`
nothing                     it cannot be asked
"""

ThinkingForm: TypeAlias = Literal["enabled", "adaptive", "disabled", "between_tools"]
"""What `thinking.type` can say: with a budget · as much as it finds right · not at all · only between tool calls."""

ReplayAs: TypeAlias = Literal["field", "details", "content_list", "tags"]
"""How thinking goes back: in the field it came in, as `reasoning_details`, in the content list, as tags in the text."""

ReplayWhen: TypeAlias = Literal["never", "tool_turns", "since_last_user", "sealed", "all"]
"""never · on turns that call tools · after the last user message · thoughts that carry a seal · on every turn"""

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

THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")

ON_DEMAND = "http://started-on-demand.localhost"
"""Where the servers are that a launcher starts: an address that stays, whatever port they get. No request goes there.
"""


class Quirks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a host differs from the book of its dialect. Each is read in exactly one `match` of one dialect."""

    thinking_in: tuple[str, ...] = THINKING_FIELDS
    """The fields that carry thinking, in order of precedence; two with the same text count once."""
    heuristics: bool = True
    """Take unknown fields named like thinking for thinking, with a warning."""
    tags: tuple[str | tuple[str, str], ...] = ()
    """The inline tag grammars that can occur in content; () for hosts that never inline."""
    tag_position: Literal["auto", "leading", "anywhere"] = "auto"
    fragmented_tags: bool = False
    """It closes and reopens its tag at every chunk: adjacent blocks are one thought."""
    snapshots: bool = False
    """Deltas repeat everything so far."""
    ask_by: AskBy = "reasoning_effort"
    toggle_on: Literal["enabled", "adaptive"] = "enabled"
    """The word that switches a thinking toggle on."""
    budget_in: str | None = None
    """A field of its own for a thinking budget, in tokens ("thinking_token_budget", "reasoning_budget" …)."""
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    """Ask for usage in a stream with `stream_options`; some hosts refuse the field and send usage anyway."""
    system_role: Literal["system", "developer"] = "system"
    replay_as: ReplayAs = "field"
    replay_field: str = "reasoning_content"
    """The field for thinking whose own field is not known."""
    empty_thinking: bool = False
    """Turns that must carry thinking carry the field also when it is empty."""
    tool_call_ids: Literal["any", "nine_alphanumerics"] = "any"
    structured_output: Literal["json_schema", "json_object", "nothing"] = "json_schema"
    output_excludes_thinking: bool = False
    """Its output count leaves thinking out, where its own total does not settle it."""
    auth: Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "nothing"] = "bearer"
    path: str = "/chat/completions"
    transport: Literal["direct", "bedrock_invoke", "vertex_predict"] = "direct"
    """How a cloud carries another maker's dialect: its own address for each model, the version inside the body."""
    raw_reasoning: Literal["aside", "alone", "shown"] | None = None
    """What `reasoning_text` of a Responses reply is. aside: more than the provider means to show, left out. alone: the
    thinking of an item that has no summary, known at the item's end. shown: the thinking, live, before any summary.
    None: "aside" for models that are known to give summaries, else "alone"."""
    call_order: Literal["as_said", "grouped"] = "as_said"
    """grouped: the calls of a turn have to stand together, behind its words."""
    encrypted_reasoning: bool = False
    """It hands reasoning out encrypted, for conversations that it does not store: nothing is stored then, and it is
    asked for."""
    hides_truncation: bool = False
    """It calls a reply complete that ran out of tokens; one that is nothing but thinking was cut."""
    fields: tuple[tuple[str, str | bool], ...] = ()
    """Fields that every request to this host carries, so that it sends thinking apart."""

    def __post_init__(self) -> None:
        # A field name typed by a person: padding is trimmed, a blank one is unset (requirements, B5).
        named = tuple(name.strip() for name in self.thinking_in if name.strip())
        msgspec.structs.force_setattr(self, "thinking_in", named or THINKING_FIELDS)


class ModelRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of the models that a pattern names. The first rule that matches counts."""

    models: str = "*"
    """A glob over the model name, in lower case."""
    thinking: Literal["always", "optional", "never", "unknown"] = "unknown"
    """always: it cannot be told to stop; never: it cannot be asked."""
    default: Literal["on", "off"] | None = None
    """What happens when nothing is asked."""
    kind: ThoughtKind = "raw"
    """What of its thinking comes back."""
    efforts: tuple[Effort, ...] | None = None
    """The efforts it takes; None = not known, () = none."""
    effort_map: tuple[tuple[Effort, Effort], ...] = ()
    """Where the nearest effort is not what the provider says: (asked, sent)."""
    off_as_effort: bool = True
    """Whether `reasoning_effort: "none"` turns it off."""
    budget: tuple[int, int | None] | None = None
    """The least and the most tokens to think with; None = no budget can be asked, or not known."""
    forbids: tuple[Sampled, ...] = ()
    """Settings that it refuses or ignores while it thinks."""
    forced_tools: bool = True
    """Whether tool_choice "required" or a tool's name is accepted while it thinks."""
    tools_while_thinking: bool = True
    """Whether tools are accepted at all while it thinks, in the dialect of its row."""
    forms: tuple[ThinkingForm, ...] = ()
    """The forms of thinking that it can be told, in dialects that have forms; () = not known."""
    assumed: bool = False
    """Nothing is known of these models: this is the rule of the newest that are known. What contradicts it is adjusted
    and told, never refused."""
    temperature: float | None = None
    """The one temperature that it takes while it thinks, where `forbids` names temperature."""
    top_p: tuple[float, float] | None = None
    """The range of top_p that it takes while it thinks; None = any, unless `forbids` names it."""
    refuses: tuple[Sampled, ...] = ()
    """Settings that it refuses whether it thinks or not."""
    forced_tools_with_budget: bool = True
    """Whether a forced tool_choice is accepted also where thinking has a budget."""
    interleaves: Literal["never", "by_beta", "always"] = "never"
    """Whether a model with a budget thinks between calls of tools too; the budget may then exceed max_tokens."""
    begins_with_thinking: bool = False
    """While it thinks with a budget, a turn that calls tools has to begin with its thinking when it goes back."""
    prefix_bound: bool = False
    """Its seals hold only behind the very same system prompt, tools and messages: a history is only ever added to."""
    prefill: Literal["yes", "without_thinking", "never"] = "yes"
    """Whether a conversation may end with words of the assistant, which the model goes on with."""
    display: Literal["summarized", "omitted"] | None = None
    """What it shows of its thinking when nothing is said; None = it cannot be told."""
    structured_output: Literal["json_schema", "nothing"] | None = None
    """Whether these models take a schema for their answer, where they differ from the host."""
    top_k_in: str = "top_k"
    """Where top_k stands among a model's own fields, in dialects that leave it to the model."""
    max_output: int | None = None
    """The most tokens that it puts out, thinking included; None = not known."""
    starts_inside: bool | Literal["auto"] = False
    """Its template opens the thinking tag, so that inline text begins in thinking; "auto": it may, and content is held
    until a tag or the end tells. True is for hosts that are known to inline: content is thinking until it closes."""
    thinks_though_off: bool = False
    """Told not to think, it may do so all the same, inside its content."""
    tags: tuple[str | tuple[str, str], ...] | None = None
    """Inline grammars of these models, where they differ from the host's."""
    ask_by: AskBy | None = None
    """How these models are asked, where they differ from the host."""
    template_key: Literal["enable_thinking", "thinking"] = "enable_thinking"
    """What their chat template calls the switch (`ask_by` "template" and "template_and_effort")."""
    endpoint: Literal["either", "responses"] = "either"
    """responses: these models are not served as chat completions at all."""
    fields: tuple[tuple[str, str | bool], ...] = ()
    """Fields that requests for these models carry besides the host's, so that thinking is sent apart."""
    signed_calls: bool = False
    """It refuses a call of the current turn whose signature is missing; one that another model made, or that nobody
    did, goes with the provider's documented stand-in."""
    default_max_tokens: int | None = None
    """The limit that is sent when none was asked for, where a model needs one; reported."""
    output_limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    system_role: Literal["system", "developer"] | None = None
    replay_as: ReplayAs | None = None
    since: str = ""
    """The date of the fact, year-month(-day)."""
    source: str = ""
    """Where the fact is from."""


class ReplayRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of earlier thinking goes back. The first rule that matches counts; none means never."""

    models: str = "*"
    when: ReplayWhen = "never"
    since: str = ""
    source: str = ""


class Capabilities(msgspec.Struct, frozen=True):
    """What is known of a model at a provider; None and "unknown" mean just that."""

    thinking: Literal["always", "optional", "never", "unknown"] = "unknown"
    default: Literal["on", "off"] | None = None
    kind: ThoughtKind = "raw"
    efforts: tuple[Effort, ...] | None = None
    budget: tuple[int, int | None] | None = None
    can_stop: bool | None = None
    forced_tools: bool = True
    forbids: tuple[str, ...] = ()
    replay: ReplayWhen = "never"
    since: str = ""
    source: str = ""


_ANY_MODEL = ModelRule()

# Dozens of globs a call add up; the rule of a model is looked for once.
_FOUND: dict[tuple[int, str], tuple[tuple[ModelRule, ...], ModelRule]] = {}
_MOST_FOUND = 4096


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a host speaks a second dialect; what is left out is as in its first."""

    dialect: str
    quirks: Quirks = Quirks()
    models: tuple[ModelRule, ...] | None = None
    replay: tuple[ReplayRule, ...] = ()
    tier: Literal["verified", "documented"] = "documented"
    since: str = ""
    source: str = ""


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who serves models, where, and how they differ. Adding one is adding one of these."""

    name: str
    """Lower case, with hyphens; matched without regard to case, `-` and `_`."""
    dialect: str = "openai_chat"
    base_url: str = ""
    """"" when only the user knows it; a part "$NAME" is read from the environment, "$ONE|OTHER" from the first of them
    that is set."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that replace `base_url`."""
    addressing: Literal["plain", "azure", "regional"] = "plain"
    """azure: the address is a resource's. `/openai/v1` is appended; where `query` has a dated api-version, the older
    `/openai/deployments/<model>`. regional: the host begins with a region, except where that is `global`."""
    key_env: tuple[str, ...] = ()
    key: Literal["required", "optional"] = "required"
    signing: Literal["nothing", "aws"] = "nothing"
    """aws: where there is no key, requests are signed with AWS's own credentials (SigV4), if those are there."""
    title: str = ""
    """The name as its owner writes it."""
    aliases: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    """Appended to every address; a value "$NAME" is read from the environment, and left out where that is unset."""
    launcher: str = ""
    """Who starts a server when a request goes to `ON_DEMAND`: "module:function", imported then and not before. It takes
    the model and gives an address and a key (network/on_demand.py). For rows in code: a file cannot name one."""
    quirks: Quirks = Quirks()
    models: tuple[ModelRule, ...] = ()
    replay: tuple[ReplayRule, ...] = ()
    also: tuple[Variant, ...] = ()
    """The other dialects that this host speaks. The row's own is the one that is used unless another is chosen."""
    chooses: bool = False
    """Which of its dialects is spoken is decided call by call (providers/endpoint.py)."""
    limits_tools: bool = False
    """The limits on tools hold here also where nobody has set them."""
    own_hosts: tuple[str, ...] = ()
    """The hosts that are the provider's own, where `base_url` cannot say it; a dot in front means any below it."""
    host: str = ""
    """The name that thoughts from here go by, where several rows are one host; "" is the row's own."""
    docs: str = ""
    tier: Literal["verified", "documented", "yours"] = "documented"
    """verified: decoded from recordings of the real host; documented: from its documents; yours: a row of the user."""
    since: str = ""
    """The date of the row's facts."""

    def speaking(self, dialect: str) -> Provider | None:
        """This row as it speaks the dialect; None where it is not known to."""
        if dialect == self.dialect:
            return self
        other = next((variant for variant in self.also if variant.dialect == dialect), None)
        if other is None:
            return None
        models = self.models if other.models is None else other.models
        return msgspec.structs.replace(
            self, dialect=dialect, quirks=other.quirks, models=models, replay=other.replay, also=(), chooses=False
        )

    def rule(self, model: str) -> ModelRule:
        """What is known of this model."""
        key = (id(self.models), model)
        known = _FOUND.get(key)
        if known is None:
            name = model.lower()
            found = next((rule for rule in self.models if fnmatchcase(name, rule.models)), _ANY_MODEL)
            if len(_FOUND) >= _MOST_FOUND:
                _FOUND.clear()
            # With the rules themselves, so that no others can come to stand at their address.
            known = _FOUND[key] = (self.models, found)
        return known[1]

    def replay_rule(self, model: str) -> ReplayRule:
        """What of earlier thinking goes back to this model."""
        name = model.lower()
        return next((rule for rule in self.replay if fnmatchcase(name, rule.models)), ReplayRule())

    def capabilities(self, model: str) -> Capabilities:
        """What is known of this model, as a record."""
        rule = self.rule(model)
        stops = {"always": False, "optional": True, "never": True, "unknown": None}[rule.thinking]
        return Capabilities(
            rule.thinking,
            rule.default,
            rule.kind,
            rule.efforts,
            rule.budget,
            stops,
            rule.forced_tools,
            rule.forbids,
            self.replay_rule(model).when,
            rule.since,
            rule.source,
        )


class Target(msgspec.Struct, frozen=True):
    """One model at one address: where a prompt goes. Holds no key."""

    provider: Provider
    model: str
    base_url: str
    rule: ModelRule = _ANY_MODEL
    family: str | None = None
    """The model's public name, where the address knows it by another (a deployment)."""
    chosen_dialect: str | None = None
    """The dialect for this call, where the row leaves a choice."""
    shows_raw: bool = False
    """Raw reasoning beside a summary is asked to be seen (`show="raw"`)."""

    @property
    def dialect(self) -> str:
        """The name of the dialect that is spoken here."""
        return self.chosen_dialect or self.provider.dialect

    @property
    def origin(self) -> Origin:
        """Who a thought from here comes from."""
        return Origin(self.provider.host or self.provider.name, self.base_url, self.model)

    @property
    def launches(self) -> bool:
        """Whether its server is started when a request goes out; another address has one already."""
        return bool(self.provider.launcher) and self.base_url.startswith(ON_DEMAND)

    @property
    def quirks(self) -> Quirks:
        """The host's quirks."""
        return self.provider.quirks
