"""Rules of a strict reader of Ollama's chat: who can think, each result after its call, no empty answers.

The real server checks `think` against the model, passes messages to a template and checks little of them. The rules for
messages check what a template needs to tell results apart. A result need not name its tool or its call: those without
an id belong to the calls in their order. This dialect has no seals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import (
    HistoryRules,
    RequestRules,
    Rule,
    Wire,
    find_pairing_faults,
    list_call_ids,
)

_ROLES = ("system", "user", "assistant", "tool")
_NO_THINKING = Rule(
    kind="thinking_unsupported_model",
    text='"{model}" does not support thinking',
    since="2026-04-14",
    source="Neurons-AI/crawbot#24",
)
_NO_THINKING_2025 = Rule(
    kind="thinking_unsupported_model",
    text="registry.ollama.ai/library/{model} does not support thinking",
    since="2025-07-16",
    source="ollama/ollama#11439; taketwo/llm-ollama#54",
)
_THINK_VALUE = Rule(
    kind="effort_unsupported_value",
    text='invalid think value: "{value}" (must be {values}, true, or false)',
    since="2025-08",
    source="ollama/ollama#17837, 2026-08-18: also the words true and false; api/types.go",
)
_THINK_LEVEL = Rule(
    kind="effort_unsupported_value",
    text='think value "{value}" is not supported for this model',
    since="2025-12-22",
    source="musistudio/claude-code-router#1093; server/routes.go, 2026-08-21: levels are lowered instead",
)
RULES = (_NO_THINKING, _NO_THINKING_2025, _THINK_VALUE, _THINK_LEVEL)
"""Every rule, with its words, its date and its source."""
# The short name in the error came between the two reports above, the level max before 2026-08.
_SHORT_NAMES_SINCE, _MAX_SINCE, _LEVELS_SINCE = date(2026, 1, 1), date(2026, 5, 1), date(2026, 8, 1)
# ollama.com/library, 2026-11: models without the capability `thinking`.
_NEVER_THINK = re.compile(
    r"llama[23]|codellama|mistral|mixtral|gemma[23]?(?::|$)|qwen2|qwen3-coder|qwen3.*instruct|phi3|phi4(?::|$)|starcoder"
)


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del secret
    return _ChatRules(today)


class _ChatRules(HistoryRules):
    def __init__(self, today: date) -> None:
        super().__init__(_check)
        self._today = today

    def refuse(self, request: Request) -> str | None:
        """Return the first problem of `think` or of the messages; None if there is none."""
        body: Wire = msgspec.json.decode(request.body)
        return next(_check_think(body, self._today), None) or super().refuse(request)


def _check_think(body: Wire, today: date) -> Iterator[str]:
    think, model = body.get("think"), str(body.get("model"))
    levels = ("high", "medium", "low", "max") if today >= _MAX_SINCE else ("high", "medium", "low")
    if isinstance(think, str) and think not in levels:
        yield _THINK_VALUE.refuse(value=think, values=", ".join(f'"{level}"' for level in levels))
    if think and _NEVER_THINK.match(model.lower().rpartition("/")[2]):
        rule = _NO_THINKING if today >= _SHORT_NAMES_SINCE else _NO_THINKING_2025
        yield rule.refuse(model=model)
    if isinstance(think, str) and today < _LEVELS_SINCE and "gpt-oss" not in model:
        yield _THINK_LEVEL.refuse(value=think)


def _check(messages: list[Wire]) -> Iterator[str]:
    tool_names: dict[str, str] = {}
    for place, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            yield f"invalid role: {message.get('role')}"
        calls = message.get("tool_calls") or ()
        if any(not isinstance((call.get("function") or {}).get("arguments"), dict) for call in calls):
            yield f"messages[{place}]: the arguments of a tool call are an object"
        if message.get("role") == "assistant":
            tool_names = {str(call.get("id")): str(call["function"].get("name")) for call in calls}
            if not calls and not any(message.get(field) for field in ("content", "thinking", "images")):
                yield f"messages[{place}]: an assistant message says nothing"
        if message.get("role") == "tool":
            expected = tool_names.get(str(message.get("tool_call_id")))
            if message.get("tool_name") and expected is not None and message["tool_name"] != expected:
                yield f"messages[{place}]: the tool_name is not the one that was called"
    # Older clients send no ids; their results are matched by order.
    if all(call.get("id") for message in messages for call in message.get("tool_calls") or ()):
        for fault in find_pairing_faults(_add_ids(messages)):
            ids = ", ".join(fault.ids)
            yield f"messages[{fault.place}]: tool calls and results do not pair ({fault.kind}: {ids})"


def _add_ids(messages: list[Wire]) -> list[Wire]:
    """Return the messages with an id for each result: without one it belongs to the first call that has no result.

    After a turn without calls it is a note: some clients send results and leave out the calls, which the real server
    takes.
    """
    asked: list[str] = []
    waiting: list[str] = []
    numbered: list[Wire] = []
    for message in messages:
        if message.get("role") == "assistant":
            asked = list_call_ids(message)
            waiting = list(asked)
        elif message.get("role") == "tool":
            call_id = message.get("tool_call_id") or next(iter(waiting), "")
            if call_id in waiting:
                waiting.remove(call_id)
            message = {**message, "tool_call_id": call_id} if call_id or asked else {"role": "system"}
        numbered.append(message)
    return numbered
