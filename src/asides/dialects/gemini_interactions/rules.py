"""What the servers of Interactions refuse: steps without a type, calls and results that do not fit, unsigned thoughts,
levels of thinking. The server alone can check what it has stored, and what a signature was made for; the words for
that are here.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.dialects.gemini.rules import LEVEL_UNSUPPORTED, LEVEL_VALUE, NOT_ENABLED
from asides.dialects.gemini_interactions.wire import SERVER_TOOLS
from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest, as_object, as_objects
from asides.providers.provider import Target

_INVALID = "Request contains an invalid argument."

UNKNOWN_PREVIOUS = Rule(
    kind="previous_response_missing",
    text="Invalid turn token: {id}",
    since="2026-01-19",
    source="stozo04/Interactive-Video-Character docs/archive/bugs/stale-interaction-id-on-session-restore",
    code="invalid_request",
    param="previous_interaction_id",
)
OLD_SCHEMA = Rule(
    kind=None,
    text=(
        "The legacy Interactions API schema is no longer supported. Please upgrade your client SDK to Python >= 2.0.0 "
        "or JavaScript/TypeScript >= 2.0.0 to adopt the new 'steps' schema. For details and migration examples, see: "
        "https://ai.google.dev/gemini-api/docs/interactions-breaking-changes-may-2026"
    ),
    since="2026-06-12",
    source="allenhutchison/gemini-cli-deep-research#73",
    code="invalid_request",
    param="input",
)
UNSIGNED_THOUGHT = Rule(
    kind="thought_signature_missing",
    text=_INVALID,
    since="2026-06-25",
    source="googleapis/js-genai#1735: a thought step with an empty signature; unsure: accepted again since 2026-07-04",
    code="invalid_request",
)
UNSIGNED_CALL = Rule(
    kind="thought_signature_missing",
    text=_INVALID,
    since="2026-03-15",
    source="earendil-works/pi#2172: a call in a turn without a signed thought; unsure: which models",
    code="invalid_request",
)
INVALID_SIGNATURE = Rule(
    kind="thought_signature_invalid",
    text="Thought signature is not valid",
    since="2026-11-18",
    source="as generateContent's; unsure: the words here",
    code="invalid_request",
)
RESULT_WITHOUT_CALL = Rule(
    kind="tool_result_orphaned",
    text="No function call found for the function result with call_id '{id}'.",
    since="2026-11-18",
    source="google-genai 3.3 types: call_id matches the id of a call; unsure: the words",
    code="invalid_request",
)
CALL_WITHOUT_RESULT = Rule(
    kind="tool_result_missing",
    text="Please ensure that every function call has a function result: '{id}' has none.",
    since="2026-11-18",
    source="as generateContent's; unsure: the words",
    code="invalid_request",
)
NOT_STORED = Rule(
    kind=None,
    text="store=false cannot be combined with background=true.",
    since="2026-06",
    source="ai.google.dev gemini-api/docs/interactions; unsure: the words",
    code="invalid_request",
    param="store",
)
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))

_OF_MODEL = ("thought", "model_output", "function_call", *SERVER_TOOLS)


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks at this target, in the order in which the server checks."""
    body = request.body
    steps = as_objects(body.get("input"))
    if body.get("store") is False and body.get("background") is True:
        yield NOT_STORED.broken("store")
    yield from _check_schema(steps)
    yield from _check_level(body, target)
    yield from _check_calls(steps, continues=bool(body.get("previous_interaction_id")))
    yield from _check_thoughts(steps, target)


def list_signatures(steps: list[Wire]) -> Iterator[tuple[str, str]]:
    """Yield the place and the signature of each step that has one."""
    for place, step in enumerate(steps):
        if isinstance(signature := step.get("signature"), str) and signature:
            yield f"input[{place}].signature", signature


def _check_schema(steps: list[Wire]) -> Iterator[BrokenRule]:
    for place, step in enumerate(steps):
        if "role" in step and "type" not in step:
            yield OLD_SCHEMA.broken(f"input[{place}]")


def _check_level(body: Wire, target: Target) -> Iterator[BrokenRule]:
    level, rule = as_object(body.get("generation_config")).get("thinking_level"), target.rule
    path = "generation_config.thinking_level"
    if level is None:
        return
    if rule.thinking == "never":
        yield NOT_ENABLED.broken(path, model=target.model)
    elif rule.efforts == ():
        yield LEVEL_UNSUPPORTED.broken(path)
    elif rule.efforts is not None and level not in rule.efforts:
        yield LEVEL_VALUE.broken(path, level=str(level).upper())


def list_results(steps: list[Wire]) -> Iterator[tuple[int, Wire]]:
    """Yield the results of calls with the places of their steps: steps of their own, or contents of the user."""
    for place, step in enumerate(steps):
        if step.get("type") == "function_result":
            yield place, step
        elif step.get("type") == "user_input":
            contents = as_objects(step.get("content"))
            yield from ((place, content) for content in contents if content.get("type") == "function_result")


def _check_calls(steps: list[Wire], *, continues: bool) -> Iterator[BrokenRule]:
    """Check that each result follows its call, and that each call has one. A stored call is not in the request."""
    calls = {step.get("id"): place for place, step in enumerate(steps) if step.get("type") == "function_call"}
    answered = set[object]()
    for place, result in list_results(steps):
        call_id = result.get("call_id")
        answered.add(call_id)
        if not continues and calls.get(call_id, place) >= place:
            yield RESULT_WITHOUT_CALL.broken(f"input[{place}]", id=call_id)
    for call_id, place in calls.items():
        if call_id not in answered:
            yield CALL_WITHOUT_RESULT.broken(f"input[{place}]", id=call_id)


def _check_thoughts(steps: list[Wire], target: Target) -> Iterator[BrokenRule]:
    """Check that thoughts are signed, and that a signed thought comes before the calls of each turn of the model."""
    is_signed = False
    for place, step in enumerate(steps):
        kind = step.get("type")
        if kind not in _OF_MODEL:
            is_signed = False
        elif kind == "thought" and not step.get("signature"):
            yield UNSIGNED_THOUGHT.broken(f"input[{place}]")
        elif kind == "function_call" and not is_signed and not step.get("signature") and target.rule.signed_calls:
            yield UNSIGNED_CALL.broken(f"input[{place}]")
            is_signed = True
        is_signed = is_signed or bool(step.get("signature"))
