"""The types of a provider's row, and `Target`: one model at one address, with all facts that hold for it.

Every rule carries the date and the source of its fact.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from asides.providers.quirks import (
    ANY_TAGS,
    NO_RESTRICTIONS,
    THINKING_FIELDS,
    Cloud,
    EffortUpdates,
    EmptyThinking,
    FileKind,
    MessageRule,
    OutputLimit,
    Quirks,
    ReplayAs,
    ReplayWhen,
    Restrictions,
    Sampled,
    StreamOnly,
    StructuredOutput,
    SystemRole,
    TagPosition,
    Tags,
    ThinkingForm,
    fits_any,
    fits_glob,
)
from asides.providers.switches.table import AskBy
from asides.values.learned import Learned
from asides.values.thinking import Effort, Origin, Thinking, ThoughtKind

__all__ = [
    "LAUNCH_URL",
    "THINKING_FIELDS",
    "AskBy",
    "Capabilities",
    "Cloud",
    "ModelRule",
    "ModelVariant",
    "Provider",
    "Quirks",
    "ReplayAs",
    "ReplayRule",
    "ReplayWhen",
    "Sampled",
    "Target",
    "ThinkingForm",
]

LAUNCH_URL = "http://started-on-demand.localhost"
"""The fixed address of servers that a launcher starts, whatever their port. No request goes there."""


class ModelRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about the models that match a pattern. The first matching rule counts."""

    models: str = "*"
    """A glob over the model name, in lower case."""
    thinking: Literal["always", "optional", "never", "unknown"] = "unknown"
    """always: thinking cannot be turned off; never: the model does not think."""
    default: Literal["on", "off"] | None = None
    """Whether it thinks by default."""
    kind: ThoughtKind = "raw"
    """The form in which a reply shows its thinking."""
    efforts: tuple[Effort, ...] | None = None
    """The efforts it accepts; None = not known, () = none."""
    effort_map: tuple[tuple[Effort, Effort], ...] = ()
    """Efforts that the provider does not map to the nearest one: (asked, sent)."""
    max_effort_while_off: Effort | None = None
    """The highest effort beside thinking that is off, or only between tools; None = any."""
    off_as_effort: bool = True
    """Whether `reasoning_effort: "none"` turns thinking off."""
    effort_updates: EffortUpdates | None = None
    """How the effort may change inside a conversation without a loss of its cache; None: only for all of it."""
    budget: tuple[int, int | None] | None = None
    """The lowest and the highest thinking budget in tokens; None = it takes no budget, or not known."""
    refuses_zero_budget: bool = False
    """It refuses a budget of 0, since it always thinks."""
    budget_excludes_effort: bool = False
    """It refuses a budget beside an effort. The budget is sent, since it is more exact."""
    forbids: tuple[Sampled, ...] = ()
    """Settings that it refuses or ignores while thinking."""
    forced_tools: bool | Literal["required", "never"] = True
    """Whether it takes a forced tool_choice while thinking. "required": but no tool's name; "never": nor while off."""
    tools: bool | Literal["native"] = True
    """Whether it accepts tools. "native": only those of its provider. Other tools are left out of its requests, and
    calls in a history are sent as user text."""
    tools_while_thinking: bool | Literal["off"] = True
    """Whether it accepts tools while thinking, in the dialect of its row. "off": only with thinking turned off."""
    tools_need_off: bool = False
    """It refuses tools also in a request that names no effort: thinking must be turned off for them."""
    forms: tuple[ThinkingForm, ...] = ()
    """The values of `thinking.type` that it accepts, in dialects that have that field; () = not known."""
    assumed: bool = False
    """Copied from the newest known models: a request that contradicts it is adjusted with a notice, never refused."""
    temperature: float | None = None
    """The only temperature that it accepts while thinking, where `forbids` names temperature."""
    top_p: tuple[float, float] | None = None
    """The range of top_p that it accepts while thinking; None = any, unless `forbids` names top_p."""
    off_sampling: tuple[tuple[Sampled, float], ...] = ()
    """The only values of settings that it accepts while it does not think."""
    refuses: tuple[Sampled, ...] = ()
    """Settings that it always refuses."""
    temperature_or_top_p: bool = False
    """It refuses temperature beside top_p."""
    forced_tools_with_budget: bool = True
    """Whether it accepts a forced tool_choice beside a thinking budget."""
    interleaves: Literal["never", "by_beta", "always"] = "never"
    """Whether it also thinks between tool calls with a budget, which may then exceed max_tokens."""
    begins_with_thinking: bool = False
    """With a thinking budget, a replayed turn that calls tools must begin with its thinking."""
    prefix_bound: bool = False
    """Its seals are valid only after exactly the same system prompt, tools and messages."""
    prefix_bound_since: str = ""
    """The day from which on new accounts have that checked; "" = every account."""
    reads: tuple[str, ...] = ()
    """Globs of other models whose seals it can read."""
    account_bound: bool | None = None
    """Whether its seals are valid only in the account that made them; None = as the host."""
    prefill: Literal["yes", "without_thinking", "never"] = "yes"
    """Whether a conversation may end with an assistant message, which the model continues."""
    display: Literal["summarized", "omitted"] | None = None
    """How it shows its thinking by default; None = the request cannot choose."""
    displays: tuple[str, ...] = ()
    """All the ways in which it can show its thinking; () = not known."""
    structured_output: StructuredOutput | None = None
    """The form of typed answers that these models accept, where they differ from the host."""
    output_with_tools: bool | None = None
    """Whether they accept that beside tools, where they differ from the host."""
    cache_points: Literal["nowhere", "messages", "everywhere"] = "nowhere"
    """Where it takes cache points, in the dialect that has them by model; messages: and in the system prompt."""
    top_k_in: str = "top_k"
    """The name of top_k, in dialects where each model has its own fields."""
    pictures: bool | None = None
    """Whether it accepts pictures; None = as the host."""
    refuses_files: tuple[FileKind, ...] | None = None
    """Kinds of files that it is known to refuse; None = as the host."""
    max_output: int | None = None
    """The output limit in tokens, thinking included; None = not known."""
    context: int | None = None
    """Maximum tokens of a request and its reply together; None = not known."""
    input_limit: int | None = None
    """Maximum input tokens of a request; None = not known."""
    starts_inside: bool | Literal["auto"] = False
    """Whether its chat template opens the thinking tag. "auto": it may, so content waits for a tag or the end."""
    thinks_though_off: bool = False
    """It may think in its content even when thinking is turned off."""
    tags: Tags | None = None
    """The inline tags of these models, where they differ from the host's."""
    ask_by: AskBy | None = None
    """How to ask these models for thinking, where they differ from the host."""
    template_key: Literal["enable_thinking", "thinking"] = "enable_thinking"
    """The name of the switch in their chat template (`ask_by` "template" and "template_and_effort")."""
    endpoint: str = "either"
    """The only endpoint where these models exist, by the end of its dialect's name, as "responses"; "either": more than
    one."""
    named_in: Literal["model", "agent"] = "model"
    """The field of a request that names it, in a dialect that has agents too."""
    fields: tuple[tuple[str, str | bool], ...] = ()
    """Request fields besides the host's that make it send thinking separately, or read that of earlier turns."""
    tool_stream: bool = False
    """A streamed request with tools asks with `tool_stream` for calls as they are written; else each comes whole."""
    signed_calls: bool = False
    """It refuses a call without a signature; other models' calls get the documented placeholder."""
    default_max_tokens: int | None = None
    """The limit that is sent, with a notice, when the caller sets none and the model needs one."""
    output_limit: OutputLimit | None = None
    system_role: SystemRole | None = None
    replay_as: ReplayAs | None = None
    empty_thinking: EmptyThinking | None = None
    """How a turn with calls replaces lost thinking, where it differs from the host."""
    message_rules: tuple[MessageRule, ...] = ()
    """What its chat template demands of messages, besides the host."""
    stream_only: StreamOnly = False
    """Whether it answers only as a stream; "thinking": only if it thinks."""
    enforces: tuple[str, ...] | None = None
    """The rule sets that the model's server enforces, where they differ from the host's."""
    since: str = ""
    """The date of the fact: year-month(-day)."""
    source: str = ""


class ReplayRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When earlier thinking goes back. The first matching rule counts; no rule means never."""

    models: str = "*"
    when: ReplayWhen = "never"
    other_models: bool = False
    """Whether thoughts of other models of the host go back too."""
    since: str = ""
    source: str = ""


class Capabilities(msgspec.Struct, frozen=True):
    """The known facts of a model at a provider. None and "unknown" mean: not known."""

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

# Matching dozens of globs on every call adds up, so the rule of a model is looked up once.
_FOUND: dict[tuple[int, str], tuple[tuple[ModelRule, ...], ModelRule]] = {}
_FOUND_REPLAY: dict[tuple[int, str], tuple[tuple[ReplayRule, ...], ReplayRule]] = {}
_ANY_REPLAY = ReplayRule()
_MAX_FOUND = 4096


class ModelVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a host differs in a second dialect. A field that is left out is as in its first."""

    dialect: str
    quirks: Quirks = Quirks()
    models: tuple[ModelRule, ...] | None = None
    replay: tuple[ReplayRule, ...] = ()
    tier: Literal["verified", "documented"] = "documented"
    since: str = ""
    source: str = ""


_CHAT_PATH = "/chat/completions"
# The path of requests in each dialect, for rows that name none. Models are in the paths of two.
_OWN_PATHS = {
    "anthropic": "/messages",
    "bedrock": "",
    "cohere": "/chat",
    "gemini": "",
    "ollama": "/api/chat",
    "openai_responses": "/responses",
}


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row: a host of models, its address, and how it differs from its dialect. A new provider is a new row."""

    name: str
    """Lower case, with hyphens. Case, `-` and `_` do not matter when it is looked up."""
    dialect: str = "openai_chat"
    base_url: str = ""
    """"" when only the user knows it. "$NAME" is read from the environment, "$ONE|OTHER" from the first that is set."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that replace `base_url`."""
    addressing: Literal["plain", "azure", "regional"] = "plain"
    """azure: the address of a resource. `/openai/v1` is appended, or the older `/openai/deployments/<model>` where
    `query` has a dated api-version. regional: the host begins with a region, unless that is `global`."""
    key_env: tuple[str, ...] = ()
    key: Literal["required", "optional"] = "required"
    signing: Literal["nothing", "aws"] = "nothing"
    """aws: without a key, requests are signed with AWS credentials (SigV4)."""
    cloud: Cloud = "nothing"
    """The cloud whose access tokens are sent where there is no key (transports/fetch_key.py)."""
    title: str = ""
    """The name as its owner writes it."""
    aliases: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    """The query of every address. A value "$NAME" is read from the environment, and left out when unset."""
    launcher: str = ""
    """"module:function" that starts a server for a model (transports/launch.py). Only rows in code may name one."""
    quirks: Quirks = Quirks()
    models: tuple[ModelRule, ...] = ()
    replay: tuple[ReplayRule, ...] = ()
    also: tuple[ModelVariant, ...] = ()
    """The host's other dialects. Calls use the row's own unless another is chosen."""
    chooses: bool = False
    """Each call chooses its dialect (providers/endpoint.py)."""
    max_tools: int | None = None
    """The documented maximum of tools in one request; None: no documented limit."""
    own_hosts: tuple[str, ...] = ()
    """The provider's own hosts besides that of `base_url`; a leading dot means all subdomains."""
    host: str = ""
    """The provider's name in the origin of thoughts, where several rows are one host; "" = the row's own."""
    prices: str = ""
    """The provider's name in the package genai-prices, which estimates costs; "" = its prices are not there."""
    docs: str = ""
    tier: Literal["verified", "documented", "yours"] = "documented"
    """verified: tested with recordings of the real host; documented: from its documents; yours: the user's row."""
    since: str = ""
    """The date of the row's facts."""

    def __post_init__(self) -> None:
        path = _OWN_PATHS.get(self.dialect)
        if path is not None and self.quirks.path == _CHAT_PATH:
            # Unset in the row: the dialect decides.
            msgspec.structs.force_setattr(self, "quirks", msgspec.structs.replace(self.quirks, path=path))

    def __repr__(self) -> str:  # Its query and its headers may hold keys.
        address = self.base_url.partition("?")[0].rpartition("@")[2]
        return f"Provider(name={self.name!r}, dialect={self.dialect!r}, base_url={address!r}, tier={self.tier!r})"

    def with_dialect(self, dialect: str) -> Provider | None:
        """This row for another of its dialects; None if it is not known to speak it."""
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
        """The rule of this model."""
        key = (id(self.models), model)
        known = _FOUND.get(key)
        if known is None:
            name = _find_base(model.lower())
            found = next((rule for rule in self.models if fits_glob(name, rule.models)), _ANY_MODEL)
            if len(_FOUND) >= _MAX_FOUND:
                _FOUND.clear()
            # Stored with the rules, so that their id is not reused.
            known = _FOUND[key] = (self.models, found)
        return known[1]

    def replay_rule(self, model: str) -> ReplayRule:
        """When earlier thinking goes back to this model."""
        key = (id(self.replay), model)
        known = _FOUND_REPLAY.get(key)
        if known is None:
            name = _find_base(model.lower())
            found = next((rule for rule in self.replay if fits_glob(name, rule.models)), _ANY_REPLAY)
            if len(_FOUND_REPLAY) >= _MAX_FOUND:
                _FOUND_REPLAY.clear()
            known = _FOUND_REPLAY[key] = (self.replay, found)
        return known[1]

    def capabilities(self, model: str) -> Capabilities:
        """The known facts of this model."""
        rule = self.rule(model)
        stops = {"always": False, "optional": True, "never": True, "unknown": None}[rule.thinking]
        known = (rule.thinking, rule.default, rule.kind, rule.efforts, rule.budget, stops, rule.forced_tools is True)
        return Capabilities(*known, rule.forbids, self.replay_rule(model).when, rule.since, rule.source)


def _find_base(name: str) -> str:
    """The model that a fine-tuned one was made of, whose facts it has: `ft:gpt-4.1-mini-2025-04-14:acme::id`
    (platform.openai.com docs/guides/supervised-fine-tuning, 2026-11). Other names stay as they are.
    """
    kind, _, rest = name.partition(":")
    return rest.partition(":")[0] or name if kind == "ft" else name


class Facts(msgspec.Struct, frozen=True):
    """The facts of one model at one host. A field of the rule wins over the host's."""

    tags: Tags
    """The inline tag grammars that can occur in content; () for a host that never inlines."""
    tag_position: TagPosition
    starts_inside: bool | Literal["auto"]
    thinking_in: tuple[str, ...]
    """The fields that carry thinking, in order of precedence."""
    heuristics: bool
    """Whether unknown fields that are named like thinking count as thinking."""
    ask_by: AskBy
    budget_in: str | None
    fields: tuple[tuple[str, str | bool], ...]
    """Fields that every request carries: the host's, then the model's."""
    output_limit: OutputLimit
    system_role: SystemRole
    replay_as: ReplayAs
    structured_output: StructuredOutput
    output_with_tools: bool
    pictures: bool
    refuses_files: tuple[FileKind, ...]
    account_bound: bool
    empty_thinking: EmptyThinking
    message_rules: tuple[MessageRule, ...]
    enforces: tuple[str, ...]
    """The rule sets of the dialect that hold here besides the common rules."""


def merge_facts(rule: ModelRule, quirks: Quirks, model: str = "") -> Facts:
    """The facts of a model at a host. This is the only place that reads a rule beside the quirks."""
    facts: dict[str, Any] = {}
    for name in Facts.__struct_fields__:
        own = getattr(rule, name, None)
        facts[name] = getattr(quirks, name) if own is None else own
    facts["fields"] = (*quirks.fields, *rule.fields)
    facts["message_rules"] = tuple(dict.fromkeys((*quirks.message_rules, *rule.message_rules)))
    facts["tags"] = ANY_TAGS if facts["tags"] is None else facts["tags"]
    if rule.enforces is None and quirks.enforces:
        facts["enforces"] = _select_rule_sets(quirks, model.lower())
    return Facts(**facts)


def _select_rule_sets(quirks: Quirks, model: str) -> tuple[str, ...]:
    """The rule sets of a host that hold for a model."""
    listed = [(entry,) if isinstance(entry, str) else entry for entry in quirks.enforces]
    return tuple(name for name, *globs in listed if not globs or fits_any(model, globs))


class Target(msgspec.Struct, frozen=True):
    """One model at one address: where a prompt goes. Holds no key."""

    provider: Provider
    model: str
    base_url: str
    rule: ModelRule = _ANY_MODEL
    family: str | None = None
    """The model's public name, where the address uses another name (a deployment)."""
    chosen_dialect: str | None = None
    """The dialect for this call, where the row leaves a choice."""
    foreign: bool = False
    """The address is not the provider's own: any server may answer."""
    shows_raw: bool = False
    """The caller asked to see raw reasoning beside a summary (`show="raw"`)."""
    overrides: tuple[tuple[str, Any], ...] = ()
    """Facts that the settings or the call change, by name."""
    account: str = ""
    """A fingerprint of the account that asks; "" where it is not known."""
    learned: tuple[Learned, ...] = ()
    """What refusals taught about this model here. Rule and row include it."""
    refused: frozenset[str] = frozenset()
    """Digests of the seals and thoughts that were refused here."""
    restrictions: Restrictions = NO_RESTRICTIONS
    """What refusals taught about the host that no row says."""
    unlearned: Target | None = None
    """The target without what refusals taught; None = nothing was learned."""
    facts: Facts = cast(Facts, None)
    """Effective facts (overrides > rule > quirks). Derived; do not pass."""
    quirks: Quirks = cast(Quirks, None)
    """The host's quirks. Derived; do not pass."""
    dialect: str = ""
    """The name of the dialect that this target speaks. Derived; do not pass."""

    def __post_init__(self) -> None:
        quirks = self.provider.quirks
        facts = merge_facts(self.rule, quirks, self.family or self.model)
        if self.overrides:
            facts = msgspec.structs.replace(facts, **dict(self.overrides))
        msgspec.structs.force_setattr(self, "facts", facts)
        msgspec.structs.force_setattr(self, "quirks", quirks)
        msgspec.structs.force_setattr(self, "dialect", self.chosen_dialect or self.provider.dialect)

    @property
    def refuses_thoughts_while_off(self) -> bool:
        """Whether it refuses thoughts of the current turn in a request that does not think."""
        return fits_any(self.family or self.model, self.quirks.refuses_thoughts_while_off)

    @property
    def origin(self) -> Origin:
        """The origin of a thought from this target."""
        return Origin(self.provider.host or self.provider.name, self.base_url, self.model, self.account)

    @property
    def launches(self) -> bool:
        """Whether a request starts the server; any other address has a server already."""
        return bool(self.provider.launcher) and self.base_url.startswith(LAUNCH_URL)

    def thinks(self, thinking: Thinking) -> bool | None:
        """Whether the model thinks on such a request; None when its default is not known."""
        if self.rule.thinking in ("always", "never"):
            return self.rule.thinking == "always"
        if thinking.asked:
            return thinking.wanted
        return None if self.rule.default is None else self.rule.default == "on"

    def may_think(self, thinking: Thinking) -> bool:
        """Whether neither the model nor the caller excludes thinking. A default does not: `extra=` can change it."""
        return self.rule.thinking != "never" and thinking.mode != "off"
