"""Decodes one reply for each type, field and value that the newest SDKs know, and reports what asides does not read.

    python scripts/drift.py                   install the newest SDKs for this run, print all that nobody judged
    python scripts/drift.py --all             print what is judged too, with the reason
    python scripts/drift.py TYPES.json        read the types that scripts/drift_types.py printed, install nothing

Run it by hand, when a provider announces something, and once a month. The SDKs are installed into an environment of
their own and their types are read as data. For each field of each type, a minimal body with the field is compared with
the same body without it: if the two are the same reply, the field is not read; if there is a warning of something
unknown, it is not known. What is ignored on purpose stands in drift_judged.toml with its reason and its date. The exit
code is 1 while a finding is not judged, or a judgement is not needed any more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from asides.dialects import find_dialect
from asides.providers.find import find_target
from asides_stage.conformance.response_bodies import decode_pieces

HERE = Path(__file__).resolve().parent
JUDGED = HERE / "drift_judged.toml"
PACKAGES = ("openai", "anthropic", "google-genai", "mistralai", "cohere", "botocore", "ollama")

Schema: TypeAlias = Mapping[str, Any]
Wrap: TypeAlias = Callable[[Any], Any]

_MODELS = {
    "anthropic": "anthropic:claude-opus-4-6",
    "openai_chat": "openai:gpt-5",
    "openai_chat mistral": "mistral:magistral-medium-latest",
    "openai_chat mistral_chunk": "mistral:magistral-medium-latest",
    "openai_responses": "openai-responses:gpt-5",
    "gemini": "gemini:gemini-3-pro-preview",
    "gemini_interactions": "gemini-interactions:gemini-3-pro-preview",
    "cohere": "cohere:command-a-reasoning-08-2025",
    "bedrock": "bedrock:anthropic.claude-opus-4-6-v1",
    "ollama": "ollama:qwen3",
}
_MOST_LEVELS = 4
_STRANGE = ("unknown", "malformed", "unreadable")
"""How the codes of warnings begin that say that something is not known."""


class Case(NamedTuple):
    """A body with a field, and the same body without it."""

    key: str
    """The root, the type, the field, and the value where there are several."""
    document: Any
    base: Any


class Finding(NamedTuple):
    """Something that is not read."""

    key: str
    what: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}"


class Judgement(NamedTuple):
    """Why something is not read."""

    keys: tuple[str, ...]
    reason: str
    date: str

    def covers(self, finding: Finding) -> bool:
        """Whether this judgement is about that finding."""
        return any(fnmatchcase(finding.key, glob) for glob in self.keys)


# --- bodies out of types ----------------------------------------------------------------------------------------------


class Types:
    """The schema of a root type, and the minimal bodies that it allows."""

    def __init__(self, root: Schema, said: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._defs: Mapping[str, Schema] = root.get("$defs", {})
        self._root = root
        self._said = said or {}

    def resolve(self, schema: Schema) -> tuple[str, Schema]:
        """Follow references; return the name of the type, "" if it has none, and its schema."""
        name = ""
        while "$ref" in schema:
            name = str(schema["$ref"]).rpartition("/")[2]
            schema = self._defs[name]
        if len(schema.get("allOf", ())) == 1:
            return self.resolve(schema["allOf"][0])
        return name or str(schema.get("title", "")), schema

    def alternatives(self, schema: Schema) -> list[Schema]:
        """The types that a value may have, without null."""
        _, plain = self.resolve(schema)
        for word in ("anyOf", "oneOf"):
            if word in plain:
                return [inner for each in plain[word] for inner in self.alternatives(each)]
        return [] if plain.get("type") == "null" or plain.get("title") == "Unset" else [schema]

    def build(self, schema: Schema, depth: int = 0) -> Any:
        """The smallest value of a type."""
        options = self.alternatives(schema)
        if not options or depth > 12:
            return None
        _, plain = self.resolve(options[0])
        if "const" in plain:
            return plain["const"]
        if "enum" in plain:
            return plain["enum"][0]
        match plain.get("type"):
            case "object":
                if plain.get("one"):
                    name, field = next(iter(plain["properties"].items()))
                    return {name: self.build(field, depth + 1)}
                fields = plain.get("properties", {})
                needed = [name for name in fields if name in plain.get("required", ()) or self._is_fixed(fields[name])]
                return {name: self.build(fields[name], depth + 1) for name in needed}
            case "array":
                return []
            case "integer" | "number":
                return 1
            case "boolean":
                return False
            case _:
                return "text"

    def fill(self, schema: Schema, depth: int = 0) -> Any:
        """A value of a type with every field that it may have."""
        options = self.alternatives(schema)
        if not options:
            return None
        _, plain = self.resolve(options[0])
        match plain.get("type"):
            case "object" if plain.get("one"):
                name, field = next(iter(plain["properties"].items()))
                return {name: self.fill(field, depth + 1)}
            case "object" if "properties" in plain and depth < _MOST_LEVELS:
                return {name: self.fill(field, depth + 1) for name, field in plain["properties"].items()}
            case "array" if depth < _MOST_LEVELS:
                return [self.fill(plain.get("items", {}), depth + 1)]
            case _:
                return next((value for _, value in self.vary(options[0]) if plain.get("type") != "object"), {})

    def vary(self, schema: Schema) -> Iterator[tuple[str, Any]]:
        """Values of a type that are not the smallest: each word of a list, each kind of object, with its name."""
        options = self.alternatives(schema)
        # A list of words that other words may join: those are for servers of another day.
        is_open = len(options) > 1 and any("enum" in self.resolve(option)[1] for option in options)
        for option in options:
            name, plain = self.resolve(option)
            if is_open and not plain.keys() & {"enum", "const"}:
                continue
            label = f"={name}" if len(options) > 1 and name else ""
            if "const" in plain or "enum" in plain:
                words = [plain["const"]] if "const" in plain else plain["enum"]
                for word in words:
                    yield f"={word}", word
                continue
            match plain.get("type"):
                case "object":
                    if "properties" not in plain:
                        yield label, {"drift": "marker"}
                    elif plain.get("one"):
                        for field, inner in plain["properties"].items():
                            yield f"={field}", {field: self.fill(inner, 1)}
                    else:
                        yield label, self.fill(option)
                case "array":
                    for inner_label, inner in self.vary(plain.get("items", {})):
                        yield inner_label, [inner]
                case "integer" | "number":
                    yield label, 7
                case "boolean":
                    yield label, True
                case "string":
                    yield label, "drift marker"
                case _:
                    yield label, {"drift": "marker"}

    def walk(self, root: str, judge: Callable[[Case], Finding | None]) -> Iterator[Finding]:
        """Judge a case for each field of each type, where the type is first found. What is inside a field that is not
        read is not read either: it gives no case.
        """
        waiting: deque[tuple[str, Schema, Wrap]] = deque()
        seen: set[str] = set()
        self._enter(self._root, lambda value: value, waiting, seen)
        while waiting:
            name, schema, wrap = waiting.popleft()
            base = {} if schema.get("one") else self.build(schema)
            base = {**base, **self._said.get(str(base.get("type", "")), {})}
            for field, inner in schema.get("properties", {}).items():
                without = {key: value for key, value in base.items() if key != field}
                if self._is_fixed(inner):
                    continue
                is_read = False
                for label, value in self.vary(inner):
                    case = Case(f"{root} {name}.{field}{label}", wrap({**base, field: value}), wrap(without))
                    found = judge(case)
                    is_read = is_read or found is None
                    if found is not None:
                        yield found
                if is_read:
                    self._enter(inner, _place(wrap, base, field), waiting, seen)

    def _is_fixed(self, schema: Schema) -> bool:
        """Whether a field has one value only: the name of its type."""
        options = [self.resolve(option)[1] for option in self.alternatives(schema)]
        return len(options) == 1 and ("const" in options[0] or len(options[0].get("enum", ())) == 1)

    def _enter(self, schema: Schema, wrap: Wrap, waiting: deque[tuple[str, Schema, Wrap]], seen: set[str]) -> None:
        for option in self.alternatives(schema):
            name, plain = self.resolve(option)
            if plain.get("type") == "array":
                self._enter(plain.get("items", {}), _list(wrap), waiting, seen)
            elif plain.get("type") == "object" and "properties" in plain and name not in seen:
                seen.add(name)
                waiting.append((name, plain, wrap))


def _place(wrap: Wrap, base: Mapping[str, Any], field: str) -> Wrap:
    return lambda value: wrap({**base, field: value})


def _list(wrap: Wrap) -> Wrap:
    return lambda value: wrap([value])


# --- decoding ---------------------------------------------------------------------------------------------------------

_TOOL = {"type": "server_tool_use", "id": "t", "name": "code_execution", "input": {}}
_MESSAGE = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}
_RESPONSE = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [_MESSAGE]}
_OUTPUT = {"type": "model_output", "content": [{"type": "text", "text": "42"}]}
_INTERACTION = {"id": "i", "object": "interaction", "model": "m", "status": "completed"}
_START: Mapping[str, list[Any]] = {
    "anthropic event": [
        {"type": "message_start", "message": {"id": "a", "model": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": _TOOL},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "42"}},
    ],
    "gemini_interactions event": [
        {"event_type": "interaction.created", "interaction": {**_INTERACTION, "status": "in_progress"}},
    ],
    "cohere event": [{"type": "message-start", "id": "a", "delta": {"message": {"role": "assistant"}}}],
}
_END: Mapping[str, list[Any]] = {
    "anthropic event": [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ],
    "openai_chat chunk": [],
    "openai_chat mistral_chunk": [],
    "openai_responses event": [{"type": "response.completed", "response": _RESPONSE}],
    "cohere event": [{"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}],
    "bedrock event": [{"messageStop": {"stopReason": "end_turn"}}],
    "gemini_interactions event": [{"event_type": "interaction.completed", "interaction": _INTERACTION}],
}


def frame(root: str, document: Any) -> bytes:
    """The body of a response with this document: whole, or a stream around it."""
    if isinstance(document, dict):
        document = document | {name: value for name, value in _FILLED.get(root, {}).items() if not document.get(name)}
    if root not in _END:
        return json.dumps(document).encode()
    kind = _find_kind(document)
    start = [each for each in _START.get(root, []) if _find_kind(each) != kind]
    end = [] if kind in _TERMINAL else [each for each in _END[root] if _find_kind(each) != kind]
    if kind == _BEGUN:
        # What an item holds counts once it is done.
        end = [{**document, "type": _DONE}, *end]
    lines = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (*start, document, *end)]
    return b"".join(lines) + (b"data: [DONE]\n\n" if root.startswith("openai") else b"")


def _find_kind(document: Any) -> str:
    """The name of an event: its type, or at one host its only field."""
    if not isinstance(document, dict):
        return ""
    return str(
        document.get("type")
        or document.get("event_type")
        or (next(iter(document), "") if "choices" not in document else "")
    )


_FILLED: Mapping[str, Mapping[str, Any]] = {
    "anthropic message": {"content": [_TOOL]},
    "gemini chunk": {"candidates": [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]},
    "openai_chat chunk": {"choices": [{"index": 0, "delta": {"content": "42"}}]},
    "openai_chat mistral_chunk": {"choices": [{"index": 0, "delta": {"content": "42"}}]},
    "openai_responses response": {"output": [_MESSAGE], "status": "completed"},
    "openai_responses stable": {"output": [_MESSAGE], "status": "completed"},
    "gemini_interactions interaction": {"steps": [_OUTPUT], "status": "completed"},
}
"""What a document needs to be a reply, where its type does not require it."""
_BEGUN, _DONE = "response.output_item.added", "response.output_item.done"
_SAID: Mapping[str, Mapping[str, Any]] = {
    "openai_responses": {
        "message": {"content": [{"type": "output_text", "text": "42"}]},
        "reasoning": {"summary": [{"type": "summary_text", "text": "Add them."}]},
    },
    "gemini_interactions": {
        "model_output": {"content": [{"type": "text", "text": "42"}]},
        "thought": {"summary": [{"type": "text", "text": "Add them."}]},
    },
}
"""By the dialect and the type of an item, what it says: an empty one is left out with all its fields."""
_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "message_stop", "interaction.completed")


def read_reply(root: str, document: Any) -> tuple[Any, list[str]]:
    """What the reply of a document says, and the codes of its warnings."""
    dialect = root.partition(" ")[0]
    model = _MODELS.get(root) or _MODELS[dialect]
    target = find_target(model, environ={"AWS_REGION": "eu-west-1"})
    decoded = decode_pieces([frame(root, document)], target, find_dialect(dialect))
    reply = decoded.reply
    said = (reply.parts, reply.usage, reply.stop, reply.warnings, reply.model, reply.id, reply.stored)
    return (said, repr(decoded.failure)), [notice.code for notice in reply.warnings]


def judge_case(root: str, case: Case) -> Finding | None:
    """The finding of a case; None if the field is read."""
    said, codes = read_reply(root, case.document)
    before, known = read_reply(root, case.base)
    if said == before:
        return Finding(case.key, "not read")
    strange = [code for code in codes if code.startswith(_STRANGE) and code not in known]
    return Finding(case.key, f"not known ({', '.join(strange)})") if strange else None


def find_all(roots: Mapping[str, Schema]) -> Iterator[Finding]:
    """Every finding, in order."""
    for root, schema in roots.items():
        yield from Types(schema, _SAID.get(root.partition(" ")[0])).walk(root, partial(judge_case, root))


# --- judgements -------------------------------------------------------------------------------------------------------


def read_judgements(text: str) -> list[Judgement]:
    """Read drift_judged.toml."""
    rows = tomllib.loads(text).get("judged", [])
    return [Judgement(tuple(row["keys"]), row["reason"], str(row["date"])) for row in rows]


def sort_out(
    findings: Iterable[Finding], judgements: Sequence[Judgement]
) -> tuple[list[Finding], list[tuple[Finding, Judgement]], list[str]]:
    """The findings that nobody judged, the judged ones, and the globs of judgements that nothing needs."""
    unjudged: list[Finding] = []
    judged: list[tuple[Finding, Judgement]] = []
    needed: set[str] = set()
    for finding in findings:
        found = next((each for each in judgements if each.covers(finding)), None)
        if found is None:
            unjudged.append(finding)
            continue
        judged.append((finding, found))
        needed |= {glob for each in judgements for glob in each.keys if fnmatchcase(finding.key, glob)}
    unneeded = [glob for each in judgements for glob in each.keys if glob not in needed]
    return unjudged, judged, unneeded


# --- the types --------------------------------------------------------------------------------------------------------


def describe_newest() -> Mapping[str, Any]:
    """Install the newest SDKs into an environment of their own, and describe their types there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        written = subprocess.run([python, HERE / "drift_types.py"], check=True, capture_output=True).stdout
    types: Mapping[str, Any] = json.loads(written)
    return types


def main() -> int:
    """Print the findings; return 1 while one is not judged."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("types", nargs="?", help="what drift_types.py printed")
    parser.add_argument("--all", action="store_true", help="print what is judged too")
    given = parser.parse_args()
    types = json.loads(Path(given.types).read_text()) if given.types else describe_newest()
    print(", ".join(f"{name} {version}" for name, version in types["versions"].items()))
    unjudged, judged, unneeded = sort_out(find_all(types["roots"]), read_judgements(JUDGED.read_text()))
    for finding in unjudged:
        print(finding)
    if given.all:
        for finding, why in judged:
            print(f"{finding}  judged {why.date}: {why.reason}")
    for glob in unneeded:
        print(f"not needed any more: {glob}")
    print(f"{len(unjudged)} not judged, {len(judged)} judged, {len(unneeded)} judgements not needed")
    return 1 if unjudged or unneeded else 0


if __name__ == "__main__":
    sys.exit(main())
