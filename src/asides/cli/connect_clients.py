"""The clients that `asides connect` knows: the variables, files and commands with which each reaches a gateway.

Every client is a row with the version that it was checked with, its date and its source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from asides.values.errors import ConfigError

FileFormat: TypeAlias = Literal["json", "toml", "env"]
ValuePath: TypeAlias = tuple[str, ...]

PLACEHOLDER = "asides"
"""Sent where a gateway needs no key: clients insist on one."""
OWN_NAME = "asides"
"""The name of the gateway in the files of clients."""
DIALECTS = ("chat", "responses", "anthropic", "gemini")


class FromVariable(NamedTuple):
    """A value that is in a variable of the user's own."""

    name: str


Value: TypeAlias = str | FromVariable


class Access(NamedTuple):
    """How a client reaches the gateway."""

    url: str
    """Without a path."""
    model: str | None
    """None: the client's own choice."""
    small_model: str | None
    """The model for side requests, such as titles."""
    key: Value = PLACEHOLDER
    dialect: str | None = None
    """The dialect, for a client that speaks several; None: its default."""

    def name_model(self, client: str) -> str:
        """The model, for a client that has none of its own."""
        if self.model is None:
            raise ConfigError(f"{client} needs the name of a model. Add --model PROVIDER:MODEL.")
        return self.model


class ConfigFile(NamedTuple):
    """What a client's file has to say."""

    path: Path
    format: FileFormat
    values: dict[ValuePath, Any]
    defaults: Mapping[ValuePath, Any] = MappingProxyType({})
    """What it gets only where it says nothing."""
    owned: tuple[ValuePath, ...] = ()
    """Tables that are all ours."""
    absent: tuple[ValuePath, ...] = ()
    """What it may not have beside these values, such as a key from another source."""
    named: tuple[ValuePath, ValuePath] | None = None
    """An object with an entry of ours, and the value that has that entry's name: the next model has another."""


class Setup(NamedTuple):
    """Everything that one client needs."""

    variables: dict[str, Value]
    """For the shell; none where the client reads none."""
    files: tuple[ConfigFile, ...] = ()
    command: str = ""
    """What to run then."""
    notes: tuple[str, ...] = ()
    example: str = ""
    """A few lines of code, for a library."""
    needs_files: bool = False
    """Variables alone are not enough."""


class KnownClient(NamedTuple):
    """A client, and how it is set up."""

    title: str
    dialect: str
    """The dialect that it speaks, or the first of several."""
    checked: str
    """The package and its version that this was checked with."""
    since: str
    source: str
    build: Callable[[Access, Path, Mapping[str, str]], Setup]
    """From how it reaches the gateway, the home folder, and the environment."""


def _build_claude(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    settings: dict[str, str] = {"ANTHROPIC_BASE_URL": access.url}
    if access.model is not None:
        settings["ANTHROPIC_MODEL"] = access.model
        # Whatever it asks beside the conversation, and what people choose as "sonnet".
        settings |= dict.fromkeys(
            (f"ANTHROPIC_DEFAULT_{name}_MODEL" for name in ("FABLE", "OPUS", "SONNET")), access.model
        )
        settings["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = access.small_model or access.model
    settings |= {
        "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    values: dict[ValuePath, Any] = {("env", name): value for name, value in settings.items()}
    key = access.key
    if isinstance(key, FromVariable):
        # It runs this command for its key, so that no file holds one.
        values["apiKeyHelper",] = f"printenv {key.name}"
    else:
        values["env", "ANTHROPIC_AUTH_TOKEN"] = key
    sources: tuple[ValuePath, ...] = (("apiKeyHelper",), ("env", "ANTHROPIC_AUTH_TOKEN"), ("env", "ANTHROPIC_API_KEY"))
    absent = tuple(path for path in sources if path not in values)
    notes = ["/model lists the gateway's models under names that begin with claude or anthropic."]
    if environ.get("ANTHROPIC_API_KEY"):
        notes.append("ANTHROPIC_API_KEY is set too. Unset it, or Claude Code asks which key to use.")
    return Setup(
        {"ANTHROPIC_BASE_URL": access.url, "ANTHROPIC_AUTH_TOKEN": key, **settings},
        (ConfigFile(folder / "settings.json", "json", values, absent=absent),),
        "claude",
        tuple(notes),
    )


def _build_codex(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    folder = Path(environ.get("CODEX_HOME") or home / ".codex")
    row = ("model_providers", OWN_NAME)
    values: dict[ValuePath, Any] = {("model",): access.model} if access.model is not None else {}
    values |= {
        ("model_provider",): OWN_NAME,
        (*row, "name"): OWN_NAME,
        (*row, "base_url"): f"{access.url}/v1",
        (*row, "wire_api"): "responses",
    }
    if isinstance(access.key, FromVariable):
        values[*row, "env_key"] = access.key.name
    elif access.key != PLACEHOLDER:
        values[*row, "experimental_bearer_token"] = access.key
    absent = tuple((*row, name) for name in ("env_key", "experimental_bearer_token") if (*row, name) not in values)
    # It sends no effort for a model that it does not know.
    defaults: dict[ValuePath, Any] = {
        ("model_reasoning_effort",): "medium",
        ("check_for_update_on_startup",): False,
        ("analytics", "enabled"): False,
    }
    notes = ("Codex warns that it has no metadata for the model: it then assumes a context of its own.",)
    file = ConfigFile(folder / "config.toml", "toml", values, defaults, (row,), absent)
    return Setup({}, (file,), "codex", notes if access.model is not None else (), needs_files=True)


# The presets of Gemini CLI for side requests (0.61, docs/reference/configuration.md in its package). What extends
# gemini-3-flash-base: the checks for loops and for the next speaker, repairs of edits, fallbacks of fetched pages.
_SIDE_PRESETS = (
    "gemini-3-flash-base",
    "classifier",
    "prompt-completion",
    "fast-ack-helper",
    "edit-corrector",
    "summarizer-default",
    "summarizer-shell",
    "loop-detection-double-check",
    "chat-compression-default",
    "agent-history-provider-summarizer",
)


def _build_gemini(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    folder = Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini"
    key = access.key
    values: dict[ValuePath, Any] = {("security", "auth", "selectedType"): "gemini-api-key"}
    presets = ("modelConfigs", "customAliases")
    if access.model is not None:
        values["model", "name"] = access.model
        # A preset of its name makes it ask for thinking.
        values[*presets, access.model] = {"extends": "chat-base-3", "modelConfig": {"model": access.model}}
        side = {"extends": "base", "modelConfig": {"model": access.small_model or access.model}}
        values |= {(*presets, name): side for name in _SIDE_PRESETS}
    defaults: dict[ValuePath, Any] = {
        ("privacy", "usageStatisticsEnabled"): False,
        ("general", "enableAutoUpdate"): False,
    }
    variables: dict[ValuePath, Any] = {("GOOGLE_GEMINI_BASE_URL",): access.url}
    if isinstance(key, str):
        variables["GEMINI_API_KEY",] = key
    files = (
        ConfigFile(folder / "settings.json", "json", values, defaults, named=(presets, ("model", "name"))),
        ConfigFile(folder / ".env", "env", variables, absent=() if isinstance(key, str) else (("GEMINI_API_KEY",),)),
    )
    return Setup(
        {} if isinstance(key, str) else {"GEMINI_API_KEY": key},
        files,
        "gemini",
        ("It reads one .env file, the nearest to the current folder, and none in a folder that it does not trust.",),
        # With the address alone it takes itself for another kind of gateway's client, and ends.
        needs_files=True,
    )


_OPENCODE_PACKAGES = {
    "chat": ("@ai-sdk/openai-compatible", "/v1"),
    "responses": ("@ai-sdk/openai", "/v1"),
    "anthropic": ("@ai-sdk/anthropic", "/v1"),
    "gemini": ("@ai-sdk/google", "/v1beta"),
}


def _build_opencode(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    path = folder / "opencode.json"
    if environ.get("OPENCODE_CONFIG"):
        path = Path(environ["OPENCODE_CONFIG"])
    elif not path.exists() and (folder / "opencode.jsonc").exists():
        path = folder / "opencode.jsonc"
    package, base = _OPENCODE_PACKAGES[access.dialect or DIALECTS[0]]
    model = access.name_model("opencode")
    small = access.small_model or model
    row = ("provider", OWN_NAME)
    key = f"{{env:{access.key.name}}}" if isinstance(access.key, FromVariable) else access.key
    values: dict[ValuePath, Any] = {
        (*row, "npm"): package,
        (*row, "name"): OWN_NAME,
        (*row, "options", "baseURL"): f"{access.url}{base}",
        (*row, "options", "apiKey"): key,
        ("model",): f"{OWN_NAME}/{model}",
        ("small_model",): f"{OWN_NAME}/{small}",
    }
    about: dict[str, Any] = {"reasoning": True, "tool_call": True}
    defaults: dict[ValuePath, Any] = {
        (*row, "models", name): {"name": name, **about} for name in dict.fromkeys((model, small))
    }
    defaults |= {("$schema",): "https://opencode.ai/config.json", ("autoupdate",): False, ("share",): "disabled"}
    notes = ("An opencode.json of the current folder wins over this one.",)
    return Setup({}, (ConfigFile(path, "json", values, defaults, (row,)),), "opencode", notes, needs_files=True)


def _build_qwen(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    model = access.name_model("Qwen Code")
    base = f"{access.url}/v1"
    variables: dict[str, Value] = {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": access.key, "OPENAI_MODEL": model}
    values: dict[ValuePath, Any] = {
        ("security", "auth", "selectedType"): "openai",
        ("model", "name"): model,
        ("env", "OPENAI_BASE_URL"): base,
    }
    key: ValuePath = ("env", "OPENAI_API_KEY")
    if isinstance(access.key, str):
        values[key] = access.key
    defaults: dict[ValuePath, Any] = {
        ("privacy", "usageStatisticsEnabled"): False,
        ("general", "enableAutoUpdate"): False,
    }
    notes = ["Variables of the shell win over its settings file: OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL."]
    if any(environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")):
        notes.append("A proxy is set, and Qwen Code uses it for every address, also for this machine's own.")
    absent = () if key in values else (key,)
    file = ConfigFile(home / ".qwen" / "settings.json", "json", values, defaults, absent=absent)
    return Setup(variables, (file,), "qwen --auth-type openai", tuple(notes))


def _find_container_url(url: str) -> str:
    """The address of a gateway of this machine as a container sees it."""
    return re.sub(r"^(https?://)(127(?:\.\d+){3}|localhost|\[::1\])(?=[:/]|$)", r"\1host.docker.internal", url)


def _build_openwebui(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    del home, environ
    reach = "A gateway is reached from there only with --host 0.0.0.0 and a key"
    later = "Later: Admin Panel → Settings → Connections → OpenAI API"
    return Setup(
        {"OPENAI_API_BASE_URL": f"{access.url}/v1", "OPENAI_API_KEY": access.key, "ENABLE_OLLAMA_API": "false"},
        (),
        "open-webui serve",
        (
            f"Its variables count at its first start only. {later}, with {access.url}/v1 as the URL.",
            f"In a container, {_find_container_url(access.url)}/v1 is the URL. {reach}.",
        ),
    )


def _build_openai(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    del home, environ
    example = (
        "from openai import OpenAI\n"
        f"client = OpenAI()\n"
        f'client.responses.create(model={access.model or "gpt-5.5"!r}, input="What is 23 * 47?")'
    )
    return Setup({"OPENAI_BASE_URL": f"{access.url}/v1", "OPENAI_API_KEY": access.key}, example=example)


def _build_anthropic(access: Access, home: Path, environ: Mapping[str, str]) -> Setup:
    del home, environ
    example = (
        "from anthropic import Anthropic\n"
        "client = Anthropic()\n"
        f"client.messages.create(model={access.model or 'claude-opus-5-5'!r}, max_tokens=8000,\n"
        '                       messages=[{"role": "user", "content": "What is 23 * 47?"}])'
    )
    return Setup({"ANTHROPIC_BASE_URL": access.url, "ANTHROPIC_API_KEY": access.key}, example=example)


CLIENTS: dict[str, KnownClient] = {
    "claude": KnownClient(
        "Claude Code",
        "anthropic",
        "@anthropic-ai/claude-code 2.1.197",
        "2026-11",
        "https://code.claude.com/docs/en/llm-gateway",
        _build_claude,
    ),
    "codex": KnownClient(
        "Codex",
        "openai_responses",
        "@openai/codex 0.166.0",
        "2026-11",
        "https://developers.openai.com/codex/config-reference",
        _build_codex,
    ),
    "gemini": KnownClient(
        "Gemini CLI",
        "gemini",
        "@google/gemini-cli 0.61.0",
        "2026-11",
        "https://geminicli.com/docs/reference/configuration",
        _build_gemini,
    ),
    "opencode": KnownClient(
        "opencode",
        "openai_chat",
        "opencode-ai 1.18.33",
        "2026-11",
        "https://opencode.ai/docs/providers",
        _build_opencode,
    ),
    "qwen": KnownClient(
        "Qwen Code",
        "openai_chat",
        "@qwen-code/qwen-code 0.15.10",
        "2026-11",
        "https://qwenlm.github.io/qwen-code-docs/",
        _build_qwen,
    ),
    "openwebui": KnownClient(
        "Open WebUI",
        "openai_chat",
        "",
        "2026-11",
        "https://docs.openwebui.com/reference/env-configuration",
        _build_openwebui,
    ),
    "openai": KnownClient(
        "OpenAI's clients",
        "openai_responses",
        "openai 3.49.0",
        "2026-11",
        "https://github.com/openai/openai-python",
        _build_openai,
    ),
    "anthropic": KnownClient(
        "Anthropic's clients",
        "anthropic",
        "anthropic 2.8.0",
        "2026-11",
        "https://github.com/anthropics/anthropic-sdk-python",
        _build_anthropic,
    ),
}
