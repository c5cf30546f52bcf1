"""`asides store`: creates and upgrades the tables of a PostgreSQL store, and checks a store."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from typing import Any

from asides.cli.exit_codes import Exit
from asides.cli.render import format_columns, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.database.migrate import check, migrate
from asides.database.postgres_url import describe_url, is_postgres_url
from asides.settings_files import find_state_folder
from asides.values.errors import ConfigError
from asides_gateway.maintenance.check_stores import AreaCheck, check_stores
from asides_gateway.maintenance.open_stores import open_stores

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1024
_DAY = 86400.0
_HOUR = 3600.0


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    words: list[str] = arguments.words
    if len(words) > 1:
        raise ConfigError(f"`asides store {arguments.action}` takes at most one place.")
    place = words[0] if words else None
    if arguments.action == "migrate":
        return _migrate(place, arguments, terminal)
    if arguments.dry_run:
        raise ConfigError("--dry-run belongs to `asides store migrate`. Leave it out.")
    return _check(place, arguments, terminal)


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
