"""Settings: the defaults of every call, each with its origin. Argument > environment > file > built-in default.

`load_settings()` reads the environment and `asides.toml`; importing this module reads nothing. Not here: API keys
(providers/credentials).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from asides.providers.find import find_provider, list_providers
from asides.providers.provider import Provider
from asides.providers.quirks import trim_names
from asides.values.errors import ConfigError, InvalidThinking
from asides.values.notices import Notice
from asides.values.thinking import Thinking, read_thinking

FILE_NAME = "asides.toml"
FILE_VARIABLE = "ASIDES_CONFIG"
_PREFIX = "ASIDES_"
_BOOL_WORDS = {"yes": True, "on": True, "no": False, "off": False}

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]


class Timeouts(msgspec.Struct, frozen=True):
    """How long to wait, in seconds. 600 for the first byte, since a model may think that long before it sends any."""

    connect: Seconds = 10.0
    first_byte: Seconds = 600.0
    idle: Seconds = 300.0
    """Between two reads, once the response has begun."""
    total: Seconds | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
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
    providers: tuple[Provider, ...] = ()
    """The user's rows, from [providers.NAME]."""
    files: tuple[str, ...] = ()
    """The files that were read, in order of precedence."""
    notices: tuple[Notice, ...] = ()
    origins: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    def origin(self, name: str) -> str:
        """The origin of a setting: "default", "environment ASIDES_MODEL", "file asides.toml" or "argument"."""
        if name not in SETTINGS:
            raise _build_name_error(name, "a setting")
        return self.origins.get(name, "default")

    def entries(self) -> Iterator[tuple[str, Any, str]]:
        """Every setting as (name, value, origin), for display."""
        for name in SETTINGS:
            first, _, second = name.partition(".")
            value = getattr(self, first)
            yield name, getattr(value, second) if second else value, self.origin(name)

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


def _list_types() -> dict[str, Any]:
    """The type of each setting by its name. A setting of a group is named group.name."""
    types: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        if field.name == "timeouts":
            types |= {f"timeouts.{part.name}": part.type for part in msgspec.structs.fields(Timeouts)}
        elif field.name not in ("providers", "files", "notices", "origins"):
            types[field.name] = field.type
    return types


SETTINGS = _list_types()


def load_settings(
    environ: Mapping[str, str] | None = None, *, files: Sequence[str | Path] | None = None, **explicit: Any
) -> Settings:
    """Resolve every setting: from arguments, then ASIDES_… variables, then the files in their order.

    `files` replaces the search: ASIDES_CONFIG, or else ./asides.toml and the one in the user's configuration folder.
    `providers=` rows come before those of the files. None counts as not given.
    """
    environ = os.environ if environ is None else environ
    collector = _Collector()
    rows: list[Provider] = list(explicit.pop("providers", None) or ())
    for name, value in _flatten({name: value for name, value in explicit.items() if value is not None}, "an argument"):
        collector.take(name, value, "argument")
    for name in SETTINGS:
        variable = _PREFIX + name.replace(".", "_").upper()
        if value := environ.get(variable, "").strip():
            collector.take_text(name, value, f"environment {variable}")
    paths: list[str] = []
    for path, document in _read_documents(environ, files):
        paths.append(str(path))
        file_rows = _read_rows(document.pop("providers", {}), path, rows)
        if files is None and path == Path(FILE_NAME) and not environ.get(FILE_VARIABLE, "").strip():
            for row in file_rows:
                _check_address(row, path)
        rows += file_rows
        for name, value in _flatten(document, f"{path}: a setting"):
            collector.take(name, value, f"file {path}")
    values: dict[str, Any] = {}
    timeouts: dict[str, Any] = {}
    for name, value in collector.values.items():
        group, _, part = name.partition(".")
        if part:
            timeouts[part] = value
        else:
            values[group] = value
    return Settings(
        **values,
        timeouts=Timeouts(**timeouts),
        providers=tuple(rows),
        files=tuple(paths),
        notices=tuple(collector.notices),
        origins=collector.origins,
    )


class _Collector:
    """Collects settings. The first source of a setting wins; the values of all sources are checked."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.notices: list[Notice] = []

    def take(self, name: str, value: Any, origin: str, *, strict: bool = True) -> None:
        try:
            if name == "thinking":
                read: Any = self._read_thinking(value)
            else:
                read = msgspec.convert(value, SETTINGS[name], strict=strict)
        except InvalidThinking as problem:
            raise InvalidThinking(f"{origin}: {problem}", setting="thinking") from None
        except msgspec.ValidationError as problem:
            raise ConfigError(f"{origin}: {name} is not valid: {problem}.") from None
        if name not in self.values:
            self.values[name] = read
            self.origins[name] = origin

    def take_text(self, name: str, text: str, origin: str) -> None:
        if name == "reasoning_allowed_models":
            self.take(name, [part.strip() for part in text.split(",") if part.strip()], origin)
        elif SETTINGS[name] in (bool, bool | None):
            self.take(name, _BOOL_WORDS.get(text.lower(), text), origin, strict=False)
        else:
            self.take(name, text, origin, strict=False)

    def _read_thinking(self, value: Any) -> Thinking:
        thinking, notices = read_thinking(value)
        self.notices += notices
        return thinking


def _flatten(document: Mapping[str, Any], what: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        name = key.replace("-", "_")
        if name == "timeouts" and isinstance(value, (Mapping, Timeouts)):
            parts = msgspec.structs.asdict(value) if isinstance(value, Timeouts) else value
            yield from _flatten(
                {f"{name}.{part}": seconds for part, seconds in parts.items() if seconds is not None}, what
            )
        elif name in SETTINGS:
            yield name, value
        else:
            raise _build_name_error(key, what)


def _build_name_error(name: str, what: str) -> ConfigError:
    from difflib import get_close_matches

    close = get_close_matches(name.replace("-", "_"), SETTINGS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the settings are {', '.join(SETTINGS)} and providers."
    return ConfigError(f"{what} is called {name!r}, which is not known; {hint}")


# --- files --------------------------------------------------------------------------------------------------------


def find_config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The paths of settings files, in order of precedence. The files need not exist."""
    if named := environ.get(FILE_VARIABLE, "").strip():
        return (Path(named),)
    paths = [Path(FILE_NAME)]
    if folder := environ.get("XDG_CONFIG_HOME", "").strip():
        paths.append(Path(folder) / "asides" / FILE_NAME)
    elif home := environ.get("HOME", "").strip() or environ.get("USERPROFILE", "").strip():
        paths.append(Path(home) / ".config" / "asides" / FILE_NAME)
    return tuple(paths)


def _read_documents(
    environ: Mapping[str, str], files: Sequence[str | Path] | None
) -> Iterator[tuple[Path, dict[str, Any]]]:
    import tomllib

    must_exist = files is not None or bool(environ.get(FILE_VARIABLE, "").strip())
    for path in find_config_files(environ) if files is None else map(Path, files):
        try:
            yield path, tomllib.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if must_exist:
                raise ConfigError(f"the settings file {path} does not exist; create it, or name another.") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigError(f"the settings file {path} cannot be read: {problem}.") from None
        except tomllib.TOMLDecodeError as problem:
            raise ConfigError(f"the settings file {path} is not TOML: {problem}.") from None


def _check_address(row: Provider, path: Path) -> None:
    """Raise if a row of a file in the current folder, which may be untrusted, would send a known key elsewhere."""
    from asides.providers.credentials import is_loopback

    if is_loopback(row.base_url):
        return
    for known in list_providers():
        shared_keys = sorted(set(row.key_env) & set(known.key_env))
        if shared_keys and known.key == "required" and row.base_url != known.base_url:
            raise ConfigError(
                f"{path}: [providers.{row.name}] would send {shared_keys[0]} to {row.base_url or 'another address'}. A "
                f"file in the current folder may not do that; set {FILE_VARIABLE}={path} if you trust it, or give the "
                "row another key_env."
            )


def _read_rows(tables: Any, path: Path, before: Sequence[Provider]) -> list[Provider]:
    from asides.providers.user_rows import read_row

    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: providers is a table of tables: [providers.NAME].")
    return [
        read_row(name, table, f"{path}: [providers.{name}]", lambda name: find_provider(name, before))
        for name, table in tables.items()
    ]
