"""`asides gateway`: makes, lists and revokes the keys of gateways, also while they run; and its other actions."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from typing import Any

from asides.cli.exit_codes import Exit
from asides.cli.read_time import read_time
from asides.cli.render import format_columns, print_json, print_lines
from asides.cli.saved_conversations import format_time
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.database import Database
from asides.database.postgres_url import describe_url
from asides.providers.find import find_row, list_providers
from asides.settings import Settings
from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError
from asides.values.money import format_cost, to_dollars
from asides.values.notices import escape_controls
from asides_gateway.access import KeyLimits, KeyRecord
from asides_gateway.access.budget_store import Spending, list_spending
from asides_gateway.access.key_store import (
    MAX_COUNT,
    MAX_NAME,
    MAX_PATTERN,
    MAX_PATTERNS,
    MOST_MONEY,
    PREFIX,
    find_named,
    insert_key,
    list_keys,
    make_key,
    revoke_key,
)
from asides_gateway.commands.serve_settings import find_folder
from asides_gateway.gateway_database import GATEWAY_FILE, open_database
from asides_gateway.gateway_settings import GatewaySettings

_USAGE_OPTIONS = ("since", "by", "csv")
_CREATE_OPTIONS = ("name", "tenant", "model", "rpm", "tpm", "budget_day", "budget_month", "expires")
_ACTIONS = ("create", "list", "revoke")


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    if arguments.action == "usage":
        return _show_usage(arguments, terminal)
    if arguments.action in ("export", "import"):
        from asides_gateway.commands.gateway_lines import run_export, run_import

        _refuse_options(arguments, _USAGE_OPTIONS, "usage")
        _refuse_options(arguments, _CREATE_OPTIONS, "key create")
        return (run_export if arguments.action == "export" else run_import)(arguments, terminal)
    _refuse_options(arguments, _USAGE_OPTIONS, "usage")
    action, *words = arguments.words or ["list"]
    if action not in _ACTIONS:
        # It may be a pasted key, so it is not repeated.
        raise ConfigError("unknown action of `asides gateway key`. Write create, list or revoke.")
    if action != "create":
        _refuse_options(arguments, _CREATE_OPTIONS, "key create")
    if words and action != "revoke":
        raise ConfigError(
            f"`asides gateway key {action}` takes no name or id. Leave it out; --name gives a new key its name."
        )
    # Before anything is opened: a mistake in an option leaves no trace.
    record = _read_record(arguments) if action == "create" else None
    settings = read_settings(terminal, gateway={} if arguments.folder is None else {"folder": arguments.folder})
    with _open(settings, creates=record is not None) as database:
        if record is not None:
            return _create(record, database, settings, arguments, terminal)
        if action == "revoke":
            return _revoke(words, database, settings, arguments, terminal)
        return _list(database, arguments, terminal)


def _show_usage(arguments: Namespace, terminal: Terminal) -> int:
    from asides_gateway.commands.gateway_usage import check_usage, show_usage

    _refuse_options(arguments, _CREATE_OPTIONS, "key create")
    since, by = check_usage(arguments)
    settings = read_settings(terminal, gateway={} if arguments.folder is None else {"folder": arguments.folder})
    with _open(settings, creates=False) as database:
        return show_usage(database, since, by, arguments, terminal)


def _refuse_options(arguments: Namespace, names: Sequence[str], action: str) -> None:
    """Raise ConfigError for an option that only another action has."""
    given = next((name for name in names if getattr(arguments, name) not in (None, False)), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        raise ConfigError(f"{option} belongs to `asides gateway {action}`. Leave it out.")


@contextmanager
def _open(settings: Settings, *, creates: bool) -> Generator[Database, None, None]:
    """Open the database of the gateways with these settings. `creates`: create its tables if no gateway has run yet."""
    if settings.store is not None and creates:
        from asides.database.migrate import migrate

        migrate(settings.store)
    folder = None if settings.store is not None else find_folder(settings, os.environ)
    database = open_database(GatewaySettings(store=settings.store, folder=folder))
    try:
        yield database
    finally:
        database.close()


# --- create -----------------------------------------------------------------------------------------------------------


def _create(record: KeyRecord, database: Database, settings: Settings, arguments: Namespace, terminal: Terminal) -> int:
    made = make_key()
    record = KeyRecord(
        id=made.id,
        digest=made.digest,
        name=record.name,
        tenant=record.tenant,
        limits=record.limits,
        created=record.created,
        expires=record.expires,
    )
    database.run(lambda: insert_key(record))
    if arguments.json:
        print_json(terminal, {**_encode(record, Spending()), "key": made.key})
        return Exit.DONE
    print_lines(terminal, [made.key])
    terminal.print_note(
        f"made the key {made.id} with the name {_show(record.name)} in {_name_place(settings)}: {_describe(record)}."
    )
    terminal.print_note("The key is shown only now. Clients send it where they would send a provider's key.")
    for note in _find_doubts(record.limits, settings):
        terminal.print_note(f"note: {note}")
    return Exit.DONE


def _name_place(settings: Settings) -> str:
    """Where the keys are, without a password: a gateway with other settings does not know them."""
    if settings.store is not None:
        return describe_url(settings.store)
    return str(find_folder(settings, os.environ) / GATEWAY_FILE)


def _find_doubts(limits: KeyLimits, settings: Settings) -> Iterator[str]:
    """What may be a mistake. Not an error: the gateway may have other settings and packages than this machine."""
    rows = settings.providers
    for pattern in limits.models:
        name, has_model, _ = pattern.partition(":")
        is_known = set(name) & set("*?[") or find_row(name, rows) is not None or pattern in settings.routes
        if has_model and not is_known and pattern not in settings.aliases:
            known = [row.name for row in list_providers(rows)]
            advice = suggest_name(name, known, "`asides providers` lists those that are.")
            yield f"the pattern {_show(pattern)} matches no model: no provider is called {_show(name)!r} here; {advice}"
    if limits.has_budget and find_spec("genai_prices") is None:
        yield (
            "a key with a budget may ask only models whose price is known. Run pip install 'asides[prices]' where "
            "the gateway runs."
        )


def _read_record(arguments: Namespace) -> KeyRecord:
    """The key that the options describe, without its id and its secret."""
    now = time.time()
    name = _read_text("name", arguments.name)
    if not name:
        raise ConfigError("the key has no name. Add --name, such as --name 'build server'.")
    patterns = tuple(dict.fromkeys(pattern.strip() for pattern in arguments.model or ()))
    if not all(patterns) or len(patterns) > MAX_PATTERNS or any(len(each) > MAX_PATTERN for each in patterns):
        raise ConfigError(
            f"--model has an empty or a too long pattern, or there are too many. Write at most {MAX_PATTERNS} "
            f"patterns of 1 to {MAX_PATTERN} characters."
        )
    limits = KeyLimits(
        rpm=_check_count("rpm", arguments.rpm),
        tpm=_check_count("tpm", arguments.tpm),
        budget_day=_read_money("budget-day", arguments.budget_day),
        budget_month=_read_money("budget-month", arguments.budget_month),
        models=patterns,
    )
    tenant, expires = _read_text("tenant", arguments.tenant), _read_expiry(arguments.expires, now)
    return KeyRecord(id="", digest=b"", name=name, tenant=tenant, limits=limits, created=now, expires=expires)


def _read_text(option: str, given: str | None) -> str:
    text = (given or "").strip()
    if given and not text and option != "name":
        # Otherwise the key would silently get its own tenant instead of the shared one.
        raise ConfigError(f"--{option} is empty. Leave it out, or give a text.")
    if len(text) > MAX_NAME or not text.isprintable() or text.startswith(PREFIX):
        raise ConfigError(
            f"--{option} is too long, not printable, or a key. Write at most {MAX_NAME} printable "
            f"characters that do not begin with {PREFIX}."
        )
    return text


def _check_count(option: str, count: int | None) -> int | None:
    if count is not None and not 1 <= count <= MAX_COUNT:
        raise ConfigError(f"--{option} {count} is out of range. Write a number from 1 to {MAX_COUNT}.")
    return count


def _read_money(option: str, text: str | None) -> Decimal | None:
    if text is None:
        return None
    with suppress(InvalidOperation):
        amount = Decimal(text.strip().removeprefix("$"))
        if amount.is_finite() and 0 < amount <= MOST_MONEY and amount == round(amount, 9):
            return amount
    raise ConfigError(
        f"--{option} {text[:40]!r} is not an amount of money. Write US dollars above 0, at most {MOST_MONEY}, "
        "such as 2.50."
    )


def _read_expiry(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    expires = read_time(text, now, "after")
    if expires is None or expires <= now:
        raise ConfigError(
            f"--expires {text[:40]!r} is not a time in the future. Write a span such as 12h, 30d or 4w, or a date "
            "in UTC such as 2027-01-31."
        )
    return expires


# --- list -------------------------------------------------------------------------------------------------------------


def _list(database: Database, arguments: Namespace, terminal: Terminal) -> int:
    now = time.time()
    records = database.run(list_keys, writes=False)
    spending = database.run(lambda: list_spending(now), writes=False)
    if arguments.json:
        print_json(terminal, [_encode(each, spending.get(each.id, Spending()), now) for each in records])
        return Exit.DONE
    if not records:
        terminal.print_info("there are no keys. Create one with `asides gateway key create --name NAME`.")
        return Exit.DONE
    rows = [("ID", "NAME", "STATE", "TODAY", "MONTH", "LAST USED", "LIMITS")]
    for each in records:
        spent = spending.get(each.id, Spending())
        rows.append(
            (
                each.id,
                _show(each.name),
                _describe_state(each, now),
                format_cost(to_dollars(spent.day)),
                format_cost(to_dollars(spent.month)),
                "never" if each.used is None else format_time(each.used),
                _describe(each),
            )
        )
    print_lines(terminal, format_columns(rows))
    return Exit.DONE


def _describe_state(record: KeyRecord, now: float) -> str:
    if record.revoked is not None:
        return "revoked"
    return "valid" if record.is_valid(now) else "expired"


def _describe(record: KeyRecord) -> str:
    """What a key may, until when, and whose it is."""
    expires = "" if record.expires is None else f", expires {format_time(record.expires)}"
    tenant = f", tenant {_show(record.tenant)}" if record.tenant else ""
    return f"{_describe_limits(record.limits)}{expires}{tenant}"


def _describe_limits(limits: KeyLimits) -> str:
    parts = [
        f"{limits.rpm} requests/min" if limits.rpm is not None else "",
        f"{limits.tpm} tokens/min" if limits.tpm is not None else "",
        f"${limits.budget_day:f}/day" if limits.budget_day is not None else "",
        f"${limits.budget_month:f}/month" if limits.budget_month is not None else "",
        f"models {' '.join(map(_show, limits.models))}" if limits.models else "",
    ]
    return ", ".join(filter(None, parts)) or "no limits"


def _encode(record: KeyRecord, spent: Spending, now: float | None = None) -> dict[str, Any]:
    limits = record.limits
    return {
        "id": record.id,
        "name": record.name,
        "tenant": record.tenant or None,
        "state": _describe_state(record, record.created if now is None else now),
        "models": list(limits.models),
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "budget_day": None if limits.budget_day is None else float(limits.budget_day),
        "budget_month": None if limits.budget_month is None else float(limits.budget_month),
        "spent_day": float(to_dollars(spent.day)),
        "spent_month": float(to_dollars(spent.month)),
        "reserved": float(to_dollars(spent.reserved)),
        "created": record.created,
        "expires": record.expires,
        "revoked": record.revoked,
        "last_used": record.used,
    }


def _show(text: str) -> str:
    return escape_controls(text)


# --- revoke -----------------------------------------------------------------------------------------------------------


def _revoke(
    words: Sequence[str], database: Database, settings: Settings, arguments: Namespace, terminal: Terminal
) -> int:
    if len(words) != 1:
        raise ConfigError("name one key to revoke. Write `asides gateway key revoke ID`, or its name.")
    record = _find(words[0], database)
    if record.revoked is not None:
        terminal.print_info(f"the key {record.id} was revoked already, at {format_time(record.revoked)}.")
        return Exit.DONE
    if not arguments.yes:
        if not (sys.stdin.isatty() and terminal.err_is_terminal):
            raise ConfigError(
                "a revoked key never works again, and there is no terminal to confirm it. Add --yes to revoke it."
            )
        terminal.print_note(f"revoke the key {record.id} ({_show(record.name)}) for good? [y/N]")
        if not _confirm():
            terminal.print_info("nothing was revoked.")
            return Exit.DONE
    database.run(lambda: revoke_key(record.id, time.time()))
    if settings.gateway.redis is not None:
        _publish_revocation(settings.gateway.redis, record.id, terminal)
    if arguments.json:
        print_json(terminal, {"revoked": record.id})
    else:
        terminal.print_note(f"revoked the key {record.id} ({_show(record.name)}).")
    return Exit.DONE


def _find(word: str, database: Database) -> KeyRecord:
    """Find a key by its id or its name. The word may be a whole key: no error shows one."""
    is_key = word.startswith(PREFIX)
    word = word.removeprefix(PREFIX).partition("-")[0] if is_key else word
    found = database.run(lambda: find_named(word), writes=False)
    if not found:
        what = "the key that was given" if is_key else f"the id or the name {word[:MAX_NAME]!r}"
        raise ConfigError(f"no key has {what}. `asides gateway key list` shows them.")
    return found[0]


def _confirm() -> bool:
    with suppress(EOFError):
        return input().strip().lower() in ("y", "yes")
    return False


def _publish_revocation(redis_url: str, key_id: str, terminal: Terminal) -> None:
    """Publish the revocation to running gateways. Without it they find out within three seconds."""
    from asides_gateway.access.revocations import publish_revocation

    try:
        publish_revocation(redis_url, key_id)
    except ConfigError as problem:
        terminal.print_note(f"warning: {problem}")
