"""Claude's generations as the servers treat them: which settings each takes, and what its signatures are bound to.

These facts are stated a second time, independent of the providers' rows, so that tests compare the two. A name that is
no known Claude has no generation: only the rules of all models hold for it.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

ThinkingType: TypeAlias = Literal["enabled", "adaptive", "disabled", "between_tools"]

_ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_DIALECT_TABLE = "platform.claude.com extended-thinking, adaptive-thinking, models/overview; read 2026-11-15"
_WHATS_NEW = "platform.claude.com whats-new-fable-5-1, -opus-5-5, -sonnet-5-5, -haiku-5-5; read 2026-11-15"
_PRESERVED = "platform.claude.com preserved-thinking; anthropic-sdk-python 2.8 input transformations; read 2026-11-15"


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """What one generation of models accepts."""

    name: str
    models: frozenset[str]
    """The models, as family and version: "opus 4.5"."""
    types: tuple[ThinkingType, ...]
    """The accepted values of `thinking.type`; () if the model does not think."""
    thinks_unasked: bool = False
    efforts: tuple[str, ...] = ()
    """() if the model has no effort."""
    most_effort_without_thinking: str | None = None
    """The highest effort when thinking is off or only between tools; None: any."""
    takes_sampling: bool = True
    one_of_temperature_and_top_p: bool = False
    forced_tools: bool = True
    """Whether a tool can be forced at all. No model allows it together with `enabled`."""
    prefill: bool = True
    leads_with_thinking: bool = False
    """Whether a turn with tool calls must begin with its thought while thinking is `enabled`."""
    prefix_bound: bool = False
    """Whether a thinking block holds only after the very system prompt, tools and messages that it was made after."""
    prefix_bound_for_all: bool = False
    """Whether that also holds for accounts from before 2026-08-31."""
    account_bound: bool = False
    hides_thinking: bool = False
    """Whether the text of thinking is left out unless the request asks for it."""
    context: int = 200_000
    source: str = _DIALECT_TABLE


_MANUAL = Generation(
    name="up to 4.5",
    models=frozenset({"sonnet 3.7", "opus 4", "sonnet 4"}),
    types=("enabled", "disabled"),
    leads_with_thinking=True,
)
_ADAPTIVE = Generation(
    name="4.7, 4.8",
    models=frozenset({"opus 4.7", "opus 4.8"}),
    types=("adaptive", "disabled"),
    efforts=_ALL_EFFORTS,
    takes_sampling=False,
    prefill=False,
    hides_thinking=True,
    context=1_000_000,
)
_BOUND = msgspec.structs.replace(
    _ADAPTIVE,
    name="Fable 5.1, Mythos 5.1, Opus 5.5",
    models=frozenset({"fable 5.1", "mythos 5.1", "opus 5.5"}),
    types=("adaptive",),
    thinks_unasked=True,
    forced_tools=False,
    prefix_bound=True,
    source=f"{_WHATS_NEW}; {_PRESERVED}",
)
GENERATIONS = (
    Generation(
        name="before 3.7",
        models=frozenset({"opus 3", "sonnet 3", "haiku 3", "sonnet 3.5", "haiku 3.5"}),
        types=(),
    ),
    _MANUAL,
    msgspec.structs.replace(
        _MANUAL,
        name="4.1, 4.5",
        models=frozenset({"opus 4.1", "sonnet 4.5", "haiku 4.5"}),
        one_of_temperature_and_top_p=True,
    ),
    msgspec.structs.replace(
        _MANUAL,
        name="Opus 4.5",
        models=frozenset({"opus 4.5"}),
        efforts=("low", "medium", "high"),
        one_of_temperature_and_top_p=True,
    ),
    msgspec.structs.replace(
        _MANUAL,
        name="4.6",
        models=frozenset({"opus 4.6", "sonnet 4.6"}),
        types=("adaptive", "enabled", "disabled"),
        efforts=("low", "medium", "high", "max"),
        one_of_temperature_and_top_p=True,
        prefill=False,
        context=1_000_000,
    ),
    _ADAPTIVE,
    msgspec.structs.replace(_ADAPTIVE, name="Sonnet 5", models=frozenset({"sonnet 5"}), thinks_unasked=True),
    msgspec.structs.replace(
        _ADAPTIVE,
        name="Opus 5",
        models=frozenset({"opus 5"}),
        thinks_unasked=True,
        most_effort_without_thinking="high",
    ),
    msgspec.structs.replace(
        _ADAPTIVE,
        name="Fable 5, Mythos 5",
        models=frozenset({"fable 5", "mythos 5", "mythos preview"}),
        types=("adaptive",),
        thinks_unasked=True,
        forced_tools=False,
    ),
    _BOUND,
    msgspec.structs.replace(
        _BOUND,
        name="Fable 5.2, Mythos 5.2",
        models=frozenset({"fable 5.2", "mythos 5.2"}),
        prefix_bound_for_all=True,
        source=f"platform.claude.com whats-new-fable-5-2; {_PRESERVED}",
    ),
    msgspec.structs.replace(
        _BOUND,
        name="Sonnet 5.5",
        models=frozenset({"sonnet 5.5"}),
        types=("adaptive", "between_tools"),
        most_effort_without_thinking="high",
        account_bound=True,
    ),
    msgspec.structs.replace(
        _BOUND,
        name="Haiku 5.5",
        models=frozenset({"haiku 5.5"}),
        types=("adaptive", "disabled"),
        most_effort_without_thinking="high",
        forced_tools=True,
        account_bound=True,
    ),
)

# Of the models of other generations, those whose blocks a model can read. It drops the others in silence.
READABLE: dict[str, frozenset[str]] = {
    "fable 5.1": frozenset({"opus 5", "opus 5.5", "haiku 5.5"}),
    "mythos 5.1": frozenset({"haiku 5.5"}),
    "fable 5.2": frozenset({"haiku 5.5"}),
    "mythos 5.2": frozenset({"haiku 5.5"}),
    "opus 5.5": frozenset({"haiku 5.5"}),
    "sonnet 5.5": frozenset({"haiku 5.5"}),
}

_FAMILY_FIRST = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d))?(?!\d)")
_NUMBER_FIRST = re.compile(r"claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)")


def name_model(model: str) -> str | None:
    """Return a Claude's family and version, "opus 4.5", under whatever name a host has it; None for any other model."""
    lowered = model.lower()
    if (found := _FAMILY_FIRST.search(lowered)) is not None:
        family, major, minor = found.groups()
    elif (found := _NUMBER_FIRST.search(lowered)) is not None:
        major, minor, family = found.groups()
    elif "claude-mythos" in lowered:
        return "mythos preview"
    else:
        return None
    return f"{family} {major}.{minor}" if minor and minor != "0" else f"{family} {major}"


def find_generation(model: str) -> Generation | None:
    """Return the generation of a model; None if the name is none of theirs."""
    name = name_model(model)
    return next((generation for generation in GENERATIONS if name in generation.models), None)
