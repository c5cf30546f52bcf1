"""`asides store`: creates and upgrades the tables of a PostgreSQL store, checks a store, and copies one to another."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import format_columns, print_json, print_lines
from asides.cli.saved_conversations import find_state_folder
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.database.migrate import check, migrate
from asides.database.postgres_url import describe_url, is_postgres_url
from asides.values.errors import ConfigError
from asides_gateway.maintenance.check_stores import AreaCheck, check_stores
from asides_gateway.maintenance.copy_report import CopyReport
from asides_gateway.maintenance.copy_stores import copy_stores
from asides_gateway.maintenance.open_stores import LEDGER, open_stores, open_target

_SECONDS_BETWEEN_LINES = 2.0
_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1024
_DAY = 86400.0
_HOUR = 3600.0


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    words: list[str] = arguments.words
    most = 2 if arguments.action == "copy" else 1
    if len(words) > most:
        raise ConfigError(
            f"`asides store {arguments.action}` takes {most} place{'s' * (most > 1)} at most. Name no more."
        )
    _refuse_options(arguments)
    match arguments.action:
        case "migrate":
            return _migrate(words[0] if words else None, arguments, terminal)
        case "check":
            return _check(words[0] if words else None, arguments, terminal)
        case _:
            return _copy(words, arguments, terminal)


def _refuse_options(arguments: Namespace) -> None:
    """Raise ConfigError for an option of another action: without it, the command would do something else."""
    owners = {"dry_run": "migrate", "replace": "copy", "ledger": "copy"}
    for name, action in owners.items():
        if getattr(arguments, name) and arguments.action != action:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to `asides store {action}`. Leave it out.")


def _find_setting(terminal: Terminal) -> str | None:
    return read_settings(terminal).store


# --- migrate ----------------------------------------------------------------------------------------------------------


def _migrate(given: str | None, arguments: Namespace, terminal: Terminal) -> int:
    url = given or _find_setting(terminal)
    if url is None:
        raise ConfigError(
            "no database is named. Set ASIDES_STORE, or `store` in your asides.toml, or write its URL after "
            "`asides store migrate`."
        )
    if not is_postgres_url(url):
        raise ConfigError(
            "only a PostgreSQL database is migrated; SQLite files are upgraded when they are opened. Name a URL "
            "such as postgresql://user@host/name."
        )
    steps = list(check(url).missing) if arguments.dry_run else migrate(url)
    names = [step.label for step in steps]
    if arguments.json:
        print_json(terminal, {"database": describe_url(url), "dry_run": arguments.dry_run, "steps": names})
        return Exit.DONE
    print_lines(terminal, names)
    if arguments.dry_run:
        summary = f"{len(names)} steps are missing" if names else "no step is missing"
    else:
        summary = f"{len(names)} steps were done" if names else "there was nothing to do"
    terminal.print_info(
        f"{describe_url(url)}: {summary.replace('1 steps are', '1 step is').replace('1 steps', '1 step')}."
    )
    return Exit.DONE


# --- check ------------------------------------------------------------------------------------------------------------


def _check(given: str | None, arguments: Namespace, terminal: Terminal) -> int:
    place = given or _find_setting(terminal) or str(find_state_folder(os.environ))
    problems: list[str] = []
    notes: list[str] = []
    seconds: float | None = None
    areas: list[AreaCheck] = []
    if is_postgres_url(place):
        began = time.monotonic()
        state = check(place)
        seconds = time.monotonic() - began
        if state.missing:
            named = ", ".join(step.label for step in state.missing)
            problems.append(f"steps are missing: {named}. Run `asides store migrate`")
        if state.newer:
            notes.append(f"a newer asides has done the steps {', '.join(state.newer)}; this version works with them")
    if not problems:
        with open_stores(place) as stores:
            areas = check_stores(stores)
    problems += [f"{area.area}: {problem}" for area in areas for problem in area.problems]
    notes += [f"{area.area}: {note}" for area in areas for note in area.notes]
    name = describe_url(place) if is_postgres_url(place) else place
    if arguments.json:
        document: dict[str, Any] = {"place": name, "sound": not problems, "problems": problems, "notes": notes}
        document["answered_seconds"] = seconds
        document["areas"] = [
            {
                "area": each.area,
                "place": each.place,
                "rows": each.counts,
                "bytes": each.size,
                "oldest_seconds": each.oldest,
            }
            for each in areas
        ]
        print_json(terminal, document)
    else:
        print_lines(terminal, [name + ("" if seconds is None else f" answered in {seconds * 1000:.0f} ms")])
        if areas:
            print_lines(terminal, format_columns([("AREA", "ROWS", "SIZE", "OLDEST"), *map(_format_area, areas)]))
        print_lines(terminal, [f"note: {note}" for note in notes])
        print_lines(terminal, [f"problem: {problem}" for problem in problems] or ["sound"])
    return Exit.UNEXPECTED if problems else Exit.DONE


def _format_area(check_: AreaCheck) -> tuple[str, str, str, str]:
    rows = ", ".join(f"{count} {table}" for table, count in check_.counts.items())
    age = "" if check_.oldest is None else _format_age(check_.oldest)
    return check_.area, rows or "none", _format_size(check_.size), age


def _format_size(size: float) -> str:
    unit = 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def _format_age(seconds: float) -> str:
    return f"{seconds / _DAY:.1f} days" if seconds >= _DAY else f"{max(seconds, 0) / _HOUR:.1f} hours"


# --- copy -------------------------------------------------------------------------------------------------------------


def _copy(words: list[str], arguments: Namespace, terminal: Terminal) -> int:
    if not words:
        raise ConfigError(
            "no store to copy from is named. Write `asides store copy FROM TO`; each is a folder or a URL."
        )
    to = words[1] if len(words) > 1 else _find_setting(terminal)
    if to is None:
        raise ConfigError("no store to copy to is named. Write `asides store copy FROM TO`, or set ASIDES_STORE.")
    if arguments.ledger is not None and is_postgres_url(words[0]) == is_postgres_url(to):
        raise ConfigError("a ledger is copied from a file to PostgreSQL or back. Name a URL on one side.")
    if is_postgres_url(to):
        migrate(to)
    if is_postgres_url(words[0]) and (missing := check(words[0]).missing):
        raise ConfigError(
            f"{describe_url(words[0])} lacks {len(missing)} steps of this version. Run `asides store migrate` "
            "on it first."
        )
    ledger = None if arguments.ledger is None else Path(arguments.ledger)
    progress = _Progress(terminal)
    with open_stores(words[0], ledger) as source, open_target(to, ledger) as target:
        reports = copy_stores(source, target, progress, replace=arguments.replace)
    is_whole = all(report.is_whole for report in reports)
    if arguments.json:
        print_json(terminal, {"whole": is_whole, "areas": [msgspec.to_builtins(report) for report in reports]})
    else:
        print_lines(terminal, [line for report in reports for line in _describe(report)])
        print_lines(terminal, [_conclude(reports, replace=arguments.replace)])
    return Exit.DONE if is_whole else Exit.SOME_FAILED


class _Progress:
    """Prints the progress, every two seconds."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._printed = time.monotonic()

    def __call__(self, step: str, report: CopyReport) -> None:
        if time.monotonic() - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            count = report.total if step == "copied" else report.checked
            self._terminal.print_info(f"{report.area}: {count} {step}")


def _describe(report: CopyReport) -> list[str]:
    words = {
        "copied": "copied",
        "updated": "updated",
        "same": "there already",
        "different": "different at the target and left as they are there",
        "failed": "cannot be copied",
        "left": "changed meanwhile",
        "others": "only at the target",
    }
    counts = [f"{getattr(report, name)} {text}" for name, text in words.items() if getattr(report, name)]
    lines = [f"{report.area}: {', '.join(counts) or 'nothing to copy'}; {report.checked} compared, all equal"]
    if report.missing:
        lines = [lines[0].replace(", all equal", f" and equal, {report.missing} not")]
    if report.names:
        lines.append(f"  not equal: {', '.join(name if name.isprintable() else repr(name) for name in report.names)}")
    return lines


def _conclude(reports: list[CopyReport], *, replace: bool) -> str:
    if all(report.is_whole for report in reports):
        return "the copy is complete"
    if any(report.area == LEDGER and report.left for report in reports):
        return "the copy is not complete: a folder has no place for batches. Name a file with --ledger"
    if any(report.different for report in reports) and not replace:
        return "the copy is not complete. Add --replace to overwrite what is different at the target"
    if any(report.failed for report in reports):
        return (
            "the copy is not complete: some of it is damaged, or the target cannot take it. Run `asides store "
            "check` on the source; the rest is copied"
        )
    return "the copy is not complete: the source may have changed meanwhile. Run it again for the rest"
