"""The formats of `reasoning_details`: which models read an entry of a format (`fits_format`)."""

from __future__ import annotations

from asides.providers.quirks import fits_glob

_OPENAI = ("*gpt-*", "*openai/*", "*codex*", "o[1-9]*")
# OpenRouterTeam/ai-sdk-provider src/schemas/format.ts, 2026-06-25; an open set. The version at the end may change.
_READERS: dict[str, tuple[str, ...]] = {
    "anthropic-claude-": ("*claude*", "*anthropic/*"),
    "google-gemini-": ("*gemini*", "*google/*"),
    "openai-responses-": _OPENAI,
    "azure-openai-responses-": _OPENAI,
    "xai-responses-": ("*grok*", "*x-ai/*", "*xai/*"),
}


def fits_format(format_name: str, model: str) -> bool:
    """Whether a model reads an entry of this format. Unknown formats, such as "unknown", fit every model."""
    readers = next((globs for prefix, globs in _READERS.items() if format_name.startswith(prefix)), None)
    return readers is None or any(fits_glob(model.lower(), glob) for glob in readers)
