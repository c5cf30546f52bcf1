"""A summary travels in an item of the client, and comes back as words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.history.summary import make_summary_message
from asides.providers.find import find_target
from asides.relay.state.relay_keys import RelayKeys, TenantKeys
from asides.relay.state.sealed_summary import (
    OpenedMessages,
    drop_foreign_compactions,
    has_foreign_compaction,
    open_summaries,
    seal_summary,
    split_trigger,
    takes_compactions,
)
from asides.relay.vault.memory_vault import MemoryVault
from asides.values.messages import Message, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Text, UnknownPart
from tests.relay.relayed_turns import KEYS, run_with_store

ADA = KEYS.find_tenant("ada")
THEIRS = UnknownPart('{"type":"compaction","encrypted_content":"gAAAA"}')
TRIGGER = UnknownPart('{"type":"compaction_trigger"}')


def open_all(
    messages: tuple[Message, ...], keys: TenantKeys = ADA, store: MemoryVault | None = None
) -> tuple[OpenedMessages, int]:
    flow: Any = open_summaries(messages, keys, has_store=store is not None)
    return run_with_store(flow, store)


def test_there_and_back_between_other_parts() -> None:
    sealed = seal_summary("Ada looked.", ADA, "cmp_1", has_store=True)
    assert sealed.record is None
    item = msgspec.json.decode(sealed.item.json)
    assert (item["type"], item["id"]) == ("compaction", "cmp_1")
    assert "Ada" not in sealed.item.json
    around = (user("first"), Message("assistant", (Text("a"), sealed.item, Text("b"))), user("last"))
    opened, reads = open_all(around)
    assert reads == 0
    assert opened.is_changed
    assert opened.messages == (
        user("first"),
        assistant("a"),
        make_summary_message("Ada looked."),
        assistant("b"),
        user("last"),
    )


def test_a_long_one_is_in_the_store() -> None:
    long = "word " * 10_000
    sealed = seal_summary(long, ADA, "cmp_1", has_store=True)
    assert sealed.record is not None
    assert len(sealed.item.json) < 1000
    store = MemoryVault()
    store.write(ADA.tenant, sealed.record)
    history = (Message("assistant", (sealed.item,)),)
    opened, reads = open_all(history, store=store)
    assert (opened.messages, reads) == ((make_summary_message(long),), 1)
    lost, _ = open_all(history, store=MemoryVault())
    assert [notice.code for notice in lost.notices] == ["compaction_unreadable"]
    assert "cannot be read" in lost.messages[0].text
    assert seal_summary(long, ADA, "cmp_1", has_store=False).record is None


@pytest.mark.parametrize("keys", [KEYS.find_tenant("bob"), RelayKeys((b"z" * 32,)).find_tenant("ada")])
def test_nobody_else_reads_it(keys: TenantKeys) -> None:
    sealed = seal_summary("Ada looked.", ADA, "cmp_1", has_store=True)
    opened, _ = open_all((Message("assistant", (sealed.item,)),), keys)
    assert "Ada" not in opened.messages[0].text
    assert opened.is_changed
    assert [notice.code for notice in opened.notices] == ["compaction_unreadable"]


def test_the_item_of_another_maker_stays_until_a_target_is_known() -> None:
    history = (Message("assistant", (THEIRS, Text("a"))), user("go on"))
    opened, reads = open_all(history)
    assert (opened.messages, opened.is_changed, reads) == (history, False, 0)
    assert has_foreign_compaction(history)
    notices: list[Notice] = []
    dropped = drop_foreign_compactions(history, notices)
    assert [message.role for message in dropped] == ["user", "assistant", "user"]
    assert not has_foreign_compaction(dropped)
    assert [notice.code for notice in notices] == ["compaction_unreadable"]
    assert drop_foreign_compactions((user("hi"),), notices) == (user("hi"),)


def test_only_the_last_item_asks_for_a_compaction() -> None:
    asked = (user("hi"), Message("assistant", (Text("a"), TRIGGER)))
    assert split_trigger(asked) == ((user("hi"), assistant("a")), True)
    assert split_trigger((user("hi"), Message("assistant", (TRIGGER,)))) == ((user("hi"),), True)
    for other in ((), (user("compaction_trigger"),), (*asked, user("hi")), (Message("assistant", (THEIRS,)),)):
        assert split_trigger(other) == (other, False)


def test_who_takes_such_items() -> None:
    assert takes_compactions(find_target("openai-responses:gpt-5.2"))
    assert not takes_compactions(find_target("anthropic:claude-opus-4-5"))
    assert not takes_compactions(find_target("xai:grok-4"))
