"""What every flow does when an attempt failed: read the refusal, and wait for the next attempt or raise.

Not here: the verdict itself (retry), and what is sent.
"""

from __future__ import annotations

from asides.dialects.dialect import Dialect
from asides.flows.call import Policy
from asides.flows.response_reader import ERROR_BODY_LIMIT, refusal
from asides.flows.retry import Retry, verdict
from asides.flows.steps import Flow, Head, Read
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError, TransportError

NO_HEAD = Head(0, {})
"""Before there is one."""

_READ = Read()


def read_refusal(dialect: Dialect, head: Head, target: Target) -> Flow[ProviderError]:
    """The error that a bad status is, from as much of its body as is worth reading."""
    body = b""
    try:
        # A redirect says all in its head.
        while head.status >= 400 and len(body) < ERROR_BODY_LIMIT and (data := (yield _READ)):
            body += data
    except TransportError:
        pass  # The status is what counts; the body only says it in words.
    return refusal(dialect, head, body, target)


def wait_before_next(error: AsidesError, head: Head, attempt: int, policy: Policy, jitter: float) -> float:
    """The seconds until the next attempt; raises the error when there is to be none."""
    settled = verdict(
        head.status if head.status >= 300 else error,
        head.headers,
        attempt=attempt,
        policy=policy,
        jitter=jitter,
        received=head.received,
    )
    if isinstance(settled, Retry):
        return settled.seconds
    if settled.why:
        error.args = (f"{error} {settled.why}", *error.args[1:])
    raise error
