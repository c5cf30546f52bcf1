"""Finds the target of a model string, `find_target("provider:model") → Target`, and rows by name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import msgspec

from asides.providers.credentials import is_loopback
from asides.providers.provider import ModelRule, Provider, Target
from asides.providers.quirks import THINKING_FIELDS, Quirks
from asides.providers.table import PROVIDERS, plain_row
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider

__all__ = ["find_host", "find_provider", "find_target", "list_providers", "plain_row"]

# Patterns are text: `re` compiles and keeps one when it is first used, and few addresses need any.
_VARIABLE = r"\$([A-Z][A-Z0-9_]*(?:\|[A-Z][A-Z0-9_]*)*)"
# A variable may fill a part of a host or path, but never turn the address into another one.
_ADDRESS_PART = r"[A-Za-z0-9._-]+"
STAGE_VARIABLE = "ASIDES_STAGE"
# The launchers of rows that this variable moves to the offline stage: its own of the process, or one that runs.
OWN_STAGE, RUNNING_STAGE = "asides.transports.stage_launch:launch", "asides.transports.stage_launch:find_running"
DEFAULT_PORTS = {"http": 80, "https": 443}
# Values of api-version that mean the undated interface.
_UNDATED = ("v1", "preview", "latest")

Query = tuple[tuple[str, str], ...]


def _refuse_address(problem: str) -> ConfigError:
    """The error of a provider whose configured address is missing or invalid."""
    error = ConfigError(problem)
    error.concerns_address = True
    return error


def find_target(
    model: str,
    *,
    base_url: str | None = None,
    family: str | None = None,
    rows: Sequence[Provider] = (),
    environ: Mapping[str, str] | None = None,
) -> Target:
    """Return the target of `provider:model`.

    The string is split at the first `:`; `provider/model` works too if the left side is a known provider. `base_url`
    wins over the row's variables, and those win over its own address. `family` is the model's public name if the
    address uses another; it decides which rules apply. `rows` are the caller's and win over ours of the same name.
    """
    row, name = _split_model(model, rows)
    provider, address, foreign = _resolve_address(row, name, base_url, environ)
    rule = find_rule(provider, family or name, foreign=foreign)
    return Target(provider, name, address, rule, family, foreign=foreign)


def find_host(
    name: str,
    *,
    base_url: str | None = None,
    rows: Sequence[Provider] = (),
    environ: Mapping[str, str] | None = None,
) -> Target:
    """The target of a request that concerns a provider and no model."""
    provider, address, foreign = _resolve_address(find_provider(name, rows), "", base_url, environ)
    return Target(provider, "", address, foreign=foreign)


def find_provider(name: str, rows: Sequence[Provider] = ()) -> Provider:
    """The row with this name or alias. Case, `-`, `_` and dots do not matter."""
    found = find_row(name, rows)
    if found is None:
        from asides.providers.unknown_names import explain_provider

        raise explain_provider(name.strip(), rows)
    return found


def list_providers(rows: Sequence[Provider] = ()) -> tuple[Provider, ...]:
    """All rows: the caller's, then ours that they do not replace."""
    by_key: dict[str, Provider] = {}
    for row in (*rows, *PROVIDERS):
        by_key.setdefault(normalise_name(row.name), row)
    return tuple(by_key.values())


# --- names ------------------------------------------------------------------------------------------------------------


def normalise_name(name: str) -> str:
    """The name of a provider as names are compared: without case and without the marks that people leave out."""
    return _normalise(name) if len(name) <= _USUAL_NAME else _normalise.__wrapped__(name)


@lru_cache(maxsize=2048)
def _normalise(name: str) -> str:
    return name.strip().lower().translate(_LEFT_OUT)


_USUAL_NAME = 64
_LEFT_OUT = {ord(mark): None for mark in "-_. "}


def list_names(row: Provider) -> Iterator[str]:
    """The names under which a row is found, normalised."""
    yield normalise_name(row.name)
    yield from map(normalise_name, row.aliases)


@cache
def _index_our_rows() -> dict[str, Provider]:
    return {key: row for row in PROVIDERS for key in list_names(row)}


def find_row(name: str, rows: Sequence[Provider]) -> Provider | None:
    """The row with this name or alias, or None."""
    key = normalise_name(name)
    if not key:
        return None
    return (_index_rows(rows).get(key) if rows else None) or _index_our_rows().get(key)


# Rows of settings are shared by many calls. Stored with the index, so that their ids are not reused.
_INDEXES: dict[int, tuple[Sequence[Provider], dict[str, Provider]]] = {}
_MAX_INDEXES = 64


def _index_rows(rows: Sequence[Provider]) -> dict[str, Provider]:
    """Rows of the caller by their names; the first of a name counts."""
    known = _INDEXES.get(id(rows))
    if known is None:
        index: dict[str, Provider] = {}
        for row in rows:
            for key in list_names(row):
                index.setdefault(key, row)
        if not isinstance(rows, tuple):
            return index  # The mapping may change.
        if len(_INDEXES) >= _MAX_INDEXES:
            _INDEXES.clear()
        known = _INDEXES[id(rows)] = (rows, index)
    return known[1]


def _split_model(model: object, rows: Sequence[Provider]) -> tuple[Provider, str]:
    if not isinstance(model, str):
        raise UnknownModel(f"a model is text, written provider:model, not {type(model).__name__}.")
    text = model.strip()
    if not text:
        raise UnknownModel("the model is empty; write provider:model.")
    before, colon, after = text.partition(":")
    if colon and (row := find_row(before, rows)) is not None:
        return row, _read_model_name(after, text)
    left, slash, right = text.partition("/")
    if slash and (row := find_row(left, rows)) is not None:
        return row, _read_model_name(right, text)
    from asides.providers.unknown_names import explain_model

    raise explain_model(text, rows)


def _read_model_name(name: str, text: str) -> str:
    if not name.strip():
        raise UnknownModel(f"{text!r} names a provider and no model; write provider:model.")
    return name.strip()


# --- addresses --------------------------------------------------------------------------------------------------------


def _resolve_address(
    row: Provider, model: str, explicit: str | None, environ: Mapping[str, str] | None
) -> tuple[Provider, str, bool]:
    """The row for the address of a model, that address, and whether it is foreign."""
    environ = os.environ if environ is None else environ
    if (moved := find_staged(row, explicit, environ)) is not None:
        return moved, moved.base_url, False
    address, query = _build_address(row, model, explicit, environ)
    foreign = not is_own_address(row, address)
    provider = adapt_to_foreign_address(row) if foreign else row
    return provider if query == row.query else msgspec.structs.replace(provider, query=query), address, foreign


def find_staged(
    row: Provider, explicit: str | None = None, environ: Mapping[str, str] | None = None
) -> Provider | None:
    """The row at the stage that ASIDES_STAGE names; None without one. `explicit`: the address that a call names."""
    environ = os.environ if environ is None else environ
    if not environ.get(STAGE_VARIABLE):
        return None
    from asides.providers.stage_switch import move_to_stage  # Loaded only for the variable.

    return move_to_stage(row, explicit, environ)


def _build_address(
    provider: Provider, model: str, explicit: str | None, environ: Mapping[str, str]
) -> tuple[str, Query]:
    base, query = _normalise_url(_find_base_url(provider, explicit, environ), provider)
    given = {name for name, _ in query}
    for name, value in provider.query:
        if name not in given and (filled := _expand_variable(value, environ)):
            query = (*query, (name, filled))
    match provider.addressing:
        case "azure":
            return _build_azure_address(base, query, model)
        case "regional":
            return base.replace("://global-", "://", 1), query
        case "plain":
            return base, query


def _find_base_url(provider: Provider, explicit: str | None, environ: Mapping[str, str]) -> str:
    if explicit is not None and explicit.strip():
        return explicit.strip()
    for name in provider.base_url_env:
        if value := environ.get(name, "").strip():
            return _complete_url(value, provider)
    if not provider.base_url:
        names = " or ".join(provider.base_url_env)
        advice = f"Set {names}, or pass base_url=." if names else "Pass base_url=."
        raise _refuse_address(f"{provider.name} has no address of its own. {advice}")
    if "$" not in provider.base_url:
        return provider.base_url
    return re.sub(_VARIABLE, lambda found: _fill_variable(found[1], provider, environ), provider.base_url)


def _complete_url(value: str, provider: Provider) -> str:
    """Complete the value of a variable to an address. Other programs share these variables, and some expect only a
    host and port."""
    own = urlsplit(provider.base_url)
    url = value if "://" in value else f"http://{value}"
    if url != value and own.port is not None and re.fullmatch(r"[\w.-]+/?", value):
        # A bare host name means the program's usual port, not the web's.
        url = f"{url.rstrip('/')}:{own.port}"
    path = own.path
    return url.rstrip("/") + path if urlsplit(url).path in ("", "/") else url


def _fill_variable(names: str, provider: Provider, environ: Mapping[str, str]) -> str:
    """Return the value of the first of these variables that is set, as a part of an address."""
    name = next((name for name in names.split("|") if environ.get(name, "").strip()), None)
    if name is None and names.startswith("AWS_REGION"):
        from asides.providers.cloud_hints import read_aws_region

        if (region := read_aws_region(environ)) is not None:
            return region
    if name is None:
        variables = " or ".join(names.split("|"))
        raise _refuse_address(
            f"the address of {provider.name} needs {variables}. Set it in the environment, or pass base_url=."
        )
    value = environ[name].strip()
    if not re.fullmatch(_ADDRESS_PART, value):
        raise _refuse_address(
            f"{name} becomes a part of an address and may hold only letters, digits, '.', '_' and '-'."
        )
    return value


def _expand_variable(value: str, environ: Mapping[str, str]) -> str:
    return environ.get(value[1:], "").strip() if value.startswith("$") else value


def _normalise_url(url: str, provider: Provider) -> tuple[str, Query]:
    """Return the address in the normal form by which origins are compared, and the query that it contained."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refuse_address(f"the base_url of {provider.name} cannot be parsed; write https://host/path.") from None
    if parts.scheme.lower() not in DEFAULT_PORTS or not parts.hostname:
        raise _refuse_address(f"the base_url of {provider.name} is not an http(s) URL; write https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise _refuse_address(
            f"the base_url of {provider.name} holds a user name or password; pass the key with api_key=."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != DEFAULT_PORTS[parts.scheme.lower()]:
        host = f"{host}:{port}"
    path = parts.path.rstrip("/")
    for own in (provider.quirks.path, *(variant.quirks.path for variant in provider.also)):
        path = path.removesuffix(own).rstrip("/")
    return urlunsplit((parts.scheme.lower(), host, path, "", "")), tuple(parse_qsl(parts.query))


def _build_azure_address(base: str, query: Query, model: str) -> tuple[str, Query]:
    version = dict(query).get("api-version", "")
    path = urlsplit(base).path
    if "/deployments/" in path:
        return base, query
    if path.endswith("/v1"):
        # This form of address refuses a dated version.
        return base, tuple(pair for pair in query if pair[1] == "preview")
    root = base.removesuffix("/openai")
    if version and version not in _UNDATED:
        return f"{root}/openai/deployments/{quote_model(model)}", query
    return f"{root}/openai/v1", tuple(pair for pair in query if pair[1] == "preview")


def quote_model(model: str, safe: str = "") -> str:
    """The name of a model as a part of an address. Raises UnknownModel for one that leads to another address: HTTP
    libraries resolve `..` in a path, and the key would go along."""
    if not {".", ".."}.isdisjoint(model.split("/")):
        raise UnknownModel(f"{model[:200]!r} is not a valid model name: it has '.' or '..' as a path segment.")
    return quote(model, safe=safe)


# --- foreign addresses ------------------------------------------------------------------------------------------------


def is_own_address(row: Provider, address: str) -> bool:
    """Whether the row's facts hold at this address.

    They hold at the provider's own hosts. The facts of software that people run themselves, and of a row without an
    address, hold wherever its user says.
    """
    own = urlsplit(re.sub(_VARIABLE, "0", row.base_url) if "$" in row.base_url else row.base_url)
    if not own.hostname:
        own_hosts = row.own_hosts
    elif row.launcher or is_loopback(row.base_url):
        return True
    else:
        own_hosts = (urlsplit(row.base_url).netloc, *row.own_hosts)
    if not own_hosts:
        return True
    parts = urlsplit(address)
    port = parts.port
    given = (parts.hostname or "") + (f":{port}" if port not in (None, DEFAULT_PORTS.get(parts.scheme)) else "")
    return parts.scheme == (own.scheme or "https") and any(_matches_host(given, host) for host in own_hosts)


def _matches_host(given: str, own: str) -> bool:
    if own.startswith("."):
        return given.endswith(own) and all(given.removesuffix(own).split("."))
    if "$" not in own:
        return given == own
    # "$REGION" matches one label of a host name.
    pattern = "[^.]+".join(map(re.escape, re.split(_VARIABLE, own)[::2]))
    return re.fullmatch(pattern, given) is not None


# Rows and rules for foreign addresses, each made once. Stored with their sources, so that ids are not reused.
_FOREIGN_ROWS: dict[int, tuple[Provider, Provider]] = {}
_FOREIGN_RULES: dict[tuple[int, ...], tuple[tuple[ModelRule, ...], ModelRule]] = {}
_MAX_FOREIGN = 1024


def adapt_to_foreign_address(row: Provider) -> Provider:
    """The row for a server at an address that is not the provider's own.

    The row still decides how to ask. Reading replies and sending thoughts back works as for an unknown server, in every
    dialect of the row: "this host never inlines" is a fact about the provider's own host.
    """
    known = _FOREIGN_ROWS.get(id(row))
    if known is None:
        plain = _find_plain_row(row)
        also = tuple(
            msgspec.structs.replace(
                variant,
                quirks=_read_anything(variant.quirks),
                replay=_find_plain_row(row.with_dialect(variant.dialect) or row).replay,
            )
            for variant in row.also
        )
        adapted = msgspec.structs.replace(
            row,
            quirks=_read_anything(row.quirks),
            replay=plain.replay,
            also=also,
            max_tools=plain.max_tools,
            prices="",  # the prices of another server are unknown
        )
        if len(_FOREIGN_ROWS) >= _MAX_FOREIGN:
            _FOREIGN_ROWS.clear()
        known = _FOREIGN_ROWS[id(row)] = (row, adapted)
    return known[1]


def _find_plain_row(row: Provider) -> Provider:
    """The row of an unknown server of the same dialect; a dialect from elsewhere has only its own rows."""
    try:
        return plain_row(row.dialect)
    except UnknownProvider:
        return row


def _read_anything(quirks: Quirks) -> Quirks:
    fields = tuple(dict.fromkeys((*quirks.thinking_in, *THINKING_FIELDS)))
    return msgspec.structs.replace(quirks, tags=None, tag_position="auto", thinking_in=fields, heuristics=True)


_KEEPS_THINKING = frozenset({"clear_thinking", "preserve_thinking"})


def find_rule(row: Provider, model: str, *, foreign: bool) -> ModelRule:
    """The rule of a model. At a foreign address the model's facts stay; the form of its content, and models missing
    from the row, are treated as for an unknown server."""
    rule = row.rule(model)
    if not foreign:
        return rule
    plain, anywhere = _find_plain_row(row).rule(model), plain_row("openai_chat").rule(model)
    sources = (rule, plain, anywhere)
    known = _FOREIGN_RULES.get(key := tuple(map(id, sources)))
    if known is None:
        merged = plain
        if rule != ModelRule():
            # The tags of a model that its maker serves are a fact of that host: another server may write others. Its
            # thoughts go back by the rule of an unknown server, so no field asks to keep them all.
            merged = msgspec.structs.replace(
                rule,
                fields=tuple(field for field in rule.fields if field[0] not in _KEEPS_THINKING),
                tags=anywhere.tags,
                starts_inside=rule.starts_inside or plain.starts_inside,
                thinks_though_off=rule.thinks_though_off or plain.thinks_though_off,
            )
        if len(_FOREIGN_RULES) >= _MAX_FOREIGN:
            _FOREIGN_RULES.clear()
        known = _FOREIGN_RULES[key] = (sources, merged)
    return known[1]
