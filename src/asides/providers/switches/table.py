"""The switches: for each dialect and `ask_by`, the fields that ask for thinking, for an amount of it, or for none.

Encoders write them (write), server halves recognise them (read), the probe tries them, healing knows which exclude each
other, and the search for a cache break knows which fields they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

AskBy: TypeAlias = Literal[
    "reasoning_effort",
    "reasoning_object",
    "thinking_toggle",
    "thinking_toggle_and_effort",
    "enable_thinking",
    "enable_thinking_and_effort",
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
"""How to ask a host for thinking: the switch of its dialect with this `ask_by` or `with_effort`. nothing: a request
cannot ask for thinking."""

Wish: TypeAlias = Literal["on", "off"]
Fields: TypeAlias = dict[str, Any]
Values: TypeAlias = tuple[tuple[str, Any], ...]
"""Fields by path: ("thinking.type", "enabled") is `thinking: {type: "enabled"}`."""

TRIAL_BUDGET = 1024
# The probe finds no upper limit, and a settings file has no word for that.
_ANY_BUDGET = 1_000_000


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask for thinking or for none."""

    name: str
    ask_by: AskBy | None = None
    """The `ask_by` of rows that use this switch; None: the dialect has no other."""
    with_effort: AskBy | None = None
    """The `ask_by` of rows that also send the effort."""
    inside: str = ""
    """The object that holds all these fields."""
    on: Values = ()
    """() = only an amount turns thinking on."""
    off: Values = ()
    """() = this switch cannot turn it off."""
    effort: str = ""
    """The field of an effort; "" = none."""
    upper: bool = False
    """Whether the words of efforts are in capitals."""
    budget: str = ""
    """The field of a budget in tokens; "" = none."""
    needs_rule: bool = False
    """Send the budget only to models that are known to take one."""
    summary: str = ""
    """The field for the kind of summary."""
    display: str = ""
    """The field for the kind of thinking to show."""
    shown: Values = ()
    hidden: Values = ()
    tries: tuple[Wish, ...] = ()
    """What the probe tries it for."""
    trial: Values = ()
    """Fields that the probe sends beside `on`."""
    room: int = 0
    """Tokens that a trial must allow beside the answer."""
    quirks: Fields = {}
    """The quirks of a row that uses this switch, besides `ask_by`."""
    rule: Fields = {}
    """The facts of a model's rule that uses this switch."""
    on_rule: Fields = {}
    """More of them, which only an effective "on" shows."""
    since: str = ""
    source: str = ""

    def list_paths(self) -> tuple[str, ...]:
        """All fields of this switch, each once, by their path in the request."""
        paths = [path for values in (self.on, self.off, self.shown, self.hidden) for path, _ in values]
        paths += [path for path in (self.effort, self.budget, self.summary, self.display) if path]
        return tuple(dict.fromkeys(f"{self.inside}.{path}" if self.inside else path for path in paths))

    @property
    def row_quirks(self) -> Fields:
        """All quirks of a row that uses this switch."""
        return {**({} if self.ask_by is None else {"ask_by": self.ask_by}), **self.quirks}

    def ask(self, wish: Wish) -> Fields:
        """The fields with which the probe asks for this."""
        return self.build((*self.on, *self.trial) if wish == "on" else self.off)

    def build(self, values: Values) -> Fields:
        """The fields with these values, as a request has them."""
        fields: Fields = {}
        for path, value in values:
            put(fields, f"{self.inside}.{path}" if self.inside else path, value)
        return fields


def put(fields: Fields, path: str, value: Any) -> None:
    """Set the field at a path."""
    *parents, leaf = path.split(".")
    for parent in parents:
        fields = fields.setdefault(parent, {})
    fields[leaf] = value


# --- chat completions -------------------------------------------------------------------------------------------------

_TEMPLATE = "chat_template_kwargs"
_EFFORT = "reasoning_effort"

TOGGLE = Switch(
    name="thinking.type",
    ask_by="thinking_toggle",
    with_effort="thinking_toggle_and_effort",
    on=(("thinking.type", "enabled"),),
    off=(("thinking.type", "disabled"),),
    effort=_EFFORT,
    budget="thinking.budget_tokens",
    needs_rule=True,
    display="thinking.display",
    tries=("on", "off"),
    since="2026-11-15",
    source="docs.z.ai/guides/capabilities/thinking-mode; platform.minimax.io/docs/api-reference/text-openai-api",
)
ENABLE = Switch(
    name="enable_thinking",
    ask_by="enable_thinking",
    with_effort="enable_thinking_and_effort",
    on=(("enable_thinking", True),),
    off=(("enable_thinking", False),),
    effort=_EFFORT,
    budget="thinking_budget",
    tries=("on", "off"),
    since="2026-11-15",
    source="alibabacloud.com/help/en/model-studio/deep-thinking",
)
TEMPLATES = tuple(
    Switch(
        name=f"{_TEMPLATE}.{key}",
        ask_by="template",
        with_effort="template_and_effort",
        on=((f"{_TEMPLATE}.{key}", True),),
        off=((f"{_TEMPLATE}.{key}", False),),
        effort=_EFFORT,
        tries=("on", "off"),
        rule=rule,
        since="2026-11",
        source="docs.vllm.ai/en/latest/features/reasoning_outputs.html; llama.cpp tools/server/README.md",
    )
    for key, rule in (("enable_thinking", {}), ("thinking", {"template_key": "thinking"}))
)
"""By the name of the switch in the model's template."""
EFFORT = Switch(
    name="reasoning_effort",
    ask_by="reasoning_effort",
    off=((_EFFORT, "none"),),
    effort=_EFFORT,
    tries=("on", "off"),
    trial=((_EFFORT, "high"),),
    since="2026-11",
    source="platform.openai.com/docs/guides/reasoning",
)
OBJECT = Switch(
    name="reasoning.enabled",
    ask_by="reasoning_object",
    on=(("reasoning.enabled", True),),
    off=(("reasoning.enabled", False),),
    effort="reasoning.effort",
    budget="reasoning.max_tokens",
    summary="reasoning.summary",
    hidden=(("reasoning.exclude", True),),
    tries=("on", "off"),
    trial=(("reasoning.effort", "high"),),
    since="2026-08",
    source="openrouter.ai/docs/use-cases/reasoning-tokens; docs.together.ai/docs/reasoning-overview",
)
PROMPT_MODE = Switch(
    name="prompt_mode",
    ask_by="prompt_mode",
    on=(("prompt_mode", "reasoning"),),
    off=((_EFFORT, "none"),),
    effort=_EFFORT,
    since="2026-11",
    source="docs.mistral.ai/capabilities/reasoning: the mode for models that always think, else an effort",
)
THINK = Switch(name="think", ask_by="think", on=(("think", True),), off=(("think", False),), tries=("on", "off"))
_INCLUDE = Switch(
    name="include_reasoning",
    on=(("include_reasoning", True),),
    tries=("on",),
    quirks={"fields": (("include_reasoning", True),)},
)

CHAT_BUDGETS = ("thinking_budget", "thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens")
"""The names that hosts have for a budget, besides the objects that hold one (`Quirks.budget_in`)."""
HOST_DEFAULT = (_EFFORT, "default")
"""A value that asks for the host's default."""

_FLAGS = ("thinking", "reasoning", "enable_reasoning", f"{_TEMPLATE}.enable_reasoning", f"{_TEMPLATE}.reasoning")
_RARE = tuple(
    Switch(
        name=f"{path} (true or false)" if path in ("thinking", "reasoning") else path,
        on=((path, True),),
        off=((path, False),),
        tries=("on", "off"),
    )
    for path in _FLAGS
)

# --- other dialects ---------------------------------------------------------------------------------------------------

RESPONSES = Switch(
    name="reasoning.effort and summary",
    off=(("reasoning.effort", "none"),),
    effort="reasoning.effort",
    summary="reasoning.summary",
    tries=("on", "off"),
    trial=(("reasoning.effort", "high"), ("reasoning.summary", "auto")),
    since="2026-11",
    source="platform.openai.com/docs/guides/reasoning; openai-python types/responses",
)
OLDER_SUMMARY = "reasoning.generate_summary"
"""The name that `reasoning.summary` had."""
_LEAST_EFFORT = Switch(
    name="reasoning.effort",
    off=(("reasoning.effort", "minimal"),),
    effort="reasoning.effort",
    tries=("on", "off"),
    trial=(("reasoning.effort", "high"),),
    rule={"off_as_effort": False},
)

_MESSAGES: Fields = {
    "off": (("thinking.type", "disabled"),),
    "effort": "output_config.effort",
    "display": "thinking.display",
    "shown": (("thinking.display", "summarized"),),
    "hidden": (("thinking.display", "omitted"),),
    "since": "2026-11-15",
    "source": "anthropic-sdk-python 2.8",
}
ENABLED = Switch(
    name="thinking.type enabled",
    on=(("thinking.type", "enabled"),),
    budget="thinking.budget_tokens",
    tries=("on", "off"),
    trial=(("thinking.budget_tokens", TRIAL_BUDGET),),
    room=TRIAL_BUDGET,
    on_rule={"forms": ("enabled", "disabled"), "budget": (TRIAL_BUDGET, _ANY_BUDGET)},
    **_MESSAGES,
)
ADAPTIVE = Switch(
    name="thinking.type adaptive",
    on=(("thinking.type", "adaptive"),),
    tries=("on", "off"),
    on_rule={"forms": ("adaptive", "disabled")},
    **_MESSAGES,
)
BETWEEN_TOOLS = Switch(name="thinking.type between_tools", on=(("thinking.type", "between_tools"),), **_MESSAGES)
"""Always shows its thinking: it has no field for that, except words of the caller."""

_CONFIG = "generationConfig.thinkingConfig"
_SHOWN: Fields = {
    "inside": _CONFIG,
    "shown": (("includeThoughts", True),),
    "hidden": (("includeThoughts", False),),
    "since": "2026-11",
    "source": "googleapis/python-genai types.py",
}
BUDGET = Switch(
    name="thinkingConfig.thinkingBudget",
    ask_by="thinking_budget",
    on=(("thinkingBudget", -1),),  # the model decides
    off=(("thinkingBudget", 0),),
    budget="thinkingBudget",
    tries=("on", "off"),
    trial=(("includeThoughts", True), ("thinkingBudget", TRIAL_BUDGET)),
    room=TRIAL_BUDGET,
    on_rule={"budget": (0, _ANY_BUDGET)},
    **_SHOWN,
)
LEVEL = Switch(
    name="thinkingConfig.thinkingLevel",
    ask_by="thinking_level",
    effort="thinkingLevel",
    upper=True,
    tries=("on",),
    trial=(("includeThoughts", True), ("thinkingLevel", "HIGH")),
    **_SHOWN,
)
LEVEL_OF_INTERACTION = Switch(
    name="generation_config.thinking_level",
    ask_by="thinking_level",
    inside="generation_config",
    effort="thinking_level",
    shown=(("thinking_summaries", "auto"),),
    hidden=(("thinking_summaries", "none"),),
    tries=("on",),
    trial=(("thinking_level", "high"), ("thinking_summaries", "auto")),
    since="2026-11-18",
    source="google-genai 3.3 types; recorded",
)
ANY_LEVEL = "THINKING_LEVEL_UNSPECIFIED"

COHERE = Switch(
    name="thinking.type",
    on=(("thinking.type", "enabled"),),
    off=(("thinking.type", "disabled"),),
    budget="thinking.token_budget",
    tries=("on", "off"),
    since="2026-11",
    source="docs.cohere.com/docs/reasoning",
)
OLLAMA = Switch(
    name="think",
    on=(("think", True),),
    off=(("think", False),),
    effort="think",
    tries=("on", "off"),
    since="2026-11",
    source="docs.ollama.com/capabilities/thinking",
)

ADDITIONAL = "additionalModelRequestFields"
CONVERSE = tuple(
    msgspec.structs.replace(switch, ask_by="thinking_toggle", inside=ADDITIONAL, tries=tries, on_rule={})
    for switch, tries in ((ENABLED, ("on",)), (ADAPTIVE, ()), (BETWEEN_TOOLS, ()))
)
CONVERSE_EFFORT = Switch(
    name="reasoning_effort", ask_by="reasoning_effort", inside=ADDITIONAL, effort=_EFFORT, since="2026-11"
)
CONVERSE_OBJECT = Switch(
    name="reasoning.effort",
    ask_by="reasoning_object",
    inside=ADDITIONAL,
    off=(("reasoning.effort", "none"),),
    effort="reasoning.effort",
    since="2026-11",
)
CONVERSE_CONFIG = Switch(
    name="reasoning_config", ask_by="reasoning_config", inside=ADDITIONAL, effort="reasoning_config", since="2026-11"
)
CONVERSE_MAX = Switch(
    name="reasoningConfig",
    ask_by="max_reasoning_effort",
    inside=ADDITIONAL,
    on=(("reasoningConfig.type", "enabled"),),
    off=(("reasoningConfig.type", "disabled"),),
    effort="reasoningConfig.maxReasoningEffort",
    since="2026-08",
    source="AWS nova2-userguide, extended-thinking",
)
COMMON_EFFORT = "outputConfig.effort"
"""The effort that all models of Converse have in common."""

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "openai_chat": CHAT_BUDGETS,
    "openai_responses": (OLDER_SUMMARY,),
    "bedrock": (COMMON_EFFORT,),
}
"""By dialect, the paths of fields for thinking that no switch writes."""

SWITCHES: Mapping[str, tuple[Switch, ...]] = {
    "openai_chat": (TOGGLE, ENABLE, *TEMPLATES, EFFORT, OBJECT, THINK, PROMPT_MODE, _INCLUDE),
    "openai_responses": (RESPONSES, _LEAST_EFFORT),
    "anthropic": (ENABLED, ADAPTIVE, BETWEEN_TOOLS),
    "gemini": (BUDGET, LEVEL),
    "gemini_interactions": (LEVEL_OF_INTERACTION,),
    "ollama": (OLLAMA,),
    "cohere": (COHERE,),
    "bedrock": (*CONVERSE, CONVERSE_EFFORT, CONVERSE_OBJECT, CONVERSE_CONFIG, CONVERSE_MAX),
}
"""By dialect, the likeliest first. A dialect that has only a switch with levels needs no more than this."""
RARE_SWITCHES: Mapping[str, tuple[Switch, ...]] = {"openai_chat": _RARE}
"""Switches that few servers know. No row can say them; `extra=` can."""
COMBINABLE = frozenset({"openai_chat"})
"""Dialects whose switches can be in one request: servers ignore, or name, the fields that they do not know."""


class Exclusion(msgspec.Struct, frozen=True):
    """Two fields that exclude each other in a request."""

    one: str
    other: str
    dropped: str
    """The one to leave out."""
    since: str = ""
    source: str = ""


EXCLUSIVE = (
    Exclusion("reasoning", _EFFORT, _EFFORT, "2025-02-26", "github.com/danny-avila/LibreChat/issues/6076"),
    Exclusion(
        "reasoning.effort",
        "reasoning.max_tokens",
        "reasoning.max_tokens",
        "2026-05-02",
        "github.com/omeryasirkucuk/amx/pull/66",
    ),
    Exclusion("thinking", _EFFORT, "thinking", "2026-07-12", "github.com/OnesoftQwQ/opencode-go-copilot/issues/58"),
    Exclusion("enable_thinking", _EFFORT, "enable_thinking"),
    Exclusion("thinking", "thinking_level", "thinking", "2026-04-22", "refusal of litellm"),
    Exclusion("thinking_budget", _EFFORT, "thinking_budget"),
    Exclusion(
        f"{_CONFIG}.thinkingLevel",
        f"{_CONFIG}.thinkingBudget",
        f"{_CONFIG}.thinkingBudget",
        "2025-11-26",
        "refusal of Gemini 3",
    ),
)
"""Switches that hosts refuse side by side, in the order in which to leave one out."""


# --- looking up -------------------------------------------------------------------------------------------------------


def find_switch(dialect: str, ask_by: AskBy, template_key: str = "enable_thinking") -> Switch | None:
    """The switch of hosts with this `ask_by`; None if the dialect has none."""
    if ask_by in ("template", "template_and_effort") and dialect == "openai_chat":
        return next(switch for switch in TEMPLATES if switch.name == f"{_TEMPLATE}.{template_key}")
    return next((switch for switch in SWITCHES[dialect] if ask_by in (switch.ask_by, switch.with_effort)), None)


def list_field_names(ask_by: AskBy) -> tuple[str, ...]:
    """The fields that a request to a host with this `ask_by` may have, without the objects that hold them all."""
    known = [switch for switches in SWITCHES.values() for switch in switches]
    using = [switch for switch in known if ask_by in (switch.ask_by, switch.with_effort)]
    return _list_roots(
        path for switch in using for path in ([path for path, _ in (*switch.on, *switch.off)] or [switch.effort])
    )


def list_switches(dialect: str, wish: Wish, *, rare: bool = False) -> list[Switch]:
    """The switches of a dialect that the probe tries for this, the likeliest first."""
    switches = RARE_SWITCHES if rare else SWITCHES
    return [switch for switch in switches.get(dialect, ()) if wish in switch.tries]


def list_switch_fields() -> tuple[str, ...]:
    """The fields at the top of a request, in any dialect, that turn thinking on or off or set its effort."""
    switches = [switch for known in SWITCHES.values() for switch in known if switch is not _INCLUDE]
    paths = [
        switch.inside or path
        for switch in switches
        for path in (*(path for path, _ in (*switch.on, *switch.off)), switch.effort)
    ]
    return _list_roots(path for path in paths if path)


def list_budget_fields() -> tuple[str, ...]:
    """The paths of a budget in a request, in any dialect."""
    switches = [switch for known in SWITCHES.values() for switch in known if switch.budget]
    paths = [f"{switch.inside}.{switch.budget}" if switch.inside else switch.budget for switch in switches]
    return tuple(dict.fromkeys((*CHAT_BUDGETS, *paths)))


def _list_roots(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path.partition(".")[0] for path in paths))
