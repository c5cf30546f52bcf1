"""`asides gateway usage`: what the requests of a gateway used and cost, by key, tenant, model, day or client."""

from __future__ import annotations

import csv
import io
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, get_args

from asides.cli.exit_codes import Exit
from asides.cli.read_time import read_time
from asides.cli.render import format_columns, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.database import Database
from asides.values.errors import ConfigError
from asides.values.money import format_cost
from asides.values.notices import escape_controls
from asides_gateway.summary_rows import Group, UsageSum, list_key_names, sum_usage

_DEFAULT_SPAN = "7d"
_DEFAULT_GROUP: Group = "key"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that begins with one of these as a formula, and clients choose their own names."""
_NAMELESS = {"key": "(no key of the database)", "tenant": "(none)", "model": "(none asked)", "client": "(no name)"}
_HEADINGS = ("REQUESTS", "FAILED", "INPUT", "CACHED", "OUTPUT", "THINKING", "COST")


def check_usage(arguments: Namespace) -> tuple[float, Group]:
    """Since when and by what to add up. Raises ConfigError for wrong options."""
    if arguments.words:
        raise ConfigError(
            "`asides gateway usage` takes no more arguments. Choose what to add up with --by and --since."
        )
    if arguments.json and arguments.csv:
        raise ConfigError("--json and --csv exclude each other. Leave one of them out.")
    by = arguments.by or _DEFAULT_GROUP
    if by not in get_args(Group):
        raise ConfigError(
            f"--by {by[:40]!r} is unknown. Use {', '.join(get_args(Group)[:-1])} or {get_args(Group)[-1]}."
        )
    return read_since(arguments.since or _DEFAULT_SPAN, time.time()), by


def show_usage(database: Database, since: float, by: Group, arguments: Namespace, terminal: Terminal) -> int:
    """Print the sums."""
    sums = database.run(lambda: sum_usage(since, by), writes=False)
    names = database.run(list_key_names, writes=False) if by == "key" else {}
    if arguments.json:
        print_json(terminal, _encode(sums, names, since, by))
    elif arguments.csv:
        terminal.write_answer(_write_csv(sums, names, by))
    elif not sums:
        terminal.print_info(f"no request has ended since {_show_time(since)}.")
    else:
        print_lines(terminal, _write_table(sums, names, by))
        unpriced = sum(each.unpriced for each in sums)
        if unpriced:
            terminal.print_info(f"{_describe_unpriced(unpriced)}. {_advise_on_prices(by)}")
    return Exit.DONE


def _describe_unpriced(count: int) -> str:
    if count == 1:
        return "1 request has tokens and no known price, and counts as 0"
    return f"{count:,} requests have tokens and no known price, and count as 0"


def _advise_on_prices(by: Group) -> str:
    if find_spec("genai_prices") is None:
        return "Run pip install 'asides[prices]' where the gateways run; new requests have a cost then."
    if by == "model":
        return "Their models have `-` as their cost."
    return "--by model shows which models these are."


def read_since(text: str, now: float) -> float:
    """Read a time in the past: a span such as 7d, or a date in UTC. Raises ConfigError for anything else."""
    since = read_time(text, now, "before")
    if since is None or since > now:
        raise ConfigError(
            f"--since {text[:40]!r} is not a time in the past. Write a span such as 24h, 7d or 4w, or a date in "
            "UTC such as 2026-11-01."
        )
    return max(since, 0.0)


def _add_up(sums: Sequence[UsageSum]) -> UsageSum:
    return UsageSum(
        "total",
        requests=sum(each.requests for each in sums),
        failed=sum(each.failed for each in sums),
        input=sum(each.input for each in sums),
        cached=sum(each.cached for each in sums),
        output=sum(each.output for each in sums),
        thinking=sum(each.thinking for each in sums),
        cost=sum((each.cost for each in sums), Decimal()),
        unpriced=sum(each.unpriced for each in sums),
    )


def _write_table(sums: Sequence[UsageSum], names: Mapping[str, str], by: Group) -> list[str]:
    rows: list[tuple[str, ...]] = [((by.upper(), "NAME", *_HEADINGS) if by == "key" else (by.upper(), *_HEADINGS))]
    for each in [*sums, _add_up(sums)] if len(sums) > 1 else sums:
        first = each.group or _NAMELESS.get(by, "")
        named = (escape_controls(names.get(each.group, "")),) if by == "key" else ()
        counts = (each.requests, each.failed, each.input, each.cached, each.output, each.thinking)
        rows.append((escape_controls(first), *named, *(f"{count:,}" for count in counts), format_cost(each.cost)))
    return format_columns(rows)


def _write_csv(sums: Sequence[UsageSum], names: Mapping[str, str], by: Group) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    named = ("name",) if by == "key" else ()
    writer.writerow((by, *named, *(heading.lower() for heading in _HEADINGS), "unpriced"))
    for each in sums:
        own = (_escape_formula(names.get(each.group, "")),) if by == "key" else ()
        counts = (each.requests, each.failed, each.input, each.cached, each.output, each.thinking)
        writer.writerow((_escape_formula(each.group), *own, *counts, f"{each.cost:f}", each.unpriced))
    return text.getvalue()


def _escape_formula(text: str) -> str:
    shown = escape_controls(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _encode(sums: Sequence[UsageSum], names: Mapping[str, str], since: float, by: Group) -> dict[str, Any]:
    return {
        "since": _show_time(since),
        "by": by,
        "groups": [
            {by: each.group, **({"name": names.get(each.group)} if by == "key" else {}), **_encode_sum(each)}
            for each in sums
        ],
        "total": _encode_sum(_add_up(sums)),
    }


def _encode_sum(one: UsageSum) -> dict[str, Any]:
    fields = one._asdict()
    del fields["group"]
    return {**fields, "cost": float(one.cost)}


def _show_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
