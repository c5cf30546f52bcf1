"""A provider as a row: frozen, every field documented, every rule with the date and the source of its fact.

Not here: the rows themselves (table), and what a dialect makes of a quirk (dialects).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from asides.providers.quirks import THINKING_FIELDS, AskBy, Quirks, ReplayAs
from asides.values.thinking import Effort, Origin, ThoughtKind

__all__ = [
    "ON_DEMAND",
    "THINKING_FIELDS",
    "AskBy",
    "Capabilities",
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

ThinkingForm: TypeAlias = Literal["enabled", "adaptive", "disabled", "between_tools"]
"""What `thinking.type` can say: with a budget · as much as it finds right · not at all · only between tool calls."""

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

ON_DEMAND = "http://started-on-demand.localhost"
"""Where servers are that a launcher starts: an address that stays, whatever port they get. No request goes there."""


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
    tools: bool = True
    """Whether it takes tools at all."""
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
    structured_output: Literal["json_schema", "json_object", "nothing"] | None = None
    output_with_tools: bool | None = None
    """What these models can be told of the form of an answer, and beside tools, where they differ from the host."""
    top_k_in: str = "top_k"
    """Where top_k stands among a model's own fields, in dialects that leave it to the model."""
    pictures: bool | None = None
    """Whether it takes pictures; None = what the host takes, else not known."""
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


class ModelVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    also: tuple[ModelVariant, ...] = ()
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

    def with_dialect(self, dialect: str) -> Provider | None:
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
