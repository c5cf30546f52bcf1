"""Messages as people write them: each becomes the message that it says, or raises with the right spelling."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Part, Text, ToolCall, ToolResult
from asides.values.reply import Reply

PNG = b"\x89PNG\r\n\x1a\n\x00"
PICTURE = Image(data=PNG)


class Word(enum.StrEnum):
    """Texts of a class of their own."""

    HELLO = "hello"


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        (lambda _: Message("user", "hello"), (Text("hello"),)),
        (lambda _: Message("user", ["a", PICTURE]), (Text("a"), PICTURE)),
        (lambda _: Message("user", ("a", [("b",)])), (Text("a"), Text("b"))),
        (lambda _: Message("user", PICTURE), (PICTURE,)),
        (lambda _: Message(role="user", parts=["x"]), (Text("x"),)),
        (lambda _: Message("tool", ToolResult("1", "x")), (ToolResult("1", "x"),)),
        (lambda _: user(["What?", PICTURE]), (Text("What?"), PICTURE)),
        (lambda _: user(iter(["a", "b"])), (Text("a"), Text("b"))),
        (lambda folder: user("x", folder / "red.png"), (Text("x"), PICTURE)),
        (lambda folder: user(folder / "a.txt"), (Text('<file name="a.txt">\nwords\n</file>'),)),
        (lambda _: user("x", PNG), (Text("x"), PICTURE)),
        (lambda _: user("x", b"%PDF-1"), (Text("x"), File(b"%PDF-1"))),
        (lambda _: user({"type": "text", "text": "plain"}), (Text("plain"),)),
        (lambda _: user(Word.HELLO), (Text("hello"),)),
        (lambda _: user(" "), (Text(" "),)),
        (lambda _: assistant(["a"]), (Text("a"),)),
        (lambda _: assistant(), ()),
        (lambda _: assistant(""), (Text(""),)),
        (lambda _: system("s"), (Text("s"),)),
        (lambda _: system(["a", "b"]), (Text("a"), Text("b"))),  # type: ignore[arg-type]
        (lambda _: Message("user"), ()),
    ],
)
def test_content_becomes_the_parts_that_it_says(made: Any, parts: tuple[Part, ...], tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(PNG)
    (tmp_path / "a.txt").write_text("words")
    message = made(tmp_path)
    assert message.parts == parts
    assert all(type(part.text) is str for part in message.parts if isinstance(part, Text))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: user(42), r"got an int. Write it as text, user\(str"),  # type: ignore[arg-type]
        (lambda: user(None), "got None"),  # type: ignore[arg-type]
        (lambda: user("x", None), "got None"),  # type: ignore[arg-type]
        (user, "message is empty"),
        (lambda: user(""), "message is empty"),
        (lambda: user("", []), "message is empty"),
        (lambda: user([]), "message is empty"),
        (lambda: user(b"hello"), r"For text write data.decode\(\)"),
        (lambda: user({"a", "b"}), "got a set"),
        (lambda: user({"role": "user", "content": "x"}), r"Give the dict itself to ask"),
        (lambda: user({"type": "image_url"}), r"Write Text\(…\), Image\(…\)"),
        (lambda: user(user("x")), "It is a message already"),  # type: ignore[arg-type]
        (lambda: user(Reply((Text("x"),))), "Put the reply itself"),  # type: ignore[arg-type]
        (lambda: user(Path("nowhere.png")), "cannot be read"),
        (lambda: user(object()), "got an object"),  # type: ignore[arg-type]
        (lambda: Message("user", None), "got None"),  # type: ignore[arg-type]
        (lambda: Message("user", 42), "got an int"),  # type: ignore[arg-type]
        (lambda: Message("user", ""), "message is empty"),
        (lambda: Message("user", []), "message is empty"),
        (lambda: Message("usr", "x"), "did you mean 'user'"),  # type: ignore[arg-type]
        (lambda: Message("human", "x"), "did you mean 'user'"),  # type: ignore[arg-type]
        (lambda: Message("model", "x"), "did you mean 'assistant'"),  # type: ignore[arg-type]
        (lambda: Message("developer", "x"), "did you mean 'system'"),  # type: ignore[arg-type]
        (lambda: Message(None, "x"), "is not None"),  # type: ignore[arg-type]
        (lambda: assistant(None), r"assistant\(…\) got None"),  # type: ignore[arg-type]
        (lambda: system(None), r"system\(…\) got None"),  # type: ignore[arg-type]
        (lambda: Text(5), r"Text\(…\) takes text, not an int"),  # type: ignore[arg-type]
        (lambda: Text(b"x"), "Decode it"),  # type: ignore[arg-type]
        (lambda: Text(None), "not None"),  # type: ignore[arg-type]
        (lambda: ToolResult(5, "x"), "the id of its call as text"),  # type: ignore[arg-type]
        (lambda: ToolResult(ToolCall("c", "f"), "x"), r"Write ToolResult\(call.id"),  # type: ignore[arg-type]
        (lambda: ToolCall("c", "f", None), "not None"),  # type: ignore[arg-type]
        (lambda: ToolCall("c", "f", "no JSON"), "as a dict, not a str"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", None), "got None"),
        (lambda: ToolResult("c", b"x"), "got a bytes"),
        (lambda: ToolResult("c", object()), "JSON cannot hold"),
        (lambda: ToolResult("c", [PICTURE, ToolCall("c", "f")]), "A result is text, pictures and files"),
    ],
)
def test_what_cannot_be_sent_raises_with_the_right_spelling(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        make()
    assert "" in str(caught.value)


def test_the_arguments_of_a_call_may_be_their_json() -> None:
    assert ToolCall("c", "f", '{"a": 1}') == ToolCall("c", "f", {"a": 1})  # type: ignore[arg-type]


def test_content_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ConfigError, match="got a list"):
        user(endless)


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ({"degrees": 21}, '{"degrees":21}'),
        (21.5, "21.5"),
        (True, "true"),
        (["a", "b"], '["a","b"]'),
        (PICTURE, (PICTURE,)),
        (["see", PICTURE, {"a": 1}], (Text("see"), PICTURE, Text('{"a":1}'))),
        ((), ()),
        (Word.HELLO, "hello"),
    ],
)
def test_a_result_is_text_or_parts(given: Any, content: object) -> None:
    assert ToolResult("call_1", given).content == content
