"""Facts from refusals change the target: those of the process, and those that messages carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from asides.history.document import from_document, to_document
from asides.providers.find import find_target
from asides.providers.learned_rules import forget, recall, remember
from asides.providers.provider import Target
from asides.providers.quirks import NO_RESTRICTIONS, Restrictions
from asides.providers.settle import settle
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


def settle_known(at: Target, messages: Sequence[Message] = ()) -> Target:
    return settle(at, learned=recall(at, messages))


def test_nothing_learned_leaves_the_target_alone() -> None:
    at = target()
    assert settle_known(at, (answer(),)) is at


def test_the_process_remembers_for_the_address_the_account_and_the_model() -> None:
    remember(fact(efforts=("low",)))
    at = target()
    assert settle_known(at).rule.efforts == ("low",)
    assert settle_known(target("b")).rule.efforts is None
    assert settle_known(msgspec.structs.replace(at, model="m-2")).rule.efforts is None
    assert settle_known(msgspec.structs.replace(at, base_url="http://localhost:2/v1")).rule.efforts is None
    assert settle_known(msgspec.structs.replace(at, chosen_dialect="openai_responses")).rule.efforts is None


def test_messages_remember_also_when_they_were_saved() -> None:
    saved = to_document([answer(fact(efforts=("low", "high"), replay="never"))])
    messages = from_document(saved).messages
    changed = settle_known(target(), messages)
    assert changed.rule.efforts == ("low", "high")
    assert changed.provider.replay_rule("m-1").when == "never"


def test_refused_seals_add_up() -> None:
    at = target()
    facts = [msgspec.structs.replace(fact(), refused=(digest,)) for digest in ("x", "y")]
    assert settle_known(at, [answer(each) for each in facts]).refused == {"x", "y"}
    once = settle(at, learned=facts[:1])
    assert settle(once, learned=facts[:1]) is once
    assert settle(once, learned=facts[1:]).refused == {"x", "y"}


def test_restrictions_are_learned_and_leave_the_row_alone() -> None:
    at = target()
    facts = (fact(stores=False), fact(message_rules=["alternate"]), fact(message_rules=["filled"]), fact(item_ids="no"))
    changed = settle(at, learned=facts)
    assert changed.restrictions == Restrictions(stores=False, message_rules=("alternate", "filled"))
    assert (changed.rule, changed.provider) == (at.rule, at.provider)
    assert at.restrictions == NO_RESTRICTIONS


@pytest.mark.parametrize(
    "changes",
    [{"efforts": ("enormous",)}, {"launcher": "os:system"}, {"auth": "nothing"}, {"path": "/elsewhere"}, {"no": 1}],
)
def test_an_edited_file_changes_nothing_else(changes: dict[str, object]) -> None:
    at = target()
    changed = settle_known(at, (answer(fact(**changes)),))
    assert (changed.rule, changed.provider) == (at.rule, at.provider)


def test_memory_is_bounded() -> None:
    for number in range(3000):
        remember(msgspec.structs.replace(fact(), account=str(number)))
        remember(msgspec.structs.replace(fact(), refused=(str(number),)))
    assert len(settle_known(target()).refused) == 1024
    # They are one fact, and push no other out.
    assert len(settle_known(target()).learned) == 1
