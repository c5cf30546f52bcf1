"""Errors as clients of a server read them: `explain_to_client(error)`. Whose key was refused, and nothing of Python.

A client in this process gets the errors as they are: it holds the keys, and its arguments are those of our functions.
"""

from __future__ import annotations

import re
from typing import TypeVar

from asides.providers.provider_errors import split_provider_advice
from asides.relay.error_response import RelayRefusal
from asides.values.errors import AsidesError, AuthError, ConfigError, MissingKey, ProviderError, split_advice

_Error = TypeVar("_Error", bound=AsidesError)

KEY_REFUSED = "provider_key_refused"
KEY_MISSING = "provider_key_missing"
ADDRESS_MISSING = "provider_address_missing"
_ASK = "Ask the operator of this gateway."
_SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z])")
_OR = re.compile(r"(; |, or )")
_PARTIAL = re.compile(r" \((?:try again )?\(?\.(?:partial|result)\b[^)]*\)")
# The types of a field, as the library that reads JSON names them.
_TYPES = re.compile(r"(?<=\bExpected `)[^`]+|(?<=\bgot `)[^`]+")
_JSON_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "bytes": "string"}
_TYPE = re.compile(rf"\b(?:{'|'.join(_JSON_TYPES)})\b")
# An argument as our functions take it, a call, an attribute, or a name of the package.
_PYTHON = re.compile(
    r"\b[a-z_]+=|\b[A-Za-z_]+\([^()=…]*[=…][^()]*\)|(?<!\w)\.(?:partial|result)\b"
    r"|\basides\.[A-Z]\w+|\bon_conflict\b|\bextra_body\b"
)


def explain_to_client(error: AsidesError) -> AsidesError:
    """The error for a client of a server. Errors about the server's own key get a 5xx status,
    so that clients neither retry nor ask their user for a key.
    """
    if isinstance(error, RelayRefusal):
        return error  # written for clients
    if isinstance(error, MissingKey):
        return _blame_server(str(error), KEY_MISSING)
    if isinstance(error, AuthError):
        said = split_provider_advice(str(error))[0].rstrip(".")
        return _blame_server(f"the provider refused the key of this gateway: {said}. {_ASK}", KEY_REFUSED)
    if isinstance(error, ConfigError) and error.concerns_address:
        return _blame_server(_drop_python(str(error), of_provider=False), ADDRESS_MISSING)
    words = str(error)
    plain = _drop_python(words, of_provider=isinstance(error, ProviderError))
    return error if plain == words else _rephrase(error, plain)


def _blame_server(message: str, code: str) -> RelayRefusal:
    return RelayRefusal(message, status=502, code=code, headers={"x-should-retry": "false"})


def _drop_python(words: str, *, of_provider: bool) -> str:
    """The words without what only a Python program can do. Those of a provider stay: ours come after them."""
    problem, advice = split_provider_advice(words) if of_provider else split_advice(words)
    if not of_provider:
        problem = _TYPES.sub(_name_json_types, _PARTIAL.sub("", problem))
        if _PYTHON.search(problem):
            sentences = [kept for sentence in _SENTENCE.split(problem) if (kept := _drop_clauses(sentence))]
            problem = " ".join(sentences) or "the request cannot be sent as it is."
    if _PYTHON.search(advice):
        advice = _drop_clauses(advice) or _ASK
    return " ".join(filter(None, (problem, f"{advice[:1].upper()}{advice[1:]}")))


def _name_json_types(types: re.Match[str]) -> str:
    return _TYPE.sub(lambda one: _JSON_TYPES[one[0]], types[0])


def _drop_clauses(sentence: str) -> str:
    """The sentence without the clauses that name something of Python."""
    first, *others = _OR.split(sentence.rstrip("."))
    pieces = [first, *(f"{mark}{clause}" for mark, clause in zip(others[::2], others[1::2], strict=True))]
    kept = "".join(piece for piece in pieces if not _PYTHON.search(piece))
    return f"{_OR.sub('', kept, count=1) if _OR.match(kept) else kept}." if kept else ""


def _rephrase(error: _Error, words: str) -> _Error:
    """The same error with other words."""
    other = type(error).__new__(type(error))
    other.args = (words, *error.args[1:])
    other.__dict__.update(error.__dict__)
    return other
