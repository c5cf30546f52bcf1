"""What needs no network: recorded bytes → Reply (`decode`), and the request that a call would send (`explain`).

Both take the ways of a live call; nothing is decided here a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import msgspec

from asides import dialects
from asides.flows.build_call import CallBuilder
from asides.flows.response_reader import ResponseReader, refusal
from asides.flows.steps import Head
from asides.history.plan import Decision, plan
from asides.options import Options, PromptLike
from asides.providers.credentials import AwsCredentials
from asides.providers.find import find_provider
from asides.providers.provider import Provider, Target
from asides.settings import Settings
from asides.values.errors import UnknownProvider, Unsupported, redact_keys
from asides.values.notices import Notice
from asides.values.reply import Reply

HIDDEN = "***"


def decode(
    dialect: str,
    body: bytes | str | Iterable[bytes],
    *,
    streaming: bool = True,  # noqa: ARG001 - the bytes tell
    provider: str | Provider | None = None,
    model: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """The reply that recorded bytes are; raises, with `.partial`, what a live call would have raised.

    `dialect` is a wire language, or the name of a provider, whose language is then meant. `provider` gives the quirks;
    None is the dialect's plain row. `body` may come in pieces. `streaming` says what had been asked for; the bytes
    themselves show what came, and they count.
    """
    _check_names(dialect, provider)
    row, notices = _row(dialect, provider)
    target = Target(row, model or "", row.base_url, row.rule(model or ""))
    spoken = dialects.find_dialect(row.dialect)
    if not 200 <= status < 300:
        told = {name.lower(): value for name, value in (headers or {}).items()}
        raise refusal(spoken, Head(status, told), b"".join(_pieces(body)), target)
    reading = ResponseReader(spoken.decoder(target), notices)
    for piece in _pieces(body):
        reading.take(piece)
    reading.end()
    return reading.reply()


def _check_names(dialect: object, provider: object) -> None:
    if not isinstance(dialect, str) or not isinstance(provider, (str, Provider, type(None))):
        raise TypeError("decode takes a dialect by name, and a provider by name or as its row.")


def _row(dialect: str, provider: str | Provider | None) -> tuple[Provider, list[Notice]]:
    spoken = dialects.resolve_alias(dialect)
    plain = dialects.plain_row(spoken) if dialects.is_known(spoken) else _speaker(dialect)
    if isinstance(provider, Provider):
        row = provider
    elif provider is None:
        row = plain
    else:
        try:
            row = find_provider(provider)
        except UnknownProvider:
            # Decoding needs no address, so nothing is wrong with a host that nobody has heard of.
            detail = f"no provider is called {provider!r}; its bytes were read as plain {plain.dialect}"
            return msgspec.structs.replace(plain, name=provider), [Notice("unknown_provider", detail, "provider")]
    if row.dialect != plain.dialect:
        # Its quirks are those of another language, unless it is known to speak this one too.
        row = row.with_dialect(plain.dialect) or msgspec.structs.replace(plain, name=row.name)
    return row, []


def _speaker(name: str) -> Provider:
    try:
        return find_provider(name)
    except UnknownProvider:
        raise Unsupported(
            f"{name!r} is neither a dialect nor a provider; the dialects are {', '.join(dialects.list_dialects())}."
        ) from None


def _pieces(body: bytes | str | Iterable[bytes]) -> Iterator[bytes]:
    """The body in non-empty pieces, since an empty one is the end."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        body = [bytes(body)]
    return (piece for piece in body if piece)


# --- explain ------------------------------------------------------------------------------------------------------


class Explanation(msgspec.Struct, frozen=True):
    """What a call would send, and why it looks so. Nothing was sent."""

    target: Target
    method: str
    url: str
    headers: dict[str, str]
    """As they would be sent, with the key as ***."""
    body: Any
    """The request's JSON."""
    decisions: tuple[Decision, ...] = ()
    """What of the history goes back, what does not, and why."""
    notices: tuple[Notice, ...] = ()
    """What was adjusted, dropped or not understood."""
    missing_key: tuple[str, ...] | None = None
    """The variables that could hold the key, where one is needed and none was found."""
    why_endpoint: str = ""
    """Why this dialect is spoken."""

    def __repr__(self) -> str:
        return f"Explanation({self.method} {self.url}, notices={[notice.code for notice in self.notices]})"

    def to_text(self) -> str:
        """For people: the request as it would go out, and the reasons."""
        lines = [f"{self.target.provider.name}:{self.target.model}"]
        if self.why_endpoint:
            lines.append(f"{self.target.dialect}: {self.why_endpoint}")
        lines += ["", f"{self.method} {self.url}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += ["", msgspec.json.format(msgspec.json.encode(self.body), indent=2).decode()]
        if self.missing_key is not None:
            lines += ["", f"No key was found; set {' or '.join(self.missing_key) or 'api_key='}."]
        if self.decisions:
            lines += ["", "Of the history:"]
            lines += [f"  {_sentence(decision)}" for decision in self.decisions]
        if self.notices:
            lines += ["", "Worth knowing:"]
            lines += [f"  {notice}{_change(notice)}" for notice in self.notices]
        return "\n".join(lines)


def _sentence(decision: Decision) -> str:
    source = f" [{', '.join(told for told in (decision.since, decision.source) if told)}]"
    reason = f"message {decision.message}, part {decision.part}: {decision.action} the {decision.what}: {decision.why}"
    return reason if source == " []" else reason + source


def _change(notice: Notice) -> str:
    return f" ({notice.setting}: {notice.asked} → {notice.sent})" if notice.asked and notice.sent else ""


def explain(
    model: str,
    prompt: PromptLike,
    *,
    settings: Settings | None = None,
    providers: Sequence[Provider] = (),
    **options: Unpack[Options],
) -> Explanation:
    """The exact request of `ask` with these arguments, the key as ***, and what is kept, dropped or converted and why.

    Sends nothing and needs no key. Raises what `ask` would raise before a byte is sent.
    """
    defaults = CallBuilder(providers=providers, settings=settings)
    call = defaults.call(model, prompt, options, stream=False, needs_key=False)
    planned = plan(call.prompt, call.target, on_conflict=call.policy.on_conflict)
    request, spelled = dialects.find_dialect(call.target.dialect).encode(planned.prompt, call.target)
    provider = call.target.provider
    headers = dict(request.headers)
    missing: tuple[str, ...] | None = None
    if request.credential_header is not None:
        name, prefix = request.credential_header
        if isinstance(call.key, AwsCredentials):
            headers["Authorization"] = f"AWS4-HMAC-SHA256 {HIDDEN}"
        elif call.key is not None or call.target.launches:
            headers[name] = prefix + HIDDEN
        elif provider.key == "required":
            missing = provider.key_env
    return Explanation(
        call.target,
        request.method,
        redact_keys(request.url),
        headers,
        msgspec.json.decode(request.body),
        planned.decisions,
        (*call.notices, *planned.notices, *spelled),
        missing,
        call.why_endpoint,
    )
