"""What `asides batch` says about a batch: counts, tokens, cost, time, and how to go on. Nothing of the content."""

from __future__ import annotations

import shlex
from argparse import Namespace
from decimal import Decimal
from pathlib import Path

from asides.cli.render import name_options
from asides.database.postgres_url import is_postgres_url
from asides_batch.batch_status import BatchStatus, VendorBatchStatus


def advise(arguments: Namespace, why: str = "to continue", status: BatchStatus | None = None) -> str:
    """How to go on. A batch whose rows are not all loaded cannot be resumed."""
    if status is not None and not status.has_rows:
        return f"Run `asides batch run` again with the same arguments {why}."
    return f"Run `{write_command(arguments, 'resume')}` {why}."


def write_command(arguments: Namespace, action: str) -> str:
    """A command for the batch of these arguments."""
    words = ["asides", "batch", action, arguments.path if arguments.output is None else arguments.output]
    for option in ("ledger", "name"):
        if (value := getattr(arguments, option)) is not None:
            # A URL may have a password in it.
            words += [f"--{option}", "URL" if option == "ledger" and is_postgres_url(value) else value]
    return shlex.join(words)


def summarise(status: BatchStatus) -> str:
    """What a batch has come to."""
    parts = [f"{status.done} of {status.requests} requests answered"]
    if status.rows != status.requests:
        parts.append(f"for {status.rows} rows")
    if status.failed:
        parts.append(f"{status.failed} failed")
    if status.left:
        parts.append(f"{status.left} not answered yet")
    first = "" if status.first_error is None else f" The first error: {name_options(status.first_error)}"
    return ", ".join([*parts, *describe_figures(status)]) + "." + first


def describe(status: BatchStatus) -> list[str]:
    """How far a batch is, as lines."""
    lines = [f"{status.output}: {status.state}, {summarise(status)}"]
    # Without --name, a batch is known by its output.
    named = "" if status.name in (status.output, Path(status.output).name) else f", --name {shlex.quote(status.name)}"
    lines.append(f"  {status.model or 'each row its own model'}, via {status.via}{named}")
    if not status.has_rows:
        lines.append("  its rows are not all loaded. Run `asides batch run` again, unless a process loads them")
    if status.state == "running":
        left = "" if status.seconds_left is None else f", {describe_seconds(status.seconds_left)} left"
        lines.append(f"  {status.running} under way, {status.rate:.1f} requests a second{left}")
    return lines + [f"  at the vendor: {describe_vendor_batch(batch)}" for batch in status.vendor_batches]


def describe_progress(status: BatchStatus) -> str:
    """How far a run is, as one line."""
    parts = [f"{status.done + status.failed}/{status.requests} requests"]
    if status.failed:
        parts.append(f"{status.failed} failed")
    if status.via != "vendor":
        parts.append(f"{status.rate:.1f}/s")
    parts += describe_figures(status)
    if status.vendor_batches:
        return ", ".join(parts) + "; at the vendor: " + "; ".join(map(describe_vendor_batch, status.vendor_batches))
    if status.seconds_left is not None:
        parts.append(f"{describe_seconds(status.seconds_left)} left")
    return ", ".join(parts)


def describe_vendor_batch(batch: VendorBatchStatus) -> str:
    """How far a batch at a vendor is."""
    done = "" if batch.done is None else f"{batch.done} of "
    return f"{batch.id or 'no id yet'}, {batch.state}, {done}{batch.requests} requests"


def describe_figures(status: BatchStatus) -> list[str]:
    """Tokens and cost."""
    figures = [f"{status.input_tokens} tokens in", f"{status.output_tokens} out"]
    if status.thinking_tokens:
        figures[-1] += f" ({status.thinking_tokens} thinking)"
    if status.cost or (status.done and not status.unpriced):
        more = f" (and {status.unpriced} replies without a known price)" if status.unpriced else ""
        figures.append(f"${format_dollars(status.cost)}{more}")
    return figures


def format_dollars(amount: Decimal) -> str:
    """An amount, with more digits below a dollar."""
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"


def describe_seconds(seconds: float) -> str:
    """A time, as exact as it is known."""
    whole = int(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 6000 else f"{whole / 3600:.1f} h"
