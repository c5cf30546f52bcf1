"""The parts of a reply on their way to a front end, and what may be written of them."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, Literal, TypeAlias

import msgspec

from asides.integrations.ui_state import FindReply, StateKeys
from asides.values.parts import File, Image, ServerTool, Text, ToolResult
from asides.values.thinking import Seal, ThoughtKind, ThoughtSource
from asides.values.visibility import DEFAULT_VISIBILITY, Visibility

Chunk: TypeAlias = dict[str, Any]
"""A chunk or an event of a protocol, as JSON."""
PartKind: TypeAlias = Literal["text", "thinking", "commentary", "refusal"]
MARKED: frozenset[PartKind] = frozenset({"commentary", "refusal"})
"""Texts that are not the answer: each is a separate text, whose metadata give its kind."""


class UiPart(msgspec.Struct, eq=False):
    """A text, commentary, a refusal or a thought while it arrives."""

    kind: PartKind
    block: int
    id: str
    shown: bool = True
    """False: thinking that the reader may not see."""
    begun: bool = False
    """Whether its start was written."""
    waiting: str = ""
    """Blank thinking so far. A thought begins with its first word."""
    pieces: list[str] | None = None
    """Its text, if a token needs it."""
    seals: list[Seal] | None = None
    moved: bool = False
    """The text is not an answer: it is sent again as a thought."""
    thought_kind: ThoughtKind = "raw"
    source: ThoughtSource = "field"
    via: str | None = None


class UiCall(msgspec.Struct, eq=False):
    """A call while it arrives."""

    block: int
    model_id: str = ""
    """The id as the model sent it."""
    id: str = ""
    """The id that the front end sees, unlike that of every other call here. Set when the call begins."""
    name: str = ""
    custom: bool = False
    pieces: list[str] = msgspec.field(default_factory=list[str])
    seals: list[Seal] = msgspec.field(default_factory=list[Seal])
    arguments: dict[str, Any] | None = None
    """The arguments, once the call is whole; None for free text, and for text that is not a JSON object."""
    matched: bool = False
    """Whether a run has started it."""
    answered: bool = False

    @property
    def raw(self) -> str:
        """The arguments as text."""
        return "".join(self.pieces)


class WriterOptions(msgspec.Struct, frozen=True):
    """What a writer may write."""

    thinking: bool = True
    visibility: Visibility = DEFAULT_VISIBILITY
    carry: StateKeys | None = None
    find_reply: FindReply = lambda: None
    """Gives the reply so far, where the source of the events knows it."""


class PartWriter:
    """What a protocol implements: each method adds chunks to `out`."""

    def __init__(self) -> None:
        self.out: list[Chunk] = []

    def _write_begin(self) -> None:
        """Write what comes before everything else."""
        raise NotImplementedError

    def _write_step_start(self) -> None:
        """Begin a step: a turn of the model, with its tools."""
        raise NotImplementedError

    def _write_step_end(self) -> None:
        """End the step."""
        raise NotImplementedError

    def _write_part_start(self, part: UiPart) -> None:
        """Begin a text, commentary, a refusal or a thought."""
        raise NotImplementedError

    def _write_part_delta(self, part: UiPart, text: str) -> None:
        """Write more of it."""
        raise NotImplementedError

    def _write_part_end(self, part: UiPart, token: str | None) -> None:
        """End it, with the token of its state."""
        raise NotImplementedError

    def _write_hidden(self, id_: str, token: str) -> None:
        """Write the token of a part that the reader does not see."""
        raise NotImplementedError

    def _write_call_start(self, call: UiCall) -> None:
        """Begin a call."""
        raise NotImplementedError

    def _write_call_delta(self, call: UiCall, text: str) -> None:
        """Write more of its arguments."""
        raise NotImplementedError

    def _write_call_end(self, call: UiCall, token: str | None) -> None:
        """End a call: its arguments are whole."""
        raise NotImplementedError

    def _write_result(self, call: UiCall, result: ToolResult) -> None:
        """Write the result of a call."""
        raise NotImplementedError

    def _write_server_tool(self, part: ServerTool, id_: str, is_new: bool, token: str | None) -> None:
        """Write a tool that the provider ran, or its progress."""
        raise NotImplementedError

    def _write_file(self, part: Image | File) -> None:
        """Write a picture or a file that the model made."""
        raise NotImplementedError

    def _write_finish(self) -> None:
        """Write the end of a whole stream."""
        raise NotImplementedError

    def _write_abort(self) -> None:
        """Write the end of a stream that was closed early."""
        raise NotImplementedError

    def _write_error(self, words: str, code: str) -> None:
        """Write the end of a stream that failed."""
        raise NotImplementedError


# A browser cannot hold an integer of more digits.
_LONG_NUMBER = r"\d{16}"


def read_output(text: str) -> Any:
    """The value of a result that is JSON, if a browser can hold it and its text can be written again from it; else the
    text.
    """
    if text[:1] not in ("{", "["):
        return text
    try:
        value = msgspec.json.decode(text)
        is_same = msgspec.json.encode(value).decode() == text
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return text
    return value if is_same and not re.search(_LONG_NUMBER, text) else text


def list_result_parts(result: ToolResult) -> list[Text | Image | File]:
    """The parts of a result that is not text alone."""
    return [] if isinstance(result.content, str) else list(result.content)


def make_url(part: Image | File) -> str | None:
    """The address of a picture or a file, or its bytes as one; None for one that only its provider knows."""
    if part.data is not None:
        return f"data:{part.media_type};base64,{b64encode(part.data).decode()}"
    return part.url
