"""`-T NAME`: a template of the settings becomes options of the call and the text around the question."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from asides.cli.inputs import clean_text
from asides.settings import Settings
from asides.settings_tables import Template
from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError

# Options that a template may set. The command line wins.
_OPTIONS = ("model", "thinking", "schema", "max_tokens", "temperature", "top_p", "seed", "stop")


def apply_template(arguments: Namespace, settings: Settings) -> None:
    """Put the template into the arguments: the options that were not given, and `fill_prompt` for the question."""
    if arguments.template is None:
        raise ConfigError("-p fills a placeholder of a template. Name the template with -T NAME.")
    template = _find_template(arguments.template, settings)
    values = _read_values(arguments.param)
    system = template.fill_system(values)
    if arguments.system is None:
        arguments.system = system
    for name in _OPTIONS:
        if getattr(arguments, name) is None:
            value = getattr(template, name)
            setattr(arguments, name, list(value) if isinstance(value, tuple) else value)
    arguments.fill_prompt = lambda text: template.fill_prompt(text, values)


def _find_template(name: str, settings: Settings) -> Template:
    found: Template | None = settings.templates.get(name)
    if found is not None:
        return found
    if any(entry.name == f"templates.{name}" for entry in settings.ignored):
        raise ConfigError(
            f"the template {name!r} comes from a file that is not trusted. Read the file; if you trust it, run "
            "`asides config trust`."
        )
    if settings.templates:
        otherwise = f"there are {', '.join(settings.templates)}."
    else:
        otherwise = f"the settings have none. Write [templates.{name}] into asides.toml."
    raise ConfigError(f"no template is called {name!r}; {suggest_name(name, settings.templates, otherwise)}")


def _read_values(given: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"-p {entry} is not understood. Write -p NAME=VALUE.")
        if name.strip() in values:
            raise ConfigError(f"-p {name.strip()} is given twice. Give one value.")
        values[name.strip()] = clean_text(value)
    return values
