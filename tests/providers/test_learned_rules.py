"""Facts from refusals change the target: those of the process, and those that messages carry."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from asides.history.document import from_document, to_document
from asides.providers.find import find_target
from asides.providers.learned_rules import forget, learn, recall, remember
from asides.providers.provider import Target
from asides.values.learned import Learned
from asides.values.messages import Message
from asides.values.parts import Text


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


def target(account: str = "a") -> Target:
    found = find_target("vllm:m-1", base_url="http://localhost:1/v1", environ={})
    return msgspec.structs.replace(found, account=account)


def fact(**changes: object) -> Learned:
    at = target()
    return Learned("effort_unsupported_value", at.base_url, at.dialect, "a", "m-1", tuple(changes.items()))


def answer(*facts: Learned) -> Message:
    return Message("assistant", (Text("hi"),), learned=facts)


def test_nothing_learned_leaves_the_target_alone() -> None:
    at = target()
    assert recall(at, (answer(),)) is at


def test_the_process_remembers_for_the_address_the_account_and_the_model() -> None:
    remember(fact(efforts=("low",)))
    at = target()
    assert recall(at).rule.efforts == ("low",)
    assert recall(at) is recall(at), "messages are encoded once for each target"
    assert recall(target("b")).rule.efforts is None
    assert recall(msgspec.structs.replace(at, model="m-2")).rule.efforts is None
    assert recall(msgspec.structs.replace(at, base_url="http://localhost:2/v1")).rule.efforts is None
    assert recall(msgspec.structs.replace(at, chosen_dialect="openai_responses")).rule.efforts is None


def test_messages_remember_also_when_they_were_saved() -> None:
    saved = to_document([answer(fact(efforts=("low", "high"), replay="never"))])
    messages = from_document(saved).messages
    changed = recall(target(), messages)
    assert changed.rule.efforts == ("low", "high")
    assert changed.provider.replay_rule("m-1").when == "never"


def test_refused_seals_add_up() -> None:
    at = target()
    facts = [msgspec.structs.replace(fact(), refused=(digest,)) for digest in ("x", "y")]
    assert recall(at, [answer(each) for each in facts]).refused == {"x", "y"}
    assert learn(learn(at, (facts[0],)), (facts[0],)) is learn(at, (facts[0],))


@pytest.mark.parametrize(
    "changes",
    [{"efforts": ("enormous",)}, {"launcher": "os:system"}, {"auth": "nothing"}, {"path": "/elsewhere"}, {"no": 1}],
)
def test_an_edited_file_changes_nothing_else(changes: dict[str, object]) -> None:
    at = target()
    changed = recall(at, (answer(fact(**changes)),))
    assert (changed.rule, changed.provider) == (at.rule, at.provider)


def test_memory_is_bounded() -> None:
    for number in range(3000):
        remember(msgspec.structs.replace(fact(), account=str(number)))
        remember(msgspec.structs.replace(fact(), refused=(str(number),)))
    assert len(recall(target()).refused) <= 64
