"""Rules of Ollama's chat: which models think, each result after its call, no empty answers.

The real server checks `think` against the model, passes messages to a template and checks little of them. The rules for
messages check what a template needs to distinguish results. A result need not name its tool or its call: those without
an id belong to the calls in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from asides.dialects.flat_messages import find_pairing_faults, list_call_ids
from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest
from asides.providers.provider import Target

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
_TEMPLATE = "unsure: refused by the stage alone; a template cannot tell such messages apart"
_ROLE = Rule(kind=None, text="invalid role: {role}", since="2025-08", source="ollama server/routes.go; api/types.go")
_ARGUMENTS = Rule(
    kind="tool_arguments_invalid",
    text="json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of "
    "type api.ToolCallFunctionArguments",
    since="2025-10-27",
    source="ollama/ollama#12794; aliasrobotics/cai#76",
)
_EMPTY = Rule(
    kind="empty_content",
    text="messages[{place}]: an assistant message says nothing",
    since="2026-08",
    source=_TEMPLATE,
)
_TOOL_NAME = Rule(
    kind=None,
    text="messages[{place}]: the tool_name is not the one that was called",
    since="2026-08",
    source=_TEMPLATE,
)
_UNANSWERED = Rule(
    kind="tool_result_missing",
    text="messages[{place}]: tool calls and results do not pair (unanswered: {ids})",
    since="2026-08",
    source=_TEMPLATE,
)
_UNASKED = Rule(
    kind="tool_result_orphaned",
    text="messages[{place}]: tool calls and results do not pair (unasked: {ids})",
    since="2026-08",
    source=_TEMPLATE,
)
_TWICE = Rule(
    kind=None,
    text="messages[{place}]: tool calls and results do not pair (twice: {ids})",
    since="2026-08",
    source=_TEMPLATE,
)
_UNPAIRED = {"unanswered": _UNANSWERED, "unasked": _UNASKED, "twice": _TWICE}
RULES = (
    _NO_THINKING,
    _NO_THINKING_2025,
    _THINK_VALUE,
    _THINK_LEVEL,
    _ROLE,
    _ARGUMENTS,
    _EMPTY,
    _TOOL_NAME,
    *_UNPAIRED.values(),
)
"""Every rule, with its words, its date and its source."""
# The short name in the error came between the two reports above, the level max before 2026-08.
_SHORT_NAMES_SINCE, _MAX_SINCE, _LEVELS_SINCE = date(2026, 1, 1), date(2026, 5, 1), date(2026, 8, 1)


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks: `think`, then the messages."""
    yield from _check_think(request, target)
    yield from _check_messages(request.body.get("messages") or [])


def _check_think(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    think, model, today = request.body.get("think"), str(request.body.get("model")), request.today
    levels = ("high", "medium", "low", "max") if today >= _MAX_SINCE else ("high", "medium", "low")
    if isinstance(think, str) and think not in levels:
        yield _THINK_VALUE.broken("think", value=think, values=", ".join(f'"{level}"' for level in levels))
    if think and target.rule.thinking == "never":
        yield (_NO_THINKING if today >= _SHORT_NAMES_SINCE else _NO_THINKING_2025).broken("think", model=model)
    # Until then, only models with efforts took a level.
    if isinstance(think, str) and today < _LEVELS_SINCE and not target.rule.efforts:
        yield _THINK_LEVEL.broken("think", value=think)


def _check_messages(messages: list[Wire]) -> Iterator[BrokenRule]:
    tool_names: dict[str, str] = {}
    for place, message in enumerate(messages):
        path, role = f"messages[{place}]", message.get("role")
        if role not in _ROLES:
            yield _ROLE.broken(f"{path}.role", role=role)
        calls = message.get("tool_calls") or ()
        if any(not isinstance((call.get("function") or {}).get("arguments"), dict) for call in calls):
            yield _ARGUMENTS.broken(f"{path}.tool_calls")
        if role == "assistant":
            tool_names = {str(call["id"]): str(call["function"].get("name")) for call in calls if call.get("id")}
            if not calls and not any(message.get(field) for field in ("content", "thinking", "images")):
                yield _EMPTY.broken(path, place=place)
        if role == "tool":
            expected = tool_names.get(str(message.get("tool_call_id")))
            if message.get("tool_name") and expected is not None and message["tool_name"] != expected:
                yield _TOOL_NAME.broken(f"{path}.tool_name", place=place)
    # Older clients send no ids; their results are matched by order.
    if all(call.get("id") for message in messages for call in message.get("tool_calls") or ()):
        for fault in find_pairing_faults(_add_ids(messages)):
            ids = ", ".join(fault.ids)
            yield _UNPAIRED[fault.kind].broken(f"messages[{fault.place}]", place=fault.place, ids=ids)


def _add_ids(messages: list[Wire]) -> list[Wire]:
    """Return the messages with an id for each result: without one it belongs to the first call that has no result.

    After a turn without calls it is a note: some clients send results and leave out the calls, which the real server
    accepts.
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
