"""Builds HTTP requests for every dialect: native fields, JSON, headers, the address, the credential header, and notices
for settings that a dialect has no field for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from asides import __version__
from asides.dialects.dialect import HttpRequest
from asides.providers.provider import Target
from asides.values.errors import ConfigError, Unsupported
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool
from asides.values.traits import HAS_BREAKPOINTS, find_traits


def merge_fields(ours: dict[str, Any], native: Mapping[str, Any]) -> dict[str, Any]:
    """Merge native fields into ours. Native ones win; inside an object our other fields stay.

    A native object with another `type` replaces our whole object.
    """
    merged = dict(ours)
    for name, value in native.items():
        own = merged.get(name)
        if isinstance(own, dict) and isinstance(value, Mapping) and value.get("type") in (None, own.get("type")):
            merged[name] = merge_fields(own, value)
        else:
            merged[name] = value
    return merged


def encode_json(body: dict[str, Any]) -> bytes:
    """Encode the body. Raises ConfigError that names the field with a value that JSON cannot hold."""
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"the request cannot be written as JSON: look at {_find_unwritable(body)!r} for a value of a type that "
            "JSON does not have, or for text with a lone surrogate (half a character)."
        ) from None


def _find_unwritable(body: dict[str, Any]) -> str:
    for name, value in body.items():
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError):
            return name
    return "extra"


def build_post(
    target: Target, url: str, accept: str, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """Build a POST request; `headers` are added to those of every request."""
    all_headers = {**build_headers(target, accept), **(headers or {})}
    return HttpRequest("POST", url, all_headers, encode_json(body), choose_credential_header(target))


def join_url(
    target: Target, path: str, *, first: Iterable[tuple[str, str]] = (), last: Iterable[tuple[str, str]] = ()
) -> str:
    """Build the address of a path at the target's host. Its query is `first`, that of the base URL, the row's, and
    `last`.

    A parameter of the row is left out if one before it has the same name, or if its value is an unresolved "$NAME".
    """
    base = urlsplit(target.base_url)
    given = [*first, *parse_qsl(base.query, keep_blank_values=True)]
    names = {name for name, _ in given}
    given += [pair for pair in target.provider.query if pair[0] not in names and not pair[1].startswith("$")]
    return urlunsplit((base.scheme, base.netloc, path, urlencode([*given, *last]), ""))


def build_headers(target: Target, accept: str) -> dict[str, str]:
    """Build the headers of every request, without the credential."""
    return {
        "Content-Type": "application/json",
        "Accept": accept,
        # Compression would hold events back until a compressed block is full.
        "Accept-Encoding": "identity",
        "User-Agent": f"asides/{__version__}",
        **dict(target.provider.headers),
    }


def choose_credential_header(target: Target) -> tuple[str, str] | None:
    """Return the header and the prefix that carry the key; None if no header does."""
    match target.quirks.auth:
        case "bearer":
            return ("Authorization", "Bearer ")
        case "nothing":
            return None
        case name:
            return (name, "")


# --- tools of the provider --------------------------------------------------------------------------------------------


def encode_native_tool(tool: Tool, *, known: bool) -> dict[str, Any]:
    """Return a tool of the provider as it was given. Raises Unsupported if this dialect has no such tool."""
    native = tool.native or {}
    if not known:
        raise Unsupported(
            f"the tool {tool.name!r} is not a function, and this dialect has no such tool; leave it out, describe a "
            'function ({"type": "function", …}), or give it in extra={"tools": […]} if this host takes it.'
        )
    return native


# --- settings without a field -----------------------------------------------------------------------------------------


def encode_tool(tool: Tool) -> dict[str, Any]:
    """Encode a function in the form of chat completions, without what only some hosts of it know."""
    if tool.native is not None:
        return encode_native_tool(tool, known=False)
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def report_unsupported(prompt: Prompt, *settings: str) -> list[Notice]:
    """Return a notice for each of these settings that was set."""
    return [
        Notice("setting_dropped", f"{setting} does not exist in this dialect", setting)
        for setting in settings
        if getattr(prompt, setting) is not None
    ]


def report_tool_settings(prompt: Prompt, *settings: str) -> list[Notice]:
    """Return a notice for each of these settings that was set without tools: hosts refuse them then."""
    return [
        Notice("setting_dropped", f"{setting} has no effect without tools", setting)
        for setting in settings
        if getattr(prompt, setting) is not None
    ]


def report_added(prompt: Prompt, dialect: str, body: Mapping[str, Any], *names: str) -> list[Notice]:
    """Return a notice for each of these fields that the body has and the request in this dialect did not have."""
    source = prompt.source
    if source is None or source.dialect != dialect:
        return []
    return [
        Notice("field_added", f"the request had no {name}; it was added", name, "nothing", "set")
        for name in names
        if name in body and name not in source.fields and name not in prompt.extra
    ]


RETENTIONS = ("24h",)
"""The lifetimes that a cache with a key takes."""


def report_cache(prompt: Prompt, notices: list[Notice], *, has_key: bool = False) -> None:
    """Add a notice if a part or a tool has a cache breakpoint, for dialects and hosts without them; and for a lifetime,
    unless the host's cache has a key and accepts it. `cache=True` alone gets no notice: most hosts cache by default.
    """
    if find_traits(prompt.messages) & HAS_BREAKPOINTS or any(tool.cache for tool in prompt.tools):
        notices.append(Notice("cache_not_sent", "cache breakpoints (cache_control) do not exist here", "messages"))
    if isinstance(prompt.cache, str) and not (has_key and prompt.cache in RETENTIONS):
        detail = "how long the cache lasts cannot be set here"
        notices.append(Notice("cache_not_sent", detail, "cache", prompt.cache, "nothing"))


def write_sampling(prompt: Prompt, names: Mapping[str, str], notices: list[Notice]) -> dict[str, Any]:
    """Return the sampling settings that are set, by the dialect's `names` for ours. Report others as dropped."""
    given = prompt.sampling.to_dict()
    notices += [
        Notice("setting_dropped", f"{name} does not exist in this dialect", name, "set", "nothing")
        for name in given
        if name not in names
    ]
    return {names[name]: value for name, value in given.items() if name in names}


def report_output_not_sent(output: OutputSchema | Literal["json"]) -> Notice:
    """Return the notice for an output format that is not sent: the host accepts no schema and has no JSON mode."""
    if isinstance(output, OutputSchema):
        code, asked, detail = "schema_not_sent", "json_schema", "this model takes no schema"
    else:
        code, asked, detail = "json_not_sent", "json_object", "JSON without a schema cannot be asked for here"
    return Notice(code, f"{detail}; the prompt must say what you want", "output", asked, "nothing")
