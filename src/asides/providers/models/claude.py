"""What is known of Claude's models, generation by generation, wherever they are served: `claude_models(prefix)`.

Not here: who serves them (table). Each generation has its own rules of asking: a budget of tokens up to 4.5; from 4.6
on as much as the model finds right (adaptive), with an effort; from 4.7 on no sampling; the newest cannot stop.
"""

from __future__ import annotations

from typing import Literal

from asides.providers.provider import ModelRule, ReplayRule, Sampled, ThinkingForm
from asides.values.thinking import Effort, ThoughtKind

_SAMPLING: tuple[Sampled, ...] = ("temperature", "top_p", "top_k")
_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")
_ALL: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")

_PROFILES = (
    "pydantic-ai profiles/anthropic.py; vercel/ai packages/anthropic getModelCapabilities; "
    "platform.claude.com extended-thinking; unsure: the most tokens of output"
)
_WHATS_NEW = "platform.claude.com whats-new; docs.apiyi.com 2026-11-09; openrouter.ai claude-5-5; AWS adaptive-thinking"
_PRESERVED = (
    "platform.claude.com preserved-thinking: earlier turns may always go back; from Fable 5.1 on they must be unchanged"
)


def _budget(
    models: str,
    *,
    kind: ThoughtKind = "summary",
    efforts: tuple[Effort, ...] = (),
    interleaves: Literal["never", "by_beta"] = "by_beta",
    structured_output: Literal["json_schema", "nothing"] = "json_schema",
    max_output: int = 64_000,
) -> ModelRule:
    """Up to 4.5: thinks when it is given a budget."""
    return ModelRule(
        models=models,
        thinking="optional",
        default="off",
        kind=kind,
        efforts=efforts,
        budget=(1024, None),
        forms=("enabled", "disabled"),
        forbids=("temperature", "top_k"),
        temperature=1.0,
        top_p=(0.95, 1.0),
        forced_tools=False,
        interleaves=interleaves,
        begins_with_thinking=True,
        prefill="without_thinking",
        display="summarized",
        structured_output=structured_output,
        max_output=max_output,
        since="2026-08-22",
        source=_PROFILES,
    )


def _adaptive(
    models: str,
    thinking: Literal["always", "optional"],
    *,
    default: Literal["on", "off"] = "on",
    forms: tuple[ThinkingForm, ...] = ("adaptive", "disabled"),
    forced_tools: bool = True,
    prefill: Literal["without_thinking", "never"] = "never",
    since: str = "2026-11-09",
    source: str = _WHATS_NEW,
    prefix_bound: bool = False,
    assumed: bool = False,
) -> ModelRule:
    """From 4.7 on: thinks as much as it finds right, shows nothing of it unless told to, and takes no sampling."""
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        kind="summary",
        efforts=_ALL,
        forms=forms,
        refuses=_SAMPLING,
        forced_tools=forced_tools,
        interleaves="always",
        prefix_bound=prefix_bound,
        prefill=prefill,
        display="omitted",
        max_output=128_000,
        since=since,
        source=source,
        assumed=assumed,
    )


def _both(models: str, *, prefill: Literal["without_thinking", "never"], max_output: int) -> ModelRule:
    """4.6: takes both ways of asking; the budget is deprecated."""
    return ModelRule(
        models=models,
        thinking="optional",
        default="off",
        kind="summary",
        efforts=("low", "medium", "high", "max"),
        effort_map=(("xhigh", "max"),),
        budget=(1024, None),
        forms=("adaptive", "enabled", "disabled"),
        forbids=("temperature", "top_k"),
        temperature=1.0,
        top_p=(0.95, 1.0),
        forced_tools_with_budget=False,
        begins_with_thinking=True,
        prefill=prefill,
        display="summarized",
        max_output=max_output,
        since="2026-08-22",
        source=_PROFILES,
    )


def _never(models: str, max_output: int) -> ModelRule:
    """Before 3.7: no thinking to ask for. They think aloud, in tags, when they have tools."""
    return ModelRule(
        models=models,
        thinking="never",
        default="off",
        efforts=(),
        tags=("thinking",),
        structured_output="nothing",
        max_output=max_output,
        since="2026-08-22",
        source=f"{_PROFILES}; recorded: the tags",
    )


def claude_models(prefix: str = "") -> tuple[ModelRule, ...]:
    """The rules, newest first, for names that begin with `prefix` ("*" where a cloud puts words in front)."""
    name = f"{prefix}claude-"
    return (
        _adaptive(f"{name}fable-5-1*", "always", forms=("adaptive",), forced_tools=False, prefix_bound=True),
        _adaptive(f"{name}opus-5-5*", "always", forms=("adaptive",), forced_tools=False, prefix_bound=True),
        _adaptive(
            f"{name}sonnet-5-5*", "always", forms=("adaptive", "between_tools"), forced_tools=False, prefix_bound=True
        ),
        _adaptive(f"{name}haiku-5-5*", "optional", prefix_bound=True),
        _adaptive(f"{name}fable-5*", "always", forms=("adaptive",), forced_tools=False),
        _adaptive(f"{name}mythos*", "always", forms=("adaptive",), forced_tools=False),
        _adaptive(f"{name}sonnet-5*", "optional", since="2026-08-22", source=_PROFILES),
        _adaptive(f"{name}opus-5*", "optional", since="2026-08-22", source=_PROFILES),
        _adaptive(f"{name}opus-4-[78]*", "optional", default="off", since="2026-08-22", source=_PROFILES),
        _both(f"{name}opus-4-6*", prefill="never", max_output=128_000),
        _both(f"{name}sonnet-4-6*", prefill="without_thinking", max_output=64_000),
        # Its effort means nothing without a budget beside it.
        _budget(f"{name}opus-4-5*", efforts=_TO_HIGH),
        _budget(f"{name}opus-4-1*", max_output=32_000),
        _budget(f"{name}opus-4*", structured_output="nothing", max_output=32_000),
        _budget(f"{name}sonnet-4-5*"),
        _budget(f"{name}sonnet-4*", structured_output="nothing"),
        _budget(f"{name}haiku-4*"),
        _budget(f"{name}3-7-*", kind="raw", interleaves="never", structured_output="nothing"),
        _never(f"{name}3-5-*", 8_192),
        _never(f"{name}3-*", 4_096),
        _never(f"{name}2*", 4_096),
        _never(f"{name}instant*", 4_096),
        _adaptive(f"{name}*", "optional", forced_tools=False, prefix_bound=True, assumed=True),
    )


CLAUDE_REPLAY = (ReplayRule(when="sealed", since="2026-11-09", source=_PRESERVED),)
"""What of earlier thinking goes back to Claude: all that is signed, since it costs nothing where it is not needed."""
