"""Claude's models, generation by generation, at every host: `claude_models(prefix)`.

Up to 4.5, a request gives a budget of tokens. From 4.6 on, the model decides how much it thinks (adaptive), and a
request may name an effort. From 4.7 on, it takes no sampling settings. The newest models always think.
"""

from __future__ import annotations

from typing import Literal

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX
from asides.providers.provider import ModelRule, ReplayRule, Sampled, ThinkingForm
from asides.providers.quirks import EffortUpdates, FileKind
from asides.values.thinking import Effort, ThoughtKind

# Text, pictures and PDF files go in: platform.claude.com models/overview and build-with-claude/files, 2026-11.
_NO_SOUND: tuple[FileKind, ...] = ("audio", "video")
_SAMPLING: tuple[Sampled, ...] = ("temperature", "top_p", "top_k")

_PROFILES = (
    "pydantic-ai profiles/anthropic.py; vercel/ai packages/anthropic getModelCapabilities; "
    "platform.claude.com extended-thinking and models/overview"
)
_WHATS_NEW = "platform.claude.com whats-new; docs.apiyi.com 2026-11-09; openrouter.ai claude-5-5; AWS adaptive-thinking"
_FABLE_5_2 = "platform.claude.com models/fable-5-2/whats-new-fable-5-2: the prefix is checked for every account"
_SONNET_5_5 = (
    "platform.claude.com models/sonnet-5-5/whats-new-sonnet-5-5: off is between_tools, which refuses xhigh and max; "
    "unsure: bound to the account (seen by relays; organization_binding_mismatch in anthropic-sdk-python 2.8)"
)
_HAIKU_5_5 = (
    "platform.claude.com models/haiku-5-5/whats-new-haiku-5-5: its blocks work only in the account that made them"
)
_OUTPUT_4_6 = "the most output: platform.claude.com models/overview, and the clouds' pages, in litellm 1.108"
_PRESERVED = (
    "platform.claude.com preserved-thinking: earlier turns may always go back; from Fable 5.1 on they must be unchanged"
)
# From this day on, new accounts have the prefix of their thinking checked (platform.claude.com preserved-thinking).
_PREFIX_CHECKED_SINCE = "2026-08-31"
# Models of other generations whose blocks a model reads. It drops others silently: platform.claude.com
# preserved-thinking; anthropic-sdk-python 2.8 input transformations; 2026-11-15.
_READS_HAIKU = ("*haiku-5-5*",)
_READS_OPUS = ("*opus-5*",)
# "output_config.effort 'xhigh' is not supported when thinking is disabled on this model": anthropics/claude-code#81084,
# 2026-07-25 (Opus 5); whats-new-sonnet-5-5 and -haiku-5-5, 2026-11-15.
_MAX_WHILE_OFF: Effort = "high"


# Where the default of a model is not documented, its name is not given.
_PER_MESSAGE = (
    "platform.claude.com build-with-claude/effort-per-message: the models; whats-new and effort: the defaults"
)
_UPDATES, _UPDATES_HIGH, _UPDATES_MEDIUM = (
    EffortUpdates(default=default, since="2026-11-16", source=_PER_MESSAGE) for default in (None, "high", "medium")
)


# "updates" came with a beta of 2026-08-18 for models that write progress updates: platform.claude.com
# whats-new-fable-5-1; anthropic-sdk-python 0.121 has these two. Of the models in between it is not known.
_DISPLAYS = ("summarized", "omitted")


def _budget(
    models: str,
    *,
    kind: ThoughtKind = "summary",
    efforts: tuple[Effort, ...] = (),
    interleaves: Literal["never", "by_beta"] = "by_beta",
    structured_output: Literal["json_schema", "nothing"] = "json_schema",
    max_output: int = 64_000,
    temperature_or_top_p: bool = False,
) -> ModelRule:
    """Up to 4.5: thinks when the request gives a budget. From 4.1 on, it takes one of temperature and top_p
    (SalesforceAIResearch/MCP-Universe#49, 2026-01-26)."""
    return ModelRule(
        models=models,
        refuses_files=_NO_SOUND,
        thinking="optional",
        default="off",
        kind=kind,
        efforts=efforts,
        budget=(1024, None),
        forms=("enabled", "disabled"),
        forbids=("temperature", "top_k"),
        temperature=1.0,
        top_p=(0.95, 1.0),
        temperature_or_top_p=temperature_or_top_p,
        forced_tools=False,
        interleaves=interleaves,
        begins_with_thinking=True,
        prefill="without_thinking",
        display="summarized",
        displays=_DISPLAYS,
        structured_output=structured_output,
        max_output=max_output,
        context=200_000,
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
    prefix_bound_since: str = _PREFIX_CHECKED_SINCE,
    reads: tuple[str, ...] = (),
    max_effort_while_off: Effort | None = None,
    account_bound: bool | None = None,
    assumed: bool = False,
    effort_updates: EffortUpdates | None = None,
) -> ModelRule:
    """From 4.7 on: decides how much it thinks, shows its thinking only on request, and takes no sampling settings."""
    return ModelRule(
        models=models,
        refuses_files=None if assumed else _NO_SOUND,
        thinking=thinking,
        default=default,
        kind="summary",
        efforts=LOW_TO_MAX,
        max_effort_while_off=max_effort_while_off,
        effort_updates=effort_updates,
        forms=forms,
        refuses=_SAMPLING,
        forced_tools=forced_tools,
        interleaves="always",
        prefix_bound=prefix_bound,
        prefix_bound_since=prefix_bound_since if prefix_bound else "",
        reads=reads,
        account_bound=account_bound,
        prefill=prefill,
        display="omitted",
        max_output=128_000,
        context=1_000_000,
        since=since,
        source=source,
        assumed=assumed,
    )


def _both(models: str, *, prefill: Literal["without_thinking", "never"], max_output: int = 128_000) -> ModelRule:
    """4.6: takes a budget, which is deprecated, or decides how much it thinks."""
    return ModelRule(
        models=models,
        refuses_files=_NO_SOUND,
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
        temperature_or_top_p=True,
        forced_tools_with_budget=False,
        begins_with_thinking=True,
        prefill=prefill,
        display="summarized",
        displays=_DISPLAYS,
        max_output=max_output,
        context=1_000_000,
        since="2026-11-15",
        source=f"{_PROFILES}; {_OUTPUT_4_6}",
    )


def _never(models: str, max_output: int) -> ModelRule:
    """Before 3.7: a request cannot ask for thinking. They think in tags in the text when they have tools."""
    return ModelRule(
        models=models,
        refuses_files=_NO_SOUND,
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
    """The rules, newest first, for names that begin with `prefix` ("*" where a cloud adds words before the name)."""
    name = f"{prefix}claude-"
    return (
        # The separators after the number exclude the dates of Fable 5 and Mythos 5, which also begin with a 2.
        *(
            _adaptive(
                f"{name}{family}-5-2{end}",
                "always",
                forms=("adaptive",),
                forced_tools=False,
                prefix_bound=True,
                prefix_bound_since="",
                reads=_READS_HAIKU,
                since="2026-11-15",
                source=_FABLE_5_2,
                effort_updates=_UPDATES,
            )
            for family in ("fable", "mythos")
            for end in ("", "[-:@]*")
        ),
        *(
            _adaptive(
                f"{name}{family}*",
                "always",
                forms=("adaptive",),
                forced_tools=False,
                prefix_bound=True,
                reads=reads,
                effort_updates=updates,
            )
            for family, updates, reads in (
                ("fable-5-1", _UPDATES_HIGH, (*_READS_OPUS, *_READS_HAIKU)),
                ("mythos-5-1", _UPDATES, _READS_HAIKU),
                ("opus-5-5", _UPDATES_MEDIUM, _READS_HAIKU),
            )
        ),
        _adaptive(
            f"{name}sonnet-5-5*",
            "always",
            forms=("adaptive", "between_tools"),
            forced_tools=False,
            prefix_bound=True,
            reads=_READS_HAIKU,
            max_effort_while_off=_MAX_WHILE_OFF,
            account_bound=True,
            since="2026-11-15",
            source=_SONNET_5_5,
            effort_updates=_UPDATES_HIGH,
        ),
        _adaptive(
            f"{name}haiku-5-5*",
            "optional",
            prefix_bound=True,
            max_effort_while_off=_MAX_WHILE_OFF,
            account_bound=True,
            since="2026-11-15",
            source=_HAIKU_5_5,
            effort_updates=_UPDATES_MEDIUM,
        ),
        _adaptive(f"{name}fable-5*", "always", forms=("adaptive",), forced_tools=False),
        _adaptive(f"{name}mythos*", "always", forms=("adaptive",), forced_tools=False),
        _adaptive(f"{name}sonnet-5*", "optional", since="2026-08-22", source=_PROFILES),
        _adaptive(
            f"{name}opus-5*",
            "optional",
            since="2026-08-22",
            source=_PROFILES,
            max_effort_while_off=_MAX_WHILE_OFF,
            effort_updates=_UPDATES_HIGH,
        ),
        _adaptive(f"{name}opus-4-[78]*", "optional", default="off", since="2026-08-22", source=_PROFILES),
        _both(f"{name}opus-4-6*", prefill="never"),
        # The clouds stop at half of it. Prefill: refused, as by Opus (langchain-ai/deepagents#1585, 2026-07).
        _both(f"{name}sonnet-4-6*", prefill="never", max_output=64_000 if prefix else 128_000),
        # It ignores an effort without a budget.
        _budget(f"{name}opus-4-5*", efforts=LOW_TO_HIGH, temperature_or_top_p=True),
        _budget(f"{name}opus-4-1*", max_output=32_000, temperature_or_top_p=True),
        _budget(f"{name}opus-4*", structured_output="nothing", max_output=32_000),
        _budget(f"{name}sonnet-4-5*", temperature_or_top_p=True),
        _budget(f"{name}sonnet-4*", structured_output="nothing"),
        _budget(f"{name}haiku-4*", temperature_or_top_p=True),
        _budget(f"{name}3-7-*", kind="raw", interleaves="never", structured_output="nothing"),
        _never(f"{name}3-5-*", 8_192),
        _never(f"{name}3-*", 4_096),
        _never(f"{name}2*", 4_096),
        # Bedrock's names of the first two generations.
        _never(f"{name}v[12]*", 4_096),
        _never(f"{name}instant*", 4_096),
        _adaptive(f"{name}*", "optional", forced_tools=False, prefix_bound=True, assumed=True),
    )


CLAUDE_REPLAY = (ReplayRule(when="sealed", since="2026-11-09", source=_PRESERVED),)
"""Earlier thinking goes back to Claude if it is signed. It costs nothing where it is not needed."""
