"""For web front ends: `vercel(events)` and `ag_ui(events)` write what Vercel's AI SDK and AG-UI read; `read_vercel` and
`read_ag_ui` read what they post.

```python
import asides

posted = [{"role": "user", "parts": [{"type": "text", "text": "What is 6 * 7?"}]}]
events = asides.stream("deepseek:deepseek-flash", asides.ui.read_vercel(posted))
body = b"".join(asides.ui.vercel(events))  # sent with the headers asides.ui.VERCEL_HEADERS
```

No other package is needed.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

from asides.integrations.ag_ui import AgUiWriter
from asides.integrations.read_ag_ui import list_call_ids, read_ag_ui_messages
from asides.integrations.read_ui_parts import open_model
from asides.integrations.read_vercel import read_ui_messages
from asides.integrations.ui_parts import Chunk, WriterOptions
from asides.integrations.ui_state import FindReply, OnNotice, PostedState, StateKeys
from asides.integrations.ui_stream import (
    AsChunks,
    AsEvents,
    AsyncUiStream,
    ChunkFraming,
    OnError,
    UiStream,
    is_async_source,
)
from asides.integrations.ui_writer import UiWriter
from asides.integrations.vercel_ui import VercelWriter
from asides.values.error_words import describe_type, suggest_name
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.reply import Reply
from asides.values.result import Result, RunEvent
from asides.values.visibility import DEFAULT_VISIBILITY, Visibility, read_visibility

__all__ = [
    "AG_UI_HEADERS",
    "VERCEL_HEADERS",
    "AgUiOptions",
    "AsyncUiStream",
    "StateKeys",
    "UiOptions",
    "UiStream",
    "VercelOptions",
    "ag_ui",
    "ag_ui_events",
    "read_ag_ui",
    "read_vercel",
    "vercel",
    "vercel_chunks",
]

_SSE_HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
VERCEL_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {**_SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"},
)
"""The headers of a response whose body is `vercel(events)`. The third is for nginx."""
AG_UI_HEADERS: Final[Mapping[str, str]] = MappingProxyType(_SSE_HEADERS)
"""The headers of a response whose body is `ag_ui(events)`."""
_DONE = b"data: [DONE]\n\n"

Item = TypeVar("Item")


class UiOptions(TypedDict, total=False):
    """The options of every writer."""

    thinking: bool
    """False: no thinking at all. True, the default: as much as `visibility.user` allows."""
    visibility: Visibility | Mapping[str, Any] | None
    """What a reader may see of thinking. None, the default: the policy of the stream."""
    carry: StateKeys | None
    """Encrypts the reasoning state that providers want back, so that the front end can hold it. None, the default: the
    state stays here, as in a conversation in a store."""
    on_error: OnError | None
    """Gets the error that ended the stream, to log it. It may return words for the reader."""


class VercelOptions(UiOptions, total=False):
    """The options of `vercel`."""

    message_id: str | None
    """The id of the message. None, the default: the front end makes one, or continues its last message."""
    metadata: Mapping[str, Any] | None
    """The metadata of the message, from its start."""
    usage: bool
    """False: no `usage` in the metadata at the end."""


class AgUiOptions(UiOptions, total=False):
    """The options of `ag_ui`."""

    run: object
    """The client's `RunAgentInput`, as a dict or a value of its package. The ids of thread and run are taken from it,
    and new calls get ids that no call in it has."""
    thread_id: str | None
    run_id: str | None


# --- writing ----------------------------------------------------------------------------------------------------------


@overload
def vercel(events: AsyncIterable[RunEvent], **options: Unpack[VercelOptions]) -> AsyncUiStream[bytes]: ...
@overload
def vercel(events: Iterable[RunEvent], **options: Unpack[VercelOptions]) -> UiStream[bytes]: ...
def vercel(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent], **options: Unpack[VercelOptions]
) -> UiStream[bytes] | AsyncUiStream[bytes]:
    """Write events as the UI message stream of Vercel's AI SDK: bytes of server-sent events, which `useChat` reads.

    `events` are those of `stream`, of a conversation or of an agent's run, sync or async. Each batch of them is one
    write. When the reader leaves, the stream is closed. Thinking goes out as reasoning parts, in its place. An error
    is written in words for a user.
    """
    return _open(events, _make_vercel(events, options), AsEvents(_DONE), options)


@overload
def vercel_chunks(events: AsyncIterable[RunEvent], **options: Unpack[VercelOptions]) -> AsyncUiStream[Chunk]: ...
@overload
def vercel_chunks(events: Iterable[RunEvent], **options: Unpack[VercelOptions]) -> UiStream[Chunk]: ...
def vercel_chunks(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent], **options: Unpack[VercelOptions]
) -> UiStream[Chunk] | AsyncUiStream[Chunk]:
    """As `vercel`, but a dict for each chunk, for programs that frame them in their own way."""
    return _open(events, _make_vercel(events, options), AsChunks(), options)


@overload
def ag_ui(events: AsyncIterable[RunEvent], **options: Unpack[AgUiOptions]) -> AsyncUiStream[bytes]: ...
@overload
def ag_ui(events: Iterable[RunEvent], **options: Unpack[AgUiOptions]) -> UiStream[bytes]: ...
def ag_ui(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent], **options: Unpack[AgUiOptions]
) -> UiStream[bytes] | AsyncUiStream[bytes]:
    """Write events as those of AG-UI, protocol 1.0: bytes of server-sent events, which CopilotKit and others read.

    `run` is what the client posted; without it, the ids of thread and run are made up. All else is as in `vercel`.
    """
    return _open(events, _make_ag_ui(events, options), AsEvents(), options)


@overload
def ag_ui_events(events: AsyncIterable[RunEvent], **options: Unpack[AgUiOptions]) -> AsyncUiStream[Chunk]: ...
@overload
def ag_ui_events(events: Iterable[RunEvent], **options: Unpack[AgUiOptions]) -> UiStream[Chunk]: ...
def ag_ui_events(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent], **options: Unpack[AgUiOptions]
) -> UiStream[Chunk] | AsyncUiStream[Chunk]:
    """As `ag_ui`, but a dict for each event, for programs that frame them in their own way."""
    return _open(events, _make_ag_ui(events, options), AsChunks(), options)


def _make_vercel(events: object, options: VercelOptions) -> UiWriter:
    _reject_unknown(options, VercelOptions)
    return VercelWriter(
        _read_options(events, options),
        message_id=options.get("message_id"),
        metadata=options.get("metadata"),
        usage=options.get("usage", True),
    )


def _make_ag_ui(events: object, options: AgUiOptions) -> UiWriter:
    _reject_unknown(options, AgUiOptions)
    run: Any = open_model(options.get("run"))
    if run is not None and not isinstance(run, Mapping):
        raise ConfigError(f"run must be the RunAgentInput that the client posted, not {describe_type(run)}.")
    given = run or {}
    thread_id = options.get("thread_id") or given.get("threadId") or f"thread-{uuid.uuid4().hex}"
    run_id = options.get("run_id") or given.get("runId") or f"run-{uuid.uuid4().hex}"
    return AgUiWriter(
        _read_options(events, options), thread_id=str(thread_id), run_id=str(run_id), taken=list_call_ids(given)
    )


def _reject_unknown(options: Mapping[str, Any], known: type) -> None:
    names: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]
    for name in options:
        if name not in names:
            advice = suggest_name(name, names, f"use {', '.join(sorted(names))}.")
            raise ConfigError(f"there is no option {name!r}; {advice}")


def _read_options(events: object, options: UiOptions) -> WriterOptions:
    given = options.get("visibility")
    policy = getattr(events, "visibility", None) if given is None else read_visibility(given)
    visibility = policy if isinstance(policy, Visibility) else DEFAULT_VISIBILITY
    carry = _check_keys(options.get("carry"))
    return WriterOptions(options.get("thinking", True), visibility, carry, _make_find_reply(events))


def _make_find_reply(events: Any) -> FindReply:
    def find() -> Reply | None:
        so_far: object = getattr(events, "partial", None)
        if isinstance(so_far, Result):
            so_far = so_far.steps[-1].reply if so_far.steps else None
        return so_far if isinstance(so_far, Reply) else None

    return find


def _check_keys(carry: object) -> StateKeys | None:
    if carry is None or isinstance(carry, StateKeys):
        return carry
    raise ConfigError(f"carry must be a StateKeys, not {describe_type(carry)}. Write StateKeys(key).")


def _open(
    events: Any, writer: UiWriter, framing: ChunkFraming[Item], options: UiOptions
) -> UiStream[Item] | AsyncUiStream[Item]:
    if is_async_source(events):
        return AsyncUiStream(events, writer, framing, options.get("on_error"))
    return UiStream(events, writer, framing, options.get("on_error"))


# --- reading ----------------------------------------------------------------------------------------------------------


def read_vercel(
    messages: object, *, carry: StateKeys | None = None, system: bool = False, on_notice: OnNotice | None = None
) -> tuple[Message, ...]:
    """Read the messages that `useChat` posts: the list of UI messages, or the body of the request that holds it.

    Reasoning comes back as thoughts; their seals only with the keys (`carry`) that wrote them. State that was changed,
    or that other keys wrote, is left out; `on_notice` gets a Notice of it, or else the log does. Raises ConfigError for
    anything that is not a message. All of it is untrusted browser input: system messages are refused without
    `system=True`, and addresses of files are never opened here.
    """
    state = PostedState(_check_keys(carry), on_notice)
    history = read_ui_messages(messages, state=state, system=system)
    state.report()
    return history


def read_ag_ui(
    run: object, *, carry: StateKeys | None = None, system: bool = False, on_notice: OnNotice | None = None
) -> tuple[Message, ...]:
    """Read the messages that a client of AG-UI posts: its `RunAgentInput`, as a dict, JSON or a value of its package,
    or the list of messages. All else is as in `read_vercel`.
    """
    state = PostedState(_check_keys(carry), on_notice)
    history = read_ag_ui_messages(run, state=state, system=system)
    state.report()
    return history
