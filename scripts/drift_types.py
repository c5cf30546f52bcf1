"""Describes the types of replies in the newest SDKs as JSON schemas. scripts/drift.py runs it where those SDKs are.

    python scripts/drift_types.py             one JSON object: the name of each root type, and its schema

It imports nothing of asides. The types are read, nothing is called.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOTS: dict[str, str] = {
    "anthropic message": "anthropic.types.beta:BetaMessage",
    "anthropic event": "anthropic.types.beta:BetaRawMessageStreamEvent",
    "openai_chat completion": "openai.types.chat:ChatCompletion",
    "openai_chat chunk": "openai.types.chat:ChatCompletionChunk",
    "openai_responses response": "openai.types.beta:BetaResponse",
    "openai_responses stable": "openai.types.responses:Response",
    "openai_responses event": "openai.types.responses:ResponseStreamEvent",
    "gemini chunk": "google.genai.types:GenerateContentResponse",
    "gemini_interactions interaction": "google.genai.interactions:Interaction",
    "gemini_interactions event": "google.genai.interactions:InteractionSSEEvent",
    "openai_chat mistral": "mistralai.client.models:ChatCompletionResponse",
    "openai_chat mistral_chunk": "mistralai.client.models:CompletionChunk",
    "cohere reply": "cohere:V2ChatResponse",
    "cohere event": "cohere:V2ChatStreamResponse",
    "ollama line": "ollama:ChatResponse",
}
"""The dialect and a name, and where the type is."""
BEDROCK = {"bedrock reply": "ConverseResponse", "bedrock event": "ConverseStreamOutput"}
PACKAGES = ("openai", "anthropic", "google-genai", "mistralai", "cohere", "botocore", "ollama")


def describe_pydantic(place: str) -> dict[str, Any]:
    """The JSON schema of a type; what has none, such as an open file, is anything."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Lenient(GenerateJsonSchema):
        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:  # noqa: ARG002
            return {}

    module, _, name = place.partition(":")
    found: dict[str, Any] = TypeAdapter(getattr(import_module(module), name)).json_schema(
        by_alias=True, schema_generator=Lenient, mode="validation"
    )
    return found


def describe_botocore(shapes: dict[str, Any], root: str) -> dict[str, Any]:
    """The JSON schema of a shape of botocore's service model."""
    needed: dict[str, Any] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        shape = shapes[name]
        needed[name] = _describe_shape(shape)
        waiting += _list_shapes(shape)
    return {"$ref": f"#/$defs/{root}", "$defs": needed}


def _describe_shape(shape: dict[str, Any]) -> dict[str, Any]:
    match shape["type"]:
        case "structure":
            fields = {name: _refer(member["shape"]) for name, member in shape["members"].items()}
            described: dict[str, Any] = {"type": "object", "properties": fields, "required": shape.get("required", [])}
            return {**described, "one": True} if shape.get("union") or shape.get("eventstream") else described
        case "list":
            return {"type": "array", "items": _refer(shape["member"]["shape"])}
        case "string":
            return {"type": "string", **({"enum": shape["enum"]} if "enum" in shape else {})}
        case "blob":
            return {"type": "string", "format": "binary"}
        case "integer" | "long":
            return {"type": "integer"}
        case "double" | "float":
            return {"type": "number"}
        case "boolean":
            return {"type": "boolean"}
        case _:
            return {}


def _refer(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _list_shapes(shape: dict[str, Any]) -> Iterator[str]:
    for member in shape.get("members", {}).values():
        yield member["shape"]
    if shape["type"] == "list":
        yield shape["member"]["shape"]


def describe_all() -> dict[str, Any]:
    """Every root type, and the versions that they come from."""
    warnings.simplefilter("ignore")
    roots = {name: describe_pydantic(place) for name, place in ROOTS.items()}
    import botocore  # type: ignore[import-untyped]

    folder = Path(botocore.__file__).parent / "data" / "bedrock-runtime"
    latest = max(folder.iterdir()) / "service-2.json.gz"
    shapes = json.loads(gzip.decompress(latest.read_bytes()))["shapes"]
    roots |= {name: describe_botocore(shapes, root) for name, root in BEDROCK.items()}
    return {"versions": {name: version(name) for name in PACKAGES}, "roots": roots}


if __name__ == "__main__":
    json.dump(describe_all(), sys.stdout)
