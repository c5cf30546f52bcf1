"""Write the results of a vendor's batch that has ended: each row is decoded as a live reply, and written once.

Results are read line by line and written in groups, so that a process that ends in between loses nothing and repeats
nothing. Not here: waiting for the batch (vendor_runner).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from asides.batch.ledger_values import Outcome
from asides.batch.vendor.forms import RowKind, RowOutcome, VendorStatus
from asides.batch.vendor.vendor_channel import VendorChannel
from asides.batch.vendor.vendor_requests import VendorTarget, can_retry, decode_row, read_lines, send
from asides.values.errors import AsidesError, ProtocolError, ProviderError
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.batch.ledger_values import Claim

_GROUP = 200


async def read_outcomes(
    channel: VendorChannel, target: VendorTarget, status: VendorStatus, on_problem: Callable[[ProtocolError], object]
) -> AsyncIterator[list[RowOutcome]]:
    """The results of a batch, in groups, as they arrive. `on_problem` gets the error of each line that cannot be read,
    and reading goes on.
    """
    form = target.form
    for request in form.fetch(target.row, status):
        if not form.has_lines(status):
            flow = send(target, request, lambda body: list(form.read_whole(body)), "results")
            whole = await channel.send(target, flow)
            for start in range(0, len(whole), _GROUP):
                yield whole[start : start + _GROUP]
            continue
        group: list[RowOutcome] = []
        async for lines in channel.receive(target, read_lines(target, request)):
            for line in lines:
                try:
                    outcome = form.read_line(line)
                except ProtocolError as problem:
                    on_problem(problem)
                    continue
                if outcome is not None:
                    group.append(outcome)
            while len(group) >= _GROUP:
                yield group[:_GROUP]
                del group[:_GROUP]
        if group:
            yield group


async def write_results(channel: VendorChannel, marker: str, target: VendorTarget, status: VendorStatus) -> None:
    """Write the results of a batch that has ended. Rows without one wait again, unless it may be among lines that
    cannot be read: those fail, since they may have been paid for.
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
    if status.has_results and sent:
        async for group in read_outcomes(channel, target, status, problems.append):
            # The first result of a row counts, whatever else a vendor sends for it.
            fresh = {one.custom_id: one for one in reversed(group) if one.custom_id in sent}
            if fresh:
                await _write_group(channel, marker, target, [*fresh.values()], sent)
                for name in fresh:
                    del sent[name]
    if problems and sent:
        lines = "1 line" if len(problems) == 1 else f"{len(problems)} lines"
        lost = ProtocolError(
            f"{target.call.target.provider.name}: {lines} of the results of the batch {status.id} cannot be read, and "
            "the result of this request is not among the others. To do: resume the batch, which asks again."
        )
        await fail_all(channel, marker, lost)
        return
    kind: RowKind = "cancelled" if status.state.lower().startswith("cancel") else "expired"
    words = f"the batch is {status.state.lower()} and has no result for this request"
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
            error.partial = msgspec.structs.replace(error.partial, price_share=share)
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
