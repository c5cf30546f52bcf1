"""Offline functions: recorded bytes → Reply (`decode`), an object of another library → Reply (`read`), and the request
that a call would send (`explain`).

They run the same code as a live call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack, get_args

import msgspec

from asides import dialects
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.flows.exchange import ResponseReader
from asides.flows.retry import decode_error
from asides.flows.steps import Head
from asides.history.cache_break import CacheBreak, SentBefore, find_cache_break
from asides.history.plan import Decision, encode_plan, plan
from asides.option_help import EXPLAIN_TEXT, describe_options
from asides.options import ModelLike, Options, PromptLike
from asides.providers.credentials import collect_secrets, is_loopback, is_secret_header, is_secret_query
from asides.providers.find import find_provider
from asides.providers.learned_rules import recall
from asides.providers.provider import Provider, Target
from asides.providers.settle import settle
from asides.settings import Settings
from asides.values.errors import ConfigError, ConnectionLost, ProtocolError, UnknownProvider, Unsupported, redact_keys
from asides.values.learned import Learned
from asides.values.messages import Message
from asides.values.notices import Notice, escape_controls
from asides.values.parts import Part
from asides.values.redaction import HIDDEN, Redact, build_redactor
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.intake.replies import FoundReply

_PARTS = get_args(Part)
_PIECE = 1024 * 1024
_MOST_COMMON = "openai_chat"


def decode(
    dialect: str | None,
    body: bytes | str | Iterable[bytes],
    *,
    streaming: bool = True,  # noqa: ARG001 - the bytes show it
    provider: str | Provider | None = None,
    model: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Decode the reply in recorded bytes. Raises the errors of a live call, with `.partial`.

    `dialect` names a dialect, or a provider that speaks it; None recognises it from the bytes. `provider` gives the
    quirks; None is the dialect's plain row. `body` may come in pieces. `streaming` is ignored: the bytes themselves
    show whether they were streamed.
    """
    _check_names(dialect, provider)
    if dialect is None:
        dialect, body = recognise_dialect(body, provider=provider, status=status)
    row, notices = _choose_row(dialect, provider)
    target = Target(row, model or "", row.base_url, row.rule(model or ""))
    wire = dialects.find_dialect(row.dialect)
    if not 200 <= status < 300:
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        raise decode_error(wire, Head(status, lower), b"".join(_split_body(body)), target)
    fields = {"priced_by": row.prices} if row.prices else None
    reader = ResponseReader(wire.decoder(target), row.name, notices, fields=fields)
    # Most bodies are short and in one piece.
    for piece in (body,) if type(body) is bytes and 0 < len(body) <= _PIECE else _split_body(body):
        reader.feed(piece)
    reader.finish()
    return reader.reply()


def read(obj: Any, *, provider: str | Provider | None = None, model: str | None = None) -> Reply:
    """Read the reply in an object of another library. No library is imported.

    `obj` is a response or a message of a model, as openai, anthropic, google-genai, LangChain, pydantic-ai, ollama,
    cohere, boto3 and clients like them have it, or the same as a dict; or a list with the pieces of a stream.
    `provider` and `model` name its origin; seals then go back only there. Raises ConfigError for anything else, and
    the errors of `decode`.
    """
    if isinstance(obj, Reply):
        return obj
    from asides.intake.replies import find_reply

    return _decode_found(find_reply(obj), provider, model)


def read_replies(items: Sequence[Any]) -> list[Any]:
    """The items, with responses and turns of other libraries as replies, which know their usage."""
    from asides.intake.replies import find_response_in

    replies: list[Any] = []
    for item in items:
        found = find_response_in(item) if _may_be_response(item) else None
        try:
            replies.append(item if found is None else _decode_found(found))
        except ConfigError:
            replies.append(item)  # reading the messages raises it again, with its position
    return replies


def _may_be_response(item: object) -> bool:
    if isinstance(item, dict):
        return "role" not in item or "usage" in item
    return item is not None and not isinstance(item, (str, bytes, Message, Reply, list, tuple, os.PathLike, *_PARTS))


def _decode_found(found: FoundReply, provider: str | Provider | None = None, model: str | None = None) -> Reply:
    from asides.intake.objects.read_objects import mark_library_parts

    # An object does not name its host.
    row = msgspec.structs.replace(dialects.plain_row(found.dialect), base_url="") if provider is None else provider
    reply = decode(found.dialect, found.body, provider=row, model=model)
    turn = found.turn
    if turn is None:
        return msgspec.structs.replace(reply, parts=mark_library_parts(reply.parts))
    reply = msgspec.structs.replace(reply, parts=turn.parts)
    return reply.with_call(prefix=turn.prefix, learned=turn.learned, effort=turn.effort)


def recognise_dialect(
    body: bytes | str | Iterable[bytes], *, provider: str | Provider | None = None, status: int = 200
) -> tuple[str, Iterator[bytes]]:
    """The dialect of recorded bytes, and the bytes in pieces. Raises ProtocolError that says why none fits.

    A provider with a dialect of a third party speaks that. An error of HTTP may have any body, a page of a proxy too.
    """
    from asides.intake.detect import detect_in_pieces

    with suppress(UnknownProvider):
        provider = find_provider(provider) if isinstance(provider, str) else provider
    spoken = provider.dialect if isinstance(provider, Provider) else _MOST_COMMON
    pieces = _split_body(body)
    if spoken in dialects.list_third_party():
        return spoken, pieces
    if 200 <= status < 300:
        return detect_in_pieces(pieces)
    whole = b"".join(pieces)
    try:
        return detect_in_pieces((whole,))
    except (ProtocolError, ConnectionLost):
        return spoken, iter((whole,))


def _check_names(dialect: object, provider: object) -> None:
    if not isinstance(dialect, (str, type(None))) or not isinstance(provider, (str, Provider, type(None))):
        raise TypeError("decode takes a dialect by name or None, and a provider by name or as its row.")


def _choose_row(dialect: str, provider: str | Provider | None) -> tuple[Provider, list[Notice]]:
    name = dialects.resolve_alias(dialect)
    plain = dialects.plain_row(name) if dialects.is_known(name) else _find_speaker(dialect)
    if isinstance(provider, Provider):
        row = provider
    elif provider is None:
        row = plain
    else:
        try:
            row = find_provider(provider)
        except UnknownProvider:
            # Decoding needs no address, so an unknown host is not an error.
            detail = f"unknown provider {provider!r}; its bytes were read as plain {plain.dialect}"
            return msgspec.structs.replace(plain, name=provider), [Notice("unknown_provider", detail, "provider")]
    if row.dialect != plain.dialect:
        # The quirks of the row belong to another dialect, unless the provider speaks this one too.
        row = row.with_dialect(plain.dialect) or msgspec.structs.replace(plain, name=row.name)
    return row, []


def _find_speaker(name: str) -> Provider:
    try:
        return find_provider(name)
    except UnknownProvider:
        raise Unsupported(
            f"{name!r} is neither a dialect nor a provider; the dialects are {', '.join(dialects.list_dialects())}."
        ) from None


def _split_body(body: object) -> Iterator[bytes]:
    """The body in non-empty pieces, since an empty one means the end; small ones, to limit memory."""
    pieces = body
    if isinstance(pieces, str):
        pieces = pieces.encode("utf-8", "surrogatepass")
    if isinstance(pieces, (bytes, bytearray, memoryview)):
        pieces = [bytes(pieces)]
    if not isinstance(pieces, Iterable) or isinstance(pieces, Mapping):
        raise ConfigError(f"decode takes bytes, text or pieces of bytes as the body, not {type(body).__name__}.")
    for piece in pieces:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise ConfigError(f"decode takes the body in pieces of bytes, not of {type(piece).__name__}.")
        data = bytes(piece)
        for start in range(0, len(data), _PIECE):
            yield data[start : start + _PIECE]


# --- explain ------------------------------------------------------------------------------------------------------


class Explanation(msgspec.Struct, frozen=True):
    """The request that a call would send, and the reasons for it. Nothing was sent."""

    target: Target
    method: str
    url: str
    headers: dict[str, str]
    """As they would be sent, with the key as ***."""
    body: Any
    """The request's JSON."""
    decisions: tuple[Decision, ...] = ()
    """For each part of the history: whether it goes back, and why."""
    notices: tuple[Notice, ...] = ()
    """Notices about settings that were adjusted, dropped or not understood."""
    missing_key: tuple[str, ...] | None = None
    """The variables that could hold the key, where a key is needed and none was found."""
    why_endpoint: str = ""
    """Why this dialect was chosen."""
    fallbacks: tuple[str, ...] = ()
    """The models that are asked in order when this one fails."""
    memory: tuple[Learned, ...] = ()
    """What refusals of earlier requests taught about this model, in this process or in the messages."""
    cache_break_at: CacheBreak | None = None
    """Where the request no longer begins like the one before it, and why: the provider's cache ends there. None:
    nowhere, or there was none before."""
    passes: dict[str, str] = {}
    """The passes of the plan that changed the request, in order, each with its reason."""

    def __repr__(self) -> str:
        return f"Explanation({self.method} {self.url}, notices={[notice.code for notice in self.notices]})"

    def to_text(self) -> str:
        """The request and the reasons for it, as readable text."""
        lines = [f"{self.target.provider.name}:{self.target.model}"]
        if self.why_endpoint:
            lines.append(f"{self.target.dialect}: {self.why_endpoint}")
        lines += ["", f"{self.method} {self.url}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += ["", msgspec.json.format(msgspec.json.encode(self.body), indent=2).decode()]
        if self.missing_key is not None:
            lines += ["", f"No key was found; set {' or '.join(self.missing_key) or 'api_key='}."]
        if self.fallbacks:
            lines += ["", f"If it fails, these are asked: {', '.join(self.fallbacks)}."]
        if self.passes:
            lines += ["", "What the plan changed, and why:"]
            lines += [f"  {name}: {reason}" for name, reason in self.passes.items()]
        if self.decisions:
            lines += ["", "Of the history:"]
            lines += [f"  {_format_decision(decision)}" for decision in self.decisions]
        if self.memory:
            lines += ["", "Learned from earlier refusals:"]
            lines += [f"  {_format_fact(fact)}" for fact in self.memory]
        if self.cache_break_at is not None:
            lines += ["", _format_break(self.cache_break_at)]
        if self.notices:
            lines += ["", "Notices:"]
            lines += [f"  {notice}{_format_change(notice)}" for notice in self.notices]
        return "\n".join(lines)


def _format_decision(decision: Decision) -> str:
    source = f" [{', '.join(text for text in (decision.since, decision.source) if text)}]"
    reason = f"message {decision.message}, part {decision.part}: {decision.action} the {decision.what}: {decision.why}"
    return reason if source == " []" else reason + source


def _format_fact(fact: Learned) -> str:
    known = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in fact.changes]
    if fact.refused:
        known.append(f"{len(fact.refused)} refused seals or thoughts do not go back")
    # A saved conversation may come from someone else.
    return escape_controls(f"{fact.kind}: {'; '.join(known)}")


def _format_break(found: CacheBreak) -> str:
    at = found.path if found.message is None else f"{found.path} (message {found.message})"
    source = ", ".join(text for text in (found.since, found.source) if text)
    return f"The prompt cache ends at {at}: {found.why}{f' [{source}]' if source else ''}"


def _format_change(notice: Notice) -> str:
    return f" ({notice.setting}: {notice.asked} → {notice.sent})" if notice.asked and notice.sent else ""


def explain(
    model: ModelLike | None = None,
    prompt: PromptLike | None = None,
    *,
    settings: Settings | None = None,
    providers: Sequence[Provider] = (),
    **options: Unpack[Options],
) -> Explanation:
    """The exact request of `ask` with these arguments, the key as ***, and the reasons for its content.

    Sends nothing and needs no key. Raises the errors that `ask` raises before a byte is sent. Of several models it
    explains the request to the first, and lists the others.
    """
    builder = CallBuilder(providers=providers, settings=settings)
    return explain_call(builder.build(model, prompt, options, stream=False, needs_key=False))


describe_options(explain, first=EXPLAIN_TEXT)


def explain_call(call: Call, before: SentBefore | None = None) -> Explanation:
    """Explain the request of a call. `before` is the request before it in its conversation, where that is known."""
    target = settle(call.target, learned=recall(call.target, call.prompt.messages))
    planned = plan(call.prompt, target, on_conflict=call.policy.on_conflict)
    dialect = dialects.find_dialect(target.dialect)
    request, encoder_notices = encode_plan(planned, target, dialect, on_conflict=call.policy.on_conflict)
    provider = target.provider
    headers = {name: HIDDEN if is_secret_header(name) else value for name, value in request.headers.items()}
    missing: tuple[str, ...] | None = None
    if request.credential_header is not None:
        name, prefix = (call.key and call.key.header) or request.credential_header
        if call.key is not None and call.key.signs:
            headers["Authorization"] = f"AWS4-HMAC-SHA256 {HIDDEN}"
        elif call.key is not None or call.target.launches:
            headers[name] = prefix + HIDDEN
        elif provider.key == "required" and not is_loopback(target.base_url):
            missing = provider.key_env
    redact = build_redactor(collect_secrets(call.target, call.key))
    return Explanation(
        target,
        request.method,
        redact_keys(redact(_hide_query(request.url))),
        {name: redact(value) for name, value in headers.items()},
        _redact_strings(msgspec.json.decode(request.body), redact),
        planned.decisions,
        (*call.notices, *planned.notices, *encoder_notices),
        missing,
        call.why_endpoint,
        tuple(other.model for other in call.fallbacks),
        target.learned,
        find_cache_break(call.prompt, target, before=before, on_conflict=call.policy.on_conflict),
        {each.name: each.reason for each in planned.passes},
    )


def _hide_query(url: str) -> str:
    """Return the address with its query values hidden, except known harmless ones."""
    address, mark, query = url.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&"))
    hidden = "&".join(
        f"{name}={HIDDEN}" if value and is_secret_query(name) else f"{name}{sign}{value}" for name, sign, value in pairs
    )
    return f"{address}{mark}{hidden}"


def _redact_strings(value: Any, redact: Redact) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {name: _redact_strings(inner, redact) for name, inner in value.items()}
        case list():
            return [_redact_strings(inner, redact) for inner in value]
        case _:
            return value
