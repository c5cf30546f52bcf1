"""What a request asks for: `find_endpoint(method, path, …) → Endpoint`. The paths of every dialect, in one place.

The stage serves the same paths. Paths may have any beginning, such as `/v1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

import msgspec

from asides import dialects
from asides.dialects.dialect import ServedRequest, Writer
from asides.values.events import ReplyEnded, ReplyStarted, StopReason

Action: TypeAlias = Literal[
    "reply",
    "models",
    "model",
    "count_tokens",
    "show_response",
    "delete_response",
    "cancel_response",
    "list_input",
    "model_details",
    "loaded_models",
    "version",
    "root",
    "compact",
    "tokenize",
    "manage_models",
    "pass_through",
]
ReadRequest: TypeAlias = Callable[[bytes, str], ServedRequest]
MakeWriter: TypeAlias = Callable[..., Writer]
"""Called as `Dialect.writer` is, with the names model, stream and include_usage."""

# The ends of the paths for replies, and their dialects. The longer of two comes first.
_ENDINGS = {ending: name for name in dialects.DIALECTS for ending in dialects.find_facts(name).reply_paths}
REPLY_PATHS = dict(sorted(_ENDINGS.items(), key=lambda item: -len(item[0])))
# Parts of other paths that show the dialect, in this order.
_OTHER_PATHS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        *((dialects.find_facts(name).path_mark or r"(?!)", name) for name in dialects.DIALECTS),
        (r"/messages(?:/|$)", "anthropic"),
        (r"/responses(?:/|$)", "openai_responses"),
        (r"/v1(?:alpha|beta)\d*/|:(?:[a-z]+[A-Z]\w*|predict)$", "gemini"),
        (r"/(?:model|guardrail|async-invoke)/", "bedrock"),
        (r"^(?:/v1)?/api/", "ollama"),
        (r"^(?:/v1)?/v2/|/v1/tokenize$", "cohere"),
    )
)
_LONGEST_PATH = 4096
PLAIN_DIALECT = "openai_chat"
"""The dialect of a request that shows none."""
LIST_PATHS = ("/models", "/api/tags")
OLLAMA_VERSION = "0.13.0"
"""The version that our servers of this dialect claim: it has thinking, tools and images."""
# The header in which each dialect's servers name a request, unless it is the usual one.
_REQUEST_ID_HEADERS = {"anthropic": "request-id", "bedrock": "x-amzn-requestid"}

# A suffix such as ":embedContent" is a method, not part of a model's name.
_MODEL: tuple[tuple[str, str, Action], ...] = (("GET", r"/models/(?P<model>(?!.*:[a-z]+[A-Z]\w*$).+)$", "model"),)


def _list_stored(stored_as: str) -> tuple[tuple[str, str, Action], ...]:
    """The endpoints of the replies that servers of a dialect store."""
    path = rf"/{stored_as}s/(?P<response>(?!(?:input_tokens|compact)$)[^/]+)"
    return (
        ("GET", path + "$", "show_response"),
        ("DELETE", path + "$", "delete_response"),
        ("POST", path + "/cancel$", "cancel_response"),
        ("GET", path + "/input_items$", "list_input"),
    )


# Every endpoint beside replies and lists: method, path, action.
_ENDPOINTS: dict[str, tuple[tuple[str, str, Action], ...]] = {
    "anthropic": (("POST", r"/messages/count_tokens$", "count_tokens"), *_MODEL),
    "bedrock": (("POST", r"/model/(?P<model>[^/]+)/count-tokens$", "count_tokens"),),
    "cohere": (("POST", r"/v\d/tokenize$", "tokenize"), *_MODEL),
    "gemini": (("POST", r"(?:/models/|/(?=[^/]+$))(?P<model>.+):countTokens$", "count_tokens"), *_MODEL),
    "ollama": (
        ("POST", r"/api/generate$", "reply"),
        ("POST", r"/api/show$", "model_details"),
        ("GET", r"/api/ps$", "loaded_models"),
        ("GET", r"/api/version$", "version"),
        ("POST", r"/api/(?:pull|push|create|copy|embed|embeddings)$", "manage_models"),
        ("DELETE", r"/api/delete$", "manage_models"),
    ),
    "openai_chat": (("POST", r"(?:/embeddings|(?<!/chat)/completions)$", "pass_through"), *_MODEL),
    "openai_responses": (
        ("POST", r"/responses/input_tokens$", "count_tokens"),
        ("POST", r"/responses/compact$", "compact"),
    ),
}
for _name in dialects.DIALECTS:
    if _stored_as := dialects.find_facts(_name).stored_as:
        _ENDPOINTS[_name] = (*_ENDPOINTS.get(_name, ()), *_list_stored(_stored_as))


class Endpoint(msgspec.Struct, frozen=True):
    """What a request asks for, in which dialect."""

    dialect: str
    action: Action
    path: str
    """Without its query and its last slash."""
    query: dict[str, str]
    names: dict[str, str] = {}
    """The named parts of the path, decoded: `model` or `response`."""


class NoEndpoint(Exception):
    """Nothing is at this path, or it takes other methods: then `allowed` names them."""

    def __init__(self, dialect: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(dialect, allowed)
        self.dialect = dialect
        self.allowed = allowed


def find_endpoint(method: str, path: str, query: str, headers: Mapping[str, str], hint: str = "") -> Endpoint:
    """Find what a request asks for. `hint`: the dialect of a client whose path several dialects share. Raises
    NoEndpoint.
    """
    if len(path) > _LONGEST_PATH:
        raise NoEndpoint(dialects.resolve_alias(hint or PLAIN_DIALECT))
    path = path.rstrip("/") or "/"
    parameters = dict(parse_qsl(query)) if query else {}
    has_others = bool(dialects.list_third_party())
    if method == "POST" and not has_others and (usual := _find_usual_reply(path)) is not None:
        return Endpoint(usual, "reply", path, parameters)
    reply = match_ending(path, list_reply_paths() if has_others else REPLY_PATHS)
    dialect = reply or _find_own_dialect(path, hint) or find_other_dialect(path, parameters, headers)
    dialect = dialects.resolve_alias(dialect)
    if path == "/" and method in ("GET", "HEAD"):
        return Endpoint(dialect, "root", path, parameters)
    actions: dict[str, tuple[Action, dict[str, str]]] = {}
    if path.endswith(LIST_PATHS) or match_ending(path, read_registered_paths("list_paths")) is not None:
        actions["GET"] = ("models", {})
    elif reply is not None:
        actions["POST"] = ("reply", {})
    actions |= {allowed: (action, names) for allowed, action, names in match_endpoints(dialect, path)}
    known = actions.get("GET" if method == "HEAD" else method)
    if known is None:
        raise NoEndpoint(dialect, tuple(actions))
    return Endpoint(dialect, known[0], path, parameters, known[1])


@lru_cache(maxsize=256)
def _find_usual_reply(path: str) -> str | None:
    """The dialect of a path for replies that is nothing else as well; None for any other path."""
    dialect = match_ending(path, REPLY_PATHS)
    return None if dialect is None or path.endswith(LIST_PATHS) or match_endpoints(dialect, path) else dialect


def match_endpoints(dialect: str, path: str) -> list[tuple[str, Action, dict[str, str]]]:
    """The endpoints of a dialect at this path beside lists and most replies: method, action, the names in the path."""
    return [
        (method, action, {name: unquote(value) for name, value in match.groupdict().items()})
        for method, pattern, action in _ENDPOINTS.get(dialect, ())
        if (match := re.search(pattern, path)) is not None
    ]


def find_reply_form(dialect: str, path: str, query: Mapping[str, str]) -> tuple[ReadRequest, MakeWriter]:
    """How a request for a reply at this path is read, and its reply written. Two dialects have a second form."""
    found = dialects.find_dialect(dialect)
    if dialect == "ollama" and path.endswith("/generate"):
        return _load("ollama.server.read_request:read_generate"), _load("ollama.server.write_reply:GenerateLineWriter")
    if dialect == "gemini" and path.endswith(":streamGenerateContent") and query.get("alt") != "sse":
        return found.read, _load("gemini.server.write_reply:ContentListWriter")
    return found.read, found.writer


def is_load_request(served: ServedRequest, dialect: str) -> bool:
    """Whether a request holds no question: clients of Ollama load a model so, or unload it."""
    return dialect == "ollama" and not served.prompt.messages and not served.prompt.system


def write_load_reply(served: ServedRequest, make_writer: MakeWriter) -> tuple[str, bytes]:
    """The content type and the body of the reply to a request that only loads a model."""
    writer = make_writer(model=served.model, stream=served.stream, include_usage=False)
    reason = "unload" if served.prompt.extra.get("keep_alive") == 0 else "load"
    return writer.content_type, writer.write([ReplyStarted(served.model), ReplyEnded(StopReason("stop", reason))])


@cache
def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"asides.dialects.{module}"), name)


def name_request_id_header(dialect: str) -> str:
    """The header in which the servers of a dialect name a request."""
    return _REQUEST_ID_HEADERS.get(dialect, "x-request-id")


# --- the dialect of a path ----------------------------------------------------------------------------------------


def read_registered_paths(attribute: Literal["reply_paths", "list_paths"]) -> dict[str, str]:
    """The path endings that registered dialects name as theirs."""
    return {
        ending: name
        for name in dialects.list_third_party()
        for ending in getattr(dialects.find_dialect(name), attribute, ())
    }


def list_reply_paths() -> dict[str, str]:
    """The path endings for replies. Registered dialects come before ours: their authors know the paths."""
    return {**read_registered_paths("reply_paths"), **REPLY_PATHS}


def match_ending(path: str, endings: Mapping[str, str]) -> str | None:
    """The dialect of the first of these endings that a path has."""
    return next((name for ending, name in endings.items() if path.endswith(ending)), None)


def _find_own_dialect(path: str, hint: str) -> str | None:
    """The dialect of a client that is known, unless the path is of another one that it speaks too."""
    if not hint:
        return None
    named = next((name for pattern, name in _OTHER_PATHS if pattern.search(path)), None)
    return hint if named is None or path.endswith(LIST_PATHS) else named


def find_other_dialect(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """The dialect of a request for anything but a reply. Some share a path and differ in headers and query."""
    if (listed := match_ending(path, read_registered_paths("list_paths"))) is not None:
        return listed
    if "anthropic-version" in headers:
        return "anthropic"
    if "x-goog-api-key" in headers or "pageSize" in query:
        return "gemini"
    # The client of this dialect asks for all models, at a path that it shares with others.
    if "endpoint" in query or headers.get("x-fern-sdk-name") == "cohere":
        return "cohere"
    return next((name for pattern, name in _OTHER_PATHS if pattern.search(path)), PLAIN_DIALECT)
