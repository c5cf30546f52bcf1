"""Settings: the defaults of every call, each with its origin. Argument > environment > file > built-in default.

`load_settings()` reads the environment and `asides.toml`; importing this module reads nothing. A file that was found
but not named by the user may come with a downloaded folder: it sets only what `_HARMLESS` lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from asides.providers.find import STAGE_VARIABLE, find_target
from asides.providers.provider import Provider
from asides.providers.quirks import trim_names
from asides.providers.table import WITHOUT_A_KEY
from asides.settings_files import (
    FILE_VARIABLE,
    MCP_TABLES,
    IgnoredSetting,
    McpTable,
    SettingsFile,
    Trusts,
    read_files,
    read_mcp_tables,
    report_ignored,
    shorten_name,
)
from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError, InvalidThinking
from asides.values.mask_url import MaskedStruct, show_value
from asides.values.notices import Notice
from asides.values.thinking import Thinking, read_thinking
from asides.values.visibility import Visibility

_PREFIX = "ASIDES_"
_BOOL_WORDS = {"yes": True, "on": True, "no": False, "off": False}
_OTHER_VARIABLES = frozenset(
    {FILE_VARIABLE, STAGE_VARIABLE, "ASIDES_DEBUG", "ASIDES_GATEWAY_KEY", "ASIDES_RELAY_KEY", "ASIDES_STATE"}
)
"""ASIDES_ variables that are not settings."""
_ROWS = "providers"
_NAMES = ("aliases", "templates", "routes")
_TABLES = (_ROWS, *_NAMES, MCP_TABLES)
"""Tables of a file with names of the user's own. They have no variables."""

# Settings allowed in files that were found but not named: they decide neither where a request or a secret goes, nor
# which program runs, nor what is written to the disk. Review a new setting before adding it here.
_HARMLESS = frozenset(
    """
    model thinking max_tokens timeouts.connect timeouts.first_byte timeouts.idle timeouts.total retries on_conflict
    keep_raw render_markdown show_reasoning_thinking reasoning_allowed_models thinking_field heuristics
    openai_responses_enabled tools_max_count tools_max_json_kb
    """.split()
)

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
LogFormat: TypeAlias = Literal["text", "json", "off"]
_LAST_PORT = 65535
_MAX_WORKERS = 256


class Timeouts(msgspec.Struct, frozen=True):
    """How long to wait, in seconds. 600 for the first byte, since a model may think that long before it sends any."""

    connect: Seconds = 10.0
    first_byte: Seconds = 600.0
    idle: Seconds = 300.0
    """Until the next content, once the response has begun."""
    total: Seconds | None = None


class GatewayTable(MaskedStruct, frozen=True, kw_only=True):
    """The settings of `asides serve`. Its keys are never in here: only where they are."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=_LAST_PORT)] = 4242
    """0: a free one."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=_MAX_WORKERS)] = 1
    """The processes that answer."""
    key_file: str | None = None
    """A file with the keys that clients have to send one of, one in each line."""
    key_env: str | None = None
    """The name of a variable with them. ASIDES_GATEWAY_KEY always counts."""
    folder: str | None = None
    """Where reasoning state and conversations are kept; None: the state folder of the command line."""
    state: Literal["off", "carry-only", "memory", "store"] = "store"
    """Where reasoning state is kept."""
    redis: str | None = None
    """The Redis or Valkey server that instances share, as redis://host: the windows of limits, and revoked keys. None:
    each process counts for itself."""
    key_grace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 3600.0
    """How long keys of the database stay valid while it does not answer."""
    summary_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] = 30
    """How many days the metrics of each request are kept in the database, without content; 0: not at all."""
    shown_models: tuple[str, ...] = ()
    """Patterns of the models that lists show, as provider:model, such as "groq:*"; (): all that the keys can use."""
    page: bool = True
    """Serve the page."""
    thinking_field: Literal["reasoning_content", "reasoning", "thinking", "reasoning_details"] = "reasoning_content"
    """The field for thinking in chat completions."""
    allowed_hosts: tuple[str, ...] = ()
    """More names under which clients may reach it."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of others that may use it."""
    open_metrics: bool = False
    """Answer /metrics without a key too."""
    max_body_mb: Annotated[float, msgspec.Meta(gt=0)] = 64
    """The longest request body, in megabytes."""
    max_requests: Annotated[int, msgspec.Meta(ge=1)] = 2000
    """Maximum of concurrent requests in one process."""
    ping_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """After so much silence a stream gets a ping."""
    drain_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """How long open replies may take to end after SIGTERM."""
    telemetry: bool = True
    """Send spans and metrics, where a variable of OpenTelemetry names a collector."""
    telemetry_content: bool = False
    """Write prompts, answers and calls into spans; thinking as far as `visibility.trace` allows."""
    trace_hosts: tuple[str, ...] = ()
    """Providers that receive trace headers, as patterns of hosts. Those on this machine always do."""
    log: LogFormat = "text"
    """The format of the log."""


class Settings(MaskedStruct, frozen=True, kw_only=True):
    """All settings, resolved. Each has a variable, ASIDES_ and its name in capitals, such as ASIDES_TIMEOUTS_IDLE."""

    model: str | None = None
    """The default model, as provider:model."""
    thinking: Thinking = Thinking()
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    timeouts: Timeouts = Timeouts()
    retries: Annotated[int, msgspec.Meta(ge=0)] = 2
    """Attempts after the first."""
    on_conflict: Literal["raise", "adjust"] = "raise"
    keep_raw: bool = True
    keep_thinking: bool = False
    """Write readable thinking into saved conversations."""
    keep_conversations: Literal["last", "all", "none"] = "last"
    """What the command line saves of questions without a name: the last one, for `-c`, all of them, or none."""
    store: str | None = None
    """The PostgreSQL database that instances share, as postgresql://user@host/name: conversations, reasoning state,
    keys and batches. None: SQLite files on this machine."""
    keep_input_history: bool = True
    """Save what is typed into `asides chat`, for the arrow keys of later chats."""
    render_markdown: bool = True
    """Render the Markdown of answers on a terminal, where `rich` is installed."""
    show_reasoning_thinking: bool = False
    """Show thinking on the command line."""
    reasoning_allowed_models: tuple[str, ...] = ("*",)
    """Globs over provider:model or the model alone. Only the thinking of these models may be shown."""
    thinking_field: str | None = None
    """The only field to read thinking from; replaces the fields of the provider's row. Blank is unset."""
    heuristics: bool = True
    """Read unknown fields whose name suggests thinking as thinking."""
    openai_responses_enabled: bool | None = None
    """true: use Responses, even at a custom address; false: only if nothing else works; None: the model and the
    address decide. OPENAI_RESPONSES_DISABLE=true in the environment wins."""
    tools_max_count: Annotated[int, msgspec.Meta(ge=1)] = 16
    tools_max_json_kb: Annotated[int, msgspec.Meta(ge=1)] = 32
    fallbacks: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    """For a model, the models to ask in order when it fails."""
    providers: tuple[Provider, ...] = ()
    """The user's rows, from [providers.NAME]."""
    aliases: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """The user's names for models, from [aliases]."""
    templates: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """The user's prompts for the command line, from [templates.NAME]: each a `Template` of settings_tables."""
    routes: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """The names that a relay serves, from [routes.NAME]: each a `RouteTable` of settings_tables."""
    visibility: Visibility = Visibility()
    """What each place may see of thinking, at most."""
    gateway: GatewayTable = GatewayTable()
    """Defaults of `asides serve`."""
    mcp: tuple[McpTable, ...] = ()
    """The user's MCP servers, from [mcp.NAME]."""
    files: tuple[str, ...] = ()
    """The files that were read, in order of precedence."""
    notices: tuple[Notice, ...] = ()
    origins: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    ignored: tuple[IgnoredSetting, ...] = ()
    """What files tried to set and may not."""

    def origin(self, name: str) -> str:
        """The origin of a setting: "default", "environment ASIDES_MODEL", "file asides.toml" or "argument"."""
        if name not in SETTINGS:
            raise _build_name_error(name, "unknown setting")
        return self.origins.get(name, "default")

    def entries(self) -> Iterator[tuple[str, Any, str]]:
        """Every setting as (name, value, origin), for display: without passwords."""
        for name in SETTINGS:
            yield name, show_value(attrgetter(name)(self)), self.origin(name)

    def resolve_model(self, model: str) -> str:
        """The model that an alias names; any other name as it is."""
        return self.aliases.get(str(model).strip(), model)

    def shows_thinking(self, model: str) -> bool:
        """Whether the thinking of `provider:model` may be shown."""
        full = model.lower()
        names = (full, full.partition(":")[2] or full)
        allowed = (pattern.lower() for pattern in self.reasoning_allowed_models)
        return self.show_reasoning_thinking and any(fnmatchcase(name, pattern) for pattern in allowed for name in names)

    def collect_decoding_facts(self) -> dict[str, Any]:
        """The facts of a target that the settings override, by name: how its responses are decoded."""
        facts: dict[str, Any] = {}
        if self.thinking_field and (names := trim_names((self.thinking_field,))):
            facts = {"thinking_in": names, "heuristics": False}
        if "heuristics" in self.origins:
            facts["heuristics"] = self.heuristics
        return facts


GROUPS: dict[str, type[Timeouts | Visibility | GatewayTable]] = {
    "timeouts": Timeouts,
    "visibility": Visibility,
    "gateway": GatewayTable,
}
"""Tables of settings: each of their fields is one, named group.name."""


def _list_names() -> Iterator[str]:
    for name in Settings.__struct_fields__:
        if name in GROUPS:
            yield from (f"{name}.{part}" for part in GROUPS[name].__struct_fields__)
        elif name not in (*_TABLES, "files", "notices", "origins", "ignored"):
            yield name


SETTINGS = tuple(_list_names())
"""The name of each setting. A setting of a group is named group.name."""


@cache
def _find_types() -> dict[str, Any]:
    """The type of each setting by its name. Reading the types takes a while, and most processes set nothing."""
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    parts = ((group, part) for group, kind in GROUPS.items() for part in msgspec.structs.fields(kind))
    return types | {f"{group}.{part.name}": part.type for group, part in parts}


def _list_words(kind: Any) -> str:
    """What to do about a setting that takes certain words, or a list of them."""
    is_list = get_origin(kind) in (tuple, frozenset)
    parts = get_args(kind) if is_list or get_origin(kind) is not Literal else (kind,)
    words = [str(word) for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if not words:
        return ""
    return f" Use a list of {', '.join(words)}." if is_list else f" Use {' or '.join(words)}."


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    files: Sequence[str | Path] | None = None,
    trusts: Trusts | None = None,
    **explicit: Any,
) -> Settings:
    """Resolve every setting: from arguments, then ASIDES_… variables, then the files in their order.

    `files` replaces the search: ASIDES_CONFIG, or else ./asides.toml and the one in the user's configuration folder.
    A file that was named is trusted. ./asides.toml is not, unless `trusts` says so: its rows and all that is not
    harmless are ignored, with a notice. `providers=`, `aliases=`, `templates=` and `routes=` come before those of the
    files. None counts as not given.
    """
    environ = os.environ if environ is None else environ
    collector = _Collector()
    rows: list[Provider] = list(explicit.pop(_ROWS, None) or ())
    named = _read_names({name: explicit.pop(name, None) or {} for name in _NAMES}, "argument")
    servers: list[McpTable] = list(explicit.pop(MCP_TABLES, None) or ())
    for name, value in _flatten(
        {name: value for name, value in explicit.items() if value is not None}, "unknown argument"
    ):
        collector.take(name, value, "argument")
    for name in SETTINGS:
        variable = _name_variable(name)
        if value := environ.get(variable, "").strip():
            collector.take_text(name, value, f"environment {variable}")
    collector.notices += _report_unknown_variables(environ)
    paths: list[str] = []
    found = list(read_files(environ, files, trusts))
    for file in found:
        paths.append(str(file.path))
        tables = {name: file.document.pop(name) for name in _TABLES if name in file.document}
        if file.distrust is None:
            if _ROWS in tables:
                from asides.providers.user_rows import read_rows  # Few files have rows.

                rows += read_rows(tables[_ROWS], str(file.path), rows)
            named = {key: table | named[key] for key, table in _read_names(tables, f"{file.path}").items()}
            servers += read_mcp_tables(tables.get(MCP_TABLES, {}), file.path)
        for name, table in tables.items() if file.distrust else ():
            collector.ignore([f"{name}.{key}" for key in table] if isinstance(table, dict) else [name], file)
    for file in found:
        for name, value in _flatten(file.document, f"{file.path}: unknown setting"):
            meant = named["aliases"].get(value, value) if name == "model" and isinstance(value, str) else value
            if file.distrust is None or is_harmless(name, meant, rows):
                collector.take(name, value, f"file {file.path}")
            elif name.startswith("visibility."):
                collector.narrow(name, value, f"file {file.path}")
            else:
                collector.ignore([name], file)
    values: dict[str, Any] = {name: {} for name in GROUPS}
    for name, value in collector.values.items():
        group, _, part = name.partition(".")
        if part:
            values[group][part] = value
        else:
            values[group] = value
    values |= {group: kind(**values[group]) for group, kind in GROUPS.items()}
    for sink, kinds in collector.limits:
        values["visibility"] = values["visibility"].limit(sink, kinds)
    return Settings(
        **values,
        providers=tuple(rows),
        aliases=named["aliases"],
        templates=named["templates"],
        routes=named["routes"],
        mcp=tuple({table.name: table for table in reversed(servers)}.values()),
        files=tuple(paths),
        notices=(*collector.notices, *report_ignored(collector.ignored)),
        origins=collector.origins,
        ignored=tuple(collector.ignored),
    )


def _name_variable(setting: str) -> str:
    return _PREFIX + setting.replace(".", "_").upper()


def _report_unknown_variables(environ: Mapping[str, str]) -> list[Notice]:
    """A notice for each unknown ASIDES_ variable."""
    known = {_name_variable(name) for name in SETTINGS}
    notices: list[Notice] = []
    for name in environ:
        if name.upper().startswith(_PREFIX) and name not in known and name not in _OTHER_VARIABLES:
            hint = suggest_name(name.upper(), known, "`asides config` lists the settings")
            notices.append(Notice("unknown_variable", f"{shorten_name(name)} is not a setting and is ignored; {hint}"))
    return notices


class _Collector:
    """Collects settings. The first source of a setting wins; the values of all sources are checked."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.notices: list[Notice] = []
        self.ignored: list[IgnoredSetting] = []
        self.limits: list[tuple[Any, tuple[str, ...]]] = []

    def narrow(self, name: str, value: Any, origin: str) -> None:
        """Take what a file that is not trusted says about visibility: it may only allow less."""
        limited = _Collector()
        limited.take(name, value, origin)
        self.limits.append((name.partition(".")[2], limited.values[name]))
        self.origins[name] = f"{self.origins[name]}, and {origin}" if name in self.origins else origin

    def ignore(self, names: Sequence[str], file: SettingsFile) -> None:
        self.ignored += [IgnoredSetting(shorten_name(name), str(file.path), file.distrust or "") for name in names]

    def take(self, name: str, value: Any, origin: str, *, strict: bool = True) -> None:
        try:
            if name == "thinking":
                read: Any = self._read_thinking(value)
            else:
                read = msgspec.convert(value, _find_types()[name], strict=strict)
        except InvalidThinking as problem:
            raise InvalidThinking(f"{origin}: {problem}", setting="thinking") from None
        except msgspec.ValidationError as problem:
            raise ConfigError(f"{origin}: {name} is not valid: {problem}.{_list_words(_find_types()[name])}") from None
        if name not in self.values:
            self.values[name] = read
            self.origins[name] = origin

    def take_text(self, name: str, text: str, origin: str) -> None:
        if name == "fallbacks":
            self.take(name, _parse_json(text, origin), origin)
        elif get_origin(_find_types()[name]) is tuple:
            words = [part.strip() for part in text.split(",") if part.strip()]
            self.take(name, [] if words == ["none"] and name.startswith("visibility.") else words, origin)
        elif _find_types()[name] in (bool, bool | None):
            self.take(name, _BOOL_WORDS.get(text.lower(), text), origin, strict=False)
        else:
            self.take(name, text, origin, strict=False)

    def _read_thinking(self, value: Any) -> Thinking:
        thinking, notices = read_thinking(value)
        self.notices += notices
        return thinking


def _parse_json(text: str, origin: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise ConfigError(f'{origin}: this is not JSON, such as {{"a:b": ["c:d"]}}: {problem}.') from None


def _flatten(document: Mapping[str, Any], what: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        name = key.replace("-", "_")
        if name in GROUPS and isinstance(value, (Mapping, Timeouts, Visibility, GatewayTable)):
            parts = value if isinstance(value, Mapping) else msgspec.structs.asdict(value)
            yield from _flatten(
                {f"{name}.{part}": seconds for part, seconds in parts.items() if seconds is not None}, what
            )
        elif name in SETTINGS:
            yield name, value
        else:
            raise _build_name_error(key, what)


def _build_name_error(name: str, what: str) -> ConfigError:
    hint = suggest_name(name.replace("-", "_"), SETTINGS, f"the settings are {', '.join((*SETTINGS, *_TABLES))}.")
    return ConfigError(f"{what} {name!r}; {hint}")


# --- files that were found, not named -----------------------------------------------------------------------------


def is_harmless(name: str, value: object, rows: Sequence[Provider] = ()) -> bool:
    """Whether a file that is not trusted may set this. `rows` are the user's own, which may start servers too."""
    return name in _HARMLESS and not (name == "model" and isinstance(value, str) and _is_more_than_a_name(value, rows))


def _is_more_than_a_name(model: str, rows: Sequence[Provider]) -> bool:
    """Whether a model leaves the path of its address, or starts a server with a file, which may be the folder's."""
    if ".." in model:
        return True
    if model.strip() == WITHOUT_A_KEY:
        return False
    try:
        return bool(find_target(model, rows=rows, environ={}).provider.launcher)
    except ConfigError:
        return False


def _read_names(tables: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    if not any(map(tables.get, _NAMES)):
        return {name: {} for name in _NAMES}
    from asides.settings_tables import read_aliases, read_routes, read_templates  # Few files have these tables.

    readers: dict[str, Callable[[Any, str], dict[str, Any]]]
    readers = {"aliases": read_aliases, "templates": read_templates, "routes": read_routes}
    return {name: read(tables.get(name, {}), f"{where}: [{name}]") for name, read in readers.items()}
