"""Reads the answer to one request of a probe as far as it can be read: `observe(…) → Observation`. It never raises."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects import find_dialect, plain_row
from asides.flows.exchange import ResponseReader
from asides.flows.probe.find_tags import FoundTags, find_tags, suggests_thinking
from asides.flows.retry import decode_error
from asides.flows.steps import Head
from asides.intake.detect import detect_dialect
from asides.providers.provider import ModelRule, Target
from asides.values.errors import AsidesError, ConnectionLost, ProtocolError, ProviderError, quote_message, split_advice
from asides.values.reply import Reply
from asides.wire.lenient import parse_or_none, read_thought_text

State: TypeAlias = Literal["answered", "refused", "absent", "locked", "redirected", "unreadable", "failed"]
"""A reply · an error about the request · nothing at this path · a key is needed or not accepted · another address ·
bytes that are not a reply · no complete answer."""

# The fields of a message that hold no running text of the model beside its answer.
_OTHER_FIELDS = frozenset(
    "role content refusal tool_calls function_call audio annotations name images citations obfuscation id tool_call_id"
    " tool_name type object index status model finish_reason stop_reason logprobs matched_stop channel".split()
)
# The dialects whose messages are objects with named fields.
_WITH_FIELDS = ("openai_chat", "ollama")
_SNAPSHOTS = 3
_LEAST_WORDS = 2
# A field name that a row can hold: short, without control characters, quotes, backslashes or outer blanks.
_NAME = re.compile(r'(?!\s)[^\x00-\x1f\x7f-\x9f"\\]{1,64}(?<!\s)')
_ABSENT = (404, 405, 410, 501)
_MODEL_WORDS = re.compile(r"model|deployment|engine|snapshot", re.IGNORECASE)
_MAX_TEXT = 8192


class Observation(msgspec.Struct, frozen=True):
    """What one answer showed."""

    state: State
    status: int = 0
    detail: str = ""
    """Why there is no reply, in one line: the server's words or ours."""
    said: str = ""
    """The body of a refusal as text, to look for names in it."""
    kind: str | None = None
    """The kind of a refusal, where it is a known one."""
    dialect: str | None = None
    reply: Reply | None = None
    """The reply, its text not yet separated by tags."""
    fields: tuple[tuple[str, str], ...] = ()
    """The fields beside the answer that carried running text, and that text."""
    objects: tuple[str, ...] = ()
    """Those fields that were objects or lists instead of text."""
    elsewhere: tuple[str, ...] = ()
    """Paths outside of messages with text that is named like thinking. No row can name them."""
    tags: FoundTags | None = None
    snapshots: bool = False
    """The pieces of a field repeated all that came before."""
    streamed: bool = False
    usage: tuple[tuple[str, int], ...] = ()
    """The counts of the reply by the server's own names."""
    received: float = 0.0
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Observation({self.state}, {self.status}, {self.dialect}, thinks={self.thinks})"

    @property
    def thinking(self) -> str:
        """The thinking that was seen; "" when there was none."""
        if self.fields:
            return self.fields[0][1]
        if self.reply is not None and self.reply.thinking.text:
            return self.reply.thinking.text
        return "" if self.tags is None else self.tags.thinking

    @property
    def thinks(self) -> bool:
        """Whether the reply has thinking: text, a seal, or a count of its tokens."""
        if self.reply is None:
            return False
        counted = self.reply.usage.thinking or 0
        return bool(self.thinking.strip()) or bool(self.reply.seals) or counted > 0

    @property
    def amount(self) -> int:
        """The size of the thinking, in tokens where they are counted."""
        counted = None if self.reply is None else self.reply.usage.thinking
        return counted or len(self.thinking) // 4

    @property
    def answer(self) -> str:
        """The answer, without thinking in tags."""
        if self.tags is not None:
            return self.tags.answer
        return "" if self.reply is None else self.reply.text

    @property
    def is_cut(self) -> bool:
        """Whether the reply ran out of tokens."""
        return self.reply is not None and self.reply.stop.reason == "length"


def report_failure(error: AsidesError, received: float = 0.0) -> Observation:
    """The observation where no complete answer arrived."""
    return Observation("failed", detail=quote_message(str(error)), received=received)


def observe(head: Head, body: bytes, dialect: str, *, cut_off: str = "") -> Observation:
    """Read a response. `dialect` is that of the request; `cut_off` says why the body is not whole."""
    try:
        seen = _read(head, body, dialect)
    except Exception as problem:  # noqa: BLE001 - no response may stop the probe
        seen = Observation("unreadable", head.status, f"the answer cannot be read ({type(problem).__name__})")
    if cut_off and seen.state in ("unreadable", "failed"):
        seen = msgspec.structs.replace(seen, state="failed", detail=cut_off)
    return msgspec.structs.replace(seen, received=head.received, body=body)


def _read(head: Head, body: bytes, dialect: str) -> Observation:
    if 300 <= head.status < 400:
        where = quote_message(head.headers.get("location", "another address").partition("?")[0])
        return Observation("redirected", head.status, f"it redirects to {where}, which is not followed")
    target = _make_target(dialect)
    if not 200 <= head.status < 300:
        return _read_refusal(decode_error(find_dialect(dialect), head, body, target), head.status, body, dialect)
    try:
        spoken = detect_dialect(body)
    except (ProtocolError, ConnectionLost) as problem:
        return Observation("unreadable", head.status, quote_message(split_advice(str(problem))[0]))
    target = _make_target(spoken)
    reader = ResponseReader(find_dialect(spoken).decoder(target), "the server")
    reader.feed(body)
    reader.finish()
    documents = [parse_or_none(payload) for payload in reader.decoder.payloads]
    try:
        reply = reader.reply()
    except ProviderError as error:
        # An error inside a good response.
        return _read_refusal(error, head.status, body, spoken)
    except AsidesError as error:
        if error.partial is None or not error.partial.parts:
            return Observation("unreadable", head.status, quote_message(split_advice(str(error))[0]))
        reply = error.partial
    if not reply.parts and not reply.usage.thinking and reply.stop.reason != "length":
        return Observation("unreadable", head.status, "the reply is empty")
    return _observe_reply(reply, documents, spoken, streamed=reader.decoder.streamed, status=head.status)


def _make_target(dialect: str) -> Target:
    """A target whose decoder leaves tags in the text: they are evidence."""
    row = plain_row(dialect)
    return Target(row, "", "http://server", ModelRule(tags=()))


def _read_refusal(error: ProviderError, status: int, body: bytes, dialect: str) -> Observation:
    said = body[:_MAX_TEXT].decode("utf-8", "replace")
    # Our own errors wrap the server's words; drop our prefix and advice.
    words = quote_message(error._said[0]) or quote_message(said) or f"status {status}"
    state: State = "refused"
    if status in (401, 403):
        state = "locked"
    elif status in _ABSENT and not (status == 404 and _MODEL_WORDS.search(said) and parse_or_none(body) is not None):
        state = "absent"
    kind = getattr(error, "kind", None)
    return Observation(state, status, f"{status}: {words}", said, kind, dialect)


# --- a reply ----------------------------------------------------------------------------------------------------------


def _observe_reply(reply: Reply, documents: Sequence[Any], dialect: str, *, streamed: bool, status: int) -> Observation:
    pieces, objects = _collect_pieces(documents if dialect in _WITH_FIELDS else ())
    fields: list[tuple[str, str]] = []
    snapshots = False
    content = reply.text
    for name, texts in pieces.items():
        repeated = streamed and _are_snapshots(texts)
        text = texts[-1] if repeated else "".join(texts)
        if name == "content":
            content = text if repeated else content
        elif _is_thinking(name, text, content):
            fields.append((name, text))
        else:
            continue
        snapshots = snapshots or repeated
    return Observation(
        "answered",
        status,
        dialect=dialect,
        reply=reply,
        fields=tuple(fields),
        objects=tuple(name for name, _ in fields if name in objects),
        elsewhere=_find_elsewhere(documents) if dialect in _WITH_FIELDS else (),
        tags=find_tags(content, cut=reply.stop.reason == "length"),
        snapshots=snapshots,
        streamed=streamed,
        usage=_read_counts(documents),
    )


def _is_thinking(name: str, text: str, content: str) -> bool:
    """Whether a field carries thinking: it is named like it, or holds running text that is not the answer."""
    if not text.strip():
        return False
    if suggests_thinking(name):
        return True
    return len(text.split()) >= _LEAST_WORDS and text.strip() not in content and "://" not in text


def _collect_pieces(documents: Iterable[Any]) -> tuple[dict[str, list[str]], set[str]]:
    """The texts of each field of the messages, in order, and the fields that were objects or lists."""
    pieces: dict[str, list[str]] = {}
    objects: set[str] = set()
    for message in _find_messages(documents):
        for name, value in message.items():
            if name == "content":
                if isinstance(value, str) and value:
                    pieces.setdefault(name, []).append(value)
                continue
            if name in _OTHER_FIELDS or not _NAME.fullmatch(name) or not isinstance(value, (str, list, dict)):
                continue
            if text := read_thought_text(value):
                pieces.setdefault(name, []).append(text)
                if not isinstance(value, str):
                    objects.add(name)
    return pieces, objects


def _find_messages(documents: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The messages, or their pieces, in documents whose messages are objects with fields."""
    for document in documents:
        if not isinstance(document, dict):
            continue
        choices = document.get("choices")
        holders = choices[:1] if isinstance(choices, list) else [document]
        for holder in holders:
            if isinstance(holder, dict):
                for name in ("delta", "message"):
                    message = holder.get(name)
                    if isinstance(message, dict):
                        yield message


def _find_elsewhere(documents: Iterable[Any]) -> tuple[str, ...]:
    """Fields beside the messages, at the top or in a choice, that hold text and are named like thinking."""
    found: dict[str, None] = {}
    for document in documents:
        if not isinstance(document, dict):
            continue
        choices = document.get("choices")
        holders = [("", document)]
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            holders.append(("choices[0].", choices[0]))
        for before, holder in holders:
            for name, value in holder.items():
                if isinstance(value, str) and value.strip() and _NAME.fullmatch(name) and suggests_thinking(name):
                    found[f"{before}{name}"] = None
    return tuple(found)


def _are_snapshots(texts: Sequence[str]) -> bool:
    """Whether each text begins with the one before it."""
    longer = [text for place, text in enumerate(texts) if not place or text != texts[place - 1]]
    return len(longer) >= _SNAPSHOTS and all(later.startswith(earlier) for earlier, later in pairwise(longer))


def _read_counts(documents: Iterable[Any]) -> tuple[tuple[str, int], ...]:
    """The counts of the last document that has any, nested ones with their path."""
    counts: dict[str, int] = {}
    for document in documents:
        if isinstance(document, dict):
            for name in ("usage", "usageMetadata"):
                if isinstance(document.get(name), dict):
                    counts |= _flatten(document[name])
    return tuple(counts.items())


def _flatten(counts: dict[str, Any], before: str = "", depth: int = 3) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in counts.items():
        if isinstance(value, int) and not isinstance(value, bool):
            found[f"{before}{name}"] = value
        elif isinstance(value, dict) and depth:
            found |= _flatten(value, f"{before}{name}.", depth - 1)
    return found
