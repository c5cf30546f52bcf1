"""Names for conversations that the user gave none."""

from __future__ import annotations

import pytest

from asides.conversations.store.conversation_names import is_unnamed, make_name


@pytest.mark.parametrize("kind", ["last", "ask", "chat"])
def test_a_name_that_was_made_is_known_as_such(kind: str) -> None:
    name = make_name(kind)
    assert is_unnamed(name)
    assert is_unnamed(name, kind)
    assert not is_unnamed(name, "other")


@pytest.mark.parametrize(
    "name", ["", "chat", "last-week", "chat-20261116-143032-afff4", "my-chat-20261116-143032-afff45"]
)
def test_a_name_of_the_user_is_not(name: str) -> None:
    assert not is_unnamed(name)


def test_names_differ() -> None:
    assert len({make_name("chat") for _ in range(100)}) > 90
