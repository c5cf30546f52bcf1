"""Calls that a relay built before: reused for a second, for requests that differ in their messages alone."""

from __future__ import annotations

import msgspec
import pytest

from asides import Provider
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.options import Options
from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.relay.known_calls import KnownCalls
from asides.relay.routes import Route
from asides.values.errors import TooManyTools
from asides.values.messages import OutputSchema, Prompt, user
from asides.values.notices import Notice
from asides.values.tools import Tool
from tests.relay.relaying import Door

ROW = Provider(name="host", base_url="http://127.0.0.1:9/v1", key_env=("HOST_API_KEY",))


class Counted:
    """Builds calls, and counts them."""

    def __init__(self, prompt: Prompt, stream: bool = False) -> None:
        self.count = 0
        self._prompt, self._stream = prompt, stream

    def __call__(self) -> Call:
        self.count += 1
        return CallBuilder(Options(), providers=(ROW,)).build("host:m", self._prompt, Options(), stream=self._stream)


BUILDER = CallBuilder(Options(), providers=(ROW,))


def report(prompt: Prompt, target: Target) -> tuple[Notice, ...]:
    return BUILDER.report_prompt(prompt, target, Options())


def ask(text: str = "hi", **fields: object) -> Prompt:
    return msgspec.structs.replace(Prompt((user(text),)), **fields)


def test_a_second_request_gets_the_call_of_the_first_with_its_own_prompt() -> None:
    known = KnownCalls()
    first = known.build("host:m", 1, ask("one"), False, 0.0, Counted(ask("one")), report)
    second_builder = Counted(ask("two"))
    second = known.build("host:m", 1, ask("two"), False, 0.5, second_builder, report)
    assert second_builder.count == 0
    assert (first.prompt.messages[0].text, second.prompt.messages[0].text) == ("one", "two")
    assert second.target is first.target
    streamed = Counted(ask("three"), stream=True)
    assert known.build("host:m", 1, ask("three"), True, 0.5, streamed, report).prompt.stream
    other = Counted(ask("four"))
    known.build("host:m", 2, ask("four"), False, 0.5, other, report)
    assert (streamed.count, other.count) == (1, 1)


def test_a_prompt_that_takes_part_in_its_call_is_built_each_time() -> None:
    known = KnownCalls()
    known.build("host:m", 1, ask(), False, 0.0, Counted(ask()), report)
    prompt = ask(output=OutputSchema("answer", {"type": "object"}))
    build = Counted(prompt)
    for _ in range(2):
        known.build("host:m", 1, prompt, False, 0.0, build, report)
    assert build.count == 2


def test_tools_are_those_of_the_request_and_are_checked_for_each() -> None:
    known, row = KnownCalls(), msgspec.structs.replace(ROW, max_tools=2)
    builder = CallBuilder(Options(), providers=(row,))

    def build(*tools: Tool) -> Call:
        prompt = ask(tools=tools)
        return known.build(
            "host:m",
            1,
            prompt,
            False,
            0.0,
            lambda: builder.build("host:m", prompt, Options(), stream=False),
            lambda prompt, target: builder.report_prompt(prompt, target, Options()),
        )

    first = build(Tool("one", more={"own": 1}))
    second = build(Tool("two", more={"other": 2}), Tool("large", "x" * 100_000))
    third = build(Tool("three"))
    assert first.target is second.target is third.target
    assert [[tool.name for tool in call.prompt.tools] for call in (first, second, third)] == [
        ["one"],
        ["two", "large"],
        ["three"],
    ]
    assert [[notice.code for notice in call.notices] for call in (first, second, third)] == [
        ["tool_field_not_sent"],
        ["many_tools", "tool_field_not_sent"],
        [],
    ]
    with pytest.raises(TooManyTools, match="accepts at most 2"):
        build(*map(Tool, "abc"))


def test_a_limit_on_tools_of_a_route_holds_for_calls_that_are_kept() -> None:
    options = Options(tools_max_count=1)
    call = BUILDER.build("host:m", ask(tools=(Tool("one"),)), options, stream=False)
    with pytest.raises(TooManyTools, match="1 are allowed"):
        BUILDER.report_prompt(ask(tools=(Tool("one"), Tool("two"))), call.target, options)


def test_calls_to_an_address_that_is_not_the_provider_s_own_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-test")
    known, builder = KnownCalls(), CallBuilder(Options(base_url="http://127.0.0.1:9/v1"))
    calls = [
        known.build(
            "mistral:m",
            1,
            ask(text),
            False,
            0.0,
            lambda text=text: builder.build("mistral:m", ask(text), Options(), stream=False),  # type: ignore[misc]
            lambda prompt, target: builder.report_prompt(prompt, target, Options()),
        )
        for text in ("one", "two")
    ]
    assert calls[0].target is calls[1].target
    assert calls[0].target.foreign
    assert [[notice.code for notice in call.notices] for call in calls] == [["foreign_address"]] * 2


def test_a_key_that_changes_counts_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownCalls()
    keys: list[str] = []
    for key, seconds in (("old", 0.0), ("new", 0.5), ("new", 1.1)):
        monkeypatch.setenv("HOST_API_KEY", key)
        call = known.build("host:m", 1, ask(), False, 100.0 + seconds, Counted(ask()), report)
        assert isinstance(call.key, Secret)
        keys.append(call.key.reveal())
    assert keys == ["old", "old", "new"]


def test_it_does_not_grow_without_end() -> None:
    known = KnownCalls()
    build = Counted(ask())
    for number in range(1000):
        known.build(f"host:{number}", 1, ask(), False, 0.0, build, report)
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
    call = known.build("host:m", 1, ask(), False, 0.0, Counted(ask()), report)
    stranger = msgspec.structs.replace(call.target, base_url="http://127.0.0.1:8/v1")
    found: list[str] = []
    for _ in range(2):
        for target in (call.target, stranger):
            known.find_fact(target, "address", lambda target=target: found.append(target.base_url))  # type: ignore[misc]
    assert found == [call.target.base_url, stranger.base_url, stranger.base_url]


def test_a_model_with_a_long_name_is_refused() -> None:
    door = Door(None)
    refused = door.post("/v1/chat/completions", {"model": "x" * 1001, "messages": [{"role": "user", "content": "?"}]})
    assert (refused.status, refused.json["error"]["param"]) == (400, "model")
    assert len(refused.body) < 1000
