"""What Gemini's hosts refuse: order of turns, signatures of calls, budgets and levels of thinking.

For Gemini 3 and later, the first call of each step of the current turn must carry its signature. Neighbouring contents
of the model are one turn, since clients send a streamed turn back with a content for each chunk. The server alone can
check what a signature was made for; the words for that are here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest, as_object, as_objects
from asides.providers.provider import Target
from asides.wire.lenient import read_base64

PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Documented placeholders for a lost signature."""
_LEARN_MORE = "Learn more: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"

MISSING = Rule(
    kind="thought_signature_missing",
    text=(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        "call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    ),
    since="2026-08-02",
    source="niki914/zafiro#100; ai.google.dev thought-signatures",
)
MISSING_VERTEX = Rule(
    kind="thought_signature_missing",
    text=(
        "Unable to submit request because function call `{name}` in the {position}. content block is missing a "
        f"`thought_signature`. {_LEARN_MORE}"
    ),
    since="2025-12-20",
    source="GewoonJaap/gemini-cli-openai#156",
)
CORRUPTED = Rule(
    kind="thought_signature_invalid",
    text="Corrupted thought signature.",
    since="2025-11-20",
    source="google-gemini/gemini-cli#13467",
)
INVALID = Rule(
    kind="thought_signature_invalid",
    text="Thought signature is not valid",
    since="2026-03",
    source="diegosouzapw/OmniRoute#1410: after a switch of models or keys",
)
INVALID_VERTEX = Rule(
    kind="thought_signature_invalid",
    text=f"Unable to submit request because Thought signature is not valid. {_LEARN_MORE}",
    since="2026-03",
    source="docs.cloud.google.com thought-signatures; reports of 2026",
)
NO_BASE64 = Rule(
    kind="thought_signature_invalid",
    text=(
        "Invalid value at 'contents[{content}].parts[{part}].thought_signature' (TYPE_BYTES), Base64 decoding failed "
        'for "{value}"'
    ),
    since="2026-09",
    source="ai.google.dev api/generate-content: bytes in base64; reports of 2026",
)
CALL_ORDER = Rule(
    kind="tool_turn_order",
    text=(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    ),
    since="2026-03-07",
    source="continuedev/continue#11164",
)
RESPONSE_ORDER = Rule(
    kind="tool_turn_order",
    text="Please ensure that function response turn comes immediately after a function call turn",
    since="2024-11",
    source="langchain-ai/langchain#27799",
)
RESPONSE_COUNT = Rule(
    kind="tool_result_missing",
    text=(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn."
    ),
    since="2026-01-21",
    source="google-gemini/gemini-cli#17208",
)
EMPTY_PARTS = Rule(
    kind="empty_content",
    text="* GenerateContentRequest.contents[{content}].parts: contents.parts must not be empty.\n",
    since="2024-05",
    source="ai.google.dev api/generate-content",
)
ROLE = Rule(
    kind=None,
    text="Please use a valid role: user, model.",
    since="2025-03-26",
    source="langgenius/dify-official-plugins#566",
)
BOTH = Rule(
    kind="reasoning_params_conflict",
    text="You can only set only one of thinking budget and thinking level.",
    since="2025-11-26",
    source="ai.google.dev thinking",
)
ALWAYS_THINKS = Rule(
    kind="thinking_cannot_disable",
    text="Budget 0 is invalid. This model only works in thinking mode.",
    since="2026-07-16",
    source="ai.google.dev thinking",
)
BUDGET_RANGE = Rule(
    kind="budget_out_of_range",
    text="The thinking budget {budget} is invalid. Please choose a value between {least} and {most}.",
    since="2026-10-04",
    source="ai.google.dev thinking; measured by others",
)
LEVEL_UNSUPPORTED = Rule(
    kind="effort_unsupported_param",
    text="Thinking level is not supported for this model.",
    since="2026-09-16",
    source="ai.google.dev thinking; reports of 2026 for 2.5",
)
LEVEL_VALUE = Rule(
    kind="effort_unsupported_value",
    text="Thinking level {level} is not supported for this model. Please retry with other thinking level.",
    since="2026-11",
    source="ai.google.dev thinking: minimal on 3.8 Flash is an error; unsure: the words",
)
LEVEL_VALUE_VERTEX = Rule(
    kind="effort_unsupported_value",
    text=(
        "Unable to submit request because thinking_level {level} is not supported by this model. Learn more: "
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
    ),
    since="2025-12-17",
    source="jenslys/opencode-gemini-auth#14",
)
NOT_ENABLED = Rule(
    kind="thinking_unsupported_model",
    text="Thinking is not enabled for models/{model}",
    since="2025-05-27",
    source="lobehub/lobehub#7985",
)
_ROLES = ("user", "model", "function", "tool")
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks at this target, in the order in which the server checks."""
    contents = as_objects(request.body.get("contents"))
    # Vertex has words of its own.
    is_cloud = "cloud_words" in target.facts.enforces
    yield from _check_thinking(request.body, target, is_cloud=is_cloud)
    for place, content in enumerate(contents):
        if content.get("role", "user") not in _ROLES:
            yield ROLE.broken(f"contents[{place}].role")
    yield from _check_order(contents)
    yield from _check_encoding(contents)
    if target.rule.signed_calls:
        yield from _check_missing(contents, is_cloud=is_cloud)


# --- parts ------------------------------------------------------------------------------------------------------------


def get_field(part: Wire, name: str) -> Any:
    """Return a field under its name, or under the one with underscores, which the servers take too."""
    return part.get(name, part.get(re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)))


def list_parts(content: Wire) -> list[Wire]:
    """Return the parts of a content."""
    return as_objects(content.get("parts"))


def read_signature(part: Wire) -> str | None:
    """Return the signature of a part; None if it has none."""
    found = get_field(part, "thoughtSignature")
    return str(found) if found else None


def _check_encoding(contents: list[Wire]) -> Iterator[BrokenRule]:
    for place, content in enumerate(contents):
        for number, part in enumerate(list_parts(content)):
            signature = read_signature(part)
            if signature is not None and signature not in PLACEHOLDERS and read_base64(signature) is None:
                path = f"contents[{place}].parts[{number}].thoughtSignature"
                yield NO_BASE64.broken(path, content=place, part=number, value=f"{signature[:8]}…")


# --- turns ------------------------------------------------------------------------------------------------------------


def _check_order(contents: list[Wire]) -> Iterator[BrokenRule]:
    """Check that a turn with calls follows a user or results, and that as many results as calls follow it."""
    for place, content in enumerate(contents):
        if not content.get("parts"):
            yield EMPTY_PARTS.broken(f"contents[{place}].parts", content=place)
    # Clients of the vendor repeat results, and the servers take it.
    once = [one for one in enumerate(contents) if not (one[0] and one[1] == contents[one[0] - 1])]
    turns = [list(run) for _, run in groupby(once, key=_name_turn)]
    for number, turn in enumerate(turns):
        path = f"contents[{turn[0][0]}]"
        calls, results = len(_list_fields(turn, "functionCall")), len(_list_fields(turn, "functionResponse"))
        if calls and not number:
            yield CALL_ORDER.broken(path)
        for before, after in pairwise(turn):
            # Contents of their own are taken where the call is signed: recorded of calls in a row, and the vendor's own
            # client keeps the chunks of a stream so, words before a call included.
            if _has_unsigned_call(after[1]) and not _list_fields([before], "functionCall"):
                yield CALL_ORDER.broken(f"contents[{after[0]}]")
        if results and not (number and _list_fields(turns[number - 1], "functionCall")):
            yield RESPONSE_ORDER.broken(path)
        answers = _list_fields(turns[number + 1] if number + 1 < len(turns) else [], "functionResponse")
        extra = [answer for answer in answers[calls:] if answer not in answers[:calls]]
        if calls and (len(answers) < calls or extra):
            yield RESPONSE_COUNT.broken(path)


def _name_turn(numbered: tuple[int, Wire]) -> str:
    """Return the same name for contents of one turn."""
    place, content = numbered
    return "model" if content.get("role") == "model" else f"user {place}"


def _has_unsigned_call(content: Wire) -> bool:
    """Whether the first call of a content has no signature."""
    calls = [part for part in list_parts(content) if get_field(part, "functionCall") is not None]
    return bool(calls) and not get_field(calls[0], "thoughtSignature")


def _list_fields(turn: list[tuple[int, Wire]], name: str) -> list[Any]:
    """Return the calls, or the results, of a turn."""
    found = [get_field(part, name) for _, content in turn for part in list_parts(content)]
    return [one for one in found if one is not None]


def _check_missing(contents: list[Wire], *, is_cloud: bool) -> Iterator[BrokenRule]:
    """Check that the first call of each step since the user's last words carries a signature.

    Parallel calls are parts of one content. A call in a content of its own is a step.
    """
    start = max((place for place, content in enumerate(contents) if _starts_turn(content)), default=-1)
    for place, content in enumerate(contents):
        calls = [
            (number, part)
            for number, part in enumerate(list_parts(content))
            if get_field(part, "functionCall") is not None
        ]
        if content.get("role") == "model" and calls and place > start and read_signature(calls[0][1]) is None:
            number, part = calls[0]
            name = as_object(get_field(part, "functionCall")).get("name")
            rule = MISSING_VERTEX if is_cloud else MISSING
            yield rule.broken(f"contents[{place}].parts[{number}]", name=name, position=place + 1)


def _starts_turn(content: Wire) -> bool:
    if content.get("role") == "model":
        return False
    return not all(get_field(part, "functionResponse") is not None for part in list_parts(content))


# --- settings ---------------------------------------------------------------------------------------------------------


def _check_thinking(body: Wire, target: Target, *, is_cloud: bool) -> Iterator[BrokenRule]:
    rule = target.rule
    path = "generationConfig.thinkingConfig"
    config = as_object(get_field(as_object(get_field(body, "generationConfig")), "thinkingConfig"))
    budget, level = get_field(config, "thinkingBudget"), get_field(config, "thinkingLevel")
    if budget is not None and level is not None:
        yield BOTH.broken(path)
    if rule.thinking == "never" and (level is not None or budget):
        yield NOT_ENABLED.broken(path, model=target.model)
        return
    if budget == 0 and rule.refuses_zero_budget:
        yield ALWAYS_THINKS.broken(f"{path}.thinkingBudget")
    if rule.budget is not None and isinstance(budget, int) and budget not in (-1, 0):
        least, most = rule.budget
        if budget < least or (most is not None and budget > most):
            yield BUDGET_RANGE.broken(f"{path}.thinkingBudget", budget=budget, least=least, most=most)
    if level is None:
        return
    if target.facts.ask_by != "thinking_level" or rule.efforts == ():
        yield LEVEL_UNSUPPORTED.broken(f"{path}.thinkingLevel")
    elif rule.efforts is not None and str(level).lower() not in rule.efforts:
        words = LEVEL_VALUE_VERTEX if is_cloud else LEVEL_VALUE
        yield words.broken(f"{path}.thinkingLevel", level=str(level).upper())
