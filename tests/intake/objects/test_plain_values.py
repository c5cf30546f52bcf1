"""Objects become plain values, by whichever way they have; hostile ones are our error, and nothing hangs."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

from asides.intake.objects.plain_values import is_plain, is_stream, to_camel_case, to_plain
from asides.values.errors import ConfigError


class Colour(Enum):
    RED = "red"


class Word(str):
    """Text of a class of its own."""

    __slots__ = ()


@dataclass
class Held:
    role: str
    content: Any
    timestamp: datetime = datetime(2026, 11, 16, tzinfo=UTC)
    unset: str | None = None
    _private: str = "hidden"
    more: dict[str, Any] = field(default_factory=dict)


class Dumped:
    """An object with `model_dump`, which is asked for what the wire has."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields

    def model_dump(self, **options: Any) -> Any:
        assert options == {"mode": "python", "by_alias": True, "exclude_none": True, "warnings": False}
        return self.fields


class Old:
    def model_dump(self) -> dict[str, Any]:
        return {"role": "user"}


class ToDict:
    def to_dict(self) -> dict[str, Any]:
        return {"role": "user", "content": [Dumped({"type": "text", "text": "x"})]}


class Slots:
    __slots__ = ("_hidden", "content", "role", "unset")

    def __init__(self) -> None:
        self.role, self.content, self._hidden = "user", "x", "y"


class Properties:
    """As classes that hold their fields elsewhere."""

    @property
    def role(self) -> str:
        return "user"

    @property
    def content(self) -> str:
        return "x"


class Pair(NamedTuple):
    role: str
    content: str


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Held("user", "x"), {"role": "user", "content": "x", "timestamp": "2026-11-16T00:00:00+00:00", "more": {}}),
        (Dumped({"role": "user", "n": Decimal("1.5")}), {"role": "user", "n": "1.5"}),
        (Old(), {"role": "user"}),
        (ToDict(), {"role": "user", "content": [{"type": "text", "text": "x"}]}),
        (SimpleNamespace(role="user", content="x", none=None), {"role": "user", "content": "x"}),
        (Slots(), {"role": "user", "content": "x"}),
        (Properties(), {"role": "user", "content": "x"}),
        ([Colour.RED, Word("w"), True, {1: (1, 2.5)}], ["red", "w", True, {"1": [1, 2.5]}]),
        ({Colour.RED: {3}}, {"red": [3]}),
        ([Pair("user", "x")], [["user", "x"]]),
    ],
)
def test_an_object_tells_its_fields(value: Any, plain: Any) -> None:
    found = to_plain(value)
    assert found == plain
    assert is_plain(found)
    assert type(found[1]) is str if isinstance(found, list) and len(found) > 1 else True


def test_bytes_become_base64() -> None:
    data = bytes(range(256))
    found = to_plain({"thought_signature": data, "images": [bytearray(data)]})
    assert b64decode(found["thought_signature"]) == b64decode(found["images"][0]) == data


def test_what_clients_add_is_left_out_but_never_from_arguments() -> None:
    fields = {"parsed": object(), "tool_calls": [{"parsed_arguments": object(), "args": {"parsed": 1, "artifact": 2}}]}
    assert to_plain(Dumped(fields)) == {"tool_calls": [{"args": {"parsed": 1, "artifact": 2}}]}


def test_plain_is_what_json_has() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert is_plain({"a": [1, (None, {"b": "c"})]})
    for other in (object(), {"a": b"x"}, [{"a": Word("x")}], {"a": {1}}, loop):
        assert not is_plain(other)


def test_names_in_camel_case_leave_arguments_alone() -> None:
    fields = {"function_call": {"name": "a_b", "args": {"my_key": {"in_ner": 1}}}, "thought_signature": "x_y"}
    assert to_camel_case([fields]) == [
        {"functionCall": {"name": "a_b", "args": {"my_key": {"in_ner": 1}}}, "thoughtSignature": "x_y"}
    ]


# --- what is not there yet --------------------------------------------------------------------------------------------


async def answer() -> None: ...


def generate() -> Iterator[int]:
    yield 1


async def generate_later() -> AsyncIterator[int]:
    yield 1


class Stream:
    """As the streams of clients: it can be iterated and closed."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("the stream was read")

    def close(self) -> None: ...


class AsyncStream:
    def __aiter__(self) -> AsyncIterator[int]:
        raise AssertionError("the stream was read")


class StreamManager:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class RawResponse:
    http_response: Any = None

    def parse(self) -> None: ...


class Body:
    def read(self) -> bytes:
        raise AssertionError("the body was read")


class HttpResponse:
    def __init__(self) -> None:
        self.status_code, self.headers = 200, dict[str, str]()

    @property
    def content(self) -> bytes:
        raise AssertionError("the body was read")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (generate(), "a generator is a stream that was not read. Collect it, asides.read"),
        (Stream(), "a Stream is a stream that was not read"),
        (AsyncStream(), r"was not read. Collect it, events = \[event async for"),
        (StreamManager(), "not opened. Open it, with … as stream"),
        (RawResponse(), r"a raw response. Pass what its parse\(\) returns"),
        (HttpResponse(), r"HTTP response. Read it with asides.decode\(None, response.content"),
        (Body(), "a file or a body. Read it"),
        (Held, "the class Held is not a message. Pass an object of it"),
        (object(), "an object cannot be read: it is neither a message nor a response. Pass messages or"),
        (SimpleNamespace(name="x"), "neither a message nor a response"),
        (lambda: None, "a function cannot be read"),
        (MagicMock(), "."),
        ({"role": "user", "content": object()}, "a dict holds an object, which is neither JSON"),
    ],
)
def test_what_cannot_be_read_says_what_it_is_and_what_to_do(value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        to_plain(value)


def test_a_coroutine_was_not_awaited() -> None:
    coroutine = answer()
    stream = generate_later()
    with pytest.raises(ConfigError, match=r"a coroutine was not awaited, .* Write await before the call"):
        to_plain(coroutine)
    with pytest.raises(ConfigError, match="an async_generator is a stream that was not read"):
        to_plain(stream)
    coroutine.close()
    asyncio.run(stream.aclose())  # type: ignore[attr-defined]


def test_a_stream_is_known_without_reading_it() -> None:
    assert is_stream(Stream())
    for other in (generate(), [1], {"a": 1}, iter([1]), "x", Held("user", "x")):
        assert not is_stream(other)


# --- hostile objects --------------------------------------------------------------------------------------------------


class Raises:
    role = "user"

    @property
    def content(self) -> str:
        raise ValueError("a secret of the message")


class DumpRaises:
    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("a secret of the message")


@dataclass
class FieldRaises:
    role: str = "user"

    def __getattribute__(self, name: str) -> Any:
        if name == "role":
            raise ValueError("a secret of the message")
        return object.__getattribute__(self, name)


class Endless:
    def model_dump(self, **_: Any) -> Any:
        return {"role": "user", "content": [Endless()]}


class Wide:
    def model_dump(self, **_: Any) -> Any:
        return {"content": [Wide(), Wide()]}


class NoDict:
    def model_dump(self, **_: Any) -> Any:
        return 42


class LyingClass:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        raise ValueError("a secret of the message")


def make_loop() -> dict[str, Any]:
    loop: dict[str, Any] = {"role": "user"}
    loop["content"] = [loop]
    return loop


@pytest.mark.parametrize("make", [Raises, DumpRaises, FieldRaises, Endless, Wide, NoDict, LyingClass, make_loop])
def test_a_hostile_object_is_our_error_and_tells_nothing_of_its_content(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]") as caught:
        to_plain(make())
    assert "secret" not in str(caught.value)
