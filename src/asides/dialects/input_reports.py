"""What servers say they did to the history of a request: reports of changes, as notices.

Anthropic: `input_transformations` and `context_management.applied_edits` (anthropic 2.9 beta_message, 2026-11-18).
OpenAI: `input_transformations` of a response (openai 3.51 response, 2026-11-18). A turn that was answered without its
earlier thinking is accepted, but it is not what was sent: flows/heal learns from these notices as from a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from asides.values.notices import Notice

REPORTS_BETA = "thinking-binding-controls-2026-08-01"
"""The beta that turns Anthropic's report of thinking on. By itself it changes nothing else."""

THOUGHT_NOT_READ = "thought_not_read"
THOUGHT_MISMATCH = "thought_mismatch"
HISTORY_EDITED = "history_edited"

Warn: TypeAlias = Callable[[str, str], None]
"""Takes the code and the detail of a notice."""

_UNIT = {
    "cleared_thinking_turns": "turns with thinking",
    "cleared_tool_uses": "tool calls",
    "cleared_input_tokens": "input tokens",
}


def report_transformations(entries: Any, warn: Warn) -> None:
    """Report each change of the input: where, and why."""
    for entry in _list_objects(entries):
        kind, reason = _read(entry, "type"), _read(entry, "reason") or "no reason given"
        place = _read(entry, "path") or _read(entry, "id") or "the request"
        if kind == "thinking_mismatch_allowed":
            detail = f"the thought at {place} does not fit what is before it ({reason}); the model read it all the same"
            warn(THOUGHT_MISMATCH, detail)
        elif kind == "thinking_dropped" or (kind == "reasoning" and entry.get("action") == "removed"):
            warn(THOUGHT_NOT_READ, f"the provider left the thought at {place} out ({reason})")
        else:
            warn("input_transformed", f"the provider changed the request at {place} ({kind or 'unknown'}: {reason})")


def report_edits(management: Any, warn: Warn) -> None:
    """Report each edit that the provider made in the history."""
    edits = management.get("applied_edits") if isinstance(management, dict) else None
    for edit in _list_objects(edits):
        counts = [f"{edit[name]} {unit}" for name, unit in _UNIT.items() if isinstance(edit.get(name), int)]
        what = ", ".join(counts) or "a part of the history"
        warn(HISTORY_EDITED, f"the provider cleared {what} ({_read(edit, 'type') or 'unknown'})")


def report_more_fields(fields: Any, warn: Warn) -> None:
    """Report what a model said beside its reply, in the fields that one cloud passes on."""
    if not isinstance(fields, dict):
        return
    report_transformations(fields.get("input_transformations"), warn)
    report_edits(fields.get("context_management"), warn)
    others = [name for name in fields if name not in ("input_transformations", "context_management")]
    for name in others:
        warn("unknown_field", f"the additional field {name} is only in metadata['raw']")


def is_report(notice: Notice) -> bool:
    """Whether a notice reports that a thought was left out."""
    return notice.code == THOUGHT_NOT_READ


def _list_objects(value: Any) -> Iterable[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()


def _read(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
