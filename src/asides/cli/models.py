"""`asides models --refresh`: what a provider offers today beside what our rules know, and where the two disagree.

Not here: asking (client), the list itself (dialects) and the rules (providers/table).
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.providers import columns, efforts_of, print_lines
from asides.cli.render import print_json
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.providers.find import find_provider
from asides.providers.provider import ModelRule, Provider
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo

_HEAD = ("MODEL", "THINKS", "EFFORTS", "THEY SAY", "CONTEXT", "OUTPUT", "DIFFERS")
_NOTHING = "–"
# What `thinking.type` says to make a model think; the others say when not to.
_THINKING_FORMS = ("adaptive", "enabled")


def run_refresh(arguments: Namespace, terminal: Terminal) -> int:
    """Ask, compare, print."""
    asked = arguments.model or arguments.name
    if asked is None:
        raise ConfigError("whose models? --refresh asks one provider: -m PROVIDER.")
    settings = load_settings()
    name, _, only = asked.partition(":")
    row = find_provider(name, settings.providers)
    if arguments.api_key:
        better = f": {' or '.join(row.key_env)}" if row.key_env else ""
        terminal.note(f"others on this machine can read a key on the command line; the environment is better{better}")
    with Client(settings=settings) as client:
        models = client.models(row.name, base_url=arguments.base_url, api_key=arguments.api_key)
    if only:
        models = tuple(model for model in models if model.id == only)
        if not models:
            terminal.complain(f"{row.name} does not list {only}. It may know it all the same, under an alias.")
            return Exit.REJECTED
    if arguments.json:
        print_json(terminal, [_object(row, model) for model in models])
        return Exit.DONE
    lines = [_line(row, model) for model in models]
    print_lines(terminal, columns([_HEAD, *lines]))
    different = sum(bool(line[-1]) for line in lines)
    told = f"{row.name} lists {len(models)} {'model' if len(models) == 1 else 'models'}"
    terminal.note(f"{told}; {different} of them differ from the rules." if different else f"{told}.")
    return Exit.DONE


def _line(row: Provider, model: ModelInfo) -> tuple[str, ...]:
    rule = row.rule(model.id)
    return (
        model.id,
        f"{rule.thinking}{' (assumed)' if rule.assumed else ''}",
        efforts_of(rule.efforts),
        _said(model),
        _NOTHING if model.context is None else str(model.context),
        _NOTHING if model.max_output is None else str(model.max_output),
        "; ".join(differences(rule, model)),
    )


def _said(model: ModelInfo) -> str:
    thinking = model.thinking
    if thinking is None:
        return _NOTHING
    if not thinking.supported:
        return "never"
    told = ("always" if thinking.always else "thinks", *thinking.types)
    return f"{' '.join(told)}{': ' + ' '.join(thinking.efforts) if thinking.efforts else ''}"


def _object(row: Provider, model: ModelInfo) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(model)
    del fields["raw"]
    rule = row.rule(model.id)
    return {**fields, "known": msgspec.to_builtins(row.capabilities(model.id)), "differs": differences(rule, model)}


def differences(rule: ModelRule, model: ModelInfo) -> list[str]:
    """Where a provider's own word and our rule contradict each other; what one of them leaves out does not."""
    found: list[str] = []
    if rule.max_output is not None and model.max_output is not None and rule.max_output != model.max_output:
        found.append(f"output: the rule says {rule.max_output}")
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
        found.append(f"efforts: the rule says {efforts_of(rule.efforts)}")
    forms = tuple(form for form in _THINKING_FORMS if form in rule.forms)
    if thinking.types and forms and set(thinking.types) & set(_THINKING_FORMS) != set(forms):
        found.append(f"types: the rule says {' '.join(forms)}")
    return found
