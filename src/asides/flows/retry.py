"""After a failed attempt: read the error, decide whether to try again, and how long to wait. The driver waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import islice

import msgspec

from asides.dialects.dialect import Dialect
from asides.flows.call import Policy
from asides.flows.steps import FetchKey, Flow, Head, Read
from asides.providers.credentials import KeySource, Secret, collect_secrets
from asides.providers.provider import Target
from asides.providers.provider_errors import from_status
from asides.values.errors import (
    AsidesError,
    AuthError,
    BadRequest,
    ConnectionLost,
    ConnectTimeout,
    Overloaded,
    ProviderError,
    RateLimited,
    TransportError,
    quote_message,
)
from asides.values.messages import Prompt
from asides.values.redaction import Redact, build_redactor, hide_quotes, list_texts, redact_bytes

NO_HEAD = Head(0, {})
"""Before the head of a response has arrived."""

ERROR_BODY_LIMIT = 64 * 1024
_RETRY_STATUSES = frozenset({408, 409, 429})
# Errors arrive in one piece, and the status is sufficient.
_READ = Read(patience=5.0)


class Retry(msgspec.Struct, frozen=True):
    """Try again after this many seconds."""

    seconds: float


class GiveUp(msgspec.Struct, frozen=True):
    """Do not retry. `why`: a sentence for the error; "" if the error is sufficient."""

    why: str = ""


# --- the error of a response --------------------------------------------------------------------------------------


def receive_error(dialect: Dialect, head: Head, target: Target) -> Flow[ProviderError]:
    """Read the error of a response with an error status, with a useful part of the body."""
    body = b""
    try:
        # The head of a redirect is sufficient.
        while head.status >= 400 and len(body) < ERROR_BODY_LIMIT and (data := (yield _READ)):
            body += data
    except TransportError:
        pass  # The status alone decides; the body only explains it.
    return decode_error(dialect, head, body, target)


def decode_error(dialect: Dialect, head: Head, body: bytes, target: Target) -> ProviderError:
    """Decode the error of a response with an error status."""
    if 300 <= head.status < 400:
        location = quote_message(head.headers.get("location", "another address").partition("?")[0])
        return ProviderError(
            f"{target.provider.name} answered {head.status} and points to {location}. Redirects are not followed, "
            "since they would carry the key along. Set base_url= to the new address.",
            status=head.status,
        )
    body = body[:ERROR_BODY_LIMIT]
    try:
        error = dialect.error(head.status, head.headers, body, target)
    except Exception as problem:  # noqa: BLE001 - the guard
        # The status alone is sufficient, even with an unreadable body.
        error = from_status(head.status, provider=target.provider.name, body=body)
        error.__cause__ = problem
    if error.retry_after is None:
        error.retry_after = read_retry_after(head.headers, head.received)
    return error


def clean_error(error: AsidesError, target: Target, key: Secret | None, prompt: Prompt | None = None) -> None:
    """Remove the secrets of a call from an error and all that it carries, and from its text what the provider quotes of
    the prompt. Every error that leaves a flow goes through here.
    """
    redact = build_redactor(collect_secrets(target, key))
    if isinstance(error, ProviderError):
        texts = () if prompt is None else list_texts(prompt)
        keep = (target.model, target.provider.name)
        error.rephrase(lambda message: hide_quotes(redact(message), texts, keep))
        if error.code and hide_quotes(error.code, texts, keep) != error.code:
            error.args = (error.args[0].replace(f" ({error.code})", "", 1), *error.args[1:])
    error.args = tuple(redact(value) if isinstance(value, str) else value for value in error.args)
    for name, value in list(vars(error).items()):
        if isinstance(value, str):
            setattr(error, name, redact(value))
        elif isinstance(value, bytes):
            setattr(error, name, redact_bytes(value, redact))
    if error.partial is not None and _hold_secrets(error.partial.payloads, redact):
        payloads = tuple(redact_bytes(payload, redact) for payload in error.partial.payloads)
        error.partial = error.partial.with_call(payloads=payloads)
    if error.__suppress_context__:
        # The errors of HTTP libraries name the whole address.
        error.__context__ = None


def _hold_secrets(documents: Iterable[bytes], redact: Redact) -> bool:
    """Whether there is something to redact. Almost never is, and unchanged documents stay compressed."""
    rest = iter(documents)
    while joined := b"\n".join(islice(rest, 512)):
        if redact_bytes(joined, redact) != joined:
            return True
    return False


# --- the next attempt ---------------------------------------------------------------------------------------------


def fetch_key(key: KeySource) -> Flow[None]:
    """Fetch the key of the next attempt. Raises the error of a server that has just refused the same key."""
    key.take((yield FetchKey(key)))


def _is_stale_key(error: AsidesError) -> bool:
    """Whether another key may help: this one was revoked, or has expired."""
    return isinstance(error, AuthError) and (error.status == 401 or "expired" in (error.code or "").lower())


def wait_before_next(
    error: AsidesError, head: Head, attempt: int, policy: Policy, jitter: float, key: Secret | None = None
) -> float:
    """The seconds until the next attempt. Raises the error when there is none.

    A key that was fetched and is refused is fetched once more, whatever the policy says: it may have expired.
    """
    if isinstance(key, KeySource) and attempt == 1 and isinstance(error, AuthError) and _is_stale_key(error):
        key.refusal = error
        return 0.0
    decision = decide_retry(
        head.status if head.status >= 300 and not isinstance(error, BadRequest) else error,
        head.headers,
        attempt=attempt,
        policy=policy,
        jitter=jitter,
        received=head.received,
    )
    if isinstance(decision, Retry):
        return decision.seconds
    if decision.why:
        error.args = (f"{error} {decision.why}", *error.args[1:])
    raise error


def decide_retry(
    failure: int | AsidesError,
    headers: Mapping[str, str],
    *,
    attempt: int,
    policy: Policy,
    jitter: float,
    received: float = 0.0,
) -> Retry | GiveUp:
    """Decide after the `attempt`-th attempt (the first is 1) failed before the caller got any event.

    `failure` is a status, or the error if there was no status or a success status. Header names are in lower case.
    `jitter` is a number from 0 to 1; `received` is the Unix time of the response.
    """
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "false" or not (advice == "true" or _is_temporary(failure)):
        return GiveUp()
    if attempt > policy.retries:
        return GiveUp(f"Given up after {attempt} attempts." if attempt > 1 else "")
    wait = read_retry_after(headers, received)
    if wait is None:
        wait = getattr(failure, "retry_after", None)
    if wait is None:
        backoff = min(policy.backoff * 2.0 ** min(attempt - 1, 64), policy.max_backoff)
        # Shorten it by up to half, so that clients that failed together do not return together.
        return Retry(backoff * (1 - jitter / 2))
    if wait > policy.max_wait:
        return GiveUp(
            f"Not tried again: the server asks to wait {wait:g} s, more than max_wait ({policy.max_wait:g} s)."
        )
    return Retry(wait)


def _is_temporary(failure: int | AsidesError) -> bool:
    """Whether the same request may succeed later.

    An IdleTimeout is not temporary: the model may still work on the first request, and the caller pays for it.
    """
    if isinstance(failure, int):
        return failure in _RETRY_STATUSES or failure >= 500
    return isinstance(failure, (ConnectTimeout, ConnectionLost, RateLimited, Overloaded))


def read_retry_after(headers: Mapping[str, str], received: float = 0.0) -> float | None:
    """The seconds that a server asks clients to wait; None without such a header, or if it cannot be parsed."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            moment = _parse_date(value)
            if moment is None:
                continue
            # Compare with the server's own clock, if it sends its time.
            now = _parse_date(headers.get("date", "")) or received
            seconds = max(moment - now, 0.0) if now else math.nan
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _parse_date(date: str) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
