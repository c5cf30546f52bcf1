"""`asides models`: the models to write after -m, and the rules for them; with `--refresh`, those that a provider lists,
compared with the rules.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.layout import find_width, wrap_columns
from asides.cli.render import NOTHING, format_cell, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.providers.find import find_provider, list_providers
from asides.providers.model_names import sort_for_suggestions, suggest_models
from asides.providers.provider import ModelRule, Provider
from asides.providers.table import WITHOUT_A_KEY
from asides.settings import Settings
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo
from asides.values.notices import escape_controls
from asides.values.thinking import Effort

_RULE_HEAD = ("MODELS", "THINKS", "BY DEFAULT", "EFFORTS", "BUDGET", "COMES BACK", "SINCE")
_OFFER_HEAD = ("MODEL", "THINKS", "EFFORTS", "PROVIDER SAYS", "CONTEXT", "OUTPUT", "DIFFERS")
# The columns that the rules take in full, and the efforts that are worth abridging.
_WIDE = 104
_LONG_ROW = 3
# What fits on one screen.
_MOST_PROVIDERS, _MOST_MODELS, _MOST_OWN = 7, 4, 10
# The values of `thinking.type` that make a model think; others turn thinking off.
_THINKING_FORMS = ("adaptive", "enabled")


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the models to choose from; the rules of all providers, of one, or for one model; or a provider's list."""
    named = arguments.model or arguments.name
    if arguments.refresh:
        return _refresh(named, arguments, terminal)
    if arguments.base_url or arguments.api_key:
        raise ConfigError("--base-url and --api-key are for --refresh: without it nothing is sent.")
    settings = read_settings(terminal)
    rows = settings.providers
    if named is None and not (arguments.all or arguments.json):
        return _print_choice(settings, terminal)
    if named is None:
        chosen: Sequence[Provider] = list_providers(rows)
    else:
        name, _, model = named.partition(":")
        row = find_provider(name, rows)
        if model:
            return _print_model(row, model, arguments, terminal)
        chosen = (row,)
    if arguments.json:
        print_json(terminal, {row.name: msgspec.to_builtins(row.models) for row in chosen})
        return Exit.DONE
    width = find_width(terminal)
    for place, row in enumerate(row for row in chosen if row.models):
        print_lines(terminal, [*([""] if place else []), row.name, *format_rules(row.models, width, indent=2)])
    terminal.print_note("The first match counts. A model without a rule is asked without any change.")
    return Exit.DONE


# --- the models to choose from ----------------------------------------------------------------------------------------


def _print_choice(settings: Settings, terminal: Terminal) -> int:
    """Print what may follow -m, on one screen: names of the settings, then some models of each provider with a key."""
    from asides.flows.build_call import CallBuilder
    from asides.relay.known_models import find_keyed_providers, has_tiny_model
    from asides.relay.routes import list_own_names

    builder = CallBuilder(settings=settings)
    groups: list[tuple[str, Sequence[str]]] = []
    if settings.model is not None:
        groups.append(("default", [settings.model]))
    if own := list(list_own_names(builder)):
        groups.append(("yours", own[:_MOST_OWN]))
    keyed = sort_for_suggestions(find_keyed_providers(builder))
    offers = [(row, suggest_models(row)[:_MOST_MODELS]) for row in keyed]
    for row, names in offers[:_MOST_PROVIDERS]:
        groups.append((row.name, [f"{row.name}:{name}" for name in names or ("MODEL",)]))
    if has_tiny_model():
        groups.append(("no key", [WITHOUT_A_KEY]))
    table = [(title, escape_controls("  ".join(names))) for title, names in groups]
    print_lines(terminal, wrap_columns(table, find_width(terminal)))
    if more := len(offers[_MOST_PROVIDERS:]):
        terminal.print_note(f"{more} more {'provider has' if more == 1 else 'providers have'} a key: `asides keys`.")
    if not offers:
        terminal.print_note("No provider has a key. Store one with `asides keys set PROVIDER`, such as openai.")
    terminal.print_note(
        "Any other model works too: -m PROVIDER:MODEL. `asides models PROVIDER` shows what is known about its models, "
        "`--refresh` asks the provider for its list, and `--all` shows every rule."
    )
    return Exit.DONE


# --- rules ------------------------------------------------------------------------------------------------------------


def _print_model(row: Provider, model: str, arguments: Namespace, terminal: Terminal) -> int:
    known = row.capabilities(model)
    fields: dict[str, Any] = {"model": f"{row.name}:{model}", **msgspec.to_builtins(known)}
    if arguments.json:
        print_json(terminal, fields)
    else:
        fields |= {"efforts": _format_efforts(known.efforts), "budget": _format_budget(known.budget)}
        table = [(f"{name}:", format_cell(value)) for name, value in fields.items()]
        print_lines(terminal, wrap_columns(table, find_width(terminal)))
    return Exit.DONE


def format_rules(rules: Iterable[ModelRule], width: int | None = None, *, indent: int = 0) -> list[str]:
    """The rules as a table, of at most this width."""
    narrow = width is not None and width < _WIDE
    lines = [
        (
            rule.models,
            rule.thinking,
            rule.default or NOTHING,
            _abridge_efforts(rule.efforts) if narrow else _format_efforts(rule.efforts),
            _format_budget(rule.budget, "+" if narrow else " to any"),
            rule.kind,
            rule.since,
        )
        for rule in rules
    ]
    # The dates are with the sources.
    table = [row[:-1] if narrow else row for row in (_RULE_HEAD, *lines)]
    return wrap_columns(table, width, indent=indent)


def _abridge_efforts(efforts: Sequence[str] | None) -> str:
    """The efforts; a row of them without a gap as its first and its last."""
    known = get_args(Effort)
    if efforts is None or len(efforts) < _LONG_ROW or tuple(efforts) not in _list_rows(known, len(efforts)):
        return _format_efforts(efforts)
    return f"{efforts[0]} … {efforts[-1]}"


def _list_rows(values: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(values[start : start + length]) for start in range(len(values) - length + 1)]


def _format_efforts(efforts: Sequence[str] | None) -> str:
    return "not known" if efforts is None else " ".join(efforts) or "none"


def _format_budget(budget: tuple[int, int | None] | None, without_limit: str = " to any") -> str:
    if budget is None:
        return NOTHING
    return f"{budget[0]}{without_limit}" if budget[1] is None else f"{budget[0]} to {budget[1]}"


# --- the models that a provider lists ---------------------------------------------------------------------------------


def _refresh(named: str | None, arguments: Namespace, terminal: Terminal) -> int:
    from asides.cli.request import warn_about_key
    from asides.client import Client

    if named is None:
        raise ConfigError("--refresh asks one provider for its models. Name it with -m PROVIDER.")
    settings = read_settings(terminal)
    name, _, only = named.partition(":")
    row = find_provider(name, settings.providers)
    if arguments.api_key:
        warn_about_key(row, terminal)
    with Client(settings=settings) as client:
        models = client.models(row.name, base_url=arguments.base_url, api_key=arguments.api_key)
    if only:
        models = tuple(model for model in models if model.id == only)
        if not models:
            terminal.print_error(f"{row.name} does not list {only}. It may still accept it, under an alias.")
            return Exit.REJECTED
    if arguments.json:
        print_json(terminal, [_encode_offer(row, model) for model in models])
        return Exit.DONE
    lines = [tuple(map(escape_controls, _format_offer(row, model))) for model in models]
    print_lines(terminal, wrap_columns([_OFFER_HEAD, *lines], find_width(terminal)))
    different = sum(bool(line[-1]) for line in lines)
    summary = f"{row.name} lists {len(models)} {'model' if len(models) == 1 else 'models'}"
    terminal.print_note(f"{summary}; {different} of them differ from the rules." if different else f"{summary}.")
    return Exit.DONE


def _format_offer(row: Provider, model: ModelInfo) -> tuple[str, ...]:
    rule = row.rule(model.id)
    return (
        model.id,
        f"{rule.thinking}{' (assumed)' if rule.assumed else ''}",
        _format_efforts(rule.efforts),
        _format_reported_thinking(model),
        NOTHING if model.context is None else str(model.context),
        NOTHING if model.max_output is None else str(model.max_output),
        "; ".join(find_differences(rule, model)),
    )


def _format_reported_thinking(model: ModelInfo) -> str:
    thinking = model.thinking
    if thinking is None:
        return NOTHING
    if not thinking.supported:
        return "never"
    words = ("always" if thinking.always else "thinks", *thinking.types)
    return f"{' '.join(words)}{': ' + ' '.join(thinking.efforts) if thinking.efforts else ''}"


def _encode_offer(row: Provider, model: ModelInfo) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(model)
    del fields["raw"]
    known, rule = row.capabilities(model.id), row.rule(model.id)
    return {**fields, "known": msgspec.to_builtins(known), "differs": find_differences(rule, model)}


def find_differences(rule: ModelRule, model: ModelInfo) -> list[str]:
    """Where our rule and the provider's report contradict each other; a fact that one of them lacks does not count."""
    found: list[str] = []
    if rule.max_output is not None and model.max_output is not None and rule.max_output != model.max_output:
        found.append(f"output: the rule says {rule.max_output}")
    if rule.context is not None and model.context is not None and rule.context != model.context:
        found.append(f"context: the rule says {rule.context}")
    thinking = model.thinking
    if thinking is None:
        return found
    if rule.thinking != "unknown" and thinking.supported != (rule.thinking != "never"):
        return [f"thinking: the rule says {rule.thinking}", *found]
    if not thinking.supported:
        return found
    if thinking.always is not None and rule.thinking != "unknown" and thinking.always != (rule.thinking == "always"):
        found.append(f"thinking: the rule says {rule.thinking}")
    if thinking.efforts is not None and rule.efforts is not None and set(thinking.efforts) != set(rule.efforts):
        found.append(f"efforts: the rule says {_format_efforts(rule.efforts)}")
    forms = tuple(form for form in _THINKING_FORMS if form in rule.forms)
    if thinking.types and forms and set(thinking.types) & set(_THINKING_FORMS) != set(forms):
        found.append(f"types: the rule says {' '.join(forms)}")
    return found
