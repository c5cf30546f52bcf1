"""The law of the rulebook: the rules of a dialect accept what its encoder writes, for every row and every model, and
agree with what real servers accepted and refused."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import DIALECTS
from asides.dialects.rulebook import BrokenRule, WireRequest, find_rulebook
from asides.flows.call import encode_request
from asides.history.plan import OnConflict
from asides.providers.endpoint import CHAT, RESPONSES, EndpointRequest, choose_endpoint
from asides.providers.find import find_row, find_rule, list_providers, plain_row
from asides.providers.provider import Provider, Target
from asides.providers.quirks import fits_glob
from asides.providers.settle import settle
from asides.values.errors import ConfigError, InvalidThinking, Unsupported
from asides.values.messages import Message, Prompt, Sampling, system, user
from asides.values.parts import Part, ToolCall, ToolResult
from asides.values.thinking import EFFORTS, Origin, Seal, Thinking, Thought
from tests.laws.conversations import Turn, changed, continued, conversations
from tests.laws.theatre import TOOLS

DIALECTS_WITH_RULES = tuple(name for name in DIALECTS if find_rulebook(name) is not None)
ELSEWHERE = Origin("elsewhere", "https://elsewhere.example/v1", "other-model")
SEALED = "c2VhbGVk"


# --- targets ----------------------------------------------------------------------------------------------------------

# Models of many makers: most rows have no rule for some of them.
COMMON_MODELS = (
    "any-model",
    "anthropic/claude-sonnet-4.5",
    "deepseek/deepseek-v4",
    "deepseek/deepseek-v3.2",
    "google/gemma-3-27b",
    "mistralai/mistral-7b-instruct",
    "moonshotai/kimi-k2.5",
    "moonshotai/kimi-k3",
    "openai/gpt-oss-120b",
    "openai/gpt-5-mini",
    "qwen/qwen3-32b",
    "qwen/qwen3.8-32b",
    "x-ai/grok-4",
    "z-ai/glm-4.6",
)


def name_model(glob: str) -> str:
    """Return a name that a pattern of models matches."""
    name = re.sub(r"\[(.)[^\]]*\]", r"\1", glob.replace("[!2]", "x"))
    return next((name.replace("*", fill) for fill in ("", "-x") if fits_glob(name.replace("*", fill), glob)), "")


def list_targets(provider: Provider, dialect: str) -> Iterator[Target]:
    """Yield a target for each rule of a row in this dialect, as a call that names it has."""
    address = re.sub(r"\$[A-Z_|]+", "x", provider.base_url) or "http://127.0.0.1:9/v1"
    row = provider.with_dialect(dialect)
    if row is None:
        return
    names = [*(name_model(rule.models) for rule in row.models), *COMMON_MODELS]
    endpoint = {CHAT: "chat", RESPONSES: "responses"}.get(dialect) if provider.also else None
    for name in dict.fromkeys(name or "any-model" for name in names):
        found = Target(provider, name, address, find_rule(provider, name, foreign=False))
        try:
            choose_endpoint(found, EndpointRequest(endpoint=endpoint))
        except ConfigError:
            continue  # It exists only on the other endpoint, which has the same row.
        yield settle(found, dialect=dialect)


TARGETS = {
    dialect: [target for provider in list_providers() for target in list_targets(provider, dialect)]
    for dialect in DIALECTS_WITH_RULES
}


# --- prompts ----------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A conversation and the settings of its last request."""

    turns: list[Turn]
    fields: dict[str, Any]
    foreign: tuple[bool, ...]
    """For each turn, whether another host made it."""
    late_system: int | None = None
    """Before which message instructions stand; None: only in front."""

    def prompt(self, target: Target) -> Prompt:
        """Return the request, with thoughts of this target and of others."""
        history: tuple[Message, ...] = ()
        for number, turn in enumerate(self.turns):
            history = continued(changed(history, turn), turn, number)
            is_foreign = self.foreign[number % len(self.foreign)] or target.rule.thinking == "never"
            origin = ELSEWHERE if is_foreign else target.origin
            if number < len(self.turns) - 1 and turn.reply.parts:
                parts = tuple(seal_part(part, origin, target, number) for part in turn.reply.parts)
                history = (*history, Message("assistant", parts))
        if self.late_system is not None:
            place = self.late_system % (len(history) + 1)
            while place < len(history) and history[place].role == "tool":
                place += 1
            history = (*history[:place], system("Now be long."), *history[place:], user("so?"))
        prompt = Prompt(history or (user("go"),), **self.fields)
        if target.rule.thinking != "unknown":
            return prompt
        # The settings for an unknown model are sent as asked, with a notice; only its messages are fitted.
        free = self.fields["tool_choice"] if self.fields["tool_choice"] in (None, "auto", "none") else None
        return msgspec.structs.replace(prompt, thinking=Thinking(), sampling=Sampling(), stop=(), tool_choice=free)


def seal_part(part: Part, origin: Origin, target: Target, number: int) -> Part:
    """Return a part as a reply of this origin has it, with the seals that the target's dialect has."""
    match part:
        case Thought():
            return _seal_thought(part, origin, target, number)
        case ToolCall() if target.dialect == "gemini":
            return msgspec.structs.replace(part, seals=(Seal("thought_signature", SEALED, origin),))
        case ToolCall() if target.dialect == "openai_chat" and target.rule.signed_calls:
            entry = json.dumps({"google": {"thought_signature": SEALED}})
            return msgspec.structs.replace(part, seals=(Seal("thought_signature", SEALED, origin, entry),))
        case _:
            return part


def _seal_thought(thought: Thought, origin: Origin, target: Target, number: int) -> Part:
    facts = target.facts
    own = tuple(msgspec.structs.replace(seal, origin=origin) for seal in thought.seals)
    changes: dict[str, Any] = {"source": "block"}
    match target.dialect:
        case "anthropic" | "gemini":
            kind = "signature" if target.dialect == "anthropic" else "thought_signature"
            changes["seals"] = own or (Seal(kind, SEALED, origin),)
        case "bedrock":
            # Of Bedrock's models, only Claude signs.
            signs = "claude_rules" in facts.enforces
            changes["seals"] = own or ((Seal("signature", SEALED, origin),) if signs else ())
        case "openai_responses":
            changes = _make_item(thought, origin, target, number)
        case "openai_chat" if facts.replay_as == "details":
            detail = {"type": "reasoning.text", "text": thought.text, "signature": SEALED, "index": 0}
            seal = Seal("reasoning_details", SEALED, origin, json.dumps(detail))
            changes |= {"source": "field", "via": "reasoning_details", "seals": (seal,)}
        case "openai_chat" if facts.replay_as == "content_list":
            changes |= {"via": "content", "seals": (Seal("signature", SEALED, origin),)}
        case "openai_chat" if facts.replay_as == "tags":
            changes |= {"source": "tags", "seals": ()}
        case "openai_chat" | "ollama":
            field = target.quirks.replay_field or facts.thinking_in[0]
            changes |= {"source": "field", "via": field, "seals": ()}
        case _:
            changes["seals"] = ()
    return msgspec.structs.replace(thought, origin=origin, **changes)


def _make_item(thought: Thought, origin: Origin, target: Target, number: int) -> dict[str, Any]:
    """Return the fields of a thought that came as an item of Responses. Raw thinking is never hidden."""
    is_raw = target.rule.kind == "raw"
    text = thought.text or ("hm" if is_raw else "")
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}_{len(text)}_{text[-12:].strip()}", "summary": []}
    if is_raw:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    elif text:
        item["summary"] = [{"type": "summary_text", "text": text}]
    value = SEALED if target.quirks.encrypted_reasoning else ""
    if value:
        item["encrypted_content"] = value
    return {
        "text": text,
        "source": "responses_raw" if is_raw else "responses_summary",
        "kind": "raw" if is_raw else "summary" if text else "hidden",
        "seals": (Seal("encrypted" if value else "entry", value, origin, json.dumps(item)),),
    }


THINKING = st.one_of(
    st.just(Thinking()),
    st.builds(Thinking, mode=st.sampled_from(["on", "off", "auto", "between_tools"])),
    st.builds(Thinking, effort=st.sampled_from(EFFORTS)),
    st.builds(Thinking, budget=st.sampled_from([1, 1024, 3000, 50_000])),
    st.builds(Thinking, effort=st.sampled_from(EFFORTS), show=st.just("none")),
)
SAMPLING = st.one_of(
    st.just(Sampling()),
    st.builds(
        Sampling,
        temperature=st.sampled_from([None, 0.5, 1.0]),
        top_p=st.sampled_from([None, 0.5, 0.99]),
        top_k=st.sampled_from([None, 5]),
        min_p=st.sampled_from([None, None, 0.1]),
        presence_penalty=st.sampled_from([None, None, 0.5]),
        repetition_penalty=st.sampled_from([None, None, 1.1]),
        logit_bias=st.sampled_from([None, None, {"50256": -100.0}]),
        logprobs=st.sampled_from([None, None, True]),
        seed=st.sampled_from([None, 7]),
    ),
)
FIELDS = st.fixed_dictionaries(
    {
        "thinking": THINKING,
        "sampling": SAMPLING,
        "system": st.sampled_from([None, "", "Be brief."]),
        "tools": st.sampled_from([tuple(TOOLS), tuple(TOOLS), ()]),
        "tool_choice": st.sampled_from([None, None, "auto", "none", "required", "look"]),
        "max_tokens": st.sampled_from([None, 100, 4000]),
        "stop": st.sampled_from([(), (), ("END",)]),
        "stream": st.booleans(),
        "cache": st.booleans(),
    }
)
ASKED = st.builds(
    Asked,
    conversations(),
    FIELDS,
    st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
    st.none() | st.none() | st.integers(0, 9),
)


def find_broken(prompt: Prompt, target: Target, on_conflict: OnConflict) -> list[BrokenRule]:
    """Return the rules that the request of a prompt breaks."""
    request = encode_request(prompt, target, on_conflict=on_conflict).request
    headers = {name.lower(): value for name, value in request.headers.items()}
    wire = WireRequest(msgspec.json.decode(request.body), headers, urlsplit(request.url).path)
    rules = find_rulebook(target.dialect)
    assert rules is not None
    return list(rules.check(wire, target))


def is_documented(broken: BrokenRule, target: Target) -> bool:
    """Return whether nothing can prevent this refusal: the caller names chat for a model that takes tools only on
    Responses, and cannot stop thinking. The refusal moves the call there (flows/heal). Or the caller gives tools to a
    model that has none: only a history with tools is repaired.
    """
    rule = target.rule
    if broken.path == "toolConfig" and "no_tools" in target.facts.enforces:
        return True
    needs_responses = rule.tools_need_off and rule.tools_while_thinking is False
    return broken.kind == "effort_tools_endpoint" and target.dialect == CHAT and needs_responses


def check_law(asked: Asked, target: Target, on_conflict: OnConflict) -> None:
    """Assert that the rules accept the request. Only on_conflict="raise" may refuse to send one."""
    try:
        broken = find_broken(asked.prompt(target), target, on_conflict)
    except (InvalidThinking, Unsupported):
        assert on_conflict == "raise"
        return
    found = [
        (target.provider.name, target.model, one.path, one.text) for one in broken if not is_documented(one, target)
    ]
    assert found == []


# Each example asks every so many targets, beginning with another one: all have their turn.
_STRIDES = {CHAT: 40, RESPONSES: 20}


@pytest.mark.parametrize("dialect", DIALECTS_WITH_RULES)
@settings(max_examples=90, deadline=None)
@given(asked=ASKED, start=st.integers(0, 1000), on_conflict=st.sampled_from(["adjust", "adjust", "raise"]))
def test_the_rules_accept_what_the_encoder_writes(
    dialect: str, asked: Asked, start: int, on_conflict: OnConflict
) -> None:
    stride = _STRIDES.get(dialect, 5)
    for target in TARGETS[dialect][start % stride :: stride]:
        check_law(asked, target, on_conflict)


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", DIALECTS_WITH_RULES)
@settings(max_examples=300, deadline=None)
@given(asked=ASKED, on_conflict=st.sampled_from(["adjust", "adjust", "raise"]))
def test_the_rules_accept_what_the_encoder_writes_for_every_target(
    dialect: str, asked: Asked, on_conflict: OnConflict
) -> None:
    for target in TARGETS[dialect]:
        check_law(asked, target, on_conflict)


@pytest.mark.parametrize("dialect", DIALECTS_WITH_RULES)
@pytest.mark.parametrize("raw", ['{"at":', "[1]", "null", '"x"', "", '{"at":1} and more'])
def test_arguments_that_are_not_an_object_are_sent_in_a_form_that_every_host_accepts(dialect: str, raw: str) -> None:
    history = (
        user("go"),
        Message("assistant", (ToolCall("call00001", "look", raw_arguments=raw),)),
        Message("tool", (ToolResult("call00001", "blue", "look"),)),
    )
    prompt = Prompt(history, tools=tuple(TOOLS), thinking=Thinking(mode="off"))
    broken = [
        (target.provider.name, target.model)
        for target in TARGETS[dialect]
        if any(one.kind == "tool_arguments_invalid" for one in find_broken(prompt, target, "adjust"))
    ]
    assert broken == []


@settings(max_examples=60, deadline=None)
@given(asked=ASKED, start=st.integers(0, 2))
def test_the_endpoint_that_a_call_chooses_accepts_its_request(asked: Asked, start: int) -> None:
    """Without the caller's choice there is no exception: tools go where the model takes them."""
    for provider in list_providers():
        if not provider.chooses:
            continue
        for name in [name_model(rule.models) for rule in provider.models][start::3]:
            # An address of Azure: the row has none of its own.
            address = provider.base_url or "https://ours.openai.azure.com/openai/v1"
            found = Target(provider, name, address, find_rule(provider, name, foreign=False))
            call = EndpointRequest(thinking=asked.fields["thinking"].wanted, tools=bool(asked.fields["tools"]))
            target = settle(found, dialect=choose_endpoint(found, call).dialect)
            assert [(name, one.text) for one in find_broken(asked.prompt(target), target, "adjust")] == []


# --- requests that real servers answered ------------------------------------------------------------------------------

RECORDED = Path(__file__).parents[3] / "shared" / "recordings" / "requests" / "accepted.jsonl.xz"
PATH_MODEL = re.compile(r"/model/([^/]+)/|/models/([^/:]+):|/deployments/([^/]+)/")
# Before the names of some models came to mean their next generation. The recordings have no dates.
EARLIER = date(2026, 8, 1)
# Refusals that are not about the history or the settings, or whose reason a request does not show.
OTHER_REASONS = (
    *("on-demand throughput", "API key", "does not exist", "exceeds the available context", "Input Tokens Exceeded"),
    *("extraneous key [toolResult]", "'properties'", "Invalid schema for function"),
    # Values out of their range or of another type, which `Sampling` allows.
    *("decimal above maximum", "decimal below minimum", "must be between", "type must be number"),
)


def read_recorded() -> list[dict[str, Any]]:
    """Return the recorded requests."""
    with lzma.open(RECORDED, "rt") as lines:
        return [row for row in map(json.loads, lines) if row["dialect"] in DIALECTS_WITH_RULES]


def check_recorded(row: dict[str, Any], today: date | None = None) -> list[BrokenRule]:
    """Return the rules that a recorded request breaks at its provider."""
    dialect, body, path = row["dialect"], row["body"], urlsplit(row["url"]).path
    found = find_row(row["provider"], ())
    provider = (found.with_dialect(dialect) if found else None) or plain_row(dialect)
    named = PATH_MODEL.search(path)
    model = str(body.get("model") or (unquote(named[1] or named[2] or named[3]) if named else ""))
    target = Target(provider, model, "http://x", find_rule(provider, model, foreign=True), chosen_dialect=dialect)
    request = WireRequest(body, path=path) if today is None else WireRequest(body, path=path, today=today)
    rules = find_rulebook(dialect)
    assert rules is not None
    return list(rules.check(request, target))


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded requests are not in this clone")
def test_the_rules_find_nothing_wrong_in_requests_that_servers_accepted() -> None:
    accepted = [row for row in read_recorded() if row["status"] == 200]
    broken = [(row["path"], one.text) for row in accepted for one in check_recorded(row)]
    # The recorder replaced the ids of calls.
    assert [(path, text) for path, text in broken if "REDACTED" not in text] == []
    assert len(accepted) > 2000


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded requests are not in this clone")
def test_the_rules_find_what_servers_refused() -> None:
    refused = [
        row
        for row in read_recorded()
        if row["status"] in (400, 422) and not any(reason in row["error"] for reason in OTHER_REASONS)
    ]
    missed = [row["error"] for row in refused if not check_recorded(row) and not check_recorded(row, EARLIER)]
    assert missed == []
    assert len(refused) >= 12
