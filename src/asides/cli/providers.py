"""`asides providers`, `models` and `config`: what is known, on stdout. Never a key: only whether one is set, and where.

Not here: the facts (providers/table) and how settings are resolved (settings).
"""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import print_json
from asides.cli.terminal import Terminal
from asides.providers.find import find_provider, list_providers
from asides.providers.provider import ModelRule, Provider, ReplayRule
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides.values.thinking import Thinking

_CREDENTIALS_IN_URL = re.compile(r"//[^/@\s]*@")
_NOTHING = "–"


# --- providers ------------------------------------------------------------------------------------------------------


def run_providers(arguments: Namespace, terminal: Terminal) -> int:
    """A table of all, or everything about one."""
    rows = load_settings().providers
    if arguments.name is not None:
        row = find_provider(arguments.name, rows)
        if arguments.json:
            print_json(terminal, _row_object(row))
        else:
            print_lines(terminal, _row_lines(row))
        return Exit.DONE
    every = list_providers(rows)
    if arguments.json:
        print_json(terminal, [_row_object(row) for row in every])
        return Exit.DONE
    lines = [(row.name, _key(row), _address(row), _facts(row)) for row in every]
    print_lines(terminal, columns([("PROVIDER", "KEY", "ADDRESS", "FACTS"), *lines]))
    terminal.note("`asides providers NAME` tells everything about one.")
    return Exit.DONE


def _key(row: Provider) -> str:
    if row.quirks.auth == "nothing" or not row.key_env:
        return "none needed" if row.key == "optional" or row.quirks.auth == "nothing" else "--api-key"
    variable = _set_variable(row)
    if variable is not None:
        return f"{variable} (set)"
    return f"{row.key_env[0]} (optional)" if row.key == "optional" else row.key_env[0]


def _set_variable(row: Provider) -> str | None:
    return next((name for name in row.key_env if os.environ.get(name, "").strip()), None)


def _address(row: Provider) -> str:
    return _CREDENTIALS_IN_URL.sub("//***@", row.base_url) or "--base-url"


def _facts(row: Provider) -> str:
    return " ".join(told for told in (row.tier, row.since) if told)


def _row_lines(row: Provider) -> list[str]:
    fields = [
        ("provider", f"{row.name}{f' ({row.title})' if row.title else ''}"),
        ("also called", ", ".join(row.aliases)),
        ("dialect", row.dialect),
        ("address", _address(row)),
        ("address from", ", ".join(row.base_url_env)),
        ("key", _key(row)),
        ("key from", ", ".join(row.key_env)),
        ("facts", _facts(row)),
        ("documents", row.docs),
        *((f"quirk {name}", value) for name, value in _quirks(row).items()),
    ]
    lines = columns([(f"{name}:", value) for name, value in fields if value])
    if row.models:
        lines += ["", "models, the first that matches counts:", *_indented(_model_table(row.models))]
        lines += ["", "where these facts are from:", *_indented(_sources(row.models))]
    if row.replay:
        lines += ["", "earlier thinking that goes back:", *_indented(_replay_lines(row.replay))]
    return lines


def _quirks(row: Provider) -> dict[str, str]:
    """What differs from the book."""
    plain = msgspec.to_builtins(type(row.quirks)())
    told = msgspec.to_builtins(row.quirks)
    return {name: _value(value) for name, value in told.items() if value != plain[name]}


def _replay_lines(rules: Iterable[ReplayRule]) -> list[str]:
    return columns([(rule.models, rule.when, rule.since, rule.source) for rule in rules])


def _sources(rules: Iterable[ModelRule]) -> list[str]:
    told = dict.fromkeys((rule.since, rule.source) for rule in rules if rule.source)
    return columns(list(told))


def _row_object(row: Provider) -> dict[str, Any]:
    """A row as it is, but for what a user may have put a secret into."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    fields["base_url"] = _CREDENTIALS_IN_URL.sub("//***@", row.base_url)
    if row.tier == "yours":
        fields["headers"] = [[name, "***"] for name, _ in row.headers]
        fields["query"] = [[name, value if value.startswith("$") else "***"] for name, value in row.query]
    fields["key_set_by"] = _set_variable(row)
    return fields


# --- models ---------------------------------------------------------------------------------------------------------

_MODEL_HEAD = ("MODELS", "THINKS", "BY DEFAULT", "EFFORTS", "BUDGET", "COMES BACK", "SINCE")


def run_models(arguments: Namespace, terminal: Terminal) -> int:
    """The rules for models, of all providers or of one; or what is known of one model; or what is offered today."""
    if arguments.refresh:
        from asides.cli.models import run_refresh

        return run_refresh(arguments, terminal)
    if arguments.base_url or arguments.api_key:
        raise ConfigError("--base-url and --api-key are for --refresh: without it nothing is sent.")
    rows = load_settings().providers
    asked = arguments.model or arguments.name
    if asked is None:
        chosen: Sequence[Provider] = list_providers(rows)
    else:
        name, _, model = asked.partition(":")
        row = find_provider(name, rows)
        if model:
            return _print_model(row, model, arguments, terminal)
        chosen = (row,)
    if arguments.json:
        print_json(terminal, {row.name: msgspec.to_builtins(row.models) for row in chosen})
        return Exit.DONE
    for place, row in enumerate(row for row in chosen if row.models):
        print_lines(terminal, [*([""] if place else []), row.name, *_indented(_model_table(row.models))])
    terminal.note("These are rules, the first that matches counts; a model that none names is asked as it is.")
    return Exit.DONE


def _print_model(row: Provider, model: str, arguments: Namespace, terminal: Terminal) -> int:
    known = row.capabilities(model)
    fields: dict[str, Any] = {"model": f"{row.name}:{model}", **msgspec.to_builtins(known)}
    if arguments.json:
        print_json(terminal, fields)
    else:
        told = {**fields, "efforts": efforts_of(known.efforts), "budget": _budget(known.budget)}
        print_lines(terminal, columns([(f"{name}:", _value(value)) for name, value in told.items()]))
    return Exit.DONE


def _model_table(rules: Iterable[ModelRule]) -> list[str]:
    return columns([_MODEL_HEAD, *(_model_line(rule) for rule in rules)])


def _model_line(rule: ModelRule) -> tuple[str, ...]:
    return (
        rule.models,
        rule.thinking,
        rule.default or _NOTHING,
        efforts_of(rule.efforts),
        _budget(rule.budget),
        rule.kind,
        rule.since,
    )


def efforts_of(efforts: Sequence[str] | None) -> str:
    """Efforts as one cell."""
    return "not known" if efforts is None else " ".join(efforts) or "none"


def _budget(budget: tuple[int, int | None] | None) -> str:
    return _NOTHING if budget is None else f"{budget[0]} to {budget[1] or 'any'}"


# --- config ---------------------------------------------------------------------------------------------------------


def run_config(arguments: Namespace, terminal: Terminal) -> int:
    """Every value and its origin; the keys by name."""
    settings = load_settings()
    keys = {
        row.name: variable for row in list_providers(settings.providers) if (variable := _set_variable(row)) is not None
    }
    if arguments.json:
        values = {
            name: {"value": msgspec.to_builtins(value), "origin": origin} for name, value, origin in settings.entries()
        }
        yours = [row.name for row in settings.providers]
        print_json(terminal, {"settings": values, "files": settings.files, "providers": yours, "keys": keys})
        return Exit.DONE
    table = [(name, _value(value), origin) for name, value, origin in settings.entries()]
    lines = [*columns([("SETTING", "VALUE", "FROM"), *table]), ""]
    lines += [f"files read: {', '.join(settings.files) or 'none'}"]
    if settings.providers:
        lines += [f"providers of yours: {', '.join(row.name for row in settings.providers)}"]
    lines += ["keys: none is set" if not keys else "keys that are set:"]
    lines += _indented(columns(list(keys.items())))
    print_lines(terminal, lines)
    return Exit.DONE


# --- as text --------------------------------------------------------------------------------------------------------


def _value(value: object) -> str:
    match value:
        case None | "" | () | []:
            return _NOTHING
        case bool():
            return "true" if value else "false"
        case Thinking():
            told = {name: part for name, part in msgspec.structs.asdict(value).items() if part is not None}
            return ", ".join(f"{name} {part}" for name, part in told.items())
        case list() | tuple():
            return ", ".join(_value(part) for part in value)
        case _:
            return str(value)


def columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Cells, padded to columns; the last one may be as long as it likes."""
    if not table:
        return []
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def print_lines(terminal: Terminal, lines: Iterable[str]) -> None:
    """Lines on stdout."""
    terminal.answer("".join(f"{line}\n" for line in lines))
