"""Names of fields that hosts read in different ways: `refuse_ambiguous_names(body, dialect)`.

Servers in Go ignore the case of a name, some servers take the first of two fields with one name and others the last,
and Google's take two spellings. The limits of a key hold only if a request has one reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

from asides.dialects import find_facts
from asides.relay.allowed_models import NAMES_MORE_MODELS
from asides.relay.error_response import RelayRefusal
from asides.relay.splice_body import find_members
from asides.relay.translate.field_rules import FIELD_RULES

_Known: TypeAlias = dict[str, frozenset[str]]
"""Spellings of known fields, by what case and underscores leave of them."""

CLIENT_OBJECTS = frozenset(
    {
        *("metadata", "labels", "requestMetadata", "client_metadata", "promptVariables", "logit_bias", "headers"),
        *("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema", "schema"),
        *("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema", "format"),
        *("input_examples", "args", "arguments", "chat_template_kwargs"),
    }
)
"""Objects whose names are the caller's own."""
_CONTENT = CLIENT_OBJECTS | {
    *(
        "messages",
        "contents",
        "input",
        "system",
        "systemInstruction",
        "system_instruction",
        "instructions",
        "documents",
    ),
}
# Fields of any dialect that change what a request costs.
_COSTS = ("n", "best_of", "service_tier", "serviceTier", "background", "speed", "inference_geo", "performanceConfig")
# Fields inside of objects that decide what a request asks for, or costs.
_INSIDE = (
    *("candidateCount", "candidate_count", "maxOutputTokens", "max_output_tokens", "maxTokens", "max_tokens"),
    *("max_new_tokens", "num_predict", "include_usage", "latency", "type", "model", "models", "max_completion_tokens"),
    *("container", "file_ids", "vector_store_ids", "effort", "budget_tokens", "thinkingBudget", "thinking_budget"),
    # Searches of the host, and the upstreams of a gateway.
    *("max_uses", "max_num_results", "max_results", "max_content_tokens", "search_context_size", "num_ctx"),
    *("order", "only", "ignore", "sort", "allow_fallbacks", "max_price"),
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Members(list[tuple[str, Any]]):
    """The members of an object, with those whose name comes twice."""


def refuse_ambiguous_names(body: bytes, dialect: str) -> None:
    """Raise RelayRefusal for a name that comes twice, or that a host may read as another one. What is not a JSON object
    is left to its reader.
    """
    members = find_members(body)
    if members is None:
        document = read_members(body)
        _check_names((name for name, _ in document) if isinstance(document, Members) else (), "", {})
        return
    _check_names((member.name for member in members), "", list_known_fields(dialect))
    inside = _list_inside()
    for member in members:
        if member.name not in _CONTENT and body[member.value : member.value + 1] in (b"{", b"["):
            _check(read_members(body[member.value : member.end]), member.name, inside)


def refuse_ambiguous_state(body: bytes, dialect: str) -> None:
    """Raise RelayRefusal for another spelling of the fields that name stored state, which belongs to one tenant."""
    if not (previous := find_facts(dialect).previous_field):
        return
    members = find_members(body)
    document = read_members(body) if members is None else ()
    names = (name for name, _ in document) if isinstance(document, Members) else (each.name for each in members or ())
    known = _group((previous, "conversation"))
    _check_names((name for name in names if fold_name(name) in known), "", known)


@cache
def list_known_fields(dialect: str) -> _Known:
    """The fields of a dialect's requests."""
    ruled = (name.partition(".")[0] for name in FIELD_RULES.get(dialect, {}))
    names = {*find_facts(dialect).request_fields, *ruled, *_COSTS, *NAMES_MORE_MODELS}
    if dialect == "gemini":
        names |= {_HUMP.sub("_", name).lower() for name in names}
    return _group(names)


@cache
def _list_inside() -> _Known:
    return _group(_INSIDE)


def _group(names: Iterable[str]) -> _Known:
    known: dict[str, set[str]] = {}
    for name in names:
        known.setdefault(fold_name(name), set()).add(name)
    return {folded: frozenset(spellings) for folded, spellings in known.items()}


def fold_name(name: str) -> str:
    """A name without case and underscores."""
    # Also what Go takes for an ASCII letter: the long s and the sign of kelvin.
    return name.casefold().replace("_", "").replace("-", "")


def read_members(data: bytes) -> Any:
    """An object or a list, with all members of its objects; nothing of what is not JSON. Raises RecursionError."""
    try:
        # Python refuses an integer of thousands of digits, which other parsers read.
        return json.loads(data, object_pairs_hook=Members, parse_int=float)
    except ValueError:
        return Members()


def _check(value: Any, path: str, known: _Known) -> None:
    if isinstance(value, Members):
        _check_names((name for name, _ in value), f"{path}.", known)
        for name, inner in value:
            if name not in _CONTENT:
                _check(inner, f"{path}.{name}", known)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, path, known)


def _check_names(names: Iterable[str], path: str, known: _Known) -> None:
    seen: dict[str, str] = {}
    for name in names:
        folded = fold_name(name)
        shown = f"{path}{name}"[:200]
        if folded in seen:
            raise RelayRefusal(
                f"{shown} and {seen[folded][:200]} are one field for some hosts. Send only one of them.",
                param=shown,
            )
        seen[folded] = name
        if name not in known.get(folded, (name,)):
            [*_, usual] = sorted(known[folded])
            raise RelayRefusal(f"{shown} is {usual} for some hosts. Write {usual}.", param=shown)
