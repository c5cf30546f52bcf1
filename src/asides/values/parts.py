"""The parts of messages, and the arguments of calls as JSON text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec

from asides.values.json_form import JsonForm
from asides.values.thinking import Origin, Seal, Thought

MediaSource: TypeAlias = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]
"""A picture or a file: its bytes, its path, an open file, or text that is a URL or the path of a file that exists."""

if TYPE_CHECKING:
    _MediaStruct = msgspec.Struct
else:
    _build = type(msgspec.Struct).__call__

    class _MediaMeta(type(msgspec.Struct)):
        def __call__(cls, *args, **fields):
            # More than five positional arguments: pickle is restoring a value.
            return _build(cls, *args, **fields) if len(args) > 5 else cls._read_source(args, fields)

    class _MediaStruct(msgspec.Struct, metaclass=_MediaMeta):
        """A value whose constructor reads a source: bytes, a path or a URL.

        Decoding, copying and `msgspec.structs.replace` do not call the constructor: text in a saved conversation is
        never taken for the path of a file.
        """


class Text(msgspec.Struct, JsonForm, frozen=True, tag="text"):
    """Text of a user or of an answer."""

    text: str
    seals: tuple[Seal, ...] = ()
    cache: bool | str = False
    """True: a cache breakpoint follows this part, for providers that have them; a text is its lifetime, as "1h"."""

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            from asides.values.content import read_text

            msgspec.structs.force_setattr(self, "text", read_text(self.text, "Text"))

    def __repr__(self) -> str:
        return f"Text(<{len(self.text)} characters>)"


class Commentary(msgspec.Struct, JsonForm, frozen=True, tag="commentary"):
    """What the model says on the way to its answer: progress, plans said aloud. It is never part of the answer."""

    text: str
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"Commentary(<{len(self.text)} characters>)"


def join_commentary(texts: Iterable[str]) -> str:
    """Join the texts of all blocks of commentary, with a blank line between them; "" when all are blank."""
    return "\n\n".join([text for text in texts if text and not text.isspace()])


class Refusal(msgspec.Struct, JsonForm, frozen=True, tag="refusal"):
    """The text with which a model refuses to answer. It is never part of the answer."""

    text: str
    seals: ClassVar[tuple[Seal, ...]] = ()
    """Always empty."""

    def __repr__(self) -> str:
        return f"Refusal(<{len(self.text)} characters>)"


class Image(_MediaStruct, JsonForm, frozen=True, tag="image"):
    """A picture: `Image(Path("a.png"))`, `Image("a.png")`, `Image("https://…")`, `Image(data)`, `Image(file)`.

    A text is a URL or the path of an existing file, which is read immediately. The media type comes from the bytes.
    Pass `url=` or `data=` to rule out other readings; with them no file is read.
    """

    url: str | None = None
    data: bytes | None = None
    media_type: str = "image/png"
    detail: str | None = None
    cache: bool | str = False
    """True: a cache breakpoint follows this part, for providers that have them; a text is its lifetime, as "1h"."""
    seals: tuple[Seal, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            source: MediaSource | None = None,
            /,
            *,
            url: str | None = None,
            data: bytes | bytearray | memoryview | None = None,
            media_type: str = ...,
            detail: str | None = None,
            cache: bool | str = False,
            seals: tuple[Seal, ...] = (),
        ) -> None: ...

    else:

        @classmethod
        def _read_source(cls, args, fields):
            from asides.values.attachments import read_image_arguments

            return _build(cls, **read_image_arguments(args, fields))

    def __post_init__(self) -> None:
        # Older versions saved pictures of other types as image/png, which providers refuse.
        if self.data is not None and self.media_type == "image/png" and not self.data.startswith(b"\x89PNG"):
            from asides.values.media_types import detect_media_type

            found = detect_media_type(self.data)
            if found is not None and found.startswith("image/"):
                msgspec.structs.force_setattr(self, "media_type", found)

    def __repr__(self) -> str:
        return f"Image({_describe_source(self.url, self.data)}, media_type={self.media_type!r})"


class File(_MediaStruct, JsonForm, frozen=True, tag="file"):
    """A document, a sound or a video: `File(Path("a.pdf"))`, `File("a.mp3")`, `File("https://…")`, `File(data)`,
    `File(data, name="a.pdf")`, or `File(id=…)` with the id that a provider gave it.

    A text alone is a URL or the path of an existing file, which is read immediately. With `data=`, `url=` or `id=`, a
    text before them is the name. The media type comes from the bytes, then from the name.
    """

    name: str = "file"
    data: bytes | None = None
    url: str | None = None
    id: str | None = None
    media_type: str = "application/pdf"
    cache: bool | str = False
    """True: a cache breakpoint follows this part, for providers that have them; a text is its lifetime, as "1h"."""
    seals: tuple[Seal, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            source: MediaSource | None = None,
            /,
            data: bytes | bytearray | memoryview | None = None,
            *,
            name: str = "file",
            url: str | None = None,
            id: str | None = None,  # noqa: A002 - a field
            media_type: str = ...,
            cache: bool | str = False,
            seals: tuple[Seal, ...] = (),
        ) -> None: ...

    else:

        @classmethod
        def _read_source(cls, args, fields):
            from asides.values.attachments import read_file_arguments

            return _build(cls, **read_file_arguments(args, fields))

    def __repr__(self) -> str:
        return f"File({_describe_source(self.url or self.id, self.data)}, media_type={self.media_type!r})"


def _describe_source(address: str | None, data: bytes | None) -> str:
    return f"<{len(data)} bytes>" if data is not None else "by address" if address else "empty"


class ToolCall(msgspec.Struct, JsonForm, frozen=True, tag="tool_call"):
    """A tool that the model wants to run. `arguments` are parsed; text that does not parse is in `raw_arguments`."""

    id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    raw_arguments: str | None = None
    seals: tuple[Seal, ...] = ()
    custom: bool = False
    """True: the tool takes free text instead of JSON; the text is in `raw_arguments`."""

    def __post_init__(self) -> None:
        if type(self.arguments) is not dict:
            from asides.values.content import read_call_arguments

            msgspec.structs.force_setattr(self, "arguments", read_call_arguments(self.arguments))

    def __repr__(self) -> str:
        name, value = (
            ("arguments", self.arguments) if self.raw_arguments is None else ("raw_arguments", self.raw_arguments)
        )
        shown = repr(value)
        shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
        return f"ToolCall(id={self.id!r}, name={self.name!r}, {name}={shown})"


_MAX_SHOWN = 200
"""How many characters of its arguments the repr of a call shows."""


MAX_DEPTH = 200
"""The deepest nesting of JSON that is read: far more than any real document has, and far less than Python can hold."""
_BACKSLASH = 0x5C
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_STRING = re.compile(rb'"[^"]*"?')
_SHORT = 4096
_FAST_LEVELS = 8


def is_too_deep(document: bytes) -> bool:
    """Whether JSON is nested deeper than `MAX_DEPTH`. Otherwise every later step can read, copy and write it."""
    if not has_many_brackets(document):
        return False
    if _BACKSLASH in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Of the rest only brackets and quotes count. First go the texts without brackets, which almost all are.
    brackets = _STRING.sub(b"", document.translate(None, _NO_MARKS).replace(b'""', b""))
    for _ in range(_FAST_LEVELS):  # each pass removes the innermost level, which most brackets belong to
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    depth = _FAST_LEVELS
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def has_many_brackets(document: bytes) -> bool:
    """Whether a document has more opening brackets than levels are allowed, in texts too; a quick check."""
    if len(document) < _SHORT:
        return document.count(b"[") + document.count(b"{") > MAX_DEPTH
    # To find each takes a tenth of the time that counting takes, as long as there are few.
    found, find = 0, document.find
    for bracket in (b"[", b"{"):
        place = find(bracket)
        while place >= 0:
            found += 1
            if found > MAX_DEPTH:
                return True
            place = find(bracket, place + 1)
    return False


def read_arguments(raw: str) -> dict[str, Any] | None:
    """Parse the arguments of a call, even if encoded twice; {} for a blank text, None if it is not a JSON object."""
    if not raw.strip():
        return {}
    value: Any = raw
    for _ in range(2):
        try:
            encoded = value.encode()
            value = None if is_too_deep(encoded) else msgspec.json.decode(encoded)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return None
        if value is None and encoded.strip() != b"null":
            return None
        if not isinstance(value, str):
            break
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


class ToolResult(msgspec.Struct, JsonForm, frozen=True, tag="tool_result"):
    """The result of a tool call. `content` is text, or parts where the provider takes pictures from tools.

    The constructor also takes a list of texts, pictures and files, and any other value as its JSON.
    """

    call_id: str
    content: str | tuple[Text | Image | File, ...] = ""
    name: str | None = None
    is_error: bool = False
    cache: bool | str = False
    """True: a cache breakpoint follows this part, for providers that have them; a text is its lifetime, as "1h"."""
    is_json: bool = False
    """True: the text is JSON. Dialects whose results can be objects send an object; others send the text."""
    seals: ClassVar[tuple[Seal, ...]] = ()
    """Always empty."""

    if TYPE_CHECKING:

        def __init__(
            self,
            call_id: str,
            content: Any = "",
            name: str | None = None,
            is_error: bool = False,
            cache: bool | str = False,
            is_json: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.content) is str and type(self.call_id) is str:
            return
        if type(self.call_id) is not str or type(self.content) is not tuple or not _has_result_parts(self.content):
            from asides.values.content import check_call_id, read_result

            check_call_id(self.call_id)
            if isinstance(self.content, dict):
                msgspec.structs.force_setattr(self, "is_json", True)
            msgspec.structs.force_setattr(self, "content", read_result(self.content))
        # A breakpoint follows the whole result.
        if not self.cache and isinstance(self.content, tuple) and any(part.cache for part in self.content):
            last = next(part.cache for part in reversed(self.content) if part.cache)
            msgspec.structs.force_setattr(self, "cache", last)

    @property
    def text(self) -> str:
        """The text of the result."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, Text))

    def read_object(self) -> dict[str, Any] | None:
        """Return the object that the result is; None if it is text, or other JSON."""
        if not self.is_json:
            return None
        try:
            value = msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return None
        return value if isinstance(value, dict) else None

    def __repr__(self) -> str:
        return f"ToolResult(call_id={self.call_id!r}, <{len(self.text)} characters>, is_error={self.is_error})"


class ServerTool(msgspec.Struct, JsonForm, frozen=True, tag="server_tool"):
    """A tool that the provider ran itself, such as a search or an interpreter. The caller has nothing to run."""

    _private = {"json": "seals"}

    name: str
    """The provider's name for it: "web_search_call", "code_execution_tool_result" …"""
    id: str | None = None
    status: str | None = None
    json: str = "{}"
    """The item as received, so that it can go back."""
    origin: Origin | None = None
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"ServerTool(name={self.name!r}, id={self.id!r}, status={self.status!r})"


class UnknownPart(msgspec.Struct, JsonForm, frozen=True, tag="unknown"):
    """A part that this version does not know. It holds the JSON as received, so that it can go back."""

    _private = {"json": "seals"}

    json: str
    origin: Origin | None = None
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"UnknownPart(<{len(self.json)} characters>)"


_RESULT_PARTS = frozenset({Text, Image, File})


def _has_result_parts(content: tuple[object, ...]) -> bool:
    return _RESULT_PARTS.issuperset(map(type, content))


Part: TypeAlias = (
    Text | Thought | Commentary | ToolCall | ToolResult | Image | File | Refusal | ServerTool | UnknownPart
)

ContentItem: TypeAlias = str | Part | bytes | os.PathLike[str]
ContentLike: TypeAlias = ContentItem | Iterable["ContentLike"]
"""Content of a message as people write it: texts, parts, bytes and paths, and lists of them."""
