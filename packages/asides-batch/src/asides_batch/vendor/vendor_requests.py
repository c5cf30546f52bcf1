"""Requests to a vendor's batches, as flows; and the rows of a batch, encoded and decoded as live calls are."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest
from asides.flows.call import BareCall, Call, encode_request
from asides.flows.exchange import Exchange
from asides.flows.fetch_body import fetch_body
from asides.flows.retry import NO_HEAD, clean_error, decode_error, fetch_key, receive_error, wait_before_next
from asides.flows.steps import Emit, Flow, Head, Now, Open, Read, Sleep
from asides.providers.batch_facts import BatchFacts, require_batch_facts
from asides.providers.credentials import KeySource
from asides.providers.learned_rules import recall
from asides.providers.settle import settle
from asides.values.errors import AsidesError, ProtocolError, ProviderError, TransportError
from asides.values.reply import Reply
from asides_batch.vendor.forms import BatchForm, FormResponse, RowOutcome, VendorRow, find_form

_T = TypeVar("_T")
_LONGEST_LINE = 64 * 1024 * 1024


class VendorTarget(msgspec.Struct, frozen=True):
    """Where a batch goes: an example of its rows, with the facts and the form of its vendor."""

    call: Call
    row: VendorRow
    facts: BatchFacts
    form: BatchForm

    @property
    def bare(self) -> BareCall:
        """The call for requests that ask no model."""
        return BareCall(self.call.target, self.call.policy, self.call.key)


def find_target(call: Call, custom_id: str) -> VendorTarget:
    """The row of a call in a vendor's batch. Raises Unsupported if the provider has no batches that are known."""
    target = settle(call.target, learned=recall(call.target, call.prompt.messages))
    facts = require_batch_facts(target)
    sent = encode_request(call.prompt, target, on_conflict=call.policy.on_conflict)
    return VendorTarget(call, VendorRow(custom_id, sent.request), facts, find_form(facts.form))


# --- requests ---------------------------------------------------------------------------------------------------------


def send(
    target: VendorTarget, request: HttpRequest, read: Callable[[bytes], _T], what: str, *, once: bool = False
) -> Flow[_T]:
    """Send a request and read its response. `once`: no second attempt, since the first may have had its effect."""
    return _send(target, request, lambda _, body: read(body), what, once)


def send_upload(target: VendorTarget, request: HttpRequest) -> Flow[FormResponse]:
    """Send a part of an upload. It may be repeated: files cost nothing."""
    return _send(target, request, lambda head, body: FormResponse(head.headers, body), "upload", False)


def _send(
    target: VendorTarget, request: HttpRequest, read: Callable[[Head, bytes], _T], what: str, once: bool
) -> Flow[_T]:
    call = target.bare
    policy = msgspec.structs.replace(call.policy, retries=0) if once else call.policy
    try:
        return (
            yield from fetch_body(
                request,
                find_dialect(call.target.dialect),
                call.target,
                read,
                what=f"answer to the {what} of a batch",
                policy=policy,
                key=call.key,
                jitter=random.random,
            )
        )
    except AsidesError as error:
        clean_error(error, call.target, call.key)
        raise


def read_lines(target: VendorTarget, request: HttpRequest) -> Flow[bool]:
    """Emit the lines of a response as they arrive. Tried again only until the first line is emitted."""
    call = target.bare
    dialect, attempt, is_emitted = find_dialect(call.target.dialect), 0, False
    try:
        while True:
            attempt += 1
            head = NO_HEAD
            try:
                if isinstance(call.key, KeySource):
                    yield from fetch_key(call.key)
                head = yield Open(request)
                if not 200 <= head.status < 300:
                    raise (yield from receive_error(dialect, head, call.target))
                pieces: list[bytes] = []
                size = 0
                while data := (yield Read()):
                    if b"\n" not in data:
                        size += len(data)
                        if size > _LONGEST_LINE:
                            raise ProtocolError("a line of the results is too long.")
                        pieces.append(data)
                        continue
                    *lines, rest = b"".join((*pieces, data)).split(b"\n")
                    pieces, size = [rest], len(rest)
                    is_emitted = True
                    yield Emit([line for line in lines if line.strip()])
                if (last := b"".join(pieces)).strip():
                    yield Emit([last])
                return True
            except (TransportError, ProviderError) as error:
                if is_emitted:
                    raise
                seconds = wait_before_next(error, head, attempt, call.policy, random.random(), call.key)
            yield Sleep(seconds)
    except AsidesError as error:
        clean_error(error, call.target, call.key)
        raise


# --- rows -------------------------------------------------------------------------------------------------------------


def decode_row(call: Call, outcome: RowOutcome, share: Decimal) -> Reply:
    """The reply of a row, decoded as that of a live call. Raises the error of the row. `share`: of the live price."""
    if outcome.kind != "answered":
        error = _read_error(call, outcome)
        clean_error(error, call.target, call.key, call.prompt)
        raise error
    # The request was sent long ago: nothing can be repaired or tried again here.
    policy = msgspec.structs.replace(call.policy, retries=0, recover=None)
    exchange = Exchange(msgspec.structs.replace(call, policy=policy, fallbacks=()))
    exchange.emitted = True
    return _feed(exchange.steps(), outcome).with_call(price_share=share)


def _feed(flow: Flow[Reply], outcome: RowOutcome) -> Reply:
    """Give a flow its response in one piece."""
    pieces = iter((outcome.body, b""))
    answer: Any = None
    while True:
        try:
            step = flow.send(answer)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        match step:
            case Open():
                answer = Head(outcome.status, {})
            case Read():
                answer = next(pieces, b"")
            case Now() | Emit():
                # A row has no time of its own.
                answer = None
            case _:
                flow.close()
                raise ProtocolError("the result of a row cannot be decoded.")


def _read_error(call: Call, outcome: RowOutcome) -> AsidesError:
    name = call.target.provider.name
    if outcome.kind == "expired":
        return ProviderError(f"{name}: {outcome.message or 'the batch expired'}", status=None, code="batch_expired")
    if outcome.kind == "cancelled":
        return ProviderError(f"{name}: {outcome.message or 'the batch was cancelled'}", code="batch_cancelled")
    if outcome.kind == "unreadable":
        return ProtocolError(f"{name}: {outcome.message}. Resume the batch, which asks again.")
    return decode_error(find_dialect(call.target.dialect), Head(outcome.status, {}), outcome.body, call.target)


def can_retry(outcome: RowOutcome) -> bool:
    """Whether a row that failed or expired may get a reply in another batch."""
    return outcome.kind == "expired" or (
        outcome.kind == "failed" and (outcome.status in (408, 409, 429) or outcome.status >= 500)
    )
