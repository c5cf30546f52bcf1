"""Calls that a relay built before: reused for a second, for requests that differ in their messages alone."""

from __future__ import annotations

import msgspec
import pytest

from asides import Provider
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.options import Options
from asides.providers.credentials import Secret
from asides.relay.known_calls import KnownCalls
from asides.relay.routes import Route
from asides.values.messages import Prompt, user
from asides.values.tools import Tool

ROW = Provider(name="host", base_url="http://127.0.0.1:9/v1", key_env=("HOST_API_KEY",))


class Counted:
    """Builds calls, and counts them."""

    def __init__(self, prompt: Prompt, stream: bool = False) -> None:
        self.count = 0
        self._prompt, self._stream = prompt, stream

    def __call__(self) -> Call:
        self.count += 1
        return CallBuilder(Options(), providers=(ROW,)).build("host:m", self._prompt, Options(), stream=self._stream)


def ask(text: str = "hi", **fields: object) -> Prompt:
    return msgspec.structs.replace(Prompt((user(text),)), **fields)


def test_a_second_request_gets_the_call_of_the_first_with_its_own_prompt() -> None:
    known = KnownCalls()
    first = known.build("host:m", 1, ask("one"), False, 0.0, Counted(ask("one")))
    second_builder = Counted(ask("two"))
    second = known.build("host:m", 1, ask("two"), False, 0.5, second_builder)
    assert second_builder.count == 0
    assert (first.prompt.messages[0].text, second.prompt.messages[0].text) == ("one", "two")
    assert second.target is first.target
    streamed = Counted(ask("three"), stream=True)
    assert known.build("host:m", 1, ask("three"), True, 0.5, streamed).prompt.stream
    other = Counted(ask("four"))
    known.build("host:m", 2, ask("four"), False, 0.5, other)
    assert (streamed.count, other.count) == (1, 1)


def test_a_prompt_that_takes_part_in_its_call_is_built_each_time() -> None:
    known = KnownCalls()
    known.build("host:m", 1, ask(), False, 0.0, Counted(ask()))
    prompt = ask(tools=(Tool("look", parameters={"type": "object"}),))
    build = Counted(prompt)
    for _ in range(2):
        assert known.build("host:m", 1, prompt, False, 0.0, build).prompt.tools == prompt.tools
    assert build.count == 2


def test_a_key_that_changes_counts_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownCalls()
    keys: list[str] = []
    for key, seconds in (("old", 0.0), ("new", 0.5), ("new", 1.1)):
        monkeypatch.setenv("HOST_API_KEY", key)
        call = known.build("host:m", 1, ask(), False, 100.0 + seconds, Counted(ask()))
        assert isinstance(call.key, Secret)
        keys.append(call.key.reveal())
    assert keys == ["old", "old", "new"]


def test_it_does_not_grow_without_end() -> None:
    known = KnownCalls()
    build = Counted(ask())
    for number in range(1000):
        known.build(f"host:{number}", 1, ask(), False, 0.0, build)
    assert len(known._calls) <= 256


def test_a_route_is_looked_for_again_after_a_second_and_for_each_dialect() -> None:
    known, asked = KnownCalls(), list[str]()

    def find(name: str) -> Route:
        asked.append(name)
        return Route((f"host:{name}",))

    for model, dialect, now in (
        ("a", "openai_chat", 0.0),
        ("a", "openai_chat", 0.9),
        ("a", "anthropic", 0.9),
        ("a", "openai_chat", 1.1),
        ("b" * 201, "openai_chat", 1.1),
        ("b" * 201, "openai_chat", 1.1),
    ):
        assert known.find_route(model, dialect, now, lambda name=model: find(name)).targets == (f"host:{model}",)  # type: ignore[misc]
    assert [name[0] for name in asked] == ["a", "a", "a", "b", "b"]


def test_a_fact_is_kept_for_targets_of_kept_calls_alone() -> None:
    known = KnownCalls()
    call = known.build("host:m", 1, ask(), False, 0.0, Counted(ask()))
    stranger = msgspec.structs.replace(call.target, base_url="http://127.0.0.1:8/v1")
    found: list[str] = []
    for _ in range(2):
        for target in (call.target, stranger):
            known.find_fact(target, "address", lambda target=target: found.append(target.base_url))  # type: ignore[misc]
    assert found == [call.target.base_url, stranger.base_url, stranger.base_url]
