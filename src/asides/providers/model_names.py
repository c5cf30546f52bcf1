"""Names of a provider's models, for people to choose from: a few current ones, and all that the rules contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from asides.providers.provider import Provider

_GLOB_MARKS = frozenset("*?[")


class _Examples(NamedTuple):
    """Current chat models of a provider, the newest first, as they are written after -m."""

    models: tuple[str, ...]
    since: str
    source: str


_GPT_OSS = ("openai/gpt-oss-120b",)
_CLAUDE = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")
_CLAUDE_PAGES = "platform.claude.com models"
_OPEN_CARD = "huggingface.co openai/gpt-oss-120b: its providers"

# In the order in which they are suggested. Globs name families, so the names to copy are written here.
_EXAMPLES = {
    "openai": _Examples(
        ("gpt-6-sol", "gpt-6-luna", "gpt-5.6-sol", "gpt-5"), "2026-11-15", "developers.openai.com models"
    ),
    "anthropic": _Examples(_CLAUDE, "2026-11-15", _CLAUDE_PAGES),
    "google": _Examples(
        ("gemini-3.8-flash", "gemini-3.6-pro", "gemini-2.5-flash"), "2026-11-15", "ai.google.dev gemini-api/docs/models"
    ),
    "deepseek": _Examples(("deepseek-flash", "deepseek-v4-pro"), "2026-11-15", "api-docs.deepseek.com"),
    "mistral": _Examples(
        ("mistral-medium-latest", "mistral-small-latest"), "2026-11-15", "docs.mistral.ai capabilities/reasoning"
    ),
    "xai": _Examples(("grok-4.7", "grok-4.3"), "2026-11-15", "docs.x.ai developers/models"),
    "groq": _Examples((*_GPT_OSS, "openai/gpt-oss-20b"), "2026-08", "console.groq.com/docs/reasoning"),
    "openrouter": _Examples(("anthropic/claude-sonnet-5.5", "openai/gpt-5"), "2026-11-15", "openrouter.ai/models"),
    "qwen": _Examples(("qwen3.7-max", "qwen3.6-plus"), "2026-10-29", "alibabacloud.com model-studio/deep-thinking"),
    "moonshot": _Examples(("kimi-k3", "kimi-k2.6"), "2026-11-15", "platform.kimi.ai"),
    "zai": _Examples(("glm-5.3", "glm-5.2"), "2026-11-15", "docs.z.ai guides/capabilities/thinking-mode"),
    "zai-coding": _Examples(("glm-5.3", "glm-5.2"), "2026-11-15", "docs.z.ai guides/capabilities/thinking-mode"),
    "minimax": _Examples(("MiniMax-M3.1-Flash", "MiniMax-M3"), "2026-11-15", "platform.minimax.io"),
    "minimax-anthropic": _Examples(("MiniMax-M3.1-Flash",), "2026-11-15", "platform.minimax.io"),
    "deepseek-anthropic": _Examples(("deepseek-v4-pro",), "2026-11-15", "api-docs.deepseek.com"),
    "cohere": _Examples(
        ("command-a-reasoning-08-2025", "command-a-03-2025"), "2026-08", "docs.cohere.com models; recorded"
    ),
    "perplexity": _Examples(("sonar", "sonar-reasoning-pro"), "2026-08", "docs.perplexity.ai"),
    "cerebras": _Examples(("gpt-oss-120b",), "2026-08", "inference-docs.cerebras.ai"),
    "together": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "fireworks": _Examples(
        ("accounts/fireworks/models/glm-5p3", "accounts/fireworks/models/deepseek-v4-pro"),
        "2026-11",
        "fireworks.ai/models",
    ),
    "deepinfra": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "sambanova": _Examples(("gpt-oss-120b",), "2026-08", _OPEN_CARD),
    "nvidia": _Examples(_GPT_OSS, "2026-08", "build.nvidia.com"),
    "huggingface": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "novita": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "nebius": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "baseten": _Examples(_GPT_OSS, "2026-08", _OPEN_CARD),
    "crusoe": _Examples(
        ("moonshotai/Kimi-K2.6", "deepseek-ai/DeepSeek-V4-Pro"), "2026-11", "recorded: its list of models"
    ),
    "snowflake": _Examples(("claude-opus-4-8", "claude-haiku-4-5"), "2026-11", "recorded: its list of models"),
    "vercel-gateway": _Examples(("anthropic/claude-opus-5",), "2026-11", "vercel.com/ai-gateway/models"),
    "google-openai": _Examples(
        ("gemini-3.8-flash", "gemini-2.5-flash"), "2026-11-15", "ai.google.dev gemini-api/docs/openai"
    ),
    "vertex": _Examples(("gemini-3.8-flash", "gemini-2.5-flash"), "2026-11-15", "docs.cloud.google.com models/gemini"),
    "vertex-anthropic": _Examples(_CLAUDE, "2026-11-15", _CLAUDE_PAGES),
    "foundry-anthropic": _Examples(_CLAUDE, "2026-11-15", _CLAUDE_PAGES),
    "anthropic-openai": _Examples(_CLAUDE, "2026-11-15", _CLAUDE_PAGES),
    "bedrock": _Examples(
        ("amazon.nova-pro-v1:0", "amazon.nova-2-lite-v1:0"), "2026-11", "docs.aws.amazon.com bedrock models"
    ),
    "bedrock-mantle": _Examples(
        ("openai.gpt-5.6-sol", "openai.gpt-5.5"), "2026-11", "docs.aws.amazon.com bedrock models"
    ),
    "ollama-cloud": _Examples(("gpt-oss:120b",), "2026-08", "ollama.com/search?c=cloud"),
    "local": _Examples(("tiny",), "2026-11", "asides-tiny-model"),
}


def suggest_models(row: Provider) -> tuple[str, ...]:
    """Current models of a provider, the newest first, to copy as they are; () if none is known."""
    known = _EXAMPLES.get(row.name)
    if known is not None and row.tier != "yours":
        return known.models
    # The rules of a row of the user name its models.
    return tuple(rule.models for rule in row.models if _GLOB_MARKS.isdisjoint(rule.models))


def sort_for_suggestions(rows: Iterable[Provider]) -> list[Provider]:
    """The rows with the user's own first, then those that most people ask."""
    order = list(_EXAMPLES)
    return sorted(
        rows,
        key=lambda row: -1 if row.tier == "yours" else order.index(row.name) if row.name in _EXAMPLES else len(order),
    )


def list_model_names(row: Provider) -> Iterator[str]:
    """Current models of a provider, then what its rules name; of a family such as gpt-5.6*, its first name."""
    names = list(suggest_models(row))
    for rule in row.models:
        name = rule.models.removesuffix("*").removesuffix("-")
        if name and rule.thinking != "unknown" and _GLOB_MARKS.isdisjoint(name) and name[-1] not in "/:":
            names.append(name)
    yield from dict.fromkeys(names)
