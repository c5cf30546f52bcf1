"""Write the results of a vendor's batch that has ended: each row is decoded as a live reply, and written once.

Results are read entry by entry and written in groups, so that a process that ends in between loses nothing and repeats
nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from asides.dialects.dialect import HttpRequest
from asides.values.errors import AsidesError, ProtocolError, ProviderError
from asides.values.reply import Reply
from asides_batch.ledger_values import Outcome
from asides_batch.vendor.forms import RowKind, RowOutcome, VendorStatus
from asides_batch.vendor.vendor_channel import VendorChannel
from asides_batch.vendor.vendor_requests import VendorTarget, can_retry, decode_row, read_lines, send

if TYPE_CHECKING:
    from asides_batch.ledger_values import Claim

_GROUP = 200


async def read_outcomes(
    channel: VendorChannel, target: VendorTarget, status: VendorStatus, on_problem: Callable[[ProtocolError], object]
) -> AsyncIterator[list[RowOutcome]]:
    """The results of a batch, in groups, as they arrive. `on_problem` gets the error of each entry that cannot be read,
    and reading continues.
    """
    form = target.form
    for request in form.fetch(target.row, status):
        group: list[RowOutcome] = []
        async for entries in _receive_entries(channel, target, request, status, on_problem):
            for entry in entries:
                try:
                    group.append(form.read_entry(entry))
                except ProtocolError as problem:
                    on_problem(problem)
            while len(group) >= _GROUP:
                yield group[:_GROUP]
                del group[:_GROUP]
        if group:
            yield group


async def _receive_entries(
    channel: VendorChannel,
    target: VendorTarget,
    request: HttpRequest,
    status: VendorStatus,
    on_problem: Callable[[ProtocolError], object],
) -> AsyncIterator[Sequence[bytes]]:
    """The entries of a response: its lines as they arrive, or the parts of a document. `on_problem` gets the error of
    a document that cannot be split, or of a line without end.
    """
    try:
        if target.form.has_lines(status):
            async for lines in channel.receive(target, read_lines(target, request)):
                yield lines
        else:
            yield await channel.send(target, send(target, request, target.form.split, "results"))
    except ProtocolError as problem:
        on_problem(problem)


async def write_results(channel: VendorChannel, marker: str, target: VendorTarget, status: VendorStatus) -> None:
    """Write the results of a batch that has ended. Rows that the vendor did not run wait again. Others without a result
    fail, since they may have been paid for. Raises ProtocolError if nothing of the results can be read.
    """
    if status.is_limit:
        # The vendor ran nothing of it, and later has room for it.
        await channel.write(lambda ledger: ledger.close(marker, "dropped"))
        return
    if status.error and not status.has_results:
        name = target.call.target.provider.name
        problem = ProviderError(f"{name} failed the whole batch: {status.error}", code="batch_failed")
        await fail_all(channel, marker, problem)
        return
    sent = await channel.store(lambda ledger: ledger.list_sent(marker))
    problems: list[ProtocolError] = []
    is_any_read = False
    if status.has_results and sent:
        async for group in read_outcomes(channel, target, status, problems.append):
            is_any_read = True
            # The first result of a row counts, whatever else a vendor sends for it.
            fresh = {one.custom_id: one for one in reversed(group) if one.custom_id in sent}
            if fresh:
                await _write_group(channel, marker, target, [*fresh.values()], sent)
                for name in fresh:
                    del sent[name]
    state = status.state.lower()
    kind: RowKind = "cancelled" if state.startswith("cancel") else "expired" if state == "expired" else "unreadable"
    if sent and not is_any_read and (problems or kind == "unreadable"):
        # Perhaps a proxy answered in the vendor's place, or the results come a moment later.
        raise problems[0] if problems else ProtocolError(f"the batch is {state} and has no results.")
    words = f"the batch {status.id} is {state} and has no result for this request"
    if problems:
        kind, entries = "unreadable", "1 entry" if len(problems) == 1 else f"{len(problems)} entries"
        words = f"{entries} of the results of the batch {status.id} cannot be read, and the others are not of this one"
    left = [RowOutcome(hash_, kind, 0, message=words) for hash_ in sent]
    for start in range(0, len(left), _GROUP):
        await _write_group(channel, marker, target, left[start : start + _GROUP], sent)
    await channel.write(lambda ledger: ledger.close(marker, "ended"))


async def _write_group(
    channel: VendorChannel,
    marker: str,
    target: VendorTarget,
    outcomes: Sequence[RowOutcome],
    attempts: dict[str, int],
) -> None:
    claims = await channel.store(lambda ledger: ledger.read_requests([one.custom_id for one in outcomes]))
    settled: list[Outcome] = []
    returned: list[Outcome] = []
    is_cancelled = channel.job.record.state == "cancelled"
    for one in outcomes:
        claim = claims.get(one.custom_id)
        if claim is None:
            continue
        written = _decode(channel, claim, target, one)
        is_last = attempts.get(one.custom_id, 0) > channel.job.retries
        waits = (can_retry(one) and not is_last) or (one.kind == "cancelled" and is_cancelled)
        (returned if waits else settled).append(written)
    await channel.write(lambda ledger: ledger.settle(marker, settled, returned, channel.job.limits))


def _decode(channel: VendorChannel, claim: Claim, target: VendorTarget, outcome: RowOutcome) -> Outcome:
    share = target.facts.price
    answer: Reply | AsidesError
    try:
        answer = decode_row(channel.build(claim), outcome, share)
    except AsidesError as error:
        if error.partial is not None:
            error.partial = error.partial.with_call(price_share=share)
        answer = error
    return channel.job.encode(claim, answer)


async def fail_all(channel: VendorChannel, marker: str, error: AsidesError) -> None:
    """Give all requests of a batch that have no result this error, and end the batch."""
    hashes = list(await channel.store(lambda ledger: ledger.list_sent(marker)))
    for start in range(0, len(hashes), _GROUP):
        group = hashes[start : start + _GROUP]
        claims = await channel.store(lambda ledger: ledger.read_requests(group))  # noqa: B023 - awaited here
        outcomes = [channel.job.encode(claim, error) for claim in claims.values()]
        await channel.write(
            lambda ledger: ledger.settle(marker, outcomes, (), channel.job.limits)  # noqa: B023 - awaited here
        )
    await channel.write(lambda ledger: ledger.close(marker, "ended"))
