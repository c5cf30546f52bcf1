"""A command that repeats a request: `write_curl(…)`, for a POSIX shell. The key is a variable in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shlex import quote
from typing import Any
from urllib.parse import parse_qsl, urlencode
from urllib.parse import quote as quote_path

import msgspec

from asides.gateway_keys import VARIABLE as KEY_VARIABLE
from asides.relay.relay_request import RelayRequest

BODY_FILE = "request.json"
# Some systems limit arguments to this length, and longer ones are impractical to paste.
_MOST_BODY = 100_000
_MOST_CHARACTERS = 2000
# Headers and parameters of a caller that change what a request means. No key is among them.
_HEADERS = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta")
_QUERY = frozenset({"alt", "$alt", "beta", "fields", "prettyPrint", "limit", "order", "after", "before", "stream"})
_KEY_HEADERS = {"anthropic": "x-api-key: ", "gemini": "x-goog-api-key: "}
_SAFE_IN_PATH = "/:%@!$&'()*+,;=-._~"


class Repeated(msgspec.Struct, frozen=True):
    """What a repetition of a request needs of its head."""

    headers: dict[str, str]
    query: str


def select_repeated(request: RelayRequest | None) -> Repeated:
    """What a repetition needs of the head of a request."""
    if request is None:
        return Repeated({}, "")
    headers = {name: request.headers[name][:_MOST_CHARACTERS] for name in _HEADERS if name in request.headers}
    if not request.query:
        return Repeated(headers, "")
    pairs = parse_qsl(request.query[:_MOST_CHARACTERS], keep_blank_values=True)
    return Repeated(headers, urlencode([pair for pair in pairs if pair[0] in _QUERY]))


def write_curl(origin: str, method: str, path: str, dialect: str, repeated: Repeated, *, body: Any, size: int) -> str:
    """The command. `body`: the captured JSON, or anything else if there is none. `size`: its bytes as they came."""
    address = f"{origin}{quote_path(path, safe=_SAFE_IN_PATH)}{f'?{repeated.query}' if repeated.query else ''}"
    # curl would wait for the body of a response to HEAD.
    asks = "-I" if method == "HEAD" else f"-X {quote(method)}"
    arguments = [f"curl -sS -N {asks} {quote(address)}"]
    # The shell puts the key in; in the command there is none.
    arguments.append(f'-H "{_KEY_HEADERS.get(dialect, "authorization: Bearer ")}${KEY_VARIABLE}"')
    arguments += [f"-H {quote(line)}" for line in _write_headers(repeated.headers)]
    comments: list[str] = []
    if size:
        text = _write_body(body)
        if text is None:
            comments.append(f"# The body was not kept. Write it to {BODY_FILE} first.")
            arguments.append(f"--data-binary @{BODY_FILE}")
        else:
            if "***" in text:
                comments.append(
                    "# What must not be shown is *** in the body: earlier thinking and its seals do not go back."
                )
            arguments.append(f"--data-raw {quote(text)}")
    return "\n".join([*comments, " \\\n  ".join(arguments)])


def _write_headers(headers: Mapping[str, str]) -> list[str]:
    """The headers in printable characters: a terminal may act on others, also inside quotes."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return [line for line in lines if line.isascii() and line.isprintable()]


def _write_body(body: Any) -> str | None:
    """The body as one line of ASCII; None if there is none, or if it is too long for a command."""
    if not isinstance(body, msgspec.Raw) or len(bytes(body)) > _MOST_BODY:
        return None
    text = json.dumps(msgspec.json.decode(body), separators=(",", ":"))
    return text if len(text) <= _MOST_BODY else None
