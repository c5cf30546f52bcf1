"""The law of the words: what a rule says is classified as the rule's own kind, at every dialect and host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from asides.dialects import DIALECTS
from asides.dialects.rulebook import BrokenRule, Rule, find_rulebook
from asides.values.rejections import RejectionKind
from asides_stage.stage.rules.openai_chat import error_bodies
from tests.providers.refusal_bodies import classify

_PLACES = {"anthropic": "messages.1.content.0", "bedrock": "messages.1.content.0"}
"""Dialects whose words have a whole path as their place. The others number a message."""

SAMPLES: dict[str, tuple[str, ...]] = {
    "before": ("tool", "high"),
    "beta": ("", " (with the beta header)"),
    "block": ("0",),
    "budget": ("100",),
    "call": ("call_1",),
    "cause": ("", " The tools differ."),
    "choice": ("required", "specified"),
    "content": ("1",),
    "count": ("2000000",),
    "default": ("1",),
    "effort": ("minimal", "xhigh"),
    "field": ("signature", "data"),
    "found": ("tool_use", "text"),
    "id": ("toolu_1", "call_1"),
    "ids": ("toolu_1", "call_1, call_2"),
    "key": ("text",),
    "leader": ("rs_1",),
    "least": ("128",),
    "length": ("70",),
    "level": ("MINIMAL",),
    "levels": ("low, medium, high",),
    "limit": ("200000", "1"),
    "max_tokens": ("8192",),
    "message": ("messages.1",),
    "missing": ("at",),
    "model": ("grok-4", "claude-haiku-4-5", "qwen3-thinking", "grok-4-fast-reasoning"),
    "most": ("32768",),
    "name": ("look",),
    "next": ("2",),
    "number": ("0",),
    "or_adaptive": ("", " or adaptive"),
    "param": ("messages[1].content",),
    "part": ("0",),
    "place": ("1",),
    "position": ("2",),
    "prefix": ("rs",),
    "role": ("user", "assistant"),
    "shown": ("gAAA...wXBV",),
    "tokens": ("210000",),
    "type": ("thinking",),
    "value": ("minimal", "0.5"),
    "values": ("low, high", "`low`, `medium`, or `high`", "'none', 'low', 'medium', 'high', and 'xhigh'"),
}
"""Values of the parts of a text that vary."""

SAMPLES_OF_KIND: dict[tuple[RejectionKind | None, str], tuple[str, ...]] = {
    ("binding_control_unavailable", "type"): ("", ".adaptive", ".enabled"),
    ("budget_out_of_range", "name"): ("thinking_budget",),
    ("effort_thinking_conflict", "before"): ("high",),
    ("effort_unsupported_param", "name"): ("effort",),
    ("encrypted_reasoning_invalid", "name"): ("rs_1",),
    ("reasoning_content_nonempty", "length"): ("1",),
    ("reasoning_field_rejected", "name"): ("reasoning_content", "reasoning_details", "reasoning", "thinking"),
    ("item_not_persisted", "name"): ("rs_1", "msg_1", "fc_1"),
    ("previous_response_missing", "name"): ("resp_1",),
    ("reasoning_item_missing", "type"): ("message", "function_call"),
    ("reasoning_item_missing", "name"): ("msg_1", "fc_1"),
    ("reasoning_item_id_invalid", "name"): ("abc", "msg_1"),
    ("reasoning_item_duplicate", "name"): ("rs_1",),
    ("reasoning_item_orphaned", "name"): ("rs_1",),
    ("role_alternation", "before"): ("1",),
    ("sampling_unsupported", "name"): ("temperature", "top_p", "presencePenalty", "frequencyPenalty", "stop"),
    ("sampling_unsupported", "value"): ("0.5", "2"),
    ("tool_turn_order", "before"): ("tool",),
    ("tool_turn_order", "role"): ("user",),
    ("sampling_with_thinking", "name"): ("temperature", "top_p"),
    ("sampling_with_thinking", "value"): ("1", "0.6", "0.95"),
    ("thinking_mode_unsupported", "type"): ("enabled", "auto"),
    ("thinking_mode_unsupported", "value"): ("enabled", "auto"),
    ("thought_signature_invalid", "value"): ("%%%",),
    ("unknown_param", "field"): ("top_a", "thinking.enabled.depth", "messages.1.content.0.text.index"),
    ("unknown_param", "name"): ("thinking", "reasoning", "top_k", "enable_thinking"),
    ("unknown_param", "type"): ("bool", "string"),
    (None, "name"): ("temperature",),
    (None, "type"): ("redacted_thinking", "thinking"),
    (None, "value"): ("2.5",),
}

SAMPLES_OF_DIALECT: dict[tuple[str, RejectionKind | None, str], tuple[str, ...]] = {
    ("anthropic", "sampling_unsupported", "name"): ("temperature", "top_p", "top_k"),
    ("anthropic", "thinking_signature_missing", "field"): ("signature",),
    ("ollama", None, "role"): ("function", "developer"),
    ("openai_chat", "system_position", "role"): ("system", "developer"),
}

TOGETHER: dict[tuple[str, RejectionKind | None], dict[str, str]] = {
    ("anthropic", "thinking_signature_missing"): {"type": "redacted_thinking", "field": "data"},
    ("anthropic", "thinking_signature_invalid"): {"type": "redacted_thinking", "field": "data"},
    ("anthropic", "thinking_prefix_mismatch"): {"type": "redacted_thinking", "field": "data"},
}
"""Values that only occur together."""

_TOP_K = "a field that other hosts have, and a sampling setting: both repairs leave it out"
JUDGED: dict[tuple[str, str, str | None], tuple[RejectionKind | None, str]] = {
    ("gemini_interactions", "Request contains an invalid argument.", None): (
        "opaque_provider_error",
        "the server gives no reason: the repairs of refusals without one leave foreign state out",
    ),
    ("ollama", "invalid role: developer", None): (
        "system_position",
        "of the unknown roles, this one has a repair: it is sent as system",
    ),
    ("openai_chat", "Extra inputs are not permitted", "top_k"): ("sampling_unsupported", _TOP_K),
    ("openai_chat", "property 'top_k' is unsupported", None): ("sampling_unsupported", _TOP_K),
    ("openai_chat", "top_k: property 'top_k' is unsupported", None): ("sampling_unsupported", _TOP_K),
}
"""By dialect, words and param: the kind that is found instead, and the reason why that is right."""


class Said(NamedTuple):
    """A rule with its words filled in."""

    dialect: str
    rule: Rule
    text: str
    param: str | None

    def classify(self) -> RejectionKind | None:
        """The kind that is found for the words."""
        return classify(message=self.text, code=self.rule.code, param=self.param, status=self.rule.status)


def fill(dialect: str, rule: Rule) -> Iterator[Said]:
    """Yield the words of a rule with every value of every part that varies, the others having their first."""
    names = set(re.findall(r"(?<!\{)\{(\w+)\}(?!\})", rule.text + (rule.param or "")))
    samples = {
        name: SAMPLES_OF_DIALECT.get((dialect, rule.kind, name))
        or SAMPLES_OF_KIND.get((rule.kind, name), SAMPLES[name])
        for name in names
    }
    if "place" in names:
        samples["place"] = (_PLACES.get(dialect, "1"),)
    first = {name: values[0] for name, values in samples.items()}
    variants = [first, *({**first, name: value} for name, values in samples.items() for value in values[1:])]
    if together := TOGETHER.get((dialect, rule.kind)):
        variants.append({**first, **together})
    for values in variants:
        broken = rule.broken(**values)
        yield Said(dialect, rule, broken.text, broken.param)


def list_said() -> Iterator[Said]:
    for dialect in DIALECTS:
        rulebook = find_rulebook(dialect)
        assert rulebook is not None
        for rule in rulebook.RULES:
            yield from fill(dialect, rule)


SAID = list(dict.fromkeys(list_said()))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_words_of_every_rule_are_classified_as_its_kind(dialect: str) -> None:
    wrong: list[tuple[object, ...]] = []
    for said in SAID:
        expected = JUDGED.get((dialect, said.text, said.param), (said.rule.kind, ""))[0]
        if said.dialect == dialect and (found := said.classify()) != expected:
            wrong.append((said.text, said.param, expected, found))
    assert wrong == []


def test_every_judged_text_is_one_of_a_rule_and_has_a_reason() -> None:
    said = {(said.dialect, said.text, said.param): said for said in SAID}
    for key, (kind, reason) in JUDGED.items():
        assert said[key].rule.kind != kind, key
        assert reason, key


WRITERS = {
    name: write
    for name, write in vars(error_bodies).items()
    if name.startswith("write_") and name not in ("write_nothing", "write_midstream")
}
"""The forms of errors at hosts of chat completions, without the one that has no words and the one in a stream."""


@pytest.mark.parametrize("name", WRITERS)
def test_the_words_are_found_in_every_form_of_error(name: str) -> None:
    wrong: list[tuple[object, ...]] = []
    for said in SAID:
        # With status 422 the words are in the param, which most forms leave out.
        if said.dialect != "openai_chat" or (said.rule.status == 422 and name != "write_validated"):
            continue
        expected = JUDGED.get(("openai_chat", said.text, said.param), (said.rule.kind, ""))[0]
        body = WRITERS[name](BrokenRule(said.rule, said.text, param=said.param))
        if (found := classify(body, status=said.rule.status)) != expected:
            wrong.append((said.text, expected, found))
    assert wrong == []
