"""The tables of a settings file that hold names of the user's own: aliases for models, routes, and prompt templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from asides.values.errors import ConfigError
from asides.values.notices import escape_controls

INPUT = "input"
"""The placeholder for what the user asks."""
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt with placeholders, a system prompt, and options for the call."""

    prompt: str | None = None
    system: str | None = None
    params: tuple[str, ...] | dict[str, str] | None = None
    """The names of placeholders, or their defaults. Given, no other text in braces is a placeholder."""
    model: str | None = None
    thinking: str | int | bool | None = None
    schema: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Template(placeholders={sorted(self.find_placeholders())})"

    def find_placeholders(self) -> set[str]:
        """The names in braces that have to be filled.

        Without `params`, those are all names in braces. With it, `input` and the names that it declares; other braces
        are plain text.
        """
        found = {name for text in (self.prompt, self.system) if text for name in _PLACEHOLDER.findall(text)}
        return found if self.params is None else found & {INPUT, *self.params}

    def fill_system(self, values: Mapping[str, str]) -> str | None:
        """The system prompt. Raises ConfigError for a value that is missing, or that has no place anywhere."""
        placeholders = self.find_placeholders() - {INPUT}
        known = placeholders | set(self.params or ())
        if unknown := sorted(values.keys() - known):
            listed = ", ".join(sorted(known)) or "none"
            raise ConfigError(f"the template has no placeholder {{{unknown[0]}}} for -p; it has: {listed}.")
        filled = {**self._defaults, **values}
        if missing := sorted(placeholders - filled.keys()):
            names = " and ".join(f"{{{name}}}" for name in missing)
            raise ConfigError(
                f"the template needs a value for {names}. Add {' '.join(f'-p {name}=…' for name in missing)}; "
                "if braces of the template are plain text, list its placeholders with params = [ … ]."
            )
        return None if self.system is None else _fill(self.system, {name: filled[name] for name in placeholders})

    def fill_prompt(self, text: str, values: Mapping[str, str]) -> str:
        """The prompt for this question. Without `{input}` the question comes after it."""
        placeholders = self.find_placeholders()
        if INPUT in placeholders and not text.strip():
            raise ConfigError("the template needs a text for {input}. Write it as words, or pipe it in.")
        filled = {**self._defaults, **values, INPUT: text}
        prompt = _fill(self.prompt or "", {name: filled[name] for name in placeholders})
        if INPUT in placeholders:
            return prompt
        return "\n\n".join(each for each in (prompt, text) if each)

    @property
    def _defaults(self) -> dict[str, str]:
        return self.params if isinstance(self.params, dict) else {}


def read_aliases(table: Any, where: str) -> dict[str, str]:
    """Check [aliases]: a name for each model. A name has no colon and no slash, so that it hides no model."""
    if not isinstance(table, Mapping):
        raise ConfigError(f'{where} is a table: NAME = "provider:model".')
    for name, model in table.items():
        if not (isinstance(model, str) and model.strip()):
            raise ConfigError(f"{where} {escape_controls(name)} is not valid: write provider:model, as text.")
        if not name or any(mark in ":/" or mark.isspace() for mark in name):
            raise ConfigError(
                f"{where} {escape_controls(name)!r} is not a valid model name. Write one without colons, slashes "
                "and blanks."
            )
    return dict(table)


class RouteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[routes.NAME]: the models that a relay asks under this name, in order, and defaults for their requests."""

    targets: tuple[str, ...] | str
    thinking: str | int | bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    timeout: float | None = None
    retries: int | None = None
    cache: bool | str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.targets, str):
            msgspec.structs.force_setattr(self, "targets", (self.targets,))

    def collect_options(self) -> dict[str, Any]:
        """The options that are set, by their names."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if name != "targets" and value is not None}


def read_routes(tables: Any, where: str) -> dict[str, RouteTable]:
    """Read [routes.NAME]. A name may be a pattern, such as "claude-*". Errors name `where`."""
    if not isinstance(tables, Mapping):
        raise ConfigError(f'{where} is a table of tables: [routes.NAME], with targets = ["provider:model"].')
    return {name: _read_route(name, table, f"{where} {escape_controls(name)}") for name, table in tables.items()}


def _read_route(name: str, table: Any, where: str) -> RouteTable:
    if not name or any(mark in ":/" or mark.isspace() for mark in name):
        raise ConfigError(f"{where!r} is not a valid route name. Write one without colons, slashes and blanks.")
    if isinstance(table, RouteTable):
        return table
    try:
        route = msgspec.convert(table, RouteTable)
    except msgspec.ValidationError as problem:
        fields = ", ".join(RouteTable.__struct_fields__)
        raise ConfigError(f"{where} is not valid: {problem}. Its fields are {fields}.") from None
    if not route.targets or not all(target.strip() for target in route.targets):
        raise ConfigError(f'{where} names no model. Write targets = ["provider:model"].')
    return route


def read_templates(tables: Any, where: str) -> dict[str, Template]:
    """Read [templates.NAME]. Errors name `where`."""
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{where} is a table of tables: [templates.NAME].")
    return {name: _read_template(table, f"{where} {escape_controls(name)}") for name, table in tables.items()}


def _read_template(table: Any, where: str) -> Template:
    if isinstance(table, Template):
        return table
    try:
        template = msgspec.convert(table, Template)
    except msgspec.ValidationError as problem:
        fields = ", ".join(Template.__struct_fields__)
        raise ConfigError(f"{where} is not valid: {problem}. Its fields are {fields}.") from None
    for name in template.params or ():
        if not _PLACEHOLDER.fullmatch(f"{{{name}}}"):
            raise ConfigError(f"{where}: {name!r} in params is not a valid name. Use letters, digits and underscores.")
    if template.system and f"{{{INPUT}}}" in template.system:
        raise ConfigError(f"{where}: {{input}} belongs in the prompt, not in the system prompt. Move it.")
    if INPUT in (template.params or ()):
        raise ConfigError(f"{where}: {{input}} is the question itself. Take it out of params.")
    if not (template.prompt or template.system):
        raise ConfigError(f"{where} has neither a prompt nor a system prompt.")
    return template


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the values, in one pass: braces in them stay as they are."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
