"""The parts of a history that a refusal means are found by their place, an id, or a piece of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.flows.heal.refused_request import RefusedRequest, find_block, list_placed
from asides.history.plan import encode_plan, plan
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.rejections import Rejection
from asides.values.thinking import Origin, Seal, Thought

BODY = {
    "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{"type": "thinking", "signature": "s"}]},
    ]
}
BLOCK = {"type": "thinking", "signature": "s"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("messages", 1, "content", 0), BLOCK),
        (("messages", 1, "content", 0, "thinking", "signature"), BLOCK),
        (("messages", 2, "member", "content", 1, "member", "reasoningContent"), BLOCK),
        (("messages", 1), BODY["messages"][1]),
        # Of another request: the server behind a router counts otherwise.
        (("messages", 0, "content", 0), None),
        (("messages", 7, "content", 0), None),
        (("messages", "N", "content", "M"), None),
        (("input", 3), None),
        ((), None),
    ],
)
def test_a_path_leads_to_its_block_or_nowhere(path: tuple[str | int, ...], found: Any) -> None:
    assert find_block(BODY, path) == found


def refused(messages: tuple[Message, ...], target: Target, **says: Any) -> RefusedRequest:
    prompt = Prompt(messages, stream=False)
    planned = plan(prompt, target)
    request, _ = encode_plan(planned, target, find_dialect(target.dialect))
    return RefusedRequest(Rejection("thinking_signature_invalid", **says), prompt, planned.prompt, target, request)


def turn(name: str, origin: Origin | None = None) -> tuple[Message, Message]:
    thought = Thought(f"t{name}", source="block", origin=origin, seals=(Seal("signature", name, origin),))
    return user("?"), assistant(thought, "ok")


def names(tokens: Any) -> list[str]:
    return [placed.token.value for placed in tokens]


def test_a_block_is_named_by_its_place() -> None:
    target = find_target("anthropic:claude-opus-4-8")
    case = refused((*turn("s1"), *turn("s2"), user("!")), target, where=(("messages", 3, "content", 0),))
    assert names(case.named) == ["s2"]
    assert names(case.thoughts) == ["s1", "s2"]


def test_what_may_come_from_elsewhere_is_dropped_with_all_that_does() -> None:
    target = msgspec.structs.replace(find_target("anthropic:claude-opus-4-8"), account="acc")
    own, other = target.origin, Origin(target.origin.provider, target.base_url, target.model)
    messages = (*turn("s1", other), *turn("s2", own), *turn("s3", other), *turn("s4", own), user("!"))
    foreign = refused(messages, target, where=(("messages", 1, "content", 0),))
    assert names(foreign.list_same_origin(foreign.named)) == ["s1", "s3"]
    known = refused(messages, target, where=(("messages", 3, "content", 0),))
    assert names(known.list_same_origin(known.named)) == ["s2"]


def test_items_are_named_by_their_ids_and_by_the_ends_of_their_content() -> None:
    target = find_target("openai-responses:gpt-5")

    def item(name: str, content: str) -> tuple[Message, Message]:
        entry = json.dumps({"type": "reasoning", "id": name, "summary": [], "encrypted_content": content})
        return user("?"), assistant(
            Thought("", "hidden", "responses_summary", seals=(Seal("encrypted", content, None, entry),)), "ok"
        )

    messages = (*item("rs_1", "gAAAoneWXBV"), *item("rs_11", "gAAAtwoehIc"), user("!"))
    assert names(refused(messages, target, ids=("rs_1",)).named) == ["gAAAoneWXBV"]
    text = "The encrypted content gAAA...ehIc could not be verified."
    assert names(refused(messages, target, text=text).named) == ["gAAAtwoehIc"]
    assert names(refused(messages, target, text="The encrypted content gAAA... could not").named) == []


def test_every_token_of_the_model_s_turns_has_its_place() -> None:
    placed = list_placed((*turn("s1"), Message("assistant", (Thought("bare"),))))
    assert [(each.message, each.part, type(each.token).__name__) for each in placed] == [
        (1, 0, "Seal"),
        (2, 0, "Thought"),
    ]
